"""From a run to drafted items."""

from __future__ import annotations

import os
from pathlib import Path

from uncanny.cli.outputs import check_outputs, the_same
from uncanny.errors import UsageError
from uncanny.eval.mcq.flat_table import item_lines, write_items
from uncanny.eval.mcq.from_annotations import draft_items
from uncanny.records.jsonl import read_records
from uncanny.records.run_folder import RunFolder
from uncanny.schema import Annotation, Record


class _Review(Record):
    """What a person decided about one anomaly; the rest is looked at where it is used."""

    image: str


def build_items(run: Path, out: Path, seed: int, *, force: bool = False) -> str:
    """Write the drafts, with paths from the item file, and return a line about them. Raises UsageError."""
    folder = RunFolder(run)
    if not folder.annotations.is_file():
        raise UsageError(f"{run} is not a run: it has no annotations.jsonl", remedy="Name a run folder.")
    manifest = folder.read_manifest()
    base = run / ((manifest and manifest.root) or "")
    annotations = [
        record.model_copy(update={"image": os.path.relpath(base / record.image, out.parent)})
        for record in read_records(folder.annotations, Annotation)
    ]
    reviews = run / "reviews.jsonl"
    decided = None
    if reviews.is_file():
        decided = [
            review.model_dump() | {"image": os.path.relpath(base / review.image, out.parent)}
            for review in read_records(reviews, _Review)
        ]
    items = draft_items(annotations, reviews=decided, seed=seed)
    content = b"".join(item_lines(items))
    check_outputs([the_same(out, content, "file of just these drafts")], [run], force=force)
    write_items(items, out)
    return f"{out}: {len(items)} drafts from {len(annotations)} annotations"
