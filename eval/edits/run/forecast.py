"""What changing texts and writing prompts would ask and roughly cost, without opening a model."""

from __future__ import annotations

from uncanny.agents.caption_perturber import PERTURB
from uncanny.agents.prompt_writer import FIRST, REMOVAL, SECOND
from uncanny.eval.common.described import TextSource, WritingForecast, forecast_of
from uncanny.eval.edits.run.parameters import PerturbParameters, PromptsParameters
from uncanny.eval.edits.run.perturb import perturb_task
from uncanny.eval.edits.run.prompts import prompts_task
from uncanny.images.prepared import stored_size
from uncanny.models.tokens import image_tokens, text_tokens
from uncanny.parameters import takes
from uncanny.runs.forecast import UsageCounter, pending_inputs, prompt_tokens
from uncanny.runs.inputs import mean_size

# Sizes are taken from so many pictures.
_MOST_OPENED = 200


@takes(PerturbParameters)
def perturb_forecast(texts: TextSource, parameters: PerturbParameters) -> WritingForecast:
    """Forecast the calls, tokens and cost of `perturb` with the same parameters; see `annotate_forecast`.

    >>> uncanny.edits.perturb_forecast("scenes", model="openai/gpt-4o").calls_usual
    96
    """
    task = perturb_task(parameters, texts, copy=False)
    pending = pending_inputs(task)
    files = [task.file(item) if task.config.show_images else None for item in pending]
    sizes = {
        file: stored_size(file)
        for file in sorted({file for file in files if file is not None})[:_MOST_OPENED]
    }
    unreadable = sum(1 for file in files if file is not None and sizes.get(file, (1, 1)) is None)
    asked = task.models.roles.get("perturber", task.models.model)
    image = image_tokens(str(asked), *mean_size([size for size in sizes.values() if size is not None]))
    counter = UsageCounter(asked)
    for item, file in zip(pending, files, strict=True):
        if file is not None and sizes.get(file, (1, 1)) is None:
            continue
        step = PERTURB[item.kind]
        text = prompt_tokens(task.prompts, "system", step.prompt, item.magnitude) + text_tokens(item.text)
        counter.add(text, *([] if file is None else [image]), output=step.answer.fixed)
    return forecast_of(task, len(pending), unreadable, counter)


@takes(PromptsParameters)
def prompts_forecast(texts: TextSource, parameters: PromptsParameters) -> WritingForecast:
    """Forecast the calls, tokens and cost of `prompts` with the same parameters; see `annotate_forecast`.

    >>> uncanny.edits.prompts_forecast("scenes", model="openai/gpt-4o", mode="double").calls_usual
    32
    """
    task = prompts_task(parameters, texts, copy=False)
    pending = pending_inputs(task)
    asked = task.models.roles.get("writer", task.models.model)
    steps = {"inpaint": (FIRST,), "double": (FIRST, SECOND), "remove": (REMOVAL,)}[task.config.mode]
    counter = UsageCounter(asked)
    lacking = 0
    for item in pending:
        if task.lacking(item) is not None:
            lacking += 1
            continue
        given = text_tokens("\n".join([item.image.caption or "", *item.objects]))
        for step in steps:
            counter.add(prompt_tokens(task.prompts, "system", step.prompt) + given, output=step.answer.fixed)
    return forecast_of(task, len(pending), lacking, counter)
