"""The `noop` provider: eight objects, one finding each, at once and for nothing.

It answers every step of the annotation with fixed text, so that what remains to be measured of a run is
uncanny's own work: 3 drafts + 6 calls for each of 8 objects + 1 = 52 calls an image.
"""

from __future__ import annotations

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
_ANSWERS: dict[str, object] = {
    "attributes": [{"name": "Placeholder", "observed": "Nothing.", "explanation": "Nothing was looked at."}],
    "relations": [{"objects": ["object 1"], "observed": "Nothing.", "reasoning": "Nothing was looked at."}],
    "findings": [{"object": "object 1", "phenomenon": "Nothing.", "explanation": "Nothing was looked at."}],
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
_RESPONSES = {
    key: ModelResponse(orjson.dumps({key: items}).decode(), "stop", _TOKENS, "noop")
    for key, items in _ANSWERS.items()
}


def _objects(request: ModelRequest) -> ModelResponse:
    """Objects described by the image's digest, so that no two images lead to the same request."""
    digests = [part.sha256 for part in request.messages[-1].parts if not isinstance(part, str)]
    description = f"A placeholder in {digests[0] if digests else 'no image'}."
    objects = [{"name": f"object {n}", "description": description} for n in range(1, OBJECTS + 1)]
    return ModelResponse(orjson.dumps({"objects": objects}).decode(), "stop", _TOKENS, "noop")


class NoopProvider(ModelProvider):
    """Its answers mean nothing, and its images are decoded no further than to be sent."""

    name = "noop"
    capabilities = Capabilities(
        media_types=COMMON_MEDIA_TYPES | {"image/bmp", "image/tiff", "image/avif"},
        fixed_concurrency=True,
    )

    async def generate(self, request: ModelRequest) -> ModelResponse:
        if request.schema is None:
            return _TEXT
        return _RESPONSES.get(request.schema.name) or _objects(request)
