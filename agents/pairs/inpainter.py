"""Inpainter: paints over a part of a picture; the one that is asked for a picture and not for words.

It gets the picture, the mask and a text, and a model that `paints` answers with the whole picture anew. What
lies outside the mask is somebody else's concern. Source: SalArt-VQA, appendix B.3, stage 3.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from uncanny.agents.common.context import AgentContext, C
from uncanny.agents.pairs.painted import Kept, PaintedFolder
from uncanny.agents.steps import Step
from uncanny.errors import AnswerError, ExtensionError
from uncanny.models.base import Message, Painting, SentImage

AGENT: Final = "Inpainter"
ROLES: Final[Mapping[str, str]] = {"inpainter": AGENT}

# What GPT image models bill for a picture of high quality; the most that is reserved of a budget is the limit
# that a request carries.
PAINT: Final = Step(AGENT, 1, "inpaint", output_tokens=4_160)


async def inpaint(
    picture: SentImage,
    mask: SentImage,
    text: str,
    parameters: Mapping[str, float],
    folder: PaintedFolder,
    context: AgentContext[C],
    *,
    subject: str,
    device: str | None = None,
) -> Kept:
    """`picture` with something else where `mask` is white, stored in `folder`.

    `text` says what the whole picture shows. `parameters` and `device` are those of a `Painting`; its `seed`
    tells repeats apart. `subject` names the candidate in records. An answer that is not a picture is asked
    for again.

    Raises StepFailedError; what `uncanny.errors.ENDS_RUN` names when no call can be made any more; and
    ExtensionError for a model that does not paint.
    """
    endpoint = context.model_client.endpoints(AGENT)[0]
    if not endpoint.provider.capabilities.paints:
        raise ExtensionError(
            f"{endpoint.name} does not paint pictures",
            remedy="Pass demo, diffusers/NAME, or a model behind an endpoint for edits of images.",
        )
    painting = Painting(
        seed=int(parameters["seed"]),
        guidance=parameters["guidance"],
        strength=parameters["strength"],
        steps=int(parameters["steps"]),
        keep=folder.keep,
        device=device,
    )

    def read(answer: str) -> Kept:
        try:
            return folder.read(answer, (picture.width, picture.height))
        except ValueError as error:
            raise AnswerError(str(error)) from None

    def again(error: AnswerError) -> str:
        return f"That was no picture that can be used: {error.message}"

    return await context.generate(
        PAINT,
        (Message("user", (picture, mask, text)),),
        read,
        repair=again,
        subject=subject,
        prompt_id=PAINT.prompt,
        painting=painting,
    )
