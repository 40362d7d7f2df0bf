"""What judging pairs would ask and roughly cost, without opening a model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from uncanny.client.prices import PriceTable
from uncanny.eval.realism.data import PairSource, load
from uncanny.eval.realism.parameters import RealismParameters
from uncanny.eval.realism.run import realism_task
from uncanny.images.prepared import stored_size
from uncanny.models.tokens import image_tokens, text_tokens
from uncanny.parameters import takes
from uncanny.runs.forecast import (
    Forecast,
    Usage,
    UsageCounter,
    forecast_inputs,
    input_words,
    pending_inputs,
    range_words,
)
from uncanny.runs.several import Turn
from uncanny.wording import cost

# A few sentences and a verdict; reasoning models use far more.
ANSWER_TOKENS = 150


@dataclass(frozen=True, slots=True, kw_only=True)
class RealismForecast(Forecast):
    """What is left of a realism run: one call a pair at the least, three at the most.

    Where the truth lies depends on how many edits pass the first check: nothing is usual, so `usage` is that
    of the most, `usage_least` that of the least. The prefix cache is not counted on.
    """

    unit = "pairs"

    usage_least: Usage

    def to_json(self) -> dict[str, Any]:
        return {
            **self.inputs_json(),
            **_usage_json(self.usage_least, "_least"),
            **_usage_json(self.usage, "_most"),
            **self.unknowns_json(),
        }

    def lines(self) -> list[str]:
        ends = self.usage_least, self.usage
        unreadable = f", {self.unreadable:,} of them unreadable" if self.unreadable else ""
        costs = [cost(end.cost_usd) for end in ends if end.cost_usd is not None]
        words = f"{range_words(costs)} without the prefix cache" if len(costs) == 2 else self.cost_words()
        return [
            f"Pairs    {self.inputs:,}, {self.pending:,} to judge{unreadable}",
            *self.skipped_lines(),
            f"Calls    {range_words(f'{end.calls:,}' for end in ends)}, by how many edits pass the first "
            "check",
            f"Tokens   about {input_words('{:,}'.format, *ends)}, "
            f"{range_words(f'{end.output_tokens:,}' for end in ends)} out without reasoning",
            f"Cost     {words}",
        ]


@takes(RealismParameters)
def forecast(pairs: PairSource, parameters: RealismParameters) -> RealismForecast:
    """Forecast the calls, tokens and cost of `run` with the same parameters; see `annotate_forecast`.

    >>> forecast = uncanny.realism.forecast("scenes", model="openai/gpt-4o")
    >>> forecast.calls_least, forecast.calls_most
    (16, 48)
    >>> forecast.usage_least.cost_usd < forecast.cost_usd
    True
    """
    pair_set = load(pairs, root=parameters.root)
    task = realism_task(pair_set, parameters, Turn.alone(parameters), store=False)
    prices = PriceTable.load(task.models.prices)
    pending, texts = pending_inputs(task), task.prompts
    model = task.models.model
    system = text_tokens(texts["system"].fill())
    first_check = system + text_tokens(texts["first_check"].fill())
    second_check = system + text_tokens(texts["second_check"].fill())
    least, most, unreadable = UsageCounter(model), UsageCounter(model), 0
    for pair in pending:
        sizes = stored_size(pair.original), stored_size(pair.edited)
        if sizes[0] is None or sizes[1] is None:
            unreadable += 1
            continue
        original, edited = (image_tokens(str(model), *size) for size in (sizes[0], sizes[1]))
        for counter in (least, most):
            counter.add(first_check, edited, output=ANSWER_TOKENS)
        most.add(second_check, edited, original, output=ANSWER_TOKENS, calls=2)
    usage, usage_least = most.usage(prices), least.usage(prices)
    return RealismForecast(
        **forecast_inputs(
            task.models,
            inputs=len(task.pairs.pairs[: task.options.limit]),
            pending=len(pending),
            unreadable=unreadable,
            skipped=task.pairs.skipped,
        ),
        calls_least=usage_least.calls,
        calls_usual=None,
        calls_most=usage.calls,
        usage=usage,
        usage_least=usage_least,
    )


def _usage_json(usage: Usage, suffix: str) -> dict[str, Any]:
    return {
        f"calls{suffix}": usage.calls,
        **usage.input_json(suffix),
        f"output_tokens{suffix}": usage.output_tokens,
        f"cost_usd{suffix}": usage.cost_usd,
    }
