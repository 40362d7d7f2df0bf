"""Which rows of a flat table belong together: the table names roles, an item set splits and pairs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from uncanny.eval.mcq.items import Split


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
