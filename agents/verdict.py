"""What the two realism checks share: a question asked until its verdict can be read, three times at most.

Source: SAGI, supplementary, section 1.5: an explanation first, then the verdict.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Generic, Literal, TypeVar

from uncanny.agents.failure import PROBLEMS, Kind, kind_of
from uncanny.client.calls import CallScope
from uncanny.client.client import ModelClient
from uncanny.errors import AnswerError, RefusedError
from uncanny.models.base import Message, ModelRequest, Sampling, SentImage
from uncanny.prompts import PromptSet, prompt_set

V = TypeVar("V", bound=str)

ROLES = {"realism": "RealismJudge", "order": "OrderJudge"}

Asked = Literal["first", "original_first", "edited_first"]


@dataclass(frozen=True, slots=True)
class Judged(Generic[V]):
    """What one check came to.

    `verdict` is None where none was given; `kind` and `error` then say why. `raw` is the last answer as it
    came, None where there was none.
    """

    asked: Asked
    verdict: V | None
    raw: str | None
    kind: Kind | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Judging:
    """What checks of one pair ask through."""

    model_client: ModelClient
    scope: CallScope
    sampling: Sampling
    prompts: PromptSet = field(default_factory=lambda: own_texts())


@dataclass(frozen=True, slots=True)
class Check(Generic[V]):
    """One kind of check: who asks, with which prompt, and how its verdict is read."""

    agent: str
    prompt: str
    words: str
    read: Callable[[str], V]


async def judged(check: Check[V], asked: Asked, images: Sequence[SentImage], judging: Judging) -> Judged[V]:
    """Ask, and ask again at most twice where the answer holds no verdict.

    The same system text for both checks and the images ahead of the question: where the edited image comes
    first, the second check begins with the bytes of the first one. Raises ModelUnusableError or BudgetError
    when no question can be asked any more.
    """
    texts = judging.prompts
    prompt = texts[check.prompt]
    raw: list[str] = []

    def read(answer: str) -> V:
        raw.append(answer)
        return check.read(answer)

    def repair(error: AnswerError) -> str:
        return texts["repair"].fill(problem=error.message, words=check.words)

    request = ModelRequest(
        messages=(
            Message("system", (texts["system"].template.template,), shared=1),
            Message("user", (*images, prompt.fill()), shared=1),
        ),
        sampling=judging.sampling,
        agent=check.agent,
        subject=asked,
    )
    try:
        verdict = await judging.model_client.generate(
            request, read, prompt=prompt.id, repair=repair, scope=judging.scope
        )
    except PROBLEMS as problem:
        last = problem.words if isinstance(problem, RefusedError) else raw[-1] if raw else None
        return Judged(asked, None, last, kind_of(problem), str(problem))
    return Judged(asked, verdict, raw[-1])


def own_texts() -> PromptSet:
    """Our own wording; the published one is not ours to ship."""
    return prompt_set("realism")
