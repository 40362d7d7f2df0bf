"""A picture as the demo model sees it: the truth about a bundled scene with its mistakes made in it.

Any other picture gets content made up from its digest, for the fake server: always the same, and marked as
synthetic.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from threading import Lock
from typing import Any, Literal, assert_never

from uncanny.demo.character import Character
from uncanny.demo.data.mistakes import Mistake, mistakes_in
from uncanny.demo.scenes import SETS, Box, Picture, Scene, pictures, scene_by_sha256, scenes
from uncanny.images.overlay import draw_boxes
from uncanny.images.parts import part_of
from uncanny.schema import ArtifactCategory

Kind = Literal["attribute", "relation"]
# x0, y0, x1, y1 as shares of width and height.
Place = tuple[float, float, float, float]
# The kinds of records by the types of the scenes' questions; of the others it depends.
_SORTS = {"count": "count", "anatomy": "anatomy", "topology": "structure", "plausibility": "logic"}

# Of made-up anomalies none is left out for its confidence unless somebody asks for that.
_SYNTHETIC_CONFIDENCE = range(55, 100)
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
    place: Place | None = None

    def listed_in(self, draft: int) -> bool:
        """Whether the perceiver's draft with this number, from 1, lists the object."""
        return self.first_draft <= draft and (self.last_draft is None or draft <= self.last_draft)


@dataclass(frozen=True, slots=True)
class SeenAnomaly:
    """An anomaly as the model sees it, right or wrong; it arises at the first of its `objects`.

    `confidence`, 0-100, is how sure the model says it is.
    """

    name: str
    phenomenon: str
    reasoning: str
    severity: int
    objects: tuple[str, ...]
    kind: Kind
    place: Place | None = None
    sort: str | None = None
    category: ArtifactCategory | None = None
    confidence: int = 95


@dataclass(frozen=True, slots=True)
class View:
    """One picture as the model sees it. `scene` is None where the content is made up.

    `sha256` is that of the picture's file. `merged` is the number of quadruples the formatter folds all
    findings into; None: one for each anomaly. `window` is the part of the picture that is shown, enlarged.
    """

    sha256: str
    scene: Picture | None
    objects: tuple[SeenObject, ...]
    anomalies: tuple[SeenAnomaly, ...]
    merged: int | None = None
    window: Place | None = None

    def at(self, name: str, kind: Kind) -> list[SeenAnomaly]:
        """The anomalies of one kind that arise at an object; empty for objects that are not in the image."""
        wanted = key_of(name)
        return [a for a in self.anomalies if a.kind == kind and a.objects and key_of(a.objects[0]) == wanted]


def seen_by(character: Character, view: View) -> View:
    """What a model of this character sees of it: less, now and then something that is not there, and worse.

    Of each made-up object one fault is left, so that an image takes as many calls whoever is asked.
    """
    kept = [anomaly for anomaly in view.anomalies if not _overlooked(character, view, anomaly)]
    if view.scene is None:
        # Of equal objects the last one stands, which is the plainest.
        hardest_first = sorted(
            view.anomalies, key=lambda each: -character.shared("hard", view.sha256, each.name)
        )
        plainest = {anomaly.objects[0]: anomaly for anomaly in hardest_first}
        seen = {anomaly.objects[0] for anomaly in kept}
        kept += [anomaly for name, anomaly in plainest.items() if name not in seen]
        kept.sort(key=view.anomalies.index)
    elif view.objects and character.draw("invents", view.sha256) < character.trait("invents", 0.0, 0.3):
        kept.append(_invented(character.chooses(view.objects, "invents", view.sha256)))
    merged = view.merged and 1 + int(character.draw("merged", view.sha256) * len(view.objects))
    return replace(
        view,
        anomalies=tuple(
            replace(
                anomaly,
                severity=character.severity(anomaly.severity, anomaly.phenomenon),
                place=anomaly.place and _shifted(character, anomaly.place, anomaly.phenomenon),
            )
            for anomaly in kept
        ),
        merged=merged,
    )


def _overlooked(character: Character, view: View, anomaly: SeenAnomaly) -> bool:
    share = character.trait("overlooks", 0.05, 0.45)
    about = (view.sha256, anomaly.name)
    return character.draw("overlooks", *about) < 2 * share * character.shared("hard", *about)


def _invented(thing: SeenObject) -> SeenAnomaly:
    return SeenAnomaly(
        name=f"Outline of the {thing.name} breaks off",
        phenomenon=f"The outline of the {thing.name} breaks off where it meets what is behind it "
        f"({SYNTHETIC_MARK})",
        reasoning="Outlines of solid things are closed; made up for this model's name.",
        severity=40,
        objects=(thing.name,),
        kind="attribute",
        place=thing.place,
    )


def _shifted(character: Character, place: Place, about: str) -> Place:
    """The box with its sides moved by a tenth of its size at most."""
    x0, y0, x1, y1 = place
    most = character.trait("boxes", 0.0, 0.1)
    moved = [most * (2 * character.draw("box", side, about) - 1) for side in range(4)]
    width, height = x1 - x0, y1 - y0
    sides = (x0 + moved[0] * width, y0 + moved[1] * height, x1 + moved[2] * width, y1 + moved[3] * height)
    left, top, right, bottom = (min(1.0, max(0.0, side)) for side in sides)
    return left, top, right, bottom


def key_of(name: str) -> str:
    """A name reduced for comparison: Unicode NFKC, case folded, without article and spaces."""
    folded = unicodedata.normalize("NFKC", name).casefold().strip()
    return re.sub(r"\s+", "", _ARTICLE.sub("", folded))


def word_overlap(first: str, second: str) -> float:
    """Jaccard index of the words of two texts, 0–1: shared words over all words; 0 where both are empty."""
    left, right = (set(_WORD.findall(text.casefold())) for text in (first, second))
    return len(left & right) / len(left | right) if left or right else 0.0


def best_match(text: str, anomalies: Iterable[SeenAnomaly], floor: float = 0.4) -> SeenAnomaly | None:
    """The anomaly whose phenomenon shares most words with the text; None where no overlap reaches `floor`."""
    ranked = sorted(anomalies, key=lambda a: word_overlap(text, a.phenomenon), reverse=True)
    return ranked[0] if ranked and word_overlap(text, ranked[0].phenomenon) >= floor else None


def image_key(sha256: str, beginning: bytes) -> str:
    """What the demo model knows an image by: its digest, or where it was cut from, with the box in shares."""
    part = part_of(beginning)
    if part is None:
        return sha256
    (x0, y0, x1, y1), (width, height) = part.box, part.size
    return f"{part.sha256}@{x0 / width:.6f},{y0 / height:.6f},{x1 / width:.6f},{y1 / height:.6f}"


def source_of(key: str) -> tuple[str, Place | None]:
    """The digest in an image's key, and the part of the picture that it shows; None is all of it."""
    sha256, _, window = key.partition("@")
    if not window:
        return sha256, None
    x0, y0, x1, y1 = map(float, window.split(","))
    return sha256, (x0, y0, x1, y1)


def synthetic_view(sha256: str, count: int, most: int | None = None) -> View:
    """Made-up content for an unknown image: `count` objects, each with two anomalies, marked as synthetic.

    With `most` so many of the anomalies at most, drawn by the digest.
    """
    digest = bytes.fromhex(sha256)
    objects = tuple(_synthetic_object(digest, index) for index in range(count))
    anomalies = tuple(
        anomaly
        for index, thing in enumerate(objects)
        for anomaly in _synthetic_pair(digest, index, thing, objects[(index + 1) % count])
    )
    if most is not None:
        ranked = sorted(anomalies, key=lambda a: hashlib.sha256(digest + a.name.encode()).digest())[:most]
        anomalies = tuple(a for a in anomalies if a in ranked)
    return View(sha256, None, objects, anomalies, merged=1 + digest[0] % count if count else None)


def _synthetic_object(digest: bytes, index: int) -> SeenObject:
    side = _SIDES[digest[index % 32] % len(_SIDES)]
    tone = digest[(index + 7) % 32]
    left, top = digest[(index + 3) % 32] / 320, digest[(index + 11) % 32] / 320
    return SeenObject(
        f"synthetic object {index + 1}",
        f"a made-up thing of tone {tone} towards the {side} part of the picture, number {index + 1} "
        f"of this image ({SYNTHETIC_MARK})",
        place=(left, top, left + 0.1 + (index % 5) * 0.02, top + 0.12),
    )


def _synthetic_pair(
    digest: bytes, index: int, thing: SeenObject, neighbour: SeenObject
) -> tuple[SeenAnomaly, SeenAnomaly]:
    draws = [digest[(index * 3 + offset) % 32] for offset in range(4)]
    side, share = _SIDES[draws[0] % len(_SIDES)], 5 + draws[1] % 60
    fault, law = _ATTRIBUTES[draws[2] % len(_ATTRIBUTES)]
    relation, relation_law = _RELATIONS[draws[3] % len(_RELATIONS)]
    attribute = SeenAnomaly(
        name=f"Synthetic attribute anomaly {index + 1}",
        phenomenon=f"On {thing.name}, {side} side, the {fault} over about {share} percent of its length "
        f"({SYNTHETIC_MARK})",
        reasoning=f"It cannot be real because {law}; made up from the image's digest.",
        severity=(draws[0] + draws[1]) % 101,
        confidence=_SYNTHETIC_CONFIDENCE[draws[0] % len(_SYNTHETIC_CONFIDENCE)],
        objects=(thing.name,),
        kind="attribute",
        place=thing.place,
    )
    return attribute, replace(
        attribute,
        name=f"Synthetic relation anomaly {index + 1}",
        phenomenon=f"{thing.name} {relation}, {neighbour.name}, near its {side} end ({SYNTHETIC_MARK})",
        reasoning=f"It cannot be real because {relation_law}; made up from the image's digest.",
        severity=(draws[2] + draws[3]) % 101,
        confidence=_SYNTHETIC_CONFIDENCE[draws[1] % len(_SYNTHETIC_CONFIDENCE)],
        objects=(thing.name,) if neighbour is thing else (thing.name, neighbour.name),
        kind="relation",
    )


def known_view(sha256: str) -> View | None:
    """The view of the bundled scene whose file has this digest; None for any other image."""
    scene = scene_by_sha256(sha256)
    return None if scene is None else _views()[scene.id]


def overlay_view(sha256: str) -> View | None:
    """The view of the bundled scene whose picture with the boxes of Q3 has this digest; None for any other.

    Scenes are drawn as they are needed: for any other picture all of them, which takes about a second, once.
    """
    digest = sha256.lower()
    while digest not in _DRAWN:
        with _DRAWING:
            if digest in _DRAWN:
                break
            scene = next(_undrawn(), None)
            if scene is None:
                return None
            drawn = draw_boxes(scene.image_path, scene.mcq.q3.boxes)
            _DRAWN[hashlib.sha256(drawn).hexdigest()] = scene.id
    return _views()[_DRAWN[digest]]


# The scenes by the digests of the pictures drawn so far.
_DRAWN: dict[str, str] = {}
_DRAWING = Lock()


@cache
def _undrawn() -> Iterator[Scene]:
    return iter(scenes())


@cache
def _views() -> dict[str, View]:
    return {scene.id: scene_view(scene, mistakes_in(scene.id)) for name in SETS for scene in pictures(name)}


@cache
def known_anomalies() -> dict[str, SeenAnomaly]:
    """What the model sees in the bundled scenes, by the words that it has for it."""
    return {a.phenomenon: a for view in _views().values() for a in view.anomalies}


def _place(box: Box, scene: Picture) -> Place:
    return box[0] / scene.width, box[1] / scene.height, box[2] / scene.width, box[3] / scene.height


def scene_view(scene: Picture, mistakes: tuple[Mistake, ...]) -> View:
    """The truth about a scene, with mistakes made in it; mistakes about things not there change nothing."""
    view = View(
        sha256=scene.sha256,
        scene=scene,
        objects=tuple(
            SeenObject(each.name, each.description, place=_place(each.box, scene)) for each in scene.objects
        ),
        anomalies=tuple(
            SeenAnomaly(
                a.name,
                a.phenomenon,
                a.reasoning,
                a.severity,
                a.objects,
                a.kind,
                _place(a.box, scene),
                "contact" if a.kind == "relation" else _SORTS.get(scene.artifact_type or ""),
                a.category,
            )
            for a in scene.anomalies
        ),
    )
    for mistake in mistakes:
        view = _make(mistake, view)
    return view


def _make(mistake: Mistake, view: View) -> View:
    match mistake.kind:
        case "misses":
            return replace(view, anomalies=tuple(a for a in view.anomalies if a.name != mistake.target))
        case "mislocates":
            return _change(view, mistake.target, phenomenon=mistake.text)
        case "misjudges":
            return _change(view, mistake.target, severity=mistake.severity)
        case "unsure":
            return _change(view, mistake.target, confidence=mistake.confidence)
        case "invents":
            invented = SeenAnomaly(
                mistake.target, mistake.text, mistake.reasoning, mistake.severity, (mistake.at,), "attribute"
            )
            return replace(view, anomalies=(*view.anomalies, invented))
        case "overlooks-once":
            objects = tuple(
                replace(each, first_draft=2) if key_of(each.name) == key_of(mistake.target) else each
                for each in view.objects
            )
            return replace(view, objects=objects)
        case "names-twice":
            again = tuple(
                replace(each, name=mistake.text, last_draft=1)
                for each in view.objects
                if key_of(each.name) == key_of(mistake.target)
            )
            return replace(view, objects=(*view.objects, *again))
        case _:
            assert_never(mistake.kind)


def _change(view: View, target: str, **changes: Any) -> View:
    changed = (replace(each, **changes) if each.name == target else each for each in view.anomalies)
    return replace(view, anomalies=tuple(changed))
