"""Pairs and verdicts as records: an original and its edit, and what a model said of them.

Source: SAGI, supplementary, sections 1.5 and 1.6; the file formats are this project's own.

Pairs to judge: from a pair file, from two folders with equal names, or the bundled scenes.

Verdict files: read whole, labels derived again, or refused with everything that is wrong with them."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Literal

import orjson
from pydantic import Field, StringConstraints

from uncanny.agents.verdict import Asked
from uncanny.answers.realism_verdict import Position, Realistic
from uncanny.demo.scenes import scenes
from uncanny.errors import UsageError
from uncanny.eval.common.problems import ItemsError, Problem, parse_records, shown
from uncanny.graphs.ugda_cases import Case, Label, label_of
from uncanny.images import SkippedInputs, discover, display_path
from uncanny.records.jsonl import write_atomically
from uncanny.records.run_folder import RunFolder, Unfinished, unfinished
from uncanny.schema import Record, Usage

VERDICTS = "verdicts.jsonl"


Outcome = Literal["judged", "undetermined", "refused", "failed", "unusable"]
NonEmpty = Annotated[str, StringConstraints(min_length=1)]


class Pair(Record):
    """One line of a pair file. `original` and `edited` are paths relative to the file or to a root.

    `group` is what shares are broken down by, such as the model that made the edit; None for no group.
    """

    id: NonEmpty
    original: NonEmpty
    edited: NonEmpty
    group: NonEmpty | None = None


class CheckError(Record):
    """Why one question has no verdict; `asked` is `images` where nothing could be asked."""

    asked: Asked | Literal["images"]
    kind: str
    message: str


class Side(Record):
    """One image of a pair as a file: its digest and its pixels as seen; None where it could not be read.

    `file_stamp` is as in annotations.
    """

    image: str
    sha256: str | None = None
    width: int | None = None
    height: int | None = None
    changes: tuple[str, ...] = ()
    file_stamp: str | None = None


class Verdict(Record):
    """One line of `verdicts.jsonl`: what was answered, in the words of the question, and the label.

    None in `first`, `original_first` or `edited_first` is a question that was not asked or that brought no
    verdict; after `no` the second check is not asked. `case` is None but for `deceiving`. What follows
    `case` is this tool's own, and missing in verdicts of others: `outcome` says whether the label stands
    (`judged`), or why it is `undetermined`: no verdict could be read (`undetermined`), the model declined
    (`refused`), a call failed (`failed`), or the pair could not be shown (`unusable`). `raw` has the last
    answer to each question asked. `notes` tells what is odd about a pair that was judged all the same.
    Where several models took part, a further key `models` has the calls by model.
    """

    id: NonEmpty
    group: str | None = None
    first: Realistic | None
    original_first: Position | None
    edited_first: Position | None
    label: Label | None = None
    case: Case | None = None
    outcome: Outcome | None = None
    raw: dict[Asked, str | None] = Field(default_factory=dict)
    errors: tuple[CheckError, ...] = ()
    notes: tuple[str, ...] = ()
    original: Side | None = None
    edited: Side | None = None
    model: str | None = None
    prompts: str | None = None
    asked: str | None = None
    usage: Usage | None = None


SCENES = "scenes"
PAIR_FILE = "pairs.jsonl"


@dataclass(frozen=True, slots=True)
class PairFiles:
    """One pair with the places of its files, which may be missing."""

    id: str
    original: Path
    edited: Path
    group: str | None = None


@dataclass(frozen=True, slots=True)
class PairSet:
    """Pairs with unique ids, and where they came from: a file, two folders, or nothing for the scenes.

    `skipped` is what else lay in the folders.
    """

    pairs: tuple[PairFiles, ...]
    source: tuple[Path, ...] = ()
    skipped: SkippedInputs | None = None

    def named_from(self, folder: Path) -> str:
        """The source as a run's manifest has it, from `folder`, so that both can be moved together."""
        return " ".join(os.path.relpath(path, folder) for path in self.source) or SCENES


def scene_pairs() -> PairSet:
    """The ten bundled pairs; `edited` is the one with the anomaly, `group` the style."""
    by_pair: defaultdict[str, dict[str, Path]] = defaultdict(dict)
    styles: dict[str, str] = {}
    for scene in scenes():
        by_pair[scene.pair_id][scene.role] = scene.image_path
        styles[scene.pair_id] = scene.style
    return PairSet(
        tuple(
            PairFiles(pair, sides["clean"], sides["anomalous"], styles[pair])
            for pair, sides in sorted(by_pair.items())
        )
    )


def store_scene_pairs(folder: Path) -> Path:
    """Copy the bundled pairs, byte for byte, into `folder`; the path of the pair file written there.

    So that a run on them can be moved like any other. What is there already stays. Raises UsageError.
    """
    target = folder / PAIR_FILE
    lines: list[bytes] = []
    try:
        for pair in scene_pairs().pairs:
            names = {"original": f"original/{pair.original.name}", "edited": f"edited/{pair.edited.name}"}
            for side, file in (("original", pair.original), ("edited", pair.edited)):
                (folder / side).mkdir(parents=True, exist_ok=True)
                if not (folder / names[side]).exists():
                    write_atomically(folder / names[side], [file.read_bytes()])
            lines.append(orjson.dumps({"id": pair.id, **names, "group": pair.group}) + b"\n")
        if not target.exists():
            write_atomically(target, lines)
    except OSError as error:
        raise UsageError(f"{folder} cannot be written: {error.strerror or error}") from error
    return target


def load_pairs(path: Path, root: Path | None = None) -> PairSet:
    """The pairs of a JSON Lines file, or of a folder that holds the folders `original` and `edited`.

    Images are not looked at. Raises ItemsError with every invalid line and repeated id, UsageError for what
    cannot be read or holds no pairs, or a `root` that is no folder.
    """
    if path.is_dir():
        return folder_pairs(path / "original", path / "edited")
    if root is not None and not root.is_dir():
        raise UsageError(f"{root} is no folder", remedy="Give the folder that the pairs' paths start from.")
    found, problems = parse_records(path, Pair)
    problems += _repeated(found)
    if problems:
        ordered = sorted(problems, key=lambda problem: problem.line or 0)
        raise ItemsError(str(path), ordered, remedy="Correct these lines; nothing was started.")
    if not found:
        raise UsageError(f"{path} holds no pairs", remedy="Give a JSON Lines file with one pair a line.")
    base = root if root is not None else path.parent
    pairs = (PairFiles(one.id, base / one.original, base / one.edited, one.group) for _, one in found)
    return PairSet(tuple(pairs), (path,))


def folder_pairs(original: Path, edited: Path) -> PairSet:
    """Images of the same name in both folders, in order of names; suffixes may differ.

    The id is the path within the folder without its suffix, the group the folder that it is in there, if
    any. An original may also lie outside that folder, so that one serves several groups. A name that only
    one of the folders has is a pair with a missing side. Raises UsageError, ItemsError.
    """
    for folder in (original, edited):
        if not folder.is_dir():
            raise UsageError(
                f"{folder} is no folder",
                remedy="Give a pair file, a folder with original/ and edited/ in it, or both with --original "
                "and --edited.",
            )
    (originals, beside_originals), (edits, beside_edits) = _images(original), _images(edited)
    pairs: list[PairFiles] = []
    used: set[str] = set()
    for key, file in edits.items():
        match = next((name for name in (key, *_outside(key)) if name in originals), None)
        used.add(match or key)
        source = original / f"{key}{file.suffix}" if match is None else originals[match]
        pairs.append(PairFiles(key, source, file, _group(key)))
    for key, file in originals.items():
        if key not in used:
            pairs.append(PairFiles(key, file, edited / f"{key}{file.suffix}", _group(key)))
    if not pairs:
        raise UsageError(f"No images in {original} and {edited}")
    ordered = sorted(pairs, key=lambda pair: pair.id)
    return PairSet(tuple(ordered), (original, edited), beside_originals + beside_edits)


def _images(folder: Path) -> tuple[Mapping[str, Path], SkippedInputs]:
    """Image files by their path within the folder, without suffix, and what else is there.

    Raises ItemsError where two share one.
    """
    inside = discover([folder])
    found: dict[str, Path] = {}
    problems: list[Problem] = []
    for file in inside.files:
        key = display_path(file.relative_to(folder).with_suffix(""))
        if key in found:
            message = f"{found[key].name} and {file.name} have the same name; keep one of them"
            problems.append(Problem(key, None, message))
        found.setdefault(key, file)
    if problems:
        raise ItemsError(str(folder), problems)
    return found, inside.skipped


def _outside(key: str) -> Iterator[str]:
    _, slash, rest = key.partition("/")
    while slash:
        yield rest
        _, slash, rest = rest.partition("/")


def _group(key: str) -> str | None:
    return key.rpartition("/")[0] or None


def _repeated(found: Sequence[tuple[int, Pair]]) -> list[Problem]:
    first: dict[str, int] = {}
    problems = []
    for line, pair in found:
        if pair.id in first:
            message = f"the id was used before, at line {first[pair.id]}; give every pair its own"
            problems.append(Problem(pair.id, "id", message, line=line))
        first.setdefault(pair.id, line)
    return problems


def load_verdicts(paths: Sequence[Path]) -> tuple[VerdictSet, ...]:
    """One set a file; a run folder stands for the file in it.

    Each verdict comes back with its label and case as derived from its answers. Raises ItemsError with every
    invalid line, repeated id, and stored label or case that disagrees with the answers of all files, and
    UsageError for a file that cannot be read, holds no verdicts, or is named twice.
    """
    for path in paths:
        if path.is_dir():
            RunFolder(path).check_links()
    files = [path / VERDICTS if path.is_dir() else path for path in paths]
    if len({file.resolve() for file in files}) < len(files):
        raise UsageError("A verdict file is named twice", remedy="Name each file once.")
    sets: list[VerdictSet] = []
    problems: list[Problem] = []
    for file in files:
        found, invalid = parse_records(file, Verdict)
        wrong = sorted(
            [*invalid, *_repeated_verdicts(found), *_contradictions(found)], key=lambda one: one.line or 0
        )
        problems += [replace(one, message=f"{file}: {one.message}") for one in wrong] if files[1:] else wrong
        if not found and not wrong:
            raise UsageError(f"{file} holds no verdicts", remedy="Give the verdicts.jsonl of a run.")
        left = unfinished(file.parent, len(found)) if file.name == VERDICTS else None
        sets.append(VerdictSet(file.stem, file, tuple(_labelled(verdict) for _, verdict in found), left))
    if problems:
        what = str(files[0]) if len(files) == 1 else f"{len(files)} verdict files"
        raise ItemsError(what, problems, remedy="Correct these lines; nothing was scored.")
    return _named(sets)


def _labelled(verdict: Verdict) -> Verdict:
    label, case = label_of(verdict.first, verdict.original_first, verdict.edited_first)
    return verdict.model_copy(update={"label": label, "case": case})


def _contradictions(found: Sequence[tuple[int, Verdict]]) -> Iterator[Problem]:
    """A record may leave label or case out; what it stores has to follow from its answers."""
    for line, verdict in found:
        derived = label_of(verdict.first, verdict.original_first, verdict.edited_first)
        for field in ("label", "case"):
            stored, right = getattr(verdict, field), getattr(derived, field)
            if field in verdict.model_fields_set and stored != right:
                message = f"{shown(stored)} is stored, the answers give {shown(right)}; correct either"
                yield Problem(verdict.id, field, message, line=line)


def _repeated_verdicts(found: Sequence[tuple[int, Verdict]]) -> Iterator[Problem]:
    first: dict[str, int] = {}
    for line, verdict in found:
        if verdict.id in first:
            message = f"the id was used before, at line {first[verdict.id]}; keep one verdict a pair"
            yield Problem(verdict.id, "id", message, line=line)
        first.setdefault(verdict.id, line)


def _named(sets: Sequence[VerdictSet]) -> tuple[VerdictSet, ...]:
    """All by their one model, else all by their folder or file, else all by their path."""
    for name_of in (_model, _place):
        names = [name_of(each) for each in sets]
        if None not in names and len(set(names)) == len(names):
            break
    else:
        names = [str(each.path) for each in sets]
    return tuple(replace(each, name=name or "") for each, name in zip(sets, names, strict=True))


def _model(found: VerdictSet) -> str | None:
    models = {verdict.model for verdict in found.verdicts}
    return models.pop() if len(models) == 1 else None


def _place(found: VerdictSet) -> str | None:
    return (found.path.parent.name if found.path.name == VERDICTS else found.path.stem) or None


@dataclass(frozen=True, slots=True)
class VerdictSet:
    """Verdicts of one file in its order. `name` is unique among the sets scored together.

    `unfinished` says how many pairs of its run have no verdict yet, None where none is known to be missing.
    """

    name: str
    path: Path
    verdicts: tuple[Verdict, ...]
    unfinished: Unfinished | None = None
