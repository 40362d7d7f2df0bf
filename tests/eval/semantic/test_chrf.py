"""chrF: what sacrebleu reports for a sentence, from 0 to 1, and 0 for blank texts."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from uncanny.errors import UsageError
from uncanny.eval.common.similarity.base import MeasureOptions, TextPairs, open_measure

CHRF = open_measure("chrf", MeasureOptions())


def cell(predicted: str, true: str) -> float:
    (cells,) = CHRF.matrices([TextPairs([predicted], [true])])
    return float(cells[0, 0])


def test_figures_of_sacrebleu() -> None:
    """`echo "The hand has six fingers." | sacrebleu REF -m chrf -w 4 -sl`, version 2.6.0, says 57.0611."""
    assert cell("The hand has six fingers.", "A hand with six fingers.") == pytest.approx(0.570611, abs=5e-7)


def test_equal_texts_and_texts_with_nothing_in_common() -> None:
    assert cell("A cup hangs in the air.", "A cup hangs in the air.") == 1
    assert cell("abc", "xyz") == 0
    assert cell("😀", "😀") == 1
    assert cell("杯子悬在空中", "杯子在空中") > 0.3


def test_it_asks_how_much_of_the_truth_is_said() -> None:
    """β = 2: recall counts more, so saying too much costs less than saying too little."""
    short, long = "six fingers", "six fingers on the left hand of the woman in red"
    assert cell(long, short) > cell(short, long)


@pytest.mark.parametrize("blank", ["", " ", "\n\t", "\u3000"])
def test_blank_texts_are_similar_to_nothing(blank: str) -> None:
    assert cell(blank, "a") == cell("a", blank) == cell(blank, blank) == 0


@given(st.lists(st.text(max_size=30), max_size=3), st.lists(st.text(max_size=30), max_size=3))
def test_any_text_has_a_similarity(predicted: list[str], true: list[str]) -> None:
    (cells,) = CHRF.matrices([TextPairs(predicted, true)])
    assert cells.shape == (len(predicted), len(true))
    assert np.isfinite(cells).all()
    assert ((cells >= 0) & (cells <= 1)).all()


def test_it_says_what_it_is_and_that_it_does_not_compare() -> None:
    assert CHRF.described["measure"] == "chrf"
    assert not CHRF.compares_with_published
    with pytest.raises(UsageError, match="no backbone"):
        open_measure("chrf", MeasureOptions(backbone="bert-base-uncased"))
