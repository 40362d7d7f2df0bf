"""Asking about several objects in one call, for the agents of the packed schedule.

What does not validate for one object costs no other one its answer: that object is asked about again, alone.
So is each object of a batch whose answer cannot be used at all.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final

from uncanny.agents.common.annotate_context import BatchState, Context, Sighting, as_findings
from uncanny.agents.steps import ListStep
from uncanny.answers.packed import Fault, read_batch
from uncanny.errors import AnswerError, StepFailedError, TruncatedError
from uncanny.schema import SceneObject, StepError

# What a smaller question may mend. A refusal, or a server that is down, it does not.
_MAY_BE_THE_SIZE: Final = (AnswerError, TruncatedError)


async def look_at_batch(step: ListStep[Fault], state: BatchState, image: Context) -> Sighting:
    """What is found wrong with the objects of a batch where they are asked about by `step`.

    Its prompt may have `$objects`, those of the batch with their numbers, and `$scene`, all objects of the
    image by name. `errors` has an error for each question without a whole answer; that of a question about
    several objects names them. `answered` says whether the model said anything about any of them. Raises what
    ends a run, and nothing else.
    """
    objects, batch = state["objects"], state["batch"]
    items: list[Fault] = []
    errors: list[StepError] = []
    again = list(batch)
    set_aside: Mapping[int, tuple[Fault, ...]] = {}
    try:
        answer = await image.answer(step, **_question(batch, state, image))
        image.leave_out(step.form.key, answer.left_out)
        items, again, set_aside = list(answer.items), sorted(answer.invalid), answer.set_aside
    except StepFailedError as failed:
        if len(batch) == 1 or not isinstance(failed.error, _MAY_BE_THE_SIZE):
            error = failed.record
            if len(batch) > 1:
                names = [objects[number - 1].name for number in batch]
                error = error.model_copy(update={"objects": names})
            return {"findings": [], "errors": [error], "answered": False}

    async def ask_again(number: int) -> tuple[Sequence[Fault], list[StepError]]:
        try:
            answer = await image.answer(step, **_question([number], state, image))
        except StepFailedError as failed:
            return set_aside.get(number, ()), [failed.record]
        image.leave_out(step.form.key, answer.left_out)
        return answer.items, []

    # All answers come back before what ends the run is raised: what was paid for is kept.
    for result in await asyncio.gather(*map(ask_again, again), return_exceptions=True):
        if isinstance(result, BaseException):
            raise result
        items += result[0]
        errors += result[1]

    def first(numbers: Sequence[int]) -> int:
        return next(number for number in numbers if number in batch)

    # In the order of the objects: findings have the same numbers whether or not some were asked for again.
    items.sort(key=lambda item: first(item.numbers))
    return {
        "findings": as_findings(step.agent, items, image, objects),
        "errors": errors,
        "answered": len(errors) < len(batch),
    }


def _question(numbers: Sequence[int], state: BatchState, image: Context) -> dict[str, Any]:
    """What `answer` takes to ask about objects by their numbers."""
    objects = {number: state["objects"][number - 1] for number in numbers}
    names = tuple(each.name for each in objects.values())
    shown = [
        ({"id": number, "name": each.name, "description": each.description}, each.box)
        for number, each in objects.items()
    ]
    return {
        "read": lambda text, model: read_batch(text, numbers, model),
        "subject": names[0] if len(names) == 1 else None,
        "batch": names if len(names) > 1 else (),
        "objects": partial(image.shown, shown),
        "scene": partial(_scene, state),
    }


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
