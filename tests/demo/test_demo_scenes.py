"""The demo model walks the whole annotation protocol over every bundled scene."""

from __future__ import annotations

import base64
import hashlib
import re
from functools import cache
from pathlib import Path
from typing import Any

import orjson
import pytest

import uncanny
from uncanny.answers.forms import ANOMALIES, ATTRIBUTES, FINDINGS, OBJECTS, RELATIONS, Finding
from uncanny.answers.lists import read_list
from uncanny.demo.data.mistakes import ANNOTATE_MISTAKES, MISTAKE_KINDS, mistakes_in
from uncanny.demo.model import DemoProvider
from uncanny.demo.scenes import Scene, scenes
from uncanny.demo.views import key_of, synthetic_view
from uncanny.errors import RequestRejectedError
from uncanny.models.base import AnswerSchema, Message, ModelRequest, Sampling, SentImage
from uncanny.prompts import prompt_set
from uncanny.schema import Anomaly

PROMPTS = prompt_set("annotate")
DOCUMENT = Path(__file__).parents[2] / "docs" / "demo.md"
SCENES = scenes()
by_id = pytest.mark.parametrize("scene", SCENES, ids=[scene.id for scene in SCENES])


def sent(data: bytes) -> SentImage:
    encoded = base64.b64encode(data)
    url = orjson.Fragment(b'"data:image/webp;base64,' + encoded + b'"')
    return SentImage(hashlib.sha256(data).hexdigest(), "image/webp", 1, 1, encoded, url)


async def generate(text: str, image: SentImage | None, *, schema: bool = True) -> str:
    parts = (text,) if image is None else (image, text)
    form = AnswerSchema("answer", {}, {}) if schema else None
    reply = await DemoProvider().generate(ModelRequest((Message("user", parts),), Sampling(), form))
    assert reply.finish == "stop"
    return reply.text


def rows(items: Any) -> str:
    return orjson.dumps([item.model_dump() for item in items]).decode()


async def perceive(image: SentImage, draft: int) -> list[str]:
    text = PROMPTS[f"perceive_{draft}"].fill(draft=str(draft), drafts="3")
    return [each.name for each in read_list(await generate(text, image), OBJECTS)]


async def findings_of(name: str, image: SentImage) -> tuple[Finding, ...]:
    """The seven steps about one object, as an agent would make them."""
    about = orjson.dumps({"name": name, "description": "as described"}).decode()
    look = await generate(PROMPTS["attribute_look"].fill(object=about), image, schema=False)
    verify = PROMPTS["attribute_verify"].fill(object=about, notes=look)
    fields = {"object": about, "attributes": rows(read_list(await generate(verify, image), ATTRIBUTES))}
    look = await generate(PROMPTS["relation_look"].fill(**fields), image, schema=False)
    verify = PROMPTS["relation_verify"].fill(**fields, notes=look)
    relations = rows(read_list(await generate(verify, image), RELATIONS))
    notes = await generate(PROMPTS["integrate_merge"].fill(**fields, relations=relations), None, schema=False)
    return read_list(
        await generate(PROMPTS["integrate_list"].fill(object=about, notes=notes), None), FINDINGS
    )


async def annotate(scene: Scene) -> tuple[Anomaly, ...]:
    image = sent(scene.image_path.read_bytes())
    named = {key_of(name): name for draft in (1, 2, 3) for name in await perceive(image, draft)}
    findings = [finding for name in named.values() for finding in await findings_of(name, image)]
    return read_list(
        await generate(PROMPTS["format"].fill(names="", findings=rows(findings)), image), ANOMALIES
    )


def expected(scene: Scene) -> dict[str, tuple[str, int]]:
    """Name → (phenomenon, severity): the truth, with the table's mistakes made in it by hand."""
    right = {a.name: (a.phenomenon, a.severity) for a in scene.anomalies}
    for mistake in mistakes_in(scene.id):
        phenomenon, severity = right.get(mistake.target, ("", 0))
        match mistake.kind:
            case "misses":
                del right[mistake.target]
            case "invents":
                right[mistake.target] = (mistake.text, mistake.severity)
            case "mislocates":
                right[mistake.target] = (mistake.text, severity)
            case "misjudges":
                right[mistake.target] = (phenomenon, mistake.severity)
    return right


@by_id
async def test_finds_the_truth_but_for_the_listed_mistakes(scene: Scene) -> None:
    anomalies = await annotate(scene)
    assert {a.name: (a.phenomenon, a.severity) for a in anomalies} == expected(scene)
    truth = {a.name: a for a in scene.anomalies}
    assert all(a.objects == truth[a.name].objects for a in anomalies if a.name in truth)


@by_id
async def test_perceives_every_object(scene: Scene) -> None:
    image = sent(scene.image_path.read_bytes())
    drafts = [await perceive(image, draft) for draft in (1, 2, 3)]
    kinds = {mistake.kind: mistake for mistake in mistakes_in(scene.id)}
    assert drafts[1] == drafts[2] == [each.name for each in scene.objects]
    late, twice = kinds.get("overlooks-once"), kinds.get("names-twice")
    wanted = [each.name for each in scene.objects if not late or each.name != late.target]
    assert drafts[0] == [*wanted, *([twice.text] if twice else [])]


async def test_the_scanner_sees_relations_only() -> None:
    scene = next(
        s for s in SCENES if any(a.kind == "relation" for a in s.anomalies) and not mistakes_in(s.id)
    )
    text = PROMPTS["scan"].fill(scan="1", scans="1")
    findings = read_list(await generate(text, sent(scene.image_path.read_bytes())), FINDINGS)
    assert [f.phenomenon for f in findings] == [a.phenomenon for a in scene.anomalies if a.kind == "relation"]


@cache
def by_identity() -> dict[str, Scene]:
    return {scene.id: scene for scene in SCENES}


@pytest.mark.parametrize("mistake", ANNOTATE_MISTAKES, ids=lambda m: f"{m.scene}-{m.kind}")
def test_every_mistake_is_about_something_in_a_scene(mistake: Any) -> None:
    scene = by_identity()[mistake.scene]
    objects, anomalies = {each.name for each in scene.objects}, {each.name: each for each in scene.anomalies}
    match mistake.kind:
        case "misses":
            assert mistake.target in anomalies
        case "mislocates":
            assert mistake.text not in ("", anomalies[mistake.target].phenomenon)
        case "misjudges":
            assert mistake.severity != anomalies[mistake.target].severity
        case "invents":
            assert scene.role == "clean"
            assert mistake.at in objects
        case "overlooks-once":
            assert mistake.target in objects
        case "names-twice":
            assert mistake.target in objects
            assert mistake.text != mistake.target
            assert key_of(mistake.text) == key_of(mistake.target)
        case "unsure":
            assert mistake.target in {*anomalies, *(each.target for each in mistakes_in(mistake.scene))}
            assert 0 < mistake.confidence < 50


def test_every_kind_of_mistake_is_made_and_documented() -> None:
    assert {mistake.kind for mistake in ANNOTATE_MISTAKES} == set(MISTAKE_KINDS)
    listed = re.findall(r"^\| `([^`]+)` \| ([a-z-]+) \|", DOCUMENT.read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(listed) == sorted((mistake.scene, mistake.kind) for mistake in ANNOTATE_MISTAKES)


async def test_an_unknown_image_names_the_real_providers() -> None:
    with pytest.raises(
        RequestRejectedError, match=r"knows only the bundled scenes.*openai/.*anthropic/.*vllm/"
    ):
        await perceive(sent(b"some other image"), 1)


async def test_counts_tokens_by_characters() -> None:
    text = PROMPTS["perceive_1"].fill(draft="1", drafts="3")
    image = sent(SCENES[0].image_path.read_bytes())
    reply = await DemoProvider().generate(ModelRequest((Message("user", (image, text)),), Sampling()))
    assert reply.tokens.input == 255 + -(-len(text) // 4)
    assert reply.tokens.output == -(-len(reply.text) // 4)
    assert reply.tokens.cached is None


def test_the_single_schedule_has_the_confidence_that_the_table_says(tmp_path: Path) -> None:
    unsure = {each.target: each.confidence / 100 for each in ANNOTATE_MISTAKES if each.kind == "unsure"}
    assert sorted(unsure.values()) == [0.3, 0.4, 0.4]
    paths = [scene.image_path for scene in SCENES]
    run = uncanny.annotate(paths, model="demo", out=tmp_path / "run", schedule="single")
    found = {each.name: each.confidence for record in run.annotations for each in record.anomalies}
    assert {name: found[name] for name in unsure} == unsure
    assert {confidence for name, confidence in found.items() if name not in unsure} == {0.95}
    score = uncanny.audit({"demo": run.annotations}, resamples=0)["demo"]
    assert (score.anomalies, score.sure.left_out) == (len(found) - 3, 3)


def test_no_made_up_anomaly_is_left_out_unless_asked_for() -> None:
    views = [synthetic_view(hashlib.sha256(bytes([number])).hexdigest(), 6) for number in range(40)]
    given = {each.confidence for view in views for each in view.anomalies}
    assert min(given) >= 55
    assert max(given) <= 99
    assert len(given) > 20
