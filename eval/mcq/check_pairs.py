"""Checks of what belongs together: an artifact image and its reference."""

from __future__ import annotations

from collections.abc import Sequence

from uncanny.eval.mcq.items import Item, Split, TextChoice
from uncanny.eval.mcq.problems import Problem, shown

_PARTNER: dict[Split, Split] = {
    "art_pg": "ref_pg",
    "ref_pg": "art_pg",
    "art_dg": "ref_real",
    "ref_real": "art_dg",
}
_PIXEL_ALIGNED = ("art_pg", "ref_pg")


def check_pairs(items: Sequence[Item]) -> dict[int, list[Problem]]:
    """Findings by `id()` of the item they belong to; items without findings are left out.

    art_pg and ref_pg come in pairs with one `pair_id` and the same options and boxes. art_dg and ref_real
    are pairs only where they have a `pair_id`, and their options are their own.
    """
    found: dict[int, list[Problem]] = {}
    members: dict[str, list[Item]] = {}
    for item in items:
        if item.pair_id is not None and item.pair_id.strip():
            members.setdefault(item.pair_id, []).append(item)
        elif item.split in _PIXEL_ALIGNED:
            message = f"{item.split} needs a pair_id that its {_PARTNER[item.split]} image has too"
            found[id(item)] = [Problem(item.id, "pair_id", message)]
    for pair_id, pair in members.items():
        for item in pair:
            problems = _of_member(item, pair_id, pair)
            if problems:
                found[id(item)] = problems
    return found


def _of_member(item: Item, pair_id: str, pair: Sequence[Item]) -> list[Problem]:
    wanted = _PARTNER[item.split]
    others = [other for other in pair if other is not item]
    partners = [other for other in others if other.split == wanted]
    if not partners:
        message = f"pair {shown(pair_id)} has no {wanted} image; add it, or take the item out"
        return [Problem(item.id, "pair_id", message)]
    if len(others) > 1:
        message = f"pair {shown(pair_id)} has {len(pair)} images; a pair is one {item.split} and one {wanted}"
        return [Problem(item.id, "pair_id", message)]
    # Named once, at the reference: it is the artifact item that the options were written for.
    return _other_options(item, partners[0]) if item.split == "ref_pg" else []


def _other_options(item: Item, partner: Item) -> list[Problem]:
    advice = f"give it those of {shown(partner.id)}"
    found = [
        Problem(item.id, f"{question}.options", f"other options than the pair's artifact image; {advice}")
        for question, mine, theirs in (("q2", item.q2, partner.q2), ("q4", item.q4, partner.q4))
        if mine is not None and theirs is not None and _texts(mine) != _texts(theirs)
    ]
    if item.q3 is not None and partner.q3 is not None and item.q3.boxes != partner.q3.boxes:
        message = f"other boxes than the pair's artifact image; {advice}"
        found.append(Problem(item.id, "q3.boxes", message))
    return found


def _texts(choice: TextChoice) -> dict[str, str]:
    return {letter: " ".join(text.split()) for letter, text in choice.options.items()}
