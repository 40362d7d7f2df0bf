"""What reports can rely on: differences, signature, examples, and figures of whole sets."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.eval.metrics.naive_semap import paper_figures, release_figures
from tests.eval.metrics.test_semap_oracle import THRESHOLDS
from tests.eval.semantic.given_similarity import PLAIN, GivenSimilarity, anomalies, both, held, image, score
from uncanny.errors import UsageError
from uncanny.eval.semantic.score.result import ImagePair
from uncanny.eval.semantic.score.score import ScoreSettings, similarities
from uncanny.eval.semantic.similarity.base import Matrix

ONE = np.array([[0.95]])


def test_differences_are_image_by_image() -> None:
    names = [f"i{n}" for n in range(40)]
    truth = held("t", *(image(name, anomalies("k", "t", 1)) for name in names))
    good = held("g", *(image(name, anomalies("k", "p", 1)) for name in names))
    # Half as good on every image: two predictions where one is right. One image is missing.
    half = held("h", *(image(name, anomalies("k", "p", 2)) for name in names[1:]))
    measure = both({"k": np.array([[0.95], [0.1]])})
    found = score(truth, measure, ScoreSettings(resamples=200), good=good, half=half, again=good)
    kept = {(one.first, one.second, one.protocol, one.metric, one.view): one for one in found.differences}
    assert len(kept) == 3 * 2 * 2 * 3
    one = kept["good", "half", "release", "semap", "full"]
    assert (one.images, one.figure.value, one.figure.interval) == (39, 0.5, (0.5, 0.5))
    same = kept["good", "again", "paper", "semf1", "phe"]
    assert (same.images, same.figure.value, same.figure.interval) == (40, 0.0, (0.0, 0.0))
    missing = kept["good", "half", "paper", "semap", "full"]
    assert missing.figure.value is not None
    assert missing.figure.interval is not None
    # In paper the missing image is an empty prediction. Ranked first, the right one has precision 1.
    assert missing.images == 40
    assert missing.figure.value == pytest.approx(1 / 40)
    assert missing.figure.interval[0] <= 1 / 40 <= missing.figure.interval[1]


def test_signature_says_what_can_be_compared() -> None:
    truth = held("t", image("a", anomalies("k", "t", 1)))
    mine, other = (held(name, image("a", anomalies("k", "p", count))) for name, count in (("m", 1), ("o", 0)))
    measure = both({"k": ONE})
    signature = score(truth, measure, mine=mine).signature
    assert score(truth, measure, replace(PLAIN, seed=5), other=other).signature == signature
    different = [
        score(truth, measure, replace(PLAIN, thresholds=(0.7, 0.8)), mine=mine),
        score(truth, measure, replace(PLAIN, balance=0.6), mine=mine),
        score(truth, GivenSimilarity({"k": ONE, "kr": ONE}, name="other"), mine=mine),
        score(held("t", image("a", anomalies("k", "t", 0))), measure, mine=mine),
    ]
    assert len({signature, *(each.signature for each in different)}) == 5


def test_examples_to_read_and_how_similarities_spread() -> None:
    cells = np.array([[0.95, 0.2, 0.3], [0.1, 0.4, 0.35]])
    truth = held("t", image("a", anomalies("k", "t", 3)), image("b", anomalies("k", "t", 1)))
    mine = held("p", image("a", anomalies("k", "p", 2)), image("b"))
    found = score(truth, both({"k": cells}), mine=mine).predictions["mine"]
    examples = found.examples
    assert [(one.predicted.name, one.true.name) for one in examples.best] == [("p0", "t0"), ("p1", "t1")]
    assert [one.similarity["full"] for one in examples.worst] == pytest.approx([0.4, 0.95])
    assert (examples.matched, examples.missed_total) == (2, 2)
    assert [(one.image, one.true.name, one.closest) for one in examples.missed] == [
        ("b", "t0", None),
        ("a", "t2", pytest.approx(0.35)),
    ]
    assert sum(found.spread.matched["full"]) == 2
    assert sum(found.spread.every["phe"]) == 6
    assert found.spread.matched["phe"][47] == 1


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

    found = similarities(pairs(), both({"k": ONE}), 0.5)
    places = []
    for _ in range(30):
        pair, _ = next(found)
        places.append(pair.place)
        assert read <= len(places) + 3
    assert places == list(range(30))
    assert [pair.place for pair, _ in found] == list(range(30, 1_000))


@pytest.mark.parametrize(
    "wrong",
    [
        *({"thresholds": given} for given in ((), (0.0,), (1.1,), (0.7, 0.7), (float("nan"),))),
        *({"balance": given} for given in (-0.1, 1.5, float("nan"))),
    ],
)
def test_settings_that_make_no_sense(wrong: dict[str, object]) -> None:
    with pytest.raises(UsageError):
        ScoreSettings(**wrong)  # type: ignore[arg-type]


@st.composite
def sets(draw: st.DrawFn) -> list[tuple[Matrix, Matrix, list[int]]]:
    """Some images, each with two matrices and a severity for each prediction."""
    found = []
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
        found.append((drawn[0], drawn[1], severities))
    return found


@settings(max_examples=60, deadline=None)
@given(sets())
def test_figures_of_a_set_are_what_the_definitions_say(
    given_set: list[tuple[Matrix, Matrix, list[int]]],
) -> None:
    matrices: dict[str, Matrix] = {}
    truth, mine = [], []
    expected: dict[str, list[tuple[float, float]]] = {"release": [], "paper": []}
    for number, (phe, rea, severities) in enumerate(given_set):
        key = str(number)
        matrices |= {key: phe, f"{key}r": rea}
        truth.append(image(key, anomalies(key, "t", phe.shape[1])))
        mine.append(image(key, anomalies(key, "p", phe.shape[0], severities)))
        full = 0.5 * phe + 0.5 * rea
        confidences = [100 - severity for severity in severities]
        expected["release"].append(release_figures(rea, THRESHOLDS))
        expected["paper"].append(paper_figures(rea, THRESHOLDS, confidences, full))
    found = score(held("t", *truth), GivenSimilarity(matrices), mine=held("p", *mine)).predictions["mine"]
    for protocol, figures in expected.items():
        scored = found.protocols[protocol]  # type: ignore[index]
        assert scored.semap["rea"].value == pytest.approx(np.mean([one for one, _ in figures]))
        assert scored.semf1["rea"].value == pytest.approx(np.mean([other for _, other in figures]))
