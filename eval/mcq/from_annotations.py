"""Items drafted from annotations; a person checks every one before it is used."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, get_args

from uncanny.eval.mcq.distractors import Candidate, distractors, target, union
from uncanny.eval.mcq.items import Box, Item, Option
from uncanny.schema import Annotation, Anomaly

# image → object → x0, y0, x1, y1 in pixels of the upright image
Boxes = Mapping[str, Mapping[str, Box]]

_LETTERS: tuple[Option, ...] = get_args(Option)


def draft_items(
    annotations: Sequence[Annotation],
    *,
    reviews: Iterable[Mapping[str, Any]] | None = None,
    boxes: Boxes | None = None,
    seed: int = 0,
) -> tuple[Item, ...]:
    """One item, split `art_dg`, for every picture with an anomaly; others are left out. Sorted by image.

    The right option is the least realistic anomaly that `reviews` accept; without reviews, of all that were
    found. The other three are aligned candidates: what a reviewer rejected on this image, faults of other
    images claimed of this one's objects, the right fault on another object, and wrong parts of the right
    object. Other accepted anomalies of the image never serve as wrong options, because they are true.

    A box is given where `boxes` knows all objects of a candidate; `check_items` names the missing ones.
    Every item has `"draft": true` and under `draft_from` where each option comes from. The same input and
    seed give the same items, whatever the order of the annotations.

    `reviews` are records with `image`, `anomaly` (its number from 0) and `decision`; the last one stands. A
    review with another `sha256` than the annotation's is of another picture and does not count.
    """
    ordered = sorted(annotations, key=lambda annotation: annotation.image)
    decided = None if reviews is None else _decisions(reviews, ordered)
    drafts: list[Item] = []
    seen: set[str] = set()
    for number, annotation in enumerate(ordered):
        accepted, rejected = _sorted_out(annotation, decided)
        if not accepted or annotation.sha256 in seen:
            continue
        if annotation.sha256 is not None:
            seen.add(annotation.sha256)
        chosen = min(accepted, key=lambda anomaly: anomaly.severity)
        # Faults of pictures further down the list, round to the start, so that no fault serves everywhere.
        others = [*ordered[number + 1 :], *ordered[:number]]
        drafts.append(_draft(annotation, chosen, accepted, rejected, others, boxes or {}, seed))
    return tuple(drafts)


def _draft(
    annotation: Annotation,
    chosen: Anomaly,
    accepted: Sequence[Anomaly],
    rejected: Sequence[Anomaly],
    others: Sequence[Annotation],
    boxes: Boxes,
    seed: int,
) -> Item:
    chance = random.Random(f"{seed}:{annotation.sha256}:{annotation.image}")
    right = target(chosen)
    wrong = distractors(annotation, chosen, accepted, rejected, others, chance)
    placed = [right, *wrong]
    chance.shuffle(placed)
    by_letter = dict(zip(_LETTERS, placed, strict=False))
    answer = _LETTERS[placed.index(right)]
    known = boxes.get(annotation.image, {})
    fields: dict[str, Any] = {
        "id": f"draft-{(annotation.sha256 or annotation.image)[:16]}",
        "image": annotation.image,
        "split": "art_dg",
        "q1": {"answer": "yes"},
        "q2": {"options": {letter: one.where for letter, one in by_letter.items()}, "answer": answer},
        "q3": {"boxes": _known(by_letter, known), "answer": answer},
        "q4": {"options": {letter: one.claim for letter, one in by_letter.items()}, "answer": answer},
        "draft": True,
        "draft_from": {letter: one.source for letter, one in by_letter.items()},
    }
    return Item.model_validate(fields)


def _known(by_letter: Mapping[Option, Candidate], known: Mapping[str, Box]) -> dict[Option, Box]:
    found = {letter: union(one.objects, known) for letter, one in by_letter.items()}
    return {letter: box for letter, box in found.items() if box is not None}


_Decisions = dict[tuple[str, int], str]


def _decisions(reviews: Iterable[Mapping[str, Any]], annotations: Sequence[Annotation]) -> _Decisions:
    pictures = {annotation.image: annotation.sha256 for annotation in annotations}
    decided: _Decisions = {}
    for review in reviews:
        image, number = review.get("image"), review.get("anomaly")
        if not isinstance(image, str) or not isinstance(number, int) or image not in pictures:
            continue
        if review.get("sha256") in (None, pictures[image]):
            decided[image, number] = str(review.get("decision"))
    return decided


def _sorted_out(annotation: Annotation, decided: _Decisions | None) -> tuple[list[Anomaly], list[Anomaly]]:
    if decided is None:
        return list(annotation.anomalies), []
    accepted: list[Anomaly] = []
    rejected: list[Anomaly] = []
    for number, anomaly in enumerate(annotation.anomalies):
        decision = decided.get((annotation.image, number))
        if decision == "accept":
            accepted.append(anomaly)
        elif decision == "reject":
            rejected.append(anomaly)
    return accepted, rejected
