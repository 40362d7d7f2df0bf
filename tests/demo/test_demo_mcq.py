"""The demo model answers the multiple-choice questions, and the fake server any question of that kind."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import orjson
import pytest

from uncanny.demo.data.mistakes import MCQ_MISTAKES
from uncanny.demo.model import DemoRequest, SchemaForm, answer
from uncanny.demo.recognition import Turn
from uncanny.demo.scenes import Scene, scenes
from uncanny.errors import RequestRejectedError
from uncanny.eval.mcq.score.parser import read_choice
from uncanny.images.overlay import draw_boxes
from uncanny.prompts import prompt_set

PROMPTS = prompt_set("mcq")
DOCUMENT = Path(__file__).parents[2] / "docs" / "demo.md"
SCENES = scenes()
QUESTIONS = ("q1", "q2", "q3", "q4")


def digest(seed: int) -> str:
    return hashlib.sha256(b"image %d" % seed).hexdigest()


def generate(
    text: str,
    *images: str,
    objects: int | None = None,
    schema: SchemaForm = "none",
    system: str = "Answer each question.",
) -> str:
    request = DemoRequest((Turn("system", system), Turn("user", text)), images, schema)
    return answer(request, synthetic_objects=objects).text


def text_of(name: str, scene: Scene = SCENES[0]) -> str:
    if name in ("q1", "q3"):
        return PROMPTS[name].fill()
    texts = scene.mcq.q2.options if name == "q2" else scene.mcq.q4.options
    options = {**{str(letter): text for letter, text in texts.items()}, "E": "none of these"}
    if name == "q4_no_image":
        options["F"] = "no picture"
    return PROMPTS[name].fill(choices=lines(options))


def lines(options: Mapping[str, str]) -> str:
    return "\n".join(f"{letter}. {text}" for letter, text in options.items())


@cache
def overlays() -> dict[str, str]:
    """Scene → the digest of what the protocol sends for Q3."""
    pictures = {scene.id: draw_boxes(scene.image_path, scene.mcq.q3.boxes) for scene in SCENES}
    return {scene: hashlib.sha256(data).hexdigest() for scene, data in pictures.items()}


def scene_answer(scene: Scene, name: str) -> str:
    images = [] if name == "q4_no_image" else [overlays()[scene.id] if name == "q3" else scene.sha256]
    return generate(text_of(name, scene), *images)


def right(scene: Scene, name: str) -> str:
    return "F" if name == "q4_no_image" else str(getattr(scene.mcq, name).answer)


@pytest.mark.slow
@pytest.mark.parametrize("name", QUESTIONS)
def test_scenes_are_answered_right_but_for_the_listed_mistakes(name: str) -> None:
    expected = {scene.id: MCQ_MISTAKES.get(scene.id, {}).get(name, right(scene, name)) for scene in SCENES}
    assert {scene.id: scene_answer(scene, name) for scene in SCENES} == expected


def test_without_an_image_only_the_listed_pair_is_guessed() -> None:
    guessed = {scene.pair_id for scene in SCENES if scene_answer(scene, "q4_no_image") != "F"}
    assert guessed == {scene.pair_id for scene in SCENES if "q4_no_image" in MCQ_MISTAKES.get(scene.id, {})}
    assert len(guessed) == 1


def test_every_wrong_answer_is_wrong_and_documented() -> None:
    table = re.findall(
        r"^\| `([^`]+)` \| (q\w+) \| (\S+) \| (.+) \|$", DOCUMENT.read_text(encoding="utf-8"), re.MULTILINE
    )
    by_id = {scene.id: scene for scene in SCENES}
    mistakes = [
        (scene, name, right(by_id[scene], name), answer_text)
        for scene, answers in MCQ_MISTAKES.items()
        for name, answer_text in answers.items()
    ]
    assert all(expected != answer_text for _, _, expected, answer_text in mistakes)
    assert sorted(table) == sorted(mistakes)


def test_no_figure_is_empty_or_perfect() -> None:
    # `ref_pg` is not asked Q1: a mistake there would show nowhere.
    splits = {scene.id: scene.split for scene in SCENES}
    assert all(splits[scene] != "ref_pg" for scene, answers in MCQ_MISTAKES.items() if "q1" in answers)
    wrong = {(splits[scene][:3], name) for scene, answers in MCQ_MISTAKES.items() for name in answers}
    assert wrong >= {*(("art", name) for name in QUESTIONS), *(("ref", name) for name in QUESTIONS)}
    invalid = [text for answers in MCQ_MISTAKES.values() for text in answers.values() if len(text) > 3]
    assert [read_choice(text, "q4", "letter").choice for text in invalid] == [None]


@pytest.mark.parametrize("schema", ["own", "shared"])
def test_a_schema_gets_an_object(schema: SchemaForm) -> None:
    clean = next(scene for scene in SCENES if not scene.anomalies and scene.id not in MCQ_MISTAKES)
    assert orjson.loads(generate(text_of("q1"), clean.sha256, schema=schema)) == {"answer": "no"}


def test_a_picture_with_boxes_counts_for_question_three_only() -> None:
    with pytest.raises(RequestRejectedError, match="knows only the bundled scenes"):
        generate(text_of("q2"), overlays()[SCENES[0].id])
    with pytest.raises(RequestRejectedError, match="knows only the bundled scenes"):
        generate(text_of("q3"), digest(1))


@pytest.mark.parametrize("name", QUESTIONS)
def test_a_question_needs_its_image(name: str) -> None:
    with pytest.raises(RequestRejectedError, match="without an image"):
        generate(text_of(name))


def test_the_demo_turns_foreign_texts_down() -> None:
    for text in ("Does it look real? Answer yes or no.", FOREIGN["lines"], f"{text_of('q1')} Really?"):
        with pytest.raises(RequestRejectedError, match="knows only uncanny's own prompts"):
            generate(text, SCENES[0].sha256)


@pytest.mark.parametrize("name", [*QUESTIONS, "q4_no_image"])
def test_the_fake_server_makes_up_choices_for_unknown_images(name: str) -> None:
    question = "q4" if name == "q4_no_image" else name
    choices = []
    for seed in range(160):
        images = [] if name == "q4_no_image" else [digest(seed)]
        options = {letter: f"{letter} {seed}" for letter in "ABCDEF"}
        fields = {"choices": lines(options)} if name in ("q2", "q4", "q4_no_image") else {}
        text = PROMPTS[name].fill(**fields)
        answer_text = generate(text, *images, objects=8)
        assert generate(text, *images, objects=8) == answer_text
        choices.append(read_choice(answer_text, question, "letter", letters="ABCDEF").choice)
    counts = Counter(choices)
    if name == "q4_no_image":
        assert 120 <= counts["F"] < 160
        return
    assert counts.keys() - {None} == ({"yes", "no"} if name == "q1" else set("ABCDE"))
    assert 1 <= counts[None] <= 30
    assert max(counts.values()) <= (110 if name == "q1" else 60)


FOREIGN = {
    "lines": "Where is it?\nA. the hand\nB. the cup\nC. the sky\nD. the dog\nE. none of these\nOne letter.",
    "brackets": "Pick one: (A) hand (B) cup (C) sky (D) dog (E) none",
    "object": '{"A": "hand", "B": "cup", "C": "sky", "D": "dog", "E": "none"}',
    "range": "Which of the drawn boxes A-D holds it? E if none does.",
    "words": "Which box: A to E?",
}


@pytest.mark.parametrize("text", FOREIGN.values(), ids=FOREIGN.keys())
def test_foreign_options_get_one_of_their_letters(text: str) -> None:
    answers = [generate(text, digest(seed), objects=8) for seed in range(80)]
    assert {read_choice(each, "q2", "letter").choice for each in answers} >= set("ABCDE")
    assert answers == [generate(text, digest(seed), objects=8) for seed in range(80)]
    with_f = f"{text}\nF. no image was provided"
    assert not any("F" in generate(with_f, digest(seed), objects=8) for seed in range(80))
    assert generate(with_f, objects=8) == "F"


def test_foreign_yes_or_no_gets_one_of_them() -> None:
    text = "Is there A visible fault in this picture? Reply with Yes or No."
    choices = {
        read_choice(generate(text, digest(seed), objects=8), "q1", "letter").choice for seed in range(60)
    }
    assert choices >= {"yes", "no"}


@pytest.mark.parametrize("where", ["system", "user"])
def test_foreign_texts_that_ask_for_json_get_it(where: str) -> None:
    form = 'Reply as {"answer": "<letter>"}.'
    text, system = FOREIGN["lines"], "Look."
    if where == "user":
        text = f"{text}\n{form}"
    else:
        system = form
    record = orjson.loads(generate(text, digest(3), objects=8, system=system))
    assert record.keys() == {"answer"}
    assert re.search(r"\b[A-E]\b", record["answer"])


@pytest.mark.parametrize(
    "text", ["Hello", "Describe A and B, no more.", "Agent: ArtifactAnswerer, step 1 of 1"]
)
def test_anything_else_gets_the_marked_sentence(text: str) -> None:
    assert "synthetic answer of the fake server" in generate(text, digest(1), objects=8)
