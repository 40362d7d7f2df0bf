"""The pieces of the semantic page: words, labels, distributions, the leader."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.eval.semantic.made_scores import made_predictions, made_score, made_truth
from uncanny.eval.common.estimates import Estimate
from uncanny.eval.common.similarity.weights import measure_words
from uncanny.eval.semantic.report.plots import fitted, lines_of, median_words, panels_of
from uncanny.eval.semantic.report.rows import (
    amount,
    difference_words,
    headline,
    left_out_lists,
    reached,
    signed,
    signed_ends,
)
from uncanny.eval.semantic.score.result import Difference


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (None, "–"),
        (0.0, "0.0000"),
        (0.00001, "<0.0001"),
        (0.52914, "0.5291"),
        (0.99999, ">0.9999"),
        (1, "1.0000"),
    ],
)
def test_figures_are_never_nearly_nothing_or_all(value: float | None, words: str) -> None:
    assert amount(value) == words


def test_differences_carry_their_sign() -> None:
    assert [signed(value) for value in (0.1, -0.1, 0.00001, None)] == ["+0.1000", "−0.1000", "0.0000", "–"]
    assert signed_ends(Estimate(0.1, (-0.05, 0.25))) == "−0.050 to +0.250"


def test_the_highest_threshold_that_is_reached() -> None:
    assert [reached(value, (0.7, 0.8, 0.9)) for value in (0.69, 0.7, 0.85, 1)] == [
        "below 0.7",
        "reaches 0.7",
        "reaches 0.8",
        "reaches 0.9",
    ]


def test_measures_by_name() -> None:
    assert measure_words({"measure": "chrf"}) == "chrF"
    assert (
        measure_words({"measure": "bertscore", "backbone": "b", "num_layers": 5})
        == "BERTScore F1, b, layer 5"
    )
    assert measure_words({"measure": "given"}) == "given"


def test_labels_keep_their_ends() -> None:
    assert fitted("provider/model-7", 16) == "provider/model-7"
    assert fitted("provider/some-model-7", 16) == "provider…model-7"
    assert fitted("七本の指七本の指", 9) == "七本…の指"
    assert fitted("a\x00b\nc", 9) == "ab c"


def test_half_of_the_pairs() -> None:
    assert median_words((0, 1, 3, 0)) == "0.62"
    assert median_words((0, 0)) == "–"


def test_the_leader_and_who_can_not_be_told_apart() -> None:
    truth = made_truth()
    files = {"poor": made_predictions(truth, 0.1), "good": made_predictions(truth, 0.9)}
    files |= {"copy": files["good"]}
    # So that p can be below 0.05 when it is corrected for three pairs.
    score = made_score(files, truth, resamples=200)
    said = headline(score)
    assert said.startswith("good (")
    assert " and copy (" in said
    assert (
        "lead in SemAP (release, full); copy is not significantly behind good. good is significantly" in said
    )
    assert said in str(score).replace("\n  ", " ")
    assert headline(made_score(files, truth, resamples=0)).endswith("Whether they differ is not tested.")
    assert headline(replace(score, predictions={})) == ""


def test_one_file_is_drawn_by_view_and_many_by_file() -> None:
    truth = made_truth()
    files = {f"m{place}": made_predictions(truth, 0.2 * place) for place in range(1, 5)}
    alone, many = made_score({"m1": files["m1"]}, truth), made_score(files, truth)
    assert [line.name for line in lines_of(alone)] == ["phenomenon", "reasoning", "full"]
    assert [line.name for line in lines_of(many)] == list(files)
    assert [panel.title for panel in panels_of(alone)] == ["phenomenon", "reasoning", "full"]
    assert [panel.title for panel in panels_of(many)] == list(files)
    assert len(panels_of(made_score({name: files[name] for name in ("m1", "m2")}, truth))) == 6


def test_no_reason_without_images() -> None:
    truth = made_truth()
    assert left_out_lists(made_score({"same": truth}, truth).predictions["same"]) == []


def test_the_words_of_a_difference_go_by_the_p_that_the_table_has() -> None:
    apart = Difference("a", "b", "release", "semap", "full", 9, Estimate(0.1, (0.01, 0.2)), 0.01, 0.03, 1.0)
    alike = replace(apart, adjusted_p=0.06)
    assert difference_words(apart).startswith("a and b differ: SemAP, release, full +0.1000 (")
    assert "p = 0.03" in difference_words(apart)
    assert difference_words(alike).startswith("a and b do not differ significantly:")
    held = replace(apart, estimate=Estimate(0.1, (-0.01, 0.2)))
    assert difference_words(held).startswith("a and b do not differ significantly:")
    assert difference_words(replace(apart, adjusted_p=None)).startswith("a and b not tested:")
