"""The pairs to judge: an original and its edit each.

They come from a pair file, from two folders with equal names, from the bundled scenes, or from a program, and
are read whole or refused with everything that is wrong with them. Images are looked at by the run only.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from uncanny.demo.scenes import SETS, bundled_set, pictures
from uncanny.demo.sets import SCENES
from uncanny.errors import ItemsError, UsageError
from uncanny.eval.common.inputs.pair_folders import (
    SetOfPairs,
    check_named_once,
    paired_files,
    pairs_file,
)
from uncanny.eval.common.inputs.problems import NonEmpty, by_line, parse_records, repeated_ids
from uncanny.eval.common.inputs.table_records import record_tables
from uncanny.eval.realism.parameters import LoadParameters
from uncanny.files import dump_json, read_file
from uncanny.images.columns import plain_cells
from uncanny.images.row_cells import Cell
from uncanny.parameters import check_records, takes
from uncanny.records.jsonl import write_atomically
from uncanny.records.run_folder import check_no_links, check_within
from uncanny.schema import Record
from uncanny.wording import another_run, option

PAIR_FILE = "pairs.jsonl"
_PAIRS = "Pairs are a file, a folder, the word `scenes` or uncanny.realism.PairFiles records"


class Pair(Record):
    """One line of a pair file. `original` and `edited` are paths relative to the file or to a root.

    `group` is what shares are broken down by, such as the model that made the edit; None for no group.
    Further keys with text, numbers or flags go into the verdicts, under `columns`.
    """

    id: NonEmpty
    original: NonEmpty
    edited: NonEmpty
    group: NonEmpty | None = None


@dataclass(frozen=True, slots=True)
class PairFiles:
    """One pair with the places of its files, which may be missing, and further `columns` for its verdict."""

    id: str
    original: Path
    edited: Path
    group: str | None = None
    columns: Mapping[str, Cell] = field(default_factory=dict)


class PairSet(SetOfPairs[PairFiles]):
    """Pairs with unique ids, and where they came from: a file, two folders, the scenes, or a program.

    `skipped` is what else lay in the folders.
    """

    __slots__ = ()
    unit = "pair"

    def source_from(self, folder: Path) -> str:
        """The source as a run's manifest has it, from `folder`, so that both can be moved together."""
        if isinstance(self.source, str):
            return self.source
        return " ".join(os.path.relpath(path, folder) for path in self.source)


PairSource = str | os.PathLike[str] | PairSet | Sequence[PairFiles]


@takes(LoadParameters, optional=True)
def load(source: PairSource | None, parameters: LoadParameters) -> PairSet:
    """Load pairs to judge, in the forms that `uncanny realism run` takes.

    `source` is a JSON Lines file with a `Pair` a line, a folder that holds the folders `original` and
    `edited`, the word `scenes` for the bundled pairs, or pairs that a program has made. In its place
    `original` and `edited` name two folders. Images are not looked at: a pair with a missing side is a pair.

    Raises ItemsError with every invalid line and repeated id, UsageError for what cannot be read or holds no
    pairs, and for sources that do not go together.

    >>> len(uncanny.realism.load("scenes"))
    16
    """
    original, edited, root = parameters.original, parameters.edited, parameters.root
    check_named_once(source, original, edited)
    if original is not None and edited is not None:
        return folder_pairs(Path(original), Path(edited))
    assert source is not None
    if not isinstance(source, str | os.PathLike):
        if isinstance(source, PairSet):
            return source
        return _pairs_of_program(check_records(source, PairFiles, what=_PAIRS))
    bundled = bundled_set(os.fspath(source))
    if bundled is None:
        return load_pairs(Path(source), None if root is None else Path(root))
    if root is not None:
        raise UsageError(f"{option('root')} cannot be used with the bundled pairs", remedy="Remove it.")
    return scene_pairs(bundled)


def load_pairs(path: Path, root: Path | None = None) -> PairSet:
    """The pairs of a file or a data set, or of a folder that holds the folders `original` and `edited`.

    Raises what `load` raises.
    """
    path = pairs_file(path)
    if path.is_dir() and ((path / "original").is_dir() or not record_tables(path)):
        return folder_pairs(path / "original", path / "edited")
    lines, problems = parse_records(path, Pair, root=root)
    problems += repeated_ids(lines, "give every pair its own", problems)
    if problems:
        ordered = sorted(problems, key=by_line)
        raise ItemsError(str(path), ordered, remedy="Correct these lines; nothing was started.")
    if not lines:
        raise UsageError(f"{path} contains no pairs", remedy="Pass a JSON Lines file with one pair per line.")
    base = root if root is not None else path.parent
    pairs = (
        PairFiles(
            pair.id,
            base / pair.original,
            base / pair.edited,
            pair.group,
            plain_cells(pair.model_extra or {}),
        )
        for _, pair in lines
    )
    return PairSet(tuple(pairs), (path,))


def folder_pairs(original: Path, edited: Path) -> PairSet:
    """Images of the same name in both folders, in order of names; suffixes may differ.

    The id is the path within the folder without its suffix, the group the folder that it is in there, if
    any. An original may also lie outside that folder, so that it serves several groups. A name that only
    one of the folders has is a pair with a missing side. Raises what `load` raises.
    """
    files, skipped = paired_files(original, edited)
    pairs = (PairFiles(each.key, each.original, each.edited, each.folder) for each in files)
    return PairSet(tuple(pairs), (original, edited), skipped)


def scene_pairs(name: str = SCENES) -> PairSet:
    """The bundled pairs; `edited` is the one with the anomaly, `group` the style."""
    by_pair: defaultdict[str, dict[str, Path]] = defaultdict(dict)
    styles: dict[str, str] = {}
    for scene in pictures(name):
        if scene.pair_id is not None:
            by_pair[scene.pair_id][scene.role] = scene.image_path
            styles[scene.pair_id] = scene.style
    pairs = (
        PairFiles(pair, sides["clean"], sides["anomalous"], styles[pair])
        for pair, sides in sorted(by_pair.items())
    )
    return PairSet(tuple(pairs), name)


def pairs_of_run(pairs: PairSet, run: Path, *, store: bool) -> PairSet:
    """`pairs` as the run in the folder `run` judges them.

    The bundled ones are copied into it where `store` says so, and read from there where they are already, so
    that such a run can be moved like any other. Raises UsageError where what lies there is something else.
    """
    folder = run / "pairs"
    if (
        not isinstance(pairs.source, str)
        or pairs.source not in SETS
        or not (store or (folder / PAIR_FILE).is_file())
    ):
        return pairs
    check_no_links(folder)
    file = store_scene_pairs(folder, pairs.source)
    stored = load_pairs(file)
    remedy = f"It is not the bundled set: remove {folder}, or {another_run()}."
    check_within(run, file, (side for pair in stored for side in (pair.original, pair.edited)), remedy=remedy)
    if not {pair.id for pair in stored} & {pair.id for pair in pairs}:
        raise UsageError(f"{file} holds another bundled set than {pairs.source}", remedy=remedy)
    return stored


def store_scene_pairs(folder: Path, name: str = SCENES) -> Path:
    """Copy the bundled pairs, byte for byte, into `folder`; the path of the pair file written there.

    What is there already stays. Raises UsageError.
    """
    target = folder / PAIR_FILE
    lines: list[bytes] = []
    try:
        for pair in scene_pairs(name):
            names = {"original": f"original/{pair.original.name}", "edited": f"edited/{pair.edited.name}"}
            for side, file in (("original", pair.original), ("edited", pair.edited)):
                (folder / side).mkdir(parents=True, exist_ok=True)
                if not (folder / names[side]).exists():
                    write_atomically(folder / names[side], [read_file(file)])
            lines.append(dump_json({"id": pair.id, **names, "group": pair.group}) + b"\n")
        if not target.exists():
            write_atomically(target, lines)
    except OSError as error:
        raise UsageError.unwritten(folder, error) from error
    return target


def _pairs_of_program(pairs: Sequence[PairFiles]) -> PairSet:
    """Paths become absolute: they name the same files from every working directory."""
    problems = repeated_ids([(None, pair) for pair in pairs], "give every pair its own")
    if problems:
        raise ItemsError("the pairs", problems, remedy="Correct these pairs; nothing was started.")
    if not pairs:
        raise UsageError("There are no pairs", remedy="Give one at least.")
    files = (
        replace(pair, original=Path(pair.original).absolute(), edited=Path(pair.edited).absolute())
        for pair in pairs
    )
    return PairSet(tuple(files))
