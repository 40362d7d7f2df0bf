"""RealismJudge and OrderJudge: the two checks of the realism protocol, which differ in what they are shown.

RealismJudge sees the edited image alone: is it realistic? OrderJudge sees both images, in one order: which
is more realistic? Each explains first, then gives its verdict, and is asked again at most twice where the
answer holds none. Source: SAGI, supplementary, section 1.5.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, Literal, TypeVar

from uncanny.agents.common.context import AgentContext, C, FailureKind, SamplingSettings, failure_kind
from uncanny.agents.steps import Step
from uncanny.answers.verdicts import Position, Realistic, read_position, read_realistic
from uncanny.errors import RefusedError, StepFailedError
from uncanny.models.base import SentImage

V = TypeVar("V", bound=str)

ROLES: Final[Mapping[str, str]] = {"realism": "RealismJudge", "order": "OrderJudge"}

Order = Literal["original_first", "edited_first"]
CheckName = Literal["first", "original_first", "edited_first"]
ORDERS: Final[tuple[Order, Order]] = ("original_first", "edited_first")


@dataclass(frozen=True, slots=True)
class Judgement(Generic[V]):
    """The outcome of one check.

    `verdict` is None where none was given; `kind` and `error` then say why. `raw` is the last answer as it
    came, None where there was none.
    """

    check: CheckName
    verdict: V | None
    raw: str | None
    kind: FailureKind | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class PairContext(AgentContext[SamplingSettings]):
    """`AgentContext` of one pair: both images, ready to send."""

    original: SentImage
    edited: SentImage


@dataclass(frozen=True, slots=True)
class Check(Generic[V]):
    """One kind of check: who is asked what, which verdicts there are, and how they are read."""

    step: Step
    verdicts: str
    read: Callable[[str], V]


REALISM: Final[Check[Realistic]] = Check(
    Step(ROLES["realism"], 1, "first_check"), "`Yes` or `No`", read_realistic
)
ORDER: Final[Check[Position]] = Check(
    Step(ROLES["order"], 1, "second_check"), "`First`, `Second` or `Both`", read_position
)


async def judge_pair(pair: PairContext) -> list[Judgement[Any]]:
    """The first check, then, after a yes, both orders side by side. Raises as `judge_realism`.

    Without a yes no answer to the second check could give the pair a label. Source: SAGI, supplementary,
    section 1.6.
    """
    first = await judge_realism(pair.edited, pair)
    if first.verdict != "yes":
        return [first]
    orders = (judge_order(order, pair.original, pair.edited, pair) for order in ORDERS)
    return [first, *await pair.scope.side_by_side(orders)]


async def judge_realism(edited: SentImage, context: AgentContext[C]) -> Judgement[Realistic]:
    """The first check. Raises what `uncanny.errors.ENDS_RUN` names when no call can be made any more."""
    return await _judge(REALISM, "first", (edited,), context)


async def judge_order(
    order: Order, original: SentImage, edited: SentImage, context: AgentContext[C]
) -> Judgement[Position]:
    """The second check, in one order. Raises as `judge_realism`."""
    images = (original, edited) if order == "original_first" else (edited, original)
    return await _judge(ORDER, order, images, context)


async def _judge(
    check: Check[V], name: CheckName, images: Sequence[SentImage], context: AgentContext[C]
) -> Judgement[V]:
    answers: list[str] = []

    def read(answer: str) -> V:
        answers.append(answer)
        return check.read(answer)

    # The same system text for both checks and the images ahead of the question: where the edited image comes
    # first, the second check begins with the bytes of the first one.
    messages = context.opening(images, context.prompts[check.step.prompt].fill(), shared=1)
    try:
        verdict = await context.generate(
            check.step,
            messages,
            read,
            repair=context.repair("repair", words=check.verdicts),
            subject=name,
        )
    except StepFailedError as failed:
        error = failed.error
        last = error.words if isinstance(error, RefusedError) else answers[-1] if answers else None
        return Judgement(name, None, last, failure_kind(error), str(error))
    return Judgement(name, verdict, answers[-1])
