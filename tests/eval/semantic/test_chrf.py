"""chrF: what sacrebleu reports for a sentence, from 0 to 1, and 0 for blank texts."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sacrebleu.metrics.chrf import CHRF as SACREBLEU

from uncanny.errors import UsageError
from uncanny.eval.common.parameters import MeasureParameters
from uncanny.eval.common.similarity import chrf
from uncanny.eval.common.similarity.base import FieldPairs, TextPairs, mutual, open_measure

CHRF = open_measure("chrf")


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


@pytest.mark.parametrize(
    "blank", ["", " ", "\n\t", "\u3000", "\u200b", "\u200d\u2060 \ufeff", "\xad", "\x07", "\ufe0f", "\u3164"]
)
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
        open_measure("chrf", MeasureParameters(backbone="bert-base-uncased"))


# Few letters and words, so that texts have n-grams in common, some of them several times.
SOME = st.lists(st.sampled_from(["a", "ab", "aba", "six fingers", "hand", "杯子", " ", "😀"]), max_size=8)
TEXTS = st.lists(SOME.map("".join), max_size=4)
ENTRIES = st.lists(st.builds(TextPairs, TEXTS, TEXTS), max_size=4)


@given(ENTRIES)
def test_every_cell_is_that_of_sacrebleu_to_the_last_digit(entries: list[TextPairs]) -> None:
    for entry, cells in zip(entries, CHRF.matrices(entries), strict=True):
        for row, predicted in enumerate(entry.predicted):
            for column, true in enumerate(entry.true):
                score = SACREBLEU().sentence_score(predicted, [true]).score / 100
                assert cells[row, column] == (min(1.0, score) if predicted.strip() and true.strip() else 0)


def test_many_letters_are_counted_as_few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tens of thousands of letters leave no room for an n-gram in a number, and none for a table."""
    letters = [chr(0x4E00 + number) for number in range(20_000)]
    texts = ["".join(letters[at : at + 400]) for at in range(0, 19_000, 150)]
    entry = TextPairs(texts[::2], texts[1::2])
    (cells,) = CHRF.matrices([entry])
    assert cells[3, 3] == SACREBLEU().sentence_score(texts[6], [texts[7]]).score / 100
    monkeypatch.setattr("uncanny.eval.common.similarity.chrf._MOST_CELLS", 0)
    (again,) = CHRF.matrices([entry])
    assert (cells == again).all()


def texts_of(pairs: TextPairs) -> list[list[str]]:
    return [list(pairs.predicted), list(pairs.true)]


def turned(pairs: TextPairs) -> TextPairs:
    return TextPairs(pairs.true, pairs.predicted)


class Plain:
    """chrF without its own `mutual`, so that the general way is taken."""

    described, compares_with_published = CHRF.described, False
    matrices = staticmethod(CHRF.matrices)


@given(st.lists(st.builds(FieldPairs, st.builds(TextPairs, TEXTS, TEXTS), st.none()), max_size=3), st.data())
def test_what_cannot_reach_the_threshold_is_not_counted_and_nothing_else(
    made: list[FieldPairs], data: st.DataObject
) -> None:
    fields = []
    for each in made:
        sides = [
            data.draw(st.permutations(side)) for side in (each.phenomenon.predicted, each.phenomenon.true)
        ]
        fields.append(FieldPairs(each.phenomenon, TextPairs(*sides)))
    at_least = data.draw(st.sampled_from([0.0, 0.2, 0.4, 0.7, 1.0]))
    quick, whole = (list(mutual(measure, fields, 0.3, at_least)) for measure in (CHRF, Plain()))
    assert len(quick) == len(whole) == len(fields)
    for ours, theirs in zip(quick, whole, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-12)
    swapped = [
        FieldPairs(*(TextPairs(pair.true, pair.predicted) for pair in (f.phenomenon, f.reasoning)))
        for f in fields
    ]
    for ours, theirs in zip(quick, mutual(CHRF, swapped, 0.3, at_least), strict=True):
        assert (ours == theirs.T).all()


def test_texts_are_counted_in_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    entries = [TextPairs(["abc"] * number, ["abd", ""]) for number in range(5)]
    whole = list(CHRF.matrices(entries))
    monkeypatch.setattr(chrf, "_CHARACTERS", 100)
    for ours, theirs in zip(CHRF.matrices(iter(entries)), whole, strict=True):
        assert (ours == theirs).all()
