"""Text that servers send: whatever is in it, reading it ends soon and raises nothing but our own errors."""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Iterator
from functools import partial
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.growth import check_linear
from uncanny import models
from uncanny.errors import ProviderError, TransientError
from uncanny.models.anthropic import read_message
from uncanny.models.error_body import MESSAGE_LENGTH, one_line, read_error_body
from uncanny.models.http import read_body
from uncanny.models.http_errors import ErrorContext, from_response, retry_after
from uncanny.models.openai_chat import read_chat
from uncanny.models.vllm.watcher import cause_lines

KEY = "sk-proj-0123456789abcdefSECRET"
WHERE = ErrorContext("some/model", "model", "http://127.0.0.1/v1", "SOME_API_KEY", (KEY,))

# What took time with the square of the length would take minutes, a fragment: it ends in time or it does not.
LONG = 100_000
FRAGMENTS = [
    " ", "a", "a ", "*", "-", ".", "a.", "<", ">", "<a", "</", "<title", "<title>", "<script", "<script>",
    "<style>", "</script", "sk-", "sk-a", "Bearer ", "Bearer", "***", "** ", "(", ")", "()", "[", "]", "[]",
    "ERROR a b [", "ERROR a b []", "A" * 64 + "=", "\n", "\t", "\\", "%", "é", "content ", "text violat ",
    "your key ",
]  # fmt: skip


def repeated(fragment: str, size: int = LONG) -> str:
    return fragment * (size // len(fragment))


@pytest.mark.parametrize("fragment", FRAGMENTS)
def test_any_length_of_any_text_is_read(fragment: str) -> None:
    text = repeated(fragment)
    for message in (text, f"x {text} y", f"{KEY}{text}", f"{text}{KEY}", f"<html>{text}</html>"):
        assert len(one_line(message, (KEY,))) <= MESSAGE_LENGTH
        assert KEY not in one_line(message, (KEY,))
        for body in (
            message,
            orjson.dumps({"error": {"message": message}}).decode(),
            orjson.dumps(message).decode(),
        ):
            words = read_error_body(body.encode(), (KEY,))
            assert len(words.message) <= MESSAGE_LENGTH
            assert KEY not in words.message
        cause_lines([message])


def patterns() -> Iterator[tuple[str, re.Pattern[str]]]:
    """Every pattern that reads what a server wrote."""
    for module in pkgutil.walk_packages(models.__path__, "uncanny.models."):
        names = vars(importlib.import_module(module.name))
        yield from (
            (f"{module.name}.{name}", value) for name, value in names.items() if isinstance(value, re.Pattern)
        )


PATTERNS = dict(patterns())


def literals(pattern: re.Pattern[str]) -> set[str]:
    """The words a pattern is made of, its closing ones with and without the opening ones."""
    return {word for word in re.findall(r"[\w<>/\[\]()*-]+(?: \w+)?", pattern.pattern) if len(word) < 40}


@pytest.mark.slow
@pytest.mark.parametrize("name", PATTERNS)
def test_every_pattern_takes_time_with_the_length_not_with_its_square(name: str) -> None:
    def search(text: str) -> None:
        PATTERNS[name].search(text)
        PATTERNS[name].search(text + "\n")
        PATTERNS[name].match(text + "!")

    for fragment in [*FRAGMENTS, *literals(PATTERNS[name])]:
        check_linear(search, partial(repeated, fragment))


JSON: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False)
    | st.text(max_size=20),
    lambda children: (
        st.lists(children, max_size=4) | st.dictionaries(st.text(max_size=8), children, max_size=4)
    ),
    max_leaves=12,
)


def shaped(*names: str) -> st.SearchStrategy[Any]:
    """Objects with the fields that readers look at, at every level, and anything in them."""
    return st.recursive(
        JSON,
        lambda children: (
            st.lists(children, max_size=3) | st.dictionaries(st.sampled_from(names), children, max_size=6)
        ),
        max_leaves=15,
    )


ERRORS = shaped(
    "error", "message", "code", "type", "status", "param", "detail", "details", "loc", "msg", "metadata",
    "reasons", "raw", "innererror", "error_code", "retryDelay", "reason",
)  # fmt: skip
RESPONSES = shaped(
    "choices", "message", "content", "finish_reason", "refusal", "usage", "prompt_tokens",
    "completion_tokens", "prompt_tokens_details", "cached_tokens", "model", "id", "text", "type", "error",
    "code", "promptFeedback", "blockReason", "stop_reason", "input_tokens", "output_tokens",
    "cache_read_input_tokens",
)  # fmt: skip
HEADERS = st.dictionaries(
    st.sampled_from(["retry-after", "retry-after-ms", "x-should-retry", "location"]), st.text(max_size=40)
)


@given(ERRORS, st.integers(100, 599), HEADERS)
def test_any_error_body_becomes_one_of_our_errors(content: Any, status: int, headers: dict[str, str]) -> None:
    error = from_response(status, headers, orjson.dumps(content), WHERE)
    assert isinstance(error, ProviderError)
    assert len(error.message) < 3 * MESSAGE_LENGTH
    assert "\n" not in str(error)


@given(st.binary(max_size=200), st.integers(400, 599))
def test_any_bytes_become_one_of_our_errors(body: bytes, status: int) -> None:
    assert isinstance(from_response(status, {}, body, WHERE), ProviderError)


@given(RESPONSES)
def test_any_response_is_read_or_one_of_our_errors(content: Any) -> None:
    for read in (read_chat, read_message):
        try:
            response = read(read_body(orjson.dumps(content), {}, WHERE), None, WHERE)
        except ProviderError:
            continue
        assert isinstance(response.text, str)
        assert response.finish in ("stop", "length", "refusal")
        figures = (
            response.tokens.input,
            response.tokens.output,
            response.tokens.cached,
            response.tokens.cache_written,
        )
        assert all(figure is None or figure >= 0 for figure in figures)
        assert response.model is None or isinstance(response.model, str)


@pytest.mark.parametrize("depth", [100, 300, 900, 1_100, 100_000])
@pytest.mark.parametrize(
    "around", [b"%s", b'{"error": %s}', b'{"error": {"message": %s}}', b'{"detail": [%s]}']
)
def test_nesting_is_survived(depth: int, around: bytes) -> None:
    for opening, closing in ((b"[", b"]"), (b'{"a":', b"}")):
        body = around.replace(b"%s", opening * depth + b"1" + closing * depth)
        assert isinstance(from_response(500, {}, body, WHERE), TransientError)
        with pytest.raises(ProviderError):
            read_chat(read_body(body, {}, WHERE), None, WHERE)


@pytest.mark.parametrize(
    "detail",
    [
        [{"loc": None, "msg": "Input should be 'text'"}],
        [{"loc": 7, "msg": "Input should be 'text'"}],
        [None, {"msg": 3}, {"loc": [{}, None], "msg": "Input should be 'text'"}],
    ],
)
def test_a_place_that_is_none_is_left_out(detail: list[Any]) -> None:
    words = read_error_body(orjson.dumps({"detail": detail}), ())
    assert (words.message, words.parameter) == ("Input should be 'text'", None)


@pytest.mark.parametrize("reason", [["stop"], {"a": 1}, 7, True, None])
def test_a_reason_to_stop_of_the_wrong_type_is_none(reason: object) -> None:
    chat = {"choices": [{"message": {"content": "a cup"}, "finish_reason": reason}]}
    message = {"type": "message", "content": [{"type": "text", "text": "a cup"}], "stop_reason": reason}
    assert read_chat(chat, None, WHERE).finish == read_message(message, None, WHERE).finish == "stop"


@given(
    st.text(max_size=30)
    | st.from_regex(r"\w{3}, \d{1,4} \w{3} \d{1,6} \d{1,4}:\d\d:\d\d [+-]\d{2,8}", fullmatch=True)
    | st.floats().map(str)
)
def test_any_wait_is_a_number_of_seconds_above_zero_or_none(value: str) -> None:
    for name in ("retry-after", "retry-after-ms"):
        seconds = retry_after({name: value})
        assert seconds is None or 0 < seconds <= 120
