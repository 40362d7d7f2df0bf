"""What all annotating agents are told: rules, strictness, language, boxes, and enlarged parts."""

from __future__ import annotations

from base64 import b64decode
from contextlib import closing
from dataclasses import replace
from io import BytesIO
from math import ceil, floor
from pathlib import Path
from typing import Any, Final

import numpy as np
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from tests.agents.packed_specialists import PackedSpecialists, block, fault, keep, noise
from tests.agents.specialists import listed
from tests.client.scripted import Line, guarded, picture, text_response
from uncanny.agents.common.annotate_context import AnnotateContext
from uncanny.agents.common.context import asked_box_format
from uncanny.answers.boxes import BOX_FORMATS, GivenBox, in_format
from uncanny.client.client import ModelClient
from uncanny.errors import ModelUnusableError
from uncanny.graphs.packed import packed_graph
from uncanny.models.base import ModelRequest, SentImage
from uncanny.models.views import seen_size
from uncanny.records.answer_cache import AnswerCache
from uncanny.schema import Box, Region


def sent(width: int, height: int) -> SentImage:
    return picture(b"x", width, height)


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
    cup = {"name": "cup", "description": "there", "sort": "thing", "box": [100, 100, 180, 160]}
    first = PackedSpecialists(
        override=lambda request: (
            text_response(orjson.dumps({"findings": [], "inventory": [cup]}).decode())
            if request.agent == "ObjectPerceiver"
            else spent
        ),
        name="script/claude-sonnet-5",
    )
    asked: list[ModelRequest] = []

    def answer(request: ModelRequest) -> Line | None:
        asked.append(request)
        box = {"box_2d": [200, 100, 400, 300]}
        if request.agent == "AnomalyIntegrator":
            return listed("entries", keep(block(request, "findings")[0], **box, part=0))
        return (
            listed("findings", fault("odd", part=1, **box)) if request.agent == "AttributeAnalyzer" else None
        )

    second = PackedSpecialists(override=answer, name="script/gemini-3")
    models = ModelClient({"": [guarded(first.model), guarded(second.model)]})
    image = replace(first.context(), model_client=models, image=sent(1000, 500), size=(1200, 600))
    image = replace(image, source=noise(1200, 600))
    state = await packed_graph().ainvoke({"image": "a.png"}, context=image)
    assert state["objects"][0].box == (120, 120, 216, 192)
    (region,) = state["regions"]
    x0, y0, x1, y1 = region.box
    assert x1 - x0 == y1 - y0 < 300
    # 100 to 300 thousandths across and 200 to 400 down, of the part, and of the whole.
    side = (x1 - x0) / 1000
    assert state["candidates"][0].box == (
        x0 + floor(100 * side), y0 + floor(200 * side), x0 + ceil(300 * side), y0 + ceil(400 * side),
    )  # fmt: skip
    assert [each.box for each in state["anomalies"]] == [(120, 120, 360, 240)]
    (analyzer,) = (request for request in asked if request.agent == "AttributeAnalyzer")
    (before,) = first.requests("AttributeAnalyzer")
    assert "[y0, x0, y1, x1]" in str(analyzer.messages[1].parts[-1])
    assert analyzer.schema is not None
    assert "box_2d" in str(analyzer.schema.own)
    # Only where boxes are pixels the size of a part is said.
    assert block(analyzer, "parts") == [{"part": 1, "shows": ["cup"]}]
    assert block(before, "parts") == [{"part": 1, "shows": ["cup"], "width": 512, "height": 512}]
    # Everything but the box is as the first model was asked, pictures and system text ahead of it included.
    assert (analyzer.messages[0], analyzer.messages[1].parts[:-1]) == (
        before.messages[0],
        before.messages[1].parts[:-1],
    )
    assert image.boxes.as_recorded() == {"given": 3, "unreadable": 0, "formats": ["pixels", "yxyx-1000"]}


async def test_an_answer_of_a_fallback_is_kept_under_its_own_question(tmp_path: Path) -> None:
    """With the same cache, an answer is found again whether or not the first model is there by then."""
    first = PackedSpecialists(
        override=lambda _request: ModelUnusableError("no credit"), name="script/claude-sonnet-5"
    )
    second = PackedSpecialists(
        ["cup"], {"cup": ["odd"]}, boxes={"cup": [200, 100, 280, 160]}, name="script/gemini-3"
    )
    states = []
    for _ in range(2):
        with closing(AnswerCache(tmp_path / "answers")) as cache:
            models = ModelClient({"": [guarded(first.model), guarded(second.model)]}, cache=cache)
            image = replace(
                first.context(source=noise(1000, 500)), model_client=models, image=sent(1000, 500)
            )
            states.append(await packed_graph().ainvoke({"image": "a.png"}, context=image))
    assert states[0]["objects"][0].box == (100, 100, 160, 140)
    assert states[0]["candidates"] == states[1]["candidates"] != []
    assert len(second.model.requests) == 3


# With what each makes of a picture: nothing, multiples of 28 pixels, and smaller.
MODELS: Final = ("openai/gpt-5.4", "vllm/Qwen/Qwen2.5-VL-7B", "anthropic/claude-sonnet-4-5", "demo")
sides = st.integers(60, 3000)


@given(st.sampled_from(MODELS), st.sampled_from([None, *sorted(BOX_FORMATS)]), sides, sides, st.data())
def test_a_box_within_a_part_comes_back_in_pixels_of_the_file(
    model: str, form: Any, width: int, height: int, data: st.DataObject
) -> None:
    reduced = data.draw(st.sampled_from([1.0, 0.7, 0.25]))
    size = (max(1, round(width * reduced)), max(1, round(height * reduced)))
    image = context(model, size, (width, height), box_format=form)

    def box_within(outer: Box, least: int) -> Box:
        x0 = data.draw(st.integers(outer[0], outer[2] - least))
        y0 = data.draw(st.integers(outer[1], outer[3] - least))
        x1 = data.draw(st.integers(x0 + least, outer[2]))
        return x0, y0, x1, data.draw(st.integers(y0 + least, outer[3]))

    region = box_within((0, 0, width, height), 40)
    x, y, *_ = region
    wide, high = region[2] - x, region[3] - y
    scale = data.draw(st.sampled_from([0.3, 1.0, 4.0]))
    part = (max(1, round(wide * scale)), max(1, round(high * scale)))
    image.parts[1], image.regions[1] = sent(*part), Region(number=1, box=region, why="tile")
    place = box_within(region, 5)
    asked = asked_box_format(model, image.config)
    seen = seen_size(model, *part)
    within = (place[0] - x, place[1] - y, place[2] - x, place[3] - y)
    a, b, c, d = map(float, in_format(within, asked, sent=seen, original=(wide, high)))
    back = image.box_in(1, GivenBox((a, b, c, d), asked.key, model))
    steps = seen if asked.side is None else (1000, 1000)
    unit = (wide / steps[0], high / steps[1])
    if back is None:  # narrower than what the numbers can say
        assert place[2] - place[0] <= 2 * unit[0] or place[3] - place[1] <= 2 * unit[1]
        return
    for side, (got, true) in enumerate(zip(back, place, strict=True)):
        assert abs(got - true) <= unit[side % 2] + 1
    assert back[0] >= x
    assert back[1] >= y
    assert back[2] <= region[2]
    assert back[3] <= region[3]


@pytest.mark.parametrize("sent_size", [(1000, 800), (500, 400), (3000, 2400)])
@pytest.mark.parametrize("model", MODELS)
async def test_what_is_seen_in_a_part_is_found_at_its_place_in_the_file(
    model: str, sent_size: tuple[int, int]
) -> None:
    """A red spot, located in the pixels of the part as they were sent."""
    spot = (412, 330, 436, 346)
    pixels = np.full((800, 1000, 3), 255, dtype=np.uint8)
    pixels[spot[1] : spot[3], spot[0] : spot[2]] = (255, 0, 0)
    file = BytesIO()
    Image.fromarray(pixels).save(file, "PNG")
    image = replace(context(model, sent_size, (1000, 800)), source=file.getvalue())
    regions = [
        Region(number=1, box=(300, 250, 600, 450), why="finding"),
        Region(number=2, box=(380, 300, 480, 400), why="object"),
    ]
    await image.enlarge(lambda _: regions, image.view("AttributeAnalyzer"), ["AttributeAnalyzer"])
    for number in (1, 2):
        part = image.parts[number]
        shown = np.asarray(Image.open(BytesIO(b64decode(part.base64))).convert("RGB"), dtype=int)
        assert shown.shape[:2] == (part.height, part.width)
        red = np.argwhere((shown[..., 0] > 150) & (shown[..., 1] < 100))
        (top, left), (bottom, right) = red.min(axis=0), red.max(axis=0) + 1
        seen = seen_size(model, part.width, part.height)
        asked = asked_box_format(model, image.config)
        box = (int(left), int(top), int(right), int(bottom))
        a, b, c, d = map(float, in_format(box, asked, sent=seen, original=(part.width, part.height)))
        back = image.box_in(number, GivenBox((a, b, c, d), asked.key, model))
        assert back is not None
        assert max(abs(got - true) for got, true in zip(back, spot, strict=True)) <= 2


def test_a_box_in_a_part_that_is_not_known_is_none() -> None:
    image = context("demo", (1000, 500))
    given = GivenBox((100, 200, 300, 400), "bbox_2d", "demo")
    assert image.box_in(0, given) == (100, 100, 300, 200)
    assert image.box_in(7, given) is None
    assert image.box_in(7, None) is None
    assert image.boxes.as_recorded() == {"given": 2, "unreadable": 1, "formats": ["xyxy-1000"]}


async def test_parts_are_kept_when_more_are_cut_out() -> None:
    image = PackedSpecialists().context()
    view = image.view("AttributeAnalyzer")
    first = Region(number=1, box=(100, 0, 300, 200), why="finding")
    second = Region(number=2, box=(200, 0, 400, 200), why="finding")
    assert await image.enlarge(lambda _: [first], view, ["AnomalyIntegrator"]) == [first]
    assert await image.enlarge(lambda _: [second], view, ["AnomalyIntegrator"]) == [second]
    assert (sorted(image.parts), sorted(image.regions)) == ([0, 1, 2], [1, 2])
    whole = image.parts[0]
    assert (whole.width, whole.height) == (640, 640)
    assert await image.enlarge(lambda _: [], view, ["AnomalyIntegrator"]) == []
