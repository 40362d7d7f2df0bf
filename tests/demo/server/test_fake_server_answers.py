"""Over HTTP, answers are those given in process: scenes in both APIs, and multiple-choice prompts."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import AsyncIterator
from io import BytesIO
from typing import Any

import httpx
import orjson
import pytest
from PIL import Image

from uncanny.demo.model import DemoProvider, DemoRequest, answer
from uncanny.demo.recognition import Turn
from uncanny.demo.scenes import Scene, scenes
from uncanny.demo.server.app import FakeServerOptions, running
from uncanny.images.overlay import draw_boxes
from uncanny.models.base import AnswerSchema, Message, ModelRequest, Sampling, SentImage
from uncanny.models.tokens import image_tokens, text_tokens
from uncanny.prompts import prompt_set

SCENES = scenes()
PROMPTS = prompt_set("annotate")
MCQ = prompt_set("mcq")


@pytest.fixture
async def url() -> AsyncIterator[str]:
    async with running(FakeServerOptions()) as url:
        yield url


def prompts(scene: Scene) -> list[tuple[str, bool]]:
    """(text, whether a list is asked for), one for each role that sees the image."""
    about = orjson.dumps(
        {"name": scene.objects[0].name, "description": scene.objects[0].description}
    ).decode()
    findings = [
        {"object": a.objects[0], "phenomenon": a.phenomenon, "explanation": a.reasoning}
        for a in scene.anomalies
    ]
    return [
        *((PROMPTS[f"perceive_{draft}"].fill(draft=str(draft), drafts="3"), True) for draft in (1, 2)),
        (PROMPTS["attribute_look"].fill(object=about), False),
        (PROMPTS["attribute_verify"].fill(object=about, notes="none"), True),
        (PROMPTS["relation_look"].fill(object=about, attributes="[]"), False),
        (PROMPTS["relation_verify"].fill(object=about, attributes="[]", notes="none"), True),
        (PROMPTS["format"].fill(names="", findings=orjson.dumps(findings).decode()), True),
        (PROMPTS["scan"].fill(scan="1", scans="1"), True),
    ]


async def in_process(text: str, listed: bool, data: bytes) -> str:
    image = SentImage(hashlib.sha256(data).hexdigest(), "image/png", 1, 1, b"", orjson.Fragment(b'""'))
    schema = AnswerSchema("answer", {}, {}) if listed else None
    reply = await DemoProvider().generate(ModelRequest((Message("user", (image, text)),), Sampling(), schema))
    return reply.text


@pytest.mark.parametrize("scene", SCENES, ids=[scene.id for scene in SCENES])
async def test_scenes_over_http(scene: Scene, url: str) -> None:
    data = scene.image_path.read_bytes()
    encoded, kind = base64.b64encode(data).decode(), f"image/{scene.image_path.suffix[1:]}"
    picture = {"type": "image_url", "image_url": {"url": f"data:{kind};base64,{encoded}"}}
    block = {"type": "image", "source": {"type": "base64", "media_type": kind, "data": encoded}}
    schema = {"type": "object", "properties": {"answer": {"type": "object"}}}
    async with httpx.AsyncClient(base_url=url) as client:
        for text, listed in prompts(scene):
            expected = await in_process(text, listed, data)
            part = {"type": "text", "text": text}
            messages = [{"role": "user", "content": [picture, part]}]
            form = {"type": "json_schema", "json_schema": {"name": "any", "schema": schema}}
            body: dict[str, Any] = {
                "model": "demo",
                "messages": messages,
                **({"response_format": form} if listed else {}),
            }
            reply = await client.post("/v1/chat/completions", json=body)
            assert reply.json()["choices"][0]["message"]["content"] == expected
            messages = [{"role": "user", "content": [block, part]}]
            config = {"format": {"type": "json_schema", "schema": schema}}
            body = {"model": "demo", "max_tokens": 2000, "messages": messages}
            reply = await client.post(
                "/v1/messages", json=body | ({"output_config": config} if listed else {})
            )
            assert reply.json()["content"][0]["text"] == expected


SCENE = next(scene for scene in scenes() if scene.id == "d01-six-fingers")
OTHER_TEXT = "Which one?\nA. hand\nB. cup\nC. sky\nD. dog\nE. none"


def pictures() -> dict[str, bytes]:
    out = BytesIO()
    Image.new("RGB", (64, 48), "teal").save(out, "PNG")
    return {
        "scene": SCENE.image_path.read_bytes(),
        "drawn": draw_boxes(SCENE.image_path, SCENE.mcq.q3.boxes),
        "other": out.getvalue(),
    }


async def openai_answer(client: httpx.AsyncClient, text: str, data: bytes) -> str:
    url = f"data:image/png;base64,{base64.b64encode(data).decode()}"
    content: list[dict[str, Any]] = [
        {"type": "image_url", "image_url": {"url": url}},
        {"type": "text", "text": text},
    ]
    body = {"model": "demo", "messages": [{"role": "user", "content": content}]}
    reply = await client.post("/v1/chat/completions", json=body)
    assert reply.status_code == 200, reply.text
    return str(reply.json()["choices"][0]["message"]["content"])


@pytest.mark.parametrize("picture", ["scene", "drawn", "other"])
@pytest.mark.parametrize("text", [MCQ["q1"].fill(), MCQ["q3"].fill(), OTHER_TEXT])
async def test_multiple_choice_over_http(text: str, picture: str) -> None:
    data = pictures()[picture]
    request = DemoRequest((Turn("user", text),), (hashlib.sha256(data).hexdigest(),))
    async with running(FakeServerOptions()) as url, httpx.AsyncClient(base_url=url) as client:
        assert await openai_answer(client, text, data) == answer(request, synthetic_objects=8).text


async def test_the_server_knows_a_scene_with_its_boxes() -> None:
    async with running(FakeServerOptions()) as url, httpx.AsyncClient(base_url=url) as client:
        assert await openai_answer(client, MCQ["q3"].fill(), pictures()["drawn"]) == "A"


@pytest.mark.parametrize("model", ["gpt-5.4", "gpt-4o", "o4-mini", "qwen2.5-vl-7b", "made-up"])
async def test_an_image_counts_as_many_tokens_as_it_does_for_the_model(url: str, model: str) -> None:
    """As the package's estimates count it; of a name that they do not know, as for GPT-4o."""
    text = "What is this?"
    image = BytesIO()
    Image.new("RGB", (1200, 900)).save(image, "PNG")
    data = base64.b64encode(image.getvalue()).decode()
    parts = [
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{data}"}},
        {"type": "text", "text": text},
    ]
    body = {"model": model, "messages": [{"role": "user", "content": parts}]}
    async with httpx.AsyncClient() as client:
        reply = await client.post(f"{url}/v1/chat/completions", json=body)
    expected = image_tokens(f"openai/{model}", 1200, 900) or image_tokens("openai/gpt-4o", 1200, 900)
    assert expected is not None
    assert reply.json()["usage"]["prompt_tokens"] == expected + text_tokens(text)
