"""What telling generated images from real ones would ask and roughly cost."""

from __future__ import annotations

from dataclasses import dataclass

from uncanny.agents.source_detector import DESCRIBE, JUDGE, LIST
from uncanny.client.prices import PriceTable
from uncanny.eval.detect.parameters import DetectParameters
from uncanny.eval.detect.run import DetectTask, check_truth, detect_task
from uncanny.models.tokens import image_tokens, least_cached, text_tokens
from uncanny.parameters import takes
from uncanny.prompts import PromptSet
from uncanny.runs.forecast import ImagesForecast, UsageCounter, input_words, pending_images
from uncanny.runs.image_options import Images
from uncanny.runs.resume import prompts_of
from uncanny.wording import count


@dataclass(frozen=True, slots=True, kw_only=True)
class DetectForecast(ImagesForecast):
    """What is left of a detection run: usually two calls an image, always where they are `independent`.

    In a conversation one where the model declines, three where its first answer has no verdict and it is
    asked for once more.
    """

    independent: bool = False

    def lines(self) -> list[str]:
        calls = (
            f"{self.calls_usual:,}, two an image"
            if self.independent
            else f"about {self.calls_usual:,}, two an image ({self.calls_least:,} with one, "
            f"{self.calls_most:,} with three, where no verdict comes at first)"
        )
        return [
            self.images_line(),
            *self.skipped_lines(),
            f"Calls    {calls}",
            f"Tokens   about {input_words(count, self.usage)}, {count(self.output_tokens)} out "
            "without reasoning",
            f"Cost     {self.cost_words()}",
        ]


@takes(DetectParameters)
def detect_forecast(images: Images, parameters: DetectParameters) -> DetectForecast:
    """What `detect` would ask and roughly cost, with the same parameters.

    If `out` names a run folder, the forecast leaves out what is done there. A forecast writes nothing, opens
    no model and needs no key; it ignores callbacks and `stop`.

    Returns a `DetectForecast` with `cost_usd` and the numbers of calls; printed, it shows what `--dry-run`
    shows. Tokens and cost are None if the model's image tokens are not known; the cost is also None if its
    price is not known. Raises UsageError.

    >>> forecast = uncanny.detect_forecast(images, model="openai/gpt-4o")
    >>> forecast.calls_least, forecast.calls_most
    (1, 3)
    """
    task, truth = detect_task(parameters, images, copy=False)
    check_truth(task, truth)
    return forecast_task(task)


def forecast_task(task: DetectTask) -> DetectForecast:
    """Calls, tokens and cost of what is left to do: two calls an image. Opens no model and needs no key.

    Tokens and cost are None where a model's image tokens are not known, the cost also where its price is not.
    Raises UsageError.
    """
    prices = PriceTable.load(task.models.prices)
    images = pending_images(task)
    model = task.models.roles.get("detector", task.models.model)
    image = image_tokens(str(model), *images.size)
    texts = prompts_of(task.folder, task.prompts)
    system, independent = _length(texts, "system"), task.config.protocol == "independent"
    first = system + _length(texts, JUDGE.prompt)
    if independent:
        second, shared = system + _length(texts, LIST.prompt), system
    else:
        second = first + JUDGE.answer.fixed + max(_length(texts, step.prompt) for step in (LIST, DESCRIBE))
        shared = first
    counter = UsageCounter(model)
    counter.add(first, image, output=JUDGE.answer.fixed, calls=images.readable)
    prefix = shared + (image or 0)
    cached = images.readable * prefix if prefix >= least_cached(str(model)) else 0
    counter.add(second, image, output=LIST.answer.fixed, calls=images.readable, cached=cached)
    return DetectForecast(
        **images.fields,
        calls_least=counter.calls if independent else images.readable,
        calls_usual=counter.calls,
        calls_most=counter.calls if independent else 3 * images.readable,
        usage=counter.usage(prices),
        independent=independent,
    )


def _length(texts: PromptSet, prompt: str) -> int:
    return text_tokens(texts[prompt].template.template)
