"""The realism page in a real browser: it fits a phone, reads in the dark, asks nothing of the network.

Needs chromium and takes seconds. Without one it is skipped, unless UNCANNY_BROWSER=1 asks for it.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tests.eval.common.page_in_browser import check_page, needs_browser
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
    score = scored(written(tmp_path / "v.jsonl", [*lines, *many]), other, humans=PEOPLE)
    page = replace(score, published=True).report(tmp_path / "realism.html").resolve().as_uri()
    await check_page(page, tmp_path / "profile")
