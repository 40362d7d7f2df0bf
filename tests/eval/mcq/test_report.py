"""The HTML report of MCQ scores, on the bundled scenes and on made sets without pictures."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import orjson
import pytest

from tests.eval.common.page_text import Page, check_script, check_static_page
from tests.eval.mcq.made_sets import answered, answers_to, made_item, made_set
from uncanny.eval.common.estimates import Estimate, Interval
from uncanny.eval.mcq.data.items import Answer, Item, ItemSet
from uncanny.eval.mcq.data.load import copy_scenes, load
from uncanny.eval.mcq.report.gallery import MOST_SHOWN
from uncanny.eval.mcq.score.controls import baseline_answers
from uncanny.eval.mcq.score.score import score
from uncanny.eval.mcq.score.tables import headline
from uncanny.eval.metrics.intervals import ALPHA
from uncanny.prompts import prompt_set

HOSTILE = "</style><script>alert(1)</script><img src=x onerror=alert(1)>\"'&"


def report(
    folder: Path,
    items: Sequence[Item],
    answers: Sequence[Answer],
    *,
    published: bool = True,
    overlays: Path | None = None,
) -> Page:
    scores = score(ItemSet(tuple(items), folder / "items.jsonl"), answers, resamples=50)
    out = scores.report(folder / "mcq.html", published=published, overlays=overlays)
    return Page(out.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def scenes_page(tmp_path_factory: pytest.TempPathFactory) -> Page:
    folder = tmp_path_factory.mktemp("scenes")
    items = load(copy_scenes(folder))
    answers = baseline_answers(items, "random") + [
        answer for item in items for answer in answers_to(item, "1111", "local/good")
    ]
    return report(folder, items, answers, overlays=folder / "drawn")


def test_page_loads_nothing_and_names_its_own_style(scenes_page: Page) -> None:
    check_static_page(scenes_page)
    assert scenes_page.all("img")


def test_every_link_inside_leads_somewhere(scenes_page: Page) -> None:
    ids = {attrs["id"] for _, attrs in scenes_page.tags if "id" in attrs}
    assert {(attrs["href"] or "")[1:] for attrs in scenes_page.all("a")} <= ids


def test_both_pictures_of_every_shown_item_are_there(scenes_page: Page) -> None:
    cards = sum(name == "article" for name, _ in scenes_page.tags)
    assert cards == MOST_SHOWN  # 34 scenes, all right by the one model that decides
    assert len(scenes_page.all("img")) == 2 * cards
    assert f"Showing {MOST_SHOWN} of 34" in scenes_page.text


def test_answers_of_guessing_are_told_from_its_scores(tmp_path: Path, scenes_page: Page) -> None:
    """The scores are the mean of all draws, which no single answer can show."""
    words = "are one draw; its scores are the mean of all draws."
    assert words in scenes_page.text
    items = made_set({"art_dg": 2})
    assert words not in report(tmp_path, items, answered(items, ["1111"] * len(items))).text


def test_drawn_overlays_are_kept_where_a_folder_is_given(tmp_path: Path) -> None:
    items = load(copy_scenes(tmp_path))[:3]
    answers = [answer for item in items for answer in answers_to(item, "1111")]
    report(tmp_path, items, answers, overlays=tmp_path / "drawn")
    assert len(list((tmp_path / "drawn").glob("*.png"))) == 3


def test_whose_prompts_were_asked_is_said_as_far_as_the_answers_say_it(
    tmp_path: Path, scenes_page: Page
) -> None:
    assert "The records do not say which prompts were used" in scenes_page.text
    assert "uncanny's own" not in scenes_page.text
    items = made_set({"art_dg": 2})

    def page(*prompts: str) -> str:
        each = zip(answered(items, ["1111"] * 2), prompts * 8, strict=False)
        answers = [answer.model_copy(update={"prompts": prompt}) for answer, prompt in each]
        return report(tmp_path, items, answers).text

    ours = page(prompt_set("mcq").id)
    assert "Asked with uncanny's own prompts." in ours
    assert "do not compare with published ones" in ours
    assert "asked with the released prompts about the 950 released images" in ours
    theirs = page("own:q1@00000000")
    assert "Asked with the set's own prompts, word for word." in theirs
    assert "compare with published ones where the items are theirs" in theirs
    half = page("own:q1@00000000", prompt_set("mcq").id)
    assert "Asked with uncanny's own prompts and the set's own prompts." in half


def test_missing_answers_are_told_first(tmp_path: Path) -> None:
    items = made_set({"art_dg": 4, "ref_real": 4})
    answers = answered(items, ["11-1", "1111", "1111", "1111", "1111", "1111", "1111", "----"])
    failed = Answer(id=items[0].id, question="q3", raw=None, model="m", outcome="error", error="timed out")
    page = report(tmp_path, items, [*answers, failed])
    assert "5 answers are missing." in page.text
    assert "1 timed out" in page.text
    assert "4 not answered" in page.text
    assert "answers asked for: 5 missing." in page.text
    assert page.text.index("answers are missing") < page.text.index("All four questions right")
    assert "Items with a missing answer 2, in none of these lists" in page.text
    complete = report(tmp_path, items, answered(items, ["1111"] * 8))
    assert "are missing" not in complete.text.split("Percent of images")[0]


def test_the_main_score_is_drawn_first_and_how_it_was_made_comes_last(tmp_path: Path) -> None:
    items = made_set({"art_dg": 4})
    page = report(tmp_path, items, answered(items, ["1111", "1111", "1111", "0111"]))
    drawn = page.text.index("All four questions right percent of all images")
    assert page.text[drawn:].index("75 %") < page.text[drawn:].index("Percent of images")
    assert "Every question that was asked has a readable answer." in page.text
    assert page.text.index("Items that everybody gets right") < page.text.index("How this page was made")
    assert page.text.index("How this page was made") < page.text.index("Intervals 95 %, Wilson")


def test_what_is_not_asked_is_no_zero(tmp_path: Path) -> None:
    items = [made_item(f"r{n}", "ref_pg") for n in range(3)]
    page = report(tmp_path, items, answered(items, ["-000"] * 3), published=False)
    cells = re.findall(r"<td[^>]*>(.*?)(?=<small>|</td>)", page.html)
    # Six columns of artifacts and three of photographs, without images; before the edit Q2–4, overall Q2–4.
    assert cells[:13] == ["not asked"] * 9 + [
        "0\N{NO-BREAK SPACE}%",
        "not asked",
        "0\N{NO-BREAK SPACE}%",
        "not asked",
    ]
    assert "No model was asked Q1" in page.text
    assert "no image with all answers" in page.text


def test_asked_without_any_answer_is_not_called_unasked(tmp_path: Path) -> None:
    items = made_set({"art_dg": 2})
    page = report(tmp_path, items, answered(items, ["1---"] * 2))
    row = page.html.split('scope="row"><bdi>m</bdi>', 1)[1].split("</tr>")[0]
    cells = re.findall(r">(no answer|not asked|100\s%)<", row)[:6]
    assert cells == ["no answer"] * 2 + ["100\N{NO-BREAK SPACE}%"] + ["no answer"] * 3


def test_hostile_words_stay_words(tmp_path: Path) -> None:
    item = made_item(HOSTILE, "art_dg", kind="count")
    choice = {"options": dict.fromkeys("ABCD", HOSTILE), "answer": "A"}
    hostile = Item.model_validate(item.model_dump() | {"q2": choice, "q4": choice, "pair_id": HOSTILE})
    answers = [
        Answer(id=HOSTILE, question=question, raw=HOSTILE, model=HOSTILE) for question in ("q1", "q2", "q3")
    ]
    refused = Answer(id=HOSTILE, question="q4", raw=HOSTILE, model=HOSTILE, outcome="refused")
    failed = Answer(id=HOSTILE, question="q1", raw=None, model="b", outcome="error", error=HOSTILE)
    page = report(tmp_path, [hostile], [*answers, refused, failed])
    check_script(page)
    assert not [attrs for _, attrs in page.tags if "onerror" in attrs]
    assert page.html.count("</style>") == 1
    assert HOSTILE in "".join(page.words)


def test_the_best_model_comes_first_as_in_the_terminal(tmp_path: Path) -> None:
    items = made_set({"art_dg": 4})
    answers = [*answered(items, ["0111"] * 4, "worse"), *answered(items, ["1111"] * 4, "better")]
    page = report(tmp_path, items, [*baseline_answers(items, "always-E/no"), *answers])
    for heading in ("h-table", "h-rates"):
        rows = page.html.split(f'id="{heading}"')[1].split("<tbody>")[1].split("</tbody>")[0]
        assert re.findall(r'scope="row"><bdi>([a-z]+)', rows) == ["better", "worse", "baseline"]


def test_published_models_can_be_left_out(tmp_path: Path, scenes_page: Page) -> None:
    items = made_set({"art_dg": 4, "ref_real": 4})
    page = report(tmp_path, items, answered(items, ["1010"] * 8), published=False)
    assert "Gemini" not in page.html
    assert "Gemini" in scenes_page.html


def test_rates_are_given_for_each_question(tmp_path: Path) -> None:
    items = made_set({"art_dg": 4})
    answers = [
        answer.model_copy(update={"raw": "no idea"} if answer.question == "q2" else {})
        for answer in answered(items, ["1111"] * 4)
    ]
    refusal = answers[3].model_copy(update={"raw": "I won't", "outcome": "refused"})
    page = report(tmp_path, items, [*answers[:3], refusal, *answers[4:]])
    row = page.html.split('id="h-rates"')[1].split("<tbody>")[1].split("</tr>")[0]
    shown = [" ".join(cell.split()) for cell in re.findall(r"<td[^>]*>(.*?)</td>", row)]
    zero = "0 (0 %)"
    assert shown == [zero] * 4 + [zero, "4 (100 %)", zero, "1 (25 %)"] + [zero] * 3 + ["1 (25 %)", "0"]


def test_p_values_are_said_to_be_corrected(tmp_path: Path) -> None:
    items = made_set({"art_dg": 20})
    answers = answered(items, ["1111"] * 20, "a") + answered(items, ["0111"] * 20, "b")
    page = report(tmp_path, items, answers)
    assert "p-values are corrected by Holm for the 1 pair of models" in page.text
    assert "20 / 0 of 20" in page.text
    assert "p < 0.0001" in page.text
    assert "p = 1" in page.text
    alone = report(tmp_path, items, answered(items, ["1111"] * 20, "a"))
    assert "nothing to compare" in alone.text


@pytest.mark.parametrize(
    ("adjusted_p", "interval", "is_marked"),
    [(ALPHA, (0.01, 0.2), True), (0.001, (-0.01, 0.2), False), (0.001, None, True), (0.051, None, False)],
)
def test_cells_are_marked_by_the_rule_of_the_headline(
    adjusted_p: float, interval: Interval | None, is_marked: bool, tmp_path: Path
) -> None:
    items = made_set({"art_dg": 20})
    answers = answered(items, ["1111"] * 20, "a") + answered(items, ["0111"] * 20, "b")
    scores = score(ItemSet(tuple(items), tmp_path / "items.jsonl"), answers, resamples=0)
    difference = Estimate(0.1, interval)
    tests = [replace(each, adjusted_p=adjusted_p, difference=difference) for each in scores.mcnemar]
    scores = replace(scores, mcnemar=tuple(tests), blind=tuple(tests))
    page = scores.report(tmp_path / "mcq.html").read_text(encoding="utf-8")
    assert page.count('<td class="sig">') == (2 * len(tests) if is_marked else 0)
    assert ("significantly ahead of" in headline(scores)) is is_marked


def test_the_control_has_its_own_table(tmp_path: Path) -> None:
    items = made_set({"art_dg": 4})
    blind = [Answer(id=item.id, question="q4_no_image", raw="F", model="m") for item in items[:3]]
    page = report(tmp_path, items, [*answered(items, ["1111"] * 4), *blind])
    row = page.html.split('id="h-control"')[1].split("<tbody>")[1].split("</tr>")[0]
    cells = [" ".join(cell.split()) for cell in re.findall(r"<td[^>]*>([^<]*)", row)]
    assert cells == ["100 %", "0 %", "0 %", "0 %", "0 %", "0", "1"]
    assert re.findall(r"<small>([^<]*)</small>", row) == ["n = 3", "43.9–100.0", *["0.0–56.1"] * 4]


def test_guesses_without_the_images_stand_beside_the_model_and_against_it(tmp_path: Path) -> None:
    items = made_set({"art_dg": 8})
    guesses = [
        answer.model_copy(update={"question": f"{answer.question}_blind"})
        for answer in answered(items, ["1011"] * 2 + ["1010"] * 6)
    ]
    page = report(tmp_path, items, [*answered(items, ["1111"] * 8), *guesses])
    assert "<bdi>blind/<wbr>m</bdi><small>guessed without images</small>" in page.html
    row = page.html.split('id="h-control"')[1].split("<tbody>")[1].split("</tr>")[0]
    first = " ".join(re.sub(r"<[^>]+>", " ", row.split("</td>")[0]).split())
    assert first == "m +100.0 +54.1 to +100.0 8 / 0 of 8 p = 0.0078"
    assert "m reaches 100.0 % [67.6–100.0] in all four questions right." in page.text


def test_the_page_begins_with_a_sentence_and_lists_every_item(tmp_path: Path) -> None:
    items = made_set({"art_dg": 8, "ref_real": 4})
    answers = answered(items, ["1111"] * 6 + ["0111"] * 6, "good") + answered(items, ["0111"] * 12, "bad")
    scores = score(items, answers, resamples=0)
    assert headline(scores) == (
        "good leads in all four questions right with 50.0 %, significantly ahead of bad (0.0 %)."
    )
    alike = answered(items, ["1111"] * 12, "one") + answered(items, ["1111"] * 12, "two")
    assert headline(score(items, alike, resamples=0)).startswith("No significant difference between models")
    page = scores.report(tmp_path / "mcq.html").read_text(encoding="utf-8")
    opened = orjson.loads(re.findall(r'id="items">(.*?)</script>', page, re.DOTALL)[0])
    assert set(opened["items"]) == {item.id for item in items}
    assert opened["models"] == ["good", "bad"]
    first = opened["items"][items[0].id]
    assert [codes[0] for codes in first["answers"][0]] == ["r"] * 4
    assert [codes[0] for codes in first["answers"][1]] == ["w", "r", "r", "r"]
    for item in items:
        assert f'data-open="{item.id}"' in page
