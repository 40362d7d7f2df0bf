"""All questions asked again without their images: what is sent, what it costs, how it is scored."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest
from statsmodels.stats.contingency_tables import mcnemar as mcnemar_of
from statsmodels.stats.multitest import multipletests

from tests.eval.mcq.made_sets import answered, answers_to, made_set
from tests.eval.mcq.recording import McqRun, recording, rewritten
from tests.eval.mcq.test_run_resume import small_set
from tests.runs.e2e import uncanny_here
from uncanny import mcq
from uncanny.eval.mcq.data.items import QUESTIONS, Answer, Item
from uncanny.eval.mcq.data.texts import prompt_id, question_text, system_text
from uncanny.prompts import prompt_set

OURS = prompt_set("mcq")


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "any-key")


def scene() -> Item:
    return mcq.load("scenes")[3]


@pytest.mark.parametrize("own", [None, {q: f"{q}: A, B, C or D?" for q in QUESTIONS}])
def test_a_blind_question_is_the_question_between_words_of_ours(own: Any) -> None:
    item = scene().model_copy(update={"prompts": own})
    before, after = OURS["blind"].template.template.split("$question")
    for question in QUESTIONS:
        blind = question_text(item, f"{question}_blind")  # type: ignore[arg-type]
        assert blind == before + question_text(item, question) + after
        assert prompt_id(item, f"{question}_blind") == OURS["blind"].id  # type: ignore[arg-type]
    assert "F." not in question_text(item, "q4_blind")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Any, McqRun, dict[str, Any]]]:
    folder = tmp_path_factory.mktemp("blind")
    items = small_set(folder / "set", 4)
    # Two pictures with the same words, as the two of a pair have them.
    first = orjson.loads(items.read_bytes().splitlines()[0])
    rewritten(items, lambda item: {q: first[q] for q in ("q2", "q4")} if item.id == "i01" else {})
    made = McqRun(folder / "run")
    with recording() as server, pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENAI_API_KEY", "any-key")
        forecast = mcq.forecast(items, model="openai/gpt-4o", blind=True).to_json()
        command = ("mcq", "run", items, *server.asked(), "-o", made.path, "--blind", "-q")
        assert uncanny_here(*command).code == 0
        yield (items, server.sent()), made, forecast


@pytest.mark.slow
def test_no_image_is_sent_and_the_same_words_are_sent_once(run: Any) -> None:
    (items, sent), made, _ = run
    unseen = [each for each in sent if not each.pictures]
    blind = [answer for answer in made.answers_list() if answer.question.endswith("_blind")]
    assert len(blind) == 16
    assert all(each.kinds == ("text",) for each in unseen)
    # Q1 and Q3 have the same words for all items, two of them the same options.
    assert len(unseen) == len({each.text for each in unseen}) == 1 + 1 + 3 + 3
    texts = {question_text(item, answer.question) for item in mcq.load(items) for answer in blind}
    assert {each.text for each in unseen} == texts
    assert {each.system for each in unseen} == {system_text(scene())}
    assert all(answer.sha256 is None for answer in blind)


def test_forecast_progress_and_run_json_know_it(run: Any) -> None:
    (_, sent), made, forecast = run
    assert forecast["calls"] == len(sent) == 24
    manifest = made.manifest()
    assert manifest["plan"]["blind"] is True
    assert manifest["prompts"]["files"]["blind"] == OURS["blind"].id.partition("@")[2]
    assert manifest["totals"]["calls"] == 24


def test_without_a_cache_every_guess_is_a_call(run: Any) -> None:
    (items, _), _, _ = run
    forecast = mcq.forecast(items, model="openai/gpt-4o", blind=True, cache=False)
    assert forecast.to_json()["calls"] == 32


def blind(answers: list[Answer]) -> list[Answer]:
    return [each.model_copy(update={"question": f"{each.question}_blind"}) for each in answers]


SETS = made_set({"art_dg": 30, "ref_real": 10})


def guessed(model: str, with_image: str, without: list[str]) -> list[Answer]:
    """Answers of a model that has the same pattern with every image, and these without."""
    return [*answered(SETS, [with_image] * 40, model), *blind(answered(SETS, without, model))]


def test_guesses_are_scored_as_the_model_that_sees_would_be() -> None:
    without = ["1111"] * 5 + ["0101"] * 15 + ["0000"] * 20
    scores = mcq.score(SETS, guessed("m", "1111", without), resamples=50)
    seen = mcq.score(SETS, answered(SETS, without, "m"), resamples=50)
    assert list(scores) == ["m", "blind/m"]
    assert scores["blind/m"].splits == seen["m"].splits
    assert scores["blind/m"].share("artifact", "q4").interval is not None  # type: ignore[union-attr]
    assert scores["m"].splits["overall"].all_q1_4 == 1
    assert (scores.oracle, scores.mcnemar) == (None, ())
    assert scores["blind/m"].missing == {}


@pytest.mark.slow
def test_each_model_is_tested_against_its_own_guesses() -> None:
    few = ["1111"] * 10 + ["0000"] * 30
    many = ["1111"] * 33 + ["0110"] * 7
    scores = mcq.score(SETS, [*guessed("a", "1111", few), *guessed("b", "1101", many)], resamples=0)
    tests = [test for test in scores.blind if test.question == "q4"]
    assert [(test.first, test.second) for test in tests] == [("a", "blind/a"), ("b", "blind/b")]
    assert [(test.n, test.first_only, test.second_only) for test in tests] == [(40, 30, 0), (40, 7, 0)]
    p_values = [mcnemar_of([[10, 30], [0, 0]]).pvalue, mcnemar_of([[33, 7], [0, 0]]).pvalue]
    assert [test.p_value for test in tests] == pytest.approx(p_values)
    assert [test.adjusted_p for test in tests] == pytest.approx(multipletests(p_values, method="holm")[1])
    q3 = next(test for test in scores.blind if (test.first, test.question) == ("b", "q3"))
    assert (q3.first_only, q3.second_only, q3.difference.value) == (0, 40, -1)
    # Beside them the two models are compared, and no guesses.
    assert {(test.first, test.second) for test in scores.mcnemar} == {("a", "b")}
    assert scores.oracle is not None
    assert scores.oracle.value == 1
    content = scores.to_json()
    assert set(content["models"]) == {"a", "b", "blind/a", "blind/b"}
    assert [each["models"] for each in content["blind"]] == [["a", "blind/a"], ["b", "blind/b"]]
    assert content["blind"][0]["q4"]["first_only"] == 30


def test_a_model_renamed_and_a_fallbacks_answers_keep_their_counts() -> None:
    answers = blind([each for item in SETS for each in answers_to(item, "1111", "m")])
    mine = [each.model_copy(update={"models": {"m": 1}}) for each in answers[:-1]]
    theirs = answers[-1].model_copy(update={"models": {"other": 1}})
    scores = mcq.score(SETS, {"mine": [*mine, theirs]}, resamples=0)
    assert scores["blind/mine"].stand_ins == {"other": 1}


def tables_of(scores: mcq.McqScores) -> dict[str, str]:
    return {"text": str(scores), "markdown": scores.to_markdown(), "latex": scores.to_latex()}


@pytest.fixture(scope="module")
def both() -> mcq.McqScores:
    control = [Answer(id=item.id, question="q4_no_image", raw="F", model="m") for item in SETS[:20]]
    control += [Answer(id=item.id, question="q4_no_image", raw="B", model="m") for item in SETS[20:30]]
    answers = guessed("m", "1111", ["1111"] * 10 + ["0000"] * 30)
    return mcq.score(SETS, [*answers, *control], resamples=50, baselines=True)


def test_control_and_guesses_are_in_every_kind_of_table(both: mcq.McqScores) -> None:
    for kind, text in tables_of(both).items():
        flat = " ".join(text.replace("\\", "").split())
        assert "Q4 without the image, with F for saying so" in flat, kind
        assert "All questions guessed without the images" in flat, kind
        assert "blind/m" in flat, kind
        assert "66.7" in flat, kind  # F on 20 of 30
        assert "48.8, 80.8" in flat, kind  # and its interval
        assert "+75" in flat, kind
    rows = list(csv.DictReader(io.StringIO(both.to_csv())))
    (row,) = [each for each in rows if (each["split"], each["score"]) == ("no_image", "f_rate")]
    assert (row["model"], row["counts"], row["out_of"]) == ("m", "20", "30")
    assert (float(row["low"]), float(row["high"])) == pytest.approx((0.48780, 0.80769), abs=1e-4)
    assert {each["model"] for each in rows} >= {"m", "blind/m", "baseline/random"}


def test_no_guess_is_the_best_of_a_table(both: mcq.McqScores) -> None:
    """What competes are models: guesses stand below, and win nothing."""
    names = [str(row[0]) for row in both.table().rows]
    assert names[0] == "m"
    assert both.table().compared == 1


def test_the_demo_and_the_fake_server_guess_in_the_form_that_is_asked_for(tmp_path: Path) -> None:
    items = small_set(tmp_path / "set", 2)
    own = dict.fromkeys(QUESTIONS, 'A, B, C, D or E? Answer as {"answer": …}.') | {
        "q1": 'yes or no? {"answer": …}'
    }
    rewritten(items, lambda _: {"answer_form": "json", "prompts": own})
    made = McqRun(tmp_path / "run")
    with recording() as server:
        command = ("mcq", "run", items, *server.asked(), "-o", made.path, "--blind", "-q")
        assert uncanny_here(*command).code == 0
    guesses = [each for each in made.answers_list() if each.question.endswith("_blind")]
    assert all("answer" in orjson.loads(each.raw or "") for each in guesses)
