"""Answers made to the published counts give the published figures: SalArt-VQA, tables 1, 4, 5, 6 and 7.

Five cells of table 1 are not their own count rounded to two places, though within 0.01 points of it. Two are
cut off instead of rounded: the overall All_{Q2-4} of Gemini 3.1 Flash Lite (24.73, from 24.7368) and of
Gemma-4-31B-it (20.31, from 20.3158). Three overall Q1 cells fit the mean of the rounded cells instead.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.eval.mcq.made_sets import RELEASE, answered, made_item, made_set, scored
from uncanny.eval.mcq.data.items import ArtifactType
from uncanny.eval.mcq.score.tables import published_scores

FIGURES = published_scores()
MAIN = {row["model"]: row for row in FIGURES["main"][2:]}
ROUTE = {row["model"]: row for row in FIGURES["by_route"]}
DETECTION = {row["model"]: row for row in FIGURES["q1_detection"]}
HIERARCHY = {row["model"].removesuffix(" (thinking)"): row for row in FIGURES["hierarchy"]}
CUT_OFF = {("Gemini 3.1 Flash Lite", "overall_all_q2_4"), ("Gemma-4-31B-it", "overall_all_q2_4")}
FROM_ROUNDED = {
    ("Qwen3-VL-30B-A3B-T", "overall_q1"),
    ("Qwen3-VL-8B-T", "overall_q1"),
    ("Llama-4-Maverick-17B-128E-I", "overall_q1"),
}
CELLS = {
    f"{split}_{name}": (split, name)
    for split, names in {
        "artifact": ("q1", "all_q1_4", "all_q2_4"),
        "ref_real": ("q1", "all_q1_4", "all_q2_4"),
        "ref_pg": ("all_q2_4",),
        "overall": ("q1", "all_q1_4", "all_q2_4"),
    }.items()
    for name in names
}


def _count(percent: float, total: int) -> int:
    return round(percent * total / 100)


def _parts(percents: tuple[float, float], total: int) -> tuple[int, int]:
    """The counts out of 356 and 119 that add up to `total` and round to the percentages of table 6."""
    fits = [
        (dg, total - dg)
        for dg in range(max(0, total - 119), min(356, total) + 1)
        if abs(100 * dg / 356 - percents[0]) <= 0.0501
        and abs(100 * (total - dg) / 119 - percents[1]) <= 0.0501
    ]
    assert len(fits) == 1
    return fits[0]


def _artifact_patterns(model: str) -> Iterator[str]:
    main, route = MAIN[model], ROUTE[model]
    called = _parts((route["art_dg_q1"], route["art_pg_q1"]), _count(main["artifact_q1"], 475))
    solved = _parts(
        (route["art_dg_all_q1_4"], route["art_pg_all_q1_4"]), _count(main["artifact_all_q1_4"], 475)
    )
    unnoticed = _count(main["artifact_all_q2_4"], 475) - sum(solved)
    published = HIERARCHY.get(model)
    evidence = _count(published["evidence_failure"], 475) if published else 0
    for size, yes, full in zip((356, 119), called, solved, strict=True):
        yield from ["1111"] * full
        blamed = min(evidence, yes - full)
        yield from ["1110"] * blamed + ["1001", "1101"] * ((yes - full - blamed) // 2)
        yield from ["1011"] * ((yes - full - blamed) % 2)
        blind = min(unnoticed, size - yes)
        yield from ["0111"] * blind + ["0000"] * (size - yes - blind)
        evidence, unnoticed = evidence - blamed, unnoticed - blind
    assert (evidence, unnoticed) == (0, 0)


def _reference_patterns(model: str) -> Iterator[str]:
    main = MAIN[model]
    cleared, full = _count(main["ref_real_q1"], 356), _count(main["ref_real_all_q1_4"], 356)
    flagged = _count(main["ref_real_all_q2_4"], 356) - full
    yield from ["1111"] * full + ["1010"] * (cleared - full)
    yield from ["0111"] * flagged + ["0001"] * (356 - cleared - flagged)
    abstained = _count(main["ref_pg_all_q2_4"], 119)
    yield from ["-111"] * abstained + ["-110"] * (119 - abstained)


ITEMS = made_set()


@pytest.fixture(scope="module")
def scores() -> dict[str, Any]:
    answers = [
        answer
        for model in MAIN
        for answer in answered(ITEMS, [*_artifact_patterns(model), *_reference_patterns(model)], model)
    ]
    assert len(answers) == 20 * 3_681
    score: dict[str, Any] = scored(ITEMS, answers, resamples=0, require_complete=True)["models"]
    return score


def test_sizes(scores: dict[str, Any]) -> None:
    assert len(scores) == 20
    for score in scores.values():
        assert score["n_images"] == dict(RELEASE) | {"artifact": 475, "all": 950}
        assert score["missing"] == 0
        assert sum(score["patterns"].values()) == 475


def test_table_1(scores: dict[str, Any]) -> None:
    off: set[tuple[str, str]] = set()
    for model, row in MAIN.items():
        for cell, (split, name) in CELLS.items():
            percent = 100 * scores[model]["splits"][split][name]
            assert percent == pytest.approx(row[cell], abs=0.01), (model, cell)
            if abs(percent - row[cell]) > 0.00501:
                off.add((model, cell))
                assert (percent > row[cell]) == ((model, cell) in CUT_OFF)
    assert off == CUT_OFF | FROM_ROUNDED


def test_table_4(scores: dict[str, Any]) -> None:
    assert len(HIERARCHY) == 9
    for model, row in HIERARCHY.items():
        for name, share in scores[model]["hierarchy"].items():
            assert 100 * share == pytest.approx(row[name], abs=0.0501), (model, name)


def test_table_5(scores: dict[str, Any]) -> None:
    assert len(DETECTION) == 20
    for model, row in DETECTION.items():
        for name, share in scores[model]["q1_detection"].items():
            assert 100 * share == pytest.approx(row[name], abs=0.0501), (model, name)


def test_table_6(scores: dict[str, Any]) -> None:
    assert len(ROUTE) == 20
    for model, row in ROUTE.items():
        for split in ("art_dg", "art_pg"):
            for name in ("q1", "all_q1_4"):
                percent = 100 * scores[model]["splits"][split][name]
                assert percent == pytest.approx(row[f"{split}_{name}"], abs=0.0501), (model, split, name)


# Table 7: the fewest artifact images of each type of which all its percentages are whole numbers; the
# others have small parts in the wrong number, for which it has no column.
TYPED: dict[ArtifactType, int] = {"anatomy": 143, "topology": 125, "local_render": 59, "plausibility": 39}
REST = 475 - sum(TYPED.values())


def test_the_types_of_table_7_have_as_many_images_as_its_percentages_imply() -> None:
    def whole(kind: str, n: int) -> bool:
        cells = [row[kind] for row in FIGURES["type_and_disagreement"]]
        return all(abs(100 * _count(cell, n) / n - cell) <= 0.0501 for cell in cells)

    assert {kind: next(n for n in range(1, 475) if whole(kind, n)) for kind in TYPED} == TYPED
    assert REST == 109


def _typed_patterns(row: dict[str, Any]) -> Iterator[tuple[ArtifactType, str]]:
    """A type and a pattern an image: of the solved ones by type, of the others so that the pairs disagree."""
    solved = {kind: _count(row[kind], n) for kind, n in TYPED.items()}
    others = _count(MAIN[row["model"]]["artifact_all_q1_4"], 475) - sum(solved.values())
    assert 0 <= others <= REST
    kinds: dict[ArtifactType, int] = {**TYPED, "count": REST}
    left: list[ArtifactType] = []
    for kind, n in kinds.items():
        full = solved.get(kind, others)
        yield from [(kind, "1111")] * full
        left += [kind] * (n - full)
    q4_only, q3_right = (_count(row[f"q4_vs_q3_{name}_only"], 475) for name in ("q4", "q3"))
    q2_only, q3_alone = (_count(row[f"q2_vs_q3_{name}_only"], 475) for name in ("q2", "q3"))
    boxed = max(q3_right, q3_alone)
    for place, kind in enumerate(left):
        if place < boxed:
            yield kind, f"0{int(place >= q3_alone)}1{int(place >= q3_right)}"
        else:
            yield kind, f"0{int(place < boxed + q2_only)}0{int(place < boxed + q4_only)}"


def test_table_7() -> None:
    assert len(FIGURES["type_and_disagreement"]) == 6
    for row in FIGURES["type_and_disagreement"]:
        made = list(_typed_patterns(row))
        items = [made_item(f"{place}", "art_dg", kind=kind) for place, (kind, _) in enumerate(made)]
        answers = answered(items, [pattern for _, pattern in made])
        score = scored(items, answers, resamples=0)
        for kind, n in TYPED.items():
            assert score["by_type"][kind]["n"] == n
            assert 100 * score["by_type"][kind]["all_q1_4"] == pytest.approx(row[kind], abs=0.0501)
        for pair in ("q4_vs_q3", "q2_vs_q3"):
            for name, share in score["disagreement"][pair].items():
                assert 100 * share == pytest.approx(row[f"{pair}_{name}"], abs=0.11), (row["model"], name)
