"""Plots inside a page: its colours and font, ids of their own, no style attribute, any text."""

from __future__ import annotations

import logging
import os
import re
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree

import pytest
from markupsafe import Markup

from uncanny.eval.common.pages.plots import COLOURS, bare_axes, colour, plain_label, plot, plot_twice

if TYPE_CHECKING:
    from matplotlib.figure import Figure

HOSTILE = "</svg><script>alert(1)</script>$\\frac{1}{0}$ & \"'"


def draw(figure: Figure) -> Mapping[str, str]:
    axes = bare_axes(figure.add_subplot(), grid="both")
    axes.errorbar([1, 2], [3, 4], xerr=[0.1, 0.2], yerr=0.3, fmt="o", color=colour("accent"), gid="points")
    axes.barh([3], [1], color=colour("s0"), alpha=0.5, gid="bar")
    axes.text(1.5, 3.5, HOSTILE, rotation=30, ha="right")
    axes.set_xlabel("七本の指 $x_1$")
    return {"bar": HOSTILE}


def drawn(key: str = "p") -> Markup:
    return plot(draw, (400, 300), key=key, title=HOSTILE, words="Three things.")


def texts(svg: str) -> list[str]:
    return ["".join(element.itertext()) for element in ElementTree.fromstring(svg).iter("text")]


def test_the_same_drawing_gives_the_same_bytes() -> None:
    assert drawn() == drawn()
    assert "metadata" not in drawn()


@pytest.mark.slow
def test_two_pages_at_once_leave_the_host_as_it_was() -> None:
    import matplotlib

    log = logging.getLogger("matplotlib")
    before = dict(matplotlib.rcParams), log.level, list(warnings.filters)
    begun, second = threading.Event(), threading.Event()

    def first_page(figure: Figure) -> Mapping[str, str]:
        begun.set()
        second.wait(1)  # the other page's drawing, which must not begin before this one is over
        return draw(figure)

    def second_page(figure: Figure) -> Mapping[str, str]:
        second.set()
        return draw(figure)

    def drawing(of: Callable[[Figure], Mapping[str, str]]) -> Markup:
        return plot(of, (400, 300), key="p", title=HOSTILE, words="Three things.")

    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(drawing, first_page)
        begun.wait()
        both = pool.submit(drawing, second_page).result(), first.result()
    assert both == (drawn(), drawn())
    assert (dict(matplotlib.rcParams), log.level, list(warnings.filters)) == before


def test_colours_are_the_pages_and_nothing_has_a_style() -> None:
    svg = drawn()
    variables = set(re.findall(r'(?:fill|stroke)="([^"]+)"', svg))
    assert {"var(--accent)", "var(--s0)", "var(--soft)", "var(--line)", "none"} <= variables
    assert all(paint == "none" or paint.startswith("var(--") for paint in variables)
    assert "style" not in svg
    assert "#fe" not in svg
    assert "font-family" not in svg


def test_every_colour_is_defined_by_the_page_in_light_and_in_dark() -> None:
    style = Path(__file__).parents[3].joinpath("eval/common/templates/run.css").read_text()
    for name in COLOURS:
        assert len(re.findall(rf"--{name}: ", style.split("@media print")[0])) == 2, name


def test_a_colour_of_no_theme_is_refused() -> None:
    def careless(figure: Figure) -> Mapping[str, str]:
        bare_axes(figure.add_subplot()).plot([1, 2], color="red")
        return {}

    with pytest.raises(ValueError, match="#ff0000"):
        plot(careless, (100, 100), key="p", title="t", words="w")


def test_text_stays_text_whatever_it_is() -> None:
    svg = drawn()
    assert "<script" not in svg
    assert HOSTILE in texts(svg)
    assert "七本の指 $x_1$" in texts(svg)
    root = ElementTree.fromstring(svg)
    assert [element.text for element in root.iter("title")] == [HOSTILE, HOSTILE]


def test_those_who_do_not_see_it_are_told() -> None:
    root = ElementTree.fromstring(drawn("mine"))
    assert root.attrib["role"] == "img"
    ids = {element.attrib["id"]: element.text for element in root.iter() if "id" in element.attrib}
    assert ids[root.attrib["aria-labelledby"]] == HOSTILE
    assert ids[root.attrib["aria-describedby"]] == "Three things."


def test_ids_of_two_plots_in_a_page_differ_and_references_hold() -> None:
    page = f"<div>{plot_twice(draw, (600, 300), (300, 300), key='a', title='t', words='w')}{drawn('b')}</div>"
    root = ElementTree.fromstring(page)
    ids = [element.attrib["id"] for element in root.iter() if "id" in element.attrib]
    assert len(ids) == len(set(ids))
    referred = set(re.findall(r'(?:url\(#|href="#)([^)"]+)', page))
    assert referred
    assert referred <= set(ids)
    assert [element.get("class") for element in root.iter("div")][1:] == [
        "drawn for-wide",
        "drawn for-narrow",
    ]


@pytest.mark.parametrize(
    ("text", "most", "label"),
    [
        ("a\n b\tc", 20, "a b c"),
        ("nul\x00 and bell\x07", 20, "nul and bell"),
        ("x" * 30, 10, "x" * 9 + "…"),
        ("seven words, cut at a space", 14, "seven words,…"),
        ("سبع أصابع 👁️", 40, "سبع أصابع 👁️"),
        ("", 5, ""),
    ],
)
def test_labels_are_one_line_that_xml_can_hold(text: str, most: int, label: str) -> None:
    assert plain_label(text, most) == label


@pytest.mark.slow
def test_a_home_that_cannot_be_written_says_nothing(tmp_path: Path) -> None:
    """Nor does a matplotlibrc of the user's change a plot."""
    (tmp_path / "matplotlibrc").write_text("font.size: 40\naxes.facecolor: red\nnonsense: 3\n")
    program = (
        "from tests.eval.common.test_plots import drawn\n"
        "import sys; assert 'matplotlib' not in sys.modules\n"
        "print(drawn())"
    )
    roots = [str(Path(__file__).parents[3]), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("XDG_", "MPL"))}
    environment |= {"HOME": "/dev/null", "PYTHONPATH": os.pathsep.join(roots)}
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        encoding="utf-8",
        check=True,
    )
    assert done.stderr == ""
    assert done.stdout.strip() == drawn()
