"""ArtifactAnswerer: one multiple-choice question about one picture, zero-shot, in a call of its own.

Whatever the model says is the answer and is kept as it is; reading a letter out of it is the scorer's work,
so that scoring can be repeated with another reader. Source: SalArt-VQA, the evaluation protocol.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from uncanny.agents.failure import PROBLEMS, kind_of
from uncanny.client.calls import CallScope
from uncanny.client.client import ModelClient
from uncanny.errors import AnswerError, RefusedError
from uncanny.models.base import Message, ModelRequest, Part, Sampling, SentImage
from uncanny.prompts import PromptSet, prompt_set

AGENT = "ArtifactAnswerer"
ROLES = {"answerer": AGENT}


@dataclass(frozen=True, slots=True)
class Asked:
    """One question as it goes out: `texts` are sent word for word. `image` is None for the control."""

    question: str
    system: str
    text: str
    prompt: str
    image: SentImage | None


@dataclass(frozen=True, slots=True)
class Given:
    """What came back. `raw` is None only where the call failed; `error` then says why."""

    question: str
    raw: str | None
    outcome: Literal["answered", "refused", "error"]
    error: str | None = None


async def ask(asked: Asked, model_client: ModelClient, scope: CallScope, sampling: Sampling) -> Given:
    """Ask once. Raises ModelUnusableError or BudgetError when no question can be asked any more."""
    parts: tuple[Part, ...] = (asked.text,) if asked.image is None else (asked.image, asked.text)
    system = (Message("system", (asked.system,), shared=1),) if asked.system else ()
    request = ModelRequest(
        messages=(*system, Message("user", parts, shared=len(parts) - 1)),
        sampling=sampling,
        agent=AGENT,
        subject=asked.question,
    )
    try:
        raw = await model_client.generate(
            request, _as_it_is, prompt=asked.prompt, repair=_no_repair, scope=scope
        )
    except RefusedError as refusal:
        return Given(asked.question, refusal.words, "refused")
    except PROBLEMS as problem:
        return Given(asked.question, None, "error", f"{kind_of(problem)}: {problem}")
    return Given(asked.question, raw, "answered")


def own_texts() -> PromptSet:
    """Our own wording, for sets that carry none."""
    return prompt_set("mcq")


def _as_it_is(text: str) -> str:
    return text


def _no_repair(error: AnswerError) -> str:
    raise error
