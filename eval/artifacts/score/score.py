"""Artifact scoring: predicted regions and verdicts against one truth.

Source: *Unveiling Perceptual Artifacts* (X-AIGD), sections 3.3 and 4 (authenticity judgment, perceptual
artifact detection, pixel metrics pooled over the set, category-agnostic, PAR), A.5 (instances), C.1
(presence), A.6 (confidence). Paper and released scorer differ in the instance metrics; `protocol` chooses,
and `metrics.regions` says how they differ. Where the paper is silent: real images are in no figure about
regions unless `real_images` is given, since artifacts are annotated in generated images; what a prediction
failed on is in no figure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from uncanny.errors import ItemsError, Problem, UsageError
from uncanny.eval.artifacts.data.load import PathLike, Records, load
from uncanny.eval.artifacts.data.pixels import Drawing, DrawnRegion, image_size
from uncanny.eval.artifacts.data.records import ArtifactImage, ArtifactSet, numbers_of
from uncanny.eval.artifacts.score.result import (
    INSTANCE,
    JUDGED,
    PIXEL,
    SCOPES,
    AccuracyBin,
    ArtifactScore,
    Authenticity,
    Example,
    LeftOut,
    PredictionScore,
    ScopeScore,
    Settings,
    TruthInfo,
)
from uncanny.eval.common.anomalies.load import name_paths
from uncanny.eval.common.estimates import Estimate, Share
from uncanny.eval.common.masks import HEAT_MAP_THRESHOLD, Size
from uncanny.eval.common.matching import Pairing, pair_images
from uncanny.eval.common.sources import of_place
from uncanny.eval.metrics.intervals import (
    RESAMPLES,
    Bools,
    Floats,
    percentile_intervals,
    resampled_sums,
    wilson_interval,
)
from uncanny.eval.metrics.regions import (
    REGION_PROTOCOLS,
    TOLERANCE,
    Bin,
    RegionProtocol,
    agreement,
    artifact_ratio,
    instance_counts,
    judgement,
    overlap,
    presence,
    region_counts,
    value_bins,
)
from uncanny.parameters import check_callback, check_parameters
from uncanny.schema import ARTIFACT_CATEGORIES, ArtifactCategory, Source
from uncanny.wording import option, shown

OnImage = Callable[[int, int], None]
Artifacts = PathLike | ArtifactSet | Records
PAR = "par"
BINS = 5
EXAMPLES = 12
LOW_CONFIDENCE = "true region below the confidence wanted"
_COUNTS = 12
_AGNOSTIC = len(ARTIFACT_CATEGORIES)


def score(
    predictions: Artifacts | Sequence[PathLike] | Mapping[str, Artifacts],
    *,
    truth: Artifacts,
    protocol: RegionProtocol = "paper",
    t: float = TOLERANCE,
    min_confidence: float | None = None,
    weight_confidence: bool = False,
    bins: str = PAR,
    n_bins: int = BINS,
    real_images: bool = False,
    score_threshold: float = 0.5,
    heat_maps: bool = False,
    heat_map_threshold: float = HEAT_MAP_THRESHOLD,
    root: PathLike | None = None,
    resamples: int = RESAMPLES,
    seed: int = 0,
    published: bool = False,
    on_image: OnImage | None = None,
) -> ArtifactScore:
    """Authenticity, pixel, instance and presence figures of predicted artifacts, and accuracy by bins.

    Every figure lies in 0–1, higher is better, has a 95 % interval of a bootstrap over images, and is None
    where there is nothing to count out of. Pixel figures are of sums over all images, as published ones are;
    means over images stand beside them. Images without a finished prediction are in no figure.

    Arguments:
        predictions: what `load` takes, or several: a list of paths, or a dict of names and what `load` takes.
        truth: what `load` takes; the word `scenes` is the truth of the bundled images.
        protocol: of the instance figures, `paper` or `release` (the authors' scorer); see `metrics.regions`.
        t: the share of a predicted region that has to lie in a true one, above 0 and up to 1.
        min_confidence: leave true regions out whose confidence is lower, 0–1; those without one stay.
        weight_confidence: weigh what is true by its confidence; without one it weighs 1.
        bins: what accuracy on generated images is binned by: `par`, the share of an image that is artifact,
            or a key of the records that holds numbers, such as `niqe`, in the truth or else the predictions.
        n_bins: how many bins with about as many images each; images without artifacts have one apart in PAR.
        real_images: have real images in figures about regions, where every predicted region is wrong.
        score_threshold: from which score on an image without a verdict is taken for generated, 0–1.
        heat_maps: mask files of the predictions are heat maps.
        heat_map_threshold: from which share of white on a heat map is artifact, above 0 and up to 1.
        root: where paths of images and masks start, for predictions and truth; else the folder of each file.
        resamples: bootstrap resamples over images; 0 leaves intervals out.
        seed: the same seed gives the same intervals.
        published: show the published rows beside yours, in tables and page.
        on_image: called after each image with how many are done, and of how many.

    Raises UsageError for options out of range, for files that cannot be read or do not fit the truth;
    ItemsError, which is one, with every region and mask that is wrong.

    >>> import uncanny.artifacts
    >>> square = {"category": "semantics", "polygon": [[1, 1], [3, 1], [3, 3], [1, 3]]}
    >>> box = {"category": "semantics", "box": [1, 1, 6, 6]}
    >>> image = {"image": "a.png", "width": 8, "height": 8}
    >>> predicted, true = {**image, "regions": [box]}, {**image, "regions": [square]}
    >>> scores = uncanny.artifacts.score([predicted], truth=[true])
    >>> scores["predictions"].scopes["semantics"].pixel["iou"].value
    0.36
    """
    check_parameters(root=root, resamples=resamples, seed=seed, published=published, heat_maps=heat_maps)
    check_callback("on_image", on_image, 2)
    settings = _settings(
        Settings(
            protocol,
            t,
            min_confidence,
            weight_confidence,
            bins,
            n_bins,
            real_images,
            score_threshold,
            resamples,
            seed,
        )
    )
    named = {
        name: load(each, root=root, heat_maps=heat_maps, heat_map_threshold=heat_map_threshold)
        for name, each in _named(predictions).items()
    }
    true = load(truth, root=root)
    tallies = {name: Tally.of(name, each, true) for name, each in named.items()}
    truth_drawing = _count(true, tallies, settings, on_image)
    values = _bin_values(true, tallies, settings)
    regions = sum(len(image.regions) for image in true.images)
    return ArtifactScore(
        {name: _scored(tally, values[name], settings) for name, tally in tallies.items()},
        settings,
        TruthInfo(
            true.origin,
            true.pictures,
            len(true.images),
            regions,
            dict(Counter(true.notes) + truth_drawing.notes),
        ),
        published,
    )


def _settings(settings: Settings) -> Settings:
    ranges: tuple[tuple[str, float | None, bool], ...] = (
        ("t", settings.t, True),
        ("min_confidence", settings.min_confidence, False),
        ("score_threshold", settings.score_threshold, False),
    )
    for name, value, above in ranges:
        if value is None and name == "min_confidence":
            continue
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if not number or not 0 <= value <= 1 or (above and value == 0):  # type: ignore[operator]
            raise UsageError(
                f"{option(name)} is {shown(value)}",
                remedy=f"Give a number {'above' if above else 'from'} 0 {'and up ' if above else ''}to 1.",
            )
    if settings.protocol not in REGION_PROTOCOLS:
        raise UsageError(
            f"{option('protocol')} is {shown(settings.protocol)}",
            remedy=f"Give {' or '.join(REGION_PROTOCOLS)}.",
        )
    if not isinstance(settings.bins, str) or not settings.bins:
        raise UsageError(f"{option('bins')} is {shown(settings.bins)}", remedy="Give the name of a column.")
    if (
        isinstance(settings.n_bins, bool)
        or not isinstance(settings.n_bins, int)
        or not 1 <= settings.n_bins <= 100
    ):
        raise UsageError(f"{option('n_bins')} is {shown(settings.n_bins)}", remedy="Give 1 to 100.")
    return settings


def _named(predictions: object) -> Mapping[str, Artifacts]:
    if isinstance(predictions, Mapping):
        if not predictions:
            raise UsageError("there are no predictions to score", remedy="Give at least one file or run.")
        return {str(name): each for name, each in predictions.items()}
    if isinstance(predictions, str) or hasattr(predictions, "__fspath__"):
        predictions = [predictions]
    if isinstance(predictions, list | tuple) and predictions:
        from os import PathLike as OsPath
        from pathlib import Path

        if all(isinstance(each, str | OsPath) for each in predictions):
            paths = [(None, Path(each)) for each in predictions]
            return dict[str, Artifacts](name_paths(paths))
    return {"predictions": predictions}  # type: ignore[dict-item]  # `load` says what is wrong with it


@dataclass(slots=True)
class Tally:
    """What is counted of one set of predictions: a row an image that both sets have.

    `counts` has, by image and scope, pixels (both, predicted, true), regions (right, predicted, found, true),
    presence (right, predicted, true), and the last two of these as they are, without weights; all 0 where
    `measured` is False.
    """

    name: str
    predictions: ArtifactSet
    pairing: Pairing
    drawing: Drawing
    rows: list[tuple[ArtifactImage, ArtifactImage]]
    counts: Floats
    measured: Bools
    par: Floats
    sizes: list[Size | None]
    left_out: LeftOut
    has_categories: bool
    unmeasured: dict[ArtifactCategory, list[str]] = field(default_factory=dict)

    @classmethod
    def of(cls, name: str, predictions: ArtifactSet, truth: ArtifactSet) -> Tally:
        """Raises UsageError where the two have no image in common."""
        pairing = pair_images(predictions.images, truth.images, labels=(predictions.origin, truth.origin))
        pairs = [
            (image, predictions.images[place])
            for image, place in zip(truth.images, pairing.predicted, strict=True)
            if place is not None and image.record.status == "ok"
        ]
        rows = [pair for pair in pairs if pair[1].record.status in ("ok", "partial")]
        left_out = LeftOut(
            tuple(
                image.image
                for image, place in zip(truth.images, pairing.predicted, strict=True)
                if place is None
            ),
            tuple(predictions.images[place].image for place in pairing.surplus),
            tuple(true.image for true, predicted in pairs if predicted.record.status != "ok"),
            not_annotated=tuple(image.image for image in truth.images if image.record.status != "ok"),
        )
        shape = (len(rows), len(SCOPES))
        return cls(
            name,
            predictions,
            pairing,
            Drawing(),
            rows,
            np.zeros((*shape, _COUNTS)),
            np.zeros(shape, dtype=np.bool_),
            np.full(len(rows), np.nan),
            [None] * len(rows),
            left_out,
            predictions.has_categories and truth.has_categories,
        )


def _count(
    truth: ArtifactSet, tallies: Mapping[str, Tally], settings: Settings, on_image: OnImage | None
) -> Drawing:
    """Goes through the truth once, whatever is compared with it; nothing is kept of the pixels.

    Raises ItemsError with everything that is wrong with regions, of all sets.
    """
    drawing = Drawing()
    places: dict[str, dict[int, int]] = {
        name: {id(true): row for row, (true, _) in enumerate(tally.rows)} for name, tally in tallies.items()
    }
    for done, image in enumerate(truth.images, start=1):
        rows = [
            (tally, row)
            for name, tally in tallies.items()
            if (row := places[name].get(id(image))) is not None
        ]
        if rows and image.record.regions is not None:
            _count_image(image, rows, truth, drawing, settings)
        if on_image is not None:
            on_image(done, len(truth.images))
    wrong = [(truth.origin, drawing.problems)]
    wrong += [(tally.predictions.origin, tally.drawing.problems) for tally in tallies.values()]
    wrong = [(origin, problems) for origin, problems in wrong if problems]
    if len(wrong) == 1:
        raise ItemsError(wrong[0][0], wrong[0][1], remedy="Correct these; nothing was scored.")
    if wrong:
        every = [of_place(problem, origin) for origin, problems in wrong for problem in problems]
        raise ItemsError("truth and predictions", every, remedy="Correct these; nothing was scored.")
    return drawing


def _count_image(
    image: ArtifactImage,
    rows: Sequence[tuple[Tally, int]],
    truth: ArtifactSet,
    drawing: Drawing,
    settings: Settings,
) -> None:
    if image.record.source == "real" and not settings.real_images:
        return
    size, true = None, None
    for tally, row in rows:
        predicted = tally.rows[row][1]
        if image.regions or predicted.regions:
            try:
                size = image_size(image, predicted, (truth.pictures, tally.predictions.pictures))
            except UsageError as error:
                tally.drawing.problems.append(Problem(image.image, None, str(error), line=predicted.line))
                continue
            tally.sizes[row] = size
            if true is None:
                true = _true_regions(image, size, drawing, settings)
        drawn = true or []
        if _is_located(predicted):
            ours = [] if size is None else tally.drawing.regions(predicted, size)
            _count_pair(tally, row, drawn, ours, settings)
        if not image.regions:
            tally.par[row] = 0.0
        elif size is not None:
            tally.par[row] = artifact_ratio([each.pixels for each in drawn], size)


def _is_located(predicted: ArtifactImage) -> bool:
    """Whether the prediction says where artifacts are: a partial one only where it says what it lacks."""
    record = predicted.record
    return record.regions is not None and (record.status == "ok" or bool(record.unmeasured))


def _true_regions(
    image: ArtifactImage, size: Size, drawing: Drawing, settings: Settings
) -> list[DrawnRegion]:
    regions = [each for each in drawing.regions(image, size) if each.pixels.pixels.size]
    if settings.min_confidence is None:
        return regions
    kept = [each for each in regions if _confidence(each) >= settings.min_confidence]
    drawing.notes[LOW_CONFIDENCE] += len(regions) - len(kept)
    return kept


def _confidence(drawn: DrawnRegion) -> float:
    return 1.0 if drawn.region.confidence is None else drawn.region.confidence


def _count_pair(
    tally: Tally,
    row: int,
    true: Sequence[DrawnRegion],
    predicted: Sequence[DrawnRegion],
    settings: Settings,
) -> None:
    lacking = set(tally.rows[row][1].record.unmeasured)
    for category in lacking:
        tally.unmeasured.setdefault(category, []).append(tally.rows[row][0].image)
    for place, scope in enumerate(SCOPES):
        if lacking if scope == "agnostic" else scope in lacking or not tally.has_categories:
            continue
        tally.measured[row, place] = True
        ours = [each for each in predicted if scope in ("agnostic", each.region.category)]
        theirs = [each for each in true if scope in ("agnostic", each.region.category)]
        if ours or theirs:
            tally.counts[row, place] = _counts(ours, theirs, settings)


def _counts(
    predicted: Sequence[DrawnRegion], true: Sequence[DrawnRegion], settings: Settings
) -> tuple[float, ...]:
    ours, theirs = [each.pixels for each in predicted], [each.pixels for each in true]
    weights = [_confidence(each) for each in true] if settings.weight_confidence else None
    pixels = region_counts(ours, theirs, weights)
    regions = instance_counts(ours, theirs, t=settings.t, protocol=settings.protocol, weights=weights)
    worth = max(weights, default=1.0) if weights is not None else 1.0
    is_predicted, is_true = bool(predicted), bool(true)
    both = worth * (is_predicted and is_true)
    called = both if is_true else float(is_predicted)
    return (*pixels, *regions, both, called, worth * is_true, is_predicted, is_true)


def _bin_values(truth: ArtifactSet, tallies: Mapping[str, Tally], settings: Settings) -> dict[str, Floats]:
    """By predictions, the value that each image is binned by; NaN where it has none.

    Raises UsageError where no record has a number of this name.
    """
    if settings.bins == PAR:
        return {name: tally.par for name, tally in tallies.items()}
    values = {
        name: np.array(
            [
                numbers_of(true.record).get(
                    settings.bins, numbers_of(predicted.record).get(settings.bins, np.nan)
                )
                for true, predicted in tally.rows
            ],
            dtype=np.float64,
        )
        for name, tally in tallies.items()
    }
    if all(np.isnan(each).all() for each in values.values()):
        sets = (truth, *(tally.predictions for tally in tallies.values()))
        known = {key for each in sets for image in each.images for key in numbers_of(image.record)}
        raise UsageError(
            f"no record has a number {settings.bins!r} to make bins of",
            remedy=f"Columns with numbers: {', '.join([PAR, *sorted(known)])}.",
        )
    return values


def _scored(tally: Tally, values: Floats, settings: Settings) -> PredictionScore:
    true, judged = _sources(tally, settings)
    columns = _Columns(tally, true, judged)
    sums = columns.table.sum(axis=0)[None]
    drawn = (
        resampled_sums(columns.table, np.random.default_rng(settings.seed), resamples=settings.resamples)
        if settings.resamples and len(columns.table)
        else None
    )
    estimates = _Estimates(columns, sums, drawn)
    bins, without_value = _accuracy_bins(tally, values, true, judged, settings)
    return PredictionScore(
        tally.name,
        tally.predictions.origin,
        tally.predictions.pictures,
        estimates.authenticity(0, int(((true != "") & (judged == "")).sum())),
        {name: estimates.authenticity(place) for place, name in enumerate(columns.generators, start=1)},
        {scope: estimates.scope(place, tally) for place, scope in enumerate(SCOPES)},
        tally.has_categories,
        bins,
        _left_out(tally, settings, without_value),
        dict(Counter(tally.predictions.notes) + tally.drawing.notes),
        dict(tally.pairing.by),
        tally.predictions.unfinished,
        tally.predictions.texts,
        _examples(tally),
        tuple(_image_rows(tally, true, judged)),
    )


def _sources(tally: Tally, settings: Settings) -> tuple[NDArray[np.str_], NDArray[np.str_]]:
    """What each image is, and what it is taken for; empty where nobody says."""

    def judged(image: ArtifactImage) -> Source | None:
        record = image.record
        if record.source is not None or record.score is None:
            return record.source
        return "generated" if record.score >= settings.score_threshold else "real"

    return (
        np.array([true.record.source or "" for true, _ in tally.rows], dtype="<U9"),
        np.array([judged(predicted) or "" for _, predicted in tally.rows], dtype="<U9"),
    )


class _Columns:
    """Everything that is summed over images, as columns of one table: all figures see the same resamples."""

    def __init__(self, tally: Tally, true: NDArray[np.str_], judged: NDArray[np.str_]) -> None:
        counts = tally.counts
        with np.errstate(invalid="ignore"):
            self.per_image: Floats = np.stack(
                overlap(counts[..., 0], counts[..., 1], counts[..., 2]), axis=-1
            )
        self.per_image[~tally.measured] = np.nan
        is_some = ~np.isnan(self.per_image)
        made_by = np.array([true.record.generator or "" for true, _ in tally.rows], dtype=object)
        self.generators: tuple[str, ...] = tuple(sorted({name for name in made_by.tolist() if name}))
        groups = []
        for name in ("", *self.generators):
            # Real images that say no generator stand beside each of them.
            within = (
                (made_by == name) | ((true == "real") & (made_by == "")) if name else np.ones(len(true), bool)
            )
            for source in ("generated", "real"):
                known = within & (true == source) & (judged != "")
                groups += [known, known & (judged == source)]
        self.judged: Bools = np.stack(groups, axis=1)
        images = len(tally.rows)
        self.parts = (counts[0].size if images else len(SCOPES) * _COUNTS, len(SCOPES) * len(PIXEL))
        self.table: Floats = np.concatenate(
            [
                counts.reshape(images, -1),
                np.nan_to_num(self.per_image).reshape(images, -1),
                is_some.reshape(images, -1),
                self.judged,
            ],
            axis=1,
        ).astype(np.float64)


class _Estimates:
    """Figures of the sums, each with its interval of the resampled sums."""

    def __init__(self, columns: _Columns, sums: Floats, drawn: Floats | None) -> None:
        self._columns = columns
        self._both = [self._split(each) for each in (sums, drawn) if each is not None]

    def _split(self, sums: Floats) -> tuple[Floats, Floats, Floats]:
        counts, means = self._columns.parts
        shape = (len(sums), len(SCOPES))
        with np.errstate(invalid="ignore", divide="ignore"):
            mean = sums[:, counts : counts + means] / sums[:, counts + means : counts + 2 * means]
        return (
            sums[:, :counts].reshape(*shape, _COUNTS),
            mean.reshape(*shape, len(PIXEL)),
            sums[:, counts + 2 * means :],
        )

    def _estimates(self, names: Sequence[str], figures: Sequence[Sequence[Floats]]) -> dict[str, Estimate]:
        """`figures` are those of the sums, and of the resampled sums where there are some."""
        values = [float(each[0]) for each in figures[0]]
        intervals = (
            percentile_intervals(np.stack(figures[1], axis=1)) if len(figures) > 1 else [None] * len(values)
        )
        return {
            name: Estimate(None) if np.isnan(value) else Estimate(value, interval)
            for name, value, interval in zip(names, values, intervals, strict=True)
        }

    def scope(self, place: int, tally: Tally) -> ScopeScore:
        measured = int(tally.measured[:, place].sum())
        counts = [each[0][:, place] for each in self._both]
        total = counts[0][0]
        if not measured:
            nothing = {name: Estimate(None) for name in PIXEL}
            pixel, means, instance, f1 = (
                nothing,
                nothing,
                {name: Estimate(None) for name in INSTANCE},
                Estimate(None),
            )
        else:
            pixel = self._estimates(PIXEL, [overlap(*each[:, :3].T) for each in counts])
            means = self._estimates(PIXEL, [list(each[1][:, place].T) for each in self._both])
            instance = self._estimates(INSTANCE, [agreement(*each[:, 3:7].T) for each in counts])
            f1 = self._estimates(["f1"], [[presence(*each[:, 7:10].T)] for each in counts])["f1"]
        return ScopeScore(
            measured,
            pixel,
            means,
            instance,
            f1,
            int(total[11]),
            int(total[10]),
            dict(zip(("both", "predicted", "true"), total[:3].tolist(), strict=True)),
            dict(zip(("right", "predicted", "found", "true"), total[3:7].tolist(), strict=True)),
        )

    def authenticity(self, place: int, without_verdict: int = 0) -> Authenticity:
        """Of all images, or of those of a generator."""
        at = 4 * place
        sums = [each[2][:, at : at + 4] for each in self._both]
        figures = self._estimates(JUDGED, [judgement(*each.T) for each in sums])
        generated, called_generated, real, called_real = (int(each) for each in sums[0][0])
        return Authenticity(
            figures,
            {
                "generated": {"generated": called_generated, "real": generated - called_generated},
                "real": {"generated": real - called_real, "real": called_real},
            },
            without_verdict,
        )


def _accuracy_bins(
    tally: Tally, values: Floats, true: NDArray[np.str_], judged: NDArray[np.str_], settings: Settings
) -> tuple[tuple[AccuracyBin, ...], tuple[str, ...]]:
    """Over generated images with a verdict: what a detector makes of those with much artifact and little."""
    rows: Bools = (true == "generated") & (judged != "")
    bins: list[Bin] = value_bins(
        np.where(rows, values, np.nan), settings.n_bins, zero_apart=settings.bins == PAR
    )
    scored = []
    for each in bins:
        n, right = int(each.where.sum()), int((each.where & (judged == "generated")).sum())
        share = Share(
            right / n if n else None, right, n, wilson_interval(right, n) if settings.resamples else None
        )
        scored.append(AccuracyBin(each.lo, each.hi, share))
    without = tuple(tally.rows[row][0].image for row in np.flatnonzero(rows & np.isnan(values)))
    return tuple(scored), without


def _left_out(tally: Tally, settings: Settings, without_value: tuple[str, ...]) -> LeftOut:
    def names(wanted: Callable[[ArtifactImage, ArtifactImage], bool]) -> tuple[str, ...]:
        return tuple(image.image for image, predicted in tally.rows if wanted(image, predicted))

    return replace(
        tally.left_out,
        real=() if settings.real_images else names(lambda image, _: image.record.source == "real"),
        not_annotated=(
            *tally.left_out.not_annotated,
            *names(lambda image, _: image.record.regions is None and image.record.source != "real"),
        ),
        not_located=names(
            lambda image, predicted: predicted.record.regions is None and image.record.source != "real"
        ),
        unmeasured={name: tuple(images) for name, images in tally.unmeasured.items()},
        without_value=without_value,
    )


def _examples(tally: Tally) -> tuple[Example, ...]:
    """Those images that fit worst, then best, with regions on either side."""
    counts = tally.counts[:, _AGNOSTIC]
    fit = overlap(counts[:, 0], counts[:, 1], counts[:, 2]).iou
    rows = [int(row) for row in np.flatnonzero(~np.isnan(fit)) if tally.sizes[row] is not None]
    rows.sort(key=lambda row: fit[row])
    chosen = rows if len(rows) <= EXAMPLES else [*rows[: EXAMPLES // 2], *rows[-(EXAMPLES // 2) :]]
    examples = []
    for row in chosen:
        size = tally.sizes[row]
        assert size is not None
        regions = dict(zip(("right", "predicted", "found", "true"), counts[row, 3:7].tolist(), strict=True))
        examples.append(Example(*tally.rows[row], size, float(fit[row]), regions))
    return tuple(examples)


def _image_rows(tally: Tally, true: NDArray[np.str_], judged: NDArray[np.str_]) -> list[Mapping[str, object]]:
    rows: list[Mapping[str, object]] = []
    fits = np.stack(overlap(*np.moveaxis(tally.counts[..., :3], -1, 0)), axis=-1)
    for row, (image, predicted) in enumerate(tally.rows):
        par = float(tally.par[row])
        about = {
            "image": image.image,
            "predicted": predicted.image,
            "source": str(true[row]) or None,
            "judged": str(judged[row]) or None,
            "generator": image.record.generator,
            "par": None if np.isnan(par) else par,
        }
        for place, scope in enumerate(SCOPES):
            if not tally.measured[row, place]:
                continue
            both, ours, theirs, *regions = tally.counts[row, place, :7].tolist()
            names = ("right_regions", "predicted_regions", "found_regions", "true_regions")
            rows.append(
                {
                    **about,
                    "scope": scope,
                    "both": both,
                    "predicted_pixels": ours,
                    "true_pixels": theirs,
                    **{
                        name: None if np.isnan(value) else float(value)
                        for name, value in zip(PIXEL, fits[row, place], strict=True)
                    },
                    **dict(zip(names, regions, strict=True)),
                }
            )
    return rows
