"""Scores as the papers print them; `source` in each table names the paper and its tables.

`CAVEATS` says, for each table that is shown beside a user's own scores, in what else the two differ: whoever
shows published rows shows this with them. What holds of MCQ depends on the items, and is said there.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files
from typing import Any, Literal, cast

import orjson

Published = Literal[
    "artifact_scores",
    "detection_scores",
    "edit_scores",
    "generator_audit",
    "inpainting_scores",
    "mcq_scores",
    "semantic_scores",
]

CAVEATS: Mapping[
    Literal["artifact_scores", "edit_scores", "semantic_scores", "inpainting_scores", "generator_audit"], str
] = {
    "artifact_scores": (
        "Published rows are about the authors' test images, and models there were asked with the authors' "
        "texts. uncanny asks with texts of its own: rows differ in more than the model."
    ),
    "semantic_scores": (
        "Published models were asked with the authors' texts about the authors' test images. uncanny asks "
        "with texts of its own, and about the source in a conversation unless it is told otherwise: rows "
        "differ in more than the model, even with the same images, truth and backbone."
    ),
    "inpainting_scores": (
        "Published figures are about the authors' images, labelled by the authors' model asked with the "
        "authors' texts. uncanny asks with texts of its own: for orientation only."
    ),
    "generator_audit": (
        "Published generators were judged by other assessors, asked with the authors' texts, on images of "
        "other prompts, and uncanny asks with texts of its own."
    ),
    "edit_scores": (
        "Published detectors were run with their own settings on the authors' evaluation set, which holds "
        "more edits than real images, on which precision depends: for orientation only."
    ),
}


def published(name: Published) -> dict[str, Any]:
    """One paper's tables; the key `source` says which paper and which tables."""
    return cast(
        dict[str, Any], orjson.loads((files("uncanny.eval") / "published" / f"{name}.json").read_bytes())
    )
