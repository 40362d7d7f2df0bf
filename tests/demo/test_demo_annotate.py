"""The demo model as a pure function, asked with uncanny's own prompts about images made up from a digest."""

from __future__ import annotations

import hashlib
from typing import Any

import orjson
import pytest

from uncanny.answers.forms import ANOMALIES, ATTRIBUTES, FINDINGS, OBJECTS, RELATIONS, Finding
from uncanny.answers.lists import read_list
from uncanny.demo.model import DemoRequest, SchemaForm, answer
from uncanny.demo.recognition import Turn
from uncanny.demo.views import key_of, synthetic_view
from uncanny.errors import RequestRejectedError
from uncanny.prompts import prompt_set

PROMPTS = prompt_set("annotate")
SHA256 = hashlib.sha256(b"unknown").hexdigest()


def generate(text: str, form: SchemaForm = "own", *, image: str | None = SHA256, objects: int = 8) -> str:
    turns = (Turn("system", PROMPTS["system"].template.template), Turn("user", text))
    request = DemoRequest(turns, () if image is None else (image,), form)
    return answer(request, synthetic_objects=objects).text


def dump(value: Any) -> str:
    return orjson.dumps(value).decode()


def rows(items: Any) -> str:
    return dump([item.model_dump() for item in items])


def perceive(draft: int, objects: int = 8) -> str:
    return generate(PROMPTS[f"perceive_{draft}"].fill(draft=str(draft), drafts="3"), objects=objects)


def test_every_draft_finds_the_same_objects_in_an_unknown_image() -> None:
    drafts = {perceive(draft) for draft in (1, 2, 3)}
    assert len(drafts) == 1
    assert len({key_of(each.name) for each in read_list(drafts.pop(), OBJECTS)}) == 8


@pytest.mark.parametrize("objects", [1, 2, 8, 33])
def test_an_unknown_image_keeps_every_step_busy(objects: int) -> None:
    all_findings: list[Finding] = []
    for thing in read_list(perceive(1, objects), OBJECTS):
        about = dump(thing.model_dump())
        look = generate(PROMPTS["attribute_look"].fill(object=about), "none", objects=objects)
        verified = generate(PROMPTS["attribute_verify"].fill(object=about, notes=look), objects=objects)
        attributes = read_list(verified, ATTRIBUTES)
        fields = {"object": about, "attributes": rows(attributes)}
        look = generate(PROMPTS["relation_look"].fill(**fields), "none", objects=objects)
        relations = read_list(
            generate(PROMPTS["relation_verify"].fill(**fields, notes=look), objects=objects), RELATIONS
        )
        assert attributes
        assert relations
        merge = PROMPTS["integrate_merge"].fill(**fields, relations=rows(relations))
        notes = generate(merge, "none", image=None)
        findings = read_list(
            generate(PROMPTS["integrate_list"].fill(object=about, notes=notes), image=None), FINDINGS
        )
        assert len(findings) == len(attributes) + len(relations)
        assert {finding.object for finding in findings} == {thing.name}
        all_findings += findings
    anomalies = read_list(
        generate(PROMPTS["format"].fill(names="", findings=rows(all_findings)), objects=objects), ANOMALIES
    )
    assert 1 <= len(anomalies) <= objects
    assert all("synthetic" in anomaly.phenomenon for anomaly in anomalies)


def test_first_steps_are_as_long_as_a_models() -> None:
    about = '{"name": "synthetic object 1", "description": "x"}'
    for name in ("attribute_look", "relation_look"):
        words = generate(PROMPTS[name].fill(object=about, attributes="[]"), "none").split()
        assert 100 <= len(words) <= 250


def test_other_images_get_other_content() -> None:
    other = hashlib.sha256(b"another").hexdigest()
    assert synthetic_view(SHA256, 8).anomalies != synthetic_view(other, 8).anomalies


def test_the_shared_schema_wraps_the_same_answer() -> None:
    text = PROMPTS["perceive_1"].fill(draft="1", drafts="3")
    assert orjson.loads(generate(text, "shared")) == {"answer": orjson.loads(generate(text, "own"))}
    assert generate(text, "none") == generate(text, "shared")


def test_the_integrator_merges_what_both_analyses_saw() -> None:
    attributes = [{"name": "n", "observed": "six fingers on the left hand", "explanation": "hands have five"}]
    relations = [
        {"objects": ["hand"], "observed": "Six fingers on the left hand", "reasoning": "r"},
        {"objects": ["hand", "cup"], "observed": "the cup floats beside it", "reasoning": "cups fall"},
    ]
    about = '{"name": "hand", "description": "d"}'
    merge = PROMPTS["integrate_merge"].fill(
        object=about, attributes=dump(attributes), relations=dump(relations)
    )
    notes = generate(merge, "none", image=None)
    assert [line.split()[-1] for line in notes.splitlines() if "Source:" in line] == ["both", "relations"]
    findings = read_list(
        generate(PROMPTS["integrate_list"].fill(object=about, notes=notes), image=None), FINDINGS
    )
    assert [(f.phenomenon, f.explanation) for f in findings] == [
        ("six fingers on the left hand", "hands have five"),
        ("the cup floats beside it", "cups fall"),
    ]


def test_the_integrator_knows_nothing_but_its_text() -> None:
    listing = PROMPTS["integrate_list"].fill(object='{"name": "hand", "description": "d"}', notes="Nothing.")
    assert read_list(generate(listing, image=None), FINDINGS) == ()


def test_the_formatter_drops_what_the_image_does_not_show() -> None:
    claim = {"object": "moon", "phenomenon": "the moon is made of green cheese", "explanation": "e"}
    assert read_list(generate(PROMPTS["format"].fill(names="", findings=dump([claim]))), ANOMALIES) == ()


@pytest.mark.parametrize(
    "text", ["Hello", "Agent: SceneScanner, step 1 of 1", PROMPTS["scan"].fill(scan="1", scans="1")]
)
def test_unknown_prompts_and_images_name_the_real_providers(text: str) -> None:
    with pytest.raises(RequestRejectedError) as caught:
        answer(DemoRequest((Turn("user", text),), (SHA256,)))
    for provider in ("openai/", "anthropic/", "vllm/", "openai-compatible/"):
        assert provider in str(caught.value)


def test_a_missing_image_is_said_to_be_missing() -> None:
    with pytest.raises(RequestRejectedError, match="without an image"):
        generate(PROMPTS["scan"].fill(scan="1", scans="1"), image=None)
