"""Images that belong together count together in every score: intervals, paired tests, words, JSON."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import uncanny
from tests.eval.compare.made_runs import anomaly, as_records, record
from tests.eval.mcq.made_sets import answers_to, made_set
from tests.eval.realism.made_verdicts import line, written
from uncanny.errors import UsageError
from uncanny.eval.common.tables.table import TableResult
from uncanny.eval.detect.data import SourceTruth
from uncanny.eval.detect.score import score as score_detections
from uncanny.eval.mcq.data.items import Item
from uncanny.eval.mcq.score.score import score as score_mcq
from uncanny.eval.metrics.detection import accuracy
from uncanny.eval.metrics.intervals import clustered_interval, wilson_interval
from uncanny.eval.metrics.significance import mcnemar_exact
from uncanny.schema import Detection

GROUPS, EACH = 20, 3
PLACES = [(group, member) for group in range(GROUPS) for member in range(EACH)]
# All images of a group fare alike: three of four groups well.
WELL = [group % 4 != 0 for group, _ in PLACES]
TOGETHER = clustered_interval([EACH * (group % 4 != 0) for group in range(GROUPS)], [EACH] * GROUPS)
APART = wilson_interval(sum(WELL), len(WELL))
Interval = tuple[float, float] | None


def mcq(_: Path, by: str | None) -> tuple[TableResult, Interval]:
    items = [
        Item.model_validate({**item.model_dump(), "pair_id": f"p{group}", "scene": group})
        for item, (group, _) in zip(made_set({"art_dg": len(PLACES)}), PLACES, strict=True)
    ]
    answers = [
        answer
        for item, well in zip(items, WELL, strict=True)
        for answer in answers_to(item, "1111" if well else "0000")
    ]
    scores = score_mcq(items, answers, resamples=50, group_by=by)
    (model,) = scores.models.values()
    return scores, model.splits["art_dg"].shares["q1"].interval


def realism(folder: Path, by: str | None) -> tuple[TableResult, Interval]:
    sides = [
        {"original": {"image": f"o{group}.png"}, "edited": {"image": f"{group}-{n}.png"}}
        for group, n in PLACES
    ]
    lines = [
        line(f"p{number}", ("no", None, None), "non_deceiving", None, None, columns={"scene": group}, **side)
        if well
        else line(
            f"p{number}", ("yes", "both", "both"), "deceiving", 4, None, columns={"scene": group}, **side
        )
        for number, (side, well, (group, _)) in enumerate(zip(sides, WELL, PLACES, strict=True))
    ]
    path = written(folder / "v.jsonl", lines)
    scores = uncanny.realism.score({"m": path}, resamples=50, group_by=by)
    return scores, scores.sets["m"].overall.labels["non_deceiving"].interval


def semantic(_: Path, by: str | None) -> tuple[TableResult, Interval]:
    names = [(f"{group}-{n}.png", group, well) for (group, n), well in zip(PLACES, WELL, strict=True)]
    found = [{"name": "cup", "phenomenon": "Two handles grow here.", "reasoning": "A cup has one."}]
    truth = [{"image": image, "anomalies": found, "pair": group, "scene": group} for image, group, _ in names]
    seen = [{"image": image, "anomalies": found if well else []} for image, _, well in names]
    scores = uncanny.semantic.score({"m": seen}, truth=truth, similarity="chrf", resamples=2000, group_by=by)
    return scores, scores["m"].protocols["release"].semap["full"].interval


def artifacts(_: Path, by: str | None) -> tuple[TableResult, Interval]:
    base = {"width": 9, "height": 9, "source": "generated"}
    box = [{"category": "semantics", "box": [1, 1, 5, 5]}]
    names = [(f"{group}-{n}.png", group, well) for (group, n), well in zip(PLACES, WELL, strict=True)]
    truth = [
        {**base, "image": image, "regions": box, "original": f"o{group}.png", "scene": group}
        for image, group, _ in names
    ]
    seen = [{**base, "image": image, "regions": box if well else []} for image, _, well in names]
    scores = uncanny.artifacts.score({"m": seen}, truth=truth, resamples=2000, group_by=by)
    return scores, scores["m"].scopes["semantics"].pixel_mean["iou"].interval


SCORES: list[Callable[[Path, str | None], tuple[TableResult, Interval]]] = [mcq, realism, semantic, artifacts]
scores_of = pytest.mark.parametrize("score", SCORES, ids=lambda score: score.__name__)


def groups_json(result: Any) -> dict[str, Any] | None:
    groups: dict[str, Any] | None = result.to_json()["about"]["intervals"]["groups"]
    return groups


@scores_of
def test_images_that_fare_alike_say_less_together(
    score: Callable[[Path, str | None], tuple[TableResult, Interval]], tmp_path: Path
) -> None:
    result, interval = score(tmp_path, None)
    apart, narrow = score(tmp_path, "image")
    assert interval is not None
    assert narrow is not None
    # Of groups of three that are alike about √3 as wide, and more for Student's t.
    assert 1.4 < (interval[1] - interval[0]) / (narrow[1] - narrow[0]) < 2.2
    assert (groups_json(result) or {})["groups"] == GROUPS
    assert (groups_json(result) or {})["images"] == len(PLACES)
    assert f"come in {GROUPS} groups" in " ".join(str(result).split())
    assert groups_json(apart) is None
    assert "groups (by" not in str(apart)
    by_scene, same = score(tmp_path, "scene")
    assert same == pytest.approx(interval)
    assert (groups_json(by_scene) or {})["by"] == "scene"
    with pytest.raises(UsageError, match=r"group_by.*no (image|pair).* has the column 'scenery'"):
        score(tmp_path, "scenery")


def test_shares_have_the_interval_of_the_effective_number(tmp_path: Path) -> None:
    assert mcq(tmp_path, None)[1] == pytest.approx(TOGETHER)
    assert realism(tmp_path, None)[1] == pytest.approx(TOGETHER)
    assert mcq(tmp_path, "image")[1] == pytest.approx(APART)


def detections(model: str, wrong: set[int]) -> list[Detection]:
    return [
        Detection.model_validate(
            {
                "image": f"{group}-{n}.png",
                "sha256": f"{group:032x}{n:032x}",
                "width": 1,
                "height": 1,
                "status": "ok",
                "model": model,
                "prompts": "p",
                "verdict": "yes",
                "source": "real" if group in wrong else "generated",
                "errors": [],
                "columns": {"pair": group},
            }
        )
        for group, n in PLACES
    ]


def test_verdicts_on_a_pair_count_together() -> None:
    truth = SourceTruth({f"{group}-{n}.png": "generated" for group, n in PLACES}, "t.jsonl")
    found = score_detections(detections("m", {group for group in range(GROUPS) if group % 4 == 0}), truth)
    assert found.accuracy.interval == pytest.approx(TOGETHER)
    assert found.shares("generated")["recall"].interval == pytest.approx(TOGETHER)
    assert found.to_json()["groups"] == {"by": "pair", "groups": GROUPS, "images": len(PLACES)}
    assert f"come in {GROUPS} groups (by pair)" in " ".join(str(found).split())
    assert accuracy([("real", "real")] * 4).interval() == wilson_interval(4, 4)


def test_two_models_differ_on_pairs_not_on_images() -> None:
    items = made_set({"art_dg": len(PLACES)})
    paired = [
        Item.model_validate({**item.model_dump(), "pair_id": f"p{group}"})
        for item, (group, _) in zip(items, PLACES, strict=True)
    ]
    answers = {
        name: [
            a
            for item, well in zip(paired, wells, strict=True)
            for a in answers_to(item, "1111" if well else "0000")
        ]
        for name, wells in (("good", [True] * len(PLACES)), ("poor", WELL))
    }
    (*_, together) = score_mcq(paired, answers, resamples=0).mcnemar
    (*_, apart) = score_mcq(paired, answers, resamples=0, group_by="image").mcnemar
    lost = GROUPS // 4
    assert together.p_value == pytest.approx(2.0 ** (1 - lost))
    assert apart.p_value == pytest.approx(float(mcnemar_exact(EACH * lost, 0)))


def test_runs_are_compared_over_groups() -> None:
    runs = {
        name: as_records(
            [
                {**record(f"{group}-{n}.png", [anomaly("Cup")] if well else []), "columns": {"pair": group}}
                for (group, n), well in zip(PLACES, wells, strict=True)
            ]
        )
        for name, wells in (("before", [True] * len(PLACES)), ("after", WELL))
    }
    result = uncanny.compare(runs, resamples=2000)
    assert (groups_json(result) or {}) == {"by": "pair", "groups": GROUPS, "images": len(PLACES)}
    plain = {
        name: [each.model_copy(update={"columns": {}}) for each in records] for name, records in runs.items()
    }
    apart = uncanny.compare(plain, resamples=2000)
    widths = [
        high - low
        for each in (result, apart)
        for low, high in [each.comparisons[0].figures["af"].difference.interval or (0, 0)]
    ]
    assert 1.4 < widths[0] / widths[1] < 2.2
    assert groups_json(apart) is None


def test_figures_that_are_1_on_all_images_count_groups() -> None:
    """Two hundred images of twenty originals, ten each of them generated and real, all told apart."""
    base = {"width": 9, "height": 9, "regions": []}
    truth = [
        {**base, "image": f"{g}-{n}.png", "original": f"o{g}.png", "source": ["generated", "real"][g % 2]}
        for g in range(20)
        for n in range(10)
    ]
    seen = [{**base, "image": each["image"], "source": each["source"]} for each in truth]
    together, apart = (
        uncanny.artifacts.score({"m": seen}, truth=truth, resamples=100, group_by=by)["m"].aj.figures
        for by in (None, "image")
    )
    assert {each.interval for each in together.values()} == {wilson_interval(10, 10)}
    assert {each.interval for each in apart.values()} == {wilson_interval(100, 100)}


def test_the_accuracy_of_a_source_counts_groups() -> None:
    names = [(f"{group}-{n}.png", group, well) for (group, n), well in zip(PLACES, WELL, strict=True)]
    known = {"anomalies": [], "source": "generated"}
    truth = [{**known, "image": image, "pair": group} for image, group, _ in names]
    seen = [{**known, "image": image, "source": "generated" if well else "real"} for image, _, well in names]
    together, apart = (
        uncanny.semantic.score({"m": seen}, truth=truth, similarity="chrf", resamples=50, group_by=by)[
            "m"
        ].accuracy
        for by in (None, "image")
    )
    assert together is not None
    assert apart is not None
    assert together.estimate.interval == pytest.approx(TOGETHER)
    assert apart.estimate.interval == pytest.approx(APART)


def test_position_bias_counts_originals(tmp_path: Path) -> None:
    """Forty edits of two originals by a judge that always chooses the first place are two cases."""
    lines = [
        line(
            f"p{n}",
            ("yes", "first", "first"),
            "deceiving",
            1,
            None,
            original={"image": f"o{n % 2}.png"},
            edited={"image": f"{n}.png"},
        )
        for n in range(40)
    ]
    path = written(tmp_path / "v.jsonl", lines)
    together, apart = (
        uncanny.realism.score({"m": path}, resamples=50, group_by=by).sets["m"].overall.position_bias
        for by in (None, "image")
    )
    assert (together.checks, together.p_value, together.interval) == (80, 0.5, wilson_interval(2, 2))
    assert apart.p_value == pytest.approx(2 * 0.5**80)


def test_a_column_that_only_some_images_have_is_said_to_be_so() -> None:
    base = {"width": 9, "height": 9, "regions": [], "source": "generated"}
    truth = [{**base, "image": f"{n}.png", **({"scene": n % 4} if n < 20 else {})} for n in range(30)]
    scores = uncanny.artifacts.score({"m": truth}, truth=truth, resamples=20, group_by="scene")
    assert groups_json(scores) == {"by": "scene", "groups": 14, "images": 30}
    said = " ".join(str(scores).split())
    assert "10 of them have no value in that column, and are taken by themselves." in said
    whole = uncanny.artifacts.score({"m": truth[:20]}, truth=truth[:20], resamples=20, group_by="scene")
    assert "in that column" not in " ".join(str(whole).split())


def test_a_column_that_is_not_there_is_answered_with_all_that_are(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as refused:
        mcq(tmp_path, "scenery")
    remedy = str(refused.value.remedy)
    assert all(f"'{name}'" in remedy for name in ("pair_id", "scene", "split"))
    with pytest.raises(UsageError) as refused:
        realism(tmp_path, "scenery")
    assert "'scene'" in str(refused.value.remedy)
