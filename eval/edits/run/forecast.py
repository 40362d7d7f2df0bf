"""What changing texts and writing prompts would ask and roughly cost, without opening a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from uncanny.agents.caption_perturber import PERTURB
from uncanny.agents.prompt_writer import FIRST, REMOVAL, SECOND
from uncanny.client.prices import PriceTable
from uncanny.eval.edits.run.parameters import PerturbParameters, PromptsParameters
from uncanny.eval.edits.run.perturb import perturb_task
from uncanny.eval.edits.run.prompts import prompts_task
from uncanny.eval.edits.run.texts import Asked, TextSource
from uncanny.images.prepared import stored_size
from uncanny.models.tokens import image_tokens, text_tokens
from uncanny.parameters import takes
from uncanny.runs.forecast import Forecast, UsageCounter, forecast_inputs, input_words
from uncanny.runs.inputs import mean_size
from uncanny.runs.progress import Progress
from uncanny.runs.resume import prompts_of
from uncanny.wording import count

# Sizes are taken from so many pictures.
_MOST_OPENED = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class WritingForecast(Forecast):
    """What is left of a run that writes texts: always the same number of calls, repairs aside.

    The prefix cache is not counted on: the texts are too short for one.
    """

    unit = "texts"

    calls_usual: int

    def to_json(self) -> dict[str, Any]:
        return {
            **self.inputs_json(),
            "calls": self.calls_usual,
            **self.usage.input_json(),
            "output_tokens": self.output_tokens,
            "cost_usd": self.cost_usd,
            **self.unknowns_json(),
        }

    def lines(self) -> list[str]:
        return [
            f"Texts    {self.inputs:,}, {self.pending:,} to do"
            + (
                f", {self.unreadable:,} of them with a picture that cannot be read" if self.unreadable else ""
            ),
            f"Calls    {self.calls_usual:,}",
            f"Tokens   about {input_words(count, self.usage)}, {count(self.output_tokens)} out "
            "without reasoning",
            f"Cost     {self.cost_words()}",
        ]


@takes(PerturbParameters)
def perturb_forecast(texts: TextSource, parameters: PerturbParameters) -> WritingForecast:
    """What `perturb` would ask and roughly cost, with the same parameters.

    Without `out` nothing is done yet; with it, what is done there already is not counted. Nothing is written,
    no model is opened, no key needed. Returns a `WritingForecast`, with `cost_usd` and the number of calls;
    printed, it is what `--dry-run` prints. Raises UsageError.

    >>> uncanny.edits.perturb_forecast("scenes", model="openai/gpt-4o").calls_usual
    96
    """
    task = perturb_task(parameters, texts, copy=False)
    pending = task.load_pending(task.records(), Progress())
    files = [task.file(item) if task.config.show_images else None for item in pending]
    sizes = {
        file: stored_size(file)
        for file in sorted({file for file in files if file is not None})[:_MOST_OPENED]
    }
    unreadable = sum(1 for file in files if file is not None and sizes.get(file, (1, 1)) is None)
    asked = task.models.roles.get("perturber", task.models.model)
    image = image_tokens(str(asked), *mean_size([size for size in sizes.values() if size is not None]))
    length = _Lengths(prompts_of(task.folder, task.prompts).texts())
    counter = UsageCounter(asked)
    for item, file in zip(pending, files, strict=True):
        if file is not None and sizes.get(file, (1, 1)) is None:
            continue
        step = PERTURB[item.kind]
        text = length.of("system", step.prompt, item.magnitude) + text_tokens(item.text)
        counter.add(text, *([] if file is None else [image]), output=step.answer.fixed)
    return WritingForecast(
        **forecast_inputs(
            task.models,
            inputs=_inputs(task.asked(), task.options.limit),
            pending=len(pending),
            unreadable=unreadable,
        ),
        calls_least=counter.calls,
        calls_usual=counter.calls,
        calls_most=counter.calls,
        usage=counter.usage(PriceTable.load(task.models.prices)),
    )


@takes(PromptsParameters)
def prompts_forecast(texts: TextSource, parameters: PromptsParameters) -> WritingForecast:
    """What `prompts` would ask and roughly cost, with the same parameters; see `perturb_forecast`.

    >>> uncanny.edits.prompts_forecast("scenes", model="openai/gpt-4o", mode="double").calls_usual
    32
    """
    task = prompts_task(parameters, texts, copy=False)
    pending = task.load_pending(task.records(), Progress())
    asked = task.models.roles.get("writer", task.models.model)
    length = _Lengths(prompts_of(task.folder, task.prompts).texts())
    steps = {"inpaint": (FIRST,), "double": (FIRST, SECOND), "remove": (REMOVAL,)}[task.config.mode]
    counter = UsageCounter(asked)
    lacking = 0
    for item in pending:
        if task.lacking(item) is not None:
            lacking += 1
            continue
        given = text_tokens("\n".join([item.image.caption or "", *item.objects]))
        for step in steps:
            counter.add(length.of("system", step.prompt) + given, output=step.answer.fixed)
    return WritingForecast(
        **forecast_inputs(
            task.models,
            inputs=_inputs(task.asked(), task.options.limit),
            pending=len(pending),
            unreadable=lacking,
        ),
        calls_least=counter.calls,
        calls_usual=counter.calls,
        calls_most=counter.calls,
        usage=counter.usage(PriceTable.load(task.models.prices)),
    )


def _inputs(items: Sequence[Asked], limit: int | None) -> int:
    """How many of `items` there are with a limit on pictures."""
    pictures = set(list(dict.fromkeys(item.image.id for item in items))[:limit])
    return sum(1 for item in items if item.image.id in pictures)


@dataclass(frozen=True, slots=True)
class _Lengths:
    """Tokens of texts by their names."""

    texts: Mapping[str, str]

    def of(self, *names: str) -> int:
        return sum(text_tokens(self.texts[name]) for name in names)
