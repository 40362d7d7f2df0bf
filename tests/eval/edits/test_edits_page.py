"""The page of measured edits: what it shows of any set."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.eval.edits.made_pairs import bad_set, known_cases, write_pairs
from uncanny.edits import measure

HOSTILE = "<script>alert(1)</script>" + "long-name-" * 20


def test_it_shows_figures_edits_and_problems(tmp_path: Path) -> None:
    edits = measure(bad_set(tmp_path), preserved=True, published=True)
    page = edits.report(tmp_path / "edits.html", title="Mine").read_text()
    for words in ("Mine", "post-edit mask", "difference × 5", "nothing is resized", "all black"):
        assert words in page
    assert page.count('class="pair-card"') == 7


def test_published_figures_stand_beside_those_outside_the_mask(tmp_path: Path) -> None:
    edits = measure(known_cases(tmp_path), preserved=True, published=True)
    page = edits.report(tmp_path / "edits.html").read_text()
    assert "SAGI-D (published)" in page
    assert "for orientation only" in page


def test_names_stay_text_and_an_empty_set_has_a_page(tmp_path: Path) -> None:
    known_cases(tmp_path)
    pair = {"original": "nowhere.png", "edited": "one.png"}
    edits = measure(write_pairs(tmp_path / "e.jsonl", {"id": HOSTILE, **pair}))
    page = edits.report(tmp_path / "edits.html").read_text()
    assert "<script>alert" not in page
    assert "No edit could be measured" in page


@pytest.mark.slow
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
