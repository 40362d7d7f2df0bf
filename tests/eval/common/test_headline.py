"""What a headline says: nothing that no corrected test proves, and never nothing where one does."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from uncanny.eval.common.estimates import Estimate
from uncanny.eval.common.headline import MOST_SAID, Claim, Versus, headline, proven, ranking
from uncanny.eval.metrics.intervals import ALPHA

P_VALUES = st.one_of(st.none(), st.floats(0, 1), st.just(ALPHA))
CLAIMS = st.lists(
    st.tuples(st.floats(-3, 3), P_VALUES, st.sampled_from([None, True, False]), st.sampled_from(["", "x"]))
)


@given(CLAIMS)
def test_a_headline_says_what_is_proven_and_only_that(
    drawn: list[tuple[float, float | None, bool | None, str]],
) -> None:
    claims = [Claim(f"<{place}>", *each) for place, each in enumerate(drawn)]
    said = headline(claims, nothing="NOTHING", untested="UNTESTED")
    below = [
        each
        for each in claims
        if each.adjusted_p is not None and each.adjusted_p <= ALPHA and each.excludes_zero is not False
    ]
    for each in claims:
        assert (each.words not in said) or each in below
    assert bool(below) is (said not in ("NOTHING", "UNTESTED"))
    if below:
        assert max(below, key=lambda each: abs(each.effect)).words in said or len(
            {abs(each.effect) for each in below}
        ) < len(below)
    assert (said == "UNTESTED") is all(each.adjusted_p is None for each in claims)


@given(st.lists(P_VALUES, min_size=6, max_size=6), st.lists(st.floats(-1, 1), min_size=6, max_size=6))
def test_a_ranking_claims_each_proven_pair_and_no_other(
    p_values: list[float | None], ahead: list[float]
) -> None:
    names = ["a", "b", "c", "d"]
    pairs = [(first, second) for place, first in enumerate(names) for second in names[place + 1 :]]
    tests = [Versus(*pair, Estimate(gap), p) for pair, gap, p in zip(pairs, ahead, p_values, strict=True)]
    said = ranking(dict.fromkeys(names, "1 %"), tests, what="X")
    is_proven = [p is not None and p <= ALPHA and gap != 0 for p, gap in zip(p_values, ahead, strict=True)]
    assert ("No significant difference" in said or "not tested." in said) is not any(is_proven)
    from_first = [each for each, sure in zip(tests, is_proven, strict=True) if sure and each.first == "a"]
    behind = {each.second for each in from_first if (each.ahead or 0) > 0}
    if any(is_proven):
        untested = {each.second for each in tests if each.first == "a" and each.adjusted_p is None}
        leaders = [name for name in names if name not in behind | untested]
        assert " ahead of " in said
        assert said.startswith("a leads in X" if leaders == ["a"] else f"{leaders[0]} (1 %)")
        opening = said.split(". ")[0].split(" lead")[0]
        assert leaders == ["a"] or all((f"{name} (1 %)" in opening) is (name in leaders) for name in names)


def test_leaders_that_do_not_differ_are_named_together() -> None:
    scores = {"a": "61 %", "b": "58 %", "c": "20 %"}
    tests = [
        Versus("a", "b", Estimate(0.03), 0.4),
        Versus("c", "a", Estimate(-0.41), 0.001),
        Versus("b", "c", Estimate(0.38), 0.002),
    ]
    assert ranking(scores, tests, what="X") == (
        "a (61 %) and b (58 %) lead in X; b is not significantly behind a. "
        "a is significantly ahead of c (20 %)."
    )
    assert ranking(scores, tests[:1], what="X") == (
        "No significant difference between models in X: a (61 %), b (58 %) and c (20 %)."
    )
    assert ranking(scores, [], what="X") == (
        "In X: a (61 %), b (58 %) and c (20 %). Whether they differ is not tested."
    )
    sure = [Versus("a", "b", Estimate(0.03), 0.01), *tests[1:]]
    assert ranking(scores, sure, what="X") == (
        "a leads in X with 61 %, significantly ahead of b (58 %) and c (20 %)."
    )
    assert ranking({"a": "61 %"}, [], what="X") == "a reaches 61 % in X."
    assert ranking({}, [], what="X") == ""
    # On what both answered the second is ahead: said as it is.
    turned = [Versus("a", "b", Estimate(-0.1), 0.01), *tests[1:]]
    assert "b is significantly ahead of a (p = 0.01)" in ranking(scores, turned, what="X")
    untested = [*tests[1:], Versus("a", "b", Estimate(None), None)]
    assert ranking(scores, untested, what="X") == (
        "a leads in X with 61 %, significantly ahead of c (20 %). Not tested against a: b."
    )
    # Grouped items: a test may reach the level where the interval holds 0, and then nothing is claimed.
    held = Versus("a", "b", Estimate(0.03, (-0.001, 0.06)), 0.04)
    assert (held.proven, held.seen_from("b").proven) == (False, False)
    assert "significantly ahead" not in ranking({"a": "61 %", "b": "58 %"}, [held], what="X")
    neighbors = ranking(scores, [Versus("a", "b", Estimate(0.03), 0.4), tests[2]], what="X")
    assert neighbors.endswith("Not tested against a: c. b is significantly ahead of c (p = 0.002).")


def test_the_strongest_come_first_one_of_each_topic_and_the_rest_is_counted() -> None:
    claims = [Claim(f"c{place}", place / 10, 0.01, None) for place in range(MOST_SAID + 2)]
    assert headline(claims, nothing="", untested="") == (
        "c4 (p = 0.01); c3 (p = 0.01); c2 (p = 0.01); 2 more below"
    )
    same = [Claim("weak", 0.1, 0.001, None, "t"), Claim("strong", -0.9, 0.04, None, "t")]
    assert headline(same, nothing="", untested="") == "strong (p = 0.04)"


@pytest.mark.parametrize(
    ("p", "excludes", "expected"),
    [(None, True, None), (ALPHA, None, True), (0.051, True, False), (0.001, False, False), (0.0, True, True)],
)
def test_proven(p: float | None, excludes: bool | None, expected: bool | None) -> None:
    assert proven(p, excludes) is expected
