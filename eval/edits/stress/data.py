"""What a stress table is made of: a detector's predictions, what is known of each edit, and both together.

Predictions have a row an image: what it is taken for (`source`), how likely it is generated (`score`, 0–1),
or both, and where there is one a heat map or a mask. Metadata have a row an edit, as `uncanny edits measure`
writes them, or a row an image with its true `source`. Several metadata tables are joined by `id` or image.
All tables are read whole, or refused with everything that is wrong with them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from uncanny.errors import ItemsError, Problem, UsageError
from uncanny.eval.common.anomalies.load import name_paths
from uncanny.eval.common.groups import IMAGE, ORIGINAL_COLUMNS, ImageGroups, cell_text, no_column
from uncanny.eval.common.inputs.columns import Columns, read_columns
from uncanny.eval.common.inputs.problems import by_line
from uncanny.eval.common.inputs.sources import of_place
from uncanny.eval.common.matching import pair_images
from uncanny.eval.common.score_json import digest_of
from uncanny.eval.edits.columns import FIGURES, SCENE
from uncanny.eval.edits.data import from_cell, mask_content
from uncanny.eval.edits.result import MeasuredEdits
from uncanny.eval.metrics import EDIT_PROTOCOLS, PROTOCOL
from uncanny.eval.metrics.intervals import Floats
from uncanny.records.annotation_table import LINES, restore_lines
from uncanny.records.run_folder import check_recorded
from uncanny.wording import counted, shown

if TYPE_CHECKING:
    from pandas import DataFrame

Codes: TypeAlias = NDArray[np.int64]
# A file, a data frame, or rows of a program.
Source: TypeAlias = "str | PathLike[str] | DataFrame | Sequence[Mapping[str, Any]]"
# And what `edits.measure` has returned.
MetaSource: TypeAlias = "Source | MeasuredEdits"

REAL, GENERATED, UNCLEAR, NONE = 0, 1, 2, -1
SOURCES: Final[Mapping[str, int]] = {"generated": GENERATED, "real": REAL}
THRESHOLD: Final = 0.5
# Images as they were given, as against compressed copies.
AS_GIVEN: Final = "as given"
_CONDITION = re.compile(r"(jpe?g|webp)[-_ ]?(\d{1,3})", re.IGNORECASE)

# Sizes of an edit, as `uncanny edits measure` writes them, and of the scene it was made in.
METRICS: Final = tuple(name for name in FIGURES if name != "shape")
# Of which the smallest values are the largest changes.
SIMILARITIES: Final = frozenset({"ssim", "text_similarity"})
LEVELS: Final = ("shape", "dataset", "method", "model")
# Figures that depend on the protocol that an edit was measured by; without a word of it, it was the first.
_BY_PROTOCOL: Final = (
    *("ssim", "post_edit_ratio", "largest_component_ratio", "largest_centroid_distance"),
    *("components", "clusters", "shape"),
)
# What tells records of `uncanny realism run`, whose label is that of the edit, and not of its mask; model and
# images are others there, too.
_VERDICT: Final = frozenset({"id", "label", "case", "edited_first"})
UGDA: Final = "ugda"
_TRUTHS: Final[Mapping[str, bool]] = {"true": True, "1": True, "false": False, "0": False}
_TEXTS: Final = ("label", "edited_label", "caption", "edited_caption", *LEVELS)


@dataclass(frozen=True, slots=True, eq=False)
class Predictions:
    """One detector on one set of files, an entry an image.

    `verdicts` are codes: `GENERATED`, `REAL`, `UNCLEAR` for an answer that says neither, `NONE` without one.
    `scores` are NaN where there is none. `by_score` verdicts come from the score alone, `contradicted` are
    those of the file that its score at `threshold` does not bear out. `heat_maps` and `masks` are as the file
    has them, None where it has none. `texts` are the ids of the prompts that it names.
    """

    place: str
    root: Path
    images: Sequence[str]
    sha256: Sequence[str | None]
    verdicts: Codes
    scores: Floats
    heat_maps: Sequence[str | None]
    masks: Sequence[Any]
    threshold: float
    by_score: int
    contradicted: int
    texts: tuple[str, ...] = ()


def read_predictions(
    source: Source, threshold: float | None, root: Path | None = None, *, what: str = "predictions"
) -> tuple[Predictions, list[Problem]]:
    """The predictions of a file, a run folder of `uncanny detect`, a data frame, or rows, and all problems.

    With a `threshold` a score rules over a verdict beside it: it is for generated from the threshold on.
    Without one the verdict rules, and a score alone is read at 0.5. Raises UsageError for what cannot be
    read.
    """
    if isinstance(source, str | PathLike):
        path = Path(source)
        source = restore_lines(path) if path.is_dir() else path
        if path.is_dir() and not source.is_file():
            check_recorded(path, LINES)
    table = read_columns(source, what, root=root)
    images = table.names("image")
    words = table.checked("source", images, SOURCES)
    scores = table.numbers("score", images, low=0, high=1)
    stated = np.array([NONE if word is None else word for word in words], dtype=np.int64).reshape(-1)
    measured = ~np.isnan(scores)
    at = THRESHOLD if threshold is None else threshold
    scored = np.where(scores >= at, GENERATED, REAL)
    rules = measured & ((stated == NONE) | (threshold is not None))
    verdicts = np.where(rules, scored, stated)
    if "verdict" in table:
        # The words of a detection run's answer: it was given, and says neither.
        answered = np.array([cell is not None for cell in table.get("verdict")], dtype=np.bool_)
        verdicts[answered & (verdicts == NONE)] = UNCLEAR
    contradicted = measured & (stated != NONE) & (stated != scored)
    return Predictions(
        table.place,
        table.root,
        images,
        table.strings("sha256", images),
        verdicts,
        scores,
        table.strings("heat_map", images),
        [from_cell(cell) for cell in table.get("mask")],
        at,
        int((rules & (stated == NONE)).sum()),
        int(contradicted.sum()),
        tuple(sorted({cell for cell in table.get("prompts") if isinstance(cell, str)})),
    ), _of_place(table)


def name_condition(name: str) -> tuple[str | None, str]:
    """Detector and condition of `DETECTOR@CONDITION`, `@CONDITION`, `jpeg-85`, or a detector's name alone."""
    detector, at, condition = name.rpartition("@")
    codec = _CONDITION.fullmatch(condition)
    if codec is not None:
        condition = f"{codec[1].lower().replace('jpg', 'jpeg')}-{int(codec[2])}"
    if at or codec is not None:
        return detector.strip() or None, condition.strip()
    return name, AS_GIVEN


def is_rows(value: Sequence[Any]) -> bool:
    """Whether a list holds the rows of one table, and not several tables."""
    return bool(value) and all(isinstance(each, Mapping) for each in value)


def named_sources(predictions: Source | Sequence[Source] | Mapping[str, Source]) -> dict[str, Source]:
    """By name; files that have none by what they derive from. Raises UsageError."""
    if isinstance(predictions, Mapping):
        if not predictions:
            raise UsageError("There are no predictions", remedy="Give one file at least.")
        return {str(name): source for name, source in predictions.items()}
    sources: list[Any] = [predictions]
    if isinstance(predictions, list | tuple) and not is_rows(predictions):
        sources = list(predictions)
    if not sources:
        raise UsageError("There are no predictions", remedy="Give one file at least.")
    paths = [each for each in sources if isinstance(each, str | PathLike)]
    if len(paths) == len(sources):
        return dict(name_paths([(None, Path(path)) for path in paths]))
    if len(sources) > 1:
        raise UsageError(
            "Several tables of predictions need names", remedy="Give a mapping from name to table."
        )
    return {"detector": sources[0]}


def by_detector(named: Mapping[str, Source]) -> dict[str, dict[str, Source]]:
    """Sources by detector and condition, in their order; conditions without a detector are the only one's.

    Raises UsageError where it is not clear whose a condition is, or one is there twice.
    """
    parsed = [(*name_condition(name), name) for name in named]
    detectors = list(dict.fromkeys(detector for detector, _, _ in parsed if detector is not None))
    if len(detectors) > 1 and any(detector is None for detector, _, _ in parsed):
        name = next(name for detector, _, name in parsed if detector is None)
        raise UsageError(
            f"{name!r} does not say which detector made its predictions: {' or '.join(detectors)}",
            remedy=f"Write {detectors[0]}@{name.lstrip('@')}=FILE.",
        )
    grouped: dict[str, dict[str, Source]] = {}
    for detector, condition, name in parsed:
        conditions = grouped.setdefault(detector or (detectors[0] if detectors else "detector"), {})
        if condition in conditions:
            raise UsageError(f"{name!r}: the condition {condition} has two files", remedy="Pass each once.")
        conditions[condition] = named[name]
    return {
        name: dict(sorted(conditions.items(), key=lambda each: each[0] != AS_GIVEN))
        for name, conditions in grouped.items()
    }


@dataclass(frozen=True, slots=True, eq=False)
class Edits:
    """What is known: a row an edit or image, and every image by name with its true class and row.

    `images` are those of the rows first, then the originals they name, which are real and have no row (−1).
    `truth` is `GENERATED`, `REAL`, or `NONE` where no table says it. `columns` have an entry a row, None
    where a table does not say. `without_image` counts rows of further tables that belong to no image.
    """

    places: tuple[str, ...]
    root: Path
    columns: Mapping[str, list[Any]]
    images: Sequence[str]
    truth: Codes
    rows: Codes
    n_rows: int
    without_image: int

    @property
    def protocol(self) -> str | None:
        """That by which the edits were measured; None where nothing was that depends on it."""
        return next((each for each in self.column("protocol") if each is not None), None)

    def digest(self, *, masks: bool) -> str:
        """Of the images, what they are, and all that is known of the edits; not of the order.

        `masks` says that figures depend on mask files: these then stand for their content, not their names.
        """
        columns = dict(self.columns)
        if masks and "mask" in columns:
            columns["mask"] = [mask_content(cell, self.root) for cell in columns["mask"]]
        named = ([[name, cell] for cell in cells] for name, cells in sorted(columns.items()))
        rows = zip(*named, strict=True)
        known = [dict(row) for row in rows]
        return digest_of(
            [image, int(truth), known[row] if row >= 0 and known else None]
            for image, truth, row in zip(self.images, self.truth, self.rows.tolist(), strict=True)
        )

    def column(self, name: str) -> list[Any]:
        return self.columns.get(name) or [None] * self.n_rows

    def groups(self, by: str | None = None) -> ImageGroups | None:
        """The images that belong together: edits and their original, or those with one value in `by`.

        None where each is by itself, or `by` says `image`. Raises UsageError for a column that no table has.
        """
        if by == IMAGE:
            return None
        if by is not None and by not in self.columns:
            raise no_column("table", by, self.columns)
        column = by or ORIGINAL_COLUMNS[0]
        originals = self.column(ORIGINAL_COLUMNS[0]) if ORIGINAL_COLUMNS[0] in self.columns else None
        cells, keys, of_original = self.column(column), list[str](), dict[str, str]()
        for image, row in zip(self.images, self.rows.tolist(), strict=True):
            cell = cell_text(cells[row]) if row >= 0 else None
            keys.append(image if cell is None else cell if column in ORIGINAL_COLUMNS else f"={cell}")
            if cell is not None and originals is not None and originals[row] is not None:
                of_original.setdefault(str(originals[row]), keys[-1])
        # An original is in the group of the edits that name it.
        return ImageGroups.of(column, [of_original.get(key, key) for key in keys])

    def numbers(self, name: str) -> Floats | None:
        """A column as numbers, NaN where there is none; None where some are none, or all are missing."""
        cells = self.column(name)
        kinds = set(map(type, cells))
        if kinds == {type(None)} or bool in kinds or not kinds <= {int, float, str, type(None)}:
            return None
        try:
            values = np.array(cells, dtype=object).astype(np.float64)
        except (ValueError, OverflowError):
            return None
        return None if np.isinf(values).any() else values


def read_edits(
    sources: Sequence[MetaSource], by: Sequence[str] = (), root: Path | None = None
) -> tuple[Edits, list[Problem]]:
    """Metadata tables as one, and all problems of them. Raises UsageError for what cannot be read.

    The tables that name images (`edited`, or `image`) are put together by image, the others are joined to
    them by `id`. A table adds what the earlier ones leave open; two that differ are a problem.
    """
    records = [list(each.records()) if isinstance(each, MeasuredEdits) else each for each in sources]
    tables = [_MetaTable(read_columns(source, "metadata", root=root), by) for source in records]
    places = tuple(table.columns.place for table in tables)
    if not any(table.has_images for table in tables):
        # Lines that cannot be read may be those that name them.
        refuse([problem for table in tables for problem in _of_place(table.columns)], places)
        raise UsageError(
            f"{', '.join(places)}: no column names images",
            remedy="Give a table with the column `edited` or `image`, such as the file of the pairs, too.",
        )
    tables.sort(key=lambda table: not table.has_images)
    first, *others = tables
    cells, names, ids = dict(first.cells), list(first.names), list(first.ids)
    without_image = 0
    for other in others:
        without_image += _merge(cells, names, ids, other)
    problems = [problem for table in tables for problem in _of_place(table.columns)]
    protocols = sorted({each for each in cells["protocol"] if each is not None})
    if len(protocols) > 1:
        raise UsageError(
            f"The edits were measured by the protocols {' and '.join(protocols)}, whose figures differ",
            remedy="Measure all of them alike.",
        )
    n = len(names)
    truth = np.array([NONE if each is None else each for each in cells.get("source") or [None] * n])
    edited = np.array([each is not None for each in cells.get("edited") or [None] * n], dtype=np.bool_)
    truth = np.where((truth == NONE) & edited, GENERATED, truth).astype(np.int64)
    known = set(names)
    originals = [
        each for each in dict.fromkeys(cells.get("original") or ()) if each is not None and each not in known
    ]
    edits = Edits(
        tuple(table.columns.place for table in tables),
        first.columns.root,
        cells,
        [*names, *originals],
        np.concatenate([truth, np.full(len(originals), REAL)]).astype(np.int64),
        np.concatenate([np.arange(n), np.full(len(originals), -1)]).astype(np.int64),
        n,
        without_image,
    )
    return edits, problems


class _MetaTable:
    """One table, with what is known of its columns checked; problems go to `columns`."""

    def __init__(self, columns: Columns, by: Sequence[str]) -> None:
        if columns.values.keys() >= _VERDICT:
            labels = {"id": columns.get("id"), UGDA: columns.get("label")}
            columns = replace(columns, values=labels)
        self.columns = columns
        self.has_images = "edited" in columns or "image" in columns
        n = len(columns)
        edited, image = columns.get("edited"), columns.get("image")
        named = [first or second for first, second in zip(edited, image, strict=True)]
        key = "edited" if "edited" in columns else "image"
        view = replace(columns, values={**columns.values, key: named})
        self.names = view.names(key) if self.has_images else [""] * n
        items = self.names if self.has_images else columns.get("id")
        ids = columns.strings("id", items)
        self.ids: list[str | None] = ids
        cells: dict[str, list[Any]] = {"id": list(ids)}
        for name in METRICS + SCENE:
            if name in columns:
                values = columns.numbers(name, items)
                cells[name] = [None if number != number else number for number in values.tolist()]
        for name in (*_TEXTS, "edited", "original"):
            if name in columns:
                cells[name] = list(columns.strings(name, items))
        if "source" in columns:
            # Of an edit it may be anything, such as the path of its original in pairs that were made.
            said = [
                None if edit is not None and word not in SOURCES else word
                for edit, word in zip(edited, columns.get("source"), strict=True)
            ]
            sources = replace(columns, values={**columns.values, "source": said})
            cells["source"] = list(sources.checked("source", items, SOURCES))
            for row, (truth, edit) in enumerate(zip(cells["source"], edited, strict=True)):
                if truth == REAL and edit is not None:
                    columns.problem(row, edit, "source", "says real of an edit; correct either")
        named_as = [each if each in EDIT_PROTOCOLS else PROTOCOL for each in columns.get("protocol")]
        cells["protocol"] = [
            protocol if any(name in cells and cells[name][row] is not None for name in _BY_PROTOCOL) else None
            for row, protocol in enumerate(named_as)
        ]
        if "all_black" in columns:
            # CSV has words for it.
            cells["all_black"] = [_TRUTHS.get(str(c).casefold(), c) for c in columns.get("all_black")]
        if "mask" in columns:
            cells["mask"] = [from_cell(cell) for cell in columns.get("mask")]
        for name in by:
            if name in columns and name not in cells:
                cells[name] = list(columns.get(name))
        self.cells = cells


def _merge(cells: dict[str, list[Any]], names: list[str], ids: list[str | None], other: _MetaTable) -> int:
    """Add a table to those before it; returns how many of its rows belong to no image."""
    n = len(names)
    by_name = {name: row for row, name in enumerate(names)}
    by_id = {each: row for row, each in enumerate(ids) if each is not None}
    for name in other.cells:
        cells.setdefault(name, [None] * n)
    columns = other.columns
    without = 0
    for row, (name, identifier) in enumerate(zip(other.names, other.ids, strict=True)):
        place = by_name.get(name) if other.has_images else by_id.get(identifier or "")
        if place is None and other.has_images:
            place = len(names)
            names.append(name)
            ids.append(identifier)
            for column in cells.values():
                column.append(None)
        if place is None:
            without += 1
            continue
        for key, column in other.cells.items():
            value, before = column[row], cells[key][place]
            if value is None or before == value:
                continue
            if before is None:
                cells[key][place] = value
            else:
                columns.problem(
                    row,
                    names[place],
                    key,
                    f"is {shown(value)}, and an earlier table says {shown(before)}; correct either",
                )
    return without


def _of_place(table: Columns) -> list[Problem]:
    return [of_place(problem, table.place) for problem in sorted(table.problems, key=by_line)]


def refuse(problems: Sequence[Problem], places: Iterable[str]) -> None:
    """Raises ItemsError with all problems, if there are any."""
    if problems:
        where = list(dict.fromkeys(places))
        what = where[0] if len(where) == 1 else counted(len(where), "table")
        raise ItemsError(what, problems, remedy="Correct these rows; nothing was scored.")


class _Named(NamedTuple):
    image: str
    sha256: str | None


@dataclass(frozen=True, slots=True, eq=False)
class Joined:
    """Predictions with what is known of their images, both as places: of the same length, in metadata order.

    `only_predicted` are images without metadata, `only_known` edits and images without a prediction,
    `unpredicted_originals` originals without one, `unknown_class` images that no table calls real or edited,
    `unanswered` images that the detector gave no verdict on. None of them is in any figure.
    """

    predicted: Codes
    known: Codes
    only_predicted: tuple[str, ...]
    only_known: tuple[str, ...]
    unpredicted_originals: tuple[str, ...]
    unknown_class: tuple[str, ...]
    unanswered: tuple[str, ...]
    left_by_balance: int = 0

    def balanced(self, edits: Edits, seed: int) -> Joined:
        """With as many real images as edits: of the larger class those that come first in a seeded order.

        The order is of the metadata's images, so that detectors and conditions keep the same ones as far as
        they have them. Source: Semi-Truths, appendix F and figure 24.
        """
        rank = np.random.default_rng(seed).permutation(len(edits.images))[self.known]
        truth = edits.truth[self.known]
        least = min(int((truth == source).sum()) for source in (REAL, GENERATED))
        kept = np.zeros(len(truth), dtype=np.bool_)
        for source in (REAL, GENERATED):
            own = np.flatnonzero(truth == source)
            kept[own[np.argsort(rank[own])[:least]]] = True
        left = int((~kept).sum())
        return replace(self, predicted=self.predicted[kept], known=self.known[kept], left_by_balance=left)


def join(predictions: Predictions, edits: Edits) -> Joined:
    """Pair images by `pair_images`. Raises UsageError where none is in both, or it is not clear which is
    which."""
    ours = [_Named(*each) for each in zip(predictions.images, predictions.sha256, strict=True)]
    theirs = [_Named(image, None) for image in edits.images]
    if not ours or not theirs:
        raise UsageError(f"{predictions.place} and the metadata have no image in common")
    pairing = pair_images(ours, theirs, labels=(predictions.place, " and ".join(edits.places)))
    places = np.array([-1 if each is None else each for each in pairing.predicted], dtype=np.int64)
    paired = places >= 0
    known = edits.truth != NONE
    answered = np.zeros(len(places), dtype=np.bool_)
    answered[paired] = predictions.verdicts[places[paired]] != NONE

    def named(which: NDArray[np.bool_]) -> tuple[str, ...]:
        return tuple(edits.images[place] for place in np.flatnonzero(which).tolist())

    scored = paired & known & answered
    return Joined(
        places[scored],
        np.flatnonzero(scored),
        tuple(predictions.images[place] for place in pairing.surplus),
        named(~paired & (edits.rows >= 0)),
        named(~paired & (edits.rows < 0)),
        named(paired & ~known),
        named(paired & known & ~answered),
    )
