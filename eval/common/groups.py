"""Which images belong together: sides of a pair, edits of one original, images of one prompt.

Images that belong together are not independent. They go to the same side of a split, are drawn together when
intervals are made, and never count as if each were a case of its own.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from math import isnan
from pathlib import PurePosixPath
from posixpath import dirname, join, normpath
from typing import Any, Final, Literal, NamedTuple, get_args

import numpy as np

from uncanny.errors import UsageError
from uncanny.eval.common.matching import Parts, find_originals, stem_parts
from uncanny.eval.metrics.intervals import Codes, group_codes
from uncanny.wording import counted, option

# By these images belong together wherever a record has one of them, without being told.
PAIR_COLUMNS: Final = ("pair", "pair_id")
# These name another image, to which an image without such a column may belong: the original itself.
ORIGINAL_COLUMNS: Final = ("original", "source_image")
KNOWN: Final = (*ORIGINAL_COLUMNS, *PAIR_COLUMNS)
# A prompt may be the same for a whole data set, so it groups only where that is asked for.
PromptColumn = Literal["prompt_id", "prompt"]
PROMPT_COLUMNS: Final[tuple[PromptColumn, ...]] = get_args(PromptColumn)
# Words for `group_by` beside the names of columns: each image by itself, and images of the same file name.
IMAGE, STEM = "image", "stem"
_DIGEST = "sha256="


def cell_of(record: object, column: str) -> str | None:
    """The value of a column as text: of the input's table, else a further or own key; None without."""
    return cell_text(_cells(record).get(column, getattr(record, column, None)))


def cell_text(value: object) -> str | None:
    """A cell of a table as text, to compare with others; None for what is not text or a number.

    Blank text, and NaN, which tables have in gaps, are no value. Numbers are the same as the text of them.
    """
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, str):
        return value.strip() or None
    if isinstance(value, float):
        # Tables with gaps have whole numbers as 7.0.
        return None if isnan(value) else str(int(value) if value.is_integer() else value)
    if not isinstance(value, int):
        return None
    try:
        return str(value)
    except ValueError:  # of more digits than Python writes
        return hex(value)


def _cells(record: object) -> Mapping[str, Any]:
    further = getattr(record, "model_extra", None) or {}
    columns = further.get("columns", getattr(record, "columns", None))
    return {**further, **columns} if isinstance(columns, Mapping) else further


def group_of(record: object, by: str) -> str | None:
    """The group of a record by one column, or by the word `stem`; None where it has none.

    Originals are called by their path without leading `..` and without the extension of an image.
    """
    if by == STEM:
        return PurePosixPath(_image(record)).stem
    value = cell_of(record, by)
    return value if value is None or by not in ORIGINAL_COLUMNS else "/".join(_path(value))


def own_keys(record: object) -> set[str]:
    """The keys of a record's form that have a value to group by."""
    fields = getattr(type(record), "model_fields", {})
    return {name for name in fields if cell_text(getattr(record, name, None)) is not None}


def no_column(of: str, by: str, there: Collection[str]) -> UsageError:
    """The error for groups by a column that no image, pair or table (`of`) has; they have those `there`."""
    named = ", ".join(map(repr, sorted(there)))
    return UsageError(
        f"{option('group_by')}: no {of} has the column {by!r}",
        remedy=f"The columns are {named}." if named else f"Remove it, or group by {STEM!r}.",
    )


def _image(record: object) -> str:
    return str(getattr(record, "image", ""))


def _picture(record: object) -> str:
    digest = getattr(record, "sha256", None) or sha256(_image(record).encode()).hexdigest()
    return f"{_DIGEST}{digest}"


def _path(name: str) -> Parts:
    return stem_parts(name) or (name,)


class _Reference(NamedTuple):
    """What a record says of its original: the column, the path, and that path from the record's folder on."""

    by: str
    path: Parts
    beside: Parts

    @classmethod
    def of(cls, record: object, by: str, path: str) -> _Reference:
        folder = dirname(_image(record).replace("\\", "/"))
        return cls(by, _path(path), _path(normpath(join(folder, path.replace("\\", "/")))))


def _rank(link: str) -> tuple[bool, str]:
    """A group is called by a column before it is called by a picture."""
    return link.startswith(_DIGEST), link


@dataclass(frozen=True, slots=True)
class ImageGroups:
    """Images of a score that belong together: the number of each one's group, and `by` which column.

    `codes` has an entry an image, in the order of the score; `unit` is what a score calls its images.
    `without` of them lack the column that was asked for, and are by themselves.
    """

    by: str
    codes: Codes = field(repr=False, compare=False)
    unit: str = "images"
    without: int = 0

    @classmethod
    def of(cls, by: str, keys: Sequence[Hashable], unit: str = "images") -> ImageGroups | None:
        """Images with the same of `keys` belong together; None where each is by itself."""
        codes = group_codes(keys)
        return None if len(codes) == len(set(codes.tolist())) else cls(by, codes, unit)

    @property
    def number(self) -> int:
        """How many groups there are."""
        return len(np.unique(self.codes))

    def to_json(self) -> dict[str, Any]:
        return {"by": self.by, "groups": self.number, "images": len(self.codes)}

    def words(self) -> str:
        """What it means for the figures, in sentences."""
        alone = f" {self.without:,} of them have no value in that column, and are taken by themselves."
        groups = counted(self.number, "group")
        return (
            f"{len(self.codes):,} {self.unit} come in {groups} (by {self.by}): intervals "
            f"and paired tests take each group as a whole.{alone if self.without else ''}"
        )

    @property
    def short(self) -> str:
        """The same in a few words."""
        groups = counted(self.number, "group")
        return f"{len(self.codes):,} {self.unit} in {groups} by {self.by}, each taken as a whole"


class Groups:
    """Groups of records, made in one pass and asked in another; `by` as `group_by` has it.

    Records are those of runs, or anything else with `image`, `sha256` and the mapping `columns`. None groups
    by all of `KNOWN`, the word `image` by nothing. Records with the same picture are in one group in any
    case. Records are linked through whatever they share, so that no two groups share anything. `without`
    counts records that have no column to be grouped by.

    An original is a path: from the folder of the record that names it, where an image lies there; else the
    same path as that of an image, or the end of it or the other way round in whole steps. A path that is
    the end of several, as `1.png` of `a/1.png` and `b/1.png`, is none of these: it stands for itself.
    """

    def __init__(self, by: str | None = None) -> None:
        self._by = KNOWN if by is None else () if by == IMAGE else (by,)
        self.without = 0
        self._parents: dict[str, str] = {}
        self._sizes: dict[str, int] = {}
        self._columns: set[str] = set()
        self._last: object = None
        self._originals: dict[_Reference, str] = {}
        # Images that may turn out to be somebody's original, by their paths. There is one a record of a run
        # without originals: texts and tuples take less memory than parts and lists.
        self._unnamed: dict[str, tuple[str, ...]] = {}

    def add(self, record: object) -> None:
        """Take a record into account; all are added before any is asked for."""
        picture = _picture(record)
        root = self._find(picture)
        self._sizes[root] = self._sizes.get(root, 0) + 1
        self._columns |= _cells(record).keys() - {"columns"}
        self._last = record
        originals = [by for by in self._by if by in ORIGINAL_COLUMNS]
        named = [
            _Reference.of(record, by, value) for by in originals if (value := cell_of(record, by)) is not None
        ]
        others = [by for by in self._by if by not in ORIGINAL_COLUMNS]
        links = [f"{by}={value}" for by in others if (value := group_of(record, by)) is not None]
        self.without += not named and not links
        for link in links:
            self._unite(picture, link)
        for reference in named:
            self._unite(picture, self._originals.setdefault(reference, picture))
        if originals and not named:
            path = "/".join(_path(_image(record)))
            known = self._unnamed.get(path, ())
            if picture not in known:
                self._unnamed[path] = (*known, picture)

    def check(self) -> None:
        """Raises UsageError where no record has the column that was asked for."""
        if len(self._by) == 1 and self._by[0] != STEM and self.without and self.without == self.total:
            if self._by[0] in self._columns:
                raise UsageError(
                    f"{option('group_by')}: the column {self._by[0]!r} is empty for all images",
                    remedy="Give text or numbers, or another column.",
                )
            raise no_column("image", self._by[0], self._columns | own_keys(self._last))

    def of(self, record: object) -> str:
        """What identifies the group of a record: the same for all records of one group, and for no other.

        A column and its value, as `pair=7`; the digest of the picture for a record that has no such column.
        """
        self._settle()
        return self._find(_picture(record)).removeprefix(_DIGEST)

    def name(self, record: object) -> str | None:
        """The same in files; None for a record that shares nothing but its picture."""
        self._settle()
        root = self._find(_picture(record))
        return None if root.startswith(_DIGEST) else root

    def size(self, record: object) -> int:
        """How many records are in the group of a record; 1 for one by itself."""
        self._settle()
        return self._sizes.get(self._find(_picture(record)), 1)

    @property
    def total(self) -> int:
        """How many records there are."""
        return sum(self._sizes.values())

    @property
    def number(self) -> int:
        """How many groups there are, those of one record included."""
        self._settle()
        return len(self._sizes)

    @property
    def grouped(self) -> int:
        """How many records share their group with another."""
        self._settle()
        return sum(size for size in self._sizes.values() if size > 1)

    def _settle(self) -> None:
        """Put each image that others name as their original into their group."""
        if not self._originals:
            return
        unnamed = {tuple(path.split("/")): images for path, images in self._unnamed.items()}
        called = {each: each.beside if each.beside in unnamed else each.path for each in self._originals}
        found = find_originals(called.values(), unnamed)
        for reference, picture in self._originals.items():
            path, image = found[called[reference]]
            link = f"{reference.by}={'/'.join(path)}"
            self._unite(picture, link)
            for original in () if image is None else unnamed[image]:
                self._unite(original, link)
        self._originals.clear()

    def _unite(self, one: str, other: str) -> None:
        low, high = sorted((self._find(one), self._find(other)), key=_rank)
        if low != high:
            self._parents[high] = low
            self._sizes[low] = self._sizes.get(low, 0) + self._sizes.pop(high, 0)

    def _find(self, link: str) -> str:
        root = link
        while (parent := self._parents.get(root, root)) != root:
            root = parent
        while (parent := self._parents.get(link, link)) != root:
            self._parents[link] = root
            link = parent
        return root


def image_groups(records: Iterable[object], by: str | None = None) -> ImageGroups | None:
    """The images of a score that belong together, by whichever of the known columns they have, or by one.

    None where each is by itself, or `by` is the word `image`. Raises UsageError for a column that none has.
    """
    if by == IMAGE:
        return None
    kept, groups = list(records), Groups(by)
    for record in kept:
        groups.add(record)
    groups.check()
    names = (groups.name(record) for record in kept if groups.size(record) > 1)
    columns = {"the same picture" if name is None else name.partition("=")[0] for name in names}
    together = ImageGroups.of(", ".join(sorted(columns)), [groups.of(record) for record in kept])
    if together is None or by is None or by == STEM:
        return together
    return replace(together, without=groups.without)
