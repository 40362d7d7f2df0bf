"""The wall of candidates in a real browser: it fits a phone, reads in the dark, and shows what one asks for.

Needs chromium and takes seconds. Without one it is skipped, unless UNCANNY_BROWSER=1 asks for it.
"""

from __future__ import annotations

from pathlib import Path

import pytest

import uncanny
from tests.eval.common.page_in_browser import LOUD, browser, check_page, needs_browser
from tests.eval.pairs.made_candidates import made

pytest.importorskip("cv2")
pytestmark = needs_browser
HOSTILE = "<script>alert(1)</script>"


def page_of(folder: Path) -> str:
    run = made(folder, 2, attempts=4, caption=HOSTILE)
    uncanny.pairs.screen(run, model="demo")
    return uncanny.pairs.items(run, unreviewed=True).report(folder / "pairs.html").resolve().as_uri()


async def test_it_fits_and_reads_in_both_schemes(tmp_path: Path) -> None:
    await check_page(page_of(tmp_path), tmp_path / "profile", plots=False)


async def test_candidates_are_chosen_by_verdict_and_pictures_open(tmp_path: Path) -> None:
    page = page_of(tmp_path)
    shown = "[...document.querySelectorAll('.pair-card')].filter(card => !card.hidden)"
    async with browser(tmp_path / "profile") as tab:
        await tab.send("Page.navigate", url=page)
        await tab.until(f"{shown}.length === 8")
        await tab.js("document.querySelector('.only [data-verdict=kept]').click()")
        await tab.until(f"{shown}.every(card => card.dataset.verdict === 'kept') && {shown}.length < 8")
        await tab.js("document.querySelectorAll('.pair-card:not([hidden]) .side button')[2].click()")
        await tab.until("document.querySelector('.v-bar [aria-pressed=true]').textContent === 'mask'")
        assert [event for event in tab.events if event["method"] in LOUD] == []
