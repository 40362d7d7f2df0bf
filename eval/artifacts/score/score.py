"""Artifact scoring: predicted regions and verdicts against one truth.

Source: *Unveiling Perceptual Artifacts* (X-AIGD), sections 3.3 and 4 (authenticity judgment, perceptual
artifact detection, pixel metrics pooled over the set, category-agnostic, PAR), A.5 (instances), C.1
(presence), A.6 (confidence). Paper and released scorer differ in the instance metrics; `protocol` chooses,
and `metrics.regions` says how they differ. Deviation: the paper's task looks for artifacts in images that are
called generated; here regions count whatever the verdict unless `gated` is given, so that they say how well
a model finds artifacts and not how well it judges images. Where the paper is silent: real images are in no
figure about regions unless `real_images` is given, since artifacts are annotated in generated images; what a
prediction failed on is in no figure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from os import PathLike as OsPath
from pathlib import Path

import numpy as np

from uncanny.errors import UsageError
from uncanny.eval.artifacts.data.load import PathLike, Records, load
from uncanny.eval.artifacts.data.records import ArtifactImage, ArtifactSet, numbers_of
from uncanny.eval.artifacts.score.differences import region_differences, verdict_tests
from uncanny.eval.artifacts.score.figures import PAR, scored
from uncanny.eval.artifacts.score.result import ArtifactScore, Settings, TruthInfo
from uncanny.eval.artifacts.score.tally import OnImage, Tally, count, verdict
from uncanny.eval.common.anomalies.load import name_paths
from uncanny.eval.common.groups import image_groups
from uncanny.eval.common.pixels.masks import HEAT_MAP_THRESHOLD, mask_identity
from uncanny.eval.common.score_json import digest_of
from uncanny.eval.metrics import RESAMPLES
from uncanny.eval.metrics.intervals import Floats
from uncanny.eval.metrics.regions import REGION_PROTOCOLS, TOLERANCE, RegionProtocol
from uncanny.parameters import check_callback, check_parameters
from uncanny.wording import option, shown

Artifacts = PathLike | ArtifactSet | Records
BINS = 5


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
    gated: bool = False,
    score_threshold: float = 0.5,
    heat_maps: bool = False,
    heat_map_threshold: float = HEAT_MAP_THRESHOLD,
    root: PathLike | None = None,
    group_by: str | None = None,
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
        gated: predicted regions count only in images that the prediction calls generated, by its verdict or
            its score, as in the paper's task; an image without either has no gate.
        score_threshold: from which score on an image without a verdict is taken for generated, 0–1.
        heat_maps: mask files of the predictions are heat maps.
        heat_map_threshold: from which share of white on a heat map is artifact, above 0 and up to 1.
        root: where paths of images and masks start, for predictions and truth; else the folder of each file.
        group_by: column of the truth whose images belong together, so that intervals and tests count them as
            one: by default those of a pair or an original; `image` takes each by itself.
        resamples: bootstrap resamples over images, or groups of them; 0 leaves intervals out.
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
    check_parameters(
        group_by=group_by, root=root, resamples=resamples, seed=seed, published=published, heat_maps=heat_maps
    )
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
            gated,
            score_threshold,
            resamples,
            seed,
        )
    )
    named = {
        name: load(each, root=root, heat_maps=heat_maps, heat_map_threshold=heat_map_threshold)
        for name, each in _named(predictions).items()
    }
    for name, each in named.items() if settings.gated else ():
        if all(verdict(image, settings) is None for image in each.images):
            raise UsageError(
                f"{name}: no prediction says whether its image is generated, which {option('gated')} needs",
                remedy="Give predictions with `source` or `score`, or leave the option out.",
            )
    true = load(truth, root=root)
    groups = image_groups((image.record for image in true.images), group_by)
    group_of = (
        None if groups is None else dict(zip((each.image for each in true.images), groups.codes, strict=True))
    )
    tallies = {name: Tally.of(name, each, true, settings) for name, each in named.items()}
    truth_drawing = count(true, tallies, settings, on_image)
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
        published,
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
    items = predictions if isinstance(predictions, list | tuple) else ()
    if items and all(isinstance(each, str | OsPath) for each in items):
        return dict[str, Artifacts](name_paths([(None, Path(each)) for each in items]))
    return {"predictions": predictions}  # type: ignore[dict-item]  # `load` says what is wrong with it


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
