"""What the score of predicted artifacts is, as values to compute, print or plot with.

`ArtifactScore` prints as the tables of `uncanny artifacts score`, `to_json()` is what the command writes with
`--json`, `to_pandas()` has a row a figure, and `images_to_pandas()` one an image.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, get_args

from uncanny.eval.artifacts.data.records import ArtifactImage
from uncanny.eval.artifacts.parameters import RegionSettings
from uncanny.eval.common.estimates import Estimate, Share
from uncanny.eval.common.groups import ImageGroups
from uncanny.eval.common.json_fields import JsonFields, as_json, intervals_json, json_of
from uncanny.eval.common.matching import Rule
from uncanny.eval.common.published import published
from uncanny.eval.common.score_json import about
from uncanny.eval.common.tables.paired import tests_json
from uncanny.eval.common.tables.table import RowsResult, Table, data_frame
from uncanny.eval.metrics.intervals import LEVEL
from uncanny.eval.metrics.paired import ImageClass, PairedTest
from uncanny.eval.metrics.regions import presence_by_chance
from uncanny.records.run_folder import Unfinished
from uncanny.schema import ARTIFACT_CATEGORIES, ArtifactCategory, Source

if TYPE_CHECKING:
    from pandas import DataFrame

    from uncanny.eval.common.pages.pictures import PicturesMode
    from uncanny.eval.common.pixels.crops import Size

# A category, or all of them together: the union of their regions, whatever they are called.
Scope = ArtifactCategory | Literal["agnostic"]
SCOPES: Final[tuple[Scope, ...]] = (*ARTIFACT_CATEGORIES, "agnostic")
PIXEL: Final = ("iou", "precision", "recall", "f1")
INSTANCE: Final = ("precision", "recall", "f1")
JUDGED: Final = ("balanced_accuracy", "precision", "recall", "f1")
COLUMNS: Final = ("prediction", "part", "of", "figure", "value", "low", "high")
IMAGE_COLUMNS: Final = (
    *("prediction", "image", "predicted", "source", "judged", "generator", "par"),
    *("scope", "both", "predicted_pixels", "true_pixels", *PIXEL),
    *("right_regions", "predicted_regions", "found_regions", "true_regions"),
)
PAGE: Final = "artifacts.html"
RegionFigure = Literal["pixel_f1", "pixel_iou", "instance_f1"]
REGION_FIGURES: Final[tuple[RegionFigure, ...]] = get_args(RegionFigure)


@dataclass(frozen=True, slots=True)
class ScopeScore:
    """The figures of one category, or of all together. Each is None where there is nothing to count out of.

    `pixel` and `instance` are of sums over all images, `pixel_mean` is the mean over the images where the
    figure is something. `images` are those measured; `with_true` and `with_predicted` how many of them have a
    region on that side. Of `pixels` and `regions` the counts are there, weighed where they were.
    """

    images: int
    pixel: Mapping[str, Estimate]
    pixel_mean: Mapping[str, Estimate]
    instance: Mapping[str, Estimate]
    presence: Estimate
    with_true: int
    with_predicted: int
    pixels: Mapping[str, float]
    regions: Mapping[str, float]

    @property
    def presence_by_chance(self) -> Estimate:
        """Presence F1 of a guesser who tosses a coin for each image."""
        return Estimate(presence_by_chance(self.with_true, self.images))

    @property
    def groups(self) -> Iterator[tuple[str, str, Estimate]]:
        """Group, figure, value; in the order in which they are shown."""
        for group, figures in (
            ("pixel", self.pixel),
            ("pixel_mean", self.pixel_mean),
            ("instance", self.instance),
        ):
            for name, estimate in figures.items():
                yield group, name, estimate
        yield "presence", "f1", self.presence
        yield "presence", "by_chance", self.presence_by_chance


@dataclass(frozen=True, slots=True)
class Authenticity:
    """How well generated images are told from real ones, generated as positive.

    `figures` are by the names of `JUDGED`; None where a class is missing. `counts` are images by what they
    are and what they were taken for. `without_verdict` are predictions that say neither, in no figure.
    """

    figures: Mapping[str, Estimate]
    counts: Mapping[Source, Mapping[Source, int]]
    without_verdict: int

    @property
    def images(self) -> int:
        return sum(sum(judged.values()) for judged in self.counts.values())


@dataclass(frozen=True, slots=True)
class AccuracyBin:
    """Generated images whose value is from `lo` to `hi`, and how many of them were taken for generated."""

    lo: float
    hi: float
    accuracy: Share

    @property
    def n(self) -> int:
        return self.accuracy.out_of


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Names of images that are in no figure, or not in all.

    `only_truth`: without a prediction. `only_predictions`: the truth does not have them. `unfinished`: whose
    prediction failed, or was not finished. `real`: in no figure about regions. `not_annotated`: of which the
    truth has no regions, not even none. `not_located`: the same of the prediction. `unmeasured`: by category,
    asked about without an answer. `without_value`: generated and judged, in no bin. `without_source`: judged,
    and the truth does not say what they are.
    """

    only_truth: tuple[str, ...] = ()
    only_predictions: tuple[str, ...] = ()
    unfinished: tuple[str, ...] = ()
    real: tuple[str, ...] = ()
    not_annotated: tuple[str, ...] = ()
    not_located: tuple[str, ...] = ()
    unmeasured: Mapping[ArtifactCategory, tuple[str, ...]] = field(default_factory=dict)
    without_value: tuple[str, ...] = ()
    without_source: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Example:
    """An image to look at, with its regions in both sets, and how well they fit as one."""

    true: ArtifactImage
    predicted: ArtifactImage
    size: Size
    iou: float | None
    regions: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class PredictionScore:
    """One set of predictions against the truth.

    `notes` counts what was read or drawn with allowances. `examples` are those that fit worst and best,
    `per_image` is a row an image and scope. `has_failures` says that predictions failed, and count nowhere.
    """

    name: str
    path: str
    pictures: Path
    aj: Authenticity
    by_generator: Mapping[str, Authenticity]
    scopes: Mapping[Scope, ScopeScore]
    has_categories: bool
    bins: tuple[AccuracyBin, ...]
    left_out: LeftOut
    notes: Mapping[str, int]
    paired_by: Mapping[Rule, int]
    unfinished: Unfinished | None
    texts: tuple[str, ...]
    examples: tuple[Example, ...]
    per_image: tuple[Mapping[str, Any], ...] = field(repr=False)

    @property
    def has_failures(self) -> bool:
        return bool(self.left_out.unfinished)

    @property
    def categories(self) -> Mapping[ArtifactCategory, ScopeScore]:
        """Without the figures of all categories together."""
        return {name: self.scopes[name] for name in ARTIFACT_CATEGORIES}

    @property
    def agnostic(self) -> ScopeScore:
        return self.scopes["agnostic"]


@dataclass(frozen=True, slots=True)
class RegionDifference(JsonFields):
    """`first` minus `second` in a figure of all artifacts together, on the images measured in both.

    `images` are those of them with a region in any set. `p_value` is that of a t test on the resamples of
    the difference, `adjusted_p` the same corrected by Holm for all pairs with this figure; both are None
    where there is nothing to measure, and without resamples.
    """

    json_keys: ClassVar = "first second figure images difference=estimate p_value adjusted_p"

    first: str
    second: str
    figure: RegionFigure
    images: int
    estimate: Estimate
    p_value: float | None
    adjusted_p: float | None = None


@dataclass(frozen=True, slots=True)
class TruthInfo:
    """Where the truth came from, how many images and regions it has, and what was mended of it.

    `digest` is of its images, sources and regions, not of the order.
    """

    path: str
    pictures: Path
    images: int
    regions: int
    notes: Mapping[str, int]
    digest: str


@dataclass(frozen=True, slots=True, repr=False)
class ArtifactScore(RowsResult, Mapping[str, PredictionScore]):
    """The scores of all predictions, by their names.

    Of several, `tests` compare the verdicts of each two by class, and `differences` their regions. `groups`
    are images that intervals and tests take together.
    """

    columns: ClassVar = COLUMNS

    predictions: Mapping[str, PredictionScore]
    settings: RegionSettings
    truth: TruthInfo
    published: bool = False
    tests: Mapping[ImageClass, Sequence[PairedTest]] = field(default_factory=dict)
    differences: tuple[RegionDifference, ...] = ()
    groups: ImageGroups | None = None

    def __getitem__(self, name: str) -> PredictionScore:
        return self.predictions[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.predictions)

    def __len__(self) -> int:
        return len(self.predictions)

    @property
    def texts(self) -> dict[str, tuple[str, ...]]:
        """By name the ids of the prompts that the predictions' records name."""
        return {name: each.texts for name, each in self.predictions.items()}

    def tables(self) -> tuple[Table, ...]:
        """The overview, then categories and bins of each set of predictions."""
        from uncanny.eval.artifacts.score.tables import tables

        return tables(self)

    def to_json(self) -> dict[str, Any]:
        """Every figure, 0–1, None where of nothing. Of several predictions it is `{"models": {NAME: …}}`, and
        each two of them under `mcnemar` and `differences`."""
        each = {name: prediction_json(one, self) for name, one in self.predictions.items()}
        more: dict[str, Any] = {
            "about": about(
                {"truth": self.truth.digest},
                self.texts,
                resamples=self.settings.resamples,
                seed=self.settings.seed,
                groups=self.groups,
            ),
            **({"published": published("artifact_scores")} if self.published else {}),
        }
        if len(each) == 1:
            return next(iter(each.values())) | more
        differences = [difference.to_json() for difference in self.differences]
        tests = tests_json((name, test) for name, family in self.tests.items() for test in family)
        return {"models": each, "mcnemar": tests, "differences": differences, **more}

    def rows(self) -> Iterator[dict[str, Any]]:
        """One a figure: the prediction, `aj`, `generator`, `pad` or `bin`, what it is of, name and value."""
        for name, prediction in self.predictions.items():
            for part, of, figure, estimate in _figures(prediction):
                low, high = estimate.interval or (None, None)
                yield dict(zip(COLUMNS, (name, part, of, figure, estimate.value, low, high), strict=True))

    def images_to_pandas(self) -> DataFrame:
        """A row an image and scope, with its counts and pixel metrics. Raises UsageError as `to_pandas`."""
        rows = (
            {"prediction": name, **row} for name, each in self.predictions.items() for row in each.per_image
        )
        return data_frame(IMAGE_COLUMNS, rows)

    def report(self, path: str | Path, *, pictures: PicturesMode = "link") -> Path:
        """Write the page to `path` and return it; pictures are linked or embedded. Raises OSError."""
        from uncanny.eval.artifacts.report import write_artifacts_page

        return write_artifacts_page(self, Path(path), pictures=pictures)


def _figures(prediction: PredictionScore) -> Iterator[tuple[str, str, str, Estimate | Share]]:
    for figure, estimate in prediction.aj.figures.items():
        yield "aj", "all", figure, estimate
    for generator, authenticity in prediction.by_generator.items():
        for figure, estimate in authenticity.figures.items():
            yield "generator", generator, figure, estimate
    for scope, score in prediction.scopes.items():
        for group, figure, estimate in score.groups:
            yield "pad", scope, f"{group}_{figure}", estimate
    for each in prediction.bins:
        yield "bin", f"{each.lo:g}–{each.hi:g}", "accuracy", each.accuracy


def prediction_json(prediction: PredictionScore, score: ArtifactScore) -> dict[str, Any]:
    """The figures of one set; beside the keys of the format `images`, `counts`, `left_out`, `notes`, `path`,
    `settings`, and in `pad` `agnostic.instance` and `agnostic.presence`."""
    settings = score.settings
    aj, scopes = prediction.aj, prediction.scopes
    generators = prediction.by_generator
    return {
        "aj": {
            **as_json(aj.figures),
            "by_generator": {
                name: {**as_json(each.figures), "n": sum(each.counts["generated"].values())}
                for name, each in generators.items()
            },
            **json_of(aj, "images counts without_verdict"),
        },
        "pad": {
            "protocol": settings.protocol,
            "categories": {name: _scope(each, settings.t) for name, each in prediction.categories.items()},
            "agnostic": _scope(scopes["agnostic"], settings.t),
            "has_categories": prediction.has_categories,
        },
        "par": {
            "by": settings.bins,
            "bins": [json_of(each, "lo hi n accuracy") for each in prediction.bins],
        },
        "ci": {
            "aj": intervals_json(aj.figures),
            "by_generator": {name: intervals_json(each.figures) for name, each in generators.items()},
            "categories": {name: _scope_intervals(each) for name, each in prediction.categories.items()},
            "agnostic": _scope_intervals(scopes["agnostic"]),
            "level": LEVEL,
            "resamples": settings.resamples,
            "seed": settings.seed,
            "over": "images",
        },
        "path": prediction.path,
        "truth": json_of(score.truth, "path images regions notes"),
        **json_of(prediction, "left_out notes paired_by"),
        "settings": json_of(settings, "t min_confidence weight_confidence real_images gated score_threshold"),
    }


def _scope(score: ScopeScore, t: float) -> dict[str, Any]:
    return {
        **json_of(score, "pixel pixel_mean"),
        "instance": {**as_json(score.instance), "t": t},
        "presence": json_of(
            score,
            "f1=presence.value by_chance=presence_by_chance.value n_true=with_true n_pred=with_predicted",
        ),
        "images": score.images,
        "counts": json_of(score, "pixels regions"),
    }


def _scope_intervals(score: ScopeScore) -> dict[str, Any]:
    figures = {name: getattr(score, name) for name in ("pixel", "pixel_mean", "instance")}
    ends: dict[str, Any] = intervals_json({**figures, "presence": {"f1": score.presence}})
    return ends
