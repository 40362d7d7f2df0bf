"""Asking about several objects in one call, for the agents of the packed schedule.

What does not validate for one object costs no other one its answer: that object is asked about again, alone.
So is each object of a batch whose answer cannot be used at all.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from uncanny.agents.state import BatchState, Context
from uncanny.agents.steps import ListStep
from uncanny.answers.packed import BatchAnswer, Fault, read_batch
from uncanny.errors import AnswerError, StepFailedError, TruncatedError
from uncanny.schema import StepError

# What a smaller question may mend. A refusal, or a server that is down, it does not.
_MAY_BE_THE_SIZE: Final = (AnswerError, TruncatedError)


@dataclass(frozen=True, slots=True)
class BatchResult:
    """What came of a batch: items, and an error for each question without a whole answer.

    The error of a question about several objects has their names as `objects`. `answered`: whether anything
    was said of any of them.
    """

    items: tuple[Fault, ...]
    errors: tuple[StepError, ...] = ()
    answered: bool = True


async def ask_batch(
    step: ListStep[Fault],
    state: BatchState,
    image: Context,
    scene: str = "",
) -> BatchResult:
    """The answers about a batch; raises what ends a run, and nothing else. `scene` lists all objects."""
    objects, batch = state["objects"], state["batch"]

    async def ask(numbers: Sequence[int]) -> BatchAnswer:
        shown = [
            (
                {
                    "id": number,
                    "name": objects[number - 1].name,
                    "description": objects[number - 1].description,
                },
                objects[number - 1].box,
            )
            for number in numbers
        ]
        names = tuple(objects[number - 1].name for number in numbers)
        answer = await image.answer(
            step,
            lambda text, model: read_batch(text, numbers, model),
            subject=names[0] if len(names) == 1 else None,
            batch=names if len(names) > 1 else (),
            objects=partial(image.shown, shown),
            box_key=image.box_key,
            box_rule=image.box_rule,
            scene=scene,
        )
        image.leave_out(step.form.key, answer.left_out)
        return answer

    async def alone(number: int) -> BatchResult:
        try:
            return BatchResult((await ask([number])).items)
        except StepFailedError as failed:
            return BatchResult(set_aside.get(number, ()), (failed.record,), answered=False)

    items: tuple[Fault, ...] = ()
    errors: tuple[StepError, ...] = ()
    again = list(batch)
    set_aside: Mapping[int, tuple[Fault, ...]] = {}
    try:
        answer = await ask(batch)
        items, again, set_aside = answer.items, sorted(answer.invalid), answer.set_aside
    except StepFailedError as failed:
        if len(batch) == 1 or not isinstance(failed.error, _MAY_BE_THE_SIZE):
            error = failed.record
            if len(batch) > 1:
                names = [objects[number - 1].name for number in batch]
                error = error.model_copy(update={"objects": names})
            return BatchResult((), (error,), answered=False)
    results = await asyncio.gather(*(alone(number) for number in again), return_exceptions=True)
    # All answers come back before what ends the run is raised: what was paid for is kept.
    for result in results:
        if isinstance(result, BaseException):
            raise result
        items += result.items
        errors += result.errors

    def subject(item: Fault) -> int:
        return next(number for number in item.numbers if number in batch)

    # In the order of the objects: findings have the same numbers whether or not some were asked for again.
    return BatchResult(tuple(sorted(items, key=subject)), errors, answered=len(errors) < len(batch))


def from_batch(state: BatchState, image: Context, agent: str, result: BatchResult) -> BatchState:
    """The result as what is known of an image: names for numbers, boxes in pixels."""
    objects = state["objects"]
    return {
        "findings": [
            {
                "found_by": agent,
                "objects": tuple(
                    objects[number - 1].name for number in item.numbers if 1 <= number <= len(objects)
                ),
                "phenomenon": item.observed,
                "reasoning": item.explanation,
                "box": image.box(item.box),
            }
            for item in result.items
        ],
        "errors": list(result.errors),
        "answered": result.answered,
    }
