"""An annotation, or one of its findings, to be looked at in a notebook: the picture with numbered boxes."""

from __future__ import annotations

import sys
from base64 import b64encode
from io import BytesIO
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Final

from markupsafe import Markup, escape
from PIL import Image

from uncanny.errors import UncannyError, UsageError
from uncanny.eval.common.inputs.runs import open_run
from uncanny.images.encode import png_bytes
from uncanny.images.overlay import draw_numbers
from uncanny.images.parts import around
from uncanny.images.prepared import shrunk
from uncanny.schema import Annotation, Anomaly, Box, Pictured, Place
from uncanny.wording import harmless, shown

if TYPE_CHECKING:
    from uncanny.schema import Picture

SIDE: Final = 900
# A part is cut out of a picture of that side.
_WHOLE_SIDE: Final = 4096
_PNG_SIDE: Final = 640
_PART_SIDE: Final = 480
_QUALITY: Final = 85


class FindingsPicture:
    """An annotation or an anomaly beside its picture; notebooks show it, and so do the records themselves.

    `image` is the picture where the record does not know it: a path, the bytes of a file, or a Pillow image.
    """

    def __init__(self, record: Pictured, image: Picture | None = None) -> None:
        if not isinstance(record, Annotation | Anomaly):
            raise UsageError(f"Only an annotation or an anomaly can be shown, not {shown(record)}")
        self._record: Annotation | Anomaly = record
        self._image = image
        if isinstance(record, Annotation):
            size = (record.width, record.height) if record.width and record.height else None
            known = record._origin.place
            self._place = known or Place(record.image, record.sha256, size)
            self._findings = dict(enumerate(record.anomalies, 1))
        else:
            self._place = record._origin.place or Place("", None, None)
            self._findings = {self._place.number or 1: record}

    def picture(self, side: int = SIDE) -> Image.Image:
        """The picture with the numbered boxes, at most `side` pixels long, or the part around an anomaly's.

        RGB. Raises UsageError where the picture is not known or cannot be read.
        """
        whole = isinstance(self._record, Annotation) or self._record.box is None
        opened = self._opened(side if whole else _WHOLE_SIDE)
        width, height = self._place.size or opened.size
        scale = opened.width / width, opened.height / height
        boxes = {
            number: box
            for number, each in self._findings.items()
            if each.box is not None and (box := _scaled(each.box, scale, opened.size)) is not None
        }
        if whole:
            opened.thumbnail((side, side))
            draw_numbers(opened, boxes)
            return opened
        for box in boxes.values():
            return _part(opened, box, *boxes, side=side)
        return opened

    def show(self) -> None:
        """Show it below the cell of a notebook; elsewhere in a viewer, while the findings are printed."""
        # Only where a shell of IPython runs in this process, it was imported already.
        ipython = sys.modules.get("IPython")
        if ipython is not None and ipython.get_ipython() is not None:
            self.picture()  # for its error
            ipython.display.display(self)
            return
        picture = self.picture()
        sys.stdout.write(f"{self}\n")
        picture.show(title=harmless(self._place.image))

    def __str__(self) -> str:
        if isinstance(self._record, Annotation):
            return str(self._record)
        return harmless(self._record.in_words())

    def _repr_html_(self) -> str:
        try:
            picture: Image.Image | None = self.picture()
            problem = ""
        except UncannyError as error:
            picture, problem = None, error.message
        record = self._record
        parts = []
        if isinstance(record, Annotation):
            parts.append(_paragraph(str(record).partition("\n")[0]))
        parts.append(_paragraph(problem) if picture is None else _embedded(picture, self._place.image))
        items = [_item(number, each) for number, each in self._findings.items()]
        if items:
            parts.append(Markup('<ol style="text-align:left">{}</ol>').format(Markup("").join(items)))
        if isinstance(record, Annotation):
            parts += [_paragraph(each.message) for each in record.errors]
        return str(Markup("<div>{}</div>").format(Markup("").join(parts)))

    def _repr_png_(self) -> bytes | None:
        try:
            return png_bytes(self.picture(_PNG_SIDE))
        except UncannyError:
            return None

    def _opened(self, side: int) -> Image.Image:
        place, image = self._place, self._image
        if isinstance(image, Image.Image):
            copy = image.convert("RGB")
            copy.thumbnail((side, side))
            return copy
        digest = place.sha256
        file: Path | bytes | None = place.file
        if isinstance(image, bytes | bytearray):
            file = bytes(image)
        elif isinstance(image, str | PathLike):
            file = Path(image)
        elif image is not None:
            raise UsageError(f"`image` is a path, bytes or a Pillow image, not {shown(image)}")
        elif place.run is not None:
            read = open_run(place.run)
            file = read.picture(place.image)
            # A record from elsewhere could bring any file of this machine into a notebook.
            digest = place.sha256 or ("" if read.is_run else None)
        if file is None:
            raise UsageError(
                "uncanny does not know where the image file is",
                remedy="Give its path, as in record.show(image='photos/a.png').",
            )
        picture = None if digest == "" else shrunk(file, side, sha256=digest)
        if picture is None:
            raise UsageError(
                f"The picture {shown(place.image)} cannot be shown: its file cannot be read, or is not the "
                "one that was annotated",
                remedy="Put it back, or give it, as in record.show(image='photos/a.png').",
            )
        return picture.convert("RGB")


def _scaled(
    box: Box, scale: tuple[float, float], size: tuple[int, int]
) -> tuple[float, float, float, float] | None:
    """A box in pixels of the picture that is drawn on; None where none of it is within."""
    x0, y0 = box[0] * scale[0], box[1] * scale[1]
    x1, y1 = min(box[2] * scale[0], size[0]), min(box[3] * scale[1], size[1])
    return (x0, y0, x1, y1) if x0 < x1 and y0 < y1 else None


def _part(
    picture: Image.Image, box: tuple[float, float, float, float], number: int, *, side: int
) -> Image.Image:
    """What is around the box, with the box drawn, at a size to be looked at."""
    x0, y0, x1, y1 = box
    cut = around(box, picture.size)
    left, top = cut[:2]
    part = picture.crop(cut)
    scale = min(max(_PART_SIDE, min(side, max(part.size))) / max(part.size), 4)
    part = part.resize((max(1, round(part.width * scale)), max(1, round(part.height * scale))))
    moved = ((x0 - left) * scale, (y0 - top) * scale, (x1 - left) * scale, (y1 - top) * scale)
    draw_numbers(part, {number: moved})
    return part


def _embedded(picture: Image.Image, name: str) -> Markup:
    file = BytesIO()
    picture.save(file, "WEBP", quality=_QUALITY)
    return Markup('<img src="data:image/webp;base64,{}" alt="{}" style="max-width:100%;height:auto">').format(
        b64encode(file.getvalue()).decode(), harmless(name)
    )


def _paragraph(text: str) -> Markup:
    return Markup("<p>{}</p>").format(harmless(text))


def _item(number: int, finding: Anomaly) -> Markup:
    about = [f"realism {finding.severity} of 100"] if finding.severity_rated else []
    about += [finding.kind] if finding.kind else []
    if likely := finding.how_likely():
        about.append(likely)
    if finding.box is None:
        about.append("no box")
    return Markup('<li value="{}"><b>{}</b> ({})<br>{}<br><small>{}</small></li>').format(
        number,
        *map(escape, map(harmless, (finding.name, ", ".join(about), finding.phenomenon, finding.reasoning))),
    )
