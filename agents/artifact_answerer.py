"""ArtifactAnswerer: one multiple-choice question about one picture, zero-shot, in a call of its own.

Every answer is kept as it is; reading a letter out of it is the scorer's work, so that scoring can be
repeated with another reader. Source: SalArt-VQA, the evaluation protocol.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from uncanny.agents.common.context import AgentContext, C, SamplingSettings, opening
from uncanny.agents.steps import Step
from uncanny.errors import RefusedError, StepFailedError
from uncanny.models.base import SentImage

AGENT: Final = "ArtifactAnswerer"
ROLES: Final[Mapping[str, str]] = {"answerer": AGENT}
# An item's own texts are sent word for word, so the step itself has none.
ANSWER: Final = Step(AGENT, 1, "")


@dataclass(frozen=True, slots=True)
class QuestionPrompt:
    """One question as it is sent, its texts word for word.

    `prompt` is their id in records. `image` is None for the control without a picture.
    """

    question: str
    system: str
    text: str
    prompt: str
    image: SentImage | None


@dataclass(frozen=True, slots=True)
class RawAnswer:
    """What came back. `raw` is None only where the call failed; `error` then says why."""

    question: str
    raw: str | None
    outcome: Literal["answered", "refused", "error"]
    error: str | None = None


async def answer_question(question: QuestionPrompt, context: AgentContext[C]) -> RawAnswer:
    """One call. Raises what `uncanny.errors.ENDS_RUN` names when no call can be made any more."""
    messages = opening(question.system, () if question.image is None else (question.image,), question.text)
    try:
        raw = await context.generate(
            ANSWER, messages, lambda text: text, subject=question.question, prompt_id=question.prompt
        )
    except StepFailedError as failed:
        if isinstance(failed.error, RefusedError):
            return RawAnswer(question.question, failed.error.words, "refused")
        return RawAnswer(question.question, None, "error", f"{failed.record.kind}: {failed.error}")
    return RawAnswer(question.question, raw, "answered")


@dataclass(frozen=True, slots=True)
class ItemContext(AgentContext[SamplingSettings]):
    """`AgentContext` of one item: its questions, ready to send."""

    questions: Sequence[QuestionPrompt]


async def answer_item(context: ItemContext) -> list[RawAnswer]:
    """The answers to an item's questions, asked side by side, each in a call of its own."""
    return await context.scope.side_by_side(answer_question(each, context) for each in context.questions)
