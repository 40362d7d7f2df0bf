"""Plots inside a page, drawn with matplotlib: one for wide screens, one for phones, in the page's colours.

The SVG that matplotlib writes is made to belong to the page. The page forbids style attributes: styles become
presentation attributes. Colours are drawn as stand-ins and become the page's variables: a plot follows
light and dark. Text takes the page's font; ids become unique. matplotlib takes a second to import: it is
imported when something is drawn.
"""

from __future__ import annotations

import logging
import re
import threading
import unicodedata
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from io import StringIO
from typing import TYPE_CHECKING, Any, Literal
from xml.etree import ElementTree

from markupsafe import Markup

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


# Draws on an empty figure and gives tooltips by gid.
Draw = Callable[["Figure"], Mapping[str, str]]
# Width and height in CSS pixels.
Size = tuple[float, float]
WIDE, NARROW = 1140.0, 340.0
_POINTS_PER_INCH = 72
# matplotlib has its settings once for the whole process.
_DRAWING = threading.Lock()


def plot(draw: Draw, size: Size, *, key: str, title: str, words: str) -> Markup:
    """What `draw` draws, as an `<svg>` of `size`; the same call gives the same bytes.

    `key` has to be unique in the page and is part of ids. `words` says what the plot shows, for those who
    don't see it. Raises `ValueError` for a colour that is not from `colour`.
    """
    with _matplotlib():
        from matplotlib.figure import Figure

        width, height = size
        figure = Figure(figsize=(width / _POINTS_PER_INCH, height / _POINTS_PER_INCH), dpi=_POINTS_PER_INCH)
        tips = draw(figure)
        out = StringIO()
        figure.savefig(out, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    return themed(out.getvalue(), key=key, title=title, words=words, tips=tips)


def plot_twice(draw: Draw, wide: Size, narrow: Size, *, key: str, title: str, words: str) -> Markup:
    """The same plot for wide screens and for phones; the page's style shows one of them."""
    return Markup('<div class="drawn for-wide">{}</div><div class="drawn for-narrow">{}</div>').format(
        plot(draw, wide, key=f"{key}-w", title=title, words=words),
        plot(draw, narrow, key=f"{key}-n", title=title, words=words),
    )


def plain_label(text: str, most: int) -> str:
    """`text` on one line and at most `most` characters, without what no XML can hold."""
    printable = "".join(
        " " if character.isspace() else character
        for character in text
        if character.isspace() or unicodedata.category(character) not in ("Cc", "Cs", "Cn", "Co")
    )
    one_line = " ".join(printable.split())
    return one_line if len(one_line) <= most else one_line[: most - 1].rstrip() + "…"


def pixel_axes(figure: Figure, left: float, top: float, width: float, height: float) -> Axes:
    """Axes that take up this many pixels, measured from the upper left corner of the figure."""
    across, down = figure.get_size_inches() * _POINTS_PER_INCH
    return figure.add_axes((left / across, 1 - (top + height) / down, width / across, height / down))


def bare_axes(axes: Axes, *, grid: Literal["x", "y", "both"] | None = None) -> Axes:
    """Axes with as little ink as reads well: no frame, and lines across `grid`."""
    for spine in axes.spines.values():
        spine.set_visible(False)
    axes.tick_params(length=0, pad=5)
    axes.set_axisbelow(True)
    if grid is not None:
        axes.grid(visible=True, axis=grid)
    return axes


@contextmanager
def _matplotlib() -> Iterator[None]:
    """Settings of ours alone, whatever a matplotlibrc says, and no word about fonts at the terminal.

    One drawing at a time: of two, one would take the settings of the other for those of the host, and put
    them back for good.
    """
    with _DRAWING:
        log = logging.getLogger("matplotlib")
        level = log.level
        log.setLevel(logging.ERROR)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                import matplotlib

                with matplotlib.rc_context():
                    matplotlib.rcdefaults()
                    matplotlib.rcParams.update(_settings())
                    yield
        finally:
            log.setLevel(level)


def _settings() -> dict[Any, Any]:
    from cycler import cycler

    colours = {
        "soft": ("axes.labelcolor", "xtick.color", "ytick.color"),
        "ink": ("text.color", "lines.color", "patch.edgecolor", "axes.titlecolor"),
        "line": ("grid.color",),
        "edge": ("axes.edgecolor",),
    }
    return {
        **{name: colour(own) for own, names in colours.items() for name in names},
        # Text stays text: it can be searched, read out, and follows the page's font.
        "svg.fonttype": "none",
        # Ids in the file come from this and the content, not from chance.
        "svg.hashsalt": "uncanny",
        "text.parse_math": False,
        "axes.prop_cycle": cycler(color=[colour(f"a{place}") for place in range(6)]),
        "axes.formatter.use_mathtext": False,
        "font.size": 12.0,
        "axes.labelsize": 12.0,
        "xtick.labelsize": 11.5,
        "ytick.labelsize": 11.5,
        "axes.titlesize": 12.5,
        "axes.titleweight": "bold",
        "grid.linewidth": 1.0,
        "lines.solid_capstyle": "butt",
        "patch.linewidth": 0.0,
    }


# The variables of run.css that a plot may use.
COLOURS = (
    *("bg", "panel", "ink", "soft", "line", "edge", "fill", "accent", "good", "warn", "bad"),
    *("s0", "s1", "s2", "s3", "s4", "a0", "a1", "a2", "a3", "a4", "a5"),
)
_STAND_INS = {name: f"#fe{place:02x}ef" for place, name in enumerate(COLOURS)}
_VARIABLES = {stand_in: f"var(--{name})" for name, stand_in in _STAND_INS.items()} | {"none": "none"}
_PAINTS = ("fill", "stroke")
# Text takes the page's font.
_DROPPED = ("font-family",)
_SVG, _XLINK = "{http://www.w3.org/2000/svg}", "{http://www.w3.org/1999/xlink}"
_REFERENCE = re.compile(r"url\(#([^)]+)\)")


def colour(name: str) -> str:
    """What to give matplotlib for the variable `name` of the page's style. Raises `KeyError` for another."""
    return _STAND_INS[name]


def themed(source: str, *, key: str, title: str, words: str, tips: Mapping[str, str]) -> Markup:
    """`source` as an element for the page.

    `key` makes its ids unique in the page. `title` and `words` are what those hear who don't see it. `tips`
    are tooltips by the gid of what is drawn. Raises `ValueError` for a colour that no theme knows.
    """
    root = ElementTree.fromstring(source)
    for parent in root.iter():
        for child in list(parent):
            if child.tag in (f"{_SVG}metadata", f"{_SVG}style"):
                parent.remove(child)
    _unstyle(root)
    _tips(root, tips)
    _rename(root, key)
    _label(root, key, title, words)
    for element in root.iter():
        element.tag = element.tag.removeprefix(_SVG)
        _tidy(element)
    return Markup(ElementTree.tostring(root, encoding="unicode"))


def _unstyle(root: ElementTree.Element) -> None:
    for element in root.iter():
        for declaration in filter(None, element.attrib.pop("style", "").split(";")):
            name, _, value = (part.strip() for part in declaration.partition(":"))
            if name not in _DROPPED:
                element.set(name, value)
        for paint in _PAINTS:
            drawn = element.get(paint)
            if drawn is not None and drawn not in _VARIABLES:
                raise ValueError(f"{drawn!r} is not a color of the page; use colour()")
            if drawn is not None:
                element.set(paint, _VARIABLES[drawn])


def _tips(root: ElementTree.Element, tips: Mapping[str, str]) -> None:
    for element in root.iter():
        if (words := tips.get(element.get("id", ""))) is not None:
            tip = ElementTree.Element(f"{_SVG}title")
            tip.text = words
            element.insert(0, tip)


def _rename(root: ElementTree.Element, key: str) -> None:
    """References get the page's own ids; ids that nothing refers to go."""
    names: dict[str, str] = {}

    def new(name: str) -> str:
        return names.setdefault(name, f"{key}-{len(names)}")

    for element in root.iter():
        if (link := element.attrib.pop(f"{_XLINK}href", None)) is not None:
            element.set("href", "#" + new(link.removeprefix("#")))
        for name, value in element.items():
            if (reference := _REFERENCE.fullmatch(value)) is not None:
                element.set(name, f"url(#{new(reference[1])})")
    for element in root.iter():
        if (old := element.attrib.pop("id", None)) in names:
            element.set("id", names[old])


def _tidy(element: ElementTree.Element) -> None:
    if not (element.text or "").strip():
        element.text = None
    element.tail = None
    if "d" in element.attrib:
        element.set("d", " ".join(element.attrib["d"].split()))
    if element.get("transform", "").startswith("rotate(-0 "):
        del element.attrib["transform"]


def _label(root: ElementTree.Element, key: str, title: str, words: str) -> None:
    for place, (tag, text) in enumerate((("title", title), ("desc", words))):
        element = ElementTree.Element(f"{_SVG}{tag}", {"id": f"{key}-{tag}"})
        element.text = text
        root.insert(place, element)
    _, _, width, height = root.attrib["viewBox"].split()
    root.attrib.clear()
    root.attrib |= {
        "viewBox": f"0 0 {width} {height}",
        "width": width,
        "height": height,
        "role": "img",
        "aria-labelledby": f"{key}-title",
        "aria-describedby": f"{key}-desc",
        "stroke-linejoin": "round",
    }
