"""Krippendorff's α against its author's worked example, nltk's, and properties."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from nltk.metrics.agreement import AnnotationTask

from uncanny.eval.metrics.significance import Agreement, krippendorff_alpha

# Krippendorff (2011), section C: four observers, twelve units, some not judged. Nominal α is 0.743.
_OBSERVERS = (
    "1 2 3 3 2 1 4 1 2 . . .",
    "1 2 3 3 2 2 4 1 2 5 . 3",
    ". 3 3 3 2 3 4 2 2 5 1 .",
    "1 2 3 3 2 4 4 1 2 5 1 .",
)
_EXAMPLE = [
    [value for value in unit if value != "."] for unit in zip(*map(str.split, _OBSERVERS), strict=True)
]


def test_the_worked_example_of_its_author() -> None:
    agreement = krippendorff_alpha(_EXAMPLE)
    assert agreement.alpha == pytest.approx(0.743, abs=0.0005)
    assert (agreement.units, agreement.judgements) == (11, 40)


@given(
    st.lists(
        st.lists(st.sampled_from(["accept", "reject", "unsure"]), min_size=2, max_size=4),
        min_size=1,
        max_size=20,
    )
)
def test_the_same_as_nltk(units: list[list[str]]) -> None:
    alpha = krippendorff_alpha(units).alpha
    if alpha is None:
        assert len({value for unit in units for value in unit}) == 1
        return
    data = [
        (f"c{coder}", str(unit), value)
        for unit, values in enumerate(units)
        for coder, value in enumerate(values)
    ]
    assert alpha == pytest.approx(AnnotationTask(data).alpha())


def test_what_cannot_be_told_is_none() -> None:
    assert krippendorff_alpha([]) == Agreement(None, 0, 0)
    assert krippendorff_alpha([["accept"], ["reject"]]) == Agreement(None, 0, 0)
    assert krippendorff_alpha([["accept", "accept"]] * 3) == Agreement(None, 3, 6)
    assert krippendorff_alpha([["accept", "accept"], ["reject", "reject"]]).alpha == 1
    assert krippendorff_alpha([{"accept": 2}, {"reject": 2}]).alpha == 1
