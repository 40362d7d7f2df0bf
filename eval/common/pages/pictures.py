"""Pictures on pages: thumbnails for the overview, and what the viewer shows when one of them is opened.

A page makes one `PageViews`, adds a `View` for everything that can be opened, and passes the `PageViews` to
its template as `page_views`; `page.html.j2` then brings data, dialog and script (`viewer.js`) along:

    views = PageViews(page, "link")
    shown = views.add([View(record.image, (Layer("image", shot),), anomaly_marks(record.anomalies), size)])
    write_rendered(environment, "mine.html.j2", page, page_views=views, shown=shown)

    {% from "viewer.html.j2" import picture %}    {{ picture(shown[0], "the kitchen") }}

A view has layers, pictures that lie over one another and are flipped by a key, and marks, which are drawn at
their boxes and listed beside the picture. Marks of several groups (two runs, predicted and true) are told
apart by colour and can be hidden by group. A page that makes its elements in a script calls `openViewer`.
The enlarged parts of a view come with the page, in a script element that is parsed when they are looked at.

Full-size pictures are linked, by a path from the page to the file, or embedded. Linked ones are shown by the
browser alone: where the file is gone the viewer says so and shows the largest copy in the page.
"""

from __future__ import annotations

import os
from base64 import b64decode, b64encode
from collections.abc import Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from io import BytesIO
from pathlib import Path
from typing import Any, Final, get_args
from urllib.parse import quote

from markupsafe import Markup
from pydantic import TypeAdapter, ValidationError

from uncanny.errors import UsageError
from uncanny.eval.common.parameters import PicturesMode as PicturesMode
from uncanny.files import dump_json
from uncanny.images.parts import parts_to_show
from uncanny.images.prepared import stored_size, thumbnail
from uncanny.images.row_files import row_of
from uncanny.schema import Annotation, Anomaly, Box, Region
from uncanny.wording import shown

PICTURES: Final[tuple[PicturesMode, ...]] = get_args(PicturesMode)

THUMBNAIL_SIDE = 320
PART_SIDE = 320
LARGE_SIDE = 900
# Above this side a picture is embedded reduced: the page has to open.
EMBEDDED_SIDE = 4096
EMBEDDED_BYTES = 200_000_000
_EMBEDDED_QUALITY = 90
_THREADS = 4
# Of one view; the others are shown from its larger copy.
_MOST_PARTS = 24
# What every browser shows. A link of another name would lead to a file that may be anything.
_SHOWN_BY_BROWSERS = frozenset({".png", ".jpg", ".jpeg", ".webp", ".gif", ".bmp", ".avif"})


# Rings of corners, x and y.
Outline = tuple[tuple[tuple[float, float], ...], ...]


@dataclass(frozen=True, slots=True)
class Shot:
    """A file to be shown; with `sha256` only if it has these bytes, and with "" never.

    So a page shows what was judged, and the records of a run from somebody else cannot bring just any file of
    this machine into it.
    """

    path: Path
    sha256: str | None = None


@dataclass(frozen=True, slots=True)
class Layer:
    """One picture of a view: a file, or `data`, a WebP made for the page, such as a difference.

    `drawn` says that the boxes are in the picture already, so that the viewer does not draw them. A file that
    is `passing`, as one in a temporary folder is, goes into the page.
    """

    name: str
    shot: Shot | None = None
    data: bytes | None = field(default=None, repr=False)
    drawn: bool = False
    passing: bool = False


@dataclass(frozen=True, slots=True)
class Mark:
    """Something said of a picture: `name` stands at the `box`, and beside the picture with `text`.

    `box` is in pixels of the image file as seen upright, None where the place is not known. `outline` are
    rings of corners within it, drawn in its place. `severity` is 0–100, 100 fully realistic. `group` is whose
    it is, where marks of several are shown together. A `dashed` box is of what was looked at, not found.
    """

    name: str
    box: tuple[float, float, float, float] | None = None
    severity: int | None = None
    text: str = ""
    group: str = ""
    outline: Outline = ()
    dashed: bool = False


@dataclass(frozen=True, slots=True)
class View:
    """What opens as one: the first of `layers` first. `size` is the width and height that boxes refer to,
    else that of the first layer's file as seen upright.

    Marks of the groups in `hidden` are drawn only when somebody asks for them. `groups` are in the order of
    their colours, so that a group without a mark keeps its own; else they come as the marks do.

    `parts` are boxes, in pixels of a first layer of the given `size`, whose enlarged parts the page holds
    while there is room: first the `n_parts` of each view that are seen without a click, then the others.
    """

    title: str
    layers: tuple[Layer, ...]
    marks: tuple[Mark, ...] = ()
    size: tuple[int, int] | None = None
    hidden: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    parts: tuple[Box, ...] = ()
    n_parts: int = 0


@dataclass(frozen=True, slots=True)
class Shown:
    """A view on the page: its `number`, and a thumbnail a layer as data URI, None where it cannot be read."""

    number: int
    thumbs: tuple[str | None, ...]


def record_view(
    record: Annotation,
    shot: Shot,
    unsure: Iterable[Anomaly] = (),
    *,
    parts: Sequence[Box] = (),
    n_parts: int = 0,
    over: Sequence[Layer] = (),
) -> View:
    """The view of an image with its anomalies; hidden at first are the boxes of findings that the model is
    `unsure` of, those of objects, and of the parts that it saw enlarged. Layers `over` it come after it."""
    found = {
        "unsure": anomaly_marks(unsure, "unsure"),
        "objects": tuple(
            Mark(each.name, each.box, None, each.description, "objects")
            for each in record.objects
            if each.box
        ),
        "regions": tuple(
            Mark(str(each.number), each.box, None, _looked_at(each), "regions", dashed=True)
            for each in record_regions(record)
        ),
    }
    hidden = {group: marks for group, marks in found.items() if marks}
    size = (record.width, record.height) if record.width and record.height else None
    marks = anomaly_marks(record.anomalies, "anomalies" if hidden else "")
    marks += tuple(mark for group in hidden.values() for mark in group)
    layers = (Layer("image", shot), *over)
    return View(record.image, layers, marks, size, tuple(hidden), parts=tuple(parts), n_parts=n_parts)


def record_regions(record: Annotation) -> tuple[Region, ...]:
    """The parts of the image that the model saw enlarged, as far as the record can be read; () for none."""
    listed = (record.model_extra or {}).get("regions")
    try:
        return _REGIONS.validate_python(listed or ())
    except ValidationError:
        return ()


_REGIONS: Final = TypeAdapter(tuple[Region, ...])


def _looked_at(region: Region) -> str:
    """What a part was chosen for, and how large it was seen."""
    why = {"finding": "around a finding", "object": "around objects", "tile": "a part of the whole image"}
    about = [why[region.why] + (f": {', '.join(region.objects)}" if region.objects else "")]
    if region.scale is not None:
        about.append(f"seen {f'{region.scale:.1f}'.removesuffix('.0')} times as large")
    return ", ".join(about)


def anomaly_marks(anomalies: Iterable[Anomaly], group: str = "") -> tuple[Mark, ...]:
    """The marks of anomalies, the least realistic first."""
    return tuple(
        Mark(each.name, each.box, each.rated_severity, each.phenomenon, group)
        for each in sorted(anomalies, key=lambda each: each.severity)
    )


class PageViews:
    """The views of one page, in the order in which next and previous lead through them.

    `copies` is how many bytes of larger copies a page with linked pictures holds besides its thumbnails, the
    first views first, for when the files are elsewhere.
    """

    def __init__(self, page: Path, pictures: PicturesMode = "link", *, copies: int = 0) -> None:
        if pictures not in PICTURES:
            raise UsageError(
                f"pictures is {shown(pictures)}", remedy=f"Give {' or '.join(map(repr, PICTURES))}."
            )
        self.pictures = pictures
        # Pictures that are neither linked nor embedded, as there was no more room.
        self.not_embedded = 0
        self._page = page
        # Bytes that are left for pictures in full size, and for others.
        self._room = {True: EMBEDDED_BYTES, False: copies}
        self._views: list[dict[str, Any]] = []
        self._copies: list[tuple[str, Markup]] = []

    def add(self, views: Sequence[View]) -> list[Shown]:
        """Make thumbnails, and links or copies. A picture that cannot be read is None, never an error."""
        layers = [layer for view in views for layer in view.layers]
        with ThreadPoolExecutor(_THREADS) as pool:
            thumbs = list(pool.map(_thumbnail, layers))
            links = [self._link(layer, thumb) for layer, thumb in zip(layers, thumbs, strict=True)]
            parts = self._add_parts(views, pool)
            copies = self._add_copies(layers, thumbs, links, pool)
        entries = [
            {
                "name": layer.name,
                "src": link,
                "copy": copies.get(number),
                "made": layer.data is not None,
                "drawn": layer.drawn,
            }
            for number, (layer, link) in enumerate(zip(layers, links, strict=True))
        ]
        added, at = [], 0
        for view, name in zip(views, parts, strict=True):
            end = at + len(view.layers)
            added.append(Shown(len(self._views), tuple(thumbs[at:end])))
            shape = _size(view, thumbs[at])
            self._views.append(_entry(view, entries[at:end], shape) | ({"parts": name} if name else {}))
            at = end
        return added

    @property
    def data(self) -> Markup:
        """For the script element `views`: a list in the order of `Shown.number`."""
        return page_json(self._views)

    @property
    def copies(self) -> Sequence[tuple[str, Markup]]:
        """Ids and contents of the script elements that hold data URIs, parsed when they are looked at."""
        return self._copies

    @property
    def image_sources(self) -> str:
        """What the page's policy lets it show."""
        return "data: 'self' file:" if self.pictures == "link" else "data:"

    def _link(self, layer: Layer, thumb: str | None) -> str | None:
        if self.pictures == "embed" or layer.shot is None or thumb is None or layer.passing:
            return None
        return relative_link(self._page, layer.shot.path)

    def _add_parts(self, views: Sequence[View], pool: ThreadPoolExecutor) -> list[str | None]:
        """The names of the lists of enlarged parts by view, None for a view without any."""
        lists: list[list[str | None]] = [[] for _ in views]
        # What is seen after a click, while there may be room.
        later: list[tuple[int, int, str]] = []
        waiting = 0
        cut = [number for number, view in enumerate(views) if view.parts]
        for start in range(0, len(cut), _THREADS):
            some = cut[start : start + _THREADS]
            if self._room[False] <= 0:
                break
            for number, made in zip(some, pool.map(_parts, [views[each] for each in some]), strict=True):
                lists[number] = [None] * len(made)
                for place, part in enumerate(made):
                    uri = _data_uri(part)
                    if uri is None:
                        continue
                    if place < views[number].n_parts:
                        self._put_part(lists[number], place, uri)
                    elif waiting + len(uri) <= self._room[False]:
                        waiting += len(uri)
                        later.append((number, place, uri))
        for number, place, uri in later:
            self._put_part(lists[number], place, uri)
        names: list[str | None] = []
        for number, uris in enumerate(lists):
            some_fit = any(uris)
            names.append(f"parts-{len(self._views) + number}" if some_fit else None)
            if some_fit:
                self._copies.append((f"parts-{len(self._views) + number}", page_json(uris)))
        return names

    def _put_part(self, uris: list[str | None], place: int, uri: str) -> None:
        if len(uri) <= self._room[False]:
            self._room[False] -= len(uri)
            uris[place] = uri

    def _add_copies(
        self,
        layers: Sequence[Layer],
        thumbs: Sequence[str | None],
        links: Sequence[str | None],
        pool: ThreadPoolExecutor,
    ) -> dict[int, str]:
        """The names of copies by layer: full sizes of what is not linked, large ones of the rest, each while
        there is room."""
        names: dict[int, str] = {}
        files = [
            (number, layer.shot, links[number] is None)
            for number, layer in enumerate(layers)
            if layer.shot is not None and thumbs[number] is not None
        ]
        # Some at a time, so that little is made which then has no room.
        for start in range(0, len(files), _THREADS):
            some = [
                (number, pool.submit(_copy, shot, full) if self._room[full] > 0 else None, full)
                for number, shot, full in files[start : start + _THREADS]
            ]
            for number, copy, full in some:
                uri = copy.result() if copy else None
                if uri is None or len(uri) > self._room[full]:
                    self.not_embedded += full
                    continue
                self._room[full] -= len(uri)
                names[number] = f"copy-{len(self._copies)}"
                self._copies.append((names[number], page_json(uri)))
        return names


def relative_link(page: Path, file: Path, suffixes: Collection[str] = _SHOWN_BY_BROWSERS) -> str | None:
    """The address of `file` for a page at `page`: relative, None for what browsers would not show, as a
    picture in a table's row, or a name with none of these `suffixes`, those of pictures unless given.

    On another drive of Windows no relative one exists, and it is absolute. Every byte of a name that means
    something in an address is escaped.
    """
    if file.suffix.lower() not in suffixes or row_of(file) is not None:
        return None
    # By name, not by resolving links: a browser takes `..` off the address, too.
    target, start = os.path.abspath(file), os.path.abspath(page.parent)  # noqa: PTH100
    try:
        relative = os.path.relpath(target, start)
    except ValueError:
        return Path(target).as_uri()
    return quote(os.fsencode(relative.replace(os.sep, "/")), safe="/")


def _thumbnail(layer: Layer) -> str | None:
    if layer.data is not None or layer.shot is None:
        return _data_uri(layer.data)
    return _data_uri(thumbnail(layer.shot.path, THUMBNAIL_SIDE, sha256=layer.shot.sha256))


def _parts(view: View) -> tuple[bytes | None, ...]:
    shot = view.layers[0].shot
    if shot is None or view.size is None:
        return ()
    return parts_to_show(shot.path, view.parts[:_MOST_PARTS], PART_SIDE, size=view.size, sha256=shot.sha256)


def _copy(shot: Shot, full: bool) -> str | None:
    side, quality = (EMBEDDED_SIDE, _EMBEDDED_QUALITY) if full else (LARGE_SIDE, 80)
    return _data_uri(thumbnail(shot.path, side, sha256=shot.sha256, quality=quality))


def _data_uri(webp: bytes | None) -> str | None:
    return None if webp is None else "data:image/webp;base64," + b64encode(webp).decode()


def _size(view: View, thumb: str | None) -> tuple[int, int] | None:
    """The size that boxes refer to: without it they would be drawn wrong on a small copy."""
    shot = view.layers[0].shot
    if view.size is not None or shot is None or thumb is None:
        return view.size
    size = stored_size(shot.path)
    from PIL import Image

    with Image.open(BytesIO(b64decode(thumb.partition(",")[2]))) as small:
        turned = size is not None and (size[0] > size[1]) != (small.width > small.height)
    return size[::-1] if size is not None and turned else size


def _entry(view: View, layers: Sequence[Mapping[str, Any]], size: tuple[int, int] | None) -> dict[str, Any]:
    width, height = size or (None, None)
    marks = [
        {key: value for key, value in asdict(mark).items() if value or key not in ("outline", "dashed")}
        for mark in view.marks
    ]
    shape = {"width": width, "height": height}
    lists = {"layers": list(layers), "marks": marks, "hidden": view.hidden, "groups": view.groups}
    return {"title": view.title, **shape, **lists}


# Only strings can hold these characters in JSON, so that escaping them never touches its syntax.
_ESCAPES = str.maketrans(
    {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}
)


def page_json(value: Any) -> Markup:
    """`value` as JSON for a `<script type="application/json">`."""
    return Markup(dump_json(value).decode().translate(_ESCAPES))
