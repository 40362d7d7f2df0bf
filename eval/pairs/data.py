"""What is on record of pairs: originals, regions, candidates with how each was made, and what became of them.

`candidates.jsonl` has a line an original, with its candidates in it. What `screen` says of a candidate is a
line of `annotations.jsonl` in a run folder of its own, so that people judge candidates as they judge
findings. Steps are in the order in which candidates are rejected.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, get_args

from uncanny.errors import UsageError
from uncanny.records.jsonl import read_records
from uncanny.records.run_folder import RunFolder, check_within
from uncanny.schema import Annotation, Box, Pixels, Record, Status, StepError, Usage
from uncanny.wording import display_path

CANDIDATES: Final = "candidates.jsonl"
SCREENED: Final = "screened"

RegionSource = Literal["detail", "mask", "object", "hand", "foot", "face", "limb"]
MaskSource = Literal["given", "hull", "ellipse", "box", "sam2"]
PromptSource = Literal["caption", "writer", "perturber"]
Step = Literal["mask", "prompt", "inpaint", "outside", "quality", "size", "duplicate", "screener", "people"]
STEPS: Final[tuple[Step, ...]] = get_args(Step)
STEP_NAMES: Final[Mapping[Step, str]] = {
    "mask": "Mask",
    "prompt": "Prompt",
    "inpaint": "Inpainting",
    "outside": "Outside the mask",
    "quality": "Quality",
    "size": "Size of the change",
    "duplicate": "Duplicate",
    "screener": "Model",
    "people": "People",
}


class Hint(Record):
    """Where to edit: what is there, by `name`, and its `box`; `points` are pixels that belong to it."""

    source: RegionSource
    name: str
    box: Box
    points: tuple[tuple[int, int], ...] = ()


class Rejection(Record):
    """The step at which a candidate was rejected, and why."""

    step: Step
    why: str


class Candidate(Record):
    """One edit of one region of an original, with all that it takes to make it again.

    Paths start from the folder of the pairs. `edited` is the picture with everything outside the mask put
    back, `painted` what the model drew; both None where it drew nothing. `model` and `revision` are the
    inpainter's, the latter as it names itself or its weights, None where it does not. `seed`, `guidance`,
    `strength` and `steps` are what it was to be asked with, and `sent` those of them that it takes.
    `mask_share` is the share of the image that the mask covers, `outside_painted` the share of pixels outside
    it that the model drew anew, before they were put back. Both are 0-1.
    """

    id: str
    region: Hint
    mask: str | None = None
    mask_source: MaskSource | None = None
    dilation: int = 0
    mask_share: float | None = None
    prompt: str | None = None
    prompt_source: PromptSource | None = None
    model: str
    revision: str | None = None
    seed: int
    guidance: float
    strength: float
    steps: int
    sent: Mapping[str, float] = {}
    painted: str | None = None
    edited: str | None = None
    sha256: str | None = None
    outside_painted: float | None = None
    rejected: Rejection | None = None


class Original(Record):
    """One line of `candidates.jsonl`: an image, and the candidates made from it.

    `original` is a PNG file of its pixels, upright, from the folder of the pairs; `caption` what it shows.
    Without a region to edit there are no candidates, and `no_region` says why. `masks_sha256` is of all masks
    that were given for it, None where there were none.
    """

    image: str
    sha256: str | None
    width: int | None
    height: int | None
    status: Status
    original: str | None = None
    caption: str | None = None
    masks_sha256: str | None = None
    candidates: tuple[Candidate, ...] = ()
    no_region: str | None = None
    errors: tuple[StepError, ...] = ()
    model: str
    prompts: str
    usage: Usage = Usage()
    pixels: Pixels | None = None
    file_stamp: str | None = None


class Screened(Annotation):
    """One line of `annotations.jsonl` of screened candidates: `image` is the edited picture.

    `candidate` is its id, and `original` the picture before the edit, from the run's folder: all edits of one
    original belong together. One that was `rejected` has no finding; any other has one, for people to judge.
    `measured` has its figures, and `label` and `reason` what a model said, None where none was asked.
    """

    candidate: str = ""
    original: str | None = None
    rejected: Rejection | None = None
    measured: Mapping[str, float | None] = {}
    label: str | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class MadePair:
    """A candidate with its original, and the folder that their paths start from."""

    folder: Path
    original: Original
    candidate: Candidate

    @property
    def id(self) -> str:
        return self.candidate.id

    @property
    def original_file(self) -> Path:
        return self.folder / str(self.original.original)

    @property
    def edited_file(self) -> Path | None:
        return None if self.candidate.edited is None else self.folder / self.candidate.edited

    @property
    def mask_file(self) -> Path | None:
        return None if self.candidate.mask is None else self.folder / self.candidate.mask

    def files_from(self, folder: Path) -> dict[str, str | None]:
        """The paths of its three files as records in another `folder` name them."""
        files = {"original": self.original_file, "edited": self.edited_file, "mask": self.mask_file}
        return {name: None if file is None else path_from(folder, file) for name, file in files.items()}


@dataclass(frozen=True, slots=True)
class MadePairs(Sequence[MadePair]):
    """All candidates of a folder, in order, and its originals; copies of an image count once."""

    folder: Path
    originals: tuple[Original, ...]
    pairs: tuple[MadePair, ...]

    def __len__(self) -> int:
        return len(self.pairs)

    def __getitem__(self, index: Any) -> Any:
        return self.pairs[index]

    def __iter__(self) -> Iterator[MadePair]:
        return iter(self.pairs)


def load_made(folder: Path) -> MadePairs:
    """The candidates in the folder of a run of `make`.

    Raises UsageError where there are none, or one names a file that lies elsewhere; RecordError for an
    invalid line.
    """
    file = folder / CANDIDATES
    RunFolder(folder).check_links()
    if not file.is_file():
        raise UsageError(
            f"{folder} has no {CANDIDATES}: no pairs were made there",
            remedy="Pass the folder in which pairs were made.",
        )
    latest = {each.image: each for each in read_records(file, Original)}
    originals = tuple(each for each in latest.values() if "duplicate_of" not in (each.model_extra or {}))
    pairs = tuple(
        MadePair(folder, original, candidate) for original in originals for candidate in original.candidates
    )
    ids = Counter(pair.id for pair in pairs)
    for pair in pairs:
        lacks = pair.edited_file is not None and None in (pair.mask_file, pair.original.original)
        if lacks or ids[pair.id] > 1:
            what = "has no mask or original" if lacks else "is there twice"
            raise UsageError(f"{file}: the candidate {pair.id} {what}", remedy="Make the pairs again.")
    places = {place for pair in pairs for place in (pair.edited_file, pair.mask_file, pair.original_file)}
    check_within(
        folder,
        file,
        sorted(place for place in places if place is not None),
        remedy="Make the pairs again: their files must lie in the folder.",
    )
    return MadePairs(folder, originals, pairs)


def load_screened(folder: Path) -> dict[str, Screened]:
    """What became of edited pictures when they were screened, by their names there; empty where none was.

    `folder` is the run of `screen`. Raises UsageError, RecordError.
    """
    file = RunFolder(folder).annotations
    if not file.is_file():
        return {}
    return {each.image: each for each in read_records(file, Screened)}


def edited_name(pair: MadePair, run: Path) -> str:
    """What the run of `screen` in `run` calls the edited picture of a pair."""
    return path_from(run, pair.edited_file or Path())


def path_from(run: Path, file: Path) -> str:
    """A file as records of a run name it."""
    return display_path(Path(os.path.relpath(file, run)))


def first_copies(pairs: Iterable[MadePair]) -> dict[str, str]:
    """By the id of each pair whose edited picture has the bytes of an earlier one, the id of that."""
    first: dict[str, str] = {}
    copies: dict[str, str] = {}
    for pair in pairs:
        if pair.candidate.sha256 is not None:
            known = first.setdefault(pair.candidate.sha256, pair.id)
            if known != pair.id:
                copies[pair.id] = known
    return copies
