"""The page of artifact scores in a real browser: it fits a phone, reads in the dark, and opens its regions.

Needs chromium and takes seconds. Without one it is skipped, unless UNCANNY_BROWSER=1 asks for it.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import uncanny.artifacts
from tests.eval.artifacts.made_sets import box, image, polygon, write_lines
from tests.eval.artifacts.test_artifact_report import scene_boxes
from tests.eval.common.page_in_browser import LOUD, browser, check_page, needs_browser

pytestmark = needs_browser


async def test_page_fits_and_reads_in_both_schemes(tmp_path: Path) -> None:
    long = "long" * 40
    files = {
        "<script>alert(1)</script>" + long: write_lines(tmp_path / "a.jsonl", scene_boxes()),
        "other": write_lines(tmp_path / "b.jsonl", [*scene_boxes(), image(f"{long}.png", box(note=long))]),
    }
    scores = uncanny.artifacts.score(files, truth="scenes", resamples=20)
    page = replace(scores, published=True).report(tmp_path / "artifacts.html").resolve().as_uri()
    await check_page(page, tmp_path / "profile")


async def test_a_picture_opens_with_its_regions_drawn_and_named(tmp_path: Path) -> None:
    scores = uncanny.artifacts.score(
        write_lines(tmp_path / "boxes.jsonl", scene_boxes()), truth="scenes", resamples=0
    )
    page = scores.report(tmp_path / "artifacts.html").as_uri()
    async with browser(tmp_path / "profile") as tab:
        await tab.send("Page.navigate", url=page)
        await tab.until("document.querySelector('[data-view]') !== null")
        assert await tab.js("document.querySelectorAll('.region-card .over path').length") == 48
        await tab.js("document.querySelector('[data-view]').click()")
        # The true region is a mask, drawn by its edges; the predicted one a box.
        await tab.until("document.querySelectorAll('.v-frame .m0 path.v-line').length > 0")
        assert await tab.js("document.querySelectorAll('.v-frame .m1 rect.v-line').length") > 0
        await tab.until("(document.querySelector('.v-label')?.textContent ?? '') !== ''")
        assert [event for event in tab.events if event["method"] in LOUD] == []


def test_a_polygon_is_drawn_by_its_corners(tmp_path: Path) -> None:
    truth = [image("a.png", polygon())]
    scores = uncanny.artifacts.score([image("a.png", box())], truth=truth, resamples=0)
    assert '"outline":[[[1.0,1.0],[3.0,1.0]' in scores.report(tmp_path / "page.html").read_text()
