"""What all annotating agents are told: rules, strictness, language, boxes, and enlarged parts."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from tests.agents.packed_specialists import PackedSpecialists, block
from tests.agents.specialists import listed
from tests.client.scripted import Line, guarded
from uncanny.agents.common.annotate_context import AnnotateContext
from uncanny.answers.boxes import GivenBox
from uncanny.client.client import ModelClient
from uncanny.errors import ModelUnusableError, RequestRejectedError
from uncanny.graphs.packed import packed_graph
from uncanny.models.base import ModelRequest, SentImage, encode_image
from uncanny.records.answer_cache import AnswerCache


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
    assert image.box_key(model) == key
    assert rule in image.box_rule(model)


def test_a_format_that_is_named_goes_before_the_models() -> None:
    image = context("anthropic/claude-sonnet-5", (100, 50), box_format="yxyx-1000")
    assert image.box_key("anthropic/claude-sonnet-5") == "box_2d"


def test_boxes_are_counted_and_stored_in_pixels_of_the_file() -> None:
    image = context("demo", (1000, 500), (4000, 2000))
    assert image.box(GivenBox((100, 200, 300, 400), "bbox_2d", "demo")) == (400, 400, 1200, 800)
    assert image.box(GivenBox((100, 200, 9000, 400), "bbox_2d", "demo")) is None
    assert image.box(None) is None
    assert image.boxes.as_recorded() == {"given": 2, "unreadable": 1, "formats": ["xyxy-1000"]}
    shown = image.shown([({"id": 1, "name": "cup", "objects": ()}, (400, 400, 1200, 800))], "demo")
    assert shown == '{"id":1,"name":"cup","bbox_2d":[100,200,300,400]}'


async def test_a_fallback_is_asked_for_boxes_and_read_as_it_was_trained() -> None:
    """The first model, of pixels, lists the object and is then out of credit; the fallback has y first."""
    spent = ModelUnusableError("no credit")
    first = PackedSpecialists(
        override=lambda request: (
            listed("objects", {"name": "cup", "description": "there", "box": [100, 100, 300, 200]})
            if request.agent == "ObjectPerceiver"
            else spent
        )
    )
    asked: list[ModelRequest] = []

    def answer(request: ModelRequest) -> Line | None:
        asked.append(request)
        row = {"objects": ["1"], "observed": "odd", "explanation": "x", "box_2d": [200, 100, 400, 300]}
        if request.agent == "AnomalyIntegrator":
            entry = {"ids": [1], "why": "seen", "decision": "keep", "phenomenon": "", "reasoning": ""}
            return listed("entries", entry | {"box_2d": [200, 100, 410, 300]})
        return listed("findings", row) if request.agent == "AttributeAnalyzer" else None

    second = PackedSpecialists(override=answer)
    first.model.name, second.model.name = "script/claude-sonnet-5", "script/gemini-3"
    models = ModelClient({"": [guarded(first.model), guarded(second.model)]})
    image = replace(
        first.context(scene_scans=0), model_client=models, image=sent(1000, 500), size=(2000, 1000)
    )
    state = await packed_graph().ainvoke({"image": "a.png"}, context=image)
    assert state["objects"][0].box == (200, 200, 600, 400)
    assert [each.box for each in state["candidates"]] == [(200, 200, 600, 400)]
    assert [each.box for each in state["anomalies"]] == [(200, 200, 600, 410)]
    (analyzer,) = (request for request in asked if request.agent == "AttributeAnalyzer")
    assert block(analyzer, "objects")[0]["box_2d"] == [200, 100, 400, 300]
    assert "[y0, x0, y1, x1]" in str(analyzer.messages[1].parts[1])
    assert analyzer.schema is not None
    assert "box_2d" in str(analyzer.schema.own)
    # Everything but the box is as the first model was asked, picture and system text ahead of it included.
    (before,) = (request for request in first.requests("AttributeAnalyzer"))
    assert block(before, "objects")[0]["box"] == [100, 100, 300, 200]
    assert (analyzer.messages[0], analyzer.messages[1].parts[0]) == (before.messages[0], image.image)
    assert image.boxes.as_recorded() == {"given": 3, "unreadable": 0, "formats": ["pixels", "yxyx-1000"]}


async def test_an_answer_of_a_fallback_is_kept_under_its_own_question(tmp_path: Path) -> None:
    """With the same cache, an answer is found again whether or not the first model is there by then."""
    first = PackedSpecialists(override=lambda _request: ModelUnusableError("no credit"))
    second = PackedSpecialists(["cup"], {"cup": ["odd"]}, boxes={"cup": [200, 100, 400, 300]})
    first.model.name, second.model.name = "script/claude-sonnet-5", "script/gemini-3"
    states = []
    for _ in range(2):
        with closing(AnswerCache(tmp_path / "answers")) as cache:
            models = ModelClient({"": [guarded(first.model), guarded(second.model)]}, cache=cache)
            image = replace(first.context(), model_client=models, image=sent(1000, 500))
            states.append(await packed_graph().ainvoke({"image": "a.png"}, context=image))
    assert states[0]["objects"][0].box == (100, 100, 300, 200)
    assert states[0]["candidates"] == states[1]["candidates"] != []
    assert len(second.model.requests) == 6


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


@pytest.mark.parametrize(
    ("model", "side"),
    [
        ("demo", 900),  # of 600 pixels, which are seen as 600, one and a half times
        ("anthropic/claude-sonnet-4-5", 600),  # sees 271 of them
    ],
)
async def test_a_part_is_as_large_as_what_its_model_sees_asks_for(
    tmp_path: Path, model: str, side: int
) -> None:
    path = tmp_path / "large.png"
    Image.new("RGB", (2400, 2400), "white").save(path)
    whole = replace(context(model, (2400, 2400)), source=path)
    (part,) = await whole.enlarged([(1000, 1000, 1100, 1100)], "AnomalyIntegrator")
    assert (part.width, part.height) == (side, side)


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
