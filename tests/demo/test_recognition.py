"""Every prompt is recognized by its text and gives its variables back."""

from __future__ import annotations

from string import Template

import orjson
import pytest

from tests.growth import check_linear
from uncanny.answers.writings import MAGNITUDES
from uncanny.demo.model import ANSWERERS
from uncanny.demo.recognition import RecognizedPrompt, Turn, prompt_patterns, recognize
from uncanny.prompts import Prompt, PromptSet, prompt_set
from uncanny.protocol import prompt_names
from uncanny.schema import ARTIFACT_CATEGORIES

ANNOTATE = prompt_set("annotate")
SETS = [prompt_set(protocol) for protocol in prompt_names()]
# What is filled into other prompts.
FILLED_IN = {"relation_context", "listed", "shown", "doubts", "known", "inventory", "open_look"}
NOT_ASKED = {"system", "open", "strict", *FILLED_IN, *ARTIFACT_CATEGORIES, *MAGNITUDES}
REPAIRS = {"repair", "repair_text"}
ASKED = [
    pytest.param(prompts, prompt, id=f"{prompts.id}/{prompt.name}")
    for prompts in SETS
    for prompt in prompts.prompts.values()
    if prompt.name not in NOT_ASKED | REPAIRS and not prompt.name.startswith("box_")
]
# A value with line breaks, tags and a whole prompt in it.
VALUE = f'1. <notes> of\n\n2. </object>\t"a" $x {ANNOTATE["perceive_3"].template.template}'


def value_of(variable: str) -> str:
    return "bbox_2d" if variable == "box_key" else f"{variable}: {VALUE}"


def filled(prompt: Prompt) -> tuple[str, dict[str, str]]:
    variables = {name: value_of(name) for name in prompt.template.get_identifiers()}
    return prompt.fill(**variables), variables


def recognized(*texts: str) -> RecognizedPrompt | None:
    return recognize([Turn("user", text) for text in texts])


@pytest.mark.parametrize(("prompts", "prompt"), ASKED)
def test_a_prompt_gives_its_variables_back(prompts: PromptSet, prompt: Prompt) -> None:
    text, variables = filled(prompt)
    assert recognized(text) == RecognizedPrompt(prompts.name, prompt.name, variables)
    over_the_wire = orjson.loads(orjson.dumps({"text": text}))["text"]
    assert recognized(over_the_wire) == recognized(text)


@pytest.mark.parametrize(("prompts", "prompt"), ASKED)
def test_white_space_makes_no_difference(prompts: PromptSet, prompt: Prompt) -> None:
    text = prompt.fill(**dict.fromkeys(prompt.template.get_identifiers(), "VALUE"))
    for laid_out in (
        text.replace("\n", "\r\n"),
        f"\n {text}\t\n",
        " ".join(text.split()),
        text.replace(" ", "\n "),
    ):
        prompt_seen = recognized(laid_out)
        assert prompt_seen is not None
        assert (prompt_seen.task, prompt_seen.name) == (prompts.name, prompt.name)
        assert set(prompt_seen.variables.values()) <= {"VALUE"}


@pytest.mark.parametrize(("prompts", "prompt"), ASKED)
def test_anything_more_or_less_is_another_text(prompts: PromptSet, prompt: Prompt) -> None:  # noqa: ARG001
    text, _ = filled(prompt)
    # What stands ahead may be part of the variable that a prompt begins with.
    ahead = () if prompt.template.template.startswith("$") else (f"Please. {text}", text[1:])
    for other in (*ahead, f"{text} Please.", text[:-1], text.upper()):
        assert recognized(other) is None


def test_every_prompt_that_is_asked_is_answered() -> None:
    patterns = {(pattern.task, pattern.name) for pattern in prompt_patterns()}
    answered = {(task, name) for task, answerers in ANSWERERS.items() for name in answerers}
    assert {(task, name) for task, name in patterns if name not in REPAIRS} == answered


@pytest.mark.parametrize("name", ["relation_look", "relation_verify"])
def test_the_object_list_may_stand_ahead(name: str) -> None:
    objects = '[{"name": "cup", "description": "</objects> and more"}]'
    text, variables = filled(ANNOTATE[name])
    ahead = dict.fromkeys(ANNOTATE["relation_context"].template.get_identifiers(), "a; b")
    ahead["objects"] = objects
    whole = ANNOTATE["relation_context"].fill(**ahead) + "\n" + text
    assert recognized(whole) == RecognizedPrompt("annotate", name, variables | ahead)


def test_the_last_prompt_counts_and_a_repair_repeats_it() -> None:
    detect = prompt_set("detect")
    source, anomalies = detect["source"].fill(), detect["anomalies"].fill()
    repairs = (
        detect["repair"].fill(problem="no list"),
        detect["repair_text"].fill(problem="nothing"),
        "Again.",
    )
    for texts, name in (
        ((source,), "source"),
        ((source, anomalies), "anomalies"),
        *(((source, anomalies, repair, repair), "anomalies") for repair in repairs),
    ):
        prompt = recognized(*texts)
        assert prompt is not None
        assert prompt.name == name
    assert recognized(*repairs) is None


def test_only_the_users_own_turns_count_and_quoted_prompts_do_not() -> None:
    other = ANNOTATE["format"].fill(names="", findings="[]")
    about = ANNOTATE["attribute_verify"].fill(object="{}", notes=other)
    turns = [Turn("system", other), Turn("user", about), Turn("assistant", other), Turn("user", "Again.")]
    prompt = recognize(turns)
    assert prompt == RecognizedPrompt("annotate", "attribute_verify", {"object": "{}", "notes": other})


@pytest.mark.parametrize(
    ("text", "record", "records"),
    [
        ("3", {}, []),
        ("", {}, []),
        ('{"a": 1}', {"a": 1}, []),
        ('[{"a": 1}, 7]', {}, [{"a": 1}]),
        ("[", {}, []),
    ],
)
def test_a_variable_is_read_as_what_it_should_be(text: str, record: object, records: object) -> None:
    prompt = RecognizedPrompt("annotate", "format", {"x": text})
    assert (prompt.text("x"), prompt.record("x"), prompt.records("x")) == (text, record, records)
    assert (prompt.text("y"), prompt.record("y"), prompt.records("y")) == ("", {}, [])


@pytest.mark.parametrize(("prompts", "prompt"), ASKED)
def test_no_text_takes_long(prompts: PromptSet, prompt: Prompt) -> None:  # noqa: ARG001
    """Values and spaces that begin like what stands behind them, over and over, with the wrong end."""
    template = prompt.template.template
    places = list(prompt.template.pattern.finditer(template))
    edges = [template[: place.start()] for place in places] or [template[: len(template) // 2]]
    starts = [
        Template(edge).substitute(dict.fromkeys(prompt.template.get_identifiers(), "1")) for edge in edges
    ]
    pieces = [" ", "\n", "</object>", *(template[place.end() : place.end() + 40] for place in places)]
    for start in starts:
        for piece in filter(None, pieces):

            def text(size: int, start: str = start, piece: str = piece) -> str:
                return start + piece * (size // len(piece)) + "!"

            check_linear(recognized, text)
