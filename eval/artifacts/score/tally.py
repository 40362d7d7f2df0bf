"""Counts of one truth and several sets of predictions, image by image: pixels, regions, presence.

Regions are drawn for one image at a time, and nothing is kept of their pixels.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np

from uncanny.errors import ItemsError, Problem, UsageError
from uncanny.eval.artifacts.data.pixels import Drawing, DrawnRegion, image_size
from uncanny.eval.artifacts.data.records import ArtifactImage, ArtifactSet
from uncanny.eval.artifacts.parameters import RegionSettings
from uncanny.eval.artifacts.score.result import SCOPES, LeftOut
from uncanny.eval.common.inputs.sources import of_place
from uncanny.eval.common.matching import Pairing, pair_images
from uncanny.eval.common.pixels.crops import Size
from uncanny.eval.metrics.intervals import Bools, Floats
from uncanny.eval.metrics.regions import artifact_ratio, instance_counts, region_counts
from uncanny.schema import ArtifactCategory, Source

OnImage = Callable[[int, int], None]
LOW_CONFIDENCE = "true region below the confidence wanted"
GATED = "predicted region of an image that is called real: does not count"
NO_GATE = "image without a verdict: its predicted regions count"
# Columns of `Tally.counts`.
PIXELS: Final = slice(0, 3)
REGIONS: Final = slice(3, 7)
PRESENCE: Final = slice(7, 10)
WITH_PREDICTED: Final = 10
WITH_TRUE: Final = 11
COUNTS: Final = 12


@dataclass(slots=True, eq=False)
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
    def of(cls, name: str, predictions: ArtifactSet, truth: ArtifactSet, settings: RegionSettings) -> Tally:
        """Raises UsageError where the two have no image in common."""
        drawing = Drawing()
        pairing = pair_images(predictions.images, truth.images, labels=(predictions.origin, truth.origin))
        pairs = [
            (image, predictions.images[place])
            for image, place in zip(truth.images, pairing.predicted, strict=True)
            if place is not None and image.record.status == "ok"
        ]
        rows = [pair for pair in pairs if pair[1].record.status in ("ok", "partial")]
        if settings.gated:
            rows = [(true, _gated(predicted, drawing.notes, settings)) for true, predicted in rows]
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
            drawing,
            rows,
            np.zeros((*shape, COUNTS)),
            np.zeros(shape, dtype=np.bool_),
            np.full(len(rows), np.nan),
            [None] * len(rows),
            left_out,
            predictions.has_categories and truth.has_categories,
        )


def count(
    truth: ArtifactSet, tallies: Mapping[str, Tally], settings: RegionSettings, on_image: OnImage | None
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
    settings: RegionSettings,
) -> None:
    if image.record.source == "real" and not settings.real_images:
        return
    size: Size | None = None
    drawn_at: Size | None = None
    true: list[DrawnRegion] | None = None
    for tally, row in rows:
        predicted = tally.rows[row][1]
        if image.regions or predicted.regions:
            try:
                size = image_size(image, predicted, (truth.pictures, tally.predictions.pictures))
            except UsageError as error:
                tally.drawing.problems.append(Problem(image.image, None, str(error), line=predicted.line))
                continue
            tally.sizes[row] = size
            if drawn_at not in (None, size):
                message = f"is of {size[0]} × {size[1]} pixels here, and of another size in other predictions"
                tally.drawing.problems.append(Problem(image.image, None, message, line=predicted.line))
                continue
            if true is None:
                drawn_at, true = size, _true_regions(image, size, drawing, settings)
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
    return record.regions is not None and (record.status == "ok" or bool(record.lacking))


def verdict(image: ArtifactImage, settings: RegionSettings) -> Source | None:
    """What the image is taken for, by its score where nothing else says it; None without either."""
    record = image.record
    if record.source is not None or record.score is None:
        return record.source
    return "generated" if record.score >= settings.score_threshold else "real"


def _gated(image: ArtifactImage, notes: Counter[str], settings: RegionSettings) -> ArtifactImage:
    """The prediction as it counts behind its verdict: called real, the image has no artifact."""
    called = verdict(image, settings)
    notes[NO_GATE] += called is None
    if called != "real" or image.record.regions is None:
        return image
    notes[GATED] += len(image.regions)
    nothing = {"regions": (), "unmeasured": (), "incomplete": ()}
    return replace(image, record=image.record.model_copy(update=nothing))


def _true_regions(
    image: ArtifactImage, size: Size, drawing: Drawing, settings: RegionSettings
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
    settings: RegionSettings,
) -> None:
    lacking = tally.rows[row][1].record.lacking
    for category in lacking:
        tally.unmeasured.setdefault(category, []).append(tally.rows[row][0].image)
    named = tally.has_categories and _say_categories(predicted) and _say_categories(true)
    for place, scope in enumerate(SCOPES):
        if lacking if scope == "agnostic" else scope in lacking or not named:
            continue
        tally.measured[row, place] = True
        ours = [each for each in predicted if scope in ("agnostic", each.region.category)]
        theirs = [each for each in true if scope in ("agnostic", each.region.category)]
        if ours or theirs:
            tally.counts[row, place] = _counts(ours, theirs, settings)


def _say_categories(regions: Sequence[DrawnRegion]) -> bool:
    """Whether one says its category, or there is none at all: of an image without any nothing can be said."""
    return not regions or any(each.region.category is not None for each in regions)


def _counts(
    predicted: Sequence[DrawnRegion], true: Sequence[DrawnRegion], settings: RegionSettings
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
