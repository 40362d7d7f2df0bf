"""The `noop` provider: eight objects, one finding each, at once and for nothing.

It answers every step of the annotation with fixed text, so that what remains to be measured of a run is
uncanny's own work: 1 look + a call for each batch of enlarged parts + 1 for what was found, and with the
paper's schedule 3 drafts + 6 calls for each of 8 objects + 1 = 52. It knows no boxes. Questions about
numbered things get an item for each number.
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
_ANSWERS: Final[dict[str, list[dict[str, object]]]] = {
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
    "entries": lambda number, digest: {
        "ids": [number],
        "decision": "keep",
        "name": "Placeholder",
        "phenomenon": f"Nothing, in {digest}.",
        "reasoning": "Nothing was looked at.",
        "realism": 100,
        "kind": "other",
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
    "findings": lambda number, _: {**_FINDING, "part": number, "objects": []},
}
# The rows of a question that an item is about: enlarged parts, findings or faults.
_NUMBER: Final = {
    key: re.compile(rf'^\{{"{row}":(\d+)[,}}]', re.MULTILINE)
    for key, row in (("entries", "id"), ("anomalies", "id"), ("findings", "part"))
}


def _objects(request: ModelRequest) -> list[dict[str, object]]:
    """Objects described by the image's digest, so that no two images lead to the same request."""
    description = f"A placeholder in {_digest(request)}."
    return [{"name": f"object {n}", "description": description} for n in range(1, OBJECTS + 1)]


def _digest(request: ModelRequest) -> str:
    image = request.first_image()
    return image.sha256 if image else "no image"


def _items(key: str, request: ModelRequest) -> list[dict[str, object]]:
    """What is listed under a key; an item for each number in the question, where it has some."""
    item, question = _NUMBERED.get(key), request.messages[-1].parts[-1]
    numbers = _NUMBER[key].findall(question) if item and isinstance(question, str) else []
    if item and numbers:
        digest = _digest(request)
        return [item(int(number), digest) for number in numbers]
    return _ANSWERS.get(key) or _objects(request)


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
        answer = {key: _items(key, request) for key in request.schema.lists}
        return ModelResponse(orjson.dumps(answer).decode(), "stop", _TOKENS, "noop")
