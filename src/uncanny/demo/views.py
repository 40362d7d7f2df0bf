"""What the demo model makes of one image: a bundled scene with fixed mistakes, or made-up content.

The bundled scenes as the demo model sees them: the truth, with the fixed mistakes made.

The mistakes the demo model makes on the bundled scenes, on purpose and always the same: see docs/demo.md.

A model without mistakes would leave nothing to review and every score at its maximum."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cache
from typing import Literal, assert_never, get_args

from uncanny.demo.scenes import Scene, scene_by_sha256, scenes
from uncanny.images.overlay import draw_boxes

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


def known_view(sha256: str) -> View | None:
    """The view of the bundled scene with this digest; None for any other image."""
    scene = scene_by_sha256(sha256)
    return None if scene is None else _views()[scene.id]


def overlay_view(sha256: str) -> View | None:
    """The view of the bundled scene whose picture with the boxes of Q3 has this digest; None for any other.

    The first call draws the boxes of every scene, which takes about a second.
    """
    scene = _overlays().get(sha256.lower())
    return None if scene is None else _views()[scene]


@cache
def _overlays() -> dict[str, str]:
    drawn = ((scene.id, draw_boxes(scene.image_path, scene.mcq.q3.boxes)) for scene in scenes())
    return {hashlib.sha256(data).hexdigest(): scene for scene, data in drawn}


@cache
def _views() -> dict[str, View]:
    return {scene.id: scene_view(scene, mistakes_in(scene.id)) for scene in scenes()}


def scene_view(scene: Scene, mistakes: tuple[Mistake, ...]) -> View:
    """The truth about a scene, with mistakes made in it; one about something not there changes nothing."""
    view = View(
        sha256=scene.sha256,
        scene=scene.id,
        objects=tuple(SeenObject(each.name, each.description) for each in scene.objects),
        anomalies=tuple(
            SeenAnomaly(a.name, a.phenomenon, a.reasoning, a.severity, a.objects, a.kind)
            for a in scene.anomalies
        ),
    )
    for mistake in mistakes:
        view = _make(mistake, view)
    return view


def _make(mistake: Mistake, view: View) -> View:
    match mistake.kind:
        case "misses":
            kept = tuple(a for a in view.anomalies if a.name != mistake.target)
            return replace(view, anomalies=kept)
        case "mislocates":
            return _change(view, mistake.target, phenomenon=mistake.text)
        case "misjudges":
            return _change(view, mistake.target, severity=mistake.severity)
        case "invents":
            invented = SeenAnomaly(
                mistake.target, mistake.text, mistake.reasoning, mistake.severity, (mistake.at,), "attribute"
            )
            return replace(view, anomalies=(*view.anomalies, invented))
        case "overlooks-once":
            seen = tuple(
                replace(each, first_draft=2) if key_of(each.name) == key_of(mistake.target) else each
                for each in view.objects
            )
            return replace(view, objects=seen)
        case "names-twice":
            again = tuple(
                replace(each, name=mistake.text, last_draft=1)
                for each in view.objects
                if key_of(each.name) == key_of(mistake.target)
            )
            return replace(view, objects=(*view.objects, *again))
        case _:
            assert_never(mistake.kind)


def _change(view: View, target: str, *, phenomenon: str | None = None, severity: int | None = None) -> View:
    changed = tuple(
        replace(
            anomaly,
            phenomenon=anomaly.phenomenon if phenomenon is None else phenomenon,
            severity=anomaly.severity if severity is None else severity,
        )
        if anomaly.name == target
        else anomaly
        for anomaly in view.anomalies
    )
    return replace(view, anomalies=changed)


MistakeKind = Literal["misses", "invents", "mislocates", "misjudges", "overlooks-once", "names-twice"]
KINDS: tuple[MistakeKind, ...] = get_args(MistakeKind)


@dataclass(frozen=True, slots=True)
class Mistake:
    """One mistake in one scene. `target` names the anomaly or object concerned.

    `text` is the wrong phenomenon (`mislocates`, `invents`) or the second name (`names-twice`); `reasoning`
    goes with `invents`; `severity` is the wrong value (`misjudges`) or the invented one (`invents`).
    For `invents`, `target` is the invented anomaly's name and `at` the object it is claimed of.
    """

    scene: str
    kind: MistakeKind
    target: str
    text: str = ""
    reasoning: str = ""
    severity: int = 0
    at: str = ""


MISTAKES: tuple[Mistake, ...] = (
    Mistake("d02-three-arms", "misses", target="Sign spells nonsense"),
    Mistake("d03-dog-four-legs", "names-twice", target="dog", text="The Dog"),
    Mistake(
        "d04-bicycle-no-fork", "misjudges", target="Front wheel is not joined to the bicycle", severity=65
    ),
    Mistake(
        "r01-cup-on-saucer",
        "invents",
        target="Two lemons grow into each other",
        text="At the left of the table the two yellow lemons run into each other where they touch; no edge "
        "parts the front one from the one behind.",
        reasoning="Two ripe lemons are separate solid fruits. They can touch, but neither can fill the place "
        "of the other.",
        severity=35,
        at="lemons",
    ),
    Mistake("r02-mirror-candlestick", "overlooks-once", target="hairbrush"),
    Mistake(
        "r03-shadow-towards-sun",
        "mislocates",
        target="Shadow of the egg cup points towards the light",
        text="The dark shadow that starts at the foot of the pear at the back right runs to the left across "
        "the table, while the shadows of the other things run to the right.",
    ),
)


MCQ_MISTAKES: dict[str, dict[str, str]] = {
    "d05-swan-reflection-turned": {"q1": "no"},
    "r01-cup-floating": {"q2": "A"},
    "d03-dog-five-legs": {"q3": "D"},
    "r04-table-three-legs": {"q4": "Probably A, but it is hard to say."},
    "r05-spoon-in-glass": {"q1": "yes", "q2": "D", "q3": "D", "q4": "D"},
    "r02-mirror-candlestick": {"q4_no_image": "C"},
}
"""Scene → question → the wrong answer given to it."""


REALISM_MISTAKES: dict[str, dict[str, str]] = {
    "d02-three-arms": {"first": "Yes"},
    "d04-bicycle-no-fork": {"first": "Yes", "original_first": "Both", "edited_first": "First"},
    "d05-swan-reflection-turned": {"first": "Yes", "edited_first": "First"},
    "r01-cup-floating": {"first": "Yes", "original_first": "Both", "edited_first": "Both"},
    "r02-mirror-candlestick": {"first": "Yes", "original_first": "Second", "edited_first": "First"},
    "r04-table-three-legs": {"first": "Yes", "edited_first": "Both"},
    "r05-spoon-through-glass": {"first": "Yes", "edited_first": "no verdict"},
}
"""Edited scene → question → the wrong verdict given about it."""


def realism_mistakes_in(scene: str) -> dict[str, str]:
    """The wrong verdicts given about one edited scene, question by question; empty for some."""
    return REALISM_MISTAKES.get(scene, {})


DETECT_MISTAKES: dict[str, str] = {
    "d05-swan-reflection-turned": "no",
    "r01-cup-on-saucer": "yes",
    "r03-shadow-away-from-sun": "It could be either; I cannot tell.",
}
"""Scene → the wrong answer to whether it is generated."""


def mcq_mistakes_in(scene: str) -> dict[str, str]:
    """The wrong answers given about one scene, question by question; empty for most."""
    return MCQ_MISTAKES.get(scene, {})


def mistakes_in(scene: str) -> tuple[Mistake, ...]:
    """The mistakes made in one scene, by its id; empty for most."""
    return tuple(mistake for mistake in MISTAKES if mistake.scene == scene)
