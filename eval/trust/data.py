"""A run with the images of its sample that people have judged whole: what both say of each image."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

from uncanny.errors import UsageError
from uncanny.eval.common.alike import Origin
from uncanny.eval.common.confidence import Sure
from uncanny.eval.common.inputs.runs import check_findings, open_run, stream_annotations
from uncanny.eval.common.inputs.sources import left_out_by
from uncanny.eval.metrics.audit import VISIBLE_BELOW, implausibility
from uncanny.eval.metrics.corrected import Design
from uncanny.records.calibration import MadeWith
from uncanny.records.reviews import ReviewedImage, ReviewLog, review_image
from uncanny.records.run_folder import check_recorded
from uncanny.records.sample import Sample, read_sample
from uncanny.schema import KINDS, Anomaly, Kind
from uncanny.wording import counted, option

Floats = npt.NDArray[np.float64]

# The columns of what is known of an image: whether something is visibly wrong, how many things are, their
# summed implausibility, and whether there is one of each kind.
VISIBLE, COUNT, UNREAL, FIRST_KIND = range(4)
KIND_COLUMN: Final[dict[Kind, int]] = {kind: FIRST_KIND + place for place, kind in enumerate(KINDS)}


def figures_of(anomalies: Sequence[Anomaly]) -> list[float]:
    """What is wrong with an image as numbers: a row of the columns above; all 0 where nothing is."""
    row = [0.0] * (FIRST_KIND + len(KINDS))
    for each in anomalies:
        row[VISIBLE] = float(row[VISIBLE] or each.severity < VISIBLE_BELOW)
        row[COUNT] += 1
        row[UNREAL] += implausibility(each.severity)
        if each.kind is not None:
            row[KIND_COLUMN[each.kind]] = 1.0
    return row


@dataclass(frozen=True, slots=True, eq=False)
class JudgedRun:
    """What the model says of all images that count, and people of those they judged whole.

    `model` has shape (N, columns), `people` and `people_unsure` (n, columns) in the order of
    `design.judged`; the latter counts findings that people are unsure of as true. `judged` are these images
    with their findings and verdicts. `open_images` of the sample are not judged yet, and `skipped` of them
    come before one that is, or are completed. `hidden` are complete but for findings that are shown from a
    lower confidence on, `uncompleted` but for somebody who says that nothing is missing. `gone` are no longer
    in the run, or other images now. `stale` lines of reviews are about what was found in an image before it
    was annotated again; they are not used. `left_out` records have no whole annotation. `sure` counts the
    findings of the model that it was not sure enough of. `made_with` says how its findings came about.
    """

    run: Path
    sample: Sample
    design: Design
    model: Floats
    people: Floats
    people_unsure: Floats
    judged: tuple[ReviewedImage, ...]
    open_images: int
    skipped: int = 0
    hidden: int = 0
    uncompleted: int = 0
    gone: tuple[str, ...] = ()
    stale: int = 0
    left_out: int = 0
    sure: Sure = field(default_factory=Sure)
    made_with: MadeWith = field(default_factory=MadeWith)


def read_judged(run: Path, min_confidence: float) -> JudgedRun:
    """The run and what people judged of its sample; findings of the model from `min_confidence`, 0-1, count.

    People who judge only a part of the sample judge a random part of it, its first images: an image's
    probability is then that of being drawn, times the part that is judged. Whoever passes over images because
    they are hard judges another part, which is why those are counted.

    Raises UsageError where it is not a run or no sample was drawn, RecordError for an invalid line.
    """
    if not run.is_dir():
        raise UsageError(f"{run} is not a run folder", remedy="Pass the folder of a run.")
    read = open_run(run)
    read.folder.check_links()
    if not read.file.is_file():
        check_recorded(run, read.file.name)
    check_findings(read.file)
    sample = read_sample(run)
    if sample is None:
        raise UsageError(
            f"{run} has no sample of images that people judge",
            remedy=f"Draw one with `uncanny sample {run}` and {option('size', 'N')}; have people judge it.",
        )
    drawn = {each.image: (place, each) for place, each in enumerate(sample.images)}
    reviews = ReviewLog.of_run(run).by_image()
    model: list[list[float]] = []
    judged: list[tuple[int, float, ReviewedImage]] = []
    sure, origin, left_out = Sure(min_confidence), Origin(), 0
    last_judged, still_open = -1, list[tuple[int, bool]]()
    hidden = uncompleted = stale = 0
    for record in stream_annotations(read.file):
        if left_out_by(record) is not None:
            left_out += 1
            continue
        origin.add(record)
        model.append(figures_of(sure.record(record).anomalies))
        place, chosen = drawn.get(record.image, (-1, None))
        if chosen is None or (None not in (chosen.sha256, record.sha256) and chosen.sha256 != record.sha256):
            continue
        del drawn[record.image]
        image = review_image(record, reviews.get(record.image, ()))
        stale += len(image.stale)
        if image.is_judged(min_confidence):
            judged.append((len(model) - 1, chosen.probability, image))
            last_judged = max(last_judged, place)
        else:
            still_open.append((place, bool(image.completed_by)))
            hidden += bool(image.completed_by)
            uncompleted += not image.completed_by and image.has_decisions(min_confidence) is True
    part = len(judged) / max(1, len(judged) + len(still_open))
    design = Design(
        size=len(model),
        judged=np.array([place for place, *_ in judged], np.int64),
        probabilities=np.array([probability * part for _, probability, _ in judged], np.float64),
    )
    return JudgedRun(
        run=run,
        sample=sample,
        design=design,
        model=_table(model),
        people=_table([figures_of(image.true_anomalies()) for *_, image in judged]),
        people_unsure=_table([figures_of(image.true_anomalies(unsure=True)) for *_, image in judged]),
        judged=tuple(image for *_, image in judged),
        open_images=len(still_open),
        skipped=sum(place < last_judged or completed for place, completed in still_open),
        hidden=hidden,
        uncompleted=uncompleted,
        gone=tuple(drawn),
        stale=stale,
        left_out=left_out,
        sure=sure,
        made_with=origin.provenance(read).as_made_with(),
    )


def skipped_words(judged: JudgedRun) -> str:
    """What to know where people judged a later image of the sample and left an earlier one open, without a
    full stop."""
    if judged.hidden:
        have = "has" if judged.hidden == 1 else "have"
        return (
            f"{counted(judged.hidden, 'completed image')} of the sample {have} findings from confidence "
            f"{judged.sure.least:g} on that nobody judged; judge them, or take the confidence that was "
            "judged with"
        )
    return (
        f"{counted(judged.skipped, 'image')} of the sample {'was' if judged.skipped == 1 else 'were'} passed "
        "over; judge them, because figures are off if they are harder than the others"
    )


def _table(rows: Sequence[Sequence[float]]) -> Floats:
    return np.array(rows, np.float64).reshape(len(rows), FIRST_KIND + len(KINDS))


@dataclass(frozen=True, slots=True)
class JudgedFinding:
    """A finding of the model that people have judged: whether they accepted it; None for unsure.

    `image` is the digest of its image, or the name where that is not known: one image may have two names.
    `weight` is how many images of the run its `image` stands for: 1 over the probability of being drawn.
    """

    image: str
    weight: float
    accepted: bool | None
    kind: Kind | None
    agents: tuple[str, ...]
    confidence: float | None
    votes: tuple[str, ...]


def judged_findings(judged: JudgedRun, min_confidence: float) -> Iterator[JudgedFinding]:
    """The model's findings of judged images, from `min_confidence`, 0-1, on, in their order."""
    for image, probability in zip(judged.judged, judged.design.probabilities, strict=True):
        key, weight = image.annotation.sha256 or image.annotation.image, 1 / float(probability)
        for each in image.anomalies:
            model = each.original
            if model is None or each.decision is None:
                continue
            if model.confidence is not None and model.confidence < min_confidence:
                continue
            accepted = None if each.decision == "unsure" else each.decision == "accept"
            votes = tuple(each.votes.values())
            agents, confidence = model.found_by or (), model.confidence
            yield JudgedFinding(key, weight, accepted, model.kind, agents, confidence, votes)


def missed(images: Sequence[ReviewedImage], min_confidence: float) -> tuple[int, int]:
    """How many true anomalies the model did not find, or was not sure enough of, and how many there are."""
    true = found = 0
    for image in images:
        true += len(image.true_anomalies())
        for each in image.anomalies:
            known = each.original
            sure = known is not None and (known.confidence is None or known.confidence >= min_confidence)
            found += sure and each.decision == "accept"
    return true - found, true
