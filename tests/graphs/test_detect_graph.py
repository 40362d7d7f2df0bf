"""The graph of detection: what the second turn is depends on the first, and failures stay where they are."""

from __future__ import annotations

from typing import cast

import pytest

from tests.agents.test_source_detector import LIST, Conversation
from tests.client.scripted import Line, text_response
from uncanny.agents.source_detector import Verdict
from uncanny.errors import ModelUnusableError, RequestRejectedError
from uncanny.graphs.detect import DetectState, detect_graph


async def walk(*lines: Line) -> tuple[DetectState, Conversation]:
    conversation = Conversation(*lines)
    state = await detect_graph().ainvoke({"image": "a.png"}, context=conversation.image)
    return cast(DetectState, state), conversation


async def test_generated_leads_to_the_anomalies() -> None:
    state, conversation = await walk(text_response("yes"), text_response(LIST))
    assert state["verdict"] == Verdict("yes", "generated")
    assert [anomaly.name for anomaly in state["listing"].anomalies] == ["Hand"]
    assert "description" not in state
    assert "failure" not in state
    assert [call.step for call in conversation.scope.calls] == [1, 2]


async def test_real_leads_to_the_content() -> None:
    state, _ = await walk(text_response("no"), text_response("A dog."))
    assert (state["verdict"].source, state["description"]) == ("real", "A dog.")
    assert "listing" not in state


@pytest.mark.parametrize(
    "lines",
    [
        [text_response("Who knows?"), text_response("")],
        [text_response(""), text_response("Who knows?")],
        [text_response("Hm."), text_response("I will not.", "refusal")],
        [text_response("I will not.", "refusal")],
    ],
)
async def test_no_clear_verdict_leads_nowhere(lines: list[Line]) -> None:
    state, conversation = await walk(*lines)
    assert state["verdict"].source is None
    assert set(state) == {"image", "verdict"}
    assert len(conversation.requests) == len(lines)


async def test_a_failed_first_turn_is_a_failure_without_a_verdict() -> None:
    state, conversation = await walk(RequestRejectedError("too large"))
    assert set(state) == {"image", "failure"}
    assert state["failure"].step == 1
    assert len(conversation.requests) == 1


@pytest.mark.parametrize("verdict", ["yes", "no"])
async def test_a_failed_second_turn_leaves_the_verdict(verdict: str) -> None:
    state, _ = await walk(text_response(verdict), RequestRejectedError("too large"))
    assert set(state) == {"image", "verdict", "failure"}
    assert state["failure"].step == 2


async def test_what_ends_the_run_is_raised() -> None:
    with pytest.raises(ModelUnusableError, match="no such model"):
        await walk(ModelUnusableError("no such model"))
