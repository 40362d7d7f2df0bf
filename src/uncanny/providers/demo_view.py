"""What the demo model makes of one image: a bundled scene with fixed mistakes, or made-up content."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

Kind = Literal["attribute", "relation"]

SYNTHETIC_MARK = "synthetic answer of the fake server"

_ARTICLE = re.compile(r"^(?:a|an|the)\s+")
_WORD = re.compile(r"\w+")

_SIDES = ("left", "right", "upper", "lower", "front", "rear")
_ATTRIBUTES = (
    ("outline breaks off", "outlines of solid things are closed"),
    ("surface flows into two incompatible shapes", "one rigid part has one shape"),
    ("part is repeated at the wrong size", "equal parts of one thing have equal sizes"),
    ("joint bends against its hinge", "a hinge turns about one axis only"),
    ("support ends in the air", "weight has to be carried down to the ground"),
)
_RELATIONS = (
    ("passes through its neighbour", "two solid things cannot fill the same space"),
    ("hangs beside its neighbour without touching it", "things without support fall"),
    ("casts a shadow away from its neighbour's", "one light source casts parallel shadows"),
    ("is larger than its neighbour although it stands behind it", "size shrinks with distance"),
)


@dataclass(frozen=True, slots=True)
class SeenObject:
    """An object as the model names it. `last_draft` None: every draft from `first_draft` on lists it."""

    name: str
    description: str
    first_draft: int = 1
    last_draft: int | None = None

    def listed_in(self, draft: int) -> bool:
        """Whether the perceiver's draft with this number, from 1, lists the object."""
        return self.first_draft <= draft and (self.last_draft is None or draft <= self.last_draft)


@dataclass(frozen=True, slots=True)
class SeenAnomaly:
    """An anomaly as the model sees it, right or wrong; it arises at the first of its `objects`."""

    name: str
    phenomenon: str
    reasoning: str
    severity: int
    objects: tuple[str, ...]
    kind: Kind


@dataclass(frozen=True, slots=True)
class View:
    """One image as the model sees it. `scene` is the bundled scene's id, None for made-up content.

    `merged` is the number of quadruples the formatter folds all findings into; None: one for each anomaly.
    """

    sha256: str
    scene: str | None
    objects: tuple[SeenObject, ...]
    anomalies: tuple[SeenAnomaly, ...]
    merged: int | None = None

    def at(self, name: str, kind: Kind) -> list[SeenAnomaly]:
        """The anomalies of one kind that arise at an object; empty for objects that are not in the image."""
        wanted = key_of(name)
        return [a for a in self.anomalies if a.kind == kind and a.objects and key_of(a.objects[0]) == wanted]


def key_of(name: str) -> str:
    """A name reduced for comparison: Unicode NFKC, case folded, without article and spaces."""
    folded = unicodedata.normalize("NFKC", name).casefold().strip()
    return re.sub(r"\s+", "", _ARTICLE.sub("", folded))


def likeness(one: str, other: str) -> float:
    """Shared words over all words of two texts, 0–1; 0 where both are empty."""
    left, right = (set(_WORD.findall(text.casefold())) for text in (one, other))
    return len(left & right) / len(left | right) if left or right else 0.0


def best_match(text: str, anomalies: Iterable[SeenAnomaly], floor: float = 0.4) -> SeenAnomaly | None:
    """The anomaly whose phenomenon is most like the text; None where none is at least `floor` like it."""
    ranked = sorted(anomalies, key=lambda a: likeness(text, a.phenomenon), reverse=True)
    return ranked[0] if ranked and likeness(text, ranked[0].phenomenon) >= floor else None


def synthetic_view(sha256: str, count: int) -> View:
    """Made-up content for an unknown image: `count` objects, each with two anomalies, marked as synthetic."""
    digits = bytes.fromhex(sha256)
    objects = tuple(_synthetic_object(digits, index) for index in range(count))
    anomalies = tuple(
        anomaly
        for index, seen in enumerate(objects)
        for anomaly in _synthetic_pair(digits, index, seen, objects[(index + 1) % count])
    )
    return View(sha256, None, objects, anomalies, merged=1 + digits[0] % count if count else None)


def _synthetic_object(digits: bytes, index: int) -> SeenObject:
    side = _SIDES[digits[index % 32] % len(_SIDES)]
    tone = digits[(index + 7) % 32]
    return SeenObject(
        f"synthetic object {index + 1}",
        f"a made-up thing of tone {tone} towards the {side} part of the picture, number {index + 1} "
        f"of this image ({SYNTHETIC_MARK})",
    )


def _synthetic_pair(digits: bytes, index: int, seen: SeenObject, other: SeenObject) -> list[SeenAnomaly]:
    draw = [digits[(index * 3 + offset) % 32] for offset in range(4)]
    side, share = _SIDES[draw[0] % len(_SIDES)], 5 + draw[1] % 60
    what, law = _ATTRIBUTES[draw[2] % len(_ATTRIBUTES)]
    relation, relation_law = _RELATIONS[draw[3] % len(_RELATIONS)]
    attribute = SeenAnomaly(
        name=f"Synthetic attribute anomaly {index + 1}",
        phenomenon=f"On {seen.name}, {side} side, the {what} over about {share} percent of its length "
        f"({SYNTHETIC_MARK})",
        reasoning=f"It cannot be real because {law}; made up from the image's digest.",
        severity=(draw[0] + draw[1]) % 101,
        objects=(seen.name,),
        kind="attribute",
    )
    return [
        attribute,
        replace(
            attribute,
            name=f"Synthetic relation anomaly {index + 1}",
            phenomenon=f"{seen.name} {relation}, {other.name}, near its {side} end ({SYNTHETIC_MARK})",
            reasoning=f"It cannot be real because {relation_law}; made up from the image's digest.",
            severity=(draw[2] + draw[3]) % 101,
            objects=(seen.name,) if other is seen else (seen.name, other.name),
            kind="relation",
        ),
    ]
