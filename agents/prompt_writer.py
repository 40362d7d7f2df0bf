"""PromptWriter: which object of a picture to paint over, and with what; a second one; or which to remove.

It knows the caption and the list of objects, and does not see the picture. The object has to be one of the
list, and the prompt has to pass the gates of a caption; else it is asked again.

Source: SAGI, supplementary, section 1.3 (SAOR), where "Inpaint the masked area with" is asked for and taken
off; here it is not asked for. The wording is ours.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from uncanny.agents.caption_perturber import in_tags
from uncanny.agents.common.context import AgentContext, C
from uncanny.agents.steps import Step
from uncanny.answers.writings import EditMode, InpaintingPrompt, read_inpainting

AGENT: Final = "PromptWriter"
ROLES: Final[Mapping[str, str]] = {"writer": AGENT}

FIRST: Final = Step(AGENT, 1, "first", sees_image=False, data_tokens=50, output_tokens=25)
SECOND: Final = Step(AGENT, 2, "second", sees_image=False, data_tokens=80, output_tokens=25)
REMOVAL: Final = Step(AGENT, 1, "removal", sees_image=False, data_tokens=25, output_tokens=5)


async def write_edits(
    mode: EditMode,
    caption: str,
    objects: Sequence[str],
    context: AgentContext[C],
    edits: list[InpaintingPrompt],
) -> None:
    """Add the edits that `mode` asks for to `edits`, each when it is written. Raises as `perturb` does."""
    if mode == "remove":
        edits.append(await choose_removal(objects, context))
        return
    first = await write_first(caption, objects, context)
    edits.append(first)
    if mode == "double":
        edits.append(await write_second(caption, objects, first, context))


async def write_first(caption: str, objects: Sequence[str], context: AgentContext[C]) -> InpaintingPrompt:
    """An object of `objects` with what is to be seen in its place. Raises as `perturb` does."""
    return await _write(FIRST, objects, context, caption=in_tags(caption))


async def write_second(
    caption: str, objects: Sequence[str], first: InpaintingPrompt, context: AgentContext[C]
) -> InpaintingPrompt:
    """Another object than that of the `first` edit. Raises as `perturb` does."""
    others = [each for each in objects if each != first.object]
    before = in_tags(f"{first.object}\n{first.prompt}")
    return await _write(SECOND, others, context, caption=in_tags(caption), first=before)


async def choose_removal(objects: Sequence[str], context: AgentContext[C]) -> InpaintingPrompt:
    """An object of `objects` to be removed, without a prompt. Raises as `perturb` does."""
    return await _write(REMOVAL, objects, context)


async def _write(
    step: Step, objects: Sequence[str], context: AgentContext[C], **variables: str
) -> InpaintingPrompt:
    listed = in_tags("\n".join(f"- {each}" for each in objects))
    question = context.prompts[step.prompt].fill(objects=listed, **variables)
    return await context.generate(
        step,
        context.opening((), question),
        lambda answer: read_inpainting(answer, objects, removal=step is REMOVAL),
        repair=context.repair("repair"),
        subject=step.prompt,
    )
