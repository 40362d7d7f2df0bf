"""PAIRS as `uncanny realism run` takes them."""

from __future__ import annotations

from pathlib import Path

from uncanny.errors import UsageError
from uncanny.eval.realism.pairs import (
    SCENES,
    PairSet,
    folder_pairs,
    load_pairs,
    scene_pairs,
    store_scene_pairs,
)


def named_pairs(
    name: str | None, original: Path | None, edited: Path | None, root: Path | None, run: Path | None
) -> PairSet:
    """The pairs; the bundled ones are copied into `run`, if there is one. Raises UsageError."""
    if (original is None) != (edited is None):
        raise UsageError("--original and --edited go together", remedy="Name both folders.")
    if (name is None) == (original is None):
        raise UsageError(
            "Pairs are named twice" if name else "No pairs are named",
            remedy="Give either PAIRS or both --original and --edited.",
        )
    if original is not None and edited is not None:
        return folder_pairs(original, edited)
    assert name is not None
    if name != SCENES or Path(name).exists():
        return load_pairs(Path(name), root)
    if root is not None:
        raise UsageError("--root does not go with the bundled pairs", remedy="Leave it out.")
    return scene_pairs() if run is None else load_pairs(store_scene_pairs(run / "pairs"))
