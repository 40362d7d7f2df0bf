"""EditScreener: does an edited region show one fault that people would see?

It is shown the whole edited picture and the region before and after, enlarged, and answers with a label and
its reason. People decide after it. Source: SalArt-VQA, appendix B.3, stage 4, which does not print its
prompt; the wording is ours.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Final

from uncanny.agents.caption_perturber import in_tags
from uncanny.agents.common.context import C, ImageContext
from uncanny.agents.steps import Step
from uncanny.answers.screenings import Screening, read_screening, screening_schema
from uncanny.models.base import AnswerSchema, SentImage

AGENT: Final = "EditScreener"
ROLES: Final[Mapping[str, str]] = {"screener": AGENT}
SCREEN: Final = Step(AGENT, 1, "screen", data_tokens=10, output_tokens=90, parts=2)


@dataclass(frozen=True, slots=True)
class ScreenContext(ImageContext[C]):
    """`ImageContext` of a candidate: `image` is the edited picture, `before` and `after` are its region."""

    before: SentImage
    after: SentImage


async def screen_edit(held: str, context: ScreenContext[C]) -> Screening:
    """What is to be seen in the region now, which held `held`.

    Raises StepFailedError, and what `uncanny.errors.ENDS_RUN` names.
    """
    question = context.prompts[SCREEN.prompt].fill(object=in_tags(held))
    return await context.generate(
        SCREEN,
        context.opening((context.image, context.before, context.after), question),
        read_screening,
        repair=context.repair("repair"),
        schema=_schema(),
    )


@cache
def _schema() -> AnswerSchema:
    return AnswerSchema("screening", screening_schema(), screening_schema())
