"""Which rows of a flat table belong together: the table names roles, an item set splits and pairs.

The pictures embedded in a flat table, written out byte for byte.

The release's flat table, one row an image, read as a set of items."""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
from pydantic import ValidationError

from uncanny.errors import ImageError, UsageError
from uncanny.eval.common.problems import ItemsError, Problem, of_validation, shown
from uncanny.eval.mcq.data.checks import check_items
from uncanny.eval.mcq.data.items import Item, Split
from uncanny.eval.mcq.data.released_rows import (
    IMAGE_COLUMNS,
    ROLES,
    Row,
    RowFault,
    artifact_type,
    columns,
    item_fields,
    missing_columns,
    options,
    problem_of,
    rows,
    structured,
    table_files,
    text,
)
from uncanny.images import PixelPolicy
from uncanny.images.file_bytes import read_image_file
from uncanny.images.signature import sniff
from uncanny.records.jsonl import write_atomically


@dataclass(frozen=True, slots=True)
class Outline:
    """What decides about a row's pair. `options` is equal for equal texts, None where there are none."""

    row_id: str
    role: str
    pair_id: str | None
    options: str | None


@dataclass(frozen=True, slots=True)
class Place:
    """A row's split and pair."""

    split: Split
    pair_id: str | None


def places(outlines: Sequence[Outline]) -> list[Place]:
    """A place for each row, in their order.

    A `pair_id` that one artifact and one reference share decides; others are dropped. Generated
    counterparts left over belong to an artifact with the same options A–D: the closest one before, which is
    how releases order their rows, or else the closest one after. One without any stays without a pair.
    """
    partner = _by_pair_id(outlines)
    _by_options(outlines, partner)
    return [_place(outlines, number, partner) for number in range(len(outlines))]


def _place(outlines: Sequence[Outline], number: int, partner: dict[int, int]) -> Place:
    own = outlines[number]
    other = outlines[partner[number]] if number in partner else None
    if own.role == "artifact":
        paired = other is not None and other.role == "paired_generated_counterpart"
        return Place("art_pg" if paired else "art_dg", _name(own, other))
    return Place("ref_real" if own.role == "clean_reference" else "ref_pg", _name(other, own))


def _name(artifact: Outline | None, reference: Outline | None) -> str | None:
    if artifact is None or reference is None:
        return None
    shared = artifact.pair_id if artifact.pair_id == reference.pair_id else None
    return shared if shared is not None else f"{artifact.row_id}+{reference.row_id}"


def _by_pair_id(outlines: Sequence[Outline]) -> dict[int, int]:
    groups: dict[str, dict[str, list[int]]] = {}
    for number, row in enumerate(outlines):
        if row.pair_id is not None:
            groups.setdefault(row.pair_id, {}).setdefault(row.role, []).append(number)
    partner: dict[int, int] = {}
    for roles in groups.values():
        artifacts = roles.get("artifact", [])
        others = roles.get("paired_generated_counterpart") or roles.get("clean_reference") or []
        if len(artifacts) == len(others) == 1:
            partner |= {artifacts[0]: others[0], others[0]: artifacts[0]}
    return partner


def _by_options(outlines: Sequence[Outline], partner: dict[int, int]) -> None:
    free: dict[str, list[int]] = {}
    for number, row in enumerate(outlines):
        if row.role == "artifact" and row.options is not None and number not in partner:
            free.setdefault(row.options, []).append(number)
    for number, row in enumerate(outlines):
        candidates = free.get(row.options or "", [])
        if row.role != "paired_generated_counterpart" or number in partner or not candidates:
            continue
        before = [candidate for candidate in candidates if candidate < number]
        chosen = before[-1] if before else candidates[0]
        candidates.remove(chosen)
        partner |= {number: chosen, chosen: number}


class ImageFolder:
    """Writes pictures under names made from their content, and can take back what it wrote.

    The same bytes are written once. Raises UsageError where the folder cannot be written.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._made: list[Path] = []
        self._known: set[str] = set()

    def put(self, data: bytes) -> str:
        """The file's name relative to the folder's parent."""
        kind = sniff(data)
        suffix = "bin" if kind is None else {"JPEG": "jpg"}.get(kind, kind.lower())
        name = f"{hashlib.sha256(data).hexdigest()[:24]}.{suffix}"
        if name not in self._known:
            self._write(self._folder / name, data)
            self._known.add(name)
        return f"{self._folder.name}/{name}"

    def _write(self, path: Path, data: bytes) -> None:
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            if path.exists() and path.read_bytes() == data:
                return
            self._made.append(path)
            path.write_bytes(data)
        except OSError as error:
            raise UsageError(f"{path} cannot be written: {error.strerror or error}") from error

    def take_back(self) -> None:
        """Remove what was written, and the folder where that leaves it empty."""
        for path in self._made:
            path.unlink(missing_ok=True)
        if self._folder.is_dir() and not any(self._folder.iterdir()):
            self._folder.rmdir()


def picture(row: Row, column: str, folder: Path) -> bytes | None:
    """The bytes of a picture cell; None where it is empty.

    A cell is `{bytes, path}`, bytes, a `data:` URL, or a path below `folder`, which is the table's own; the
    older `<column>_path` is understood. Raises RowFault, also for a path that leads out of the folder.
    """
    value = row.get(column)
    if value is None:
        value = row.get(f"{column}_path")
    if isinstance(value, str) and value.lstrip().startswith("{"):
        value = structured({column: value}, column)
    if isinstance(value, Mapping):
        held = value.get("bytes")
        value = held if held is not None else value.get("path")
        if isinstance(held, str):
            value = f"data:;base64,{held}"
    if value is None or isinstance(value, bytes):
        return value or None
    if not isinstance(value, str):
        raise RowFault(column, f"{shown(value)} is no picture; give its bytes or its path")
    return _from_text(value, column, folder)


def _from_text(value: str, column: str, folder: Path) -> bytes:
    if value.startswith("data:"):
        try:
            return base64.b64decode(value.partition(",")[2], validate=True)
        except (binascii.Error, ValueError) as error:
            raise RowFault(column, f"not valid base64 ({error})") from error
    try:
        place = (folder / value).resolve()
        if not place.is_relative_to(folder.resolve()):
            raise RowFault(column, f"the path {shown(value)} leads out of the table's folder")
        return read_image_file(place, PixelPolicy().max_file_bytes)
    except ImageError as error:
        raise RowFault(column, f"{shown(value)}: {error.message}") from error
    except (OSError, ValueError, RuntimeError) as error:
        raise RowFault(column, f"{shown(value)} is no path that can be read") from error


def pictures(row: dict[str, Any], folder: Path) -> tuple[bytes, bytes | None]:
    """The image and the stored Q3 overlay, if any. Raises RowFault."""
    image = picture(row, "image", folder)
    if image is None:
        raise RowFault("image", "the row has no picture; embed its bytes or give its path")
    return image, picture(row, "q3_overlay_image", folder)


ITEMS_FILE = "items.jsonl"


def import_table(path: Path, out_dir: Path, *, open_images: bool = True) -> Path:
    """Write `out_dir/items.jsonl` and `out_dir/images/` from a table; the item file's path.

    `path` is a Parquet, CSV or JSON Lines file, or a folder of shards. Pictures and stored overlays are
    written byte for byte under names made from their content. Prompts become whole texts, as a model is to
    see them. Boxes are known only where the table has a column `q3_boxes`. Pairs: see `table_pairs.places`.
    The pictures of one Parquet row group, or of one row, are in memory at a time.

    Raises ItemsError with everything that is wrong with the table, in its form or by `check_items`, and
    UsageError where a file cannot be read or written, pyarrow is missing, or `out_dir` holds items already.
    Nothing is left behind then.
    """
    target = out_dir / ITEMS_FILE
    if target.exists():
        raise UsageError(f"{target} exists already", remedy="Choose another folder; it may have been edited.")
    files = table_files(path)
    where = _survey(path, files)
    folder = ImageFolder(out_dir / "images")
    fresh = not out_dir.exists()
    try:
        items = _items(path, files, where, folder)
        problems = check_items(items, items_file=target, open_images=open_images)
        errors = [problem for problem in problems if problem.severity == "error"]
        if errors:
            raise ItemsError(str(path), errors, remedy="Correct the table; nothing was imported.")
        write_items(items, target)
    except BaseException:
        folder.take_back()
        if fresh and out_dir.is_dir() and not any(out_dir.iterdir()):
            out_dir.rmdir()
        raise
    return target


def write_items(items: list[Item] | tuple[Item, ...], target: Path) -> None:
    """Write an item file in one step."""
    target.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(target, item_lines(items))


def item_lines(items: Iterable[Item]) -> Iterator[bytes]:
    """The lines of an item file; keys that were not set are left out."""
    return (orjson.dumps(item.model_dump(mode="json", exclude_unset=True)) + b"\n" for item in items)


def _survey(path: Path, files: tuple[Path, ...]) -> list[Place]:
    """Everything that can be said without the pictures. Raises ItemsError."""
    problems = [
        Problem(None, column, f"the table has no such column ({file.name})")
        for file in files
        for column in missing_columns(columns(file))
    ]
    if problems:
        raise ItemsError(str(path), problems, remedy="Is this the release's flat table?")
    outlines: list[Outline] = []
    seen: dict[str, int] = {}
    for number, (_, row) in enumerate(_all_rows(files, light=True), start=1):
        row_id = _row_id(row, number, problems)
        if row_id in seen:
            message = f"row {number}: the id was used before, in row {seen[row_id]}"
            problems.append(Problem(row_id, "row_id", message))
        seen.setdefault(row_id, number)
        try:
            outlines.append(_outline(row_id, row))
        except RowFault as fault:
            problems.append(problem_of(row_id, fault, number))
    if problems:
        raise ItemsError(str(path), problems, remedy="Correct the table; nothing was imported.")
    if not outlines:
        raise UsageError(f"{path} holds no rows")
    return places(outlines)


def _outline(row_id: str, row: Row) -> Outline:
    role = text(row, "image_role")
    if role not in ROLES:
        raise RowFault("image_role", f"{shown(role)} is none of {', '.join(ROLES)}")
    item_fields(row)
    if role == "artifact":
        artifact_type(row)
    texts = [list(options(row, question).items())[:4] for question in ("q2", "q4")]
    digest = hashlib.sha256(json.dumps(texts).encode()).hexdigest() if any(texts) else None
    return Outline(row_id, role, text(row, "pair_id"), digest)


def _items(path: Path, files: tuple[Path, ...], where: list[Place], folder: ImageFolder) -> list[Item]:
    items: list[Item] = []
    problems: list[Problem] = []
    for number, (file, row) in enumerate(_all_rows(files, light=False), start=1):
        row_id = str(row["row_id"])
        try:
            items.append(_item(row_id, row, where[number - 1], folder, file.parent))
        except RowFault as fault:
            problems.append(problem_of(row_id, fault, number))
        except ValidationError as error:
            problems += of_validation(error, item=row_id, line=None)
    if problems:
        raise ItemsError(str(path), problems, remedy="Correct the table; nothing was imported.")
    return items


def _item(row_id: str, row: dict[str, Any], place: Place, folder: ImageFolder, base: Path) -> Item:
    image, overlay = pictures(row, base)
    fields: dict[str, Any] = {"id": row_id, "image": folder.put(image), "split": place.split}
    if place.pair_id is not None:
        fields["pair_id"] = place.pair_id
    if place.split in ("art_dg", "art_pg") and (kind := artifact_type(row)) is not None:
        fields["artifact_type"] = kind
    fields |= item_fields(row)
    if overlay is not None:
        fields["overlay"] = folder.put(overlay)
    return Item.model_validate(fields)


def _row_id(row: Row, number: int, problems: list[Problem]) -> str:
    try:
        found = text(row, "row_id")
    except RowFault:
        found = None
    if found is None:
        problems.append(Problem(None, "row_id", f"row {number}: no id, or none that is text"))
    return found if found is not None else f"row {number}"


def _all_rows(files: tuple[Path, ...], *, light: bool) -> Iterator[tuple[Path, dict[str, Any]]]:
    for file in files:
        for row in rows(file, without=IMAGE_COLUMNS if light else ()):
            yield file, row
