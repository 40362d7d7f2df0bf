"""Locating artifacts with a model: the public functions, the run they return, its task, and its forecast.

`run` takes images to a finished, or resumable, run with a record each: what the ArtifactLocator found, in the
form that `uncanny artifacts score` reads. Source: X-AIGD, section 3.2 and appendix C.1.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final

from uncanny.agents.artifact_locator import (
    ESTIMATE,
    LOCATE,
    LOCATE_ALL,
    ROLES,
    Answered,
    ArtifactContext,
    locate_artifacts,
)
from uncanny.agents.common.context import asked_box_format
from uncanny.agents.config import ArtifactsConfig
from uncanny.client.calls import usage
from uncanny.eval.artifacts.data.records import RECORD_FILE, ArtifactRecord, Region, RunLengths
from uncanny.eval.artifacts.parameters import ArtifactsParameters
from uncanny.eval.common.frames import FILE, USAGE, Cells, Row, table_cells
from uncanny.eval.common.inputs.named_images import name_images
from uncanny.eval.common.pixels.crops import crop
from uncanny.eval.common.pixels.masks import component_crops, encode_rle
from uncanny.eval.common.run_result import ImagesRun, Records
from uncanny.eval.metrics import HEAT_MAP_THRESHOLD
from uncanny.images.prepared import PreparedImage
from uncanny.models.base import sent_image
from uncanny.models.tokens import image_tokens, least_cached
from uncanny.parameters import check_choices, takes
from uncanny.prompts import PromptSet, prompt_set
from uncanny.runs.forecast import ImagesForecast, UsageCounter, pending_images, prompt_tokens
from uncanny.runs.image_task import (
    MOST_IMAGES_AT_ONCE,
    Images,
    ImageTask,
    other_models,
    task_parts,
)
from uncanny.runs.inputs import ImageFile
from uncanny.runs.run import run_with
from uncanny.runs.sync import blocking
from uncanny.runs.task import asking
from uncanny.schema import ARTIFACT_CATEGORIES, STATUSES, ArtifactCategory, Status, StepError, Usage
from uncanny.schema import Pixels as SentAs
from uncanny.wording import counted

if TYPE_CHECKING:
    from uncanny.client.calls import CallRecord
    from uncanny.detectors.detector import Judgement
    from uncanny.runs.engine import Engine

# From which likelihood on an image is taken for generated.
GENERATED_FROM: Final = 0.5


class LocatedArtifacts(ArtifactRecord):
    """One image's record in the `artifacts.jsonl` of a run.

    Regions are boxes in pixels of the image file, with what is wrong there in the model's words; `regions` is
    None where nothing is known of any category. `unmeasured` are the categories of which nothing is known:
    those that were not asked about, and those whose answer could not be had, which `errors` say. `incomplete`
    are those whose answer never became whole: of them `regions` has what was valid in the best one. Of any
    other category without a region none was found. `score` is how likely the image is generated, 0–1, and
    `source` what that makes of it, from 0.5 on; both None unless it was asked. A further key `boxes` counts
    those that were given, and those among them that could not be one. Of a file that could not be read
    `sha256`, `width` and `height` are None.
    """

    model: str
    prompts: str
    usage: Usage = Usage()
    pixels: SentAs | None = None
    file_stamp: str | None = None


_NAMES: Final[Cells] = {"image": "text", "status": "text", "model": "text", "score": "real", "source": "text"}
_REGION: Final[Cells] = {"finding": "whole", "category": "text", "box": "reals", "note": "text"}


class ArtifactsRun(ImagesRun[LocatedArtifacts]):
    """A run of `uncanny.artifacts.run`: a record an image, and a row a region, or an image, as a data
    frame."""

    task = "artifacts"
    record_file = RECORD_FILE
    record_type = LocatedArtifacts
    record_key = ("image",)
    statuses = STATUSES
    finding_columns: ClassVar[Cells] = {**_NAMES, **_REGION, **FILE}
    image_columns: ClassVar[Cells] = {
        **_NAMES,
        "regions": "whole",
        **dict.fromkeys(("unmeasured", "incomplete", "errors"), "texts"),
        "prompts": "text",
        **FILE,
        **USAGE,
    }
    columns = finding_columns

    def regions(self) -> Mapping[ArtifactCategory, int]:
        """How many regions of each category there are in all images."""
        counts = Counter(region.category for record in self.records for region in record.regions or ())
        return {category: counts[category] for category in ARTIFACT_CATEGORIES}

    @property
    def artifacts(self) -> Records[LocatedArtifacts]:
        """One for each image, in order of their names when the run is finished."""
        return self.records

    def files_json(self) -> dict[str, str | None]:
        return {"artifacts": str(self.path / self.record_file), "report": None}

    def found_json(self) -> dict[str, Any]:
        return {"regions": self.regions(), **super().found_json()}

    def finding_rows(self) -> Iterator[Row]:
        for record in self.records:
            image = _image_row(record) | table_cells(record)
            for number, region in enumerate(record.regions or (), 1):
                box = None if region.box is None else [*region.box]
                finding = {"finding": number, "category": region.category, "box": box, "note": region.note}
                yield image | finding
            if not record.regions:
                yield image | dict.fromkeys(_REGION)

    def image_rows(self) -> Iterator[Row]:
        for record in self.records:
            yield {
                **_image_row(record),
                "regions": None if record.regions is None else len(record.regions),
                "unmeasured": [*record.unmeasured],
                "incomplete": [*record.incomplete],
                "errors": [each.message for each in record.errors],
                "prompts": record.prompts,
                **{name: getattr(record.usage, name) for name in USAGE},
                **table_cells(record),
            }


def _image_row(record: LocatedArtifacts) -> Row:
    return {name: getattr(record, name) for name in (*_NAMES, *FILE)}


def artifacts_task(parameters: ArtifactsParameters, images: Images, *, copy: bool = True) -> ArtifactsTask:
    """The task over these images; `copy` False leaves bundled images where they are.

    Raises UsageError. Blocking.
    """
    parts = task_parts("artifacts", images, parameters)
    out = None if parameters.out is None else Path(parameters.out)
    parts["paths"], _ = name_images(parts["paths"], out, copy=copy)
    categories = check_choices("categories", parameters.categories, ARTIFACT_CATEGORIES)
    return ArtifactsTask(
        **parts,
        config=parameters.part(ArtifactsConfig, categories=categories),
        heat_map_threshold=parameters.heat_map_threshold,
    )


@takes(ArtifactsParameters, "out")
async def run_async(images: Images, parameters: ArtifactsParameters) -> ArtifactsRun:
    """Ask a model for the artifacts in images: their boxes and categories.

    `images` are files and folders, also Parquet and Arrow files with pictures in their rows, or the word
    `scenes` for the bundled images, which are copied into `out`. Results go to `out` as they come. The same
    call resumes a run that was interrupted. Records have boxes in pixels of the image file, and with
    `likelihood` a `score`: how likely the image is generated.

    Returns the run, even if it ended early or some images failed: see its `summary` and the records' `status`
    and `unmeasured`. Raises UsageError for invalid parameters, and ModelUnusableError if the model cannot be
    called at all.

    `run_async` is the same for programs with an event loop.

    >>> run = uncanny.artifacts.run(images, model="demo", out=out)
    >>> run.artifacts[0].regions[0].category
    'semantics'
    >>> again = asyncio.run(uncanny.artifacts.run_async(images, model="demo", out=out))
    >>> again.summary.state
    'finished'

    Source: X-AIGD, section 3.2 and appendix C.1.
    """
    task = await asyncio.to_thread(artifacts_task, parameters, images)
    end = await run_with(task, parameters)
    return ArtifactsRun(task.folder.path, end)


run = blocking(run_async)


@dataclass(kw_only=True)
class ArtifactsTask(ImageTask[LocatedArtifacts]):
    """The task of locating artifacts."""

    name = "artifacts"
    record_file = RECORD_FILE
    record_type = LocatedArtifacts
    roles = ROLES
    found = "regions"

    config: ArtifactsConfig = field(default_factory=ArtifactsConfig)
    heat_map_threshold: float = HEAT_MAP_THRESHOLD
    prompts: PromptSet = field(default_factory=lambda: prompt_set("artifacts"))

    @property
    def inputs_at_once(self) -> int:
        if self.detector is not None:
            return self.detector.at_once
        # The questions about an image go side by side.
        return min(MOST_IMAGES_AT_ONCE, -(-self.options.concurrency // self.config.calls) + 2)

    @property
    def calls_per_input(self) -> int:
        return self.config.calls if self.detector is None else 0

    def config_json(self) -> dict[str, Any]:
        plan = super().config_json()
        return plan if self.detector is None else {**plan, "heat_map_threshold": self.heat_map_threshold}

    def record(
        self, file: ImageFile, image: PreparedImage | None, status: Status, **more: Any
    ) -> LocatedArtifacts:
        # Of a file that cannot be read, or an image that a defect ended, nothing is known.
        return super().record(file, image, status, **{"unmeasured": ARTIFACT_CATEGORIES, **more})

    async def examine(
        self, file: ImageFile, image: PreparedImage, engine: Engine, calls: list[CallRecord]
    ) -> LocatedArtifacts:
        if self.detector is not None:
            judgement, keys = await self.detector.examine(file.path, image.source_sha256, self.folder.path)
            regions = await asyncio.to_thread(detector_regions, judgement, self.heat_map_threshold)
            # Of each pixel one category is said, or none of any: nothing that was asked is unknown.
            return self.record(file, image, "ok", regions=regions, unmeasured=(), **keys)
        with asking(engine, file.image, calls) as scope:
            context = ArtifactContext(
                engine.model_client,
                scope,
                self.config,
                self.prompts,
                sent_image(image),
                size=(image.width, image.height),
            )
            answers, likelihood = await locate_artifacts(context)
        return self._record(file, image, answers, likelihood, context)

    def _record(
        self,
        file: ImageFile,
        image: PreparedImage,
        answers: list[Answered],
        likelihood: float | StepError | None,
        context: ArtifactContext,
    ) -> LocatedArtifacts:
        answers.sort(key=lambda each: ARTIFACT_CATEGORIES.index(each.categories[0]))
        failures = [each.failure for each in answers if each.failure is not None]
        failures += [likelihood] if isinstance(likelihood, StepError) else []
        score = None if isinstance(likelihood, StepError) else likelihood
        answered = {category for each in answers if each.located is not None for category in each.categories}
        boxes = context.boxes
        return self.record(
            file,
            image,
            "ok" if not failures else "partial" if answered or score is not None else "failed",
            source=None if score is None else "generated" if score >= GENERATED_FROM else "real",
            score=score,
            regions=tuple(
                Region(category=region.category, box=region.box, note=region.note)
                for each in answers
                for region in each.located or ()
            )
            if answered
            else None,
            unmeasured=tuple(each for each in ARTIFACT_CATEGORIES if each not in answered),
            incomplete=tuple(
                each
                for each in ARTIFACT_CATEGORIES
                if any(
                    each in answer.categories and answer.failure is not None and answer.located is not None
                    for answer in answers
                )
            ),
            errors=tuple(failures),
            usage=usage(context.scope.calls),
            **({"boxes": boxes.as_recorded()} if boxes.given else {}),
            **other_models(context.scope.calls, str(self.models.model)),
        )


def detector_regions(judgement: Judgement, threshold: float) -> tuple[Region, ...] | None:
    """What a detector says of places: its classes of pixels, else its heat map from `threshold` on.

    Each connected part is a region. Those of a heat map have no category. None where it says nothing.
    """
    masks: list[tuple[ArtifactCategory | None, Any]]
    if judgement.pixels is not None:
        masks = [
            (category, judgement.pixels == number) for number, category in enumerate(ARTIFACT_CATEGORIES, 1)
        ]
    elif judgement.heat is not None:
        masks = [(None, judgement.heat >= threshold)]
    else:
        return None
    return tuple(
        Region(category=category, mask=RunLengths(**encode_rle(part.on((mask.shape[1], mask.shape[0])))))
        for category, mask in masks
        for part in component_crops(crop(mask))
    )


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
    prices = task.price_table()
    pending = pending_images(task)
    if task.detector is not None:
        none = UsageCounter(task.models.model)
        return ArtifactsForecast.of_calls(pending.fields, none, prices, calls_an_image=0)
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
