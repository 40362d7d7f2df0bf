"""Drafts of questions about kept pairs: both sides with the same four options, one of which names the fault.

The right option is the finding as people left it. The other three are places elsewhere in the image, each
with a claim: one the same sort of fault, two others. On the image before the edit all four are wrong, and E
is right. A pair without three places that the fault does not reach into has no draft. People put the drafts
into better words: `uncanny mcq author`. Source: SalArt-VQA, section 3 and
appendix B.4.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from math import ceil
from pathlib import Path
from typing import Any, Final, NamedTuple, get_args

from uncanny.answers.boxes import overlap
from uncanny.eval.mcq.data.items import ArtifactType, Item, Option
from uncanny.eval.pairs.data import MadePair
from uncanny.eval.pairs.outcome import Outcome
from uncanny.eval.pairs.places import PLACES
from uncanny.schema import KINDS, Box, Kind

_LETTERS: Final[tuple[Option, ...]] = get_args(Option)
# As `docs/annotate.md` maps them.
TYPES: Final[Mapping[Kind, ArtifactType]] = {
    "anatomy": "anatomy",
    "count": "count",
    "structure": "topology",
    "text": "local_render",
    "contact": "topology",
    "light": "plausibility",
    "perspective": "plausibility",
    "function": "plausibility",
    "logic": "plausibility",
}
_CLAIMS: Final[Mapping[Kind, str]] = {
    "anatomy": "A body part is misshapen",
    "count": "One thing is there too many times",
    "structure": "Two shapes have grown into each other",
    "text": "The signs cannot be read",
    "contact": "One thing passes through another",
    "light": "A shadow points the wrong way",
    "perspective": "One thing is far too large",
    "function": "A thing could not be used as it is shown",
    "logic": "Two things contradict each other",
}


class Choice(NamedTuple):
    """One option: where (Q2), the box (Q3), what (Q4), and what it was made from."""

    where: str
    box: Box
    claim: str
    source: str


def draft_pair(
    outcome: Outcome, others: Sequence[MadePair], seed: int, out: Path, number: int
) -> tuple[Item, ...]:
    """The items of a kept pair, art_pg and ref_pg, with the paths of their images from `out`.

    `others` are all pairs of the same original, and `number` is its place among all candidates: in each four
    of them every letter is right once. Empty where fewer than three places are apart from the fault: an
    option there could be true. The same pair, number and seed give the same items.
    """
    pair, finding = outcome.pair, outcome.finding
    assert finding is not None
    chance = random.Random(f"{seed}:{pair.id}")
    box = finding.box or pair.candidate.region.box
    right = Choice(_sentence(finding.name), box, finding.phenomenon, "finding")
    choices = _wrong(pair, right, finding.kind, others, chance)
    if len(choices) < len(_LETTERS) - 1:
        return ()
    chance.shuffle(choices)
    block, place = divmod(number, len(_LETTERS))
    answer = random.Random(f"{seed}:{block}").sample(_LETTERS, len(_LETTERS))[place]
    choices.insert(_LETTERS.index(answer), right)
    by_letter = dict(zip(_LETTERS, choices, strict=True))
    shared: dict[str, Any] = {
        "pair_id": pair.id,
        "draft": True,
        "draft_from": {letter: each.source for letter, each in by_letter.items()},
        "candidate": pair.id,
    }
    files = pair.files_from(out)
    sides = []
    for side, image, given in (
        ("art_pg", files["edited"], answer),
        ("ref_pg", files["original"], "E"),
    ):
        artifact = side == "art_pg"
        fields = {
            "id": f"{pair.id}-{side.partition('_')[0]}",
            "image": image,
            "split": side,
            "q1": {"answer": "yes"} if artifact else None,
            "q2": {"options": {letter: each.where for letter, each in by_letter.items()}, "answer": given},
            "q3": {"boxes": {letter: each.box for letter, each in by_letter.items()}, "answer": given},
            "q4": {"options": {letter: each.claim for letter, each in by_letter.items()}, "answer": given},
            **shared,
        }
        if artifact:
            fields["artifact_type"] = "other" if finding.kind is None else TYPES[finding.kind]
            fields["original"] = files["original"]
        sides.append(Item.model_validate(fields))
    return tuple(sides)


def _wrong(
    pair: MadePair, right: Choice, kind: Kind | None, others: Sequence[MadePair], chance: random.Random
) -> list[Choice]:
    """At most three places that the fault does not reach into, no two alike."""
    size = (pair.original.width or 1, pair.original.height or 1)
    cells, reached = _cells(right.box, size, chance)
    places = [*_regions(right, others), *cells]
    kinds: list[Kind] = [each for each in KINDS if each != kind]
    chance.shuffle(kinds)
    same: Kind = kinds.pop() if kind is None else kind
    chosen: list[Choice] = []
    taken = {_plain(right.where), *map(_plain, reached)}
    for where, box in places:
        if len(chosen) == len(_LETTERS) - 1:
            break
        if _plain(where) in taken:
            continue
        taken.add(_plain(where))
        claimed = same if not chosen else kinds[len(chosen)]
        source = "same fault elsewhere" if not chosen else "another fault elsewhere"
        chosen.append(Choice(_sentence(where), box, f"{_CLAIMS[claimed]}, {_at(where)}", source))
    return chosen


def _regions(right: Choice, others: Sequence[MadePair]) -> Iterator[tuple[str, Box]]:
    """Other regions of the same original."""
    for other in others:
        hint = other.candidate.region
        if not overlap(hint.box, right.box):
            yield hint.name, hint.box


def _cells(box: Box, size: tuple[int, int], chance: random.Random) -> tuple[list[tuple[str, Box]], list[str]]:
    """Ninths of the image that the box does not reach into, in any order, and the names of the others.

    Each has a box about as large as the right one, so that its size tells nothing.
    """
    cell = size[0] / 3, size[1] / 3
    free: list[tuple[str, Box]] = []
    reached: list[str] = []
    for number, words in enumerate(PLACES):
        left, top = (number % 3) * cell[0], (number // 3) * cell[1]
        width = min(cell[0], max(8.0, (box[2] - box[0]) * chance.uniform(0.8, 1.2)))
        height = min(cell[1], max(8.0, (box[3] - box[1]) * chance.uniform(0.8, 1.2)))
        x, y = left + chance.uniform(0, cell[0] - width), top + chance.uniform(0, cell[1] - height)
        placed: Box = (
            int(x),
            int(y),
            max(int(x) + 1, min(size[0], int(x + width))),
            max(int(y) + 1, min(size[1], int(y + height))),
        )
        name = f"the area {words}"
        whole: Box = (int(left), int(top), ceil(left + cell[0]), ceil(top + cell[1]))
        if overlap(whole, box):
            reached.append(name)
        else:
            free.append((name, placed))
    chance.shuffle(free)
    return free, reached


def _at(where: str) -> str:
    """The place as the end of a claim."""
    return where.removeprefix("the area ") if where.startswith("the area ") else f"at {where}"


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def _plain(text: str) -> str:
    return " ".join(text.split()).casefold()
