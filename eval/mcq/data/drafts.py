"""Items drafted from annotations: the right region, and wrong ones for a person to put into better words.

Every draft is checked by a person before it is used. Candidates come first, a region each with its texts for
Q2 and Q4; then items made of four of them.
"""

from __future__ import annotations

import os
import random
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any, Literal, get_args

from uncanny.errors import UsageError
from uncanny.eval.mcq.data.items import Box, Item, ItemSet, Option
from uncanny.eval.mcq.data.load import item_lines, write_items
from uncanny.eval.mcq.parameters import BuildParameters
from uncanny.parameters import path_of, takes
from uncanny.records.jsonl import read_records
from uncanny.records.reviews import MAJORITY, ReviewLog, Rule, review_image
from uncanny.records.run_folder import RunFolder, check_recorded
from uncanny.schema import Annotation, Anomaly
from uncanny.wording import option

Source = Literal["verified anomaly", "rejected anomaly", "other image", "other object", "wrong part"]

_WRONG = 3
_PARTS = ("The upper edge of {}", "The lower edge of {}", "The background behind {}", "The ground below {}")


@dataclass(frozen=True, slots=True)
class Candidate:
    """One region: Q2's text, Q4's text, and `box`, or else the objects whose boxes enclose it, if known."""

    where: str
    claim: str
    objects: tuple[str, ...]
    source: Source
    box: Box | None = None


def target(anomaly: Anomaly) -> Candidate:
    """The right candidate: the anomaly in its box, else where its objects are, or where its name says."""
    where = _named(anomaly.objects) if anomaly.objects else anomaly.name
    objects = tuple(anomaly.objects)
    return Candidate(_sentence(where), anomaly.phenomenon, objects, "verified anomaly", anomaly.box)


def distractors(
    annotation: Annotation,
    chosen: Anomaly,
    accepted: Sequence[Anomaly],
    rejected: Sequence[Anomaly],
    others: Sequence[Annotation],
    chance: random.Random,
) -> tuple[Candidate, ...]:
    """Three wrong candidates, different from each other and from the right one in both texts.

    No object of an accepted anomaly is offered as a place of its own: what is said of it might be true.
    """
    taken = {name.casefold() for anomaly in accepted for name in anomaly.objects}
    places = [entry.name for entry in annotation.objects if entry.name.casefold() not in taken]
    chance.shuffle(places)
    right = target(chosen)
    whereabouts, claims = {_plain(right.where)}, {_plain(right.claim)}
    # What is wrong with an accepted anomaly besides the chosen one is true, so nobody may say it.
    claims |= {_plain(anomaly.phenomenon) for anomaly in accepted}

    def fresh(candidate: Candidate) -> bool:
        where, claim = _plain(candidate.where), _plain(candidate.claim)
        if where in whereabouts or claim in claims:
            return False
        whereabouts.add(where)
        claims.add(claim)
        return True

    return tuple(islice(filter(fresh, _wrong(chosen, rejected, others, places)), _WRONG))


def union(objects: Sequence[str], known: Mapping[str, Box]) -> Box | None:
    """The smallest box around all these objects' boxes; None where one is unknown or there are no objects."""
    if not objects or any(name not in known for name in objects):
        return None
    boxes = [known[name] for name in objects]
    return (
        min(box[0] for box in boxes),
        min(box[1] for box in boxes),
        max(box[2] for box in boxes),
        max(box[3] for box in boxes),
    )


def _wrong(
    chosen: Anomaly, rejected: Sequence[Anomaly], others: Sequence[Annotation], places: Sequence[str]
) -> Iterator[Candidate]:
    for anomaly in rejected:
        yield replace(target(anomaly), source="rejected anomaly")
    foreign = [anomaly for other in others for anomaly in other.anomalies]
    for number, place in enumerate(places):
        same = next((anomaly for anomaly in foreign if _alone(anomaly) == place.casefold()), None)
        if same is not None:
            yield Candidate(_sentence(_named([place])), same.phenomenon, (place,), "other image")
        elif number % 3 == 1 and foreign:
            yield _moved(foreign[number % len(foreign)], place, "other image")
        else:
            # In the anomaly's own words once only: three echoes would give the right option away.
            yield _moved(chosen, place, "other object", whole=number == 0)
    subject = _named(chosen.objects[:1]) if chosen.objects else chosen.name
    for part in _PARTS:
        where = part.format(subject)
        yield Candidate(where, f"{where}: {chosen.name}", (), "wrong part")


def _alone(anomaly: Anomaly) -> str | None:
    return anomaly.objects[0].casefold() if len(anomaly.objects) == 1 else None


def _moved(anomaly: Anomaly, place: str, source: Source, *, whole: bool = False) -> Candidate:
    """The same fault said of another object: in the words of its name, or `whole` in those it is seen by."""
    where = _sentence(_named([place]))
    words = anomaly.phenomenon if whole else anomaly.name
    name = re.compile(rf"\b{re.escape(_alone(anomaly) or '')}\b", re.IGNORECASE)
    if _alone(anomaly) is not None and name.search(words):
        return Candidate(where, _sentence(name.sub(lambda _: place, words)), (place,), source)
    return Candidate(where, f"{where}: {anomaly.name}", (place,), source)


def _named(objects: Sequence[str]) -> str:
    listed = [
        f"the {name}" if not name.lower().startswith(("the ", "a ", "an ")) else name for name in objects
    ]
    return listed[0] if len(listed) == 1 else f"{', '.join(listed[:-1])} and {listed[-1]}"


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def _plain(text: str) -> str:
    return " ".join(text.split()).casefold()


# image → object → x0, y0, x1, y1 in pixels of the upright image
Boxes = Mapping[str, Mapping[str, Box]]

_LETTERS: tuple[Option, ...] = get_args(Option)


@takes(BuildParameters)
def build(run: str | os.PathLike[str], parameters: BuildParameters) -> ItemSet:
    """Draft items from the annotations of a run, or from its accepted anomalies (`draft_items`).

    Image paths start at the folder of `out`. Raises UsageError for a folder without annotations, and, without
    `force`, if `out` contains anything but these drafts, because people may have edited it.

    >>> run = uncanny.annotate(images, model="demo", out=out)
    >>> [item.split for item in uncanny.mcq.build(out, out="drafts.jsonl")]
    ['art_dg']
    """
    target = Path(parameters.out)
    drafts = ItemSet(draft_run(path_of("run", run), target.parent, parameters.seed, parameters.rule), target)
    if not drafts:
        raise _nothing(path_of("run", run), parameters.rule)
    # An empty file holds nobody's work.
    content = b"".join(item_lines(drafts))
    if not parameters.force and target.is_file() and target.read_bytes() not in (b"", content):
        raise UsageError(
            f"{target} already exists and contains more than these drafts",
            remedy=f"Pass another file, or replace it with {option('force', True)}.",
        )
    write_items(drafts, target)
    return drafts


def _nothing(run: Path, rule: Rule) -> UsageError:
    """Why there is nothing to draft."""
    if not ReviewLog.of_run(run).path.is_file():
        return UsageError(f"{run} has no findings to draft items from", remedy="Annotate other images.")
    return UsageError(f"{run} has no finding that is accepted by {rule.words}", remedy=rule.remedy)


def draft_run(run: Path, folder: Path, seed: int = 0, rule: Rule = MAJORITY) -> tuple[Item, ...]:
    """Items drafted from the run's annotations and reviews, with image paths that start at `folder`.

    Of several reviewers `rule` decides, and texts and boxes are those that they gave.
    """
    files = RunFolder(run)
    manifest = files.read_manifest()
    if not files.annotations.is_file():
        check_recorded(run, files.annotations.name)
    base = run / ((manifest and manifest.root) or "")
    log = ReviewLog.of_run(run)
    by_image = log.by_image()
    annotations = []
    decisions: list[dict[str, Any]] = []
    for record in read_records(files.annotations, Annotation):
        name = os.path.relpath(base / record.image, folder)
        findings = review_image(record, by_image.get(record.image, ()), rule).anomalies
        annotations.append(
            record.model_copy(update={"image": name, "anomalies": tuple(each.anomaly for each in findings)})
        )
        decisions += [
            {"image": name, "anomaly": number, "decision": each.decision}
            for number, each in enumerate(findings)
            if each.decision is not None
        ]
    return draft_items(annotations, reviews=decisions if log.path.is_file() else None, seed=seed)


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

    A box is given where the anomaly has one, or where `boxes` or the annotation know those of all objects of
    a candidate; of a name, `boxes` go before the annotation's. `check` names the missing ones.
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
    located = {each.name: each.box for each in annotation.objects if each.box is not None}
    known = located | dict(boxes.get(annotation.image, {}))
    fields: dict[str, Any] = {
        "id": f"draft-{(annotation.sha256 or annotation.image)[:16]}",
        "image": annotation.image,
        "split": "art_dg",
        "q1": {"answer": "yes"},
        "q2": {"options": {letter: region.where for letter, region in by_letter.items()}, "answer": answer},
        "q3": {"boxes": _known(by_letter, known), "answer": answer},
        "q4": {"options": {letter: region.claim for letter, region in by_letter.items()}, "answer": answer},
        "draft": True,
        "draft_from": {letter: region.source for letter, region in by_letter.items()},
    }
    return Item.model_validate(fields)


def _known(by_letter: Mapping[Option, Candidate], known: Mapping[str, Box]) -> dict[Option, Box]:
    boxes = {letter: region.box or union(region.objects, known) for letter, region in by_letter.items()}
    return {letter: box for letter, box in boxes.items() if box is not None}


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
