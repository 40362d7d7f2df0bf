"""A set of items published: the release's flat table as Parquet or CSV, or a folder for the Hugging Face Hub.

Each row has all that somebody needs to ask it: the picture, the picture with boxes, and the prompts word for
word, whosever they are. So what was exported is asked with the same requests as the set it was made of.
"""

from __future__ import annotations

import csv
import io
import json
import os
import shutil
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from uncanny import __version__
from uncanny.errors import ImageError, ItemsError, Problem, UsageError
from uncanny.eval.common.hub import Size, hub_schema, picture_type
from uncanny.eval.common.inputs.table_files import ImageFolder, columns
from uncanny.eval.mcq.data.card import CARD, SPLIT, Card, check_card, prompts_id
from uncanny.eval.mcq.data.items import QUESTIONS, Item, ItemSet, Question, TextChoice
from uncanny.eval.mcq.data.load import ItemSource, load
from uncanny.eval.mcq.data.released_rows import COLUMNS, IMAGE_COLUMNS, ROLE, STANDARD_E, CellError
from uncanny.eval.mcq.data.texts import question_text, system_text
from uncanny.eval.mcq.parameters import ExportForm, ExportParameters
from uncanny.extras import pyarrow
from uncanny.images.encode import PixelPolicy
from uncanny.images.file_bytes import read_image_file
from uncanny.images.overlay import draw_boxes
from uncanny.parameters import takes
from uncanny.prompts import PromptSet
from uncanny.prompts.folders import read_prompts
from uncanny.records.jsonl import make_folder_of, write_atomically, write_named
from uncanny.wording import option, shown

# A few pictures are in memory at a time, and as few are read for a single row.
_ROWS_AT_ONCE: Final = 8
# The Hub shows files of this size and below.
_SHARD_BYTES: Final = 400 * 2**20
_COLUMNS: Final = (
    *("row_id", "image_role", "split", "pair_id", "artifact_type", "image", "q3_overlay_image"),
    *("prompts_id", "system_prompt", "answer_form", *(f"{question}_prompt" for question in QUESTIONS)),
    *("q2_options", "q3_boxes", "q4_options", *(f"{question}_answer" for question in QUESTIONS)),
)


@takes(ExportParameters)
def export_table(source: ItemSource, parameters: ExportParameters) -> Path:
    """Write a Parquet file, a CSV file, or a folder for the Hugging Face Hub, with one row per item.

    `to` is by default what the suffix of `out` says, `.parquet` or `.csv`. `hf` makes `out` a folder with
    Parquet in `data/` and a card in `README.md`; `datasets.load_dataset` reads it, and it can be uploaded.
    The card has the `license` and the `title`. `source` is as in `load`.

    Parquet embeds the pictures; beside a CSV they are in a folder `<stem>_images`. Stored overlays are taken
    as they are; others are drawn, unless `overlays` is false. Prompts are those that a run would ask with,
    whole: the set's own, else uncanny's, or those of the folder `prompts`; `prompts_id` has the id of
    uncanny's, and is null for others. Columns beyond the release's: `split`, `pair_id`, `artifact_type`,
    `q3_boxes`, `prompts_id` and `answer_form`, then one for each further key of an item, such as a generator
    or a group. Those are booleans, numbers, text or lists of them where all items agree, else JSON as text;
    in a CSV everything is text. Only a few items' pictures are in memory at a time.

    Returns `out`. Raises UsageError for another suffix, for an empty set, for a further key that is called as
    a column is, for a folder with other data or with a card that somebody has edited (unless `force`), or
    where pyarrow is missing or nothing can be written; ItemsError for pictures that cannot be read. Earlier
    files are replaced only by whole ones.

    >>> str(uncanny.mcq.export_table(uncanny.mcq.load("scenes")[:3], out="scenes.csv"))
    'scenes.csv'
    """
    items, path = load(source, root=parameters.root), Path(parameters.out)
    overlays, license, title = parameters.overlays, parameters.license, parameters.title
    if not items:
        raise UsageError("There are no items to export", remedy="Give one at least.")
    form = export_form(path, parameters.to)
    if form != "hf" and (license is not None or title is not None):
        raise UsageError(
            f"{option('license')} and {option('title')} apply only to a dataset folder",
            remedy=f"Remove them, or write such a folder with {option('to', 'hf')}.",
        )
    ours, further = read_prompts("mcq", parameters.prompts), _further(items)
    if form == "csv":
        _write_csv(_rows(items, ours, overlays, further, texts=further), path)
        return path
    schema = _schema(items, ours, further)
    texts = [name for name in further if schema.field(name).type == pyarrow("pyarrow").string()]
    rows = _rows(items, ours, overlays, further, texts=texts)
    if form == "parquet":
        _write_parquet(rows, path, schema)
    else:
        _check_folder(path, items, force=parameters.force)
        card = Card(items, ours, license, title or path.resolve().name)
        _write_folder(rows, path, schema, card.text)
    return path


def export_form(path: Path, to: ExportForm | None) -> ExportForm:
    """What is written to a path: what was asked for, else what the suffix says. Raises UsageError."""
    if to is not None:
        return to
    for form in ("parquet", "csv"):
        if path.suffix.lower() == f".{form}":
            return form
    raise UsageError(
        f"{path} does not end in .parquet or .csv",
        remedy=f"Change the name, or write a folder for the Hugging Face Hub with {option('to', 'hf')}.",
    )


_Picture = tuple[str, bytes]
_Row = tuple[dict[str, Any], Mapping[str, _Picture | None]]


def _further(items: ItemSet) -> tuple[str, ...]:
    """Further keys that some item has a value for, as they come.

    Raises UsageError for those that are columns of the table, or that no column can be called.
    """
    keys = dict.fromkeys(
        key for item in items for key, value in (item.model_extra or {}).items() if value is not None
    )
    taken = [key for key in keys if key in COLUMNS]
    if taken:
        raise UsageError(
            f"Items have the key {shown(taken[0])}, which is a reserved column of the table",
            remedy="Rename the key in the item file.",
        )
    nameless = [key for key in keys if not key or "\0" in key]
    if nameless:
        raise UsageError(
            f"Items have the key {shown(nameless[0])}, which cannot name a column",
            remedy="Rename the key in the item file.",
        )
    return tuple(keys)


def _rows(
    items: ItemSet, ours: PromptSet, overlays: bool, further: Collection[str], *, texts: Collection[str]
) -> Iterator[_Row]:
    """`texts` are the further keys that are written as text, JSON where they are something else.

    Raises ItemsError with all pictures that cannot be read.
    """
    names = Counter(items.image_path(item).name for item in items)
    problems: list[Problem] = []
    for number, item in enumerate(items):
        name = items.image_path(item).name
        try:
            # Rows are found by these names: each has one of its own, and the file keeps its name in it.
            pictures = _pictures(item, items, overlays, name if names[name] == 1 else f"{number}/{name}")
        except CellError as error:
            problems.append(Problem(item.id, error.column, error.message))
            continue
        if not problems:
            cells = {key: (item.model_extra or {}).get(key) for key in further}
            cells |= {key: _as_text(cells[key]) for key in texts}
            yield _row(item, ours) | cells, pictures
    if problems:
        raise ItemsError(str(items.file), problems, remedy="Correct the items; nothing was exported.")


def _row(item: Item, ours: PromptSet) -> dict[str, Any]:
    asked = item.questions()
    return {
        "row_id": item.id,
        "image_role": ROLE[item.split],
        "split": item.split,
        "pair_id": item.pair_id,
        "artifact_type": item.artifact_type,
        "prompts_id": prompts_id(item, ours),
        "system_prompt": system_text(item, ours) or None,
        "answer_form": item.answer_form if item.prompts else "letter",
        **{
            f"{question}_prompt": question_text(item, question, ours) if question in asked else None
            for question in QUESTIONS
        },
        "q2_options": _options("q2", item.q2),
        "q3_boxes": {key: list(box) for key, box in sorted(item.q3.boxes.items())} if item.q3 else None,
        "q4_options": _options("q4", item.q4),
        **{f"{question}_answer": item.right(question) for question in QUESTIONS},
    }


def _as_text(value: object) -> str | None:
    return value if value is None or isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _options(question: Question, choice: TextChoice | None) -> dict[str, str] | None:
    if choice is None:
        return None
    last = (choice.model_extra or {}).get("option_e")
    return {**dict(sorted(choice.options.items())), "E": last or STANDARD_E[question]}


def _pictures(item: Item, items: ItemSet, overlays: bool, name: str) -> dict[str, _Picture | None]:
    """By column. Raises CellError with the item's key for one that cannot be read."""
    limit = PixelPolicy().max_file_bytes
    place, stored = items.image_path(item), items.overlay_path(item)
    column, file = "image", item.image
    pictures: dict[str, _Picture | None] = dict.fromkeys(IMAGE_COLUMNS)
    try:
        pictures["image"] = (name, read_image_file(place, limit))
        if stored is not None:
            column, file = "overlay", item.overlay or file
            data = read_image_file(stored, limit)
            pictures["q3_overlay_image"] = (f"{Path(name).parent / stored.name}", data)
        elif overlays and item.q3 is not None and item.q3.boxes:
            drawn = draw_boxes(place, item.q3.boxes)
            pictures["q3_overlay_image"] = (f"{Path(name).with_suffix('')}_q3.png", drawn)
    except ImageError as error:
        raise CellError(column, f"{shown(file)}: {error.message}") from error
    return pictures


def _schema(items: ItemSet, ours: PromptSet, further: Collection[str]) -> Any:
    arrow = pyarrow("pyarrow")
    text, picture = arrow.string(), picture_type()
    options = arrow.struct([(letter, text) for letter in "ABCDE"])
    boxes = arrow.struct([(letter, arrow.list_(arrow.float64())) for letter in "ABCD"])
    kinds = {"image": picture, "q3_overlay_image": picture, "q2_options": options, "q4_options": options}
    kinds["q3_boxes"] = boxes
    kinds |= {key: _kind([(item.model_extra or {}).get(key) for item in items]) for key in further}
    ids = {prompts_id(item, ours) for item in items}
    prompts = {
        "ids": sorted(each for each in ids if each is not None),
        "own": None in ids,
        "files": ours.hashes() if ours.id in ids else {},
    }
    return hub_schema(
        (arrow.field(name, kinds.get(name, text)) for name in (*_COLUMNS, *further)),
        IMAGE_COLUMNS,
        uncanny={"protocol": "mcq", "source": "SalArt-VQA", "version": __version__, "prompts": prompts},
    )


def _kind(values: list[Any]) -> Any:
    """The Arrow type of a further key's values; text where they have several, or are structures."""
    arrow, types = pyarrow("pyarrow"), pyarrow("pyarrow.types")
    try:
        kind = arrow.array(values).type
    except (arrow.ArrowException, OverflowError):
        return arrow.string()
    inner = kind.value_type if types.is_list(kind) else kind
    return (
        kind if inner in (arrow.bool_(), arrow.int64(), arrow.float64(), arrow.string()) else arrow.string()
    )


def _write_parquet(rows: Iterator[_Row], path: Path, schema: Any) -> None:
    temporary = path.with_name(f".{path.name}.tmp")
    try:
        make_folder_of(path)
        with pyarrow("pyarrow.parquet").ParquetWriter(temporary, schema, write_page_index=True) as writer:
            for batch, _ in _batches(rows):
                writer.write_table(pyarrow("pyarrow").Table.from_pylist(batch, schema=schema))
        temporary.replace(path)
    except OSError as error:
        raise UsageError.unwritten(path, error) from error
    finally:
        temporary.unlink(missing_ok=True)


def _batches(rows: Iterator[_Row]) -> Iterator[tuple[list[dict[str, Any]], int]]:
    """A few rows at a time, with the bytes of their pictures."""
    batch: list[dict[str, Any]] = []
    size = 0
    for row, pictures in rows:
        cells = {
            column: None if picture is None else {"bytes": picture[1], "path": picture[0]}
            for column, picture in pictures.items()
        }
        batch.append(row | cells)
        size += sum(len(picture[1]) for picture in pictures.values() if picture is not None)
        if len(batch) == _ROWS_AT_ONCE:
            yield batch, size
            batch, size = [], 0
    if batch:
        yield batch, size


def _write_csv(rows: Iterator[_Row], path: Path) -> None:
    folder = ImageFolder(path.parent / f"{path.stem}_images")
    try:
        write_named(path, _csv_lines(rows, folder))
    except BaseException as error:
        folder.take_back()
        if isinstance(error, OSError):
            raise UsageError.unwritten(path, error) from error
        raise


def _csv_lines(rows: Iterator[_Row], folder: ImageFolder) -> Iterator[bytes]:
    line, writer = io.StringIO(), None
    for row, pictures in rows:
        stored = {column: picture and folder.put(picture[1]) for column, picture in pictures.items()}
        cells = {key: _as_text(value) for key, value in (row | stored).items()}
        if writer is None:
            writer = csv.DictWriter(line, list(cells))
            writer.writeheader()
        writer.writerow(cells)
        yield line.getvalue().encode()
        line.seek(0)
        line.truncate()


def _check_folder(folder: Path, items: ItemSet, *, force: bool) -> None:
    """Raises UsageError for a place where the data of somebody else, or an edited card, would be lost."""
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder} is a file", remedy="Pass a folder for the dataset.")
    if items.file.exists() and items.file.resolve() in (folder.resolve(), *_data_files(folder.resolve())):
        raise UsageError(
            f"{folder} is the folder of the items themselves", remedy="Pass another folder to write to."
        )
    for file in _data_files(folder):
        if not exported_before(file):
            raise UsageError(
                f"{file} is not an export of items, and would be read as part of it",
                remedy="Remove it, or pass another folder.",
            )
    if not force:
        check_card(folder)


def _data_files(folder: Path) -> list[Path]:
    return sorted((folder / "data").glob("*.parquet"))


def _write_folder(rows: Iterator[_Row], folder: Path, schema: Any, card: Callable[[Any, Size], str]) -> None:
    """Data first, then the card; an earlier export stays until all of the new one is written."""
    work, fresh = folder / f".data.{os.getpid()}.tmp", not folder.exists()
    try:
        work.mkdir(parents=True)
        shards, size = _write_shards(rows, work, schema)
        (folder / "data").mkdir(exist_ok=True)
        for file in _data_files(folder):
            file.unlink()
        for number, shard in enumerate(shards):
            shard.replace(folder / "data" / f"{SPLIT}-{number:05d}-of-{len(shards):05d}.parquet")
        write_atomically(folder / CARD, [card(schema, size).encode()])
    except OSError as error:
        raise UsageError.unwritten(folder, error) from error
    finally:
        shutil.rmtree(work, ignore_errors=True)
        if fresh and folder.is_dir() and not any(folder.iterdir()):
            folder.rmdir()


def _write_shards(rows: Iterator[_Row], work: Path, schema: Any) -> tuple[list[Path], Size]:
    shards: list[Path] = []
    writer, room, number, unpacked = None, 0, 0, 0
    try:
        for batch, size in _batches(rows):
            if writer is None or size > room:
                if writer is not None:
                    writer.close()
                shards.append(work / f"{len(shards)}.parquet")
                writer = pyarrow("pyarrow.parquet").ParquetWriter(shards[-1], schema, write_page_index=True)
                room = _SHARD_BYTES
            room -= size
            table = pyarrow("pyarrow").Table.from_pylist(batch, schema=schema)
            number, unpacked = number + len(batch), unpacked + table.nbytes
            writer.write_table(table)
    finally:
        if writer is not None:
            writer.close()
    return shards, Size(number, unpacked, sum(shard.stat().st_size for shard in shards))


def exported_before(path: Path) -> bool:
    """Whether `export_table` wrote the file: released tables have fewer columns. Raises UsageError."""
    return columns(path) >= set(_COLUMNS)
