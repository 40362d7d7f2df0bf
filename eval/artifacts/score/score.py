"""Artifact scoring: predicted regions and verdicts against one truth.

Source: *Unveiling Perceptual Artifacts* (X-AIGD), sections 3.3 and 4 (authenticity judgment, perceptual
artifact detection, pixel metrics pooled over the set, category-agnostic, PAR), A.5 (instances), C.1
(presence), A.6 (confidence). Paper and released scorer differ in the instance metrics; `protocol` chooses,
and `metrics.regions` says how they differ. Deviation: the paper's task looks for artifacts in images that are
called generated; here regions count whatever the verdict unless `gated` is given, so that they say how well
a model finds artifacts and not how well it judges images. Where the paper is silent: real images are in no
figure about regions unless `real_images` is given, since artifacts are annotated in generated images; what a
prediction failed on is in no figure.

Not from the paper: two sets of predictions on the same images. Verdicts are compared by McNemar's exact test,
as everywhere. Regions are compared in the figures of all artifacts together, over the images that were
measured in both: the difference has a percentile interval of a paired bootstrap over images, and a t test in
units of its bootstrap standard error (`intervals.resampled_t_test`), corrected by Holm for all pairs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from os import PathLike as OsPath
from pathlib import Path
from typing import Final

import numpy as np

from uncanny.errors import UsageError
from uncanny.eval.artifacts.data.load import Artifacts, PathLike, load
from uncanny.eval.artifacts.data.records import ArtifactImage, ArtifactSet, numbers_of
from uncanny.eval.artifacts.parameters import ArtifactScoreParameters, LoadParameters, RegionSettings
from uncanny.eval.artifacts.score.figures import AGNOSTIC, GroupOf, codes_of, scored, sources
from uncanny.eval.artifacts.score.result import (
    REGION_FIGURES,
    ArtifactScore,
    RegionDifference,
    RegionFigure,
    TruthInfo,
)
from uncanny.eval.artifacts.score.tally import COUNTS, PIXELS, REGIONS, Tally, count, verdict
from uncanny.eval.common.anomalies.load import name_paths
from uncanny.eval.common.estimates import Estimate
from uncanny.eval.common.groups import image_groups
from uncanny.eval.common.pixels.masks import mask_identity
from uncanny.eval.common.score_json import digest_of
from uncanny.eval.metrics import PAR
from uncanny.eval.metrics.association import holm
from uncanny.eval.metrics.intervals import (
    Floats,
    percentile_intervals,
    resampled_sums,
    resampled_t_test,
    sums_by_group,
)
from uncanny.eval.metrics.paired import ImageClass, PairedTest, paired_tests_by_class
from uncanny.eval.metrics.regions import agreement, overlap
from uncanny.parameters import takes
from uncanny.wording import option


@takes(ArtifactScoreParameters)
def score(
    predictions: Artifacts | Sequence[PathLike] | Mapping[str, Artifacts], parameters: ArtifactScoreParameters
) -> ArtifactScore:
    """Score predicted artifacts: authenticity, pixels, instances and presence, and accuracy by bins.

    Each figure is in 0–1, higher is better, and has a 95 % bootstrap interval over images. It is None if its
    denominator is 0. Pixel figures are computed from sums over all images, as published ones are; means over
    images are given too. No figure counts images without a finished prediction.

    `predictions` is what `load` takes, or several: a list of paths, or a dict of names and what `load` takes.

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
    settings = parameters.part(RegionSettings)
    reading = parameters.part(LoadParameters)
    named = {name: load(each, **reading.given) for name, each in _named(predictions).items()}
    for name, each in named.items() if settings.gated else ():
        if all(verdict(image, settings) is None for image in each.images):
            raise UsageError(
                f"{name}: no prediction says whether its image is generated, which {option('gated')} needs",
                remedy="Give predictions with `source` or `score`, or leave the option out.",
            )
    true = load(parameters.truth, root=parameters.root)
    groups = image_groups((image.record for image in true.images), parameters.group_by)
    group_of = (
        None if groups is None else dict(zip((each.image for each in true.images), groups.codes, strict=True))
    )
    tallies = {name: Tally.of(name, each, true, settings) for name, each in named.items()}
    truth_drawing = count(true, tallies, settings, parameters.on_image)
    values = _bin_values(true, tallies, settings)
    regions = sum(len(image.regions) for image in true.images)
    return ArtifactScore(
        {name: scored(tally, values[name], settings, group_of) for name, tally in tallies.items()},
        settings,
        TruthInfo(
            true.origin,
            true.pictures,
            len(true.images),
            regions,
            dict(Counter(true.notes) + truth_drawing.notes),
            digest_of(_truth_line(image) for image in true.images),
        ),
        parameters.published,
        verdict_tests(tallies, settings, group_of),
        region_differences(tallies, settings, group_of),
        groups,
    )


def _truth_line(image: ArtifactImage) -> list[object]:
    """What figures depend on in the truth about an image; of a mask file the content, wherever it is."""
    record, regions = image.record, None
    if record.regions is not None:
        regions = [each.model_dump(mode="json", exclude={"note"}) for each in record.regions]
        for each in regions:
            if isinstance(each["mask"], str):
                each["mask"] = mask_identity(image.folder / each["mask"])
    return [record.image, record.source, record.generator, record.status, regions]


def _named(predictions: object) -> Mapping[str, Artifacts]:
    if isinstance(predictions, Mapping):
        if not predictions:
            raise UsageError("there are no predictions to score", remedy="Give at least one file or run.")
        return {str(name): each for name, each in predictions.items()}
    if isinstance(predictions, str) or hasattr(predictions, "__fspath__"):
        predictions = [predictions]
    items = predictions if isinstance(predictions, list | tuple) else ()
    if items and all(isinstance(each, str | OsPath) for each in items):
        return dict[str, Artifacts](name_paths([(None, Path(each)) for each in items]))
    return {"predictions": predictions}  # `load` says what is wrong with it


def _bin_values(
    truth: ArtifactSet, tallies: Mapping[str, Tally], settings: RegionSettings
) -> dict[str, Floats]:
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
            f"no record has a number in {settings.bins!r} to bin by",
            remedy=f"Columns with numbers: {', '.join([PAR, *sorted(known)])}.",
        )
    return values


_FIGURES: Final[Mapping[RegionFigure, Callable[[Floats], Floats]]] = {
    "pixel_f1": lambda sums: overlap(*sums[:, PIXELS].T).f1,
    "pixel_iou": lambda sums: overlap(*sums[:, PIXELS].T).iou,
    "instance_f1": lambda sums: agreement(*sums[:, REGIONS].T).f1,
}


def verdict_tests(
    tallies: Mapping[str, Tally], settings: RegionSettings, groups: GroupOf | None = None
) -> dict[ImageClass, list[PairedTest]]:
    """Each two on the images with a known source that both have a verdict on."""
    judged = [
        {
            image.image: (true == "generated", true == said)
            for (image, _), true, said in zip(tally.rows, *sources(tally, settings), strict=True)
            if true and said
        }
        for tally in tallies.values()
    ]
    generated = {image: is_generated for own in judged for image, (is_generated, _) in own.items()}
    answered = np.array([[image in own for image in generated] for own in judged], dtype=np.bool_)
    right = np.array([[own.get(image, (False, False))[1] for image in generated] for own in judged])
    shape = (len(tallies), len(generated))
    return paired_tests_by_class(
        list(tallies),
        right.astype(np.bool_).reshape(shape),
        answered.reshape(shape),
        np.array(list(generated.values()), dtype=np.bool_),
        codes_of(generated, groups),
    )


def region_differences(
    tallies: Mapping[str, Tally], settings: RegionSettings, groups: GroupOf | None = None
) -> tuple[RegionDifference, ...]:
    """Each two, the first minus the second, on the images whose regions were measured in both."""
    compared = [
        each
        for first, second in combinations(tallies, 2)
        for each in _of_pair(first, second, tallies, settings, groups)
    ]
    adjusted: dict[int, float | None] = {}
    for figure in REGION_FIGURES:
        places = [place for place, each in enumerate(compared) if each.figure == figure]
        adjusted |= zip(places, holm([compared[place].p_value for place in places]), strict=True)
    return tuple(replace(each, adjusted_p=adjusted[place]) for place, each in enumerate(compared))


def _of_pair(
    first: str,
    second: str,
    tallies: Mapping[str, Tally],
    settings: RegionSettings,
    groups: GroupOf | None,
) -> list[RegionDifference]:
    rows = [_measured(tallies[name]) for name in (first, second)]
    shared = [image for image in rows[0] if image in rows[1]]
    sides = [np.array([own[image] for image in shared], dtype=np.float64).reshape(-1, COUNTS) for own in rows]
    # Images without a region in any set say nothing.
    table = np.concatenate(sides, axis=1)
    images = int(table.any(axis=1).sum())
    codes = codes_of(shared, groups)
    together = table if codes is None else sums_by_group(table, codes)
    drawn = None
    if settings.resamples and len(together) > 1:
        drawn = resampled_sums(together, np.random.default_rng(settings.seed), resamples=settings.resamples)
    units = int(together.any(axis=1).sum())
    return [
        _difference(first, second, name, figure, (images, units), table.sum(axis=0)[None], drawn)
        for name, figure in _FIGURES.items()
    ]


def _measured(tally: Tally) -> dict[str, Floats]:
    """By image the counts of all artifacts together, where they were measured."""
    return {
        image.image: tally.counts[row, AGNOSTIC]
        for row, (image, _) in enumerate(tally.rows)
        if tally.measured[row, AGNOSTIC]
    }


def _difference(
    first: str,
    second: str,
    name: RegionFigure,
    figure: Callable[[Floats], Floats],
    sizes: tuple[int, int],
    sums: Floats,
    drawn: Floats | None,
) -> RegionDifference:
    """`sizes` count images, and what was resampled: these, or groups of them."""
    images, units = sizes

    def gap(sums: Floats) -> Floats:
        ours, theirs = np.split(sums, 2, axis=1)
        apart: Floats = figure(ours) - figure(theirs)
        return apart

    value = float(gap(sums)[0])
    if np.isnan(value):
        return RegionDifference(first, second, name, images, Estimate(None), None)
    if drawn is None:
        return RegionDifference(first, second, name, images, Estimate(value), None)
    apart = gap(drawn)
    (interval,) = percentile_intervals(apart[:, None])
    p_value = resampled_t_test(value, apart, units)
    return RegionDifference(first, second, name, images, Estimate(value, interval), p_value)
