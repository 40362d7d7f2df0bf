"""A folder as the Hugging Face Hub has data sets: Parquet with the pictures in it, a split a file, a card.

`datasets.load_dataset(FOLDER)` reads it as it is, pictures decoded, and it can be uploaded. Written with
pyarrow alone, a few megabytes at a time; the library's own writer would hold or cache all of it.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, Final

from uncanny.eval.common.hub import card_head, hub_schema, picture_type
from uncanny.exports.data import ExportImage, Split
from uncanny.exports.formats.parquet import fields, row
from uncanny.exports.formats.parquet import read as read
from uncanny.exports.writer import FormatWriter
from uncanny.extras import pyarrow

_BYTES_AT_ONCE: Final = 64 * 2**20
_ROWS_AT_ONCE: Final = 100
_CARD = """\
{head}

# Semantic anomalies

An image a row: the picture, and what is wrong with it as quadruples (name, phenomenon, reasoning, severity;
0 = cannot be real, 100 = fully realistic), with boxes `[x0, y0, x1, y1]` in pixels where they are known, and
what reviewers said: a decision is `accept` if an anomaly is accepted by {rule}. Written by `uncanny export`.

| Split | Images | Anomalies |
| --- | --- | --- |
{rows}
"""


class HfWriter(FormatWriter):
    """A split is there where an image is on its side. A picture that is missing or changed is null."""

    def start(self) -> None:
        picture = pyarrow("pyarrow").field("image", picture_type())
        columns = [picture, *(each for each in fields() if each.name != "image")]
        self._schema = hub_schema(columns, ("image",))
        self._data = self.target / "data"
        self._data.mkdir()
        self._files: dict[Split, Any] = {}
        self._rows: dict[Split, list[dict[str, Any]]] = {"train": [], "test": []}
        self._bytes: Counter[Split] = Counter()
        self._images: Counter[Split] = Counter()
        self._anomalies: Counter[Split] = Counter()

    def add(self, image: ExportImage) -> None:
        data, split = image.read(), image.split
        if data is None:
            self.note("pictures missing or changed, null")
        picture = None if data is None else {"bytes": data, "path": image.record.image.rsplit("/", 1)[-1]}
        self._rows[split].append(row(image, "") | {"image": picture})
        self._bytes[split] += len(data or b"")
        self._images[split] += 1
        self._anomalies[split] += len(image.anomalies)
        if len(self._rows[split]) >= _ROWS_AT_ONCE or self._bytes[split] >= _BYTES_AT_ONCE:
            self._write(split)

    def _write(self, split: Split) -> None:
        if split not in self._files:
            # A page index lets readers take single rows: groups with pictures are large.
            writer = pyarrow("pyarrow.parquet").ParquetWriter(
                self._data / f"{split}.parquet", self._schema, compression="zstd", write_page_index=True
            )
            self._files[split] = self.job.files.enter_context(writer)
        table = pyarrow("pyarrow").Table.from_pylist(self._rows[split], self._schema)
        self._files[split].write_table(table)
        self._rows[split], self._bytes[split] = [], 0

    def finish(self) -> None:
        for split in self._rows:
            if self._rows[split] or (split == "train" and not self._images):
                self._write(split)
        splits: list[Split] = [split for split in self._rows if split in self._files]
        card = _CARD.format(
            head=card_head(
                tasks=("image-to-text", "object-detection"),
                tags=("uncanny", "ai-generated-images"),
                splits={split: f"data/{split}.parquet" for split in splits},
            ),
            rule=self.job.parameters.rule.words,
            rows="\n".join(
                f"| {split} | {self._images[split]:,} | {self._anomalies[split]:,} |" for split in splits
            ),
        )
        (self.target / "README.md").write_text(card, encoding="utf-8")
