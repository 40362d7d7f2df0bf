"""What telling generated images from real ones would ask and roughly cost."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from uncanny.agents.source_detector import DESCRIBE, JUDGE, LIST
from uncanny.client.prices import PriceTable
from uncanny.eval.detect.parameters import DetectParameters
from uncanny.eval.detect.run import check_truth, detect_task
from uncanny.models.tokens import image_tokens, least_cached
from uncanny.parameters import takes
from uncanny.runs.forecast import ImagesForecast, UsageCounter, pending_images, prompt_tokens
from uncanny.runs.image_task import Images


@dataclass(frozen=True, slots=True, kw_only=True)
class DetectForecast(ImagesForecast):
    """What is left of a detection run: usually two calls an image, always where they are `independent`.

    In a conversation one where the model declines, three where its first answer has no verdict and it is
    asked for once more.
    """

    independent: bool = False

    def calls_words(self) -> str:
        if self.independent:
            return f"{self.calls_usual:,}, two an image"
        return (
            f"about {self.calls_usual:,}, two an image ({self.calls_least:,} with one, "
            f"{self.calls_most:,} with three, where no verdict comes at first)"
        )


@takes(DetectParameters)
def detect_forecast(images: Images, parameters: DetectParameters) -> DetectForecast:
    """What `detect` would ask and roughly cost, with the same parameters; see `annotate_forecast`.

    >>> forecast = uncanny.detect_forecast(images, model="openai/gpt-4o")
    >>> forecast.calls_least, forecast.calls_most
    (1, 3)
    """
    task, truth = detect_task(parameters, images, copy=False)
    check_truth(task, truth)
    prices = PriceTable.load(task.models.prices)
    pending = pending_images(task)
    model = task.models.roles.get("detector", task.models.model)
    image = image_tokens(str(model), *pending.size)
    length = partial(prompt_tokens, task.prompts)
    independent = task.config.protocol == "independent"
    system, first = length("system"), length("system", JUDGE.prompt)
    if independent:
        second, shared = length("system", LIST.prompt), system
    else:
        second = first + JUDGE.answer.fixed + max(length(step.prompt) for step in (LIST, DESCRIBE))
        shared = first
    counter = UsageCounter(model)
    counter.add(first, image, output=JUDGE.answer.fixed, calls=pending.readable)
    prefix = shared + (image or 0)
    cached = pending.readable * prefix if prefix >= least_cached(str(model)) else 0
    counter.add(second, image, output=LIST.answer.fixed, calls=pending.readable, cached=cached)
    usage = counter.usage(prices)
    return DetectForecast(
        **pending.fields,
        calls_least=usage.calls if independent else pending.readable,
        calls_usual=usage.calls,
        calls_most=usage.calls if independent else 3 * pending.readable,
        usage=usage,
        independent=independent,
    )
