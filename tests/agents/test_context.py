"""Why a step has no answer, in the words of a record."""

from __future__ import annotations

import asyncio

import pytest

from tests.agents.specialists import Specialists, scene_object
from tests.client.scripted import Line, busy, text_response
from tests.virtual_time import virtual_time
from uncanny.agents.attribute_analyzer import analyze_attributes
from uncanny.agents.object_perceiver import perceive
from uncanny.errors import ModelUnusableError, QuotaError, RequestRejectedError, StepFailedError
from uncanny.models.base import ModelRequest
from uncanny.schema import StepError


@pytest.mark.parametrize(
    ("line", "kind", "message"),
    [
        (text_response("hm?"), "unparseable", 'expected a JSON object with the key "attributes"'),
        (text_response("I won't.", "refusal"), "refused", "I won't."),
        (text_response('{"attributes": []}', "length"), "truncated", "cut off at 16000 output tokens"),
        (busy(), "infrastructure", "try again"),
        (
            RequestRejectedError("too large", remedy="Use --max-side."),
            "rejected",
            "too large. Use --max-side.",
        ),
    ],
)
@virtual_time
async def test_each_kind_of_failure_names_step_object_and_reason(line: Line, kind: str, message: str) -> None:
    specialists = Specialists("cup")
    specialists.answers["AttributeAnalyzer", 2, None] = lambda _: line
    with pytest.raises(StepFailedError) as caught:
        await analyze_attributes({"subject": scene_object("cup")}, specialists.context())
    record = caught.value.record
    assert isinstance(record, StepError)
    assert (record.agent, record.step, record.object, record.kind) == ("AttributeAnalyzer", 2, "cup", kind)
    assert message in record.message


@pytest.mark.parametrize("error", [ModelUnusableError("wrong key"), QuotaError("no credit")])
async def test_a_model_that_cannot_be_used_is_no_failure_of_the_step(error: ModelUnusableError) -> None:
    specialists = Specialists("cup")
    specialists.answers["AttributeAnalyzer", 1, None] = lambda _: error
    with pytest.raises(type(error)):
        await analyze_attributes({"subject": scene_object("cup")}, specialists.context())


async def test_a_repair_is_worded_by_the_product() -> None:
    specialists = Specialists("cup")
    lines = iter([text_response("hm?"), text_response('{"attributes": []}')])
    specialists.answers["AttributeAnalyzer", 2, None] = lambda _: next(lines)
    state = await analyze_attributes({"subject": scene_object("cup")}, specialists.context())
    assert state == {"attributes": []}
    repair = specialists.requests("AttributeAnalyzer", 2)[1].messages[-1].parts[0]
    assert isinstance(repair, str)
    assert repair.startswith("That answer could not be used: expected a JSON object")


async def test_one_failed_draft_fails_the_perceiver_once_the_others_have_come_back() -> None:
    specialists = Specialists("cup")
    ended: list[int] = []

    async def answer(request: ModelRequest) -> Line:
        if request.sample == 1:
            return RequestRejectedError("no")
        await asyncio.sleep(0.01)
        ended.append(request.sample)
        return text_response('{"objects": []}')

    specialists.answers["ObjectPerceiver", 1, None] = answer
    with pytest.raises(StepFailedError, match="no"):
        await perceive({}, specialists.context())
    assert sorted(ended) == [0, 2]
