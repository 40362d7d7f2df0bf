"""Detection: which of these images are generated, and what gives them away? One record an image."""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, cast

from uncanny.agents.common.context import ImageContext
from uncanny.agents.config import DetectConfig, DetectProtocol
from uncanny.agents.source_detector import DESCRIBE, JUDGE, LIST, ROLES, detect_source
from uncanny.annotation.run import AnnotateRun
from uncanny.client.calls import usage
from uncanny.detectors.provider import AskedDetector
from uncanny.errors import UsageError
from uncanny.eval.common.frames import Cells, Row
from uncanny.eval.common.inputs.named_images import name_images
from uncanny.eval.common.parameters import MIN_CONFIDENCE, ReportParameters
from uncanny.eval.common.run_result import Records
from uncanny.eval.detect.data import SourceTruth, Truth, find_truth, set_of
from uncanny.eval.detect.parameters import DetectParameters
from uncanny.eval.metrics.detection import JUDGED, Judged
from uncanny.images.prepared import PreparedImage
from uncanny.models.base import sent_image
from uncanny.models.tokens import image_tokens, least_cached
from uncanny.parameters import takes
from uncanny.prompts import PromptSet, prompt_set
from uncanny.records.annotation_table import check_format
from uncanny.runs.forecast import ImagesForecast, UsageCounter, pending_images, prompt_tokens
from uncanny.runs.image_task import Images, ImageTask, other_models, task_parts
from uncanny.runs.inputs import ImageFile
from uncanny.runs.run import run_with
from uncanny.runs.sync import blocking
from uncanny.runs.task import asking
from uncanny.schema import Annotation, Detection, Status
from uncanny.wording import option

if TYPE_CHECKING:
    from uncanny.client.calls import CallRecord
    from uncanny.eval.common.pages.pictures import PicturesMode
    from uncanny.eval.detect.score import DetectScore
    from uncanny.runs.engine import Engine
    from uncanny.runs.run import RunEnd


TURNS = 2
# So many more than calls at once, so that slots do not stand empty while pictures are read.
IMAGES_AHEAD = 4
MOST_IMAGES_AT_ONCE = 128


_WORDS = ("verdict", "listing", "description")


def _with_source(columns: Cells) -> Cells:
    """`columns` with the source behind the model that named it."""
    first = {name: columns[name] for name in ("image", "status", "model")}
    return {**first, "source": "text", **columns}


class DetectRun(AnnotateRun):
    """A run of `detect`: a verdict and a list of anomalies an image."""

    task = "detect"
    record_type = Detection
    rows_of = "images"
    finding_columns = _with_source(AnnotateRun.finding_columns)
    image_columns: ClassVar[Cells] = {
        **_with_source(AnnotateRun.image_columns),
        "refused": "flag",
        **dict.fromkeys(_WORDS, "text"),
    }
    columns = image_columns

    def __init__(self, path: str | Path, end: RunEnd | None = None, truth: SourceTruth | None = None) -> None:
        super().__init__(path, end)
        self._truth = truth

    @property
    def truth(self) -> SourceTruth | None:
        """What the images really are, where that is known: as `detect` was told, or else by their folders.

        Of a run that was only opened by the folders alone; None where they do not say it.
        """
        if self._truth is not None or self.end is not None:
            return self._truth
        files = self._recorded_files()
        folders = {str(file.path.parent) for file in files}
        return find_truth(None, files, [Path(os.path.commonpath(folders))] if folders else [])

    @property
    def protocol(self) -> DetectProtocol:
        """How images were asked about: in a conversation, or by two independent calls."""
        protocol = self.manifest.plan.get("protocol")
        return "independent" if protocol == "independent" else "conversation"

    @property
    def is_of_detector(self) -> bool:
        """Whether a detector was asked, which says nothing of anomalies."""
        return "detector" in self.manifest.plan

    @property
    def detections(self) -> Records[Detection]:
        """One for each image, in order of their names when the run is finished."""
        return cast("Records[Detection]", self.records)

    def verdicts(self) -> Mapping[Judged, int]:
        """How many images were taken for what; those without an answer are none of them."""
        records = (record for record in self.detections if record.verdict is not None)
        counts = Counter[Judged](record.source or "unparseable" for record in records)
        return {judged: counts[judged] for judged in JUDGED}

    def score(self, truth: Truth | None = None) -> DetectScore:
        """How many images were recognised for what they are.

        `truth` is a file with a line an image (`{"image": "a.png", "source": "generated"}`), the word
        `scenes` for the bundled images, or a mapping from image to `generated` or `real`; images are paired
        by path, else by file name. Without it what `detect` was told counts, or else the folder that an image
        lies in: `real`, `0_real`, `generated`, `fake`, `1_fake` or `synthetic`.

        Raises UsageError where the truth cannot be read, has none of these images, or no folder tells.
        """
        sources = self.truth if truth is None else self._truth_of(truth)
        if sources is None:
            raise UsageError(
                f"The folder names do not show which images of {self.path} are generated",
                remedy=f"Give {option('truth')}: a file, or a mapping from image to generated or real.",
            )
        return self._score_against(sources)

    def with_truth(self, truth: Truth) -> DetectRun:
        """The same run with another `truth`, see `score`. Raises UsageError as that does."""
        return DetectRun(self.path, self.end, self._truth_of(truth))

    def _truth_of(
        self, truth: Truth | None, files: Sequence[ImageFile] = (), paths: Sequence[Path] = ()
    ) -> SourceTruth | None:
        """The truth about the recorded images, and about `files`, which may have no record yet."""
        digests = {record.image: record.sha256 for record in self.detections}
        every = {file.image: file for file in (*self._recorded_files(), *files)}
        return find_truth(truth, tuple(every.values()), paths, digests)

    def _score_against(self, sources: SourceTruth) -> DetectScore:
        from uncanny.eval.detect.score import score

        records = self.detections
        pending = self.summary.pending
        return score(records, sources, images=None if pending is None else len(records) + pending)

    def report(
        self,
        out: str | Path | None = None,
        *,
        max_images: int = 300,
        pictures: PicturesMode = "link",
        min_confidence: float = MIN_CONFIDENCE,
    ) -> Path:
        """Write the page of the run, `report.html` in its folder unless `out` names another file.

        It has the scores where the truth is known: as `detect` was told, by folder names, or of the bundled
        scenes. At most `max_images` are shown; full-size `pictures` are linked from their files, or embedded.
        """
        from uncanny.annotation.report.page import write_report
        from uncanny.eval.detect.report import page_scores

        page = ReportParameters(
            out=out, max_images=max_images, pictures=pictures, min_confidence=min_confidence
        )
        self.check_not_lost()
        truth = self.truth
        if truth is None and (bundled := set_of(self.detections)) is not None:
            truth = self._truth_of(bundled)
        score = None if truth is None else self._score_against(truth)
        return write_report(
            self.path,
            max_images=page.max_images,
            out=None if page.out is None else Path(page.out),
            pictures=page.pictures,
            min_confidence=page.min_confidence,
            scores=page_scores(self.detections, self.verdicts(), score),
        )

    def found_json(self) -> dict[str, Any]:
        """With `scores`, which are None where the truth is not known."""
        scores = None if self.truth is None else self.score().to_json()
        own = {"protocol": self.protocol, "verdicts": self.verdicts(), "scores": scores}
        return {**own, **super().found_json()}

    def _recorded_files(self) -> list[ImageFile]:
        folder = Path(os.path.abspath(self.path / (self.manifest.root or "")))  # noqa: PTH100 links stay
        return [
            ImageFile(Path(os.path.normpath(folder / record.image)), record.image)
            for record in self.detections
        ]

    def image_rows(self) -> Iterator[Row]:
        for row, record in zip(super().image_rows(), self.detections, strict=False):
            yield row | {name: getattr(record, name) for name in ("refused", *_WORDS)}

    def identity(self, record: Annotation) -> Row:
        return super().identity(record) | {"source": cast("Detection", record).source}

    def was_examined(self, record: Annotation) -> bool:
        """Only of images that are taken for generated it is asked what is wrong in them."""
        return super().was_examined(record) and cast("Detection", record).listing is not None


def detect_task(
    parameters: DetectParameters, images: Images, *, copy: bool = True
) -> tuple[DetectTask, Truth | None]:
    """The task over these images, and the truth about them where it is known.

    `copy` False leaves bundled images where they are. Raises UsageError. Blocking.
    """
    parts = task_parts("detect", images, parameters)
    out = None if parameters.out is None else Path(parameters.out)
    parts["paths"], truth = name_images(parts["paths"], out, copy=copy)
    config = parameters.part(DetectConfig)
    task = DetectTask(**parts, config=config, format=check_format(parameters.format))
    if copy and task.detector is not None:
        task.detector.open().check_classifier()
    return task, truth if parameters.truth is None else parameters.truth


@takes(DetectParameters, "out")
async def detect_async(images: Images, parameters: DetectParameters) -> DetectRun:
    """Ask of each image whether it is generated, and what gives it away.

    `images` are files and folders, also Parquet and Arrow files with pictures in their rows, or the word
    `scenes` for the bundled images, which are copied into `out`. Results go to `out` as they come. The same
    call resumes a run that was interrupted. A record's `source` is `generated` or `real`, or None if the
    model gave no clear verdict.

    Returns the run, even if it ended early or some images failed; its `score` compares with the truth.
    Raises UsageError and ModelUnusableError.

    `detect_async` is the same for programs with an event loop.

    >>> run = uncanny.detect(images, model="demo", out=out)
    >>> run.detections[0].source
    'generated'
    >>> asyncio.run(uncanny.detect_async(images, model="demo", out=out)).summary.state
    'finished'
    >>> run = uncanny.detect("scenes", model="demo", out=out / "scenes")
    >>> run.score().scored.right
    30

    Source: AnomReason, section 4.2 and appendix C.2 (detection in two turns); the authors' released
    evaluation makes two independent calls.
    """
    task, told = await asyncio.to_thread(detect_task, parameters, images)
    sources = await asyncio.to_thread(check_truth, task, told)
    end = await run_with(task, parameters)
    run = DetectRun(task.folder.path, end, sources)
    if not end.lost:
        run._truth = await asyncio.to_thread(run._truth_of, told, task.files, task.paths)
    return run


detect = blocking(detect_async)


def check_truth(task: DetectTask, truth: Truth | None) -> SourceTruth | None:
    """What `truth` says of the images of `task`, None where there is none.

    Raises UsageError where it cannot be read or does not fit them. Blocking.
    """
    return None if truth is None else find_truth(truth, task.inputs().files, task.paths)


@dataclass(kw_only=True)
class DetectTask(ImageTask[Detection]):
    """The task of judging images."""

    name = "detect"
    record_type = Detection
    roles = ROLES

    config: DetectConfig = field(default_factory=DetectConfig)
    prompts: PromptSet = field(default_factory=lambda: prompt_set("detect"))

    @property
    def inputs_at_once(self) -> int:
        if self.detector is not None:
            return self.detector.at_once
        return min(MOST_IMAGES_AT_ONCE, self.options.concurrency + IMAGES_AHEAD)

    @property
    def calls_per_input(self) -> int:
        return TURNS if self.detector is None else 0

    async def examine(
        self, file: ImageFile, image: PreparedImage, engine: Engine, calls: list[CallRecord]
    ) -> Detection:
        if self.detector is not None:
            return await self._detected(self.detector, file, image)
        with asking(engine, file.image, calls) as scope:
            found = await detect_source(
                ImageContext(engine.model_client, scope, self.config, self.prompts, sent_image(image))
            )
        verdict, listing = found.verdict, found.listing
        status: Status = "ok" if not found.failures else "failed" if verdict is None else "partial"
        return self.record(
            file,
            image,
            status,
            anomalies=() if listing is None else listing.anomalies,
            errors=tuple(found.failures),
            usage=usage(scope.calls),
            source=None if verdict is None else verdict.source,
            verdict=None if verdict is None else verdict.raw,
            refused=verdict is not None and verdict.refused,
            listing=None if listing is None else listing.raw,
            description=found.description,
            **other_models(scope.calls, str(self.models.model)),
        )

    async def _detected(self, detector: AskedDetector, file: ImageFile, image: PreparedImage) -> Detection:
        """A detector says no more than a number."""
        judgement, keys = await detector.examine(file.path, image.source_sha256, self.folder.path)
        return self.record(file, image, "ok", usage=usage([]), verdict=f"{judgement.score:.4f}", **keys)


def page_of(run: Path, parameters: ReportParameters) -> Path:
    """Write the page of a run, as `uncanny.report` does."""
    out = None if parameters.out is None else Path(parameters.out)
    return DetectRun(run).report(
        out,
        max_images=parameters.max_images,
        pictures=parameters.pictures,
        min_confidence=parameters.min_confidence,
    )


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
    prices = task.price_table()
    pending = pending_images(task)
    if task.detector is not None:
        return DetectForecast.of_calls(pending.fields, UsageCounter(task.models.model), prices)
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
