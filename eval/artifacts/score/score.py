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
from uncanny.eval.artifacts.data.load import Artifacts, PathLike, load
from uncanny.eval.artifacts.data.records import ArtifactImage, ArtifactSet, numbers_of
from uncanny.eval.artifacts.parameters import ArtifactScoreParameters, LoadParameters, RegionSettings
from uncanny.eval.artifacts.score.differences import region_differences, verdict_tests
from uncanny.eval.artifacts.score.figures import scored
from uncanny.eval.artifacts.score.result import ArtifactScore, TruthInfo
from uncanny.eval.artifacts.score.tally import Tally, count, verdict
from uncanny.eval.common.anomalies.load import name_paths
from uncanny.eval.common.groups import image_groups
from uncanny.eval.common.pixels.masks import mask_identity
from uncanny.eval.common.score_json import digest_of
from uncanny.eval.metrics import PAR
from uncanny.eval.metrics.intervals import Floats
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
