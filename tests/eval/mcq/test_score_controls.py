"""Q4 without the image, and Q3 answered by masks."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from statsmodels.stats.proportion import proportion_confint

from tests.eval.mcq.made_sets import made_item
from uncanny.errors import UsageError
from uncanny.eval.mcq.data.items import Answer, Box, Option
from uncanny.eval.mcq.score.box_models import box_answers, choose_box, read_mask, score_boxes
from uncanny.eval.mcq.score.controls import score_no_image

ITEMS = [
    made_item("a", "art_dg", ("B", "B", "B")),
    made_item("b", "art_dg"),
    made_item("c", "ref_real"),
    made_item("d", "ref_pg"),
]
BOXES: dict[Option, Box] = {
    "A": (0, 0, 10, 10),
    "B": (10, 0, 20, 10),
    "C": (0, 10, 10, 20),
    "D": (5, 5, 15, 15),
}


def q4(raws: dict[str, str | None]) -> list[Answer]:
    return [Answer(id=item, question="q4", raw=raw, model="m") for item, raw in raws.items()]


def test_no_image_by_hand() -> None:
    blind = q4({"a": "B", "b": "F", "c": "E.", "d": "no picture"})
    scores = score_no_image(ITEMS, blind, q4({"a": "B", "b": "A", "c": "E", "d": "E"}))
    figures = scores.to_json()
    ends = figures.pop("ci")
    assert figures == {
        "n": 4,
        "missing": 0,
        "invalid": 1,
        "f_rate": 0.25,
        "a_to_e_rate": 0.5,
        "key_match": 0.5,
        "key_match_e": 0.25,
        "same_non_e": 0.25,
        "n_both": 4,
    }
    for name, interval in ends.items():
        count = round(4 * figures[name])
        assert interval == pytest.approx(proportion_confint(count, 4, method="wilson"))


def test_no_image_without_the_other_answers_or_any() -> None:
    scores = score_no_image(ITEMS, q4({"a": "F", "b": None}))
    assert (scores.n, scores.missing, scores.f_rate, scores.same_non_e) == (1, 3, 1.0, None)
    assert score_no_image(ITEMS, []).f_rate is None
    with pytest.raises(UsageError, match="q4 of item 'a' is answered twice"):
        score_no_image(ITEMS, q4({"a": "F"}) * 2)


def test_invalid_answers_are_never_the_same_letter() -> None:
    scores = score_no_image(ITEMS, q4({"a": "?", "b": "F"}), q4({"a": "?", "b": "F"}))
    assert scores.same_non_e == 0.0


def test_box_with_the_highest_mean() -> None:
    mask = np.zeros((20, 20))
    mask[2:4, 12:18] = 1
    pick = choose_box(mask, BOXES)
    assert (pick.box, pick.tied) == ("B", False)
    assert pick.means["B"] == pytest.approx(12 / 100)
    # A small box that is full beats a large one that holds more in all.
    assert choose_box(mask, {"A": (0, 0, 20, 20), "D": (12, 2, 18, 4)}).box == "D"


def test_mask_of_another_size_and_ties() -> None:
    mask = np.zeros((10, 5))
    mask[:5, 3:] = 0.5
    assert choose_box(mask, BOXES, size=(20, 20)).box == "B"
    pick = choose_box(np.zeros((20, 20)), BOXES)
    assert (pick.box, pick.tied) == ("A", True)


@pytest.mark.parametrize("mask", [np.zeros((4, 4, 3)), np.full((20, 20), np.nan), np.zeros((0, 3))])
def test_what_is_no_mask_is_refused(mask: np.ndarray) -> None:
    with pytest.raises(UsageError, match="not a finite picture"):
        choose_box(mask, BOXES)


def test_box_outside_the_mask_is_refused() -> None:
    with pytest.raises(UsageError, match="no area within a mask of 20 × 20"):
        choose_box(np.zeros((20, 20)), {"A": (30, 0, 40, 10)})


def test_masks_from_files(tmp_path: Path) -> None:
    scores = np.arange(12, dtype=np.float32).reshape(3, 4)
    np.save(tmp_path / "m.npy", scores)
    assert np.array_equal(read_mask(tmp_path / "m.npy"), scores)
    Image.fromarray(scores.astype(np.uint8)).convert("RGB").save(tmp_path / "m.png")
    assert np.array_equal(read_mask(tmp_path / "m.png"), scores)
    (tmp_path / "bad.npy").write_bytes(b"x")
    for name in ("bad.npy", "absent.png"):
        with pytest.raises(UsageError, match=rf"{name} cannot be read"):
            read_mask(tmp_path / name)


def declaring(file: Path, shape: tuple[int, ...]) -> None:
    with file.open("wb") as out:
        np.lib.format.write_array_header_1_0(out, {"descr": "<f8", "fortran_order": False, "shape": shape})


@pytest.mark.slow
def test_hostile_masks_are_refused_before_they_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # No program is started for a picture, wherever it is found.
    monkeypatch.setattr(subprocess, "Popen", None)
    (tmp_path / "drawn.png").write_bytes(b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 4 4\n%%EOF\n")
    (tmp_path / "empty.npy").write_bytes(b"")
    declaring(tmp_path / "huge.npy", (2_000_000, 2_000_000))
    declaring(tmp_path / "flat.npy", (4,))
    Image.new("1", (30_000, 30_000)).save(tmp_path / "bomb.png")
    for name in ("drawn.png", "empty.npy", "huge.npy", "flat.npy", "bomb.png"):
        with pytest.raises(UsageError, match=name):
            read_mask(tmp_path / name)


def test_references_are_wrong_by_construction() -> None:
    picks = {}
    for item in ITEMS[:3]:
        mask = np.zeros((20, 50))
        mask[:, 12:18] = 1
        assert item.q3 is not None
        picks[item.id] = choose_box(mask, item.q3.boxes)
    scores = score_boxes(ITEMS, picks, resamples=100).to_json()
    assert scores["q3"] == {"artifact": 0.5, "ref_real": 0.0, "ref_pg": None, "overall": pytest.approx(1 / 3)}
    assert (scores["missing"], scores["ties"], scores["n"]["overall"]) == (1, 0, 3)
    assert scores["ci"]["ref_real"] == [0.0, pytest.approx(0.7935, abs=1e-4)]
    assert scores["ci"]["ref_pg"] is None
    assert [answer.raw for answer in box_answers(ITEMS, picks, "masks")] == ["B", "B", "B"]
    assert scores["unused"] == []
    mistyped = {f"{item}x": pick for item, pick in picks.items()}
    more = score_boxes(ITEMS, picks | mistyped, resamples=100)
    assert more.to_json() == scores | {"unused": list(mistyped)}
    assert f"Masks of no item with Q3, left out: 3 ({', '.join(mistyped)})." in str(more)
