"""Files against a truth: the authors' own run, images left out, detection, and what a report can rely on."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.eval.metrics.test_semap_oracle import ROWS, THRESHOLDS, matrix_of
from tests.eval.semantic.given_similarity import PLAIN, GivenSimilarity, anomalies, both, held, image, score
from uncanny.errors import UsageError
from uncanny.eval.semantic.data.images import ScoredAnomaly
from uncanny.eval.semantic.score.result import SemanticScore, semantic_json

ONE = np.array([[0.95]])


@pytest.fixture(scope="module")
def oracle() -> SemanticScore:
    matrices = {row["id"]: matrix_of(row, shuffle=3) for row in ROWS}
    truth = [image(row["id"], anomalies(row["id"], "t", row["num_gt"])) for row in ROWS]
    mine = [image(f"../{row['id']}.png", anomalies(row["id"], "p", row["num_pred"])) for row in ROWS[::-1]]
    return score(held("truth", *truth), both(matrices), mine=held("mine", *mine))


def test_the_authors_run_image_by_image(oracle: SemanticScore) -> None:
    found = semantic_json(oracle)["predictions"]["mine"]
    assert found["paired_by"] == {"stem": 16}
    for row, given_row in zip(found["per_image"], ROWS, strict=True):
        assert (row["image"], row["n_pred"], row["n_true"]) == (
            given_row["id"],
            given_row["num_pred"],
            given_row["num_gt"],
        )
        for view in ("phe", "rea", "full"):
            assert round(row["release"]["semap"][view], 4) == given_row["SemAP"]
            assert round(row["release"]["semf1"][view], 4) == given_row["SemF1"]


def test_the_authors_run_in_total(oracle: SemanticScore) -> None:
    release = oracle.predictions["mine"].protocols["release"]
    assert release.images == 16
    assert release.semap["full"].value == pytest.approx(np.mean([row["SemAP"] for row in ROWS]), abs=5e-5)
    assert release.semf1["full"].value == pytest.approx(np.mean([row["SemF1"] for row in ROWS]), abs=5e-5)
    for one, threshold in zip(release.thresholds, THRESHOLDS, strict=True):
        reached = sum(score >= threshold for row in ROWS for score in row["matched_scores"])
        assert one.tp == {"phe": reached, "rea": reached, "full": reached}
        assert (one.n_pred, one.n_true) == (92, 106)
        assert one.micro["full"].precision == reached / 92
        assert one.micro["full"].recall == reached / 106
        assert one.micro["full"].f1 == pytest.approx(2 * reached / (92 + 106))


def test_what_is_in_one_file_only() -> None:
    truth = held("truth", *(image(name, anomalies("k", "t", 1)) for name in "abc"), image("d"))
    mine = held(
        "mine",
        image("a", anomalies("k", "p", 1)),
        image("z", anomalies("k", "p", 1)),
        image("b", status="failed"),
    )
    found = score(truth, both({"k": ONE}), mine=mine).predictions["mine"]
    # release: a alone. paper: a scores 1, c has an empty prediction, d is empty on both sides; b failed.
    assert found.protocols["release"].images == 1
    assert found.protocols["release"].semap["full"].value == 1
    assert found.protocols["paper"].images == 3
    assert found.protocols["paper"].semap["full"].value == pytest.approx(2 / 3)
    assert (found.protocols["paper"].thresholds[0].n_pred, found.protocols["paper"].thresholds[0].n_true) == (
        1,
        2,
    )
    assert found.left_out.only_truth == ("c", "d")
    assert found.left_out.only_predictions == ("z",)
    assert found.left_out.unfinished["failed"] == ("b",)


def test_a_truth_that_failed_is_in_no_figure() -> None:
    truth = held("truth", image("a", status="partial"), image("b", anomalies("k", "t", 1)))
    mine = held("mine", image("a", anomalies("k", "p", 1)), image("b", anomalies("k", "p", 1)))
    found = score(truth, both({"k": ONE}), mine=mine).predictions["mine"]
    assert [held.images for held in found.protocols.values()] == [1, 1]
    assert (found.left_out.truth, found.left_out.only_predictions) == (("a",), ())
    with pytest.raises(UsageError, match="no image with status ok"):
        score(held("truth", image("a", status="failed")), both({}), mine=mine)


def test_nothing_in_common_leaves_figures_empty() -> None:
    truth = held("truth", image("a", anomalies("k", "t", 1)))
    found = score(truth, both({}), mine=held("mine", image("a", status="failed"))).predictions["mine"]
    for protocol in found.protocols.values():
        assert (protocol.images, protocol.semap["full"].value) == (0, None)
        assert protocol.thresholds[0].semf1["full"] is None
        assert protocol.thresholds[0].micro["full"].precision is None


def test_views_and_lambda() -> None:
    truth, mine = (held(side, image("a", anomalies("k", side, 1))) for side in "tp")
    measure = GivenSimilarity({"k": np.array([[0.95]]), "kr": np.array([[0.75]])})
    found = score(truth, measure, mine=mine).predictions["mine"].protocols["release"]
    values = {view: figure.value for view, figure in found.semap.items()}
    assert values == pytest.approx({"phe": 1, "rea": 1 / 3, "full": 2 / 3})
    only = score(truth, measure, replace(PLAIN, balance=0.0), mine=mine).predictions["mine"]
    assert only.protocols["release"].semap["full"].value == pytest.approx(1 / 3)


def test_a_blank_text_is_similar_to_nothing() -> None:
    truth = held("t", image("a", anomalies("k", "t", 1)))
    mine = held("p", image("a", (ScoredAnomaly("", "k/p0", ""),)))
    found = score(truth, both({"k": np.array([[1.0]])}), mine=mine).predictions["mine"].protocols["release"]
    assert [found.thresholds[0].tp[view] for view in ("phe", "rea", "full")] == [1, 0, 0]


def test_detection_by_hand() -> None:
    right = anomalies("k", "p", 1)
    truth = held(
        "truth",
        *(image(name, anomalies("k", "t", 1), "generated") for name in ("g1", "g2", "g3")),
        *(image(name, (), "real") for name in ("r1", "r2")),
        image("unknown", anomalies("k", "t", 1)),
        image("gone", anomalies("k", "t", 1), "generated"),
    )
    mine = held(
        "mine",
        image("g1", right, "generated"),
        image("g2", right, "real"),
        image("g3", right, None, has_source=True),
        image("r1", (), "real"),
        image("r2", right, "generated"),
        image("unknown", right, "generated"),
    )
    found = score(truth, both({"k": ONE}), mine=mine).predictions["mine"]
    release, paper = found.protocols["release"], found.protocols["paper"]
    assert release.csemap is not None
    assert paper.csemap is not None
    assert release.csemap["full"].value == pytest.approx(1 / 3)
    assert release.detection_images == 3
    # g1 and r1 of g1, g2, g3, r1, r2, gone
    assert paper.csemap["full"].value == pytest.approx(2 / 6)
    assert paper.detection_images == 6
    assert found.accuracy is not None
    assert (found.accuracy.figure.value, found.accuracy.right, found.accuracy.images) == (2 / 5, 2, 5)
    assert found.accuracy.answers == {
        "generated": {"generated": 1, "real": 1, "unclear": 1},
        "real": {"generated": 1, "real": 1, "unclear": 0},
    }
    assert found.left_out.without_source == ("unknown",)
    assert found.accuracy.unclear == 1


def test_a_verdict_counts_although_the_anomalies_failed() -> None:
    truth = held("truth", *(image(name, anomalies("k", "t", 1), "generated") for name in "abc"))
    mine = held(
        "mine",
        image("a", anomalies("k", "p", 1), "generated"),
        image("b", (), "generated", status="partial"),
        image("c", (), None, has_source=True, status="failed"),
    )
    found = score(truth, both({"k": ONE}), mine=mine).predictions["mine"]
    assert found.accuracy is not None
    assert (found.accuracy.right, found.accuracy.images) == (2, 2)
    assert [protocol.detection_images for protocol in found.protocols.values()] == [1, 1]


@pytest.mark.parametrize("side", ["mine", "truth"])
def test_without_sources_there_is_no_detection(side: str) -> None:
    truth = held("truth", image("a", (), None if side == "truth" else "real"))
    mine = held("mine", image("a", (), None if side == "mine" else "real"))
    found = semantic_json(score(truth, both({}), mine=mine))["predictions"]["mine"]
    assert (found["accuracy"], found["detection"]) == (None, None)
    assert (found["paper"]["csemap"], found["release"]["csemf1"]) == (None, None)


def test_the_json_has_the_keys_that_are_promised(oracle: SemanticScore) -> None:
    found = semantic_json(oracle)
    assert {"predictions", "backbone", "num_layers", "signature"} <= set(found)
    held = found["predictions"]["mine"]
    assert {"release", "paper", "accuracy"} <= set(held)
    for protocol in ("release", "paper"):
        assert {"images", "semap", "semf1", "csemap", "csemf1", "per_threshold"} <= set(held[protocol])
        assert list(held[protocol]["semap"]) == ["phe", "rea", "full"]
        assert list(held[protocol]["per_threshold"]) == ["0.7", "0.8", "0.9"]
        for one in held[protocol]["per_threshold"].values():
            assert {"semap", "semf1", "tp", "n_pred", "n_true"} <= set(one)
