"""What telling generated images from real ones would ask and roughly cost."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Unpack

from uncanny.agents.config import DetectConfig
from uncanny.agents.source_detector import DESCRIBE, JUDGE, LIST
from uncanny.client.prices import PriceTable
from uncanny.eval.common.inputs.named_images import name_images
from uncanny.eval.detect.data import Truth
from uncanny.eval.detect.run import DetectOptions, DetectTask, check_truth
from uncanny.models.tokens import image_tokens, least_cached, text_tokens
from uncanny.parameters import called_right
from uncanny.prompts import PromptSet
from uncanny.runs.forecast import UNNAMED, ImagesForecast, UsageCounter, input_words, pending_images
from uncanny.runs.image_options import Images, image_run, read_config
from uncanny.runs.resume import prompts_of
from uncanny.schema import Detection
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


class DetectForecastOptions(DetectOptions, total=False):
    """The parameters of `detect`; a forecast has no use for callbacks."""

    on_image: Callable[[Detection], None] | None


@called_right
def detect_forecast(
    images: Images,
    *,
    model: str,
    out: str | Path | None = None,
    root: str | Path | None = None,
    truth: Truth | None = None,
    **options: Unpack[DetectForecastOptions],
) -> DetectForecast:
    """What `detect` would ask and roughly cost, with the same parameters.

    `images`, `model`, `truth` and the options are those of `detect`. Without `out` nothing is done yet; with
    it, what is done there already is not counted. Nothing is written, no model is opened, no key needed;
    callbacks and `stop` have nothing to do here.

    Returns a `DetectForecast`, with `cost_usd` and the numbers of calls; printed, it is what `--dry-run`
    prints. Tokens and cost are None where a model's image tokens are not known, the cost also where its
    price is not. Raises UsageError.

    >>> forecast = uncanny.detect_forecast(images, model="openai/gpt-4o")
    >>> forecast.calls_least, forecast.calls_most
    (1, 3)
    """
    folder = UNNAMED if out is None else out
    run = image_run("detect", images, model, folder, root, options, DetectForecastOptions)
    # A forecast leaves nothing behind, so the bundled images stay where they are.
    named = name_images(run["paths"], None if out is None else Path(out), copy=False)
    run["paths"] = named.paths
    task = DetectTask(**run, config=read_config(DetectConfig, options))
    check_truth(task, named.truth if truth is None else truth)
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
