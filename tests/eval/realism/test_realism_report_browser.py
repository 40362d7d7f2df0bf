"""The realism page in a real browser: it fits a phone, reads in the dark, asks nothing of the network.

Needs chromium and takes seconds. Without one it is skipped, unless UNCANNY_BROWSER=1 asks for it.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from tests.eval.common.page_in_browser import LOUD, browser, check_page, needs_browser
from tests.eval.realism.made_verdicts import hand_worked, line, written
from tests.eval.realism.test_realism_report import HOSTILE, PEOPLE, scored, sides
from uncanny.demo.scenes import scenes

pytestmark = needs_browser


async def test_page_fits_and_reads_in_both_schemes(tmp_path: Path) -> None:
    some = [scene.image_path for scene in scenes()[:2]]
    raw = {"first": "word " * 400 + "x" * 300}
    lines = [
        line_of.replace(b'"group":"a"', b'"group":"' + b"a-model-with-a-long-name-" * 6 + b'"')
        for line_of in hand_worked(model=HOSTILE, raw=raw, notes=["two sizes"], **sides(some))
    ]
    other = written(tmp_path / "other.jsonl", hand_worked(model="m/" + "long" * 40))
    many = [line(f"m{n}", ("yes", "first", "both"), "intermediate", None, "c") for n in range(2000)]
    score = scored(written(tmp_path / "v.jsonl", [*lines, *many]), other, people=PEOPLE)
    page = replace(score, published=True).report(tmp_path / "realism.html").resolve().as_uri()
    await check_page(page, tmp_path / "profile")


async def test_a_key_flips_between_original_and_edit_and_shows_the_difference(tmp_path: Path) -> None:
    some = [scene.image_path for scene in scenes()[:2]]
    file = written(tmp_path / "v.jsonl", hand_worked(**sides(some)))
    page = scored(file).report(tmp_path / "realism.html").as_uri()
    image = "document.querySelector('.v-frame img')"
    pressed = "document.querySelector('.v-bar [aria-pressed=true]').textContent"
    place = "document.querySelector('.v-frame').style.transform"
    async with browser(tmp_path / "profile") as tab:
        await tab.send("Page.navigate", url=page)
        await tab.until("document.querySelector('[data-layer=\"1\"]') !== null")
        await tab.js("document.querySelector('[data-layer=\"1\"]').click()")
        await tab.until(f"{pressed} === 'edited' && {image}.src.startsWith('file:')")
        edited = await tab.js(f"{image}.src")
        for key in "++":
            await tab.key(key)
        where = await tab.js(place)
        await tab.key("f")
        other = f"{image}.src !== {json.dumps(edited)}"
        await tab.until(f"{pressed} === 'original' && {image}.src.startsWith('file:') && {other}")
        await tab.key("d")
        await tab.until(f"{pressed} === 'difference × 5' && {image}.src.startsWith('data:')")
        # The eye stays where it was: nothing moves when pictures are exchanged.
        assert await tab.js(place) == where
        assert [event for event in tab.events if event["method"] in LOUD] == []
