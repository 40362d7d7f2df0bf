"""Files against a truth: the authors' own run, images left out, detection, and what a report can rely on."""

from __future__ import annotations

import numpy as np
import pytest

from tests.eval.metrics.test_semap_oracle import ROWS, THRESHOLDS, matrix_of
from tests.eval.semantic.given_similarity import (
    GivenSimilarity,
    anomalies,
    anomaly_set,
    both,
    image,
    score,
)
from uncanny.errors import UsageError
from uncanny.eval.common.anomalies.read import ScoredAnomaly
from uncanny.eval.semantic.score.result import SemanticScore

ONE = np.array([[0.95]])


@pytest.fixture(scope="module")
def oracle() -> SemanticScore:
    matrices = {row["id"]: matrix_of(row, shuffle=3) for row in ROWS}
    truth = [image(row["id"], anomalies(row["id"], "t", row["num_gt"])) for row in ROWS]
    mine = [image(f"../{row['id']}.png", anomalies(row["id"], "p", row["num_pred"])) for row in ROWS[::-1]]
    return score(anomaly_set("truth", *truth), both(matrices), mine=anomaly_set("mine", *mine))


def test_the_authors_run_image_by_image(oracle: SemanticScore) -> None:
    mine = oracle.to_json()["predictions"]["mine"]
    assert mine["paired_by"] == {"stem": 16}
    for row, expected in zip(mine["per_image"], ROWS, strict=True):
        assert (row["image"], row["n_pred"], row["n_true"]) == (
            expected["id"],
            expected["num_pred"],
            expected["num_gt"],
        )
        for view in ("phe", "rea", "full"):
            assert round(row["release"]["semap"][view], 4) == expected["SemAP"]
            assert round(row["release"]["semf1"][view], 4) == expected["SemF1"]


def test_the_authors_run_in_total(oracle: SemanticScore) -> None:
    release = oracle.predictions["mine"].protocols["release"]
    assert release.images == 16
    assert release.semap["full"].value == pytest.approx(np.mean([row["SemAP"] for row in ROWS]), abs=5e-5)
    assert release.semf1["full"].value == pytest.approx(np.mean([row["SemF1"] for row in ROWS]), abs=5e-5)
    for scores, threshold in zip(release.thresholds, THRESHOLDS, strict=True):
        reached = sum(score >= threshold for row in ROWS for score in row["matched_scores"])
        assert scores.tp == {"phe": reached, "rea": reached, "full": reached}
        assert (scores.n_pred, scores.n_true) == (92, 106)
        assert scores.micro["full"].precision == reached / 92
        assert scores.micro["full"].recall == reached / 106
        assert scores.micro["full"].f1 == pytest.approx(2 * reached / (92 + 106))


def test_what_is_in_one_file_only() -> None:
    truth = anomaly_set("truth", *(image(name, anomalies("k", "t", 1)) for name in "abc"), image("d"))
    mine = anomaly_set(
        "mine",
        image("a", anomalies("k", "p", 1)),
        image("z", anomalies("k", "p", 1)),
        image("b", status="failed"),
    )
    prediction = score(truth, both({"k": ONE}), mine=mine)["mine"]
    # release: a alone. paper: a scores 1, c has an empty prediction, d is empty on both sides; b failed.
    assert prediction.protocols["release"].images == 1
    assert prediction.protocols["release"].semap["full"].value == 1
    assert prediction.protocols["paper"].images == 3
    assert prediction.protocols["paper"].semap["full"].value == pytest.approx(2 / 3)
    first = prediction.protocols["paper"].thresholds[0]
    assert (first.n_pred, first.n_true) == (1, 2)
    assert prediction.left_out.only_truth == ("c", "d")
    assert prediction.left_out.only_predictions == ("z",)
    assert prediction.left_out.unfinished["failed"] == ("b",)


def test_a_truth_that_failed_is_in_no_figure() -> None:
    truth = anomaly_set("truth", image("a", status="partial"), image("b", anomalies("k", "t", 1)))
    mine = anomaly_set("mine", image("a", anomalies("k", "p", 1)), image("b", anomalies("k", "p", 1)))
    prediction = score(truth, both({"k": ONE}), mine=mine)["mine"]
    assert [scores.images for scores in prediction.protocols.values()] == [1, 1]
    assert (prediction.left_out.truth, prediction.left_out.only_predictions) == (("a",), ())
    with pytest.raises(UsageError, match="no image with status ok"):
        score(anomaly_set("truth", image("a", status="failed")), both({}), mine=mine)


def test_nothing_in_common_leaves_figures_empty() -> None:
    truth = anomaly_set("truth", image("a", anomalies("k", "t", 1)))
    prediction = score(truth, both({}), mine=anomaly_set("mine", image("a", status="failed")))["mine"]
    for protocol in prediction.protocols.values():
        assert (protocol.images, protocol.semap["full"].value) == (0, None)
        assert protocol.thresholds[0].semf1["full"] is None
        assert protocol.thresholds[0].micro["full"].precision is None


def test_views_and_lambda() -> None:
    truth, mine = (anomaly_set(side, image("a", anomalies("k", side, 1))) for side in "tp")
    measure = GivenSimilarity({"k": np.array([[0.95]]), "kr": np.array([[0.75]])})
    release = score(truth, measure, mine=mine)["mine"].protocols["release"]
    values = {view: estimate.value for view, estimate in release.semap.items()}
    assert values == pytest.approx({"phe": 1, "rea": 1 / 3, "full": 2 / 3})
    only = score(truth, measure, {"balance": 0.0}, mine=mine).predictions["mine"]
    assert only.protocols["release"].semap["full"].value == pytest.approx(1 / 3)


def test_a_blank_text_is_similar_to_nothing() -> None:
    truth = anomaly_set("t", image("a", anomalies("k", "t", 1)))
    mine = anomaly_set("p", image("a", (ScoredAnomaly("", "k/p0", ""),)))
    release = score(truth, both({"k": np.array([[1.0]])}), mine=mine)["mine"].protocols["release"]
    assert [release.thresholds[0].tp[view] for view in ("phe", "rea", "full")] == [1, 0, 0]


def test_detection_by_hand() -> None:
    right = anomalies("k", "p", 1)
    truth = anomaly_set(
        "truth",
        *(image(name, anomalies("k", "t", 1), "generated") for name in ("g1", "g2", "g3")),
        *(image(name, (), "real") for name in ("r1", "r2")),
        image("unknown", anomalies("k", "t", 1)),
        image("gone", anomalies("k", "t", 1), "generated"),
    )
    mine = anomaly_set(
        "mine",
        image("g1", right, "generated"),
        image("g2", right, "real"),
        image("g3", right, None, has_source=True),
        image("r1", (), "real"),
        image("r2", right, "generated"),
        image("unknown", right, "generated"),
    )
    prediction = score(truth, both({"k": ONE}), mine=mine)["mine"]
    release, paper = prediction.protocols["release"], prediction.protocols["paper"]
    assert release.csemap is not None
    assert paper.csemap is not None
    assert release.csemap["full"].value == pytest.approx(1 / 3)
    assert release.detection_images == 3
    # g1 and r1 of g1, g2, g3, r1, r2, gone
    assert paper.csemap["full"].value == pytest.approx(2 / 6)
    assert paper.detection_images == 6
    accuracy = prediction.accuracy
    assert accuracy is not None
    assert (accuracy.estimate.value, accuracy.right, accuracy.images) == (2 / 5, 2, 5)
    assert accuracy.answers == {
        "generated": {"generated": 1, "real": 1, "unclear": 1},
        "real": {"generated": 1, "real": 1, "unclear": 0},
    }
    assert prediction.left_out.without_source == ("unknown",)
    assert accuracy.unclear == 1


def test_a_verdict_counts_although_the_anomalies_failed() -> None:
    truth = anomaly_set("truth", *(image(name, anomalies("k", "t", 1), "generated") for name in "abc"))
    mine = anomaly_set(
        "mine",
        image("a", anomalies("k", "p", 1), "generated"),
        image("b", (), "generated", status="partial"),
        image("c", (), None, has_source=True, status="failed"),
    )
    prediction = score(truth, both({"k": ONE}), mine=mine)["mine"]
    assert prediction.accuracy is not None
    assert (prediction.accuracy.right, prediction.accuracy.images) == (2, 2)
    assert [protocol.detection_images for protocol in prediction.protocols.values()] == [1, 1]


@pytest.mark.parametrize("side", ["mine", "truth"])
def test_without_sources_there_is_no_detection(side: str) -> None:
    truth = anomaly_set("truth", image("a", (), None if side == "truth" else "real"))
    mine = anomaly_set("mine", image("a", (), None if side == "mine" else "real"))
    scores = score(truth, both({}), mine=mine).to_json()["predictions"]["mine"]
    assert (scores["accuracy"], scores["detection"]) == (None, None)
    assert (scores["paper"]["csemap"], scores["release"]["csemf1"]) == (None, None)


def test_the_json_has_the_keys_that_are_promised(oracle: SemanticScore) -> None:
    scores = oracle.to_json()
    assert {"predictions", "backbone", "num_layers", "signature"} <= set(scores)
    mine = scores["predictions"]["mine"]
    assert {"release", "paper", "accuracy"} <= set(mine)
    for protocol in ("release", "paper"):
        assert {"images", "semap", "semf1", "csemap", "csemf1", "per_threshold"} <= set(mine[protocol])
        assert list(mine[protocol]["semap"]) == ["phe", "rea", "full"]
        assert list(mine[protocol]["per_threshold"]) == ["0.7", "0.8", "0.9"]
        for at in mine[protocol]["per_threshold"].values():
            assert {"semap", "semf1", "tp", "n_pred", "n_true"} <= set(at)
