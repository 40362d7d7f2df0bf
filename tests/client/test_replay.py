"""Replayed answers: read anew, with what they cost when they were generated."""

from __future__ import annotations

from dataclasses import asdict

import orjson
import pytest

from tests.client.scripted import (
    ScriptedProvider,
    busy,
    client_of,
    generate,
    guarded,
    in_turn,
    make_request,
    number,
    picture,
    text_response,
)
from uncanny.client.calls import CallScope, cache_key, dump_calls, load_answer, usage
from uncanny.errors import AnswerError
from uncanny.models.base import ModelRequest, Tokens
from uncanny.records.answer_cache import AnswerCache


def silent() -> ScriptedProvider:
    """A model that must not be called."""
    return ScriptedProvider(in_turn())


async def test_a_replay_has_the_calls_and_usage_of_the_generation(cache: AnswerCache) -> None:
    model = ScriptedProvider(in_turn(busy(), "many", text_response("3", tokens=Tokens(900, 7, 768, 0))))
    first, second = CallScope("a.png"), CallScope("copy/b.png")
    await generate(client_of(guarded(model, price=0.001), cache=cache), scope=first, prompt="count@old")
    model_client = client_of(guarded(silent(), price=5.0), cache=cache)
    assert await generate(model_client, scope=second, prompt="count@new") == 3
    assert usage(second.calls) == usage(first.calls)
    for before, again in zip(first.calls, second.calls, strict=True):
        assert again.replayed
        assert asdict(again) == asdict(before) | {
            "image": "copy/b.png",
            "prompt": "count@new",
            "replayed": True,
            "asked": "What is it?",
        }


async def test_a_repaired_or_lengthened_answer_is_kept_under_the_first_request(
    cache: AnswerCache,
) -> None:
    lines = in_turn("many", text_response("1", "length"), "3")
    await generate(client_of(ScriptedProvider(lines), cache=cache))
    assert len(cache) == 1
    own = guarded(silent())
    assert cache.get(cache_key(own, make_request())) is not None
    scope = CallScope("a.png")
    assert await generate(client_of(own, cache=cache), scope=scope) == 3
    assert [call.outcome for call in scope.calls] == ["unparseable", "unparseable", "answered"]


async def test_replayed_calls_are_written_like_any_other(cache: AnswerCache) -> None:
    await generate(client_of(ScriptedProvider(in_turn("1")), cache=cache))
    scope = CallScope("a.png")
    await generate(client_of(silent(), cache=cache), make_request(agent="Counter"), scope)
    (line,) = dump_calls(scope.calls).splitlines()
    written = orjson.loads(line)
    assert written["replayed"] is True
    assert written["agent"] == "Counter"
    assert written["cost_usd"] is None


async def test_an_answer_that_no_longer_reads_is_generated_anew_and_replaced(cache: AnswerCache) -> None:
    own = guarded(ScriptedProvider(in_turn("7", "8")))
    model_client = client_of(own, cache=cache)

    def strict(text: str) -> int:
        if text == "7":
            raise AnswerError("7 is out of fashion")
        return number(text)

    scope = CallScope("a.png")
    assert await generate(model_client) == 7
    got = await model_client.generate(make_request(), strict, prompt="p", repair=str, scope=scope)
    assert got == 8
    assert [call.replayed for call in scope.calls] == [False]
    assert await generate(client_of(silent(), cache=cache)) == 8


GOOD = {
    "model": "script/one",
    "prompt": "count@1",
    "attempt": 1,
    "repair": 0,
    "outcome": "answered",
    "answer": "1",
    "detail": None,
    "latency_s": 0.1,
    "started": "2026-01-02T03:04:05+00:00",
    "input_tokens": 1,
    "cached_tokens": None,
    "output_tokens": 1,
    "cost_usd": None,
}


def kept(cache: AnswerCache, scope: CallScope) -> int | None:
    replayed = load_answer(cache, "key", make_request(), scope, number, "count@1")
    return None if replayed is None else replayed.value


async def test_a_good_entry_reads(cache: AnswerCache) -> None:
    scope = CallScope("a.png")
    await cache.put("key", orjson.dumps([GOOD]))
    assert kept(cache, scope) == 1
    # Not every server names the model that answered.
    assert [(call.served_model, call.request_id) for call in scope.calls] == [(None, None)]
    identity = {"served_model": "one-2026-01-01", "request_id": "req-7"}
    await cache.put("key", orjson.dumps([GOOD | identity]))
    assert kept(cache, scope) == 1
    assert (scope.calls[1].served_model, scope.calls[1].request_id) == ("one-2026-01-01", "req-7")


@pytest.mark.parametrize(
    "entry",
    [
        b"",
        b"\x80\x04.",
        b"null",
        b"[]",
        b"{}",
        b"7",
        b'["1"]',
        b"[{}]",
        orjson.dumps([{"answer": "1"}]),
        orjson.dumps([GOOD | {"answer": None}]),
        orjson.dumps([GOOD | {"answer": "many"}]),
        orjson.dumps([GOOD | {"started": "yesterday"}]),
        orjson.dumps([GOOD | {"started": 5}]),
        orjson.dumps([GOOD, GOOD | {"of a later version": 1}]),
        orjson.dumps([7, GOOD]),
    ],
    ids=lambda entry: entry[:24].decode(errors="replace"),
)
async def test_an_entry_that_is_damaged_or_of_another_version_counts_as_none(
    cache: AnswerCache, entry: bytes
) -> None:
    await cache.put("key", entry)
    scope = CallScope("a.png")
    assert kept(cache, scope) is None
    assert scope.calls == []


async def test_a_replay_sees_the_image_as_its_call_did(cache: AnswerCache) -> None:
    seeing: ModelRequest = make_request("?", picture())
    await generate(client_of(ScriptedProvider(in_turn("1")), cache=cache), seeing)
    scope = CallScope("a.png")
    await generate(client_of(silent(), cache=cache), seeing, scope)
    assert [call.sees_image for call in scope.calls] == [True]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("outcome", ["answered"]),
        ("outcome", "splendid"),
        ("model", 5),
        ("answer", None),
        ("latency_s", "long"),
        ("attempt", {}),
        ("started", "yesterday"),
        ("detail", []),
    ],
)
async def test_kept_calls_that_are_damaged_are_generated_anew(
    cache: AnswerCache, key: str, value: object
) -> None:
    own = guarded(ScriptedProvider(in_turn("1", "2")))
    await generate(client_of(own, cache=cache))
    kept = cache.get(cache_key(own, make_request()))
    assert kept is not None
    await cache.put(cache_key(own, make_request()), orjson.dumps([orjson.loads(kept)[0] | {key: value}]))
    scope = CallScope("a.png")
    assert await generate(client_of(own, cache=cache), scope=scope) == 2
    assert [call.replayed for call in scope.calls] == [False]
