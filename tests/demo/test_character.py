"""The fake server's models: each name and seed has answers of its own, the same every time, and plausible."""

from __future__ import annotations

import hashlib
import statistics

import orjson
import pytest

from uncanny.demo.character import Character, character_of
from uncanny.demo.model import DemoRequest, answer
from uncanny.demo.recognition import Turn
from uncanny.demo.scenes import scenes
from uncanny.demo.views import known_view, seen_by, synthetic_view
from uncanny.eval.mcq.data.load import load
from uncanny.eval.mcq.data.texts import question_text
from uncanny.eval.mcq.score.parser import read_choice
from uncanny.prompts import prompt_set

MODELS = ("gpt-4o", "tern", "heron", "gull", "Qwen/Qwen3-VL-8B-Instruct")
UNKNOWN = [hashlib.sha256(b"%d" % n).hexdigest() for n in range(60)]


def said(text: str, image: str | None, character: Character | None) -> str:
    request = DemoRequest((Turn("user", text),), () if image is None else (image,))
    return answer(request, synthetic_objects=8, character=character).text


def right_shares(character: Character | None) -> dict[str, float]:
    """Of the bundled questions without drawn boxes, the share that is answered right."""
    shares = {}
    for question in ("q1", "q2", "q4"):
        right = [
            read_choice(
                said(question_text(item, question), scene.sha256, character), question, "letter"
            ).choice
            == item.right(question)
            for item, scene in zip(load("scenes"), scenes(), strict=True)
            if item.right(question) is not None
        ]
        shares[question] = statistics.mean(right)
    return shares


def test_five_models_have_five_rows_of_scores() -> None:
    rows = {model: right_shares(Character(model)) for model in MODELS}
    assert len({tuple(row.values()) for row in rows.values()}) == len(MODELS)
    means = [statistics.mean(row.values()) for row in rows.values()]
    assert max(means) - min(means) > 0.1
    # Better than guessing, and no better than the demo model, which knows the scenes.
    assert all(0.3 < mean <= statistics.mean(right_shares(None).values()) for mean in means)


def test_models_find_the_same_questions_hard() -> None:
    """Two that err by themselves would agree less, and tests between models be too easy."""
    wrong = [
        {
            (scene.id, question)
            for scene in scenes()
            for question in ("q1", "q2", "q4")
            if Character(f"model {n}").errs(scene.id, question)
        }
        for n in range(40)
    ]
    number = 3 * len(scenes())
    together = statistics.mean(len(a & b) / number for a in wrong for b in wrong if a is not b)
    alone = statistics.mean(len(each) / number for each in wrong)
    assert together > 1.15 * alone**2


def test_five_models_have_five_sets_of_findings() -> None:
    counts, severities = set(), set()
    for model in MODELS:
        views = [seen_by(Character(model), view) for each in scenes() if (view := known_view(each.sha256))]
        anomalies = [anomaly for view in views for anomaly in view.anomalies]
        counts.add(tuple(len(view.anomalies) for view in views))
        severities.add(tuple(anomaly.severity for anomaly in anomalies))
        assert 5 < len(anomalies) < 40
        assert all(0 <= anomaly.severity <= 100 for anomaly in anomalies)
        assert all(
            0 <= x0 < x1 <= 1 and 0 <= y0 < y1 <= 1
            for anomaly in anomalies
            if anomaly.place
            for x0, y0, x1, y1 in [anomaly.place]
        )
    assert len(counts) == len(severities) == len(MODELS)


@pytest.mark.parametrize("model", MODELS)
def test_an_unknown_image_takes_as_many_calls_whoever_is_asked(model: str) -> None:
    for sha256 in UNKNOWN:
        whole = synthetic_view(sha256, 8)
        seen = seen_by(Character(model), whole)
        assert seen.objects == whole.objects
        assert {a.objects[0] for a in seen.anomalies} == {each.name for each in whole.objects}
        assert {a.name for a in seen.anomalies} <= {a.name for a in whole.anomalies}
        assert seen.merged is not None
        assert 1 <= seen.merged <= 8
    assert seen_by(Character(model), synthetic_view(UNKNOWN[0], 8, 0)).anomalies == ()


QUESTIONS = [
    (prompt_set("mcq")["q1"].fill(), "image"),
    (prompt_set("mcq")["blind"].fill(question="Which one?\nA. hand\nB. cup\nC. sky\nD. dog"), None),
    ("Which one?\nA. hand\nB. cup\nC. sky\nD. dog\nE. none", "image"),
    (prompt_set("detect")["source"].fill(), "image"),
    (prompt_set("realism")["first_check"].fill(), "image"),
    (prompt_set("artifacts")["likelihood"].fill(), "image"),
]


@pytest.mark.parametrize(("text", "seen"), QUESTIONS)
def test_names_and_seeds_differ_and_the_same_ones_do_not(text: str, seen: str | None) -> None:
    images = UNKNOWN if seen else [None] * len(UNKNOWN)

    def all_of(character: Character | None) -> list[str]:
        texts = [text if seen else text.replace("hand", f"hand {n}") for n in range(len(images))]
        return [said(each, image, character) for each, image in zip(texts, images, strict=True)]

    first = all_of(Character("a", 1))
    assert first == all_of(Character("a", 1))
    others = [all_of(each) for each in (Character("b", 1), Character("a", 2), Character("c", 1), None)]
    assert all(first != other for other in others)


def written(phenomenon: str, character: Character | None) -> int:
    """The realism that the last step of the default schedule gives to a finding; it sees no picture."""
    row = {"id": 1, "phenomenon": phenomenon, "objects": ["cup"]}
    text = prompt_set("packed")["format"]
    values = dict.fromkeys(text.template.get_identifiers(), "x") | {"findings": orjson.dumps(row).decode()}
    (found,) = orjson.loads(said(text.fill(**values), None, character))["answer"]["anomalies"]
    return int(found["realism"])


def test_severity_is_one_whether_a_step_sees_the_picture_or_not() -> None:
    severities = set()
    for model in MODELS:
        character = Character(model)
        views = [seen_by(character, view) for each in scenes() if (view := known_view(each.sha256))]
        known = [a for view in views for a in view.anomalies if not a.name.startswith("Outline of the")]
        assert known
        assert [written(a.phenomenon, character) for a in known] == [a.severity for a in known]
        severities.add(written("Something odd at the left", character))
    assert len(severities) > 1


@pytest.mark.parametrize("name", ["demo", "gemini-3-pro-demo"])
def test_a_name_that_ends_in_demo_answers_as_the_demo_model(name: str) -> None:
    assert character_of(name, 7) is None
    assert character_of(f"{name}-2", 7) == Character(f"{name}-2", 7)
