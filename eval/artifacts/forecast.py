"""What locating artifacts would ask and roughly cost, without opening a model."""

from __future__ import annotations

from dataclasses import dataclass

from uncanny.agents.artifact_locator import ESTIMATE, LOCATE, LOCATE_ALL
from uncanny.agents.common.context import asked_box_format
from uncanny.client.prices import PriceTable
from uncanny.eval.artifacts.parameters import ArtifactsParameters
from uncanny.eval.artifacts.run import artifacts_task
from uncanny.models.tokens import image_tokens, least_cached
from uncanny.parameters import takes
from uncanny.runs.forecast import ImagesForecast, UsageCounter, pending_images, prompt_tokens
from uncanny.runs.image_task import Images
from uncanny.wording import counted


@dataclass(frozen=True, slots=True, kw_only=True)
class ArtifactsForecast(ImagesForecast):
    """What is left of a run that locates artifacts: the same number of calls for each image."""

    calls_an_image: int

    def calls_words(self) -> str:
        return f"{self.calls_usual:,}, {counted(self.calls_an_image, 'call')} an image"


@takes(ArtifactsParameters)
def forecast(images: Images, parameters: ArtifactsParameters) -> ArtifactsForecast:
    """Forecast the calls, tokens and cost of `run` with the same parameters; see `annotate_forecast`.

    >>> uncanny.artifacts.forecast(images, model="openai/gpt-4o").calls_usual
    7
    >>> uncanny.artifacts.forecast(images, model="openai/gpt-4o", joint=True).calls_usual
    1
    """
    task = artifacts_task(parameters, images, copy=False)
    config = task.config
    prices = PriceTable.load(task.models.prices)
    pending = pending_images(task)
    asked = task.models.roles.get("locator", task.models.model)
    image = image_tokens(str(asked), *pending.size)
    rule = f"box_{asked_box_format(str(asked), config).name}"
    step = LOCATE_ALL if config.joint else LOCATE
    asks = [config.categories] if config.joint else [(category,) for category in config.categories]
    questions = [
        (prompt_tokens(task.prompts, step.prompt, rule, *categories), step.answer.fixed)
        for categories in asks
    ]
    if config.likelihood:
        questions.append((prompt_tokens(task.prompts, ESTIMATE.prompt), ESTIMATE.answer.fixed))
    system = prompt_tokens(task.prompts, "system")
    prefix = system + (image or 0)
    counter = UsageCounter(asked)
    for number, (text, output) in enumerate(questions):
        # The first question about an image fills the prefix cache for the others.
        cached = pending.readable * prefix if number and prefix >= least_cached(str(asked)) else 0
        counter.add(system + text, image, output=output, calls=pending.readable, cached=cached)
    return ArtifactsForecast.of_calls(pending.fields, counter, prices, calls_an_image=config.calls)
