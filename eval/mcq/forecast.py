"""What a run of multiple-choice questions would ask and roughly cost, without opening a model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from uncanny.client.prices import PriceTable
from uncanny.eval.mcq.data.load import ItemSource
from uncanny.eval.mcq.data.texts import question_text, system_text
from uncanny.eval.mcq.parameters import McqParameters
from uncanny.eval.mcq.run import mcq_task
from uncanny.eval.mcq.task import UNSEEN
from uncanny.images.prepared import stored_size
from uncanny.models.tokens import image_tokens, text_tokens
from uncanny.parameters import takes
from uncanny.runs.forecast import Forecast, UsageCounter, forecast_inputs, input_words, pending_inputs
from uncanny.runs.several import Turn
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

    def inputs_json(self) -> dict[str, Any]:
        return {self.unit: self.inputs}

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
    """Forecast the calls, tokens and cost of `run` with the same parameters; see `annotate_forecast`.

    >>> forecast = uncanny.mcq.forecast("scenes", model="openai/gpt-4o")
    >>> forecast.inputs, forecast.calls_usual
    (34, 129)
    >>> forecast.cost_usd > 0
    True
    """
    task = mcq_task(items, parameters, Turn.alone(parameters))
    prices = PriceTable.load(task.models.prices)
    pending, texts = pending_inputs(task), task.prompts
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
    inputs = forecast_inputs(
        task.models,
        inputs=len(task.items[: task.options.limit]),
        pending=len(pending),
        unreadable=unreadable,
    )
    return McqForecast.of_calls(inputs, counter, prices)
