"""What a merge reads: the records of runs with people's verdicts, and which images are the same.

Findings that a run is not sure of are left out, as in a comparison. A record that failed, in whole or in
part, does not count: that run has not examined the image.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike

from uncanny.errors import ItemsError, Problem, UsageError
from uncanny.eval.common.alike import Origin, Provenance
from uncanny.eval.common.confidence import Sure, is_sure
from uncanny.eval.common.inputs.sources import (
    AnnotationSource,
    LeftOutBy,
    OpenSource,
    left_out_by,
    of_place,
)
from uncanny.eval.common.matching import pair_images
from uncanny.eval.compare.data import RunImage, open_runs, run_image, run_notices
from uncanny.records.reviews import Decision, ReviewLog, review_image
from uncanny.schema import Annotation, Anomaly
from uncanny.wording import either, shown


@dataclass(frozen=True, slots=True)
class Finding:
    """A finding of a run, at `place`, from 0, in the run's record.

    `anomaly` is its text as reviewers left it, and `edited` whether they changed it. `votes` are their
    verdicts on it, one per reviewer; empty where nobody judged it.
    """

    place: int
    anomaly: Anomaly
    votes: tuple[Decision, ...] = ()
    edited: bool = False


@dataclass(frozen=True, slots=True)
class SeenImage:
    """An image as a run saw it. `findings` are those of `image.anomalies`, in their order."""

    image: RunImage
    record: Annotation
    findings: tuple[Finding, ...]

    @property
    def left_out(self) -> LeftOutBy | None:
        """Why the run has not examined the image; None where it has."""
        return self.image.left_out

    @property
    def examined(self) -> bool:
        return self.left_out is None


# An image by the names of the runs that have a record of it, in the order of names.
SameImage = Mapping[str, SeenImage]


@dataclass(frozen=True, slots=True)
class InputRun:
    """A run to be merged: its images in the order of its file. `left_out` findings were too doubtful."""

    name: str
    source: OpenSource
    images: tuple[SeenImage, ...]
    provenance: Provenance
    left_out: int
    notices: tuple[str, ...]

    @property
    def made_with(self) -> str:
        """Its models and prompts in words; its place may be a path of a server."""
        return f"{', '.join(self.provenance.models)} with {', '.join(self.provenance.prompts)}"


def open_inputs(
    runs: Mapping[str, AnnotationSource], root: str | PathLike[str] | None
) -> tuple[OpenSource, ...]:
    """The runs in the order of their names, so that the order in which they are given changes nothing.

    Raises UsageError for anything but a mapping, for fewer than two runs, for a name that is not text or is
    blank, and for what has no annotations.
    """
    if not isinstance(runs, Mapping):
        raise UsageError(
            f"The runs to merge must be a mapping from name to run, not {shown(runs)}",
            remedy='Write {"a": "runs/a", "b": "runs/b"}.',
        )
    for name in runs:
        if not isinstance(name, str) or not name.strip():
            raise UsageError(f"{name!r} is not a name of a run", remedy="Give each run a name.")
    if len(runs) < 2:
        raise UsageError(
            f"A merge takes two runs or more, not {len(runs)}",
            remedy=either(
                'Write {"a": "runs/a", "b": "runs/b"}.', terminal="Pass them as a=runs/a b=runs/b."
            ),
        )
    return open_runs(dict(sorted(runs.items())), root)


def read_inputs(sources: Sequence[OpenSource], min_confidence: float) -> tuple[InputRun, ...]:
    """All records of all runs, without findings below `min_confidence`, 0-1.

    Raises ItemsError, which is a UsageError, with all that is wrong with the records of any run; UsageError
    for a run without records; RecordError for an invalid line in a run's reviews.
    """
    problems: list[Problem] = []
    runs = []
    for source in sources:
        own: list[Problem] = []
        runs.append(_read(source, own, min_confidence))
        problems += [of_place(problem, source.place) for problem in own]
    if problems:
        raise ItemsError(f"{len(sources)} runs", problems, remedy="Correct these lines; nothing was merged.")
    for run in runs:
        if not run.images:
            raise UsageError(
                f"{run.name}: {run.source.place} contains no annotations", remedy="Annotate first."
            )
    return tuple(runs)


def _read(source: OpenSource, problems: list[Problem], min_confidence: float) -> InputRun:
    # The reviews of a file of annotations by itself are not known to be about it.
    reviews = None if source.run is None else ReviewLog.of_run(source.run.folder.path).by_image()
    images: list[SeenImage] = []
    origin = Origin()
    sure = Sure(min_confidence)
    for _, record in source.records(problems):
        why = left_out_by(record)
        if why is not None:
            images.append(SeenImage(run_image(record, why, source), record, ()))
            continue
        origin.add(record)
        reviewed = review_image(record, [] if reviews is None else reviews.get(record.image, []))
        findings = tuple(
            Finding(each.index, each.anomaly, tuple(each.votes.values()), each.edited_by is not None)
            for each in reviewed.anomalies
            # What a reviewer added is not a finding of the run.
            if each.original is not None and is_sure(each.original, min_confidence)
        )
        images.append(SeenImage(run_image(sure.record(record), None, source), record, findings))
    notices = (
        *run_notices(source, len(images)),
        *(f"{source.source.name}: {words}" for words in sure.notices()),
    )
    provenance = origin.provenance(source.run)
    return InputRun(source.source.name, source, tuple(images), provenance, sure.left_out, notices)


@dataclass(frozen=True, slots=True)
class _Known:
    """An image of the runs so far, under the name that the first of them gives it."""

    image: str
    sha256: str | None


def same_images(runs: Sequence[InputRun]) -> tuple[SameImage, ...]:
    """All images of all runs, matched by the rules of a comparison, `pair_images`.

    The run with the most images is matched with the next one, and all further ones with what these have.
    Raises UsageError where a run has no image in common with those before it, and where it is not clear
    which image of another is meant.
    """
    largest = sorted(runs, key=lambda run: (-len(run.images), run.name))
    known: list[_Known] = []
    images: list[dict[str, SeenImage]] = []
    for number, run in enumerate(largest):
        own = [seen.image for seen in run.images]
        before = " and ".join(sorted(each.name for each in largest[:number]))
        pairing = (
            pair_images(known, own, labels=(before, run.name)).predicted if number else [None] * len(own)
        )
        names = {each.image for each in known}
        for seen, place in zip(run.images, pairing, strict=True):
            if place is not None:
                images[place][run.name] = seen
                if known[place].sha256 is None:
                    known[place] = _Known(known[place].image, seen.image.sha256)
                continue
            name = seen.image.image
            # Another image of that name, with other bytes: the whole path tells the two apart.
            known.append(_Known(str(seen.image.path) if name in names else name, seen.image.sha256))
            images.append({run.name: seen})
    return tuple(dict(sorted(each.items())) for each in images)


def image_notices(runs: Sequence[InputRun], images: Sequence[SameImage]) -> Iterator[str]:
    """Which images not all runs have, and which of them a run has not examined."""
    for run in runs:
        missing = sum(run.name not in image for image in images)
        if missing:
            yield f"{run.name} has no record of {missing:,} of {len(images):,} images."
        failed = sum(not seen.examined for seen in run.images)
        if failed:
            yield (
                f"{run.name} did not examine {failed:,} of its {len(run.images):,} images: their records are "
                "failed, partial, unreadable or without a verdict. Resume the run, then merge again."
            )
