"""What the Hugging Face Hub reads of a data set: features of Parquet columns, and the head of its card.

`datasets` takes features from the Parquet schema, and which files make a split from the YAML at the top of
`README.md`. It is written with pyarrow alone: the library's own writer would hold or cache all of it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import orjson

from uncanny.extras import pyarrow

_SIZES: Final = ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (1_000_000, "100K<n<1M"))


@dataclass(frozen=True, slots=True)
class Size:
    """Of a split: rows, bytes in memory, and bytes of its files."""

    rows: int
    bytes: int
    packed: int


def picture_type() -> Any:
    """How `datasets` keeps a picture: the bytes of its file, and what that is called."""
    arrow = pyarrow("pyarrow")
    return arrow.struct([("bytes", arrow.binary()), ("path", arrow.string())])


def hub_schema(columns: Iterable[Any], pictures: Collection[str], **more: Mapping[str, Any]) -> Any:
    """An Arrow schema of these fields, of which `pictures` are decoded when they are read.

    `more` goes into the schema's metadata as JSON, by name.
    """
    fields = list(columns)
    # Without it pictures would come as bytes.
    features = {
        each.name: {"_type": "Image"} if each.name in pictures else _feature(each.type) for each in fields
    }
    metadata: Mapping[str, Any] = {"huggingface": {"info": {"features": features}}, **more}
    return pyarrow("pyarrow").schema(
        fields, metadata={name: orjson.dumps(value).decode() for name, value in metadata.items()}
    )


def _feature(kind: Any) -> Any:
    """An Arrow type in the words of `datasets`."""
    types = pyarrow("pyarrow.types")
    if types.is_struct(kind):
        return {each.name: _feature(each.type) for each in kind}
    if types.is_list(kind):
        return {"feature": _feature(kind.value_type), "_type": "List"}
    return {"dtype": str(kind), "_type": "Value"}


def card_head(
    *,
    license: str | None = None,
    title: str | None = None,
    tasks: Sequence[str],
    tags: Sequence[str],
    rows: int | None = None,
    splits: Mapping[str, str],
    schema: Any = None,
    pictures: Collection[str] = (),
    counts: Mapping[str, Size] | None = None,
) -> str:
    """The YAML that a card begins with, between its two lines of dashes.

    `splits` are the files of each split, a path or a pattern from the card's folder. With a `schema` its
    columns are listed as features, and `counts` say how large each split is.
    """
    lines = ["---"]
    if license is not None:
        lines.append(f"license: {_quoted(_line(license))}")
    if title is not None:
        lines.append(f"pretty_name: {_quoted(_line(title))}")
    lines += ["task_categories:", *(f"- {each}" for each in tasks), "tags:", *(f"- {each}" for each in tags)]
    if rows is not None:
        category = next((name for limit, name in _SIZES if rows < limit), "n>1M")
        lines += ["size_categories:", f"- {category}"]
    lines += ["configs:", "- config_name: default", "  data_files:"]
    for split, path in splits.items():
        lines += [f"  - split: {split}", f"    path: {path}"]
    if schema is not None:
        lines += ["dataset_info:", "  features:"]
        for each in schema:
            lines += _feature_lines(each.name, "image" if each.name in pictures else each.type, "  ")
        lines.append("  splits:")
        sizes = counts or {}
        for split, size in sizes.items():
            lines += [f"  - name: {split}", f"    num_bytes: {size.bytes}", f"    num_examples: {size.rows}"]
        lines.append(f"  download_size: {sum(size.packed for size in sizes.values())}")
        lines.append(f"  dataset_size: {sum(size.bytes for size in sizes.values())}")
    return "\n".join([*lines, "---"])


def _feature_lines(name: str, kind: Any, indent: str) -> list[str]:
    types, head = pyarrow("pyarrow.types"), f"{indent}- name: {_quoted(name)}"
    if kind == "image":
        return [head, f"{indent}  dtype: image"]
    if types.is_struct(kind):
        inner = [line for each in kind for line in _feature_lines(each.name, each.type, f"{indent}  ")]
        return [head, f"{indent}  struct:", *inner]
    if types.is_list(kind):
        return [head, f"{indent}  list: {_named(kind.value_type)}"]
    return [head, f"{indent}  dtype: {_named(kind)}"]


def _named(kind: Any) -> str:
    return {"double": "float64", "float": "float32"}.get(str(kind), str(kind))


def _line(text: str) -> str:
    return " ".join(text.split())


def _quoted(text: str) -> str:
    """A text as YAML has it, on one line, whatever is in it: JSON strings are YAML."""
    return orjson.dumps(text).decode()
