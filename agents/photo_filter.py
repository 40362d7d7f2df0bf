"""PhotoFilter: is an image a photograph, was something in it blurred, does a prompt call for a photograph?

It is shown the image with its caption, or the prompt alone, says why in a sentence, and ends with a verdict;
it is asked again at most twice where there is none.

Sources: X-AIGD, appendix A.2 and figure 8, whose two questions about real images these are; AnomReason,
section 4.3, which filters prompts for photo-realistic ones by a language model and does not print its
question. The wording is ours.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from uncanny.agents.caption_perturber import in_tags
from uncanny.agents.common.context import AgentContext, C
from uncanny.agents.steps import Step
from uncanny.answers.json_text import without_thinking
from uncanny.answers.verdicts import YesNo, read_realistic
from uncanny.models.base import SentImage

AGENT: Final = "PhotoFilter"
ROLES: Final[Mapping[str, str]] = {"filter": AGENT}

# By the question, in the words of the parameter.
STEPS: Final[Mapping[str, Step]] = {
    "photo": Step(AGENT, 1, "photo", data_tokens=100, output_tokens=60),
    "blurred": Step(AGENT, 1, "blurred", data_tokens=100, output_tokens=60),
    "prompt": Step(AGENT, 1, "photo_prompt", sees_image=False, data_tokens=100, output_tokens=60),
}
# Without a caption there is nothing in the block.
_NO_CAPTION: Final = "(none)"


class Filtering(NamedTuple):
    """The verdict, and the answer that it ends."""

    verdict: YesNo
    answer: str


async def ask_filter(
    question: str, caption: str | None, image: SentImage | None, context: AgentContext[C]
) -> Filtering:
    """Ask one question of `STEPS`. Raises StepFailedError, and what `uncanny.errors.ENDS_RUN` names."""
    step = STEPS[question]
    text = context.prompts[step.prompt].fill(caption=in_tags(caption or _NO_CAPTION))
    return await context.generate(
        step,
        context.opening(() if image is None else (image,), text),
        lambda answer: Filtering(read_realistic(answer), without_thinking(answer).strip()),
        repair=context.repair("repair"),
        subject=question,
    )
