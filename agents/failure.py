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


class StepFailedError(UncannyError):
    """One step of one agent failed for good; other steps and images go on."""

    def __init__(self, agent: str, step: int, subject: str | None, problem: UncannyError) -> None:
        super().__init__(problem.message, remedy=problem.remedy)
        self.record = StepError(
            agent=agent, step=step, object=subject, kind=_KINDS[type(problem)], message=str(problem)
        )
