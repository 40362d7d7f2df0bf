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

from uncanny.agents.state import BatchState, Context, Sighting, as_findings
from uncanny.agents.steps import ListStep
from uncanny.answers.packed import BatchAnswer, Fault, read_batch
from uncanny.errors import AnswerError, StepFailedError, TruncatedError
from uncanny.schema import SceneObject, StepError

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


async def look_at_batch(step: ListStep[Fault], state: BatchState, image: Context) -> Sighting:
    """What is found wrong with the objects of a batch where they are asked about by `step`.

    Its prompt may have `$objects`, those of the batch with their numbers, and `$scene`, all objects of the
    image by name. `errors` are objects without an answer.
    """
    result = await ask_batch(step, state, image)
    return {
        "findings": as_findings(step.agent, result.items, image, state["objects"]),
        "errors": list(result.errors),
        "answered": result.answered,
    }


async def ask_batch(step: ListStep[Fault], state: BatchState, image: Context) -> BatchResult:
    """The answers about a batch; raises what ends a run, and nothing else."""
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
            scene=partial(_scene, state),
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


def _scene(state: BatchState, _model: str) -> str:
    """All objects by name, those above the limit without a number."""
    return "\n".join(
        [
            *(f"{number}. {_listed(each)}" for number, each in enumerate(state["objects"], start=1)),
            *(f"-  {_listed(each)}" for each in state["cut"]),
        ]
    )


def _listed(scene_object: SceneObject) -> str:
    # A name is a model's own words: it may neither begin a line of the list nor end the block.
    return " ".join(scene_object.name.split()).replace("</", "< /")
