"""PAIRS as `uncanny realism run` takes them."""

from __future__ import annotations

from pathlib import Path

from uncanny.errors import UsageError
from uncanny.eval.realism.pairs import (
    PAIR_FILE,
    SCENES,
    PairSet,
    folder_pairs,
    load_pairs,
    scene_pairs,
    store_scene_pairs,
)
from uncanny.records.run_folder import check_no_links, check_within

STORED = "pairs"


def named_pairs(
    name: str | None,
    original: Path | None,
    edited: Path | None,
    root: Path | None,
    run: Path | None,
    *,
    dry: bool,
) -> PairSet:
    """The pairs; the bundled ones are copied into `run`, but not by a dry run. Raises UsageError."""
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
    if run is None or (dry and not (run / STORED / PAIR_FILE).is_file()):
        return scene_pairs()
    check_no_links(run / STORED)
    stored = store_scene_pairs(run / STORED)
    pairs = load_pairs(stored)
    remedy = f"It is not the bundled set: remove {stored.parent}, or name another run with -o."
    files = (file for pair in pairs.pairs for file in (pair.original, pair.edited))
    check_within(run, stored, files, remedy=remedy)
    return pairs
