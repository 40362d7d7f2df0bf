"""Drawing the images of a run that people judge whole.

Every image has a number of its own between 0 and 1, from the seed and its name (or what it is paired by), so
that a draw can be repeated, extended, and made alike in several runs. `random` takes those with the smallest
numbers, which is simple random sampling without replacement. `active` divides the number by the chance that
the image deserves, and takes the smallest quotients: sequential Poisson sampling (Ohlsson, *Journal of
Official Statistics* 14, 1998), which has a fixed size, inclusion probabilities close to the wanted ones, and
grows without dropping an image. The chance is half uniform, half the model's doubt about the image, so that
none is without one (Zrnic and Candès, *Active Statistical Inference*, 2024, mix likewise).
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from os import PathLike
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from uncanny.errors import UsageError
from uncanny.eval.common.anomalies.doubt import doubts
from uncanny.eval.common.inputs.runs import images_of, open_run, stream_annotations
from uncanny.eval.common.inputs.sources import left_out_by
from uncanny.eval.trust.parameters import SampleParameters
from uncanny.parameters import path_of, takes
from uncanny.records.run_folder import check_recorded
from uncanny.records.sample import SAMPLE, Design, Sample, SampledImage, read_sample, write_sample
from uncanny.wording import counted, option

# The share of the chance of an image that is the same for all, with the design `active`.
UNIFORM: Final = 0.5

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class RunSample:
    """The sample of one run: `sample` as its file has it, `added` images that it did not have before.

    `left_out` counts the images that cannot be drawn, since they have no whole annotation.
    """

    run: Path
    sample: Sample
    added: int
    left_out: int = 0

    def to_json(self) -> dict[str, Any]:
        drawn = self.sample.model_dump(mode="json", exclude={"images"}, exclude_none=True)
        return {"run": str(self.run), "file": str(self.run / SAMPLE), **drawn, **self._counts}

    @property
    def _counts(self) -> dict[str, int]:
        return {"added": self.added, "left_out": self.left_out}

    def __str__(self) -> str:
        sample = self.sample
        added = f", {self.added:,} of them new" if 0 < self.added < sample.size else ""
        without = f" {counted(self.left_out, 'image')} without a whole annotation cannot be drawn."
        return (
            f"{self.run / SAMPLE}: {sample.size:,} of {counted(sample.frame, 'image')} ({sample.design})"
            f"{added}.{without if self.left_out else ''}"
        )


@dataclass(frozen=True, slots=True)
class SampleResult:
    """What was drawn, a sample a run."""

    samples: tuple[RunSample, ...]

    def to_json(self) -> dict[str, Any]:
        return {"samples": [each.to_json() for each in self.samples]}

    def __str__(self) -> str:
        return "\n".join(map(str, self.samples))


@dataclass(slots=True)
class _Frame:
    """The images of a run that can be drawn, with their keys and the model's doubt about them, 0 to 1."""

    run: Path
    before: Sample | None
    images: list[tuple[str, str | None]] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)
    doubts: list[float] = field(default_factory=list)
    left_out: int = 0


Runs = str | PathLike[str] | Sequence[str | PathLike[str]]


@takes(SampleParameters)
def sample(runs: Runs, parameters: SampleParameters) -> SampleResult:
    """Draw images of a run, or of several, for people to judge whole, and write `sample.json` into each run.

    A sample that is there is extended: images that were drawn stay, whatever was drawn later, and the
    probabilities are computed anew. No model is asked. Of several runs the same prompts are drawn where
    it is told what these have in common.

    Raises UsageError for a folder that is not a run, a run without whole annotations, one whose images people
    annotate from nothing, a size above that of the run or below that of the sample there is, and another
    design, seed or pairing than that one has; RecordError for an invalid record.

    >>> run = uncanny.annotate(images, model="demo", out=out)
    >>> print(len(uncanny.sample(out, size=1).samples[0].sample.images))
    1
    """
    several = list(runs) if isinstance(runs, list | tuple) else [runs]
    if not several:
        raise UsageError("There is no run to sample", remedy="Pass the folder of a run.")
    frames = [_frame(path_of("runs", each), parameters) for each in several]
    if len({frame.run.resolve() for frame in frames}) < len(frames):
        raise UsageError("A run is named twice", remedy="Name each run once.")
    settings = [_settings(frame, parameters) for frame in frames]
    shared = _shared_doubts(frames) if parameters.paired is not None else {}
    drawn = [
        _draw(frame, design, seed, shared, parameters)
        for frame, (design, seed) in zip(frames, settings, strict=True)
    ]
    # Nothing is written before all runs can be drawn from.
    for frame, each in zip(frames, drawn, strict=True):
        write_sample(frame.run, each.sample)
    return SampleResult(tuple(drawn))


def _frame(path: Path, parameters: SampleParameters) -> _Frame:
    if not path.is_dir():
        raise UsageError(f"{path} is not a run folder", remedy="Pass the folder of a run.")
    read = open_run(path)
    read.folder.check_links()
    if not read.file.is_file():
        check_recorded(path, read.file.name)
    if (other := images_of(read.file)) is not None:
        other = os.path.normpath(path / other)
        raise UsageError(
            f"The sample of {path} is that of {other}, whose images people annotate in it",
            remedy=f"Draw from {other}, and review {path} again with {option('images_of', other)}.",
        )
    frame = _Frame(path, read_sample(path))
    for record in stream_annotations(read.file):
        if left_out_by(record) is not None:
            frame.left_out += 1
            continue
        frame.images.append((record.image, record.sha256))
        frame.keys.append(parameters.key_of(record))
        frame.doubts.append(max((each.value for each in doubts(record)), default=0.0))
    if not frame.images:
        raise UsageError(f"{path} has no image with a whole annotation", remedy="Annotate its images first.")
    return frame


def _settings(frame: _Frame, parameters: SampleParameters) -> tuple[Design, int]:
    """Design and seed. Raises UsageError where they, or the size, do not go with the sample there is."""
    before = frame.before
    design: Design = parameters.design or (before.design if before else "random")
    seed = parameters.seed if parameters.seed is not None else (before.seed if before else 0)
    size = parameters.size
    if size > len(frame.images):
        raise UsageError(
            f"{option('size')} is {size:,}, and {frame.run} has {len(frame.images):,} images to draw from",
            remedy="Give a smaller number.",
        )
    if before is None:
        return design, seed
    wanted = {"design": design, "seed": seed, "paired": parameters.paired}
    for name, value in wanted.items():
        if (there := getattr(before, name)) != value:
            raise UsageError(
                f"{frame.run} has a sample {_drawn_with(name, there)}, not {_drawn_with(name, value)}",
                remedy=f"Extend it as it was drawn, or delete {frame.run / SAMPLE} to draw another one.",
            )
    if size < before.size:
        raise UsageError(
            f"{frame.run} has a sample of {before.size:,}, which is more than {size:,}",
            remedy="Give a larger number: a sample never loses an image.",
        )
    return design, seed


def _drawn_with(name: str, value: object) -> str:
    if name == "paired":
        return "that is not paired" if value is None else f"paired by {value!r}"
    return f"with {name} {value!r}"


def _shared_doubts(frames: Sequence[_Frame]) -> Mapping[str, float]:
    """The mean doubt about the images of each prompt, over all runs."""
    by_key: dict[str, list[float]] = {}
    for frame in frames:
        for key, doubt in zip(frame.keys, frame.doubts, strict=True):
            by_key.setdefault(key, []).append(doubt)
    return {key: sum(values) / len(values) for key, values in by_key.items()}


def _draw(
    frame: _Frame, design: Design, seed: int, shared: Mapping[str, float], parameters: SampleParameters
) -> RunSample:
    doubt = [shared.get(key, own) for key, own in zip(frame.keys, frame.doubts, strict=True)]
    chances = np.ones(len(doubt)) if design == "random" else deserved(np.asarray(doubt, np.float64))
    numbers = np.array([_number(seed, key) for key in frame.keys])
    before = {each.image for each in frame.before.images} if frame.before else set()
    old = np.array([image in before for image, _ in frame.images])
    ranked = np.lexsort((np.arange(len(numbers)), numbers / chances))
    needed = int(np.flatnonzero(old[ranked]).max(initial=-1)) + 1
    if frame.before is not None and needed > parameters.size:
        # Kept though others come first, they would be drawn with other probabilities than the file says.
        raise UsageError(
            f"{frame.run} has changed since its sample was drawn: of its {counted(len(numbers), 'image')} "
            f"now, a sample with all that were drawn has at least {needed:,}",
            remedy=f"Give {option('size', str(needed))} or more, or delete {frame.run / SAMPLE} and draw "
            "another sample; verdicts stay.",
        )
    # Those that were drawn come first in the order of judging.
    order = ranked[: parameters.size]
    order = order[np.argsort(~old[order], kind="stable")]
    probabilities = inclusion(chances, parameters.size)
    images = tuple(
        SampledImage(image=image, sha256=digest, probability=float(probabilities[place]))
        for place in order
        for image, digest in [frame.images[place]]
    )
    sample = Sample(
        design=design,
        seed=seed,
        paired=parameters.paired,
        frame=len(frame.images),
        size=len(images),
        images=images,
    )
    return RunSample(frame.run, sample, len(images) - int(old.sum()), frame.left_out)


def deserved(doubt: Floats) -> Floats:
    """How much likelier than others an image is drawn, from the model's doubt about each, 0 to 1.

    The mean is 1. Without any doubt all images are alike.
    """
    mean = float(doubt.mean())
    return UNIFORM + (1 - UNIFORM) * (doubt / mean if mean > 0 else np.ones_like(doubt))


def inclusion(chances: Floats, size: int) -> Floats:
    """The probability of each image to be among `size` that are drawn, by its chance, any positive number.

    They sum to `size`; an image whose share would be more than 1 is drawn for certain, and the others share
    what is left.
    """
    certain = np.zeros(len(chances), np.bool_)
    while True:
        rest = chances[~certain]
        share = (size - int(certain.sum())) / float(rest.sum()) if rest.size else 0.0
        over = ~certain & (chances * share >= 1)
        if not over.any():
            return np.where(certain, 1.0, chances * share)
        certain |= over


def _number(seed: int, key: str) -> float:
    """The number of an image, above 0 and below 1: the same for its key wherever it is drawn."""
    digest = sha256(f"{seed}:{key}".encode("utf-8", "surrogatepass")).digest()
    return (int.from_bytes(digest[:8]) + 1) / (2**64 + 2)
