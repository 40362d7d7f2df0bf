"""JSON as the contract has it, and CSV as a spreadsheet reads it."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.eval.audit.annotation_sets import anomaly, left_out, loaded, record, written
from uncanny.eval.audit.result import audit_csv, audit_json
from uncanny.eval.audit.score import audit


def places(folder: Path) -> dict[str, Path]:
    few = [record("a.png", [60], prompt="x"), record("b.png", prompt="y")]
    odd = [record("a.png", anomalies=[anomaly(5, 'a "name", with\nmarks')]), left_out("b.png", "unreadable")]
    return {
        "few": written(folder / "few.jsonl", few),
        "odd": written(folder / "odd.jsonl", odd),
        "none": written(folder / "none.jsonl", [left_out("a.png", "failed")]),
    }


def audited(folder: Path, **options: Any) -> dict[str, Any]:
    result = audit(loaded(places(folder)), resamples=200, **options)
    found: dict[str, Any] = orjson.loads(orjson.dumps(audit_json(result)))
    return found


def test_json_has_every_key_of_the_contract(tmp_path: Path) -> None:
    found = audited(tmp_path)
    assert found["order"] == ["few", "odd", "none"]
    few = found["generators"]["few"]
    assert few["images"] == 2
    assert few["left_out"] == {"failed": 0, "partial": 0, "unreadable": 0, "unclear": 0}
    assert (few["mai"], few["af"], few["u_mean"]) == pytest.approx((0.2, 0.5, 0.4))
    assert few["cap"] == few["mai"] * few["af"]
    for figure in ("mai", "af", "cap"):
        low, high = few["ci"][figure]
        assert low <= few[figure] <= high
    assert found["generators"]["odd"]["left_out"] == {
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
    found = audited(tmp_path, seed=3)
    assert (found["resamples"], found["seed"], found["level"], found["pair_by"]) == (200, 3, 0.95, None)
    assert found["generators"]["few"]["made_with"]["models"] == ["openai/any"]
    assert found["notices"]
    assert "published" not in found
    assert "against" not in found
    assert len(found["generators"]["few"]["severities"]) == 101
    assert found["generators"]["few"]["worst"][0]["image"] == "a.png"


def test_json_of_two_assessors_and_published(tmp_path: Path) -> None:
    both = loaded(places(tmp_path))
    found = audit_json(audit(both, both, resamples=0, published=True))
    assert found["against"]["order"] == ["few", "odd", "none"]
    # `none` has no figures, so it has no rank.
    assert found["agreement"]["cap"] == pytest.approx({"generators": 2, "spearman": 1.0, "kendall": 1.0})
    assert len(found["published"]["rows"]) == 30
    assert found["published"]["agreement"]["cap"]["spearman"] == pytest.approx(0.382, abs=0.001)


def test_csv(tmp_path: Path) -> None:
    both = loaded(places(tmp_path))
    text = audit_csv(audit(both, both, resamples=200, published=True))
    rows = list(csv.DictReader(io.StringIO(text)))
    assert [row["generator"] for row in rows[:3]] == ["few", "odd", "none"]
    assert [row["source"] for row in rows] == ["own"] * 6 + ["published"] * 30
    few, odd, none = rows[:3]
    assert float(few["cap"]) == pytest.approx(0.1)
    assert float(few["cap_low"]) <= float(few["cap"]) <= float(few["cap_high"])
    assert (none["cap"], none["cap_low"], none["images"], none["failed"]) == ("", "", "0", "1")
    assert (few["like_the_one_before"], odd["unreadable"], odd["rank"]) == ("", "1", "2")
    assert (rows[6]["generator"], rows[6]["assessor"], rows[6]["cap"]) == (
        "Sana 1.5",
        "AnomReasonor",
        "28.62",
    )
