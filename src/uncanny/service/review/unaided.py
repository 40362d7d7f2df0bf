"""A run in which people annotate images from nothing, without seeing what a model found in them.

AnomReason, appendix E.1: people and agents annotate each image independently. What people find are findings
that they add on the review page, so that the log, the exports and the scores are those of any other run.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from uncanny.errors import UsageError
from uncanny.eval.common.inputs.runs import (
    IMAGES_OF,
    ReadRun,
    images_of,
    open_annotations,
    stream_annotations,
)
from uncanny.files import dump_json
from uncanny.records.jsonl import write_atomically
from uncanny.records.run_folder import RunFolder, check_apart
from uncanny.records.sample import SAMPLE, Sample, SampledImage, read_sample, write_sample
from uncanny.schema import Annotation, columns_of

# What stands for a model and its prompts in the records of such a run.
PEOPLE: Final = "human"


def start_unaided(run: Path, other: Path) -> None:
    """Make `run` with the images of `other`, none of its findings, and a sample to be judged whole.

    The sample is that of `other`, or all of its images without one. A run that was made so gets what that
    sample has more by now, and stays as it is otherwise. Raises UsageError if `run` holds something else, has
    the images of another run or cannot be made, and where `other` has no images that could be read.
    """
    folder, read = RunFolder(run), open_annotations(other)
    origin = read.folder.path if read.is_run else other
    before = _before(folder, origin)
    check_apart(run, (read.picture(record.image) for record in stream_annotations(read.file)))
    records = {
        record.image: _blank(record, read, run, origin)
        for record in stream_annotations(read.file)
        if record.sha256
    }
    if not records:
        raise UsageError(f"{other} has no images that could be read", remedy="Pass another run.")
    sample = _sample(read, records)
    if before is not None and not _names(before) < _names(sample):
        return
    try:
        run.mkdir(parents=True, exist_ok=True)
        lines = (dump_json(each.model_dump(mode="json")) + b"\n" for each in records.values())
        write_sample(run, sample)
        write_atomically(folder.annotations, lines)
    except OSError as error:
        raise UsageError(
            f"{run} cannot be made: {error.strerror or error}", remedy="Pass another folder."
        ) from error


def _before(folder: RunFolder, origin: Path) -> Sample | None:
    """The sample of a run that was made with the images of `origin`; None where nothing is there yet.

    Raises UsageError where something else is.
    """
    run, sample = folder.path, read_sample(folder.path)
    if not folder.begun() and not folder.annotations.is_file():
        if sample is not None:
            raise UsageError(f"{run / SAMPLE} is there already", remedy="Pass another folder.")
        return None
    there = images_of(folder.annotations)
    if there is None:
        raise UsageError(f"{run} already contains annotations of a model", remedy="Pass another folder.")
    if (run / there).resolve() != origin.resolve():
        raise UsageError(
            f"{run} has the images of {os.path.normpath(run / there)}, not of {origin}",
            remedy="Pass that run, or another folder.",
        )
    return sample


def _names(sample: Sample) -> set[str]:
    return {each.image for each in sample.images}


def _blank(record: Annotation, read: ReadRun, run: Path, origin: Path) -> Annotation:
    """The same image as its record in `run` names it."""
    columns = dict(columns_of(record))
    return Annotation.model_validate(
        {
            "image": os.path.relpath(read.picture(record.image), run),
            **{name: getattr(record, name) for name in ("sha256", "width", "height")},
            **{"status": "ok", "model": PEOPLE, "prompts": PEOPLE, IMAGES_OF: os.path.relpath(origin, run)},
            **({"columns": columns} if columns else {}),
        }
    )


def _sample(read: ReadRun, records: Mapping[str, Annotation]) -> Sample:
    """The sample, in which images are called as in `records`, which are by their former names."""
    drawn = read_sample(read.folder.path) if read.is_run else None
    there = [
        (records[each.image].image, each) for each in (drawn.images if drawn else ()) if each.image in records
    ]
    if drawn is None or not there:
        every = [(each.image, each.sha256) for each in records.values()]
        images = tuple(SampledImage(image=name, sha256=digest, probability=1.0) for name, digest in every)
        return Sample(design="random", seed=0, frame=len(images), size=len(images), images=images)
    images = tuple(each.model_copy(update={"image": name}) for name, each in there)
    return drawn.model_copy(update={"images": images, "size": len(images)})
