"""Counting calls, measured and not."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import orjson
import pytest

from uncanny.client.calls import CallRecord
from uncanny.models.base import Outcome
from uncanny.records.run_manifest import RunManifest
from uncanny.runs.progress import Progress, Spending


def call(outcome: Outcome = "answered", *, replayed: bool = False, **figures: Any) -> CallRecord:
    measured = {"input_tokens": 100, "cached_tokens": 50, "output_tokens": 10, "cost_usd": 0.5}
    return CallRecord(
        image="a.png",
        agent="ObjectPerceiver",
        step=1,
        object=None,
        sample=0,
        model="script/one",
        prompt="p@0",
        asked="?",
        sees_image=True,
        attempt=1,
        repair=0,
        outcome=outcome,
        answer="",
        detail=None,
        latency_s=0.1,
        started=datetime.now(UTC),
        replayed=replayed,
        **measured | figures,
    )


def test_figures_are_summed_and_outcomes_counted() -> None:
    spending = Spending()
    for outcome in ("answered", "answered", "unparseable", "refused"):
        spending.add(call(outcome))
    assert spending.as_recorded() == {
        "calls": 4,
        "replayed": 0,
        "input_tokens": 400,
        "cached_tokens": 200,
        "output_tokens": 40,
        "cost_usd": 2.0,
        "unmeasured": {},
        "outcomes": {"answered": 2, "unparseable": 1, "refused": 1, "error": 0},
        "sums": {"input_tokens": 400, "cached_tokens": 200, "output_tokens": 40, "cost_usd": 2.0},
    }


def test_one_unmeasured_answer_leaves_the_figure_open_and_is_counted() -> None:
    spending = Spending()
    spending.add(call())
    spending.add(call(cost_usd=None))
    spending.add(call())
    assert spending.figure("cost_usd") is None
    assert spending.figure("input_tokens") == 300
    assert spending.sums["cost_usd"] == 1.0
    assert spending.as_recorded()["unmeasured"] == {"cost_usd": 1}
    # It is at least what was measured; nothing is measured of a model without a price.
    assert (spending.least("cost_usd"), spending.least("input_tokens")) == (1.0, 300)
    unpriced = Spending()
    unpriced.add(call(cost_usd=None))
    assert unpriced.least("cost_usd") is None


def test_failed_calls_leave_nothing_open() -> None:
    spending = Spending()
    spending.add(call("error", input_tokens=None, cached_tokens=None, output_tokens=None, cost_usd=None))
    assert (spending.calls, spending.figure("cost_usd"), spending.unmeasured) == (1, 0, {})


def test_what_was_paid_before_is_not_paid_again() -> None:
    spending = Spending()
    spending.add(call(replayed=True))
    assert (spending.calls, spending.replayed, spending.figure("input_tokens")) == (0, 1, 0)
    assert not spending.outcomes


def test_an_earlier_session_is_taken_up_from_its_record() -> None:
    spending = Spending()
    spending.add(call())
    spending.add(call(cached_tokens=None))
    spending.add(call(replayed=True))
    recorded = {"totals": spending.as_recorded(), **spending.served.as_recorded()}
    written = orjson.loads(orjson.dumps(recorded))
    again = Spending.recorded(RunManifest.model_validate(written))
    assert again == spending
    again.add(call())
    assert again.figure("input_tokens") == 300
    assert again.figure("cached_tokens") is None


def test_of_an_earlier_session_that_left_nothing_there_is_nothing() -> None:
    assert Spending.recorded(RunManifest()) == Spending()


def test_the_time_to_go_is_measured_by_this_session(monkeypatch: pytest.MonkeyPatch) -> None:
    progress = Progress(total=10, began=100.0)
    progress.statuses.update(ok=4)
    progress.resumed = 4
    monkeypatch.setattr("time.monotonic", lambda: 130.0)
    assert progress.eta_s() is None
    progress.statuses.update(ok=2, failed=1)
    progress.note_finished()
    assert progress.eta_s() == pytest.approx(30.0)
    assert (progress.done, progress.failures) == (7, 1)


def test_replays_are_not_calls_of_this_session() -> None:
    progress = Progress()
    progress.add_call(call())
    progress.add_call(call(replayed=True))
    assert progress.calls_now == 1
