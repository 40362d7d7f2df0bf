"""The figures of the semantic page are those of the result, protocol by protocol."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.eval.common.page_text import Page
from tests.eval.semantic.made_scores import (
    ByKind,
    cells_of,
    made_predictions,
    made_score,
    made_truth,
    page_of,
    section,
    shown,
    twelve_models,
)
from uncanny.eval.common.published import published
from uncanny.eval.metrics.semap import PROTOCOLS, VIEWS
from uncanny.eval.semantic.data.images import AnomalyFile, ScoredImage
from uncanny.eval.semantic.report.words import VIEW_NAMES, amount, signed
from uncanny.eval.semantic.score.result import SemanticScore
from uncanny.eval.semantic.score.score import ScoreSettings, score_semantic


@pytest.fixture(scope="module")
def twelve() -> SemanticScore:
    return twelve_models()


@pytest.fixture(scope="module")
def page(twelve: SemanticScore, tmp_path_factory: pytest.TempPathFactory) -> Page:
    return page_of(tmp_path_factory.mktemp("semantic"), twelve, published=True)


@pytest.fixture(scope="module")
def two() -> SemanticScore:
    truth = made_truth()
    with_source, without = made_predictions(truth, 0.9), made_predictions(truth, 0.3, source=False)
    return made_score({"good": with_source, "poor": without}, truth)


def test_headlines_are_the_results_figures_protocol_by_protocol(twelve: SemanticScore, page: Page) -> None:
    for protocol in PROTOCOLS:
        rows = cells_of(page, f"SemAP and SemF1, {protocol}")
        assert len(rows) == 12
        for row, (name, one) in zip(rows, twelve.predictions.items(), strict=True):
            held = one.protocols[protocol]
            clean = int((one.columns.scored["release"] & (one.columns.n_true == 0)).sum())
            assert row == [
                " ".join(name.split()),
                shown(held.semap["full"]),
                shown(held.semf1["full"]),
                f"{held.images} {clean} score 0" if protocol == "release" else str(held.images),
            ]


def test_views_are_the_results_figures(twelve: SemanticScore, page: Page) -> None:
    for protocol in PROTOCOLS:
        for label, metrics in (
            ("SemAP and SemF1 by view", ("semap", "semf1")),
            ("cSemAP and cSemF1", ("csemap", "csemf1")),
        ):
            rows = [row[1:] for row in cells_of(page, f"{label}, {protocol}") if len(row) == 4]
            assert rows == [
                [shown(getattr(one.protocols[protocol], metric)[view]) for view in VIEWS]
                for metric in metrics
                for one in twelve.predictions.values()
            ]


def test_thresholds_are_the_results_counts(two: SemanticScore, tmp_path: Path) -> None:
    page = page_of(tmp_path, two)
    for name, one in two.predictions.items():
        for protocol in PROTOCOLS:
            rows = cells_of(page, f"Thresholds of {name}, {protocol}")
            expected: list[list[str]] = []
            for held in one.protocols[protocol].thresholds:
                expected.append([f"τ = {held.threshold} {held.n_pred} predicted, {held.n_true} true"])
                expected += [
                    [
                        VIEW_NAMES[view],
                        amount(held.semap[view]),
                        amount(held.semf1[view]),
                        str(held.tp[view]),
                        amount(held.micro[view].precision),
                        amount(held.micro[view].recall),
                        amount(held.micro[view].f1),
                    ]
                    for view in VIEWS
                ]
            assert rows == expected


def test_detection_tells_the_confusion_and_who_says_no_source(two: SemanticScore, tmp_path: Path) -> None:
    page = page_of(tmp_path, two)
    good, poor = cells_of(page, "Accuracy and confusion")
    found = two.predictions["good"].accuracy
    assert found is not None
    assert good[1:4] == [shown(found.figure), f"{found.right} of {found.images}", str(found.unclear)]
    assert found.unclear > 0
    said = ("generated", "real", "unclear")
    assert good[4:] == [str(found.answers[source][one]) for source in ("generated", "real") for one in said]
    assert poor == ["poor", "these predictions say no source"]
    assert "Unclear counts as wrong" in page.text


def test_without_sources_there_is_no_detection(tmp_path: Path) -> None:
    truth = made_truth()
    score = made_score({"m": made_predictions(truth, 0.5, source=False)}, truth)
    page = page_of(tmp_path, score)
    assert 'id="h-detection"' not in page.html
    assert "cSemAP" not in page.text
    assert 'id="h-differences"' not in page.html


def test_differences_of_two_are_all_there(two: SemanticScore, tmp_path: Path) -> None:
    page = page_of(tmp_path, two)
    assert two.differences
    for protocol in PROTOCOLS:
        rows = cells_of(page, f"Differences of good and poor, {protocol}")
        values = {(one.metric, one.view): one for one in two.differences if one.protocol == protocol}
        for row, metric in zip(rows, ("semap", "semf1"), strict=True):
            for cell, view in zip(row[1:], VIEWS, strict=True):
                assert cell.startswith(signed(values[metric, view].figure.value))


def test_many_pairs_become_tables_whose_halves_mirror(page: Page) -> None:
    rows = cells_of(page, "Differences in SemAP, release")
    assert len(rows) == 12
    turned = str.maketrans("+−", "−+")
    for place, row in enumerate(rows):
        for other in range(place):
            one, two = row[1 + other].split()[0], rows[other][1 + place].split()[0]
            assert one == two.translate(turned)


def test_published_rows_stand_beside_ones_own_on_request(
    twelve: SemanticScore, page: Page, tmp_path: Path
) -> None:
    rows = cells_of(page, "Published and own SemAP and SemF1")
    theirs = published("semantic_scores")["backbones"]["distilbert-base-uncased"]
    assert len(rows) == 12 + len(theirs)
    full = [float(row[3].split()[0]) for row in rows]
    assert full == sorted(full, reverse=True)
    best = next(row for row in rows if row[0] == theirs[-1]["model"])
    assert best[1:4] == [amount(theirs[-1][f"semap_{view}"]) for view in VIEWS]
    assert len(cells_of(page, "Published and own cSemAP and cSemF1")[0]) == 8
    assert 'id="h-published"' not in page_of(tmp_path, twelve).html


def test_nothing_to_score_is_no_zero(tmp_path: Path) -> None:
    truth = AnomalyFile(Path("truth"), (ScoredImage("a.png", ()),))
    failed = AnomalyFile(Path("p"), (ScoredImage("a.png", (), status="failed"),))
    page = page_of(tmp_path, made_score({"m": failed}, truth))
    for protocol in PROTOCOLS:
        assert cells_of(page, f"SemAP and SemF1, {protocol}") == [
            ["m", "– no image counts", "– no image counts", "0"]
        ]
        assert cells_of(page, f"Thresholds of m, {protocol}")[1][4] == "– nothing is predicted"
    assert "No file has an image that counts" in page.text
    assert "0.0000" not in page.text
    assert page.all("svg") == []


def test_without_resamples_there_are_no_intervals(tmp_path: Path) -> None:
    truth = made_truth()
    file = made_predictions(truth, 0.6)
    score = score_semantic({"m": lambda: file}, truth, ByKind(), ScoreSettings(resamples=0))
    page = page_of(tmp_path, score)
    assert "not computed" in page.text
    assert "intervals" not in Page(section(page, "scores")).text
