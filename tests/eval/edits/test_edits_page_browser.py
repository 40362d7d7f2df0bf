"""The page of measured edits in a real browser: it fits a phone, reads in the dark, opens every picture.

Needs chromium and takes seconds. Without one it is skipped, unless UNCANNY_BROWSER=1 asks for it.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.eval.common.page_in_browser import LOUD, browser, check_page, needs_browser
from tests.eval.edits.made_pairs import known_cases, write_pairs
from uncanny.edits import measure

pytestmark = needs_browser
HOSTILE = "<script>alert(1)</script>" + "long-name-" * 20


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
