"""The edits to measure: an original and its edit each, with a mask and words where there are some.

They come from a file (JSON Lines, CSV or Parquet), from folders with equal names, from a data frame, from the
bundled scenes, or from a program, and are read whole or refused with everything that is wrong with them.
Images and masks are looked at only when they are measured: one that is missing costs its own pair alone.
"""

from __future__ import annotations

import contextlib
import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

import numpy as np
from pydantic import BeforeValidator, Field, ValidationError

from uncanny.demo.scenes import Picture, bundled_set, pictures
from uncanny.errors import ImageError, ItemsError, Problem, UsageError
from uncanny.eval.common.inputs.pair_folders import (
    SetOfPairs,
    check_named_once,
    images_by_name,
    names_outward,
    paired_files,
    pairs_file,
)
from uncanny.eval.common.inputs.problems import NonEmpty, by_line, of_validation, parse_records, repeated_ids
from uncanny.eval.common.inputs.table_files import rows
from uncanny.eval.common.inputs.table_records import record_tables
from uncanny.eval.common.pixels.crops import Mask, Size
from uncanny.eval.common.pixels.masks import decode_rle, mask_identity, read_mask
from uncanny.eval.edits.parameters import LoadParameters
from uncanny.eval.metrics.edits import Pixels
from uncanny.files import load_json
from uncanny.images.prepared import read_rgb
from uncanny.parameters import check_records, takes
from uncanny.schema import Number, Record
from uncanny.wording import display_path, option, shown

if TYPE_CHECKING:
    from pandas import DataFrame

_NUMBERS = frozenset({"scene_diversity", "scene_complexity"})
_PAIRS = "Pairs are a file, a folder, the word `scenes`, a data frame or uncanny.edits.EditPair records"


def _text(value: object) -> object:
    """Tables have numbers where a name is one: of a method, or an id."""
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else value


def from_cell(value: object) -> object:
    """A cell of a table holds lists and masks as JSON; what is none stays text."""
    if isinstance(value, str) and value[:1] in ("[", "{"):
        try:
            return load_json(value.encode())
        except ValueError:  # no JSON, or halves of characters, which have no UTF-8
            return value
    return value


Text = Annotated[NonEmpty, BeforeValidator(_text)]
Rle = Mapping[str, Any]
MaskSource = NonEmpty | Rle
SceneNumber = Annotated[Number, Field(ge=0, allow_inf_nan=False)]


class EditPair(Record):
    """One edit. `original`, `edited` and `mask` are paths relative to the file or to a root.

    `mask` is where the edit was meant to be, a PNG or `.npy` file or COCO run lengths, or several, which
    count together. `label` and `edited_label` name what was there and what is there now, `caption` and
    `edited_caption` describe the whole image. `objects` are the classes of the original's instances, one
    each, from which `scene_diversity` (classes) and `scene_complexity` (instances) are counted unless they
    are given. All but the first three may be None. Further keys are kept.
    """

    id: Text
    original: NonEmpty
    edited: NonEmpty
    mask: Annotated[MaskSource | tuple[MaskSource, ...] | None, BeforeValidator(from_cell)] = None
    label: Text | None = None
    edited_label: Text | None = None
    caption: Text | None = None
    edited_caption: Text | None = None
    method: Text | None = None
    model: Text | None = None
    dataset: Text | None = None
    objects: Annotated[tuple[Text, ...] | None, BeforeValidator(from_cell)] = None
    scene_diversity: SceneNumber | None = None
    scene_complexity: SceneNumber | None = None

    @property
    def diversity(self) -> float | None:
        """How many classes the original shows; None where nobody said."""
        if self.scene_diversity is not None or self.objects is None:
            return self.scene_diversity
        return float(len(set(self.objects)))

    @property
    def complexity(self) -> float | None:
        """How many instances the original shows; None where nobody said."""
        if self.scene_complexity is not None or self.objects is None:
            return self.scene_complexity
        return float(len(self.objects))

    @property
    def texts(self) -> tuple[str, str] | None:
        """The words before and after the edit: captions, else labels; None where one side has none."""
        for before, after in ((self.caption, self.edited_caption), (self.label, self.edited_label)):
            if before is not None and after is not None:
                return before, after
        return None


@dataclass(frozen=True, slots=True)
class EditFiles:
    """One edit with the places of its files, which may be missing. `masks` are files or COCO run lengths."""

    pair: EditPair
    original: Path
    edited: Path
    masks: tuple[Path | Rle, ...] = ()

    @property
    def id(self) -> str:
        return self.pair.id


class EditSet(SetOfPairs[EditFiles]):
    """Edits with unique ids, and where they came from: files, the scenes, or a program.

    `skipped` is what else lay in the folders.
    """

    __slots__ = ()
    unit = "edit"


EditSource: TypeAlias = "str | os.PathLike[str] | EditSet | Sequence[EditPair] | DataFrame"


@takes(LoadParameters, optional=True)
def load(source: EditSource | None, parameters: LoadParameters) -> EditSet:
    """Load edits to measure, in the forms that `uncanny edits measure` takes.

    `source` is a file with an `EditPair` a line (JSON Lines) or row (CSV, Parquet), as the file of an earlier
    measurement is, a folder that holds the folders `original`, `edited` and perhaps `masks`, the word
    `scenes` for the bundled pairs, a data frame, or records that a program has made. In its place `original`,
    `edited` and `masks` name folders. Unless `root` is given, paths of records and data frames start from the
    current folder. Images are not looked at.

    Raises ItemsError with every invalid record and repeated id, UsageError for what cannot be read or holds
    no pairs, and for sources that do not go together.

    >>> len(uncanny.edits.load("scenes"))
    16
    """
    original, edited, masks, root = (
        None if each is None else Path(each)
        for each in (parameters.original, parameters.edited, parameters.masks, parameters.root)
    )
    check_named_once(source, original, edited)
    if original is not None and edited is not None:
        return _of_folders(original, edited, masks)
    if masks is not None:
        raise UsageError(
            f"{option('masks')} needs {option('original')} and {option('edited')}",
            remedy="Pass all three, or name masks in the file of pairs.",
        )
    if isinstance(source, EditSet):
        return source
    if isinstance(source, str | os.PathLike):
        path = Path(source)
        bundled = bundled_set(os.fspath(source))
        if bundled is None:
            return _of_path(path, root)
        if root is not None:
            raise UsageError(f"{option('root')} cannot be used with the bundled pairs", remedy="Remove it.")
        return _of_scenes(bundled)
    assert source is not None
    if hasattr(source, "to_dict") and hasattr(source, "columns"):
        numbered, problems = _validated(enumerate(_cells(source.to_dict("records")), start=1))
        return _checked([(None, pair) for _, pair in numbered], problems, root or Path.cwd(), None)
    records = check_records(source, EditPair, what=_PAIRS)
    return _checked([(None, pair) for pair in records], [], root or Path.cwd(), None)


def _of_path(path: Path, root: Path | None) -> EditSet:
    path = pairs_file(path)
    if path.is_dir() and ((path / "original").is_dir() or not record_tables(path)):
        masks = next((path / name for name in ("masks", "mask") if (path / name).is_dir()), None)
        return _of_folders(path / "original", path / "edited", masks)
    if path.suffix.lower() == ".csv":
        # The head of a CSV file is its first line.
        lines, problems = _validated(enumerate(map(_with_numbers, _cells(rows(path))), start=2))
    else:
        lines, problems = parse_records(path, EditPair, root=root)
    return _checked(lines, problems, root if root is not None else path.parent, path)


def _validated(
    numbered: Iterable[tuple[int, Mapping[str, Any]]],
) -> tuple[list[tuple[int, EditPair]], list[Problem]]:
    valid: list[tuple[int, EditPair]] = []
    problems: list[Problem] = []
    for number, row in numbered:
        try:
            valid.append((number, EditPair.model_validate(row)))
        except ValidationError as error:
            name = row.get("id")
            problems += of_validation(error, item=None if name is None else str(name), line=number)
    return valid, problems


def _cells(table: Iterable[Mapping[Any, Any]]) -> Iterator[dict[str, Any]]:
    """Rows as records: an empty cell, which is NaN in a data frame, is a key that is not there."""
    for row in table:
        yield {
            # NumPy's numbers and arrays, which data frames hold, as Python has them.
            str(key): value.tolist() if hasattr(value, "tolist") else value
            for key, value in row.items()
            if not _is_missing(value)
        }


def _with_numbers(row: dict[str, Any]) -> dict[str, Any]:
    """A row of a CSV file, whose cells are all text: what says a number where one belongs is one."""
    for name in _NUMBERS & row.keys():
        with contextlib.suppress(ValueError):
            row[name] = float(row[name])
    return row


def _is_missing(value: object) -> bool:
    return value is None or (isinstance(value, float) and math.isnan(value)) or str(value) == "<NA>"


def _checked(
    lines: Sequence[tuple[int | None, EditPair]], problems: list[Problem], root: Path, path: Path | None
) -> EditSet:
    """Raises ItemsError, UsageError."""
    what = "the pairs" if path is None else str(path)
    problems += repeated_ids(lines, "give every pair its own", problems)
    if problems:
        ordered = sorted(problems, key=by_line)
        raise ItemsError(what, ordered, remedy="Correct these records; nothing was started.")
    if not lines:
        raise UsageError(
            f"{what} contains no pairs" if path else "There are no pairs", remedy="Pass at least one pair."
        )
    pairs = []
    for _, pair in lines:
        masks = () if pair.mask is None else mask_sources(pair.mask, root)
        pairs.append(EditFiles(pair, root / pair.original, root / pair.edited, masks))
    return EditSet(tuple(pairs), "program" if path is None else (path,))


def mask_sources(mask: object, root: Path) -> tuple[Path | Rle, ...]:
    """What a record names as its mask: a file, COCO run lengths, or several of them, which count together.

    Raises UsageError for anything else.
    """
    sources = mask if isinstance(mask, list | tuple) and mask else (mask,)
    return tuple(_mask_source(each, root) for each in sources)


def mask_content(mask: object, root: Path) -> object:
    """What a record names as its mask, its files by their content."""
    if isinstance(mask, str) and mask:
        return mask_identity(root / mask)
    return [mask_content(each, root) for each in mask] if isinstance(mask, list | tuple) else mask


def _mask_source(source: object, root: Path) -> Path | Rle:
    if isinstance(source, str) and source:
        return root / source
    if isinstance(source, Mapping):
        return source
    raise UsageError(f"a mask is a file or COCO run lengths, not {shown(source)}")


def read_masks(sources: Sequence[Path | Rle], size: Size | None = None) -> Mask:
    """The masks of an edit, one at least, as one: what any of them has.

    Raises UsageError where one cannot be read or is not of `size`, or they are of different sizes.
    """
    masks = [read_mask(each, size) if isinstance(each, Path) else decode_rle(each, size) for each in sources]
    first, *others = masks
    for other in others:
        if other.shape != first.shape:
            raise UsageError("the masks of the edit are of different sizes")
        first = first | other
    return first


def read_side(path: Path, side: Literal["original", "edited"]) -> tuple[Pixels, list[str]]:
    """One image of an edit, and what was done to it on the way. Raises ImageError, which says which side."""
    try:
        image, changes = read_rgb(path)
    except ImageError as error:
        raise ImageError(f"{side}: {error.message}", kind=error.kind, remedy=error.remedy) from error
    except MemoryError as error:
        raise ImageError(f"{side}: not enough memory to read it", kind="unsupported") from error
    return np.asarray(image), [f"{side} {change}" for change in changes]


def check_sizes(original: Pixels, edited: Pixels) -> None:
    """Raises ImageError where the two images of an edit are not of one size."""
    if original.shape != edited.shape:
        (height, width, _), (other_height, other_width, _) = original.shape, edited.shape
        raise ImageError(
            f"the original is of {width} × {height} pixels and the edited image of "
            f"{other_width} × {other_height}; nothing is resized",
            kind="unsupported",
        )


def _of_folders(original: Path, edited: Path, masks: Path | None) -> EditSet:
    """Images of the same name; the id is that name, the method the folder that the edit is in, if any.

    As originals do, a mask may serve the edits of several methods.
    """
    files, skipped = paired_files(original, edited)
    by_name: dict[str, Path] = {}
    if masks is not None:
        if not masks.is_dir():
            raise UsageError(f"{masks} is not a folder", remedy="Pass the folder of the masks, or none.")
        by_name = dict(images_by_name(masks)[0])
        by_name |= {file.relative_to(masks).with_suffix("").as_posix(): file for file in masks.rglob("*.npy")}
    pairs = []
    for each in files:
        mask = next((by_name[name] for name in names_outward(each.key) if name in by_name), None)
        pair = EditPair(
            id=each.key,
            original=display_path(each.original),
            edited=display_path(each.edited),
            mask=None if mask is None else display_path(mask),
            method=each.folder,
        )
        pairs.append(EditFiles(pair, each.original, each.edited, () if mask is None else (mask,)))
    source = (original, edited) if masks is None else (original, edited, masks)
    return EditSet(tuple(pairs), source, skipped)


def _of_scenes(name: str) -> EditSet:
    """The bundled pairs: `edited` has the anomaly, and the captions are what is said of its object."""
    clean = {scene.pair_id: scene for scene in pictures(name) if scene.role == "clean"}
    pairs = [
        _scene_pair(clean[scene.pair_id], scene, name)
        for scene in pictures(name)
        if scene.role == "anomalous" and scene.pair_id is not None
    ]
    return EditSet(tuple(sorted(pairs, key=lambda each: each.id)), name)


def _scene_pair(before: Picture, after: Picture, dataset: str) -> EditFiles:
    masks = tuple(anomaly.mask_path for anomaly in after.anomalies)
    name = after.anomalies[0].objects[0]
    words = [
        {entry.name: entry.description for entry in scene.objects}.get(name) for scene in (before, after)
    ]
    pair = EditPair(
        id=str(after.pair_id),
        original=str(before.image_path),
        edited=str(after.image_path),
        mask=tuple(str(mask) for mask in masks),
        label=name if words[0] is not None else None,
        edited_label=name,
        caption=words[0],
        edited_caption=words[1],
        method=after.style,
        dataset=dataset,
        objects=tuple(entry.name for entry in before.objects),
    )
    return EditFiles(pair, before.image_path, after.image_path, masks)
