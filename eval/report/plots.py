"""Plots inside a page, drawn with matplotlib: one for wide screens, one for phones, in the page's colours.

matplotlib takes a second to import, so that it is imported when something is drawn.
"""

from __future__ import annotations

import logging
import unicodedata
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from io import StringIO
from typing import TYPE_CHECKING, Any, Literal

from markupsafe import Markup

from uncanny.eval.report.svg import colour, themed

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Draws on an empty figure and gives tooltips by gid.
Draw = Callable[["Figure"], Mapping[str, str]]
# Width and height in CSS pixels.
Size = tuple[float, float]
WIDE, NARROW = 1140.0, 340.0
_POINTS_PER_INCH = 72


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
    """Settings of ours alone, whatever a matplotlibrc says, and no word about fonts at the terminal."""
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
        "axes.prop_cycle": _cycle(),
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


def _cycle() -> object:
    from cycler import cycler

    return cycler(color=[colour(f"a{place}") for place in range(6)])
