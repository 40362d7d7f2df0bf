"""Leaderboards: the order, intervals, which neighbours are alike, pairing, and two assessors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.eval.audit.annotation_sets import left_out, record, run_folder, written
from uncanny.errors import UsageError
from uncanny.eval.audit.run import audit
from uncanny.eval.audit.score.resample import FEWEST_SHARED
from uncanny.eval.audit.score.result import ALL_PAIRS_UP_TO, AuditResult, Leaderboard

Sets = dict[str, list[dict[str, Any]]]


def scored(folder: Path, sets: Sets, **options: Any) -> AuditResult:
    places = {name: written(folder / f"{name}.jsonl", records) for name, records in sets.items()}
    options = {"resamples": 500} | options
    return audit(places, **options)


def drawn(images: int, rate: float, seed: int, shared: float = 0.0, first: int = 0) -> list[dict[str, Any]]:
    """`shared` prompts' difficulty, the same for every set with as many images; severities around 30."""
    difficulty = np.random.default_rng(0).gamma(1.0, 1.0, images)
    rng = np.random.default_rng(seed)
    counts = rng.poisson(rate * (1 - shared + shared * difficulty))
    return [
        record(f"g{seed}/{first + index:04}.png", rng.integers(10, 50, count).tolist())
        for index, count in enumerate(counts)
    ]


def test_order_and_figures_by_hand(tmp_path: Path) -> None:
    sets = {
        "bad": [record("a.png", [20, 50]), record("b.png", [0])],
        "good": [record("a.png", [60]), record("b.png")],
        "none": [left_out("a.png", "failed")],
    }
    leaderboard = scored(tmp_path, sets).leaderboard
    assert leaderboard.order == ("good", "bad", "none")
    bad = leaderboard.generators["bad"]
    assert (bad.images, bad.anomalies, bad.flawless) == (2, 3, 0)
    values = [bad.metric(figure).value for figure in ("mai", "af", "cap", "u_mean")]
    assert values == pytest.approx([1.15, 1.5, 1.725, 2.3 / 3])
    assert leaderboard.generators["good"].u_mean.value == pytest.approx(0.4)


def test_a_generator_without_one_whole_annotation_has_no_figures(tmp_path: Path) -> None:
    sets = {"a": [left_out("a.png", "failed")], "b": [record("b.png")], "c": [record("c.png")]}
    leaderboard = scored(tmp_path, sets, pair_by="stem").leaderboard
    score = leaderboard.generators["a"]
    assert [score.metric(figure).value for figure in ("mai", "af", "cap", "u_mean")] == [None] * 4
    assert [score.metric(figure).interval for figure in ("mai", "af", "cap", "u_mean")] == [None] * 4
    assert leaderboard.order[-1] == "a"
    assert {(each.first, each.second) for each in leaderboard.differences} == {("b", "c")}


def test_flawless_images_have_no_mean_of_anomalies(tmp_path: Path) -> None:
    score = scored(tmp_path, {"a": [record("a.png"), record("b.png")]}).leaderboard.generators["a"]
    assert (score.mai.value, score.mai.interval) == (0, None)
    assert (score.u_mean.value, score.u_mean.interval) == (None, None)


def test_few_images_have_no_interval_and_nothing_is_told_apart(tmp_path: Path) -> None:
    """However far their figures are apart; ten are enough where they are."""
    for number in (2, 5, 9, 10):
        sets = {
            "bad": [record(f"{index}.png", [0] * (6 + index % 3)) for index in range(number)],
            "good": [record(f"{index}.png", [60] * (index % 2)) for index in range(number)],
            "many": drawn(200, 2, 1),
        }
        for pair_by in (None, "stem"):
            leaderboard = scored(tmp_path, sets, pair_by=pair_by).leaderboard
            good = leaderboard.generators["good"]
            enough = number >= FEWEST_SHARED
            assert (good.cap.interval is not None, good.mai.interval is not None) == (enough, enough)
            assert good.faults.visible.interval is not None
            assert good.u_mean.interval is None  # five images with anomalies at most
            difference = leaderboard.difference("good", "bad")
            assert difference is not None
            assert difference.apart is (True if enough else None)
            # The lowest CAP of all is first only where it rests on enough.
            assert leaderboard.order == ("good", "many", "bad")
            assert leaderboard.ranked == (leaderboard.order if enough else ("many", "good", "bad"))
            notices = [each for each in leaderboard.notices if each.startswith("Fewer than ten")]
            assert [f"bad ({number}), good ({number})." in each for each in notices] == [True] * (not enough)
            assert "Fewer than ten" not in str(scored(tmp_path, sets, resamples=0))


def test_what_is_alike_in_every_image_has_no_interval(tmp_path: Path) -> None:
    """It would have no width, however few the images. Others are told apart from it by how they vary."""
    sets = {
        "flawless": [record(f"{index}.png") for index in range(40)],
        "as well": [record(f"{index}.png") for index in range(40)],
        "once": [record(f"{index}.png", [10]) for index in range(40)],
        "bad": drawn(40, 5, 1),
    }
    leaderboard = scored(tmp_path, sets).leaderboard
    for name in ("flawless", "once"):
        score = leaderboard.generators[name]
        assert [score.metric(figure).interval for figure in ("mai", "af", "cap", "u_mean")] == [None] * 4
        assert any(f"{name}: MAI and AF are alike in all 40" in notice for notice in leaderboard.notices)
    ranked = leaderboard.order
    assert [leaderboard.difference(ranked[0], name).apart for name in ranked[1:]] == [False, True, True]  # type: ignore[union-attr]


def test_among_many_pairs_one_has_to_be_clearer(tmp_path: Path) -> None:
    """Fifteen generators that are alike: some interval leaves 0 out, and none is told apart."""
    sets = {f"g{index:02}": drawn(60, 3, 100 + index) for index in range(15)}
    differences = scored(tmp_path, sets, resamples=1000).leaderboard.differences
    assert any(each.cap.excludes_zero for each in differences)
    assert not any(each.apart for each in differences)
    unclear = next(each for each in differences if each.cap.excludes_zero)
    assert "do not differ significantly" in str(unclear)
    assert "corrected p = " in str(unclear)
    (alone,) = scored(
        tmp_path, {name: sets[name] for name in (unclear.first, unclear.second)}
    ).leaderboard.differences
    assert (alone.adjusted_p or 0) < (unclear.adjusted_p or 0)


def test_one_image_has_no_interval(tmp_path: Path) -> None:
    leaderboard = scored(tmp_path, {"a": [record("a.png", [5])], "b": [record("b.png", [9])]}).leaderboard
    assert leaderboard.generators["a"].cap.interval is None
    (difference,) = leaderboard.differences
    assert (difference.cap.interval, difference.apart) == (None, None)
    assert leaderboard.alike == (difference,)


def test_over_one_percent_left_out_is_a_notice(tmp_path: Path) -> None:
    whole = [record(f"{index}.png", [10] * (index % 2)) for index in range(99)]
    leaderboard = scored(tmp_path, {"a": [*whole, left_out("x.png", "failed")]}).leaderboard
    assert leaderboard.generators["a"].left_out_share == 0.01
    assert leaderboard.notices == ()
    leaderboard = scored(
        tmp_path, {"a": [*whole, left_out("x.png", "failed"), left_out("y.png", "partial")]}
    ).leaderboard
    assert leaderboard.notices == (
        "a: 2 of 101 images are left out (1 failed, 1 partial); the figures are of the others.",
    )


def test_intervals_hold_the_value_and_depend_on_nothing_else_in_the_audit(tmp_path: Path) -> None:
    sets = {"a": drawn(80, 4, 1), "b": drawn(80, 2, 2)}
    leaderboard = scored(tmp_path, sets).leaderboard
    for score in leaderboard.generators.values():
        for figure in ("mai", "af", "cap", "u_mean"):
            estimate = score.metric(figure)
            assert estimate.interval is not None
            assert estimate.value is not None
            assert estimate.interval[0] < estimate.value < estimate.interval[1]
    alone = scored(tmp_path, {"b": sets["b"]}).leaderboard
    assert alone.generators["b"] == leaderboard.generators["b"]
    assert scored(tmp_path, sets) == scored(tmp_path, sets)
    assert scored(tmp_path, sets, seed=1).leaderboard.generators["a"].cap != leaderboard.generators["a"].cap


def test_far_apart_and_alike(tmp_path: Path) -> None:
    sets = {"worse": drawn(120, 6, 1), "like worse": drawn(120, 6, 2), "better": drawn(120, 1, 3)}
    leaderboard = scored(tmp_path, sets).leaderboard
    assert leaderboard.order[0] == "better"
    assert [(each.first, each.second) for each in leaderboard.alike] == [leaderboard.order[1:]]
    for each in leaderboard.differences:
        assert each.cap.value is not None
        assert each.cap.value <= 0
        assert each.paired is None
        assert each.apart == ("better" in (each.first, each.second))


def test_pairing_tells_apart_what_is_alike_without(tmp_path: Path) -> None:
    """Prompts differ much, generators little."""
    sets = {"a": drawn(200, 5, 1, shared=1.0), "b": drawn(200, 6, 2, shared=1.0)}
    (unpaired,) = scored(tmp_path, sets).leaderboard.differences
    (paired,) = scored(tmp_path, sets, pair_by="stem").leaderboard.differences
    assert (unpaired.paired, paired.paired) == (None, 200)
    assert paired.cap.value == unpaired.cap.value
    assert (unpaired.apart, paired.apart) == (False, True)


def test_a_paired_difference_is_that_of_both_sums_in_the_same_resamples(tmp_path: Path) -> None:
    sets = {"a": drawn(60, 5, 1), "b": drawn(60, 3, 2)}
    result = scored(tmp_path, sets, pair_by="stem", resamples=2000)
    (difference,) = result.leaderboard.differences
    counts = {
        name: np.array([len(each["anomalies"]) for each in records], float) for name, records in sets.items()
    }
    rows = np.random.default_rng(5).integers(60, size=(20_000, 60))
    plain = counts[difference.first][rows].mean(axis=1) - counts[difference.second][rows].mean(axis=1)
    low, high = np.quantile(plain, [0.025, 0.975])
    assert difference.af.interval == pytest.approx((low, high), abs=0.06 * (high - low))


def test_only_shared_prompts_are_compared(tmp_path: Path) -> None:
    """Without the prompts of its own, which are all bad, b is better than a."""
    own = [record(f"own/{index}.png", [0] * 9) for index in range(40)]
    sets = {"a": drawn(50, 3, 1), "b": [*drawn(50, 1, 2), *own]}
    leaderboard = scored(tmp_path, sets, pair_by="stem").leaderboard
    (difference,) = leaderboard.differences
    assert (difference.first, difference.second, difference.paired) == ("a", "b", 50)
    assert difference.af.value == pytest.approx(
        np.mean([len(each["anomalies"]) for each in sets["a"]])
        - np.mean([len(each["anomalies"]) for each in sets["b"][:50]])
    )
    assert difference.cap.interval is not None
    assert difference.cap.interval[0] > 0
    assert leaderboard.generators["b"].prompts == 90


def test_too_few_shared_prompts_are_no_pairs(tmp_path: Path) -> None:
    number = FEWEST_SHARED - 1
    sets = {"a": drawn(60, 3, 1), "b": drawn(60, 3, 2, first=60 - number)}
    (difference,) = scored(tmp_path, sets, pair_by="stem").leaderboard.differences
    assert difference.paired is None
    assert difference.cap.interval is not None
    sets["b"] = drawn(60, 3, 2, first=60 - number - 1)
    (difference,) = scored(tmp_path, sets, pair_by="stem").leaderboard.differences
    assert difference.paired == FEWEST_SHARED


def test_nothing_shared_is_said(tmp_path: Path) -> None:
    sets = {"a": drawn(20, 3, 1), "b": drawn(20, 3, 2, first=500)}
    result = scored(tmp_path, sets, pair_by="stem")
    assert any("share a prompt" in notice for notice in result.leaderboard.notices)
    assert all(each.paired is None for each in result.leaderboard.differences)
    assert not any("share a prompt" in notice for notice in scored(tmp_path, sets).leaderboard.notices)


def test_several_images_of_a_prompt_stay_together(tmp_path: Path) -> None:
    """Five equal images a prompt tell no more than one."""
    single = [record(f"0/{index}.png", [10] * (index % 7)) for index in range(60)]
    five = [record(f"{copy}/{index}.png", [10] * (index % 7)) for copy in range(5) for index in range(60)]
    alone = scored(tmp_path, {"a": single}, pair_by="stem", resamples=4000).leaderboard.generators["a"]
    together = scored(tmp_path, {"a": five}, pair_by="stem", resamples=4000).leaderboard.generators["a"]
    apart = scored(tmp_path, {"a": five}, resamples=4000).leaderboard.generators["a"]
    assert together.prompts == 60
    widths = [float(np.ptp(score.cap.interval or ())) for score in (alone, together, apart)]
    assert widths[1] == pytest.approx(widths[0], rel=0.05)
    assert widths[2] < 0.6 * widths[0]


def test_of_many_generators_only_neighbours_are_compared(tmp_path: Path) -> None:
    def leaderboard(number: int) -> Leaderboard:
        sets = {f"g{index}": drawn(5, 2, index) for index in range(number)}
        return scored(tmp_path, sets, resamples=20, pair_by="stem").leaderboard

    most = ALL_PAIRS_UP_TO
    assert len(leaderboard(most).differences) == most * (most - 1) // 2
    many = leaderboard(most + 1)
    assert [(each.first, each.second) for each in many.differences] == list(
        zip(many.order, many.order[1:], strict=False)
    )


def test_no_resamples_no_intervals(tmp_path: Path) -> None:
    leaderboard = scored(tmp_path, {"a": drawn(9, 2, 1), "b": drawn(9, 2, 2)}, resamples=0).leaderboard
    assert leaderboard.generators["a"].cap.interval is None
    assert [each.apart for each in leaderboard.differences] == [None]


def test_two_assessors(tmp_path: Path) -> None:
    def sets(rates: dict[str, float], seed: int) -> Sets:
        return {name: drawn(40, rate, seed + index) for index, (name, rate) in enumerate(rates.items())}

    first = {"a": 1.0, "b": 3.0, "c": 6.0, "only first": 9.0}
    second = {"c": 1.0, "b": 3.0, "a": 6.0}
    places = {name: written(tmp_path / "1" / name, records) for name, records in sets(first, 1).items()}
    others = {name: written(tmp_path / "2" / name, records) for name, records in sets(second, 10).items()}
    result = audit(places, against=others, resamples=20)
    assert result.against is not None
    assert result.against.order == ("c", "b", "a")
    assert [each.metric for each in result.agreement] == ["mai", "af", "cap"]
    for each in result.agreement:
        assert each.generators == 3
        assert [each.spearman, each.kendall] == pytest.approx([-1, -1])
    del others["a"], others["b"]
    with pytest.raises(UsageError, match="share 1 generator"):
        audit(places, against=others, resamples=0)


def test_the_guard_is_there_for_each_assessor_by_itself(tmp_path: Path) -> None:
    """Two assessors are two models on purpose; within one, all have to be made alike."""
    places = {name: written(tmp_path / name, drawn(5, 2, 1)) for name in "ab"}
    other = [each | {"model": "vllm/other"} for each in drawn(5, 2, 1)]
    others = {name: written(tmp_path / f"{name}2", other) for name in "ab"}
    assert audit(places, against=others, resamples=0).leaderboard.mixed == ()
    others["b"] = places["b"]
    with pytest.raises(UsageError, match="models: a: vllm/other; b: openai/any"):
        audit(places, against=others, resamples=0)


def test_unfinished_runs_are_noticed(tmp_path: Path) -> None:
    run = run_folder(tmp_path / "run", [record("a.png")], state="interrupted")
    assert audit({"a": run}, resamples=0).leaderboard.notices == (
        "a: its run is not finished (interrupted).",
    )
