"""What the ArtifactLocator puts to the model, and what it makes of its answers."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from tests.client.scripted import Line, Script, ScriptedProvider, guarded, in_turn, picture, text_response
from uncanny.agents.artifact_locator import (
    AGENT,
    Answered,
    ArtifactContext,
    estimate_likelihood,
    locate_all,
    locate_artifacts,
    locate_category,
)
from uncanny.agents.config import ArtifactsConfig
from uncanny.answers.artifacts import Located
from uncanny.client.calls import CallScope
from uncanny.client.client import ModelClient
from uncanny.errors import ModelUnusableError, RequestRejectedError, StepFailedError
from uncanny.models.base import ModelResponse, SentImage, encode_image
from uncanny.prompts import prompt_set
from uncanny.schema import ARTIFACT_CATEGORIES

BOX = '{"answer": {"artifacts": [{"note": "floats", "bbox_2d": [0, 0, 500, 1000]}]}}'
BROKEN = '{"answer": {"artifacts": [{"note": "floats", "bbox_2d": [0, 0, 500, 1000]}, {"bbox_2d": []}]}}'
NONE = '{"answer": {"artifacts": []}}'
LEFT_HALF = Located("physics", (0, 0, 2, 3), "floats")


def context(
    *lines: Line | str, script: Script | None = None, image: SentImage | None = None, **config: Any
) -> tuple[ArtifactContext, ScriptedProvider]:
    model = ScriptedProvider(script or in_turn(*lines))
    client = ModelClient({"": [guarded(model)]})
    own = ArtifactsConfig(**config)
    prompts = prompt_set("artifacts")
    return ArtifactContext(client, CallScope("a.png"), own, prompts, image or picture()), model


async def test_a_category_is_asked_for_by_name_with_what_belongs_to_it() -> None:
    image, model = context(BOX)
    answered = await locate_category("physics", image)
    assert answered == Answered(("physics",), (LEFT_HALF,))
    (request,) = model.requests
    system, user = request.messages
    assert (system.shared, user.shared) == (1, 1)
    assert user.parts[0] is image.image
    text = str(user.parts[1])
    assert '"physics"' in text
    assert prompt_set("artifacts")["physics"].fill() in text
    assert "bbox_2d" in text
    assert "$" not in text
    assert (request.agent, request.step, request.subject) == (AGENT, 1, "physics")
    assert request.sampling.temperature == 0.0
    assert request.schema is not None


async def test_all_categories_share_system_text_picture_and_schema() -> None:
    image, model = context(*[NONE] * 7)
    for category in ARTIFACT_CATEGORIES:
        assert await locate_category(category, image) == Answered((category,), ())
    first = model.requests[0]
    for request in model.requests:
        assert request.messages[0] == first.messages[0]
        assert request.messages[1].parts[0] is image.image
        assert request.schema == first.schema
    assert len({r.messages[1].parts[1] for r in model.requests}) == 7


async def test_all_at_once_defines_those_that_are_asked_for() -> None:
    answer = BOX.replace('"note"', '"category": "physics", "note"')
    image, model = context(answer)
    assert await locate_all(("semantics", "physics"), image) == Answered(
        ("semantics", "physics"), (LEFT_HALF,)
    )
    (request,) = model.requests
    text = str(request.messages[1].parts[1])
    assert '- "semantics": ' in text
    assert '- "physics": ' in text
    assert '- "color": ' not in text
    assert request.subject is None


async def test_boxes_are_pixels_of_the_file_whatever_was_sent() -> None:
    sent = encode_image(sha256="0" * 64, media_type="image/png", width=100, height=50, data=b"x")
    image, _ = context(BOX, image=sent)
    answered = await locate_category("physics", replace(image, size=(2000, 1000)))
    assert answered.located is not None
    assert answered.located[0].box == (0, 0, 1000, 1000)
    image, model = context(*[BOX.replace("bbox_2d", "box")] * 3, image=sent, box_format="pixels")
    answered = await locate_category("physics", image)
    assert "100 pixels wide and 50 pixels high" in str(model.requests[0].messages[1].parts[1])
    assert answered.located is None  # 500 and 1000 pixels are far outside


@pytest.mark.parametrize("joint", [False, True])
async def test_a_fallback_is_asked_for_boxes_and_read_as_it_was_trained(joint: bool) -> None:
    """The first model, of pixels, is out of credit; the fallback counts thousandths and has y first."""
    broken = '{"artifacts": [{"category": "physics", "note": "floats", "box_2d": [0]}]}'
    whole = '{"artifacts": [{"category": "physics", "note": "floats", "box_2d": [200, 100, 400, 300]}]}'
    first = ScriptedProvider(in_turn(ModelUnusableError("no credit")), name="script/claude-sonnet-5")
    second = ScriptedProvider(in_turn(broken, whole), name="script/gemini-3")
    sent = encode_image(sha256="0" * 64, media_type="image/png", width=1000, height=500, data=b"x")
    image, _ = context(image=sent)
    models = ModelClient({"": [guarded(first), guarded(second)]})
    image = replace(image, model_client=models, size=(2000, 1000))
    located = Located("physics", (200, 200, 600, 400), "floats")
    if joint:
        assert await locate_all(("color", "physics"), image) == Answered(("color", "physics"), (located,))
    else:
        assert await locate_category("physics", image) == Answered(("physics",), (located,))
    (before,) = first.requests
    assert '"box"' in str(before.messages[1].parts[1])
    assert "1000 pixels wide and 500 pixels high" in str(before.messages[1].parts[1])
    asked, repair = second.requests
    text = str(asked.messages[1].parts[1])
    assert "[y0, x0, y1, x1]" in text
    assert '"box_2d"' in text
    assert "pixels wide" not in text
    assert asked.schema is not None
    assert "box_2d" in str(asked.schema.own)
    assert before.schema is not None
    assert "box_2d" not in str(before.schema.own)
    assert "box_2d is not a list of four numbers" in str(repair.messages[3].parts[0])
    # Picture and system text ahead of it are those of the first model.
    assert (asked.messages[0], asked.messages[1].parts[0]) == (before.messages[0], sent)
    assert image.boxes.as_recorded() == {"given": 1, "unreadable": 0, "formats": ["yxyx-1000"]}


async def test_a_box_that_cannot_be_is_asked_for_again() -> None:
    image, model = context(BROKEN, BOX)
    assert await locate_category("physics", image) == Answered(("physics",), (LEFT_HALF,))
    first, repair = model.requests
    assert repair.messages[:2] == first.messages
    assert "item 2: bbox_2d is not a list of four numbers" in str(repair.messages[3].parts[0])


async def test_what_is_valid_stays_where_the_rest_never_becomes_so() -> None:
    image, _ = context(BROKEN, "What?", BROKEN)
    answered = await locate_category("physics", image)
    assert answered.located == (LEFT_HALF,)
    assert answered.failure is not None
    assert (answered.failure.kind, answered.failure.object) == ("unparseable", "physics")


@pytest.mark.parametrize(
    ("lines", "kind"),
    [
        (("nothing here",) * 3, "unparseable"),
        ((ModelResponse("No.", "refusal"),), "refused"),
        ((BROKEN, ModelResponse("No.", "refusal")), "refused"),
        ((RequestRejectedError("too large"),), "rejected"),
        ((BROKEN, RequestRejectedError("too large")), "rejected"),
    ],
)
async def test_without_an_answer_nothing_is_known(lines: tuple[Any, ...], kind: str) -> None:
    image, _ = context(*lines)
    answered = await locate_category("physics", image)
    assert answered.located is None
    assert answered.failure is not None
    assert answered.failure.kind == kind


async def test_the_likelihood_is_a_number_by_itself() -> None:
    image, model = context("Likely.", "Likelihood: 85")
    assert await estimate_likelihood(image) == 0.85
    assert [r.schema for r in model.requests] == [None, None]
    assert "Likelihood:" in str(model.requests[1].messages[3].parts[0])
    image, _ = context(*["Who knows"] * 3)
    with pytest.raises(StepFailedError):
        await estimate_likelihood(image)


async def test_questions_go_side_by_side_and_each_failure_costs_its_own_category() -> None:
    async def script(request: Any) -> Line:
        await asyncio.sleep(0.01)
        if request.subject == "color":
            return ModelResponse("No.", "refusal")
        if request.subject is None:
            return text_response("Likelihood: 20")
        return text_response(BOX if request.subject == "physics" else NONE)

    image, model = context(script=script, likelihood=True)
    answers, likelihood = await locate_artifacts(image)
    by_category = {each.categories[0]: each for each in answers}
    assert by_category.keys() == {*ARTIFACT_CATEGORIES}
    assert by_category["physics"].located == (LEFT_HALF,)
    assert by_category["color"].located is None
    assert by_category["textures"].located == ()
    assert likelihood == 0.2
    assert model.most == 8
    image, model = context(NONE, joint=True)
    answers, likelihood = await locate_artifacts(image)
    assert [each.categories for each in answers] == [ARTIFACT_CATEGORIES]
    assert likelihood is None
