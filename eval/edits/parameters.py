"""The parameters of the functions of `uncanny.edits` that ask no models."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, get_args

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from uncanny.answers.writings import MOST_WORDS
from uncanny.detectors.parameters import DetectorParameters, Device
from uncanny.eval import metrics
from uncanny.eval.common.parameters import (
    HeatMapThreshold,
    IntervalParameters,
    PairFolders,
    Published,
    Resamples,
    Root,
    ScoreParameters,
    Seed,
    Share,
)
from uncanny.eval.metrics import EditProtocol
from uncanny.parameters import CALLBACK, HERE, PYTHON, Parameters, Place, Shown, Text
from uncanny.wording import option

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from uncanny.eval.edits.data import EditFiles
    from uncanny.eval.edits.result import EditMeasure, SetCutoffs
    from uncanny.eval.edits.score import Perceptual
    from uncanny.eval.edits.stress.data import MetaSource, Source
    from uncanny.eval.metrics.post_edit import PostEdit
else:  # commands show their options without them
    EditFiles = EditMeasure = MetaSource = Perceptual = SetCutoffs = Source = Any

LpipsNet = Literal["alex", "vgg", "squeeze"]
Codec = Literal["jpeg", "webp"]
CODECS: Final[tuple[Codec, ...]] = get_args(Codec)
QUALITIES: Final = (85, 70, 50)
# The data sets that SAGI's detectors are trained on.
IN_DOMAIN: Final = ("COCO", "RAISE")
CONDITIONS: Final = tuple(f"{codec}-{quality}" for codec in CODECS for quality in QUALITIES)


def _odd(value: int) -> int:
    if value % 2 == 0:
        raise ValueError("must be odd")
    return value


def _ascending(ends: Mapping[str, tuple[float, float]]) -> Mapping[str, tuple[float, float]]:
    for name, (low, high) in ends.items():
        if low > high:
            raise ValueError(f"must have the lower end of {name} first")
    return ends


def _ends_by_name(value: Any) -> Any:
    """From METRIC=LOW,HIGH, as commands have them; ends of a program may be a list."""
    if isinstance(value, Mapping):
        return {name: tuple(ends) if isinstance(ends, list) else ends for name, ends in value.items()}
    if isinstance(value, str) or not isinstance(value, Sequence):
        return value
    parted = [str(each).partition("=") for each in value]
    try:
        split = [(name, *ends.split(",")) for name, _, ends in parted]
        return {name: (float(low), float(high)) for name, low, high in split}
    except ValueError:
        raise ValueError("must be like mask_ratio=0.05,0.3") from None


Odd = Annotated[int, AfterValidator(_odd)]
Pixels = Annotated[int, Field(ge=0, le=10**9)]
Percentile = Annotated[float, Field(ge=0, le=100)]
Figure = Annotated[float, Field(ge=0, le=1e9)]
LeastCount = Annotated[int, Field(ge=1, le=10**9)]
Records = Annotated[Place | None, Shown(on=HERE.on, short="-o", metavar="FILE")]
Progress = Annotated[bool, Field(description="Show a progress bar on standard error."), PYTHON]
By = Annotated[Sequence[str], Shown(metavar="COLUMN")]
InDomain = Annotated[
    Sequence[Text],
    Field(description="Data set that the detector was trained on, for the grouping id-ood."),
    Shown(metavar="DATASET", default="COCO and RAISE"),
]
ScoreThreshold = Annotated[
    Share | None,
    Field(description="Score from which an image counts as generated, even if it has a verdict."),
    Shown(default="verdicts; 0.5 for scores alone"),
]


def _check_order(parameters: Parameters, *names: tuple[str, str]) -> None:
    for low, high in names:
        if getattr(parameters, low) > getattr(parameters, high):
            raise ValueError(f"{option(low)} is above {option(high)}; swap them")


class LoadParameters(PairFolders):
    """The parameters of `load`: where pairs lie that no file names."""

    masks: Place | None = None
    """Folder of masks with the same names; goes with both. A file of pairs names masks itself."""
    root: Root = None


class PerceptualParameters(Parameters):
    """The parameters of `open_perceptual`: measures by learned models. Nothing is downloaded."""

    heading = "Perceptual metrics"
    lpips: LpipsNet | None = None
    """Measure LPIPS with this network."""
    lpips_weights: Annotated[Place | None, Shown(metavar="FILE", default="the file in torch's cache")] = None
    """File with torchvision's weights of that network."""
    dreamsim: Annotated[Place | None, Shown(metavar="DIR", place="weights")] = None
    """Measure DreamSim with the weights in this folder. This runs the hubconf.py in it."""
    text_model: Annotated[Place | None, Shown(metavar="DIR", place="weights")] = None
    """Measure text similarity with the sentence-transformers model in this folder."""
    device: Device = None


class MeasureConfig(Parameters):
    """The constants of the measures; `docs/edits.md` says what each does."""

    heading = "Measurements"
    protocol: EditProtocol = metrics.PROTOCOL
    """Method for post-edit masks: uncanny's, that of the Semi-Truths paper, or of its authors' program."""
    window: Annotated[Odd, Field(ge=3, le=999)] = metrics.WINDOW
    """Side of SSIM's window, in pixels; odd."""
    difference_threshold: Share = metrics.DIFFERENCE
    """Post-edit mask: squared difference, 0–1, above which a pixel has changed."""
    least_object: Annotated[Pixels, Shown(default="10; 0 for the protocol paper")] = Field(
        default_factory=lambda values: metrics.LEAST_OBJECT[values["protocol"]]
    )
    """Post-edit mask: drop changed objects of fewer pixels."""
    dilation: Annotated[Odd, Field(ge=1, le=999)] = metrics.DILATION
    """Post-edit mask: side of the dilating square, in pixels; odd."""
    least_component: Pixels = metrics.LEAST_COMPONENT
    """Post-edit mask: drop components of fewer pixels."""
    neighbours: Figure = metrics.NEIGHBOURS
    """Distance in pixels; components whose centroids are nearer are one cluster."""
    diffused_ratio: Share = metrics.DIFFUSED_RATIO
    """Share of the image, 0–1, from which a component makes an edit diffused."""
    low_percentile: Percentile = metrics.LOW_PERCENTILE
    """Percentile of the set below which a value is small."""
    high_percentile: Percentile = metrics.HIGH_PERCENTILE
    """Percentile of the set above which a value is large."""
    deviations: Figure = metrics.DEVIATIONS
    """Standard deviations around the mean that are medium, for scene diversity and complexity."""

    @model_validator(mode="after")
    def _in_order(self) -> MeasureConfig:
        _check_order(self, ("low_percentile", "high_percentile"))
        return self

    def post_edit(self, squares: NDArray[np.uint32]) -> PostEdit:
        """The post-edit mask of what `squared_difference` gives, with these constants."""
        from uncanny.eval.metrics.post_edit import post_edit

        return post_edit(
            squares,
            protocol=self.protocol,
            threshold=self.difference_threshold,
            least_object=self.least_object,
            dilation=self.dilation,
            least_component=self.least_component,
            neighbours=self.neighbours,
        )


class MeasureParameters(MeasureConfig, PerceptualParameters, LoadParameters):
    """The parameters of `measure`."""

    out: Records = None
    """Write a line per edit to this file: .jsonl, .parquet or .csv. The same call resumes."""
    preserved: bool = False
    """Measure the area outside the mask too."""
    cutoffs: Annotated[Place | Mapping[str, Any] | SetCutoffs | None, Shown(metavar="FILE")] = None
    """Take bins and shapes from another set: the file that `edits measure --json` wrote for it."""
    published: Published = False
    threads: Annotated[int | None, Field(ge=1, le=1_024), Shown(default="number of cores")] = None
    """Number of edits measured at once."""
    perceptual: Annotated[Perceptual | None, PYTHON] = None
    """Measures that are open already, from `open_perceptual` or your own."""
    on_record: Annotated[Callable[[EditMeasure], None] | None, CALLBACK, PYTHON] = None
    """Gets each record as it comes, without bins and shape, which depend on the set."""
    progress: Progress = False


class GateConfig(Parameters):
    """Where the gates are, as in Semi-Truths by default."""

    heading = "Gates"
    brisque: Figure = 70.0
    """Edits pass if their BRISQUE is below this."""
    clip_low: Percentile = 20.0
    """Lowest percentile of the images' CLIP similarity that passes."""
    clip_high: Percentile = 80.0
    """Highest percentile of the images' CLIP similarity that passes."""
    directional: Percentile = 23.0
    """Percentile of directional similarity above which edits pass."""
    clip_score_low: Percentile = 5.0
    """Lowest percentile of the CLIPScore of original captions that passes."""
    text_low: Percentile = 5.0
    """Lowest percentile of text similarity that passes."""
    text_high: Percentile = 95.0
    """Highest percentile of text similarity that passes."""
    label_words: Annotated[int, Field(ge=0, le=10**6)] = MOST_WORDS["label"]
    """Maximum number of words of an edited label."""
    caption_words: Annotated[int, Field(ge=0, le=10**6)] = MOST_WORDS["caption"]
    """Maximum number of words of an edited caption."""

    @model_validator(mode="after")
    def _in_order(self) -> GateConfig:
        _check_order(self, ("clip_low", "clip_high"), ("text_low", "text_high"))
        return self


class GateParameters(GateConfig, LoadParameters):
    """The parameters of `gate`."""

    out: Records = None
    """Write a line per edit to this file: .jsonl, .parquet or .csv."""
    clip: Annotated[Place | None, Shown(metavar="DIR")] = None
    """Measure similarities with the CLIP model in this folder, where the records have none."""
    device: Device = None
    brisque_model: Annotated[Place | None, Shown(metavar="DIR")] = None
    """Measure BRISQUE with OpenCV's model files in this folder, if the records have no column `brisque`."""
    limits: Annotated[Place | Mapping[str, Any] | None, Shown(metavar="FILE")] = None
    """Take the ends of the gates from another set: the file that `edits gate --json` wrote for it."""
    on_edit: Annotated[Callable[[EditFiles], None] | None, CALLBACK, PYTHON] = None
    """Gets each edit when uncanny has looked at it."""
    progress: Progress = False


class StressParameters(ScoreParameters, DetectorParameters):
    """The parameters of `stress`."""

    detector: Annotated[Sequence[Place], Shown(on=HERE.on, metavar="DIR")] = ()
    """Folder of a detector to ask about the images of META, in place of predictions."""
    conditions: Annotated[Sequence[Text], Shown(flag="--condition", metavar="NAME")] = ()
    """Ask the detector about compressed copies too, such as jpeg-85."""
    detections: Annotated[Place | None, Shown(metavar="DIR")] = None
    """Folder to keep the detector's predictions and heat maps in. The same call resumes."""
    progress: Progress = False

    meta: Annotated[MetaSource | Sequence[MetaSource], Shown(metavar="META", place="file")]
    """Table of the edits (CSV, Parquet, JSON Lines), such as `edits measure` writes."""
    threshold: ScoreThreshold = None
    by: By = ()
    """Show recall by this further column of META, a grouping of SAGI (sp-fr, single-double, id-ood), or two
    at once, such as model+sp-fr."""
    in_domain: InDomain = IN_DOMAIN
    balanced: bool = False
    """Score as many real images as edits: leave out images of the larger class, drawn by the seed."""
    cutoffs: Annotated[
        Mapping[str, tuple[float, float]],
        BeforeValidator(_ends_by_name),
        AfterValidator(_ascending),
        Shown(metavar="METRIC=LOW,HIGH", default="percentiles 25 and 75"),
    ] = {}
    """Ends of the medium bin of a metric."""
    least_edits: LeastCount = 20
    """Show a directional edit (what became what) if at least this many edits share it."""
    root: Root = None
    heat_map_threshold: HeatMapThreshold = 0.5
    resize_maps: bool = False
    """Scale heat maps of another size to that of the mask, instead of leaving them out."""
    map_size: Annotated[
        int | None, Field(ge=1, le=4_096), Shown(metavar="SIDE", default="their own size")
    ] = None
    """Compute the pixel AUC on maps and masks scaled to SIDE × SIDE pixels, as SAGI does, so that every edit
    weighs the same."""


class PeopleParameters(Parameters):
    """The parameters of `score_people`."""

    predictions: Annotated[
        Source | Sequence[Source] | Mapping[str, Source] | None,
        Shown(metavar="[NAME=]FILE", named=True),
    ] = None
    """Predictions of a detector, to be scored on the images that people judged."""
    threshold: ScoreThreshold = None
    by: By = ()
    """Group by this further column of the pairs, a grouping of SAGI (sp-fr, single-double, id-ood), or two at
    once, such as ugda+sp-fr."""
    in_domain: InDomain = IN_DOMAIN
    least_answers: LeastCount = metrics.LEAST_ANSWERS
    """Minimum number of judgments of a person whose answers to the questionnaire are tested."""
    root: Root = None
    resamples: Resamples = metrics.RESAMPLES
    seed: Seed = 0


class RateParameters(IntervalParameters):
    """The parameters of `score_ratings`."""

    least_passed: Share = metrics.LEAST_PASSED
    """Leave out people who pass a smaller share of their attention checks than this."""
    published: Published = False
    root: Root = None


class CompressParameters(Parameters):
    """The parameters of `compress`."""

    out: Annotated[Place, Shown(short="-o", metavar="DIR")]
    """Folder of the copies."""
    conditions: Annotated[
        Sequence[Text],
        Field(min_length=1),
        Shown(flag="--condition", metavar="NAME", default="JPEG and WebP at 85, 70 and 50"),
    ] = CONDITIONS
    """Codec and quality from 1 to 100, such as jpeg-85."""
    on_image: Annotated[Callable[[str], None] | None, CALLBACK, PYTHON] = None
    """Gets the name of each image when its copies are written."""
    progress: Progress = False


class MaskConfig(Parameters):
    """How a mask is made ready for an inpainting model, as in Semi-Truths by default."""

    least_area: Share = 0.05
    """Leave out masks that cover less of the image than this, 0–1."""
    widenings: Annotated[int, Field(ge=0, le=100)] = 2
    """Number of times the mask is widened by a maximum filter."""
    filter_side: Annotated[Odd, Field(ge=1, le=99)] = 9
    """Side of the maximum and mode filters, in pixels; odd."""
    blur: Annotated[float, Field(ge=0, le=1_000)] = 16.0
    """Radius of the Gaussian blur, in pixels."""


class MasksParameters(MaskConfig):
    """The parameters of `masks`."""

    out: Annotated[Place, Shown(short="-o", metavar="DIR")]
    """Folder of the prepared masks."""
    progress: Progress = False


class CropParameters(LoadParameters):
    """The parameters of `crop`."""

    out: Annotated[Place, Shown(short="-o", metavar="DIR")]
    """Folder of the crops."""
    side: Annotated[int, Field(ge=1, le=16_384)] = 224
    """Side of a crop, in pixels."""
    short_side: Annotated[int, Field(ge=1, le=16_384)] = 256
    """Resize images so that their shorter side has this many pixels before they are cropped."""
    least_kept: Share = 0.5
    """Share of the mask that must be in a crop, 0–1."""
    seed: Annotated[int, Field(ge=0, le=2**63 - 1)] = 0
    """Seed of the crops that are drawn."""
    progress: Progress = False

    @model_validator(mode="after")
    def _fits(self) -> CropParameters:
        _check_order(self, ("side", "short_side"))
        return self
