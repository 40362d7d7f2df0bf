"""CVAT for images 1.1: boxes with attributes, and a tag of the image for each finding without a box.

XML 1.0 has no way to write most control characters: they become U+FFFD. What comes back is read by the parser
of the standard library, which fetches nothing; a file with a document type is refused before it is parsed.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final
from xml.sax.saxutils import escape as escape_xml

from uncanny.errors import UsageError
from uncanny.exports.data import ExportImage, attributes_of, clipped_box
from uncanny.exports.returned import (
    LABELS,
    NO_KIND,
    TEXTS,
    Returned,
    Size,
    box_around,
    returned_anomaly,
    turned,
)
from uncanny.exports.writer import FormatWriter
from uncanny.files import open_file
from uncanny.records.reviews import DECISIONS

_NOT_XML: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_UNDECIDED: Final = "unreviewed"
_DIGEST: Final = "image_sha256"
# Attributes with what CVAT lets people enter; the last four lead back to the finding of the run.
_ATTRIBUTES: Final = {
    "name": ("text", ""),
    "phenomenon": ("text", ""),
    "reasoning": ("text", ""),
    "severity": ("number", "0;100;1"),
    "confidence": ("text", ""),
    "probability": ("text", ""),
    "objects": ("text", ""),
    "decision": ("select", "\n".join((_UNDECIDED, *DECISIONS))),
    "index": ("text", ""),
    "text_sha256": ("text", ""),
    _DIGEST: ("text", ""),
    "run_image": ("text", ""),
}


def in_xml(text: str) -> str:
    """The text with U+FFFD for what no XML can hold."""
    return _NOT_XML.sub("\ufffd", text)


def escape(text: str) -> str:
    """Text for an element or a double-quoted attribute; line breaks survive both."""
    return escape_xml(in_xml(text), {'"': "&quot;", "\n": "&#10;", "\r": "&#13;", "\t": "&#9;"})


class CvatWriter(FormatWriter):
    """One XML file, an image after the other.

    CVAT knows images by their names in the task: those of the files in `images` beside it, where pictures are
    copied, or else the run's own, without what leads out of a folder.
    """

    def start(self) -> None:
        self._file = self.open(mode="w", encoding="utf-8", newline="\n")
        self._images = 0
        labels = "".join(map(_label, LABELS))
        self._file.write(
            '<?xml version="1.0" encoding="utf-8"?>\n<annotations>\n<version>1.1</version>\n<meta><task>'
            f"<name>uncanny</name><mode>annotation</mode><labels>\n{labels}</labels></task></meta>\n"
        )

    def add(self, image: ExportImage) -> None:
        record = image.record
        size = "" if record.width is None else f' width="{record.width}" height="{record.height}"'
        name = escape(self.job.upload_name(image))
        lines = [f'<image id="{self._images}" name="{name}"{size}>']
        self._images += 1
        for each in image.anomalies:
            box = clipped_box(each, record)
            label = each.anomaly.kind or NO_KIND
            values: dict[str, Any] = dict.fromkeys(_ATTRIBUTES, "") | {"decision": _UNDECIDED}
            values |= {name: value for name, value in attributes_of(each).items() if value is not None}
            values |= {_DIGEST: record.sha256 or "", "run_image": record.image}
            about = "".join(
                f'<attribute name="{name}">{escape(_given(values[name]))}</attribute>' for name in _ATTRIBUTES
            )
            if box is None:
                self.note("without a box, as tags")
                lines.append(f'<tag label="{label}" source="auto">{about}</tag>')
            else:
                corners = 'xtl="{}.00" ytl="{}.00" xbr="{}.00" ybr="{}.00"'.format(*box)
                lines.append(
                    f'<box label="{label}" source="auto" occluded="0" {corners} z_order="0">{about}</box>'
                )
        self._file.write("\n".join([*lines, "</image>\n"]))

    def finish(self) -> None:
        self._file.write("</annotations>\n")


def _given(value: object) -> str:
    return "; ".join(value) if isinstance(value, list) else str(value)


def _label(name: str) -> str:
    attributes = "".join(
        f"<attribute><name>{attribute}</name><mutable>False</mutable><input_type>{kind}</input_type>"
        f"<default_value>{values.partition(chr(10))[0] if kind == 'select' else ''}</default_value>"
        f"<values>{escape_xml(values)}</values></attribute>"
        for attribute, (kind, values) in _ATTRIBUTES.items()
    )
    return f"<label><name>{name}</name><attributes>{attributes}</attributes></label>\n"


def read(file: Path) -> Iterator[Returned]:
    """Boxes and tags of such a file; of other shapes what is around them. Raises UsageError, OSError."""
    _refuse_doctype(file)
    root: ET.Element | None = None
    try:
        for event, element in ET.iterparse(file, ("start", "end")):
            if root is None:
                root = element
                if root.tag != "annotations":
                    raise UsageError(
                        f"{file} is not a CVAT annotation file: it begins with <{root.tag}>",
                        remedy="Export it as CVAT for images 1.1.",
                    )
            if element.tag == "track":
                raise UsageError(
                    f"{file} is of a video: it has tracks in place of images",
                    remedy="Export it as CVAT for images 1.1.",
                )
            if event == "end" and element.tag == "image":
                yield from _of_image(element, file)
                root.clear()
    except (ET.ParseError, LookupError, ValueError) as error:  # the latter two of encodings
        raise UsageError(f"{file} is not valid XML: {error}", remedy="Export it again.") from error


def _refuse_doctype(file: Path) -> None:
    """Entities are what makes a small XML file a large one; CVAT writes none."""
    before = b""
    with open_file(file) as content:
        while block := content.read(2**20):
            if b"<!DOCTYPE" in before + block or b"<\0!\0D\0" in before + block or b"\0<\0!\0D" in block:
                raise UsageError(
                    f"{file} has a document type, which CVAT never writes", remedy="Export it again."
                )
            before = block[-16:]


def _of_image(image: ET.Element, file: Path) -> Iterator[Returned]:
    size = _whole(image.get("width")), _whole(image.get("height"))
    shapes = [
        (shape, {each.get("name"): each.text or "" for each in shape.iter("attribute")}) for shape in image
    ]
    # What was drawn in CVAT has no such attributes, and is in the same picture.
    name = next((each["run_image"] for _, each in shapes if each.get("run_image")), image.get("name"))
    sha256 = next((each[_DIGEST] for _, each in shapes if each.get(_DIGEST)), None)
    for number, (shape, attributes) in enumerate(shapes):
        where = f"{shape.tag} {number} of {name}"
        if not name:
            raise UsageError(f"{file}, {where}: the image has no name", remedy="Export it again.")
        fields: dict[str, Any] = {key: attributes[key] for key in TEXTS if attributes.get(key)}
        fields["objects"] = tuple(filter(None, attributes.get("objects", "").split("; ")))
        if severity := attributes.get("severity"):
            whole = _whole(severity)
            fields["severity"] = severity if whole is None else whole
        if shape.get("label") in LABELS:
            fields["kind"] = shape.get("label")
        if shape.tag != "tag":
            fields["box"] = _box(shape, size, f"{file}, {where}")
        decision = attributes.get("decision")
        yield Returned(
            image=name,
            sha256=sha256,
            size=size,
            where=where,
            index=_whole(attributes.get("index")),
            text_sha256=attributes.get("text_sha256") or None,
            decision=None if decision in (_UNDECIDED, "") else decision,
            anomaly=returned_anomaly(fields),
        )


def _box(shape: ET.Element, size: Size, where: str) -> tuple[int, int, int, int]:
    """What is around a shape; boxes and ellipses may be turned around their middle."""

    def numbers(*keys: str) -> list[float]:
        return [float(shape.get(key) or "") for key in keys]

    try:
        match shape.tag:
            case "box":
                x0, y0, x1, y1 = numbers("xtl", "ytl", "xbr", "ybr")
            case "ellipse":
                x, y, rx, ry = numbers("cx", "cy", "rx", "ry")
                x0, y0, x1, y1 = x - rx, y - ry, x + rx, y + ry
            case "mask":
                x0, y0, width, height = numbers("left", "top", "width", "height")
                x1, y1 = x0 + width, y0 + height
            case "polygon" | "polyline" | "points":
                pairs = [
                    tuple(map(float, each.split(","))) for each in (shape.get("points") or "").split(";")
                ]
                return box_around(pairs, size, where)
            case _:
                raise UsageError(f"{where}: a box cannot be put around this shape", remedy="Draw a box.")
        corners = [(x0, y0), (x1, y0), (x0, y1), (x1, y1)]
        degrees = float(shape.get("rotation") or 0)
        corners = turned(corners, degrees, ((x0 + x1) / 2, (y0 + y1) / 2))
    except ValueError as error:
        raise UsageError(f"{where}: has no corners that are numbers", remedy="Draw it again.") from error
    return box_around(corners, size, where)


def _whole(value: str | None) -> int | None:
    try:
        number = float(value or "")
        return int(number) if number == int(number) else None
    except (ValueError, OverflowError):
        return None
