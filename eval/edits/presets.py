"""Groupings of edits that SAGI's tables have, by name, and groupings of two things at once.

Each says of an edit which group it is in, from columns that `measure`, `prompts` or a data set's own table
have. Source: SAGI, supplementary, sections 1.2, 2 and 3. `A+B` is a group for each two values of `A` and `B`,
which may be columns or presets. A column of that very name comes first.

The paper has these labels from its pipelines. Where no column has them, splicing is told from full
regeneration by the pixels outside the mask (section 2: nearly identical in spliced images): up to one gray
level of 255 on average counts as spliced, which the images of its table 3, at 10.5, are far from.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import isnan
from typing import Any, Final, NamedTuple

from uncanny.eval.edits.data import from_cell
from uncanny.eval.edits.parameters import IN_DOMAIN

# Mean absolute error outside the mask, of channels in 0–1, up to which an image counts as spliced.
SPLICED: Final = 1 / 255
_SINGLE: Final = frozenset({"single", "inpaint", "remove"})

Row = Mapping[str, Any]


class Preset(NamedTuple):
    """The columns that a preset reads, its groups in the paper's order, and what to do without columns."""

    columns: tuple[str, ...]
    groups: tuple[str, str]
    level: Callable[[Row, Sequence[str]], int | None]
    remedy: str


def _fill(row: Row, _: Sequence[str]) -> int | None:
    """0 where the edit was pasted into the original, 1 where a model drew all pixels anew."""
    try:
        error = float(row.get("preserved_mae"))  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return None
    return None if isnan(error) else int(error > SPLICED)


def _times(row: Row, _: Sequence[str]) -> int | None:
    """0 for one inpainted object, 1 for two: by what the prompts were written for, else by the masks."""
    mode = row.get("mode")
    if isinstance(mode, str) and (mode in _SINGLE or mode == "double"):
        return int(mode == "double")
    mask = from_cell(row.get("mask"))
    if not mask:
        return None
    return int(isinstance(mask, list | tuple) and len(mask) > 1)


def _domain(row: Row, in_domain: Sequence[str]) -> int | None:
    """0 for the data sets that a detector was trained on, 1 for others."""
    dataset = row.get("dataset")
    return None if dataset is None else int(str(dataset).casefold() not in {n.casefold() for n in in_domain})


PRESETS: Final[Mapping[str, Preset]] = {
    "sp-fr": Preset(("preserved_mae",), ("SP", "FR"), _fill, "Measure the edits with `preserved`."),
    "single-double": Preset(("mode", "mask"), ("single", "double"), _times, "Name a `mode` or the masks."),
    "id-ood": Preset(
        ("dataset",), ("in domain", "out of domain"), _domain, "Name the `dataset` of each edit."
    ),
}


def parts_of(name: str, columns: Iterable[str]) -> tuple[str, ...]:
    """What a name of `by` groups by: itself, or the parts of `A+B`."""
    return (name,) if name in columns or name in PRESETS else tuple(name.split("+"))


def columns_for(by: Iterable[str]) -> list[str]:
    """The columns that these groupings may need."""
    needed: list[str] = []
    for name in by:
        for part in (name, *name.split("+")):
            needed += (part, *(PRESETS[part].columns if part in PRESETS else ()))
    return list(dict.fromkeys(needed))


def level_of(name: str, row: Row, columns: Iterable[str], in_domain: Sequence[str] = IN_DOMAIN) -> str | None:
    """The group of an edit: of a column its value; None where something of it is not known.

    `columns` are those that any row has: of these a name is a column, whatever else it could be.
    """
    known = set(columns)
    levels = [_level(part, row, known, in_domain) for part in parts_of(name, known)]
    return None if None in levels else ", ".join(map(str, levels))


def _level(part: str, row: Row, columns: set[str], in_domain: Sequence[str]) -> str | None:
    preset = PRESETS.get(part)
    if preset is None or part in columns:
        cell = row.get(part)
        return None if cell is None else str(cell)
    place = preset.level(row, in_domain)
    return None if place is None else preset.groups[place]
