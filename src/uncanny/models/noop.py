"""The `noop` provider: eight objects, one finding each, at once and for nothing.

It answers every step of the annotation with fixed text, so that what remains to be measured of a run is
uncanny's own work: 1 inventory + 1 scan + 2 calls for each of 2 batches + 2 = 8 calls an image, and with the
paper's schedule 3 drafts + 6 calls for each of 8 objects + 1 = 52. Questions about numbered things get an
item for each number.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

import orjson

from uncanny.models.base import (
    COMMON_MEDIA_TYPES,
    Capabilities,
    ModelProvider,
    ModelRequest,
    ModelResponse,
    Tokens,
)

OBJECTS = 8
_TOKENS = Tokens(input=0, output=0, cached=0, cache_written=0)
_TEXT = ModelResponse("Nothing was looked at.", "stop", _TOKENS, "noop")
_LISTED = ModelResponse(
    "1. Name: Placeholder\nPhenomenon: Nothing.\nReasoning: Nothing was looked at.\nRealism: 100",
    "stop",
    _TOKENS,
    "noop",
)
# Words of both schedules.
_FINDING: Final = {
    "phenomenon": "Nothing.",
    "observed": "Nothing.",
    "explanation": "Nothing was looked at.",
}
_ANSWERS: dict[str, object] = {
    "attributes": [{"name": "Placeholder", "observed": "Nothing.", "explanation": "Nothing was looked at."}],
    "relations": [{"objects": ["object 1"], "observed": "Nothing.", "reasoning": "Nothing was looked at."}],
    "findings": [{**_FINDING, "object": "object 1", "objects": ["object 1"]}],
    "anomalies": [
        {
            "name": "Placeholder",
            "phenomenon": "Nothing.",
            "reasoning": "Nothing was looked at.",
            "severity": 100,
            "objects": ["object 1"],
        }
    ],
}
# Judgements are the image's own, since what is asked about them next comes without the image.
_NUMBERED: Final[dict[str, Callable[[int, str], dict[str, object]]]] = {
    "findings": lambda number, _: {**_FINDING, "objects": [str(number)]},
    "entries": lambda number, digest: {
        "ids": [number],
        "decision": "keep",
        "phenomenon": f"Nothing, in {digest}.",
        "reasoning": "Nothing was looked at.",
    },
    "anomalies": lambda number, _: {
        "ids": [number],
        "name": "Placeholder",
        "phenomenon": "Nothing.",
        "reasoning": "Nothing was looked at.",
        "realism": 100,
        "kind": "other",
        "objects": [],
    },
}
_NUMBER: Final = re.compile(r'^\{"id":(\d+),', re.MULTILINE)
_RESPONSES = {
    key: ModelResponse(orjson.dumps({key: items}).decode(), "stop", _TOKENS, "noop")
    for key, items in _ANSWERS.items()
}


def _objects(request: ModelRequest) -> ModelResponse:
    """Objects described by the image's digest, so that no two images lead to the same request."""
    description = f"A placeholder in {_digest(request)}."
    objects = [{"name": f"object {n}", "description": description} for n in range(1, OBJECTS + 1)]
    return ModelResponse(orjson.dumps({"objects": objects}).decode(), "stop", _TOKENS, "noop")


def _digest(request: ModelRequest) -> str:
    image = request.first_image()
    return image.sha256 if image else "no image"


def _of_each(key: str, request: ModelRequest) -> ModelResponse | None:
    """An item for each number in the question, None where it has none."""
    item, question = _NUMBERED.get(key), request.messages[-1].parts[-1]
    numbers = _NUMBER.findall(question) if item and isinstance(question, str) else []
    if not item or not numbers:
        return None
    digest = _digest(request)
    items = [item(int(number), digest) for number in numbers]
    return ModelResponse(orjson.dumps({key: items}).decode(), "stop", _TOKENS, "noop")


class NoopProvider(ModelProvider):
    """Its answers mean nothing, and its images are decoded no further than to be sent."""

    name = "noop"
    capabilities = Capabilities(
        media_types=COMMON_MEDIA_TYPES | {"image/bmp", "image/tiff", "image/avif"},
        fixed_concurrency=True,
    )

    async def generate(self, request: ModelRequest) -> ModelResponse:
        if request.schema is None:
            return _LISTED if request.agent == "SceneScanner" else _TEXT
        key = request.schema.name
        return _of_each(key, request) or _RESPONSES.get(key) or _objects(request)
