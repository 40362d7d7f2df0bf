"""Over HTTP, the bundled scenes get the same answers as in process, in both protocols."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import AsyncIterator
from typing import Any

import httpx
import orjson
import pytest

from uncanny.demo.model import DemoProvider
from uncanny.demo.scenes import Scene, scenes
from uncanny.demo.server.app import FakeServerOptions, running
from uncanny.models.base import AnswerSchema, Message, ModelRequest, Sampling, SentImage
from uncanny.prompts import prompt_set

SCENES = scenes()
PROMPTS = prompt_set("annotate")


@pytest.fixture
async def url() -> AsyncIterator[str]:
    async with running(FakeServerOptions()) as url:
        yield url


def questions(scene: Scene) -> list[tuple[str, bool]]:
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
        (PROMPTS["format"].fill(findings=orjson.dumps(findings).decode()), True),
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
    schema = {"type": "object", "properties": {"any": {}}}
    async with httpx.AsyncClient(base_url=url) as client:
        for text, listed in questions(scene):
            expected = await in_process(text, listed, data)
            asked = {"type": "text", "text": text}
            messages = [{"role": "user", "content": [picture, asked]}]
            form = {"type": "json_schema", "json_schema": {"name": "any", "schema": schema}}
            body: dict[str, Any] = {
                "model": "m",
                "messages": messages,
                **({"response_format": form} if listed else {}),
            }
            reply = await client.post("/v1/chat/completions", json=body)
            assert reply.json()["choices"][0]["message"]["content"] == expected
            messages = [{"role": "user", "content": [block, asked]}]
            config = {"format": {"type": "json_schema", "schema": schema}}
            body = {"model": "m", "max_tokens": 2000, "messages": messages}
            reply = await client.post(
                "/v1/messages", json=body | ({"output_config": config} if listed else {})
            )
            assert reply.json()["content"][0]["text"] == expected
