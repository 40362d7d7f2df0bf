"""Call records as lines, and what they sum up to."""

from __future__ import annotations

from dataclasses import asdict, fields
from datetime import UTC, datetime
from typing import Any

import orjson
import pytest

from uncanny.client.calls import CallRecord, dump_calls, usage
from uncanny.schema import Usage

FIELDS = {"input_tokens": 100, "cached_tokens": 60, "output_tokens": 10, "cost_usd": 0.25}


def call(**changes: Any) -> CallRecord:
    content: dict[str, Any] = {
        "image": "a.png",
        "agent": "ObjectPerceiver",
        "step": 1,
        "object": None,
        "sample": 0,
        "model": "script/one",
        "prompt": "perceive_1@0",
        "asked": "?",
        "sees_image": True,
        "attempt": 1,
        "repair": 0,
        "outcome": "answered",
        "answer": "ä\n",
        "detail": None,
        "latency_s": 0.5,
        "started": datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC),
    }
    return CallRecord(**content | FIELDS | changes)


def test_figures_are_summed() -> None:
    assert usage([call(), call(cached_tokens=0, cost_usd=0.0)]) == Usage(
        calls=2, input_tokens=200, cached_tokens=60, output_tokens=20, cost_usd=0.25
    )


def test_no_calls_are_no_usage() -> None:
    assert usage([]) == Usage(calls=0, input_tokens=0, cached_tokens=0, output_tokens=0, cost_usd=0)


@pytest.mark.parametrize("name", FIELDS)
@pytest.mark.parametrize("outcome", ["answered", "unparseable", "refused"])
@pytest.mark.parametrize("place", [0, 1, 2])
def test_one_unmeasured_figure_leaves_its_sum_unmeasured_and_the_others_alone(
    name: str, outcome: str, place: int
) -> None:
    calls = [call(), call()]
    calls.insert(place, call(outcome=outcome, **{name: None}))
    total = usage(calls)
    assert total.calls == 3
    for other, value in FIELDS.items():
        assert getattr(total, other) == (None if other == name else 3 * value)


def test_failed_calls_are_counted_and_used_nothing() -> None:
    failed = call(outcome="error", answer="", **dict.fromkeys(FIELDS))
    assert usage([failed, call(), failed]) == Usage(calls=3, **FIELDS)  # type: ignore[arg-type]
    assert usage([failed]).calls == 1


def test_each_call_is_one_line() -> None:
    lines = dump_calls([call(), call(object="cup\n2", replayed=True)]).splitlines(keepends=True)
    assert [line[-1:] for line in lines] == [b"\n", b"\n"]
    first, second = map(orjson.loads, lines)
    assert list(first) == [field.name for field in fields(CallRecord)][:-1]
    expected = asdict(call()) | {"started": "2026-01-02T03:04:05+00:00"}
    assert first | {"objects": None} == expected
    assert (second["object"], second["replayed"]) == ("cup\n2", True)


def test_only_a_call_about_several_objects_names_them() -> None:
    odd = ("cup", 'a "jug"', '","objects":null}')
    lines = dump_calls([call(objects=odd), call(), call(request_id='","objects":null}\n')]).splitlines()
    batch, alone, named = map(orjson.loads, lines)
    assert batch["objects"] == list(odd)
    assert "objects" not in alone
    assert (named["request_id"], "objects" in named) == ('","objects":null}\n', False)
    assert CallRecord.read(batch) == call(objects=odd)
    assert CallRecord.read(alone) == call()


def test_the_cached_form_and_what_a_replay_adds_make_up_a_whole_record() -> None:
    added = {"image", "agent", "step", "object", "sample", "asked", "sees_image", "objects", "replayed"}
    names = {field.name for field in fields(CallRecord)}
    assert set(call().cached_form()) == names - added
