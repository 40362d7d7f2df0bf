"""One item: its questions side by side, nothing of one in another."""

from __future__ import annotations

import pytest

from tests.client.scripted import Line, Script, ScriptedProvider, guarded, picture, text_response
from uncanny.agents.artifact_answerer import ItemContext, QuestionPrompt, RawAnswer, answer_item
from uncanny.client.calls import CallScope
from uncanny.client.client import ModelClient
from uncanny.errors import ModelUnusableError, RequestRejectedError
from uncanny.models.base import ModelRequest, Sampling, SentImage
from uncanny.prompts import prompt_set

SAMPLING = Sampling(0.0, None, 100)
IMAGE = picture()


def question(name: str, image: SentImage | None = IMAGE, system: str = "be brief") -> QuestionPrompt:
    return QuestionPrompt(name, system, f"text of {name}", f"{name}@0", image)


async def run(questions: list[QuestionPrompt], script: Script) -> tuple[list[RawAnswer], list[ModelRequest]]:
    """The answers in order of their questions, and what the model was sent."""
    model = ScriptedProvider(script)
    context = ItemContext(
        ModelClient({"": [guarded(model)]}), CallScope("item"), SAMPLING, prompt_set("mcq"), questions
    )
    return await answer_item(context), model.requests


async def test_each_question_is_a_single_turn_with_its_own_text() -> None:
    names = ("q1", "q2", "q3")
    answers, requests = await run(
        [question(name) for name in names], lambda request: text_response(f"says {request.subject}")
    )
    assert [(answer.question, answer.raw, answer.outcome) for answer in answers] == [
        (name, f"says {name}", "answered") for name in names
    ]
    for request in requests:
        system, user = request.messages
        assert (system.role, system.parts) == ("system", ("be brief",))
        assert (user.role, user.parts) == ("user", (IMAGE, f"text of {request.subject}"))
        assert request.sampling == SAMPLING
        assert request.schema is None


async def test_the_control_goes_without_a_picture_and_an_empty_system_text_is_left_out() -> None:
    _, (request,) = await run([question("q4_no_image", None, system="")], lambda _: text_response("F"))
    (message,) = request.messages
    assert message.parts == ("text of q4_no_image",)


@pytest.mark.parametrize("raw", [" \n<think>hm</think> **B**.\n", ""])
async def test_answers_are_kept_as_they_are(raw: str) -> None:
    ((answer,), requests) = await run([question("q1")], lambda _: text_response(raw))
    assert (answer.raw, answer.outcome) == (raw, "answered")
    assert len(requests) == 1


async def test_a_question_that_fails_leaves_the_others_alone() -> None:
    def script(request: ModelRequest) -> Line:
        match request.subject:
            case "q1":
                return text_response("I will not", "refusal")
            case "q2":
                return RequestRejectedError("too large")
        return text_response("A")

    (refused, failed, fine), _ = await run([question(name) for name in ("q1", "q2", "q3")], script)
    assert (refused.outcome, refused.raw, refused.error) == ("refused", "I will not", None)
    assert (failed.outcome, failed.raw, failed.error) == ("error", None, "rejected: too large")
    assert (fine.outcome, fine.raw) == ("answered", "A")


async def test_what_ends_the_run_is_raised() -> None:
    with pytest.raises(ModelUnusableError, match="wrong key"):
        await run([question("q1")], lambda _: ModelUnusableError("wrong key"))


async def test_no_questions_no_answers() -> None:
    assert await run([], lambda _: text_response("A")) == ([], [])
