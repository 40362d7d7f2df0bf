"""From counts to figures: sums over images with intervals, bins, examples, rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from uncanny.eval.artifacts.data.records import ArtifactImage
from uncanny.eval.artifacts.parameters import RegionSettings
from uncanny.eval.artifacts.score.result import (
    INSTANCE,
    JUDGED,
    PIXEL,
    SCOPES,
    AccuracyBin,
    Authenticity,
    Example,
    LeftOut,
    PredictionScore,
    ScopeScore,
)
from uncanny.eval.artifacts.score.tally import (
    COUNTS,
    PIXELS,
    PRESENCE,
    REGIONS,
    WITH_PREDICTED,
    WITH_TRUE,
    Tally,
    verdict,
)
from uncanny.eval.common.estimates import Estimate, share_of
from uncanny.eval.metrics import PAR
from uncanny.eval.metrics.intervals import (
    Bools,
    Codes,
    Floats,
    group_codes,
    percentile_intervals,
    resampled_sums,
    sums_by_group,
    units,
)
from uncanny.eval.metrics.regions import Bin, agreement, judgement, overlap, presence, value_bins
from uncanny.schema import ARTIFACT_CATEGORIES

EXAMPLES = 12
AGNOSTIC = len(ARTIFACT_CATEGORIES)
_REGION_NAMES = ("right", "predicted", "found", "true")


GroupOf = Mapping[str, int]


def codes_of(images: Iterable[str], groups: GroupOf | None) -> Codes | None:
    """The group of each image; None where each is by itself."""
    return None if groups is None else group_codes(groups[image] for image in images)


def scored(
    tally: Tally, values: Floats, settings: RegionSettings, groups: GroupOf | None = None
) -> PredictionScore:
    """The figures of one set of predictions. `values` are what its images are binned by, NaN for none.

    `groups` has the number of each image's group, None where each is by itself.
    """
    true, judged = sources(tally, settings)
    codes = codes_of((image.image for image, _ in tally.rows), groups)
    columns = _Columns(tally, true, judged, codes)
    sums = columns.table.sum(axis=0)[None]
    drawn = (
        resampled_sums(columns.resampled, np.random.default_rng(settings.seed), resamples=settings.resamples)
        if settings.resamples and len(columns.table)
        else None
    )
    estimates = _Estimates(columns, sums, drawn)
    bins, without_value = _accuracy_bins(tally, values, true, judged, codes, settings)
    return PredictionScore(
        tally.name,
        tally.predictions.origin,
        tally.predictions.pictures,
        estimates.authenticity(0, int(((true != "") & (judged == "")).sum())),
        {name: estimates.authenticity(place) for place, name in enumerate(columns.generators, start=1)},
        {scope: estimates.scope(place, tally) for place, scope in enumerate(SCOPES)},
        tally.has_categories,
        bins,
        _left_out(tally, settings, without_value, (true == "") & (judged != "")),
        dict(Counter(tally.predictions.notes) + tally.drawing.notes),
        dict(tally.pairing.by),
        tally.predictions.unfinished,
        tally.predictions.texts,
        _examples(tally),
        tuple(_image_rows(tally, true, judged)),
    )


def sources(tally: Tally, settings: RegionSettings) -> tuple[NDArray[np.str_], NDArray[np.str_]]:
    """What each image is, and what it is taken for; empty where nobody says."""
    return (
        np.array([true.record.source or "" for true, _ in tally.rows], dtype="<U9"),
        np.array([verdict(predicted, settings) or "" for _, predicted in tally.rows], dtype="<U9"),
    )


class _Columns:
    """Everything that is summed over images, as columns of one table: all figures see the same resamples."""

    def __init__(
        self, tally: Tally, true: NDArray[np.str_], judged: NDArray[np.str_], codes: Codes | None
    ) -> None:
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
        # Said and not left to NumPy, which cannot tell of no image.
        self.parts = (len(SCOPES) * COUNTS, len(SCOPES) * len(PIXEL))
        self.table: Floats = np.concatenate(
            [
                counts.reshape(images, self.parts[0]),
                np.nan_to_num(self.per_image).reshape(images, self.parts[1]),
                is_some.reshape(images, self.parts[1]),
                self.judged,
            ],
            axis=1,
        ).astype(np.float64)
        self._codes = codes
        # A row an image, or a group of images.
        self.resampled: Floats = self.table if codes is None else sums_by_group(self.table, codes)

    def units(self, rows: Bools) -> int:
        """How many images, or groups of images, are among some of them."""
        return units(rows, self._codes)


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
            sums[:, :counts].reshape(*shape, COUNTS),
            mean.reshape(*shape, len(PIXEL)),
            sums[:, counts + 2 * means :],
        )

    def _estimates(
        self, names: Sequence[str], figures: Sequence[Sequence[Floats]], images: int
    ) -> dict[str, Estimate]:
        """`figures` are those of the sums, and of the resampled sums where there are some, over `images`."""
        values = [float(each[0]) for each in figures[0]]
        intervals = (
            percentile_intervals(np.stack(figures[1], axis=1), images=[images] * len(values))
            if len(figures) > 1
            else [None] * len(values)
        )
        return {
            name: Estimate(None) if np.isnan(value) else Estimate(value, interval)
            for name, value, interval in zip(names, values, intervals, strict=True)
        }

    def scope(self, place: int, tally: Tally) -> ScopeScore:
        """All figures of a category, or of all together; of a single image there is nothing to resample."""
        has_any: Bools = np.any(tally.counts[:, place] != 0, axis=1)
        with_regions = self._columns.units(has_any)
        sums = self._both if with_regions > 1 else self._both[:1]
        counts = [each[0][:, place] for each in sums]
        total = counts[0][0]
        pixel = self._estimates(PIXEL, [overlap(*each[:, PIXELS].T) for each in counts], with_regions)
        means = self._estimates(PIXEL, [list(each[1][:, place].T) for each in sums], with_regions)
        instance = self._estimates(
            INSTANCE, [agreement(*each[:, REGIONS].T) for each in counts], with_regions
        )
        present = [[presence(*each[:, PRESENCE].T)] for each in counts]
        f1 = self._estimates(["f1"], present, with_regions)["f1"]
        return ScopeScore(
            int(tally.measured[:, place].sum()),
            pixel,
            means,
            instance,
            f1,
            int(total[WITH_TRUE]),
            int(total[WITH_PREDICTED]),
            dict(zip(("both", "predicted", "true"), total[PIXELS].tolist(), strict=True)),
            dict(zip(_REGION_NAMES, total[REGIONS].tolist(), strict=True)),
        )

    def authenticity(self, place: int, without_verdict: int = 0) -> Authenticity:
        """Of all images, or of those of a generator."""
        at = 4 * place
        sums = [each[2][:, at : at + 4] for each in self._both]
        generated, called_generated, real, called_real = (int(each) for each in sums[0][0])
        judged = [judgement(*each.T) for each in sums]
        # A class that is there once or twice tells no more of a figure of both.
        sizes = [self._columns.units(self._columns.judged[:, at + of]) for of in (0, 2)]
        figures = self._estimates(JUDGED, judged, min(sizes) or max(sizes))
        return Authenticity(
            figures,
            {
                "generated": {"generated": called_generated, "real": generated - called_generated},
                "real": {"generated": real - called_real, "real": called_real},
            },
            without_verdict,
        )


def _accuracy_bins(
    tally: Tally,
    values: Floats,
    true: NDArray[np.str_],
    judged: NDArray[np.str_],
    codes: Codes | None,
    settings: RegionSettings,
) -> tuple[tuple[AccuracyBin, ...], tuple[str, ...]]:
    """Over generated images with a verdict: what a detector makes of those with much artifact and little."""
    rows: Bools = (true == "generated") & (judged != "")
    bins: list[Bin] = value_bins(
        np.where(rows, values, np.nan), settings.n_bins, zero_apart=settings.bins == PAR
    )
    scored = []
    for each in bins:
        share = share_of((judged == "generated")[each.where], None if codes is None else codes[each.where])
        if not settings.resamples:
            share = replace(share, interval=None)
        scored.append(AccuracyBin(each.lo, each.hi, share))
    without = tuple(tally.rows[row][0].image for row in np.flatnonzero(rows & np.isnan(values)))
    return tuple(scored), without


def _left_out(
    tally: Tally, settings: RegionSettings, without_value: tuple[str, ...], without_source: Bools
) -> LeftOut:
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
        unmeasured={
            name: tuple(tally.unmeasured[name]) for name in ARTIFACT_CATEGORIES if name in tally.unmeasured
        },
        without_value=without_value,
        without_source=tuple(tally.rows[row][0].image for row in np.flatnonzero(without_source)),
    )


def _examples(tally: Tally) -> tuple[Example, ...]:
    """Those images that fit worst, then best, with regions on either side.

    Where not every category was asked about, by those that were, and with the regions of those.
    """
    asked = np.where(tally.measured[..., None], tally.counts, 0.0)
    counts = np.where(
        tally.measured[:, AGNOSTIC, None],
        tally.counts[:, AGNOSTIC],
        asked.sum(axis=1) - asked[:, AGNOSTIC],
    )
    fit = overlap(counts[:, 0], counts[:, 1], counts[:, 2]).iou
    rows = [int(row) for row in np.flatnonzero(~np.isnan(fit)) if tally.sizes[row] is not None]
    rows.sort(key=lambda row: fit[row])
    chosen = rows if len(rows) <= EXAMPLES else [*rows[: EXAMPLES // 2], *rows[-(EXAMPLES // 2) :]]
    examples = []
    for row in chosen:
        size = tally.sizes[row]
        assert size is not None
        regions = dict(zip(_REGION_NAMES, counts[row, REGIONS].tolist(), strict=True))
        true, predicted = tally.rows[row]
        true, predicted = (_without(each, predicted.record.lacking) for each in (true, predicted))
        examples.append(Example(true, predicted, size, float(fit[row]), regions))
    return tuple(examples)


def _without(image: ArtifactImage, lacking: Collection[str]) -> ArtifactImage:
    """Without the regions that nobody looked for, or not to the end: they would look missed, or wrong."""
    if not lacking or not image.regions:
        return image
    kept = tuple(region for region in image.regions if region.category not in lacking)
    return replace(image, record=image.record.model_copy(update={"regions": kept}))


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
