"""Why a step has no answer, in the form annotations record it."""

from __future__ import annotations

from typing import Literal

from uncanny.errors import (
    AnswerError,
    RefusedError,
    RequestRejectedError,
    TransientError,
    TruncatedError,
    UncannyError,
)
from uncanny.schema import StepError

Kind = Literal["unparseable", "refused", "truncated", "infrastructure", "rejected"]
PROBLEMS = (AnswerError, RefusedError, TruncatedError, TransientError, RequestRejectedError)

_KINDS: dict[type[UncannyError], Kind] = {
    AnswerError: "unparseable",
    RefusedError: "refused",
    TruncatedError: "truncated",
    TransientError: "infrastructure",
    RequestRejectedError: "rejected",
}


def kind_of(problem: UncannyError) -> Kind:
    """One of `PROBLEMS`, or of their subclasses, by its kind."""
    return next(_KINDS[each] for each in type(problem).__mro__ if each in _KINDS)


class StepFailedError(UncannyError):
    """One step of one agent failed for good; other steps and images go on."""

    def __init__(self, agent: str, step: int, subject: str | None, problem: UncannyError) -> None:
        super().__init__(problem.message, remedy=problem.remedy)
        self.record = StepError(
            agent=agent, step=step, object=subject, kind=kind_of(problem), message=str(problem)
        )
