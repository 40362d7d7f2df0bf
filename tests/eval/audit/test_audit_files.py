"""What a result becomes: JSON as the contract has it, CSV, a data frame, tables, a page."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.eval.audit.annotation_sets import anomaly, left_out, record, written
from uncanny.errors import UsageError
from uncanny.eval.audit.run import audit
from uncanny.eval.audit.score.result import COLUMNS
from uncanny.schema import Annotation


def places(folder: Path) -> dict[str, Path]:
    few = [record("a.png", [60], prompt="x"), record("b.png", prompt="y")]
    odd = [record("a.png", anomalies=[anomaly(5, 'a "name", with\nmarks')]), left_out("b.png", "unreadable")]
    return {
        "few": written(folder / "few.jsonl", few),
        "odd": written(folder / "odd.jsonl", odd),
        "none": written(folder / "none.jsonl", [left_out("a.png", "failed")]),
    }


def audited(folder: Path, **options: Any) -> dict[str, Any]:
    result = audit(places(folder), resamples=200, **options)
    scores: dict[str, Any] = orjson.loads(orjson.dumps(result.to_json()))
    return scores


def test_json_has_every_key_of_the_contract(tmp_path: Path) -> None:
    scores = audited(tmp_path)
    assert scores["order"] == ["few", "odd", "none"]
    few = scores["generators"]["few"]
    assert few["images"] == 2
    assert few["left_out"] == {"failed": 0, "partial": 0, "unreadable": 0, "unclear": 0}
    assert (few["mai"], few["af"], few["u_mean"]) == pytest.approx((0.2, 0.5, 0.4))
    assert few["cap"] == few["mai"] * few["af"]
    assert few["ci"] == dict.fromkeys(("mai", "af", "cap", "u_mean"))  # of two images
    (difference,) = (each for each in scores["differences"] if each["first"] == "few")
    assert (difference["apart"], difference["adjusted_p"]) == (None, None)
    assert any("few (2), odd (1)" in notice for notice in scores["notices"])
    assert scores["generators"]["odd"]["left_out"] == {
        "failed": 0,
        "partial": 0,
        "unreadable": 1,
        "unclear": 0,
    }


def test_unmeasured_is_null(tmp_path: Path) -> None:
    none = audited(tmp_path)["generators"]["none"]
    assert [none[figure] for figure in ("mai", "af", "cap", "u_mean")] == [None] * 4
    assert none["ci"] == dict.fromkeys(("mai", "af", "cap", "u_mean"))


def test_json_says_how_it_was_made(tmp_path: Path) -> None:
    scores = audited(tmp_path, seed=3)
    assert (scores["resamples"], scores["seed"], scores["level"], scores["pair_by"]) == (
        200,
        3,
        0.95,
        None,
    )
    assert scores["generators"]["few"]["made_with"]["models"] == ["openai/any"]
    assert scores["notices"]
    assert "published" not in scores
    assert "against" not in scores
    assert len(scores["generators"]["few"]["severities"]) == 101
    assert scores["generators"]["few"]["worst"][0]["image"] == "a.png"


def test_json_of_two_assessors_and_published(tmp_path: Path) -> None:
    both = places(tmp_path)
    scores = audit(both, against=both, resamples=0, published=True).to_json()
    assert scores["against"]["order"] == ["few", "odd", "none"]
    # `none` has no figures, so it has no rank.
    assert scores["agreement"]["cap"] == pytest.approx({"generators": 2, "spearman": 1.0, "kendall": 1.0})
    assert len(scores["published"]["rows"]) == 30
    assert scores["published"]["agreement"]["cap"]["spearman"] == pytest.approx(0.382, abs=0.001)


def test_csv(tmp_path: Path) -> None:
    both = places(tmp_path)
    text = audit(both, against=both, resamples=200, published=True).to_csv()
    rows = list(csv.DictReader(io.StringIO(text)))
    assert [row["generator"] for row in rows[:3]] == ["few", "odd", "none"]
    assert [row["source"] for row in rows] == ["own"] * 6 + ["published"] * 30
    few, odd, none = rows[:3]
    assert float(few["cap"]) == pytest.approx(0.1)
    assert (few["cap_low"], few["cap_high"]) == ("", "")
    assert float(few["visible_low"]) <= float(few["visible"]) <= float(few["visible_high"])
    assert (none["cap"], none["cap_low"], none["images"], none["failed"]) == ("", "", "0", "1")
    assert (few["like_the_one_before"], odd["unreadable"], odd["rank"]) == ("", "1", "2")
    assert (rows[6]["generator"], rows[6]["assessor"], rows[6]["cap"]) == (
        "Sana 1.5",
        "AnomReasonor",
        "28.62",
    )


def test_data_frame(tmp_path: Path) -> None:
    result = audit(places(tmp_path), resamples=200, published=True)
    frame = result.to_pandas()
    assert list(frame.columns) == list(COLUMNS)
    assert list(frame["generator"][:3]) == ["few", "odd", "none"]
    assert frame["cap"][0] == result.leaderboard.generators["few"].cap.value
    assert frame["cap"].isna().tolist() == [False, False, True] + [False] * 30


def test_a_result_shows_itself(tmp_path: Path) -> None:
    hostile = "<script>alert(1)</script>"
    file = places(tmp_path)["few"]
    result = audit({"few": file, hostile: file}, resamples=50)
    assert str(result).splitlines()[1].split()[:3] == ["1", "few", "2"]
    assert "<script>" not in result._repr_html_()
    assert "&lt;script&gt;" in result._repr_html_()
    page = result.report(tmp_path / "audit.html")
    assert page.read_text(encoding="utf-8").startswith("<!doctype html>")


def test_annotations_in_memory(tmp_path: Path) -> None:
    annotations = [
        Annotation.model_validate(record("a.png", [60])),
        Annotation.model_validate(record("b.png")),
    ]
    result = audit({"mine": annotations}, resamples=50)
    score = result.to_json()["generators"]["mine"]
    assert (score["cap"], score["source"]) == (pytest.approx(0.1), None)
    assert "annotations in memory" in result.report(tmp_path / "audit.html").read_text(encoding="utf-8")


def test_nothing_to_audit() -> None:
    with pytest.raises(UsageError, match="nothing to audit"):
        audit({})
