"""Finding the bundled scenes. They are read once and kept; the pictures themselves are not opened."""

from __future__ import annotations

from functools import cache

from uncanny.scenes.truth import DATA, Scene


@cache
def scenes() -> tuple[Scene, ...]:
    """Every bundled scene, sorted by id. Never empty."""
    found = (Scene.model_validate_json(path.read_bytes()) for path in (DATA / "truth").glob("*.json"))
    return tuple(sorted(found, key=lambda scene: scene.id))


@cache
def _by_sha256() -> dict[str, Scene]:
    return {scene.sha256: scene for scene in scenes()}


def scene_by_sha256(digest: str) -> Scene | None:
    """The scene whose image file has this SHA-256 (hexadecimal, any case); None for any other image."""
    return _by_sha256().get(digest.lower())
