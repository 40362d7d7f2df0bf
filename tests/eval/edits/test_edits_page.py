"""The page of measured edits: what it shows, and in a browser that it fits a phone and flips pictures."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.eval.common.page_in_browser import LOUD, browser, check_page, needs_browser
from tests.eval.edits.made_pairs import bad_set, known_cases, write_pairs
from uncanny.edits import measure

HOSTILE = "<script>alert(1)</script>" + "long-name-" * 20


def test_it_shows_figures_edits_and_problems(tmp_path: Path) -> None:
    edits = measure(bad_set(tmp_path), preserved=True, published=True)
    page = edits.report(tmp_path / "edits.html", title="Mine").read_text()
    for words in ("Mine", "post-edit mask", "difference × 5", "SAGI-D", "nothing is resized", "all black"):
        assert words in page
    assert "5 edits" not in page
    assert page.count('class="pair-card"') == 7


def test_names_stay_text_and_an_empty_set_has_a_page(tmp_path: Path) -> None:
    known_cases(tmp_path)
    pair = {"original": "nowhere.png", "edited": "one.png"}
    edits = measure(write_pairs(tmp_path / "e.jsonl", {"id": HOSTILE, **pair}))
    page = edits.report(tmp_path / "edits.html").read_text()
    assert "<script>alert" not in page
    assert "No edit could be measured" in page


def test_of_many_edits_some_are_shown_evenly(tmp_path: Path) -> None:
    known_cases(tmp_path)
    names = ("one", "two", "corner")
    pairs = (
        {"id": str(n), "original": "black.png", "edited": f"{names[n % 3]}.png", "mask": "mask.png"}
        for n in range(40)
    )
    page = measure(write_pairs(tmp_path / "e.jsonl", *pairs)).report(tmp_path / "edits.html").read_text()
    assert page.count('class="pair-card"') == 24
    assert "Showing 24 of 40" in page


@needs_browser
async def test_it_fits_and_reads_in_both_schemes(tmp_path: Path) -> None:
    known_cases(tmp_path)
    pair = {"original": "black.png", "mask": "mask.png", "method": HOSTILE}
    pairs = [
        {"id": HOSTILE, "edited": "one.png", **pair},
        {"id": "two", "edited": "two.png", **pair},
        {"id": HOSTILE + "gone", "edited": HOSTILE.replace("/", "-"), **pair},
    ]
    edits = measure(write_pairs(tmp_path / "e.jsonl", *pairs), preserved=True, published=True)
    page = edits.report(tmp_path / "edits.html").resolve().as_uri()
    await check_page(page, tmp_path / "profile")


@needs_browser
@pytest.mark.parametrize("layer", ["mask", "post-edit mask", "difference × 5"])
async def test_every_picture_opens_in_the_viewer(layer: str, tmp_path: Path) -> None:
    page = measure(known_cases(tmp_path)).report(tmp_path / "edits.html").as_uri()
    pressed = "document.querySelector('.v-bar [aria-pressed=true]').textContent"
    button = f"[...document.querySelectorAll('.side')].find(e => e.textContent.trim() === '{layer}')"
    async with browser(tmp_path / "profile") as tab:
        await tab.send("Page.navigate", url=page)
        await tab.until(f"{button} !== undefined")
        await tab.js(f"{button}.querySelector('button').click()")
        await tab.until(f"{pressed} === '{layer}'")
        assert [event for event in tab.events if event["method"] in LOUD] == []
