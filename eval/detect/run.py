"""Detection: which of these images are generated, and what gives them away? One record an image."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Unpack, cast

from uncanny.agents.config import DetectConfig
from uncanny.agents.context import ImageContext
from uncanny.agents.source_detector import ROLES
from uncanny.client.calls import usage
from uncanny.errors import UsageError
from uncanny.eval.annotate.run import AnnotateRun, ImageOptions, Images, image_run, read_config
from uncanny.eval.common.run_result import Records
from uncanny.eval.detect.data import Truth, find_truth
from uncanny.eval.metrics.detection import JUDGED
from uncanny.images import PreparedImage
from uncanny.models.base import Sampling
from uncanny.parameters import check_callback
from uncanny.prompts import PromptSet, prompt_set
from uncanny.runs.config import AskOptions
from uncanny.runs.image_task import ImageTask, other_models, sent_image
from uncanny.runs.inputs import ImageFile
from uncanny.runs.run import run_with
from uncanny.runs.sync import blocking
from uncanny.runs.task import asking
from uncanny.schema import Detection, Status
from uncanny.wording import option

if TYPE_CHECKING:
    from uncanny.client.calls import CallRecord
    from uncanny.eval.detect.score import DetectScore
    from uncanny.graphs.detect import DetectState
    from uncanny.runs.engine import Engine

TURNS = 2
# So many more than calls at once, so that slots do not stand empty while pictures are read.
IMAGES_AHEAD = 4
MOST_IMAGES_AT_ONCE = 128


class DetectRun(AnnotateRun):
    """A run of `detect`: a verdict and a list of anomalies an image."""

    record_type = Detection
    columns = ("image", "status", "model", "source", "anomalies")

    @property
    def detections(self) -> Records[Detection]:
        """One for each image, in order of their names when the run is finished."""
        return cast("Records[Detection]", self.records)

    def to_json(self, images: Set[str] | None = None) -> dict[str, Any]:
        """What the command prints with `--json`; `scores` is None here: a run does not know the truth."""
        verdicts = Counter(
            record.source or "unparseable"
            for record in self.detections
            if record.verdict is not None and (images is None or record.image in images)
        )
        content = super().to_json(images)
        after = {name: content.pop(name) for name in ("failures", "skipped", "warnings", "error")}
        return {**content, "verdicts": {**dict.fromkeys(JUDGED, 0), **verdicts}, "scores": None, **after}

    def score(self, truth: Truth | None = None) -> DetectScore:
        """How many images were recognised for what they are.

        `truth` is a file with a line an image (`{"image": "a.png", "source": "generated"}`), the word
        `scenes` for the bundled images, or a mapping from image to `generated` or `real`; images are paired
        by path, else by file name. Without it the folder that an image lies in says it: `real`, `0_real`,
        `generated`, `fake`, `1_fake` or `synthetic`.

        Raises UsageError where the truth cannot be read, has none of these images, or no folder tells.
        """
        from uncanny.eval.detect.score import score

        base = self.path / (self.manifest.root or "")
        digests = {record.image: record.sha256 for record in self.detections}
        files = [ImageFile(base / image, image) for image in digests]
        sources = find_truth(truth, files, (), digests)
        if sources is None:
            raise UsageError(
                f"No folder of the images of {self.path} says whether they are generated",
                remedy=f"Give {option('truth')}: a file, or a mapping from image to generated or real.",
            )
        pending = self.summary.pending
        return score(self.detections, sources, None if pending is None else len(files) + pending)

    def rows(self) -> Iterator[dict[str, Any]]:
        """One an image: the source the model took it for, None where it gave no clear answer."""
        for record in self.detections:
            yield {
                "image": record.image,
                "status": record.status,
                "model": record.model,
                "source": record.source,
                "anomalies": len(record.anomalies),
            }


async def detect_async(
    images: Images,
    *,
    model: str,
    out: str | Path,
    root: str | Path | None = None,
    temperature: float | None = 0.0,
    top_p: float | None = None,
    max_output_tokens: int = 2_000,
    max_side: int | None = None,
    image_format: Literal["keep", "png", "jpeg"] = "keep",
    jpeg_quality: int = 95,
    max_pixels: int = 100_000_000,
    on_image: Callable[[Detection], None] | None = None,
    **options: Unpack[AskOptions],
) -> DetectRun:
    """Ask of each image whether it is generated, then what gives it away. One model; see `annotate` for the
    rest.

    `images`, `out`, `root`, sampling, pixels, `on_image` and `options` are those of `annotate`. A record's
    `source` is `generated` or `real`, None where no clear verdict came.

    Returns the run, also where it ended early or some images failed; its `score` compares with the truth.
    Raises UsageError, ModelUnusableError.

    `detect_async` is the same for programs with an event loop.

    >>> run = uncanny.detect(images, model="demo", out=out)
    >>> run.detections[0].source
    'generated'
    >>> asyncio.run(uncanny.detect_async(images, model="demo", out=out)).summary.state
    'finished'
    >>> run.score("scenes").scored.accuracy
    1.0

    Source: AnomReason, section 4 (detection in two turns).
    """
    check_callback("on_image", on_image)
    all_options: ImageOptions = {
        **options,
        "temperature": temperature,
        "top_p": top_p,
        "max_output_tokens": max_output_tokens,
        "max_side": max_side,
        "image_format": image_format,
        "jpeg_quality": jpeg_quality,
        "max_pixels": max_pixels,
    }
    task = DetectTask(
        **image_run(images, model, out, root, all_options, ImageOptions),
        config=read_config(DetectConfig, all_options),
    )
    return DetectRun(out, await run_with(task, options, on_image))


detect = blocking(detect_async)


@dataclass(kw_only=True)
class DetectTask(ImageTask[Detection]):
    """The task of judging images."""

    name = "detect"
    record_type = Detection

    config: DetectConfig = field(default_factory=DetectConfig)
    prompts: PromptSet = field(default_factory=lambda: prompt_set("detect"))

    @property
    def roles(self) -> Mapping[str, str]:
        return ROLES

    @property
    def sampling(self) -> Sampling:
        return Sampling(self.config.temperature, self.config.top_p, self.config.max_output_tokens)

    @property
    def inputs_at_once(self) -> int:
        return min(MOST_IMAGES_AT_ONCE, self.options.concurrency + IMAGES_AHEAD)

    @property
    def calls_per_input(self) -> int:
        return TURNS

    def config_json(self) -> dict[str, Any]:
        return self.config.model_dump()

    async def examine(
        self, file: ImageFile, image: PreparedImage, engine: Engine, calls: list[CallRecord]
    ) -> Detection:
        from uncanny.graphs.detect import detect_graph  # LangGraph takes half a second to import

        with asking(engine, file.image, calls) as scope:
            context = ImageContext(engine.model_client, scope, self.config, self.prompts, sent_image(image))
            state = await detect_graph().ainvoke({"image": file.image}, context=context)
        return self._detection(file, image, cast("DetectState", state), scope.calls)

    def _detection(
        self, file: ImageFile, image: PreparedImage, state: DetectState, calls: Sequence[CallRecord]
    ) -> Detection:
        verdict, listing, failure = state.get("verdict"), state.get("listing"), state.get("failure")
        status: Status = "ok" if failure is None else "failed" if verdict is None else "partial"
        return self.record(
            file,
            image,
            status,
            anomalies=() if listing is None else listing.anomalies,
            errors=() if failure is None else (failure,),
            usage=usage(calls),
            source=None if verdict is None else verdict.source,
            verdict=None if verdict is None else verdict.raw,
            refused=verdict is not None and verdict.refused,
            listing=None if listing is None else listing.raw,
            description=state.get("description"),
            **other_models(calls, str(self.models.model)),
        )
