"""What reports can rely on: differences, signature, examples, and figures of whole sets."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.eval.metrics.naive_semap import paper_figures, release_figures
from tests.eval.metrics.test_semap_oracle import THRESHOLDS
from tests.eval.semantic.given_similarity import (
    GivenSimilarity,
    anomalies,
    anomaly_set,
    both,
    image,
    score,
)
from uncanny.errors import UsageError
from uncanny.eval.common.anomalies.image import ImagePair, similarities
from uncanny.eval.common.estimates import Estimate
from uncanny.eval.common.similarity.base import Matrix
from uncanny.eval.metrics.semap import ProtocolName
from uncanny.eval.semantic.parameters import SemanticParameters

ONE = np.array([[0.95]])


def test_differences_are_image_by_image() -> None:
    names = [f"i{n}" for n in range(40)]
    truth = anomaly_set("t", *(image(name, anomalies("k", "t", 1)) for name in names))
    good = anomaly_set("g", *(image(name, anomalies("k", "p", 1)) for name in names))
    # Half as good on every image: two predictions where one is right. One image is missing.
    half = anomaly_set("h", *(image(name, anomalies("k", "p", 2)) for name in names[1:]))
    measure = both({"k": np.array([[0.95], [0.1]])})
    scores = score(truth, measure, {"resamples": 200}, good=good, half=half, again=good)
    kept = {
        (each.first, each.second, each.protocol, each.metric, each.view): each for each in scores.differences
    }
    assert len(kept) == 3 * 2 * 2 * 3
    half_as_good = kept["good", "half", "release", "semap", "full"]
    assert (half_as_good.images, half_as_good.estimate) == (39, Estimate(0.5))
    same = kept["good", "again", "paper", "semf1", "phe"]
    assert (same.images, same.estimate.value, same.estimate.interval) == (40, 0.0, None)
    missing = kept["good", "half", "paper", "semap", "full"]
    assert missing.estimate.value is not None
    assert missing.estimate.interval is not None
    # In paper the missing image is an empty prediction. Ranked first, the right one has precision 1.
    assert missing.images == 40
    assert missing.estimate.value == pytest.approx(1 / 40)
    assert missing.estimate.interval[0] <= 1 / 40 <= missing.estimate.interval[1]


def test_signature_says_what_can_be_compared() -> None:
    truth = anomaly_set("t", image("a", anomalies("k", "t", 1)))
    mine, other = (
        anomaly_set(name, image("a", anomalies("k", "p", count))) for name, count in (("m", 1), ("o", 0))
    )
    measure = both({"k": ONE})
    signature = score(truth, measure, mine=mine).signature
    assert score(truth, measure, {"seed": 5}, other=other).signature == signature
    different = [
        score(truth, measure, {"thresholds": (0.7, 0.8)}, mine=mine),
        score(truth, measure, {"balance": 0.6}, mine=mine),
        score(truth, GivenSimilarity({"k": ONE, "kr": ONE}, name="other"), mine=mine),
        score(anomaly_set("t", image("a", anomalies("k", "t", 0))), measure, mine=mine),
    ]
    assert len({signature, *(each.signature for each in different)}) == 5


def test_examples_to_read_and_how_similarities_spread() -> None:
    cells = np.array([[0.95, 0.2, 0.3], [0.1, 0.4, 0.35]])
    truth = anomaly_set("t", image("a", anomalies("k", "t", 3)), image("b", anomalies("k", "t", 1)))
    mine = anomaly_set("p", image("a", anomalies("k", "p", 2)), image("b"))
    prediction = score(truth, both({"k": cells}), mine=mine)["mine"]
    examples = prediction.examples
    assert [(pair.predicted.name, pair.true.name) for pair in examples.best] == [("p0", "t0"), ("p1", "t1")]
    assert [pair.similarity["full"] for pair in examples.worst] == pytest.approx([0.4, 0.95])
    assert (examples.matched, examples.missed_total) == (2, 2)
    assert [(each.image, each.true.name, each.closest) for each in examples.missed] == [
        ("b", "t0", None),
        ("a", "t2", pytest.approx(0.35)),
    ]
    assert sum(prediction.spread.matched["full"]) == 2
    assert sum(prediction.spread.every["phe"]) == 6
    assert prediction.spread.matched["phe"][47] == 1


def test_images_are_scored_as_they_come() -> None:
    """Whoever reads the scores decides how far the texts are read."""
    read = 0

    def pairs() -> Iterator[ImagePair]:
        nonlocal read
        for place in range(1_000):
            read += 1
            empty = place % 3 == 0
            mine = image("a", () if empty else anomalies("k", "p", 1))
            yield ImagePair(place, image("a", anomalies("k", "t", 1)), mine)

    scored = similarities(pairs(), both({"k": ONE}), 0.5)
    places = []
    for _ in range(30):
        pair, _ = next(scored)
        places.append(pair.place)
        assert read <= len(places) + 3
    assert places == list(range(30))
    assert [pair.place for pair, _ in scored] == list(range(30, 1_000))


@pytest.mark.parametrize(
    "wrong",
    [
        *({"thresholds": value} for value in ((), (0.0,), (1.1,), (0.7, 0.7), (float("nan"),))),
        *({"balance": value} for value in (-0.1, 1.5, float("nan"))),
    ],
)
def test_settings_that_make_no_sense(wrong: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        SemanticParameters(truth=(), **wrong)


@st.composite
def sets(draw: st.DrawFn) -> list[tuple[Matrix, Matrix, list[int]]]:
    """Some images, each with two matrices and a severity for each prediction."""
    images = []
    for _ in range(draw(st.integers(1, 5))):
        rows, columns = draw(st.integers(0, 4)), draw(st.integers(0, 4))
        cells = st.sampled_from([0.0, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 1.0])
        drawn = [
            np.array(draw(st.lists(cells, min_size=rows * columns, max_size=rows * columns))).reshape(
                rows, columns
            )
            for _ in range(2)
        ]
        severities = draw(st.lists(st.integers(0, 100), min_size=rows, max_size=rows))
        images.append((drawn[0], drawn[1], severities))
    return images


@given(sets())
def test_figures_of_a_set_are_what_the_definitions_say(
    images_drawn: list[tuple[Matrix, Matrix, list[int]]],
) -> None:
    matrices: dict[str, Matrix] = {}
    truth, mine = [], []
    expected: dict[ProtocolName, list[tuple[float, float]]] = {"release": [], "paper": []}
    for number, (phe, rea, severities) in enumerate(images_drawn):
        key = str(number)
        matrices |= {key: phe, f"{key}r": rea}
        truth.append(image(key, anomalies(key, "t", phe.shape[1])))
        mine.append(image(key, anomalies(key, "p", phe.shape[0], severities)))
        full = 0.5 * phe + 0.5 * rea
        confidences = [100 - severity for severity in severities]
        expected["release"].append(release_figures(rea, THRESHOLDS))
        expected["paper"].append(paper_figures(rea, THRESHOLDS, confidences, full))
    sets = score(anomaly_set("t", *truth), GivenSimilarity(matrices), mine=anomaly_set("p", *mine))
    for protocol, values in expected.items():
        scores = sets["mine"].protocols[protocol]
        assert scores.semap["rea"].value == pytest.approx(np.mean([semap for semap, _ in values]))
        assert scores.semf1["rea"].value == pytest.approx(np.mean([semf1 for _, semf1 in values]))
