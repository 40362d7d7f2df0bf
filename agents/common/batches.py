"""Asking about several enlarged parts of an image in one call, for the agents of the packed schedule.

What does not validate for one part costs no other one its answer: that part is asked about again, alone. So
is each part of a batch whose answer cannot be used at all.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Final

from uncanny.agents.common.annotate_context import BatchState, Context, Sighting, as_findings
from uncanny.agents.steps import ListStep
from uncanny.answers.packed import Fault, PartsAnswer, read_parts
from uncanny.errors import AnswerError, StepFailedError, TruncatedError
from uncanny.models.base import Part
from uncanny.schema import StepError

# Ahead of the parts, behind the picture that all calls begin with.
WHOLE_ABOVE: Final = "That was the whole picture."
# What a smaller question may mend. A refusal, or a server that is down, it does not.
_MAY_BE_THE_SIZE: Final = (AnswerError, TruncatedError)


async def look_at_parts(step: ListStep[Fault], state: BatchState, image: Context) -> Sighting:
    """What is found wrong with the enlarged parts of a batch where they are asked about by `step`.

    A step that does not see the image is shown it small, ahead of the parts. Its prompt may have `$listed`,
    which lists them, or `$parts` and `$count`, and `$doubts`, how to answer what others doubt about them. One
    that sees the image is asked about part 0, the whole of it, too, where `doubts` have that number. `errors`
    has an error for each question without a whole answer; `answered` says whether the model said anything
    about any of them. Raises what ends a run, and nothing else.
    """
    batch = [number for number in state["regions"] if number in image.parts]
    if step.sees_image and 0 in state["doubts"]:
        batch.insert(0, 0)
    items: list[Fault] = []
    errors: list[StepError] = []
    again = list(batch)
    set_aside: Mapping[int, tuple[Fault, ...]] = {}
    usable: list[PartsAnswer] = []
    if not batch:
        return {"findings": []}
    try:
        answer = await image.answer(step, **_question(step, batch, state, image, usable))
        image.leave_out(step.form.key, answer.left_out)
        items, again, set_aside = list(answer.items), sorted(answer.invalid), answer.set_aside
    except StepFailedError as failed:
        if isinstance(failed.error, AnswerError) and usable:
            # An item that nobody can place costs the others nothing.
            image.leave_out(step.form.key, usable[-1].left_out)
            items, again, set_aside = list(usable[-1].items), sorted(usable[-1].invalid), usable[-1].set_aside
        elif len(batch) == 1 or not isinstance(failed.error, _MAY_BE_THE_SIZE):
            return {"findings": [], "errors": [failed.record], "answered": False}

    async def ask_again(number: int) -> tuple[Sequence[Fault], list[StepError]]:
        try:
            answer = await image.answer(step, **_question(step, [number], state, image, []))
        except StepFailedError as failed:
            return set_aside.get(number, ()), [failed.record]
        # What does not validate of the whole image, which is asked about along with each part, is counted.
        image.leave_out(step.form.key, answer.left_out + len(answer.invalid))
        return [*answer.items, *(item for each in answer.set_aside.values() for item in each)], []

    # All answers come back before what ends the run is raised: what was paid for is kept.
    for result in await asyncio.gather(*map(ask_again, again), return_exceptions=True):
        if isinstance(result, BaseException):
            raise result
        items += result[0]
        errors += result[1]
    # In the order of the parts: findings have the same numbers whether or not some were asked for again.
    items.sort(key=lambda item: item.part)
    findings = as_findings(step.agent, items, image)
    second = [(item.doubt, finding) for item, finding in zip(items, findings, strict=True)]
    return {
        "findings": [finding for doubt, finding in second if not doubt],
        "second": [{"number": doubt, "finding": finding} for doubt, finding in second if doubt],
        "errors": errors,
        "answered": len(errors) < len(batch),
    }


def _question(
    step: ListStep[Fault],
    batch: Sequence[int],
    state: BatchState,
    image: Context,
    usable: list[PartsAnswer],
) -> dict[str, Any]:
    """What `answer` takes to ask about some parts of a batch by their numbers.

    `usable` gets what can be used of answers that are asked for again.
    """
    doubts = {number: state["doubts"].get(number, ()) for number in batch}
    known = {number: tuple(state.get("known", {}).get(number, ())) for number in (0, *batch)}
    asked = {number: [doubt for doubt, _ in each] for number, each in doubts.items()}
    if step.sees_image:
        asked.setdefault(0, [])  # what is seen in the whole image only
    enlarged = [number for number in batch if number]
    told = [0, *enlarged] if 0 in batch or (step.sees_image and known[0]) else enlarged

    def rows(model: str) -> str:
        return image.shown(
            [
                (
                    {
                        **image.part_row(number, model),
                        "doubts": tuple(
                            {"id": doubt, "doubt": each["phenomenon"]}
                            for doubt, each in doubts.get(number, ())
                        ),
                        "known": known[number],
                    },
                    None,
                )
                for number in told
            ],
            model,
        )

    def listed(model: str) -> str:
        return image.prompts["listed"].fill(parts=rows(model), count=str(len(enlarged)))

    extra: list[Part] = [WHOLE_ABOVE] if step.sees_image else ["The whole picture:", image.parts[0]]
    for number in enlarged:
        extra += [f"Part {number}:", image.parts[number]]
    names = [name for number in enlarged for name in image.regions[number].objects]
    return {
        "read": partial(_read, asked, usable),
        "extra": extra,
        "subject": f"part {batch[0]}" if len(batch) == len(enlarged) == 1 else None,
        "batch": tuple(dict.fromkeys(names)) if len(batch) > 1 else (),
        "listed": listed,
        "parts": rows,
        "count": str(len(enlarged)),
        "doubts": " ".join(
            image.prompts[name].fill()
            for name, listed in (("doubts", doubts), ("known", known))
            if any(listed.get(number) for number in told)
        ),
    }


def _read(
    parts: Mapping[int, Sequence[int]], usable: list[PartsAnswer], text: str, model: str
) -> PartsAnswer:
    try:
        return read_parts(text, parts, model)
    except AnswerError:
        with suppress(AnswerError):
            usable.append(read_parts(text, parts, model, leave_strays=True))
        raise
