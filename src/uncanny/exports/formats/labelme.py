"""labelme: a JSON file an image, each box a rectangle whose flags are the verdicts.

What labelme has no key for stands under `uncanny`, in a shape and, for findings without a box, in the file:
labelme keeps keys that it does not know when it saves.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from math import hypot
from pathlib import Path
from typing import Any, Final

from uncanny.errors import UsageError
from uncanny.exports.data import ExportImage, attributes_of, clipped_box
from uncanny.exports.returned import (
    LABELS,
    NO_KIND,
    Returned,
    box_around,
    json_object,
    known_object,
    objects,
    text_or_none,
    whole,
)
from uncanny.exports.writer import FormatWriter
from uncanny.files import dump_json
from uncanny.records.reviews import DECISIONS

VERSION: Final = "5.5.0"
KEY: Final = "uncanny"
_LONGEST_BYTES: Final = 120


class LabelmeWriter(FormatWriter):
    """Files are named after the images and, since two may be called the same, their digests."""

    def start(self) -> None:
        self._used: set[str] = set()
        (self.target / "labels.txt").write_text("\n".join(LABELS) + "\n")
        # `labelme --labels labels.txt --flags … --labelflags flags.yaml` offers the verdicts.
        (self.target / "flags.yaml").write_text(f".*: [{', '.join(DECISIONS)}]\n")

    def add(self, image: ExportImage) -> None:
        record = image.record
        shapes, others = [], []
        for each in image.anomalies:
            box, attributes = clipped_box(each, record), attributes_of(each)
            if box is None:
                others.append(attributes)
                self.note(f"without a box, under {KEY}")
                continue
            shapes.append(
                {
                    "label": each.anomaly.kind or NO_KIND,
                    "points": [[float(box[0]), float(box[1])], [float(box[2]), float(box[3])]],
                    "group_id": None,
                    "description": f"{each.anomaly.name}: {each.anomaly.phenomenon}",
                    "shape_type": "rectangle",
                    "flags": {decision: each.decision == decision for decision in DECISIONS},
                    "mask": None,
                    KEY: attributes,
                }
            )
        content = {
            "version": VERSION,
            "flags": {},
            "shapes": shapes,
            "imagePath": self.reference(image),
            "imageData": None,
            "imageHeight": record.height,
            "imageWidth": record.width,
            KEY: {**image.identity(), "without_box": others},
        }
        file = self.target / f"{self._file_name(image)}.json"
        file.write_bytes(dump_json(content, indent=True))

    def _file_name(self, image: ExportImage) -> str:
        stem = _for_a_file(Path(image.record.image).stem) or "image"
        name = wanted = f"{stem}-{_for_a_file(image.record.sha256 or '')[:8]}".rstrip("-")
        number = 1
        while name.casefold() in self._used:
            number += 1
            name = f"{wanted}-{number}"
        self._used.add(name.casefold())
        return name


def _for_a_file(name: str) -> str:
    """What of a name any system takes within a file's name."""
    plain = re.sub(r"[^\w.-]+", "_", name).strip("._")
    return plain.encode()[:_LONGEST_BYTES].decode(errors="ignore")


def read(file: Path) -> Iterator[Returned]:
    """Shapes of one labelme file; of other shapes than rectangles what is around them. Raises UsageError."""
    content = json_object(file)
    about = known_object(content.get(KEY))
    name = about.get("run_image") or content.get("imagePath")
    if not isinstance(name, str):
        raise UsageError(f"{file} names no image", remedy="Give a file that labelme has saved.")
    size = (whole(content.get("imageWidth")), whole(content.get("imageHeight")))
    picture = name, text_or_none(about.get("sha256")), size
    for number, shape in enumerate(objects(content, "shapes", file)):
        where = f"shape {number}"
        flags = known_object(shape.get("flags"))
        decisions = [each for each in DECISIONS if flags.get(each) is True]
        fields: dict[str, Any] = {"box": box_around(_outline(shape), size, f"{file}, {where}")}
        if (label := shape.get("label")) in LABELS:
            fields["kind"] = label
        decision = decisions[0] if len(decisions) == 1 else None
        yield Returned.of(picture, where, known_object(shape.get(KEY)), fields, decision=decision)
    others = about.get("without_box")
    for number, attributes in enumerate(others if isinstance(others, list) else ()):
        if isinstance(attributes, dict):
            yield Returned.of(picture, f"finding {number} without a box", attributes, {})


def _outline(shape: Mapping[str, Any]) -> object:
    """Points that the shape reaches to.

    labelme has a circle as its centre and a point on it, a mask as its first and last pixel.
    """
    match shape.get("shape_type"), shape.get("points"):
        case "circle", [
            [int() | float() as x, int() | float() as y],
            [int() | float() as u, int() | float() as v],
        ]:
            radius = hypot(u - x, v - y)
            return [(x - radius, y - radius), (x + radius, y + radius)]
        case "mask", [
            [int() | float() as x, int() | float() as y],
            [int() | float() as u, int() | float() as v],
        ]:
            return [(x // 1, y // 1), (u // 1 + 1, v // 1 + 1)]
        case _, points:
            return points
