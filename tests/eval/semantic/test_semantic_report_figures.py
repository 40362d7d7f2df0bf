"""The figures of the semantic page are those of the result, protocol by protocol."""

from __future__ import annotations

from pathlib import Path

from tests.eval.common.page_text import Page
from tests.eval.semantic.made_scores import (
    cells_of,
    made_predictions,
    made_score,
    made_truth,
    page_of,
    section,
    shown,
)
from uncanny.eval.common.anomalies.read import AnomalySet, ScoredImage
from uncanny.eval.common.published import published
from uncanny.eval.metrics.semap import PROTOCOLS, View
from uncanny.eval.semantic.report.rows import VIEW_NAMES, amount, signed
from uncanny.eval.semantic.score.result import Metric, PredictionScore, SemanticScore

# As tables of the page have them.
SHOWN_VIEWS: tuple[View, ...] = ("full", "phe", "rea")


def from_the_best(score: SemanticScore) -> dict[str, PredictionScore]:
    """The files as the page lists them: by SemAP, release, view full."""

    def semap(name: str) -> float:
        value = score[name].protocols["release"].semap["full"].value
        assert value is not None
        return value

    return {name: score[name] for name in sorted(score.predictions, key=semap, reverse=True)}


def test_headlines_are_the_results_figures_protocol_by_protocol(twelve: SemanticScore, page: Page) -> None:
    for protocol in PROTOCOLS:
        rows = cells_of(page, f"SemAP and SemF1, {protocol}")
        assert len(rows) == 12
        for row, (name, prediction) in zip(rows, from_the_best(twelve).items(), strict=True):
            scores = prediction.protocols[protocol]
            clean = prediction.without_truth
            assert row == [
                " ".join(name.split()),
                shown(scores.semap["full"]),
                shown(scores.semf1["full"]),
                f"{scores.images} {clean} score 0" if protocol == "release" else str(scores.images),
            ]


def test_views_are_the_results_figures(twelve: SemanticScore, page: Page) -> None:
    for protocol in PROTOCOLS:
        for label, metrics in (
            ("SemAP and SemF1 by view", ("semap", "semf1")),
            ("cSemAP and cSemF1", ("csemap", "csemf1")),
        ):
            rows = [row[1:] for row in cells_of(page, f"{label}, {protocol}") if len(row) == 4]
            assert rows == [
                [shown(getattr(prediction.protocols[protocol], metric)[view]) for view in SHOWN_VIEWS]
                for metric in metrics
                for prediction in from_the_best(twelve).values()
            ]


def test_thresholds_are_the_results_counts(two: SemanticScore, page_of_two: Page) -> None:
    for name, prediction in two.predictions.items():
        for protocol in PROTOCOLS:
            rows = cells_of(page_of_two, f"Thresholds of {name}, {protocol}")
            expected: list[list[str]] = []
            for scores in prediction.protocols[protocol].thresholds:
                expected.append([f"τ = {scores.threshold} {scores.n_pred} predicted, {scores.n_true} true"])
                expected += [
                    [
                        VIEW_NAMES[view],
                        amount(scores.semap[view]),
                        amount(scores.semf1[view]),
                        str(scores.tp[view]),
                        amount(scores.micro[view].precision),
                        amount(scores.micro[view].recall),
                        amount(scores.micro[view].f1),
                    ]
                    for view in SHOWN_VIEWS
                ]
            assert rows == expected


def test_detection_tells_the_confusion_and_who_says_no_source(two: SemanticScore, page_of_two: Page) -> None:
    good, poor = cells_of(page_of_two, "Accuracy and confusion")
    accuracy = two.predictions["good"].accuracy
    assert accuracy is not None
    assert good[1:4] == [
        shown(accuracy.estimate),
        f"{accuracy.right} of {accuracy.images}",
        str(accuracy.unclear),
    ]
    assert accuracy.unclear > 0
    words = ("generated", "real", "unclear")
    assert good[4:] == [
        str(accuracy.answers[source][word]) for source in ("generated", "real") for word in words
    ]
    assert poor == ["poor", "these predictions say no source"]
    assert "Unclear counts as wrong" in page_of_two.text


def test_without_sources_there_is_no_detection(tmp_path: Path) -> None:
    truth = made_truth()
    score = made_score({"m": made_predictions(truth, 0.5, source=False)}, truth)
    page = page_of(tmp_path, score)
    assert 'id="h-detection"' not in page.html
    assert "cSemAP" not in page.text
    assert 'id="h-differences"' not in page.html


def test_differences_of_two_are_all_there(two: SemanticScore, page_of_two: Page) -> None:
    assert two.differences
    for protocol in PROTOCOLS:
        rows = cells_of(page_of_two, f"Differences of good and poor, {protocol}")
        values = {(each.metric, each.view): each for each in two.differences if each.protocol == protocol}
        metrics: tuple[Metric, ...] = ("semap", "semf1")
        for row, metric in zip(rows, metrics, strict=True):
            for cell, view in zip(row[1:], SHOWN_VIEWS, strict=True):
                assert cell.startswith(signed(values[metric, view].estimate.value))


def test_many_pairs_become_tables_whose_halves_mirror(page: Page) -> None:
    rows = cells_of(page, "Differences in SemAP, release")
    assert len(rows) == 12
    turned = str.maketrans("+−", "−+")
    for place, row in enumerate(rows):
        for other in range(place):
            below, above = row[1 + other].split()[0], rows[other][1 + place].split()[0]
            assert below == above.translate(turned)


def test_published_rows_stand_beside_ones_own_on_request(page: Page, page_of_two: Page) -> None:
    rows = cells_of(page, "Published and own SemAP and SemF1")
    theirs = published("semantic_scores")["backbones"]["distilbert-base-uncased"]
    assert len(rows) == 12 + len(theirs)
    full = [float(row[1].split()[0]) for row in rows]
    assert full == sorted(full, reverse=True)
    best = next(row for row in rows if row[0] == theirs[-1]["model"])
    assert best[1:4] == [amount(theirs[-1][f"semap_{view}"]) for view in SHOWN_VIEWS]
    assert len(cells_of(page, "Published and own cSemAP and cSemF1")[0]) == 8
    assert 'id="h-published"' not in page_of_two.html


def test_nothing_to_score_is_no_zero(tmp_path: Path) -> None:
    truth = AnomalySet("truth", (ScoredImage("a.png", ()),))
    failed = AnomalySet("p", (ScoredImage("a.png", (), status="failed"),))
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
    page = page_of(tmp_path, made_score({"m": made_predictions(truth, 0.6)}, truth, resamples=0))
    assert "not computed" in page.text
    assert "intervals" not in Page(section(page, "scores")).text
