"""Item files and the bundled set: read whole or refused with everything that is wrong with them; written."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence, Set
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson

from uncanny.demo.scenes import DATA, Scene, scenes
from uncanny.demo.sets import SCENES
from uncanny.errors import ItemsError, Problem, UsageError
from uncanny.eval.common.inputs.problems import UTF8_MARK, by_line, parse_records, repeated_ids
from uncanny.eval.common.inputs.table_records import open_lines, record_tables
from uncanny.eval.mcq.data.flat_tables import flat_items, is_flat_table
from uncanny.eval.mcq.data.items import Item, ItemSet
from uncanny.eval.mcq.parameters import LoadParameters
from uncanny.files import dump_json
from uncanny.parameters import check_records, takes
from uncanny.records.jsonl import write_atomically, write_named
from uncanny.records.run_folder import RunFolder, check_no_links, check_within
from uncanny.records.run_manifest import RunManifest
from uncanny.wording import another_run, either

ITEMS_FILE = "items.jsonl"
OWN_ID = "give every item its own"
_COPY = "items"
_ITEMS = "Items are a file, the word `scenes` or uncanny.mcq.Item records"

# What the functions of this protocol take for a set: a file, the word `scenes`, or items.
ItemSource = str | os.PathLike[str] | Sequence[Item]


@takes(LoadParameters)
def load(source: ItemSource, parameters: LoadParameters) -> ItemSet:
    """Load all items of a file or dataset, in its order. Ids are unique. Images are not opened.

    That is a JSON Lines file, or a table (Parquet, Arrow, a folder that is a data set) with the same keys as
    columns or in the flat form that `export_table` writes: a published set is read where it lies.

    `source` may be the word `scenes`, where no file has this name: the bundled set, 34 images. It is read
    from the package, or from a copy in `folder/items`, which is made if need be. Items that are loaded
    already come back as they are; bundled ones from that copy, where a `folder` is named.

    Raises ItemsError with every invalid line and repeated id; UsageError for a file that cannot be read or
    holds no items, and for a copy in `folder` that leads out of it.

    >>> items = uncanny.mcq.load("scenes")
    >>> len(items), items[0].questions()
    (34, ('q1', 'q2', 'q3', 'q4'))
    """
    folder = None if parameters.folder is None else Path(parameters.folder)
    if not isinstance(source, str | os.PathLike):
        known = isinstance(source, ItemSet)
        items = ItemSet.of(source if known else check_records(source, Item, what=_ITEMS))
        if not items.bundled or folder is None:
            return items
        file = bundled_file(folder)
        # Scores are read from the copy, which may have come from somebody else.
        _inside(ItemSet(_read(file, None), file), folder)
        return _inside(replace(items, file=file), folder)
    bundled = is_bundled(source)
    if bundled and folder is None:
        return ItemSet(tuple(map(scene_item, scenes())), DATA / ITEMS_FILE, bundled=True, whole=True)
    file = bundled_file(folder) if bundled and folder is not None else Path(source)
    if (file / ITEMS_FILE).is_file():  # a folder of `uncanny pairs items`
        file = file / ITEMS_FILE
    if (file / "run.json").is_file():
        score = _score_call(file)
        raise UsageError(
            f"{file} is a run, not an item file", remedy=f"Pass an item file. To score the run: {score}"
        )
    base = None if parameters.root is None else Path(parameters.root)
    items = ItemSet(_read(file, base), file, base, bundled, whole=True)
    return _inside(items, folder) if bundled and folder is not None else items


def load_run_items(run: Path) -> ItemSet:
    """The items that a run in the folder `run` was asked, as it names them in `run.json`.

    Raises UsageError where they are not there, and for a set in the run folder that names files outside it.
    """
    manifest = RunFolder(run).read_manifest() or RunManifest()
    file = run / (manifest.items or "")
    if not file.is_file() and not record_tables(file):
        raise UsageError(
            f"{run} is a run, but uncanny cannot find its item file",
            remedy=f"Pass the item file: {_score_call(run)}",
        )
    items = load(file, root=manifest.root)
    if file.resolve().is_relative_to(run.resolve()):
        remedy = f"Pass them yourself: {_score_call(run)}"
        check_within(run, file, items.image_files(), remedy=remedy)
    return items


def _score_call(run: Path) -> str:
    return either(f"uncanny.mcq.score(items, {str(run)!r})", terminal=f"uncanny mcq score ITEMS {run}")


def is_bundled(source: str | os.PathLike[str]) -> bool:
    """Whether the name is that of the bundled set, and not of a file."""
    return os.fspath(source) == SCENES and not Path(SCENES).exists()


def bundled_file(folder: Path) -> Path:
    """The item file of the bundled set in `folder/items`.

    A copy that is there already is taken as it is. Raises UsageError.
    """
    target = folder / _COPY
    check_no_links(target)
    file = target / ITEMS_FILE
    return file if file.is_file() else copy_scenes(target)


def copy_scenes(folder: Path) -> Path:
    """Write `folder/items.jsonl` and the pictures, byte for byte, to `folder/images`; the item file's path.

    Ids are those of the scenes. The same call gives the same files; earlier ones are replaced. Raises
    UsageError where the folder cannot be written.
    """
    target = folder / ITEMS_FILE
    try:
        (folder / "images").mkdir(parents=True, exist_ok=True)
        for scene in scenes():
            place = folder / "images" / scene.image_path.name
            write_atomically(place, [scene.image_path.read_bytes()])
        write_items([scene_item(scene) for scene in scenes()], target)
    except OSError as error:
        raise UsageError.unwritten(folder, error) from error
    return target


def scene_item(scene: Scene) -> Item:
    """The item of one scene, its picture at `images/<file name>`; Q1 is left out on ref_pg."""
    truth = scene.mcq
    fields: dict[str, Any] = {
        "id": scene.id,
        "image": f"images/{scene.image_path.name}",
        "split": scene.split,
        **({"pair_id": scene.pair_id} if scene.pair_id is not None else {}),
        **({"artifact_type": scene.artifact_type} if scene.artifact_type is not None else {}),
        "q1": None if scene.split == "ref_pg" else truth.q1.model_dump(),
        "q2": truth.q2.model_dump(),
        "q3": truth.q3.model_dump(),
        "q4": truth.q4.model_dump(),
    }
    return Item.model_validate(fields)


def parse_items(file: Path, root: Path | None = None) -> tuple[list[tuple[int, Item]], list[Problem]]:
    """The valid lines with their numbers, and what is wrong with the others, ids that come again included.

    Raises UsageError.
    """
    if is_flat_table(file):
        return flat_items(file, root)
    numbered, problems = parse_records(file, Item, root=root)
    return numbered, [*problems, *repeated_ids(numbered, OWN_ID, problems)]


def broken_pairs(file: Path, lines: Set[int | None]) -> set[str]:
    """The pair ids on lines that do not validate, as far as they can be read."""
    pairs: set[str] = set()
    if not lines:
        return pairs
    with open_lines(file) as rows:
        for number, line in enumerate(rows, start=1):
            if number in lines:
                with suppress(orjson.JSONDecodeError):
                    record = orjson.loads(line.removeprefix(UTF8_MARK))
                    pair = record.get("pair_id") if isinstance(record, dict) else None
                    pairs |= {pair} if isinstance(pair, str) else set()
    return pairs


def write_items(items: Iterable[Item], target: Path) -> None:
    """Write an item file in one step."""
    write_named(target, item_lines(items))


def item_lines(items: Iterable[Item]) -> Iterator[bytes]:
    """The lines of an item file; keys that were not set are left out."""
    return (dump_json(item.model_dump(mode="json", exclude_unset=True)) + b"\n" for item in items)


def _read(file: Path, root: Path | None) -> tuple[Item, ...]:
    numbered, problems = parse_items(file, root)
    if problems:
        problems.sort(key=by_line)
        raise ItemsError(str(file), problems, remedy="Correct these lines; nothing was started.")
    if not numbered:
        raise UsageError(f"{file} contains no items", remedy="Pass a JSON Lines file with one item per line.")
    return tuple(item for _, item in numbered)


def _inside(items: ItemSet, folder: Path) -> ItemSet:
    remedy = f"It is not the bundled set: remove {items.file.parent}, or {another_run()}."
    check_within(folder, items.file, items.image_files(), remedy=remedy)
    return items
