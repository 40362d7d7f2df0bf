"""What locating artifacts would ask and roughly cost, without opening a model."""

from __future__ import annotations

from dataclasses import dataclass

from uncanny.agents.artifact_locator import ESTIMATE, LOCATE, LOCATE_ALL
from uncanny.agents.boxes import asked_box_format
from uncanny.client.prices import PriceTable
from uncanny.eval.artifacts.parameters import ArtifactsParameters
from uncanny.eval.artifacts.run import artifacts_task
from uncanny.models.tokens import image_tokens, least_cached, text_tokens
from uncanny.parameters import takes
from uncanny.runs.forecast import ImagesForecast, UsageCounter, input_words, pending_images
from uncanny.runs.image_options import Images
from uncanny.runs.resume import prompts_of
from uncanny.wording import count, counted


@dataclass(frozen=True, slots=True, kw_only=True)
class ArtifactsForecast(ImagesForecast):
    """What is left of a run that locates artifacts: the same number of calls for each image."""

    calls_an_image: int

    def lines(self) -> list[str]:
        return [
            self.images_line(),
            *self.skipped_lines(),
            f"Calls    {self.calls_usual:,}, {counted(self.calls_an_image, 'call')} an image",
            f"Tokens   about {input_words(count, self.usage)}, {count(self.output_tokens)} out "
            "without reasoning",
            f"Cost     {self.cost_words()}",
        ]


@takes(ArtifactsParameters)
def forecast(images: Images, parameters: ArtifactsParameters) -> ArtifactsForecast:
    """What `run` would ask and roughly cost, with the same parameters.

    If `out` names a run folder, the forecast leaves out what is done there. A forecast writes nothing, opens
    no model and needs no key; it ignores callbacks and `stop`.

    Returns an `ArtifactsForecast` with `cost_usd` and the number of calls; printed, it shows what `--dry-run`
    shows. Tokens and cost are None if the model's image tokens are not known; the cost is also None if its
    price is not known. Raises UsageError.

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
    texts = prompts_of(task.folder, task.prompts)

    def length(*names: str) -> int:
        return sum(text_tokens(texts[name].template.template) for name in names)

    rule = f"box_{asked_box_format(str(asked), config).name}"
    step, asks = (
        (LOCATE_ALL, [config.categories])
        if config.joint
        else (
            LOCATE,
            [(category,) for category in config.categories],
        )
    )
    system = length("system")
    questions = [(length(step.prompt, rule, *categories), step.answer.fixed) for categories in asks]
    if config.likelihood:
        questions.append((length(ESTIMATE.prompt), ESTIMATE.answer.fixed))
    prefix = system + (image or 0)
    counter = UsageCounter(asked)
    for number, (text, output) in enumerate(questions):
        # The first question about an image fills the prefix cache for the others.
        cached = pending.readable * prefix if number and prefix >= least_cached(str(asked)) else 0
        counter.add(system + text, image, output=output, calls=pending.readable, cached=cached)
    return ArtifactsForecast(
        **pending.fields,
        calls_least=counter.calls,
        calls_usual=counter.calls,
        calls_most=counter.calls,
        usage=counter.usage(prices),
        calls_an_image=config.calls,
    )
