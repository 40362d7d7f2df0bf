"""Lines of the results of batches, as a server writes them, and as none ever should."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import orjson
import pytest

from uncanny.errors import ProviderError
from uncanny.models.base import ModelResponse
from uncanny.models.registry import Access, open_model, parse_model

MESSAGE = {"id": "m", "model": "any", "content": [{"type": "text", "text": "{}"}], "stop_reason": "end_turn"}
PART = {"type": "message", "content": [{"type": "output_text", "text": "{}"}]}
USAGE = {"input_tokens": 5, "output_tokens": 5, "input_tokens_details": {"cached_tokens": 1}}
RESPONSE = {"id": "r", "status": "completed", "output": [PART], "usage": USAGE}
FAILED = {"status": "failed", "error": {"code": "server_error", "message": "m"}}
ERROR = {"error": {"message": "m", "code": "c", "type": "invalid_request_error", "param": "p"}}
LINES: dict[str, list[dict[str, Any]]] = {
    "openai/gpt-4o": [
        {"response": {"status_code": 200, "body": RESPONSE}},
        {"response": {"status_code": 200, "body": FAILED}},
        {"response": {"status_code": 400, "body": ERROR}},
        {"error": {"code": "batch_expired"}},
    ],
    "anthropic/claude-sonnet-4-5": [
        {"result": {"type": "succeeded", "message": MESSAGE | {"usage": USAGE}}},
        {"result": {"type": "errored", "error": {"type": "error"} | ERROR}},
        {"result": {"type": "expired"}},
    ],
}


def nested(times: int) -> dict[str, Any]:
    content: dict[str, Any] = {}
    for _ in range(times):
        content = {"error": content}
    return content


ODD = [None, True, -1, 0, 99_999, 1e308, "", "x" * 10_000, "\x00\x1b[31m", [], {}, [None], nested(600), 429]


def places(value: Any) -> Iterator[tuple[Any, ...]]:
    yield ()
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in inner:
        yield from ((key, *place) for place in places(each))


def with_odd(line: dict[str, Any], place: tuple[Any, ...], odd: Any) -> Any:
    changed = {"line": json.loads(json.dumps(line))}
    part, last = changed, "line"
    for key in place:
        part, last = part[last], key
    part[last] = odd
    return changed["line"]


@pytest.mark.parametrize("model", LINES)
def test_no_line_is_too_odd_to_be_told_what_it_is(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.setenv(name, "sk-any")
    api = open_model(parse_model(model), Access()).batches()
    assert api is not None
    for line in LINES[model]:
        for place in places(line):
            for odd in ODD:
                read = orjson.loads(json.dumps(with_odd(line, place, odd)))
                if isinstance(read, dict):
                    assert isinstance(api.answer(read), ModelResponse | ProviderError)
