"""Pairs to judge: from a pair file, from two folders with equal names, or the bundled scenes."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import orjson

from uncanny.demo.scenes import scenes
from uncanny.errors import UsageError
from uncanny.eval.mcq.load import parse_records
from uncanny.eval.mcq.problems import ItemsError, Problem
from uncanny.eval.realism.records import Pair
from uncanny.images import SkippedInputs, discover, display_path
from uncanny.records.jsonl import write_atomically

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
