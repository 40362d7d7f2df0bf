"""Answers to and from the answer cache: under which key, and with which call records."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import orjson

from uncanny.client.calls import CallRecord, CallScope, request_fields
from uncanny.client.endpoint import Endpoint
from uncanny.errors import AnswerError
from uncanny.models.base import ModelRequest
from uncanny.records.answer_cache import AnswerCache

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Replayed(Generic[T]):
    """An answer read again, and how many call records it stands for."""

    value: T
    calls: int


async def store_answer(cache: AnswerCache, key: str, calls: Sequence[CallRecord]) -> None:
    """Keep the calls that led to a validated answer; the last one carries it."""
    await cache.put(key, orjson.dumps([call.cached_form() for call in calls]))


def load_answer(
    cache: AnswerCache,
    key: str,
    request: ModelRequest,
    scope: CallScope,
    read: Callable[[str], T],
    prompt: str,
) -> Replayed[T] | None:
    """The stored answer, its calls appended to `scope` as replayed; None without one that still reads."""
    stored = cache.get(key)
    if stored is None:
        return None
    try:
        calls = [_replayed(call, request, scope.image, prompt) for call in orjson.loads(stored)]
        value = read(calls[-1].answer)
    except (AnswerError, LookupError, TypeError, ValueError, AttributeError):
        return None  # stored by another version or damaged on disk: the call is made again
    scope.calls += calls
    return Replayed(value, len(calls))


def _replayed(stored: dict[str, Any], request: ModelRequest, image: str, prompt: str) -> CallRecord:
    return CallRecord.read({**stored, **request_fields(request, image, prompt), "replayed": True})


SCHEMA_VERSION = 1


def cache_key(endpoint: Endpoint, request: ModelRequest) -> str:
    """SHA-256 of everything the answer depends on, the image's own digest in the image's place."""
    provider = endpoint.provider
    sampling = request.sampling
    schema = request.schema
    content = [
        SCHEMA_VERSION,
        provider.name,
        endpoint.address,
        [
            sampling.temperature if provider.capabilities.temperature else None,
            sampling.top_p if provider.capabilities.top_p else None,
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
