"""How many items tell two models apart: `uncanny mcq plan`."""

from __future__ import annotations

import csv
from pathlib import Path

import orjson
import pytest

from tests.cli.complaints import one_line
from tests.runs.e2e import uncanny_here
from uncanny import mcq
from uncanny.errors import UsageError
from uncanny.eval.metrics.paired import independent_discordance, items_needed, mcnemar_power

PAIRS = [
    {"models": ["a", "b"], "all_q1_4": {"n": 100, "first_only": 12, "second_only": 8}},
    {"models": ["a", "c"], "all_q1_4": {"n": 60, "first_only": 2, "second_only": 10}},
    {"models": ["a", "baseline/random"], "all_q1_4": {"n": 100, "first_only": 90, "second_only": 0}},
    {"models": ["b", "c"], "all_q1_4": {"n": 0, "first_only": 0, "second_only": 0}},
]


def test_without_knowledge_models_err_independently() -> None:
    plan = mcq.plan(difference=0.1, accuracy=0.6, items=500)
    apart = independent_discordance(0.6, 0.1)
    assert plan.needed == items_needed(0.1, apart)
    assert plan.discordant is None
    assert "independently, the worse one right on 60 %" in plan.source
    assert [each.difference for each in plan.differences] == [0.01, 0.02, 0.03, 0.05, 0.1]
    assert plan.differences[-1].power == mcnemar_power(500, 0.1, apart)
    assert plan.smallest is not None
    assert 0.05 < plan.smallest < 0.1
    assert "10 points apart take" in str(plan)


def test_the_better_model_may_be_right_on_all_items() -> None:
    for accuracy, difference in ((0.7, 0.3), (0.8, 0.2), (0.9, 0.1)):
        plan = mcq.plan(accuracy=accuracy, difference=difference)
        assert plan.needed is not None
        assert plan.differences[-1].discordant == pytest.approx(difference)


def test_discordance_comes_from_earlier_scores_without_baselines(tmp_path: Path) -> None:
    plan = mcq.plan(difference=0.05, scores={"mcnemar": PAIRS})
    assert plan.discordant == 32 / 160
    assert "2 pairs of models" in plan.source
    assert all(each.difference <= 0.2 for each in plan.differences)
    file = tmp_path / "scores.json"
    file.write_bytes(orjson.dumps({"mcnemar": PAIRS}))
    assert mcq.plan(difference=0.05, scores=file) == plan
    with pytest.raises(UsageError, match="no two models are compared on q1"):
        mcq.plan(scores=file, question="q1")
    file.write_text("no")
    with pytest.raises(UsageError, match="is not valid JSON"):
        mcq.plan(scores=file)


def test_many_models_are_tested_at_a_level_for_each_pair() -> None:
    plan = mcq.plan(difference=0.1, discordant=0.3, models=5)
    assert (plan.pairs, plan.alpha) == (10, 0.05 / 10)
    assert plan.needed == items_needed(0.1, 0.3, alpha=0.005)
    assert "10 pairs" in str(plan)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"difference": 0.5}, "cannot be 50 points better"),
        ({"discordant": 0.02}, "cannot be 3 points apart"),
        ({"power": 1}, "power. must be less than 1, not 1"),
        ({"difference": 3}, "difference. must be less than 1, not 3"),
        ({"difference": float("nan")}, "difference. must be a finite number"),
        ({"accuracy": "high"}, "accuracy. must be a number"),
        ({"models": 1}, "models. must be at least 2"),
        ({"items": 2.5}, "items. must be a whole number"),
        ({"question": "q5"}, "question. must be 'q1', .* or 'all_q1_4', not 'q5'"),
    ],
)
def test_what_cannot_be_is_said(options: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        mcq.plan(**options)  # type: ignore[arg-type]


def test_a_small_level_is_not_called_0() -> None:
    (table,) = mcq.plan(models=1_000).tables()
    assert table.title is not None
    assert table.title.endswith("at a level of 0.00001 %.")


def test_a_small_difference_is_not_called_0() -> None:
    (table,) = mcq.plan(difference=0.0003, accuracy=0.006).tables()
    assert [row[0].text for row in table.shown[:2]] == ["0.03", "1.00"]


def test_the_command_is_the_function(tmp_path: Path) -> None:
    table = tmp_path / "plan.csv"
    command = ("mcq", "plan", "--difference", "0.1", "--discordant", "0.3", "--items", "200")
    done = uncanny_here(*command, "--csv", table, "--json", tmp_path / "plan.json")
    plan = mcq.plan(difference=0.1, discordant=0.3, items=200)
    assert done.out == f"{plan}\n"
    assert orjson.loads((tmp_path / "plan.json").read_bytes()) == plan.to_json()
    rows = list(csv.reader(table.read_text().splitlines()))
    assert rows[0] == ["difference", "differ on", "items", "power of 200"]
    assert rows[-1][:3] == ["0.1", "0.3", "249"]
    assert uncanny_here(*command, "--csv", table).code == 0  # over its own
    table.write_text("mine\n")
    one_line(uncanny_here(*command, "--csv", table), "already exists")
    one_line(uncanny_here("mcq", "plan", "--difference", "0.7"), "cannot be 70 points better", "--difference")


@pytest.mark.slow
def test_absurd_numbers_have_an_answer() -> None:
    assert mcq.plan(difference=1e-308).needed is None
    assert mcq.plan(power=1e-308).needed is not None
    assert mcq.plan(power=0.9999999999999999).needed is not None
    low = mcq.plan(difference=0.00001, power=0.01).needed
    assert low is not None
    assert low < 1_000
    with pytest.raises(UsageError, match=r"alpha. must be more than 1e-14"):
        mcq.plan(alpha=1e-300)
    endless = {
        "mcnemar": [
            {"models": ["a", "b"], "all_q1_4": {"n": float("inf"), "first_only": 1, "second_only": 1}}
        ]
    }
    with pytest.raises(UsageError, match="no two models"):
        mcq.plan(scores=endless)
