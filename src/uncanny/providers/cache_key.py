"""Under which key a finished answer is kept."""

from __future__ import annotations

import hashlib

import orjson

from uncanny.providers.base import Request
from uncanny.providers.lane import Lane

SCHEMA_VERSION = 1


def cache_key(lane: Lane, request: Request) -> str:
    """SHA-256 of everything the answer depends on, the image's own digest in the image's place."""
    provider = lane.provider
    sampling = request.sampling
    schema = request.schema
    content = [
        SCHEMA_VERSION,
        provider.name,
        lane.endpoint,
        [
            sampling.temperature if provider.traits.temperature else None,
            sampling.top_p if provider.traits.top_p else None,
            sampling.max_output_tokens,
        ],
        [
            [
                message.role,
                [part if isinstance(part, str) else [part.sha256, part.media_type] for part in message.parts],
            ]
            for message in request.messages
        ],
        None if schema is None else [schema.name, schema.own],
        request.sample,
    ]
    return hashlib.sha256(orjson.dumps(content, option=orjson.OPT_SORT_KEYS)).hexdigest()
