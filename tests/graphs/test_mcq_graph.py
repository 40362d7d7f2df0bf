"""The graph of one item: its questions side by side, nothing of one in another."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from uncanny.agents.artifact_answerer import Asked, Given
from uncanny.client.calls import CallScope
from uncanny.errors import AnswerError, BudgetError, RefusedError, RequestRejectedError
from uncanny.graphs.mcq import ItemContext, item_graph
from uncanny.models.base import ModelRequest, Sampling, SentImage, encode_image

SAMPLING = Sampling(0.0, None, 100)


class StandIn:
    """Answers by subject, and keeps what it was asked."""

    def __init__(self, says: Callable[[ModelRequest], str]) -> None:
        self.says = says
        self.asked: list[ModelRequest] = []

    async def generate(
        self,
        request: ModelRequest,
        read: Callable[[str], str],
        *,
        prompt: str,  # noqa: ARG002
        repair: Callable[[AnswerError], str],  # noqa: ARG002
        scope: CallScope,  # noqa: ARG002
    ) -> str:
        self.asked.append(request)
        return read(self.says(request))


def image() -> SentImage:
    return encode_image(sha256="0" * 64, media_type="image/png", width=1, height=1, data=b"png")


def asked(question: str, picture: SentImage | None, system: str = "be brief") -> Asked:
    return Asked(question, system, f"text of {question}", f"{question}@0", picture)


async def run(questions: list[Asked], model_client: StandIn) -> list[Given]:
    context = ItemContext(questions, model_client, CallScope("item"), SAMPLING)  # type: ignore[arg-type]
    state: dict[str, Any] = await item_graph().ainvoke({"item": "item"}, context=context)
    return sorted(state.get("answers", []), key=lambda given: given.question)


async def test_each_question_is_a_single_turn_with_its_own_text() -> None:
    picture, model_client = image(), StandIn(lambda request: f"says {request.subject}")
    given = await run([asked(question, picture) for question in ("q1", "q2", "q3")], model_client)
    assert [(one.question, one.raw, one.outcome) for one in given] == [
        (question, f"says {question}", "answered") for question in ("q1", "q2", "q3")
    ]
    for request in model_client.asked:
        system, user = request.messages
        assert (system.role, system.parts) == ("system", ("be brief",))
        assert (user.role, user.parts) == ("user", (picture, f"text of {request.subject}"))
        assert request.sampling == SAMPLING
        assert request.schema is None


async def test_the_control_goes_without_a_picture_and_an_empty_system_text_is_left_out() -> None:
    model_client = StandIn(lambda _: "F")
    await run([asked("q4_no_image", None, system="")], model_client)
    (message,) = model_client.asked[0].messages
    assert message.parts == ("text of q4_no_image",)


async def test_answers_are_kept_as_they_are() -> None:
    (given,) = await run([asked("q1", image())], StandIn(lambda _: " \n<think>hm</think> **B**.\n"))
    assert given.raw == " \n<think>hm</think> **B**.\n"


async def test_one_that_fails_leaves_the_others_alone() -> None:
    def says(request: ModelRequest) -> str:
        if request.subject == "q1":
            raise RefusedError("no", words="I will not")
        if request.subject == "q2":
            raise RequestRejectedError("too large")
        return "A"

    refused, failed, fine = await run([asked(q, image()) for q in ("q1", "q2", "q3")], StandIn(says))
    assert (refused.outcome, refused.raw, refused.error) == ("refused", "I will not", None)
    assert (failed.outcome, failed.raw) == ("error", None)
    assert "too large" in str(failed.error)
    assert (fine.outcome, fine.raw) == ("answered", "A")


async def test_what_ends_the_run_is_raised() -> None:
    def says(_: ModelRequest) -> str:
        raise BudgetError("spent")

    with pytest.raises(BudgetError, match="spent"):
        await run([asked("q1", image())], StandIn(says))


async def test_no_questions_no_answers() -> None:
    assert await run([], StandIn(lambda _: "A")) == []
