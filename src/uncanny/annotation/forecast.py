"""What annotating images would ask and roughly cost, from the files' sizes and the prompts' lengths alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from uncanny.annotation.parameters import AnnotateParameters
from uncanny.annotation.run import AnnotateTask, annotate_task
from uncanny.annotation.usage import Contents, Plan, usual_contents
from uncanny.images.discover import SkipReason
from uncanny.parameters import takes
from uncanny.runs.forecast import ImagesForecast, pending_images, total_usage
from uncanny.runs.image_task import Images


@dataclass(frozen=True, slots=True, kw_only=True)
class AnnotateForecast(ImagesForecast):
    """What is left of an annotation run. Usual is an image with `objects_per_image` objects to examine."""

    objects_per_image: int

    def inputs_json(self) -> dict[str, Any]:
        return {**ImagesForecast.inputs_json(self), "objects_per_image": self.objects_per_image}

    def calls_words(self) -> str:
        return (
            f"about {self.calls_usual:,} at {self.objects_per_image} objects an image "
            f"({self.calls_least:,} with none, {self.calls_most:,} with the most)"
        )


@takes(AnnotateParameters)
def annotate_forecast(images: Images, parameters: AnnotateParameters) -> AnnotateForecast:
    """What `annotate` would ask and roughly cost, with the same parameters.

    If `out` names a run folder, the forecast leaves out what is done there. A forecast writes nothing, opens
    no model and needs no key. It counts each of the `agents` as one call a time, does not know what `nodes`
    or a `graph` ask, and ignores callbacks and `stop`.

    Returns an `AnnotateForecast` with `cost_usd` and the numbers of calls; printed, it shows what `--dry-run`
    shows. Tokens and cost are None if the model's image tokens are not known; the cost is also None if its
    price is not known. Raises UsageError.

    >>> forecast = uncanny.annotate_forecast(images, model="openai/gpt-4o", repeats=2)
    >>> forecast.pending, forecast.calls_usual
    (1, 6)
    >>> 0 < forecast.cost_usd <= forecast.cost_usd_uncached
    True
    """
    return forecast_task(annotate_task(parameters.model_copy(update={"nodes": None, "graph": None}), images))


def total_forecast(forecasts: Sequence[AnnotateForecast]) -> AnnotateForecast:
    """Several runs together, of at least one; what is left out is the sum, and addresses are named once."""
    skipped: Counter[SkipReason] = Counter()
    for forecast in forecasts:
        skipped.update(forecast.skipped)
    return AnnotateForecast(
        inputs=sum(each.inputs for each in forecasts),
        pending=sum(each.pending for each in forecasts),
        unreadable=sum(each.unreadable for each in forecasts),
        skipped=dict(skipped),
        warnings=tuple(warning for each in forecasts for warning in each.warnings),
        missing=tuple(dict.fromkeys(address for each in forecasts for address in each.missing)),
        objects_per_image=forecasts[0].objects_per_image,
        calls_least=sum(each.calls_least for each in forecasts),
        calls_usual=sum(each.calls_usual for each in forecasts),
        calls_most=sum(each.calls_most for each in forecasts),
        usage=total_usage([each.usage for each in forecasts]),
    )


def forecast_task(task: AnnotateTask, contents: Mapping[Contents, int] | None = None) -> AnnotateForecast:
    """Calls, tokens and cost of what is left to do. Opens no model and needs no key.

    `contents` count what the images hold, where that is known; by default each holds what is usual.

    Where a model's image tokens are not known, tokens and cost are None and what is known stands beside them;
    the cost is also None where the price is not known. Raises UsageError.
    """
    prices = task.price_table()
    images = pending_images(task)
    plan = Plan(task.config, task.prompts, task.models, task.policy, tuple(task.agents))
    config = task.config
    most = config.most_calls(jointly=plan.jointly) + plan.own_calls(config.max_objects, config.max_regions)
    usage = plan.usage(prices, images.readable, images.sizes, contents)
    images.fields["warnings"] += tuple(task.warnings_before())
    return AnnotateForecast(
        **images.fields,
        objects_per_image=usual_contents(task.config).objects,
        calls_least=images.readable * (config.least_calls(jointly=plan.jointly) + plan.own_calls(0)),
        calls_usual=usage.calls,
        calls_most=images.readable * most,
        usage=usage,
    )
