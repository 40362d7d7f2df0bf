"""Artifacts from files, folders or records in memory: whole, or refused with everything that is wrong.

`load` takes records of its own format, labelme and COCO, folders of masks and heat maps, verdicts of
detectors, and annotations with boxes, and tells them apart by what they hold. Masks are looked at when they
are scored.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, Union

import orjson
from pydantic import BaseModel, ValidationError

from uncanny.demo.scenes import DATA, bundled_set, pictures
from uncanny.errors import ItemsError, Problem, UsageError
from uncanny.eval.artifacts.data.formats import (
    AnnotatedImage,
    is_coco,
    is_labelme,
    of_annotation,
    of_coco,
    of_labelme,
    of_masks,
)
from uncanny.eval.artifacts.data.records import (
    RECORD_FILE,
    ArtifactImage,
    ArtifactRecord,
    ArtifactSet,
    Region,
)
from uncanny.eval.artifacts.parameters import LoadParameters
from uncanny.eval.common.inputs.image_files import Entry, read_bytes, repeated_images
from uncanny.eval.common.inputs.problems import by_line, of_validation, parse_records
from uncanny.eval.common.inputs.table_files import rows
from uncanny.eval.common.inputs.table_records import data_set_files, record_tables
from uncanny.parameters import takes
from uncanny.records.annotation_table import TABLE, restore_lines
from uncanny.records.run_folder import RunFolder, check_recorded, unfinished
from uncanny.wording import shown

if TYPE_CHECKING:
    from pandas import DataFrame

PathLike = str | os.PathLike[str]
Records = Iterable[ArtifactRecord | Mapping[str, Any]]
Artifacts = Union[PathLike, ArtifactSet, Records, "DataFrame"]
T = TypeVar("T", bound=BaseModel)

_ANNOTATIONS = "annotations.jsonl"
_MASK_SUFFIXES = frozenset({".png", ".npy", ".bmp", ".tif", ".tiff", ".webp", ".jpg", ".jpeg"})
_REMEDY = "Correct these first."


@takes(LoadParameters)
def load(artifacts: Artifacts, parameters: LoadParameters) -> ArtifactSet:
    """All images of a truth or of predictions.

    A file or folder may be: `artifacts.jsonl`, or a run folder with one; verdicts of a detector (`image` with
    `source` or `score`) as JSON Lines, CSV or Parquet; `annotations.jsonl` or a run folder of annotations,
    whose boxes are taken with their kinds as categories; a file or folder of labelme; COCO instances; a
    folder of masks, by the names of their images, in folders named as categories where they have one; the
    word `scenes` for the bundled truth. In memory: records, dicts of the same keys, or a data frame of them.

    Raises ItemsError with everything that is wrong, UsageError for what cannot be read or holds no image.

    >>> import uncanny.artifacts
    >>> shadow = {"category": "physics", "box": [1, 1, 3, 3]}
    >>> uncanny.artifacts.load([{"image": "a.png", "regions": [shadow]}])
    <1 images of the records>
    """
    if isinstance(artifacts, ArtifactSet):
        return artifacts
    root = None if parameters.root is None else Path(parameters.root)
    reader = _Reader(root, parameters.heat_map_threshold if parameters.heat_maps else None)
    if isinstance(artifacts, str | os.PathLike):
        return reader.path(artifacts)
    return reader.memory(artifacts)


class _Reader:
    """Reads one set. `notes` counts allowances, `problems` is what is wrong."""

    def __init__(self, root: Path | None, heat: float | None) -> None:
        self.root, self.heat = root, heat
        self.notes: Counter[str] = Counter()
        self.problems: list[Problem] = []

    def path(self, name: PathLike) -> ArtifactSet:
        path = Path(name)
        if (bundled := bundled_set(os.fspath(name))) is not None:
            return _scenes(bundled)
        if path.is_dir():
            return self._set(self._folder(path), str(path), self._pictures(path))
        if not path.is_file():
            raise UsageError(f"{path} does not exist", remedy="Pass a file, a folder or a run folder.")
        return self._set(self._file(path), str(path), self._pictures(path.parent))

    def memory(self, records: Records | DataFrame) -> ArtifactSet:
        if hasattr(records, "to_dict"):
            records = _of_frame(records)
        if not isinstance(records, Iterable) or isinstance(records, Mapping | bytes):
            raise UsageError(
                f"artifacts are a path or records, not {shown(records)}",
                remedy="Give a path, or a list of records.",
            )
        folder = self.root or Path()
        return self._set(self._records(records, folder), "the records", folder)

    def _records(self, records: Iterable[object], folder: Path) -> list[ArtifactImage]:
        return [
            ArtifactImage(record, folder, heat=self.heat)
            for number, each in enumerate(records)
            if (record := self._validated(each, f"record {number}")) is not None
        ]

    def _set(self, images: Sequence[ArtifactImage], origin: str, pictures: Path) -> ArtifactSet:
        self.problems += repeated_images(
            [Entry(each.image, None, each.line) for each in images], self.problems
        )
        if self.problems:
            raise ItemsError(origin, sorted(self.problems, key=by_line), remedy=_REMEDY)
        if not images:
            raise UsageError(f"{origin} contains no image", remedy="Give a file with one image per line.")
        notes = {note: count for note, count in self.notes.items() if count}
        folder = Path(origin) if Path(origin).is_dir() else Path(origin).parent
        is_run = (folder / "run.json").is_file()
        left = unfinished(folder, "images", len(images)) if is_run else None
        ids = {(image.record.model_extra or {}).get("prompts") for image in images}
        texts = tuple(sorted(each for each in ids if isinstance(each, str)))
        return ArtifactSet(tuple(images), origin, pictures, notes, left, texts)

    def _pictures(self, folder: Path) -> Path:
        """A run says where its images are."""
        if self.root is not None:
            return self.root
        if (folder / "run.json").is_file():
            manifest = RunFolder(folder).read_manifest()
            return folder / ((manifest and manifest.root) or "")
        return folder

    def _folder(self, path: Path) -> list[ArtifactImage]:
        if restore_lines(path).parent != path:
            return self._file(path / TABLE)  # in a folder that cannot be written
        for name in (RECORD_FILE, _ANNOTATIONS):
            if (path / name).is_file():
                RunFolder(path).check_links()
                return self._file(path / name)
        if (path / "run.json").is_file():
            check_recorded(path, RECORD_FILE)
        if data_set_files(path):
            return self._file(path)
        if documents := sorted(file for file in path.rglob("*.json") if not file.is_dir()):
            return [image for file in documents if (image := self._labelme(file, path)) is not None]
        # A file of records among its pictures, which are no masks.
        if len(lines := sorted(path.glob("*.jsonl"))) == 1:
            return self._file(lines[0])
        masks = sorted(file for file in path.rglob("*") if file.suffix.lower() in _MASK_SUFFIXES)
        if not masks and record_tables(path):
            return self._file(path)
        if not masks:
            raise UsageError(
                f"{path} contains neither records nor masks",
                remedy=f"Pass a folder with {RECORD_FILE}, labelme files or masks in it.",
            )
        return of_masks(masks, path, self.heat)

    def _file(self, path: Path) -> list[ArtifactImage]:
        if path.suffix.lower() == ".csv":
            return self._table(path)
        data = read_bytes(path)
        in_lines = path.suffix.lower() == ".jsonl" or record_tables(path)
        if not in_lines and (document := _document(data)) is not None:
            return self._document(document, path)
        # What a line holds says the first one: its keys are those of one format or the other.
        first = _document(data.splitlines()[0])
        if isinstance(first, dict) and _is_annotation(first):
            parsed = self._lines(path, data, AnnotatedImage)
            return [
                ArtifactImage(of_annotation(record, self.notes), path.parent, line) for line, record in parsed
            ]
        folder = self.root or path.parent
        return [
            ArtifactImage(record, folder, line, heat=self.heat)
            for line, record in self._lines(path, data, ArtifactRecord)
        ]

    def _lines(self, path: Path, data: bytes, model: type[T]) -> list[tuple[int, T]]:
        """The records of JSON Lines; of a run that goes on without the line being written, and of an image
        that was asked about again the last one."""
        records, problems = parse_records(path, model, root=self.root, named_by="image")
        if (path.parent / "run.json").is_file():
            if not data.endswith(b"\n"):
                unfinished = data.count(b"\n") + 1
                records = [each for each in records if each[0] != unfinished]
                problems = [each for each in problems if each.line != unfinished]
            records = list(
                {getattr(record, "image", line): (line, record) for line, record in records}.values()
            )
        self.problems += problems
        return records

    def _document(self, document: Any, path: Path) -> list[ArtifactImage]:
        if is_labelme(document):
            image = self._labelme(path, path.parent)
            return [] if image is None else [image]
        folder = self.root or path.parent
        if is_coco(document):
            records = of_coco(document, self.problems, self.notes)
            return [ArtifactImage(record, folder, heat=self.heat) for record in records]
        if isinstance(document, dict):
            document = [document]
        if not isinstance(document, list):
            raise UsageError(
                f"{path} contains {shown(document)}",
                remedy="Give JSON Lines, labelme, COCO instances, or a list of records.",
            )
        return self._records(document, folder)

    def _labelme(self, file: Path, folder: Path) -> ArtifactImage | None:
        name = file.relative_to(folder)
        if file.is_fifo():  # nothing may ever come out of it
            self.problems.append(Problem(str(name), None, "is a pipe, not a file"))
            return None
        document = _document(read_bytes(file))
        if not is_labelme(document):
            self.problems.append(Problem(str(name), None, "is not a labelme file: it has no list of shapes"))
            return None
        record = of_labelme(document, name, self.problems, self.notes)
        return None if record is None else ArtifactImage(record, self.root or file.parent, heat=self.heat)

    def _table(self, path: Path) -> list[ArtifactImage]:
        folder = self.root or path.parent
        images = []
        for number, row in enumerate(rows(path), start=2):
            record = self._validated(_cells(row), None, number)
            if record is not None:
                images.append(ArtifactImage(record, folder, number, heat=self.heat))
        return images

    def _validated(self, value: object, item: str | None, line: int | None = None) -> ArtifactRecord | None:
        if isinstance(value, ArtifactRecord):
            return value
        try:
            return ArtifactRecord.model_validate(value)
        except ValidationError as error:
            name = value.get("image") if isinstance(value, Mapping) else None
            self.problems += of_validation(error, item=name if isinstance(name, str) else item, line=line)
            return None


def _document(data: bytes) -> Any:
    """None if the text is not JSON."""
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        return None


def _cells(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row of a table as a record: empty cells are missing, and numbers are numbers."""
    return {
        key: _number(value) if isinstance(value, str) and key not in ("image", "generator") else value
        for key, value in row.items()
        if value is not None and value != "" and value == value
    }


def _number(text: str) -> str | float:
    try:
        return float(text)
    except ValueError:
        return text


def _of_frame(frame: Any) -> Iterator[dict[str, Any]]:
    for row in frame.to_dict("records"):
        yield {key: value for key, value in row.items() if not (isinstance(value, float) and value != value)}


def _scenes(name: str) -> ArtifactSet:
    """The bundled truth: scenes with an anomaly are generated, and the masks are what is wrong in them."""
    images = []
    for scene in pictures(name):
        regions = tuple(
            Region(category=anomaly.category, mask=str(anomaly.mask_path), note=anomaly.name)
            for anomaly in scene.anomalies
        )
        record = ArtifactRecord(
            image=scene.image,
            sha256=scene.sha256,
            width=scene.width,
            height=scene.height,
            source="generated" if scene.role == "anomalous" else "real",
            generator=scene.style if scene.role == "anomalous" else None,
            regions=regions,
        )
        images.append(ArtifactImage(record, DATA))
    return ArtifactSet(tuple(images), name, DATA, {})


def _is_annotation(record: Mapping[str, Any]) -> bool:
    """Whether it is of a run that finds anomalies: its regions, if any, say why they were looked at."""
    regions = record.get("regions")
    enlarged = (
        isinstance(regions, list)
        and regions
        and all(isinstance(each, dict) and "why" in each for each in regions)
    )
    return "anomalies" in record and ("regions" not in record or bool(enlarged))
