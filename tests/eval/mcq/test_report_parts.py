"""The pieces of the MCQ report: bars, scatter, and the choice of items."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.eval.mcq.made_sets import answered, made_item, made_set
from uncanny.eval.common.estimates import p_words
from uncanny.eval.common.pages.pictures import PageViews
from uncanny.eval.mcq.data.items import Answer, Item
from uncanny.eval.mcq.report import plots
from uncanny.eval.mcq.report.gallery import MOST_SHOWN, Gallery, Solvers, browse, gallery
from uncanny.eval.mcq.report.plots import (
    bias_groups,
    hierarchy_bar,
    most_frequent,
    pattern_bars,
    published_hierarchy,
)
from uncanny.eval.mcq.score.controls import baseline_answers
from uncanny.eval.mcq.score.score import score
from uncanny.eval.mcq.score.tables import headline, published_scores
from uncanny.eval.metrics.intervals import wilson_interval


def chosen(items: list[Item], answers: list[Answer]) -> Gallery:
    return gallery(score(items, answers, resamples=0), PageViews(Path("page.html")), overlays=None)


def test_all_sixteen_patterns_are_there_and_scale_to_the_most_frequent() -> None:
    items = made_set({"art_dg": 4})
    scores = score(items, answered(items, ["1111", "1111", "0000", "01-0"]), resamples=0)
    bars = {bar.pattern: bar for bar in pattern_bars(scores["m"], most_frequent([scores["m"]]))}
    assert len(bars) == 16
    assert next(iter(bars)) == "1111"
    assert bars["1111"].width == 2 * bars["0000"].width > 0
    assert bars["1111"].share == pytest.approx(2 / 3)
    assert bars["0101"].width == 0


def test_patterns_of_all_models_are_on_one_scale() -> None:
    """Whatever they have answered: shares that are equal are equally long."""
    items = made_set({"art_dg": 4})
    answers = [
        *answered(items, ["1111", "1111", "1111", "0000"], "a"),
        *answered(items[:2], ["1111", "0000"], "b"),
    ]
    models = list(score(items, answers, resamples=0).values())
    most = most_frequent(models)
    assert most == 0.75
    a, b = ({bar.pattern: bar.width for bar in pattern_bars(each, most)} for each in models)
    assert a["1111"] == pytest.approx(1.5 * b["1111"], abs=0.02)
    assert a["1111"] == pytest.approx(3 * a["0000"], abs=0.02)
    assert most_frequent([]) == 0


def test_stacked_shares_fill_the_bar() -> None:
    items = made_set({"art_dg": 4})
    scores = score(items, answered(items, ["1111", "0111", "1110", "1101"]), resamples=0)
    parts = hierarchy_bar(scores["m"].hierarchy)
    assert [(part.x, part.width) for part in parts] == [(0, 25), (25, 25), (50, 25), (75, 25)]
    for row in published_scores()["hierarchy"]:
        assert sum(part.width for part in published_hierarchy(row)) == pytest.approx(100, abs=0.2)


def test_no_artifact_image_means_no_bar() -> None:
    items = made_set({"ref_real": 2})
    scores = score(items, answered(items, ["1111"] * 2), resamples=0)
    assert hierarchy_bar(scores["m"].hierarchy) == []
    assert all((bar.share, bar.width) == (None, 0) for bar in pattern_bars(scores["m"], 0.5))
    assert most_frequent([scores["m"]]) == 0


def test_bias_compares_given_with_right() -> None:
    items = made_set({"art_dg": 2, "ref_pg": 2})
    scores = score(items, baseline_answers(items, "always-E/no"), resamples=0)
    presence, place, *_ = bias_groups(scores["baseline/always-E/no"])
    assert [(bar.option, bar.given, bar.right) for bar in presence.bars] == [("yes", 0, 1), ("no", 1, 0)]
    assert [(bar.given, bar.right) for bar in place.bars][-1] == (1, 0.5)


def test_unasked_question_has_no_bias_bars() -> None:
    items = [made_item("r", "ref_pg")]
    scores = score(items, answered(items, ["-111"]), resamples=0)
    assert bias_groups(scores["m"])[0].bars == ()


def test_scatter_places_the_ends_of_the_scale_and_names_who_is_left_out() -> None:
    items = made_set({"art_dg": 4, "ref_real": 4})
    answers = answered(items, ["1111"] * 8, "perfect") + answered(items[:4], ["1111"] * 4, "half")
    scatter = plots.scatter(score(items, answers, resamples=20).models, published_scores()["main"])
    assert scatter.left_out == ("half",)
    best = scatter.points[0]
    assert (best.x, best.y) == (plots.at_x(1), plots.at_y(1))
    low, high = wilson_interval(4, 4) or (0, 0)
    assert best.across == (plots.at_x(low), plots.at_x(high))
    numbers = [point.number for point in scatter.points if point.kind == "published"]
    assert numbers == list(range(1, len(published_scores()["main"]) + 1))
    for point in scatter.points:
        assert point.label in (point.name, str(point.number))
        assert 0 <= point.label_x <= plots.WIDTH
        assert 0 <= point.label_y <= plots.HEIGHT


def test_crowded_points_get_a_label_or_are_named_beside_the_plot() -> None:
    rows = [{"model": f"m{n}", "artifact_q1": 0.0, "ref_real_q1": 100.0} for n in range(40)]
    labelled = [point for point in plots.scatter({}, rows).points if point.label]
    assert len({(point.label_x, point.label_y) for point in labelled}) == len(labelled) > 10


def test_many_models_stand_in_the_plot_as_letters() -> None:
    items = made_set({"art_dg": 4, "ref_real": 4})
    answers = [each for n in range(28) for each in answered(items, ["1111"] * 8, f"model {n}")]
    points = plots.scatter(score(items, answers, resamples=0).models, []).points
    assert [point.label for point in points][:2] == ["A", "B"]
    assert points[27].label == "AB"
    assert all(point.lettered for point in points)


def test_hardest_items_come_first_and_the_rest_is_counted() -> None:
    items = made_set({"art_dg": MOST_SHOWN + 4})
    patterns = ["1110"] * (MOST_SHOWN + 1) + ["0000", "1111", "1111"]
    shown = chosen(items, answered(items, patterns))
    assert (shown.n_nobody, shown.n_everybody) == (MOST_SHOWN + 2, 2)
    assert len(shown.nobody) == MOST_SHOWN
    assert shown.nobody[0].item.id == items[MOST_SHOWN + 1].id
    assert [card.item.id for card in shown.everybody] == [item.id for item in items[-2:]]


def test_one_of_two_right_is_in_neither_list() -> None:
    items = made_set({"art_dg": 3})
    answers = answered(items, ["1111", "1111", "0111"], "a") + answered(items, ["1111", "0111", "0111"], "b")
    shown = chosen(items, answers)
    assert [card.item.id for card in shown.everybody] == [items[0].id]
    assert [card.item.id for card in shown.nobody] == [items[2].id]


def test_baselines_and_people_do_not_decide() -> None:
    items = made_set({"art_dg": 2})
    answers = answered(items, ["1111"] * 2, "m") + answered(items, ["0000"] * 2, "human/ann")
    shown = chosen(items, answers + baseline_answers(items, "always-E/no"))
    assert shown.judges == ("m",)
    assert shown.n_everybody == 2
    assert [name for name, _ in shown.everybody[0].answers] == ["m", "human/ann", "baseline/always-E/no"]
    assert chosen(items, baseline_answers(items, "always-E/no")).judges == ("baseline/always-E/no",)


def test_answers_are_shown_for_what_they_are() -> None:
    items = [made_item("a", "art_dg"), made_item("p", "ref_pg")]
    answers = [
        Answer(id="a", question="q1", raw="no", model="m"),
        Answer(id="a", question="q2", raw="x" * 500, model="m"),
        Answer(id="a", question="q3", raw="I won't", model="m", outcome="refused"),
        Answer(id="a", question="q4", raw=" (a) ", model="m"),
        *answered(items[1:], ["-000"]),
    ]
    cards = {card.item.id: card for card in chosen(items, answers).nobody}
    _, shown = cards["a"].answers[0]
    assert [answer.state for answer in shown] == ["wrong", "invalid", "refused", "right"]
    assert [answer.text for answer in shown] == ["no", "invalid", "refused", "A"]
    assert len(shown[1].raw) == 60
    assert cards["p"].answers[0][1][0].state == "unasked"
    assert [shown.question for shown in cards["p"].questions] == ["q2", "q3", "q4"]
    assert cards["p"].shown.thumbs == (None,)


def test_every_item_is_in_one_list_and_an_even_split_comes_first() -> None:
    items = made_set({"art_dg": 5})
    answers = [
        *answered(items, ["1111", "1111", "0111", "0000", "1-11"], "a"),
        *answered(items, ["1111", "1111", "1111", "0000", "1111"], "b"),
        *answered(items, ["1111", "0111", "0111", "0000", "1111"], "c"),
        *answered(items, ["1111", "1111", "1111", "0000", "1111"], "d"),
    ]
    lists = chosen(items, answers)
    ids = [item.id for item in items]
    assert [card.item.id for card in lists.everybody] == ids[:1]
    assert [card.item.id for card in lists.divided] == [ids[2], ids[1]]
    assert [card.item.id for card in lists.nobody] == ids[3:4]
    assert [card.item.id for card in lists.unfinished] == ids[4:]
    assert (lists.n_everybody, lists.n_divided, lists.n_nobody, lists.n_unfinished) == (1, 2, 1, 1)


def test_a_failed_call_is_no_wrong_answer_in_the_list_of_items(tmp_path: Path) -> None:
    items = made_set({"art_dg": 4})
    scores = score(
        items,
        answered(items, ["----", "1111", "0000", "1-11"], "a")
        + answered(items, ["----", "0111", "1111", "1111"], "b"),
        resamples=0,
    )
    browser = browse(scores, tmp_path / "mcq.html", "link")
    by_id = {row.item.id: row for row in browser.rows}
    # Fewest right first, of those that answered; the item without an answer is no hardest one.
    assert [row.item.id for row in browser.rows] == [items[n].id for n in (1, 2, 3, 0)]
    assert by_id[items[0].id].whole == Solvers(0, 0)
    assert by_id[items[3].id].whole == Solvers(1, 1)
    assert by_id[items[3].id].by_question == (Solvers(2, 2), Solvers(1, 1), Solvers(2, 2), Solvers(2, 2))
    page = scores.report(tmp_path / "mcq.html").read_text(encoding="utf-8")
    row = page.split(f'data-open="{items[0].id}"')[1].split("</tr>")[0]
    assert row.count('title="no model has an answer">–<') == 5
    assert "<td>1<small>of 1</small></td>" in page.split(f'data-open="{items[3].id}"')[1].split("</tr>")[0]


@pytest.mark.parametrize(
    ("patterns", "words"),
    [
        (
            ("1111", "1111", "0111"),
            "a (100.0 %) and b (100.0 %) lead in {}; b is not significantly behind a. a is significantly "
            "ahead of c (0.0 %).",
        ),
        (
            ("1111", "0111", "0111"),
            "a leads in {} with 100.0 %, significantly ahead of b (0.0 %) and c (0.0 %).",
        ),
        (
            ("1111", "1111", "1111"),
            "No significant difference between models in {}: a (100.0 %), b (100.0 %) and c (100.0 %).",
        ),
    ],
)
def test_models_that_are_equal_share_the_headline(patterns: tuple[str, ...], words: str) -> None:
    items = made_set({"art_dg": 12})
    answers = [
        answer
        for name, each in zip("abc", patterns, strict=True)
        for answer in answered(items, [each] * 12, name)
    ]
    assert headline(score(items, answers, resamples=0)) == words.format("all four questions right")


def test_a_leader_that_does_not_differ_from_the_second_is_not_named_alone() -> None:
    items = made_set({"art_dg": 20})
    answers = answered(items, ["1111"] * 13 + ["0111"] * 7, "a")
    answers += answered(items, ["1111"] * 11 + ["0111"] * 9, "b")
    scores = score(items, answers, resamples=0)
    said = "No significant difference between models in all four questions right: a (65.0 %) and b (55.0 %)."
    assert headline(scores) == said
    assert said in str(scores).replace("\n  ", " ")


@pytest.mark.parametrize(
    ("value", "words"),
    [(0.0, "p < 0.0001"), (1.0, "p = 1"), (0.0123, "p = 0.012"), (None, "nothing in common")],
)
def test_p_value_words(value: float | None, words: str) -> None:
    assert p_words(value) == words


def test_guessing_has_the_expected_numbers_of_patterns() -> None:
    items = made_set({"art_dg": 16})
    scores = score(items, answered(items[:1], ["1111"]), baselines=True, resamples=0)
    guessing = scores["baseline/random"]
    bars = {bar.pattern: bar for bar in pattern_bars(guessing, 1)}
    # Chances are one half, then three times one fifth: 16 · 0.5 · 0.8³ images with all wrong.
    assert [bars["0000"].words, bars["1100"].words] == ["4.1", "1.0"]
    assert bars["0000"].share == pytest.approx(0.256)
    assert bars["1100"].share == pytest.approx(0.5 * 0.2 * 0.8 * 0.8)
    assert sum(bar.share or 0 for bar in bars.values()) == pytest.approx(1)
    assert scores.to_json()["models"]["baseline/random"]["patterns"]["0000"] == 4
