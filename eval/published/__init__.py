"""Figures as the papers print them; `source` in each names the paper and its tables."""

from __future__ import annotations

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


def published(name: Published) -> dict[str, Any]:
    """The figures of one paper's tables; the key `source` says which paper and which tables."""
    return cast(dict[str, Any], orjson.loads((files(__package__) / f"{name}.json").read_bytes()))
