"""The bundled scenes as the demo model sees them: the truth, with the fixed mistakes made."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from functools import cache
from typing import assert_never

from uncanny.images.overlay import draw_boxes
from uncanny.providers.demo_mistakes import Mistake, mistakes_in
from uncanny.providers.demo_view import SeenAnomaly, SeenObject, View, key_of
from uncanny.scenes import Scene, scene_by_sha256, scenes


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
