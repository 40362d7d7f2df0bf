"""Multiple-choice questions over HTTP: the same answers as in the process."""

from __future__ import annotations

import base64
import hashlib
from io import BytesIO
from typing import Any

import httpx
import pytest
from PIL import Image

from uncanny.demo.model import DemoRequest, answer
from uncanny.demo.recognition import Turn
from uncanny.demo.scenes import scenes
from uncanny.demo.server.app import FakeServerOptions, running
from uncanny.images.overlay import draw_boxes
from uncanny.prompts import prompt_set

SCENE = next(scene for scene in scenes() if scene.id == "d01-six-fingers")
FOREIGN = "Which one?\nA. hand\nB. cup\nC. sky\nD. dog\nE. none"


def pictures() -> dict[str, bytes]:
    out = BytesIO()
    Image.new("RGB", (64, 48), "teal").save(out, "PNG")
    return {
        "scene": SCENE.image_path.read_bytes(),
        "drawn": draw_boxes(SCENE.image_path, SCENE.mcq.q3.boxes),
        "other": out.getvalue(),
    }


async def openai_says(client: httpx.AsyncClient, text: str, data: bytes) -> str:
    url = f"data:image/png;base64,{base64.b64encode(data).decode()}"
    content: list[dict[str, Any]] = [
        {"type": "image_url", "image_url": {"url": url}},
        {"type": "text", "text": text},
    ]
    body = {"model": "m", "messages": [{"role": "user", "content": content}]}
    reply = await client.post("/v1/chat/completions", json=body)
    assert reply.status_code == 200, reply.text
    return str(reply.json()["choices"][0]["message"]["content"])


@pytest.mark.parametrize("picture", ["scene", "drawn", "other"])
@pytest.mark.parametrize("text", [prompt_set("mcq")["q1"].fill(), prompt_set("mcq")["q3"].fill(), FOREIGN])
async def test_the_server_says_what_the_model_says_in_process(text: str, picture: str) -> None:
    data = pictures()[picture]
    request = DemoRequest((Turn("user", text),), (hashlib.sha256(data).hexdigest(),))
    async with running(FakeServerOptions()) as url, httpx.AsyncClient(base_url=url) as client:
        assert await openai_says(client, text, data) == answer(request, synthetic_objects=8).text


async def test_the_server_knows_a_scene_with_its_boxes() -> None:
    async with running(FakeServerOptions()) as url, httpx.AsyncClient(base_url=url) as client:
        assert await openai_says(client, prompt_set("mcq")["q3"].fill(), pictures()["drawn"]) == "A"
