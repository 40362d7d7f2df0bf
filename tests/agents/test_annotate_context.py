"""What all annotating agents are told: rules, strictness, language, boxes, and enlarged parts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from tests.agents.packed_specialists import PackedSpecialists, block
from tests.agents.specialists import listed
from tests.client.scripted import Line
from uncanny.agents.annotate_context import AnnotateContext
from uncanny.answers.boxes import GivenBox
from uncanny.errors import RequestRejectedError
from uncanny.models.base import ModelRequest, SentImage, encode_image


def sent(width: int, height: int) -> SentImage:
    return encode_image(sha256="0" * 64, media_type="image/png", width=width, height=height, data=b"x")


def context(
    model: str, size: tuple[int, int], original: tuple[int, int] | None = None, **config: Any
) -> AnnotateContext:
    specialists = PackedSpecialists()
    specialists.model.name = model
    return replace(specialists.context(**config), image=sent(*size), size=original)


def test_strictness_and_language_stand_in_the_system_text() -> None:
    strict = context("demo", (8, 8), strictness="strict", language="German").system
    assert "Write in German" in strict
    assert "Only the impossible counts" in strict
    assert "Impossible things count" in context("demo", (8, 8)).system
    assert "$" not in strict


@pytest.mark.parametrize(
    ("model", "key", "rule"),
    [
        ("openai-compatible/gemini-3-pro", "box_2d", "[y0, x0, y1, x1] in whole numbers from 0 to 1000"),
        ("vllm/Qwen/Qwen3-VL-8B", "bbox_2d", "[x0, y0, x1, y1] in whole numbers from 0 to 1000"),
        ("vllm/deepseek-ai/deepseek-vl2", "box", "from 0 to 999"),
        ("openai-compatible/kimi-vl", "box", "fractions from 0 to 1"),
        # Their servers make large pictures smaller: pixels are those of the picture as the model sees it.
        ("vllm/Qwen/Qwen2.5-VL-7B", "box", "which is 1988 pixels wide and 1008 pixels high"),
        ("anthropic/claude-sonnet-4-5", "box", "which is 1568 pixels wide and 784 pixels high"),
        ("anthropic/claude-sonnet-5", "box", "which is 2000 pixels wide and 1000 pixels high"),
        ("openai/gpt-5.4", "box", "which is 2000 pixels wide and 1000 pixels high"),
        ("demo", "bbox_2d", "from 0 to 1000"),
    ],
)
def test_every_model_is_asked_for_boxes_as_it_was_trained(model: str, key: str, rule: str) -> None:
    image = context(model, (2000, 1000))
    assert image.box_key("ObjectPerceiver") == key
    assert rule in image.box_rule("ObjectPerceiver")


def test_a_format_that_is_named_goes_before_the_models() -> None:
    image = context("anthropic/claude-sonnet-5", (100, 50), box_format="yxyx-1000")
    assert image.box_key("SceneScanner") == "box_2d"


def test_boxes_are_counted_and_stored_in_pixels_of_the_file() -> None:
    image = context("demo", (1000, 500), (4000, 2000))
    assert image.box(GivenBox((100, 200, 300, 400), "bbox_2d"), "SceneScanner") == (400, 400, 1200, 800)
    assert image.box(GivenBox((100, 200, 9000, 400), "bbox_2d"), "SceneScanner") is None
    assert image.box(None, "SceneScanner") is None
    assert image.boxes.as_recorded() == {"given": 2, "unreadable": 1, "formats": ["xyxy-1000"]}
    shown = image.shown("SceneScanner", [({"id": 1, "name": "cup", "objects": ()}, (400, 400, 1200, 800))])
    assert shown == '{"id":1,"name":"cup","bbox_2d":[100,200,300,400]}'


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "a.png"
    Image.new("RGB", (1000, 1000), "white").save(path)
    return path


def finding(box: list[int]) -> dict[str, object]:
    return {"objects": ["1"], "observed": "odd", "explanation": "x", "bbox_2d": box}


@pytest.mark.parametrize(
    ("scan", "parts"),
    [
        ([110, 110, 200, 200], 1),  # both agents point at the same small place
        ([600, 600, 700, 700], 0),  # they do not
        ([], 0),  # one of them alone says where
    ],
)
async def test_a_part_is_enlarged_where_two_answers_agree(file: Path, scan: list[int], parts: int) -> None:
    def answer(request: ModelRequest) -> Line | None:
        if request.agent == "AttributeAnalyzer":
            return listed("findings", finding([100, 100, 200, 200]))
        return listed("findings", finding(scan)) if request.agent == "SceneScanner" else None

    specialists = PackedSpecialists(["cup"], override=answer)
    await specialists.run(size=(1000, 1000), source=file)
    (request,) = specialists.requests("AnomalyIntegrator")
    user = request.messages[1]
    assert sum(isinstance(part, SentImage) for part in user.parts) == 1 + parts
    assert user.shared == 1  # the picture alone is common to all calls
    shown = block(request, "parts")
    assert [row["findings"] for row in shown] == ([[1, 2]] if parts else [])


async def test_at_most_four_parts_are_shown_the_smallest_first(file: Path) -> None:
    boxes = [[100 * n, 100 * n, 100 * n + 20 + n, 100 * n + 20 + n] for n in range(1, 8)]

    def answer(request: ModelRequest) -> Line | None:
        if request.agent in ("AttributeAnalyzer", "SceneScanner"):
            return listed("findings", *map(finding, boxes))
        return None

    specialists = PackedSpecialists(["cup"], override=answer)
    await specialists.run(size=(1000, 1000), source=file)
    (request,) = specialists.requests("AnomalyIntegrator")
    assert [row["bbox_2d"] for row in block(request, "parts")] == boxes[:4]


async def test_a_server_that_takes_one_image_a_call_is_asked_without_parts(file: Path) -> None:
    def answer(request: ModelRequest) -> Line | None:
        if request.agent in ("AttributeAnalyzer", "SceneScanner"):
            return listed("findings", finding([100, 100, 200, 200]))
        images = [part for turn in request.messages for part in turn.parts if isinstance(part, SentImage)]
        return RequestRejectedError("At most 1 image may be provided") if len(images) > 1 else None

    specialists = PackedSpecialists(["cup"], override=answer)
    state = await specialists.run(size=(1000, 1000), source=file)
    assert len(specialists.requests("AnomalyIntegrator")) == 2
    assert (state["errors"], [each.fate for each in state["candidates"]]) == ([], ["kept", "kept"])
