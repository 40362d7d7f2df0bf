"""COCO: images, boxes and categories in `annotations.json`, what has no box in `without_boxes.jsonl`.

Categories are the kinds of anomalies, and `anomaly` for those of no known kind. What COCO has no key for
stands in `attributes`, where CVAT, FiftyOne and others look for it. `segmentation` is empty: a box is no
outline.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, Final

import orjson

from uncanny.errors import UsageError
from uncanny.exports.data import ExportImage, attributes_of, clipped_box
from uncanny.exports.returned import (
    LABELS,
    NO_KIND,
    Returned,
    Size,
    box_around,
    json_object,
    known_object,
    objects,
    text_or_none,
    whole,
)
from uncanny.exports.writer import FormatWriter
from uncanny.files import dump_json, read_file

FILE: Final = "annotations.json"
SIDECAR: Final = "without_boxes.jsonl"


class CocoWriter(FormatWriter):
    """Annotations wait in a file of their own until all images are written: nothing grows in memory."""

    def start(self) -> None:
        self._file, self._sidecar = self.open(self.target / FILE), self.open(self.target / SIDECAR)
        self._waiting = self.job.files.enter_context(TemporaryFile(dir=self.target))  # noqa: SIM115
        self._images = self._boxes = 0
        about = "Semantic anomalies, written by uncanny export"
        info = dump_json({"description": about, "rule": self.job.parameters.rule._asdict()})
        self._file.write(b'{"info":' + info + b",\n")
        self._file.write(b'"licenses":[],\n"images":[')

    def add(self, image: ExportImage) -> None:
        record = image.record
        self._images += 1
        entry = {
            "id": self._images,
            "file_name": self.reference(image),
            "width": record.width,
            "height": record.height,
            **image.identity(),
        }
        self._file.write((b"\n" if self._images == 1 else b",\n") + dump_json(entry))
        for each in image.anomalies:
            box, attributes = clipped_box(each, record), attributes_of(each)
            if box is None:
                line = {"image_id": self._images, "file_name": entry["file_name"], "attributes": attributes}
                line |= {"run_image": record.image, "sha256": record.sha256}
                self._sidecar.write(dump_json(line) + b"\n")
                self.note(f"without a box, in {SIDECAR}")
                continue
            self._boxes += 1
            width, height = box[2] - box[0], box[3] - box[1]
            annotation = {
                "id": self._boxes,
                "image_id": self._images,
                "category_id": 1 + LABELS.index(each.anomaly.kind or NO_KIND),
                "bbox": [box[0], box[1], width, height],
                "area": width * height,
                "iscrowd": 0,
                "segmentation": [],
                "attributes": attributes,
            }
            self._waiting.write((b"\n" if self._boxes == 1 else b",\n") + dump_json(annotation))

    def finish(self) -> None:
        self._file.write(b'],\n"annotations":[')
        self._waiting.seek(0)
        shutil.copyfileobj(self._waiting, self._file)
        categories = [
            {"id": number, "name": name, "supercategory": NO_KIND} for number, name in enumerate(LABELS, 1)
        ]
        self._file.write(b'],\n"categories":' + dump_json(categories) + b"}\n")


def read(file: Path) -> Iterator[Returned]:
    """Boxes of a COCO file, with what its sidecar has where it lies beside it. Raises UsageError, OSError."""
    content = json_object(file)
    images = {str(each.get("id")): each for each in objects(content, "images", file)}
    categories = {str(each.get("id")): each.get("name") for each in objects(content, "categories", file)}
    lines = [(each, True) for each in objects(content, "annotations", file)]
    sidecar = file.with_name(SIDECAR)
    if sidecar.is_file():
        lines += [(line, False) for line in _sidecar(sidecar)]
    for number, (annotation, boxed) in enumerate(lines):
        where = f"annotation {annotation.get('id', number)}"
        image = images.get(str(annotation.get("image_id")), {})
        name = image.get("run_image") or image.get("file_name")
        if not isinstance(name, str):
            raise UsageError(f"{file}, {where}: its image is not in the file", remedy="Export it again.")
        size = (whole(image.get("width")), whole(image.get("height")))
        fields: dict[str, Any] = {}
        if boxed:
            fields["box"] = _box(annotation.get("bbox"), size, f"{file}, {where}")
            category = categories.get(str(annotation.get("category_id")))
            fields |= {"kind": category} if category in LABELS else {}
        picture = name, text_or_none(image.get("sha256")), size
        yield Returned.of(picture, where, known_object(annotation.get("attributes")), fields)


def _box(bbox: object, size: Size, where: str) -> tuple[int, int, int, int]:
    match bbox:
        case [
            int() | float() as x,
            int() | float() as y,
            int() | float() as width,
            int() | float() as height,
        ]:
            return box_around([(x, y), (x + width, y + height)], size, where)
        case _:
            raise UsageError(f"{where}: has no bbox of four numbers", remedy="Export it again.")


def _sidecar(file: Path) -> list[dict[str, Any]]:
    try:
        lines = [orjson.loads(line) for line in read_file(file).splitlines() if line.strip()]
    except orjson.JSONDecodeError as error:
        raise UsageError(f"{file} is not valid JSON: {error}", remedy="Export it again.") from error
    return objects({SIDECAR: lines}, SIDECAR, file)
