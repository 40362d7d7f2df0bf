"""What making and screening candidates would ask and roughly cost, without opening a model."""

from __future__ import annotations

import os
from typing import Final

from uncanny.agents.caption_perturber import PERTURB
from uncanny.agents.pairs.edit_screener import SCREEN
from uncanny.agents.pairs.inpainter import PAINT
from uncanny.agents.prompt_writer import FIRST
from uncanny.agents.steps import TAKE_INVENTORY
from uncanny.eval.pairs.make.run import make_task
from uncanny.eval.pairs.parameters import MakeParameters, ScreenParameters
from uncanny.eval.pairs.screen.run import PART_SIDE, screen_task
from uncanny.models.tokens import image_tokens
from uncanny.parameters import takes
from uncanny.prompts import prompt_set
from uncanny.runs.forecast import (
    ImagesForecast,
    UsageCounter,
    pending_images,
    prompt_tokens,
    total_usage,
)
from uncanny.runs.image_task import Images

_USUAL_OBJECTS: Final = 12


@takes(MakeParameters)
def make_forecast(images: Images, parameters: MakeParameters) -> ImagesForecast:
    """Forecast the calls, tokens and cost of `make` with the same parameters; see `annotate_forecast`.

    Each image is taken to have as many regions as it may have. What a painted picture costs is that of one of
    high quality.

    >>> uncanny.pairs.make_forecast(images, inpainter="openai/gpt-image-1").calls_usual
    5
    """
    task = make_task(parameters, images, copy=False)
    pending = pending_images(task)
    config, prices = task.config, task.price_table()
    regions = pending.readable * config.regions_per_image
    painter = UsageCounter(task.models.roles["inpainter"])
    side = min(1.0, config.inpaint_side / max(pending.size))
    size = (round(pending.size[0] * side), round(pending.size[1] * side))
    picture = image_tokens(str(painter.model), *size)
    painter.add(30, picture, picture, output=PAINT.answer.fixed, calls=regions * config.attempts)
    counters = [painter]
    asked = {role: task.models.roles.get(role, task.models.model) for role in task.roles}
    seen = image_tokens(str(asked["perceiver"]), *pending.size)
    if config.regions == "objects":
        counters.append(UsageCounter(asked["perceiver"]))
        answer = TAKE_INVENTORY.answer
        text = prompt_tokens(prompt_set("packed"), "system", "perceive_1", "inventory")
        counters[-1].add(
            text, seen, output=answer.fixed + _USUAL_OBJECTS * answer.object, calls=pending.readable
        )
    if config.prompt_from == "writer":
        counters.append(UsageCounter(asked["writer"]))
        text = prompt_tokens(task.prompts, "system", FIRST.prompt)
        counters[-1].add(text, output=FIRST.answer.fixed, calls=regions)
    elif config.prompt_from == "perturber":
        step = PERTURB["caption"]
        counters.append(UsageCounter(asked["perturber"]))
        text = prompt_tokens(task.prompts, "system", step.prompt, "small")
        counters[-1].add(text, seen, output=step.answer.fixed, calls=regions)
    usage = total_usage(counter.usage(prices) for counter in counters)
    return ImagesForecast(
        **pending.fields, calls_least=0, calls_usual=usage.calls, calls_most=usage.calls, usage=usage
    )


@takes(ScreenParameters)
def screen_forecast(pairs: str | os.PathLike[str], parameters: ScreenParameters) -> ImagesForecast:
    """Forecast the calls, tokens and cost of `screen` with the same parameters; see `annotate_forecast`.

    >>> made = uncanny.pairs.make(images, inpainter="demo", out=out)
    >>> uncanny.pairs.screen_forecast(made, model="openai/gpt-4o").calls_usual
    5
    """
    task = screen_task(parameters, pairs)
    pending = pending_images(task)
    model = task.models.roles.get("screener", task.models.model)
    counter = UsageCounter(model)
    if task.asks:
        parts = image_tokens(str(model), PART_SIDE, PART_SIDE)
        counter.add(
            prompt_tokens(task.prompts, "system", SCREEN.prompt),
            *(image_tokens(str(model), *pending.size), parts, parts),
            output=SCREEN.answer.fixed,
            calls=pending.readable,
        )
    return ImagesForecast.of_calls(pending.fields, counter, task.price_table())
