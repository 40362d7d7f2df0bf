"""Candidate regions for an item: the right one, and wrong ones for a person to put into better words."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Literal

from uncanny.eval.mcq.items import Box
from uncanny.schema import Annotation, Anomaly

Source = Literal["verified anomaly", "rejected anomaly", "other image", "other object", "wrong part"]

_WRONG = 3
_PARTS = ("The upper edge of {}", "The lower edge of {}", "The background behind {}", "The ground below {}")


@dataclass(frozen=True, slots=True)
class Candidate:
    """One region: Q2's text, Q4's text, the objects whose boxes enclose it (none: no box is known)."""

    where: str
    claim: str
    objects: tuple[str, ...]
    source: Source


def target(anomaly: Anomaly) -> Candidate:
    """The right candidate: the anomaly where its objects are, or where its name says."""
    where = _named(anomaly.objects) if anomaly.objects else anomaly.name
    return Candidate(_sentence(where), anomaly.phenomenon, tuple(anomaly.objects), "verified anomaly")


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

    found = filter(fresh, _wrong(chosen, rejected, others, places))
    return tuple(islice(found, _WRONG))


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
    said = anomaly.phenomenon if whole else anomaly.name
    name = re.compile(rf"\b{re.escape(_alone(anomaly) or '')}\b", re.IGNORECASE)
    if _alone(anomaly) is not None and name.search(said):
        return Candidate(where, _sentence(name.sub(lambda _: place, said)), (place,), source)
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
