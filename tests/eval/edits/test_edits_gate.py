"""Quality gates: each by hand, gates that cannot be measured, and records that go through."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest

import uncanny
from tests.eval.edits.made_pairs import bad_set, known_cases, save, squares, write_pairs
from uncanny.edits import gate, measure
from uncanny.errors import UsageError


def gated_set(folder: Path, *extras: dict[str, Any]) -> Path:
    known_cases(folder)
    pairs = (
        {"id": str(place), "original": "black.png", "edited": "one.png", **extra}
        for place, extra in enumerate(extras)
    )
    return write_pairs(folder / "gates.jsonl", *pairs)


def test_numbers_in_records_are_held_against_percentiles_of_the_set(tmp_path: Path) -> None:
    """0, 1, … 100: the percentile of rank p is p."""
    file = gated_set(
        tmp_path,
        *(
            {"brisque": n, "clip_similarity": n, "directional_similarity": n, "text_similarity": n}
            for n in range(101)
        ),
    )
    edits = gate(file)
    failed = {name: [int(each.id) for each in edits if name in each.failed] for name in edits.limits}
    assert failed["brisque"] == list(range(70, 101)), "below 70"
    assert failed["clip_similarity"] == [*range(20), *range(81, 101)], "from the 20th to the 80th"
    assert failed["directional_similarity"] == list(range(24)), "above the 23rd"
    assert failed["text_similarity"] == [*range(5), *range(96, 101)]
    assert [int(each.id) for each in edits if each.passed] == list(range(24, 70))
    content = edits.to_json()
    assert content["limits"]["clip_similarity"] == [20, 80]
    assert content["gates"]["brisque"] == {"passed": 70, "failed": 31, "unmeasured": 0}


def test_percentiles_and_lengths_are_parameters_and_limits_go_from_set_to_set(tmp_path: Path) -> None:
    file = gated_set(tmp_path, *({"clip_similarity": n, "edited_label": "a b c"} for n in range(11)))
    edits = gate(file, clip_low=0, clip_high=50, label_words=2)
    assert all("text_length" in each.failed for each in edits)
    assert [each.id for each in edits if "clip_similarity" not in each.failed] == list("012345")
    again = gate(file, limits=edits.to_json())
    assert again.limits["clip_similarity"] == edits.limits["clip_similarity"]
    alone = gate(file, limits={"clip_similarity": [None, 3]})
    assert [each.id for each in alone if each.passed] == list("0123")


def test_words_of_labels_and_captions(tmp_path: Path) -> None:
    file = gated_set(
        tmp_path,
        {"edited_label": "a brown dog"},
        {"edited_label": "a b c d e f"},
        {"edited_caption": " ".join(["word"] * 31)},
        {"edited_caption": "a dog (brown)"},
        {"edited_label": "...", "edited_caption": "a dog"},
        {},
    )
    edits = gate(file)
    assert [each.failed for each in edits] == [
        (),
        ("text_length",),
        ("text_length",),
        ("special_characters",),
        ("text_empty",),
        (),
    ]
    assert edits["0"].passed is True
    assert edits["5"].passed is None, "its words could not be looked at"
    assert edits["5"].unmeasured["text_length"] == "there is no edited label or caption"


def test_all_black_edits_fail_and_set_no_percentile(tmp_path: Path) -> None:
    values = ({"clip_similarity": n} for n in (0.0, 0.5, 0.6, 0.7))
    file = gated_set(tmp_path, *values)
    lines = [orjson.loads(line) for line in file.read_bytes().splitlines()]
    lines[0]["edited"] = "black.png"
    edits = gate(write_pairs(file, *lines))
    assert "all_black" in edits["0"].failed
    assert edits.limits["clip_similarity"].low == pytest.approx(0.54)


def test_what_cannot_be_measured_is_neither_passed_nor_failed_and_counted(tmp_path: Path) -> None:
    file = gated_set(tmp_path, {"brisque": 10}, {"brisque": None}, {"brisque": "high"}, {"brisque": 90})
    lines = [orjson.loads(line) for line in file.read_bytes().splitlines()]
    lines.append({"id": "gone", "original": "black.png", "edited": "gone.png", "brisque": 10})
    edits = gate(write_pairs(file, *lines))
    assert [each.passed for each in edits] == [True, None, None, False, None]
    assert edits.counts["brisque"] == (2, 1, 2)
    assert edits.counts["clip_similarity"] == (0, 0, 5)
    assert "brisque" in edits.applied
    assert "clip_similarity" not in edits.applied, "of no edit: it is not applied, and says so"
    assert "does not exist" in edits["gone"].unmeasured["all_black"]
    text = str(edits)
    assert "1 of 5 edits passed, 1 failed, 3 could not be decided" in text
    assert "Not applied, clip_similarity: no CLIP model is given" in text


def test_a_pair_that_cannot_be_compared_is_undecided_whatever_its_words_are(tmp_path: Path) -> None:
    """Also where no other gate looks at the images, and where it is so of every pair."""
    bad_set(tmp_path)
    save(tmp_path / "small.png", squares((10, 10, 40), side=100))
    words = {"edited_label": "a dog"}
    pairs = [
        {"id": "good", "original": "one.png", "edited": "two.png", **words},
        {"id": "sizes", "original": "one.png", "edited": "small.png", **words},
        {"id": "no original", "original": "nowhere.png", "edited": "one.png", **words},
        {"id": "torn original", "original": "torn.png", "edited": "one.png", **words},
        {"id": "no edited", "original": "one.png", "edited": "nowhere.png", **words},
        {"id": "sizes, bad words", "original": "one.png", "edited": "small.png", "edited_label": "a (dog)"},
    ]
    for listed in (pairs, pairs[1:]):
        edits = gate(write_pairs(tmp_path / "e.jsonl", *listed), out=tmp_path / "g.jsonl")
        passed = {each.id: each.passed for each in edits}
        undecided = dict.fromkeys(("sizes", "no original", "torn original", "no edited"))
        assert passed == {
            **({"good": True} if listed is pairs else {}),
            **undecided,
            "sizes, bad words": False,
        }
        assert "256 × 256 pixels and the edited image of 100 × 100" in edits["sizes"].unmeasured["pair"]
        assert edits["no original"].unmeasured["pair"].startswith("original: ")
        assert edits["no edited"].unmeasured["pair"].startswith("edited: ")
        content = edits.to_json()
        assert content["undecided"] == 4
        assert content["gates"]["pair"] == {"passed": len(listed) - 5, "failed": 0, "unmeasured": 5}
        assert "nothing is resized (2)" in str(edits)
        lines = [orjson.loads(line) for line in (tmp_path / "g.jsonl").read_bytes().splitlines()]
        assert [line["passed"] for line in lines] == list(passed.values())


@pytest.mark.parametrize("suffix", [".jsonl", ".csv", ".parquet"])
def test_a_measured_set_keeps_its_columns(suffix: str, tmp_path: Path) -> None:
    measured = tmp_path / f"m{suffix}"
    edits = measure(known_cases(tmp_path), out=measured)
    gated = gate(measured, out=tmp_path / "g.jsonl")
    lines = [orjson.loads(line) for line in (tmp_path / "g.jsonl").read_bytes().splitlines()]
    columns = list(edits.columns)
    assert list(lines[0])[: len(columns) - 20] == columns[: len(columns) - 20]
    for line, edit in zip(lines, edits, strict=True):
        assert line["passed"] is True
        assert line["failed_gates"] == []
        assert (line["ssim"], line["shape"], line["method"]) == (edit.ssim, edit.shape, "squares")
        assert {name: each for name, each in line["bins"].items() if each} == edit.bins
    for other in (".csv", ".parquet"):
        assert gated.write(tmp_path / f"g{other}").stat().st_size
    assert list(gated.to_pandas()["passed"]) == [True] * 3


def test_the_bundled_scenes() -> None:
    edits = uncanny.edits.gate("scenes")
    assert [each.id for each in edits if each.failed] == ["d02", "d09", "r04"]


@pytest.mark.parametrize(
    "wrong", [{"clip_low": 90}, {"brisque": -1}, {"text_high": 101}, {"label_words": ""}]
)
def test_parameters_without_a_meaning_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        gate("scenes", **wrong)


@pytest.mark.parametrize(
    "wrong",
    [
        {"beauty": [0, 1]},
        {"brisque": 5},
        [1],
        {"brisque": ["a", 1]},
        {"brisque": [0, 10**400]},
        {"brisque": [0, float("nan")]},
    ],
)
def test_limits_that_are_none_are_refused(wrong: Any) -> None:
    with pytest.raises(UsageError, match=r"Invalid limits|must be a mapping"):
        gate("scenes", limits=wrong)
