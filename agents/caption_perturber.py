"""CaptionPerturber: a caption or mask label with a small, medium or large change of meaning.

It is given the text, the magnitude with its definition, and the picture where there is one. Its answer has to
pass the gates of a label or caption, and is asked for again where it does not.

Source: Semi-Truths, section 3.1 and table 2; the paper gives the image to some models and not to others. The
wording is ours.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from uncanny.agents.common.context import AgentContext, C
from uncanny.agents.steps import Step
from uncanny.answers.writings import MOST_WORDS, Magnitude, TextKind, read_rewritten
from uncanny.models.base import SentImage

AGENT: Final = "CaptionPerturber"
ROLES: Final[Mapping[str, str]] = {"perturber": AGENT}

PERTURB: Final[Mapping[TextKind, Step]] = {
    "label": Step(AGENT, 1, "perturb_label", data_tokens=75, output_tokens=8),
    "caption": Step(AGENT, 1, "perturb_caption", data_tokens=100, output_tokens=25),
}


async def perturb(
    text: str, kind: TextKind, magnitude: Magnitude, image: SentImage | None, context: AgentContext[C]
) -> str:
    """`text` with a change of this magnitude; `image` is the picture it is about, None to go by it alone.

    Raises StepFailedError, and what `uncanny.errors.ENDS_RUN` names.
    """
    step = PERTURB[kind]
    question = context.prompts[step.prompt].fill(
        text=in_tags(text),
        magnitude=magnitude,
        definition=context.prompts[magnitude].fill(),
        words=str(MOST_WORDS[kind]),
    )
    return await context.generate(
        step,
        context.opening(() if image is None else (image,), question),
        lambda answer: read_rewritten(answer, kind, text),
        repair=context.repair("repair"),
        subject=f"{kind}, {magnitude}",
    )


def in_tags(text: str) -> str:
    """A text from a file as prompts show it: it cannot end the block that it stands in."""
    return text.replace("</", "< /")
