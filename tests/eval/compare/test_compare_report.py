"""The page: it says what the figures say, shows both sets of boxes, and obeys nothing that a model wrote."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import uncanny
from tests.eval.compare.made_runs import anomaly, as_records, record
from uncanny.demo.scenes import scenes
from uncanny.eval.compare.score.result import CompareResult

EVIL = "<img src=x onerror=alert(1)></script>"


def result(tmp_path: Path, *, images: int = 6, three: bool = False) -> CompareResult:
    """The bundled pictures with boxes: one lost, one found anew, the others in common."""
    sides: list[list[dict[str, object]]] = [[], []]
    for place, scene in enumerate(scenes()[:images]):
        name, more = (
            scene.image_path.name,
            {"sha256": scene.sha256, "width": scene.width, "height": scene.height},
        )
        (tmp_path / name).write_bytes(scene.image_path.read_bytes())
        left = anomaly(f"left {place}", box=[10, 10, 200, 200], kind="anatomy")
        right = anomaly(f"right {place} {EVIL}", severity=70, box=[300, 30, 420, 200], kind="light")
        sides[0].append(record(name, [left] if place != 1 else [], **more))
        sides[1].append(record(name, [left, right] if place != 2 else [], **more))
    runs = {"old": as_records(sides[0]), f"new {EVIL}": as_records(sides[1])}
    if three:
        runs["third"] = as_records(sides[0])
    return uncanny.compare(runs, root=tmp_path, resamples=500)


def test_the_page_holds_headline_figures_and_every_image(tmp_path: Path) -> None:
    compared = result(tmp_path)
    page = compared.report(tmp_path / "page.html").read_text(encoding="utf-8")
    (comparison,) = compared.comparisons
    assert "By realism" in page
    assert "By severity" not in page
    assert page.index("How much") < page.index("How this page was made")
    assert comparison.headline.split(" anomalies")[0].split()[-3] in page
    assert "5</b> only new" not in page
    assert re.findall(r'data-change="(\w+)"', page)[0] == "found_to_none"
    assert page.count('<article class="change"') == 6
    assert page.count('<rect class="of-a"') == 5
    assert page.count('<rect class="of-b"') == 10
    assert "by text and box · similarity 1.00 · IoU 1.00" in page
    assert EVIL not in page


def test_more_images_than_wanted_are_left_out_and_that_is_said(tmp_path: Path) -> None:
    page = result(tmp_path).report(tmp_path / "page.html", max_images=2).read_text(encoding="utf-8")
    assert page.count('<article class="change"') == 2
    assert "Showing 2 of 6 images" in page


def test_several_runs_have_a_part_each(tmp_path: Path) -> None:
    page = result(tmp_path, three=True).report(tmp_path / "page.html").read_text(encoding="utf-8")
    assert page.count('<article class="comparison">') == 2
    assert '<a href="#h-2"><bdi>third</bdi></a>' in page


def test_by_prompt_both_pictures_are_there(tmp_path: Path) -> None:
    first, second = scenes()[:2]
    sides = []
    for scene in (first, second):
        (tmp_path / scene.image_path.name).write_bytes(scene.image_path.read_bytes())
        sides.append(
            as_records([record(scene.image_path.name, [anomaly("x")], sha256=scene.sha256, prompt_id="p")])
        )
    compared = uncanny.compare(*sides, by="prompt", root=tmp_path, resamples=0)
    page = compared.report(tmp_path / "page.html").read_text(encoding="utf-8")
    assert page.count('<button type="button" class="shot" data-view="') == 2
    assert compared.comparisons[0].in_common == 1


@pytest.mark.parametrize("three", [False, True])
def test_a_picture_that_is_gone_or_another_one_is_not_shown(tmp_path: Path, three: bool) -> None:
    compared = result(tmp_path, three=three)
    for file in tmp_path.glob("*.*"):
        file.write_bytes(b"no picture")
    page = compared.report(tmp_path / "page.html").read_text(encoding="utf-8")
    assert "image cannot be read" in page
    assert "data:image" not in page
