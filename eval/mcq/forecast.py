"""What a run of multiple-choice questions would ask and roughly cost, without opening a model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from uncanny.client.prices import PriceTable
from uncanny.eval.mcq.data.load import ItemSource, load
from uncanny.eval.mcq.data.texts import question_text, system_text
from uncanny.eval.mcq.parameters import McqConfig, McqParameters
from uncanny.eval.mcq.task import UNSEEN, McqTask
from uncanny.images.prepared import stored_size
from uncanny.models.tokens import image_tokens, text_tokens
from uncanny.parameters import takes
from uncanny.prompts.folders import read_prompts
from uncanny.runs.forecast import Forecast, UsageCounter, forecast_inputs, input_words
from uncanny.runs.progress import Progress
from uncanny.runs.resume import prompts_of
from uncanny.wording import cost

# A letter, or a letter in a short JSON object; reasoning models use far more.
ANSWER_TOKENS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class McqForecast(Forecast):
    """What is left of a run of questions, a call each.

    `pending` are the items with a question to ask. An image that is `unreadable` counts with its text only.
    The prefix cache is not counted on: how much of an image's four questions it covers depends on the
    provider.
    """

    unit = "items"

    def to_json(self) -> dict[str, Any]:
        return {
            self.unit: self.inputs,
            "calls": self.usage.calls,
            **self.usage.input_json(),
            "output_tokens": self.output_tokens,
            "cost_usd": self.cost_usd,
            **self.unknowns_json(),
        }

    def lines(self) -> list[str]:
        tokens = input_words("{:,}".format, self.usage)
        words = self.cost_words()
        if self.cost_usd is not None:
            words = f"{cost(self.cost_usd)} without the prefix cache"
        return [
            f"Items    {self.inputs:,}, {self.usage.calls:,} questions to ask, a call each",
            f"Tokens   about {tokens}, {self.output_tokens:,} out without reasoning",
            f"Cost     {words}",
        ]


@takes(McqParameters)
def forecast(items: ItemSource, parameters: McqParameters) -> McqForecast:
    """What `run` would ask and roughly cost, with the same parameters.

    If `out` names a run folder, the forecast leaves out what is done there. A forecast writes nothing, opens
    no model and needs no key; it ignores callbacks and `stop`.

    Returns a `McqForecast` with `cost_usd` and the numbers of calls; printed, it shows what `--dry-run`
    shows. Tokens and cost are None if the model's image tokens are not known; the cost is also None if its
    price is not known. Raises UsageError.

    >>> forecast = uncanny.mcq.forecast("scenes", model="openai/gpt-4o")
    >>> forecast.inputs, forecast.calls_usual
    (34, 129)
    >>> forecast.cost_usd > 0
    True
    """
    return forecast_task(
        McqTask(
            folder=parameters.folder,
            items=load(items, root=parameters.root),
            models=parameters.models,
            options=parameters.limits,
            config=parameters.part(McqConfig),
            prompts=read_prompts("mcq", parameters.prompts),
        )
    )


def forecast_task(task: McqTask) -> McqForecast:
    """Questions left, tokens and cost; None where those of the model are not known. Raises UsageError."""
    prices = PriceTable.load(task.models.prices)
    task.prompts = texts = prompts_of(task.folder, task.prompts)
    task.folder.check_links()
    pending = task.load_pending(task.records(), Progress())
    counter, unreadable = UsageCounter(task.models.model), 0
    images: dict[str, int | None] = {}
    for item, question in task.calls(pending):
        text = text_tokens(system_text(item, texts)) + text_tokens(question_text(item, question, texts))
        if question in UNSEEN:
            counter.add(text, output=ANSWER_TOKENS)
            continue
        if item.image not in images:
            size = stored_size(task.items.image_path(item))
            unreadable += size is None
            images[item.image] = 0 if size is None else image_tokens(str(counter.model), *size)
        counter.add(text, images[item.image], output=ANSWER_TOKENS)
    return McqForecast(
        **forecast_inputs(
            task.models,
            inputs=len(task.items[: task.options.limit]),
            pending=len(pending),
            unreadable=unreadable,
        ),
        calls_least=counter.calls,
        calls_usual=counter.calls,
        calls_most=counter.calls,
        usage=counter.usage(prices),
    )
