"""Scores as the papers print them; `source` in each table names the paper and its tables.

`caveat` says, for each table that is shown beside a user's own scores, in what else the two differ: whoever
shows published rows shows this with them. What holds of MCQ depends on the items, and is said there.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from importlib.resources import files
from typing import Any, Literal, cast

import orjson

from uncanny.eval.common.texts import asked_with

Published = Literal[
    "artifact_scores",
    "detection_scores",
    "edit_scores",
    "generator_audit",
    "inpainting_scores",
    "mcq_scores",
    "semantic_scores",
]

_CAVEATS: Mapping[
    Literal["artifact_scores", "semantic_scores", "inpainting_scores", "generator_audit"], str
] = {
    "artifact_scores": (
        "Published rows are about the authors' test images, and models there were asked with the authors' "
        "prompts."
    ),
    "semantic_scores": (
        "Published models were asked with the authors' prompts about the authors' test images, and about the "
        "source in a call of its own."
    ),
    "inpainting_scores": (
        "Published figures are about the authors' images, labelled by the authors' model asked with the "
        "authors' prompts."
    ),
    "generator_audit": (
        "Published generators were judged by other assessors, asked with the authors' prompts, on images of "
        "other captions."
    ),
}
# No model was asked there.
EDITS_CAVEAT = (
    "Published detectors were run with their own settings on the authors' evaluation set, which holds "
    "more edits than real images, on which precision depends: for orientation only."
)


def caveat(
    table: Literal["artifact_scores", "semantic_scores", "inpainting_scores", "generator_audit"],
    sets: Mapping[str, Collection[str]],
) -> str:
    """In what else than the model published rows differ from figures of a user's files, in sentences.

    `sets` has by the name of each file the ids of the prompts in its records, see `asked_with`: what a file
    does not say of itself is not said of it here.
    """
    whose, sentence = asked_with(sets)
    ending = (
        "for orientation only, rows differ in more than the model"
        if whose == {"ours"}
        else "rows compare only where images and prompts are the authors'"
    )
    yours = f" Yours: {sentence[:1].lower()}{sentence[1:]}; {ending}." if sentence else ""
    return f"{_CAVEATS[table]}{yours}"


def published(name: Published) -> dict[str, Any]:
    """One paper's tables; the key `source` says which paper and which tables."""
    return cast(
        dict[str, Any], orjson.loads((files("uncanny.eval") / "published" / f"{name}.json").read_bytes())
    )
