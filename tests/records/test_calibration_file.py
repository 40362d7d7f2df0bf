"""The file of a calibration: it comes back as it was written, and anything else is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest

from uncanny.errors import RecordError, UsageError
from uncanny.records.calibration import MOST_BYTES, Calibration, MadeWith
from uncanny.schema import Anomaly

STEP = {"low": 0.5, "high": 0.6, "probability": 0.2}
CONTENT: dict[str, Any] = {
    "version": 1,
    "steps": [STEP, {"low": 0.8, "high": 0.8, "probability": 0.6}],
    "least_confidence": 0.5,
    "findings": 60,
    "without_confidence": 2,
    "images": 40,
    "folds": 10,
    "error_before": 0.3,
    "error_after": 0.05,
    "made_with": {"models": ["m"], "prompts": ["p@1"], "schedule": "packed"},
}


def written(folder: Path, content: bytes) -> Path:
    file = folder / "calibration.json"
    file.write_bytes(content)
    return file


def test_it_comes_back_as_it_was_written(tmp_path: Path) -> None:
    calibration = Calibration.read(written(tmp_path, orjson.dumps(CONTENT)))
    again = calibration.write(tmp_path / "again.json")
    assert Calibration.read(again) == calibration
    assert orjson.loads(again.read_bytes()) == CONTENT


def test_it_is_linear_between_steps_and_says_nothing_of_what_was_not_judged() -> None:
    calibration = Calibration.model_validate(CONTENT)
    stated = (None, 0.49, 0.5, 0.55, 0.6, 0.7, 0.8, 1.0)
    assert [calibration.probability(each) for each in stated] == [None, None, 0.2, 0.2, 0.2, 0.4, 0.6, 0.6]
    finding = Anomaly(name="a", phenomenon="b", reasoning="c", severity=3, confidence=0.7)
    likely = calibration.finding(finding)
    assert likely.in_words() == "  3  a: b (70 % sure, 40 % likely right (calibrated))"
    assert Anomaly.model_validate_json(likely.model_dump_json()) == likely
    # Nothing is certain, not by rounding either.
    nearly = finding.model_copy(update={"probability": 0.999})
    assert nearly.in_words().endswith("(70 % sure, 99 % likely right (calibrated))")
    # A record without one reads, and is written, as ever.
    assert finding.probability is None
    assert "probability" not in finding.model_dump()


def test_findings_that_were_made_otherwise_are_told_apart() -> None:
    calibration = Calibration.model_validate(CONTENT)
    same = MadeWith(models=("m",), prompts=("p@1",), schedule="packed")
    assert calibration.unlike(same) is None
    assert calibration.unlike(MadeWith(models=("m",), prompts=("p@1",))) is None
    assert calibration.unlike(same.model_copy(update={"models": ("n",), "schedule": "single"})) == (
        "The calibration was made with a different model (m there, n here) and schedule (packed there, "
        "single here). Its probabilities may be wrong. Fit one on judged findings of this model, prompts and "
        "schedule."
    )
    assert "prompts (p@1 there, p@2 here)" in str(
        calibration.unlike(same.model_copy(update={"prompts": ("p@2",)}))
    )


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"version": 2}, "version"),
        ({"steps": []}, "steps"),
        ({"steps": [STEP, STEP]}, "steps"),
        ({"steps": [STEP, {"low": 0.7, "high": 0.8, "probability": 0.1}]}, "steps"),
        ({"steps": [{"low": 0.6, "high": 0.5, "probability": 0.2}]}, "steps"),
        ({"steps": [STEP | {"probability": 1}]}, "steps.0.probability"),
        ({"steps": [STEP | {"probability": 0}]}, "steps.0.probability"),
        ({"steps": [STEP | {"low": "0.5"}]}, "steps.0.low"),
        ({"steps": [STEP | {"high": 1.5}]}, "steps.0.high"),
        ({"findings": True}, "findings"),
        ({"images": -1}, "images"),
        ({"error_after": None}, "error_after"),
        ({"made_with": {"models": "m"}}, "made_with.models"),
    ],
)
def test_what_is_wrong_is_named_by_its_field(tmp_path: Path, change: dict[str, Any], field: str) -> None:
    file = written(tmp_path, orjson.dumps(CONTENT | change))
    with pytest.raises(RecordError, match=f"calibration.json:1, field '{field}'"):
        Calibration.read(file)


def test_a_figure_that_is_no_number_is_refused(tmp_path: Path) -> None:
    text = orjson.dumps(CONTENT)
    for figure in (b"NaN", b"Infinity", b"1e999"):
        file = written(tmp_path, text.replace(b'"probability":0.2', b'"probability":' + figure))
        with pytest.raises(RecordError, match=r"field 'steps.0.probability'"):
            Calibration.read(file)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b'{"version": 1}', "field 'steps': is missing"),
        (b"[]", ":1: must be an object"),
        (b"{broken", ":1: must be JSON: key must be a string"),
        (orjson.dumps(CONTENT | {"folds": "2"}), "field 'folds': must be a whole number"),
    ],
)
def test_it_is_said_in_our_words_and_what_to_pass(tmp_path: Path, content: bytes, words: str) -> None:
    with pytest.raises(RecordError) as raised:
        Calibration.read(written(tmp_path, content))
    assert words in str(raised.value)
    assert str(raised.value).endswith("Pass a calibration that `uncanny trust` has written.")


@pytest.mark.parametrize("content", [b"", b"\0\xff", b"[" * 100_000, b"{}", b"[]", b'"a"', b"null"])
def test_what_is_no_calibration_is_refused(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(RecordError, match=r"calibration\.json:1"):
        Calibration.read(written(tmp_path, content))


def test_a_file_without_an_end_a_folder_and_nothing_are_refused(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match="larger than any calibration"):
        Calibration.read(written(tmp_path, b" " * (MOST_BYTES + 1)))
    for place in (tmp_path, tmp_path / "nothing.json", Path("/dev/zero")):
        with pytest.raises(UsageError, match=place.name):
            Calibration.read(place)
