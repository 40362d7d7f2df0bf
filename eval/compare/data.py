"""What a comparison reads: the records of two runs, and which image of one is which of the other.

Images are paired by name, digest, path or stem (`eval.common.matching`); two releases of a generator by the
prompt their images were made from. A record that failed in either run is left out: it is not flawless.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path, PurePosixPath
from typing import Literal

from uncanny.errors import ItemsError, Problem, UsageError
from uncanny.eval.common.alike import Origin, Provenance
from uncanny.eval.common.anomalies.load import name_paths
from uncanny.eval.common.anomalies.read import ScoredAnomaly, ScoredImage
from uncanny.eval.common.confidence import Sure
from uncanny.eval.common.groups import KNOWN, PROMPT_COLUMNS, PromptColumn, cell_of
from uncanny.eval.common.inputs.sources import (
    FINISHED,
    AnnotationSource,
    LeftOut,
    LeftOutBy,
    OpenSource,
    left_out_by,
    of_place,
    open_source,
    read_sources,
)
from uncanny.eval.common.matching import Rule, pair_images
from uncanny.eval.compare.parameters import By
from uncanny.records.run_folder import unfinished
from uncanny.schema import Annotation, Usage
from uncanny.wording import option

# By which key of a record, or by what else, images are of one prompt.
PromptRule = Literal[PromptColumn, "stem"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunImage(ScoredImage):
    """One image as a run saw it: its record without what a comparison does not ask for.

    There are no anomalies where the record is left out. `usage` is None where the record does not say.
    `prompts` are the keys by which it may be paired with an image of another release.
    """

    width: int | None
    height: int | None
    left_out: LeftOutBy | None
    usage: Usage | None
    prompts: Mapping[PromptRule, str]
    path: Path
    digest: str | None


@dataclass(frozen=True, slots=True)
class ComparedRun:
    """One side: all its images in the order of the file, and how they were made.

    `seconds` is what the run took by the clock, over all sessions, and `replayed` the answers it took from
    the answer cache; both None where no `run.json` says. `is_run` says whether there is one at all.
    `sure` counts the findings of records that count which are left out, as the model was not sure enough.
    """

    name: str
    place: str
    images: tuple[RunImage, ...]
    left_out: LeftOut
    provenance: Provenance
    is_run: bool
    seconds: float | None = None
    replayed: int | None = None
    notices: tuple[str, ...] = ()
    sure: Sure = field(default_factory=Sure)


def read_runs(
    runs: Sequence[AnnotationSource | Mapping[str, AnnotationSource]],
    root: str | PathLike[str] | None,
    min_confidence: float = 0.0,
) -> tuple[ComparedRun, ...]:
    """All runs, whole, but for findings below `min_confidence`, 0-1.

    Raises UsageError for fewer than two, and ItemsError with all that is wrong with the records of any.
    """
    opened = open_runs(named(runs), root)
    problems: list[Problem] = []
    read = []
    for each in opened:
        own: list[Problem] = []
        read.append(_read(each, own, min_confidence))
        problems += [of_place(problem, each.place) for problem in own]
    if problems:
        raise ItemsError(f"{len(opened)} runs", problems, remedy="Correct these lines; nothing was compared.")
    for each, run in zip(opened, read, strict=True):
        if not run.images:
            raise UsageError(f"{run.name}: {each.place} contains no annotations", remedy="Annotate first.")
    return tuple(read)


def open_runs(
    runs: Mapping[str, AnnotationSource], root: str | PathLike[str] | None
) -> tuple[OpenSource, ...]:
    """The records of runs by name, to be read. Raises UsageError for what has none.

    `root` is the folder that image paths of annotation files start from; None for the file's own.
    """
    opened = []
    for source in read_sources(runs):
        if source.kind == "images":
            raise UsageError(
                f"{source.name}: {source.place} contains no annotations", remedy="Annotate its images first."
            )
        opened.append(open_source(source, None if root is None else Path(root)))
    return tuple(opened)


def named(
    runs: Sequence[AnnotationSource | Mapping[str, AnnotationSource]],
) -> dict[str, AnnotationSource]:
    """Runs by their names: those of a mapping, else a run's model, the file's or folder's name, or a letter.

    Raises UsageError for fewer than two runs, and for two of one name.
    """
    if len(runs) == 1 and isinstance(runs[0], Mapping):
        by_name = {str(name): source for name, source in runs[0].items()}
    else:
        if any(isinstance(run, Mapping) for run in runs):
            raise UsageError("Give runs one by one, or all in one mapping with their names")
        paths = [Path(run) for run in runs if isinstance(run, str | PathLike)]
        for path in paths:
            if not path.exists():
                raise UsageError(
                    f"{path} does not exist", remedy="Pass a run folder or a file of annotations."
                )
        names = iter(name_paths([(None, path) for path in paths], what="runs"))
        by_name = {}
        for number, run in enumerate(runs, 1):
            if not isinstance(run, Mapping):
                by_name[next(names) if isinstance(run, str | PathLike) else f"run {number}"] = run
    if len(by_name) < 2:
        raise UsageError(
            f"A comparison takes two runs or more, not {len(by_name)}",
            remedy="Pass the run to compare with first, then the others.",
        )
    return by_name


def _read(source: OpenSource, problems: list[Problem], min_confidence: float) -> ComparedRun:
    images: list[RunImage] = []
    origin = Origin()
    left_out: Counter[LeftOutBy] = Counter()
    sure = Sure(min_confidence)
    for _, whole in source.records(problems):
        why = left_out_by(whole)
        record = whole if why else sure.record(whole)
        if why is None:
            origin.add(record)
        else:
            left_out[why] += 1
        images.append(run_image(record, why, source))
    run = source.run
    totals = None if run is None else run.info.totals
    return ComparedRun(
        source.source.name,
        source.place,
        tuple(images),
        LeftOut(**{str(why): number for why, number in left_out.items()}),
        origin.provenance(run),
        run is not None and run.written,
        None if totals is None else totals.seconds,
        None if totals is None else totals.replayed,
        (*run_notices(source, len(images)), *(f"{source.source.name}: {words}" for words in sure.notices())),
        sure,
    )


def run_image(record: Annotation, why: LeftOutBy | None, source: OpenSource) -> RunImage:
    """A record as a run's image; `why` it is left out, None where it counts."""
    extra = record.model_extra or {}
    anomalies = tuple(
        ScoredAnomaly(
            each.name, each.phenomenon, each.reasoning, each.severity, each.box, each.kind, each.confidence
        )
        for each in record.anomalies
    )
    judged = extra.get("source")
    prompts: dict[PromptRule, str] = {"stem": PurePosixPath(record.image.replace("\\", "/")).stem}
    for key in PROMPT_COLUMNS:
        if (value := cell_of(record, key)) is not None:
            prompts[key] = value
    return RunImage(
        record.image,
        anomalies if why is None else (),
        judged if judged in ("generated", "real") else None,
        "source" in extra,
        record.sha256.lower() if record.sha256 else None,
        record.status,
        columns={by: cell for by in KNOWN if (cell := cell_of(record, by)) is not None},
        width=record.width,
        height=record.height,
        left_out=why,
        usage=record.usage if "usage" in record.model_fields_set else None,
        prompts=prompts,
        path=source.locate(record.image),
        digest=source.digest(record),
    )


def run_notices(source: OpenSource, records: int) -> tuple[str, ...]:
    """Whether the run has still to do; `records` is how many it has."""
    if source.run is None:
        return ()
    left = unfinished(source.run.folder.path, "images", records)
    if left is not None:
        return (f"{source.source.name}: {left}.",)
    state = source.run.info.state
    return () if state in (None, FINISHED) else (f"{source.source.name}: its run is not finished ({state}).",)


@dataclass(frozen=True, slots=True)
class ImagePair:
    """The same image in both runs, or two images of one prompt; `prompt` is None where pairs are by image."""

    a: RunImage
    b: RunImage
    prompt: str | None = None

    @property
    def counts(self) -> bool:
        """Whether both records count; else the pair is in no figure but cost."""
        return self.a.left_out is None and self.b.left_out is None

    @property
    def same_picture(self) -> bool:
        """Whether a box in one can be the place of a box in the other."""
        ours, theirs = ((image.width, image.height) for image in (self.a, self.b))
        return self.prompt is None and (ours == theirs or None in (*ours, *theirs))


@dataclass(frozen=True, slots=True)
class PairedRuns:
    """Two runs, image by image. `rules` counts the pairs that each rule made, of prompts the one rule."""

    a: ComparedRun
    b: ComparedRun
    pairs: tuple[ImagePair, ...]
    only_a: tuple[str, ...]
    only_b: tuple[str, ...]
    rules: Mapping[Rule | PromptRule, int]


def pair_runs(a: ComparedRun, b: ComparedRun, by: By) -> PairedRuns:
    """Raises UsageError where nothing fits, or several images do."""
    if by == "prompt":
        return _by_prompt(a, b)
    releases = f"To compare two releases of a generator, pass {option('by', 'prompt')}."
    pairing = pair_images(a.images, b.images, labels=(a.name, b.name), otherwise=releases)
    pairs, only_b, paired = [], [], set()
    for image, place in zip(b.images, pairing.predicted, strict=True):
        if place is None:
            only_b.append(image.image)
        else:
            pairs.append((place, ImagePair(a.images[place], image)))
            paired.add(place)
    pairs.sort(key=lambda pair: pair[0])
    only_a = tuple(image.image for place, image in enumerate(a.images) if place not in paired)
    rules: dict[Rule | PromptRule, int] = {rule: number for rule, number in pairing.by.items() if number}
    return PairedRuns(a, b, tuple(pair for _, pair in pairs), only_a, tuple(only_b), rules)


def _by_prompt(a: ComparedRun, b: ComparedRun) -> PairedRuns:
    """Images of one prompt, in the order of their names: the first with the first, and so on."""
    both = (*a.images, *b.images)
    rule: PromptRule = next(
        (key for key in PROMPT_COLUMNS if all(key in image.prompts for image in both)), "stem"
    )
    ours, theirs = _of_prompts(a.images, rule), _of_prompts(b.images, rule)
    pairs = [
        ImagePair(first, second, prompt)
        for prompt, images in ours.items()
        for first, second in zip(images, theirs.get(prompt, ()), strict=False)
    ]
    if not pairs:
        raise UsageError(
            f"{a.name} and {b.name} have no prompt in common: by {rule}, {next(iter(ours))!r} here, "
            f"{next(iter(theirs))!r} there",
            remedy="Add the key prompt_id to the records of both, or give matching images the same name.",
        )
    return PairedRuns(
        a, b, tuple(pairs), tuple(_surplus(ours, theirs)), tuple(_surplus(theirs, ours)), {rule: len(pairs)}
    )


def _of_prompts(images: Iterable[RunImage], rule: PromptRule) -> dict[str, list[RunImage]]:
    prompts: defaultdict[str, list[RunImage]] = defaultdict(list)
    for image in sorted(images, key=lambda each: each.image):
        prompts[image.prompts[rule]].append(image)
    return dict(prompts)


def _surplus(ours: Mapping[str, list[RunImage]], theirs: Mapping[str, list[RunImage]]) -> Iterable[str]:
    for prompt, images in ours.items():
        yield from (each.image for each in images[len(theirs.get(prompt, ())) :])
