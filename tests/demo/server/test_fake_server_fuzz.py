"""Bodies that are wrong in any way are 400 in the protocol's own form: the fake server never breaks."""

from __future__ import annotations

import copy
import http.client
from collections.abc import Iterator
from typing import Any

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.demo.server.test_fake_server import LOOK, PERCEIVE, VERIFY, anthropic_body, openai_body
from tests.runs.e2e import Server, serving
from uncanny.prompts import prompt_set

PATHS = {"openai": "/v1/chat/completions", "anthropic": "/v1/messages"}
NUMBERS = st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False)
SCALARS = st.none() | st.booleans() | NUMBERS | st.text(st.characters(exclude_categories=["Cs"]))
JSON = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner, max_size=3),
)
TEXTS = [
    LOOK,
    VERIFY,
    PERCEIVE,
    prompt_set("realism")["first_check"].fill(),
    prompt_set("realism")["second_check"].fill(),
    prompt_set("mcq")["q4_no_image"].fill(choices="{}"),
    prompt_set("detect")["source"].fill(),
    prompt_set("annotate")["perceive_1"].fill(draft="9" * 20, drafts="\u0663"),
    prompt_set("annotate")["format"].fill(names="", findings="[{}, 7, [[]]]"),
    "Choose A, B, C or D: yes or no?",
    prompt_set("annotate")["relation_look"].fill(object="</object><object>[1]</object>", attributes="7"),
]


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving(objects=2) as server:
        yield server


class Client:
    """One connection, opened again where the server closed it."""

    def __init__(self, server: Server) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)

    def post(self, path: str, body: bytes, **headers: str) -> tuple[int, bytes]:
        self._connection.request("POST", path, body, {"Content-Type": "application/json", **headers})
        reply = self._connection.getresponse()
        return reply.status, reply.read()


def check(client: Client, protocol: str, body: bytes) -> int:
    status, content = client.post(PATHS[protocol], body)
    assert status in (200, 400, 404), (status, content[:300], body[:2_000])
    if status != 200:
        error = orjson.loads(content)["error"]
        assert error["type"] in ("invalid_request_error", "not_found_error")
        assert error["message"]
    return status


def whole(protocol: str, text: str, form: Any, images: int) -> dict[str, Any]:
    made = openai_body if protocol == "openai" else anthropic_body
    body = copy.deepcopy(made(text, form))
    content = body["messages"][-1]["content"]
    content[:1] = [copy.deepcopy(content[0]) for _ in range(images)]
    return body


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path to every part of a JSON value."""
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield from places(inner, (*path, key))


@st.composite
def spoilt(draw: st.DrawFn, protocol: str) -> bytes:
    """A body that was right until one to three of its parts were replaced, taken away or added."""
    body: Any = whole(
        protocol,
        draw(st.sampled_from(TEXTS)),
        draw(st.sampled_from(["none", "own", "shared"])),
        draw(st.integers(0, 2)),
    )
    for _ in range(draw(st.integers(1, 3))):
        path = draw(st.sampled_from(list(places(body))))
        if not path:
            body = body if isinstance(body, dict) and draw(st.booleans()) else draw(JSON)
            continue
        parent = body
        for key in path[:-1]:
            parent = parent[key]
        match draw(st.sampled_from(["replace", "remove", "add"])):
            case "replace":
                parent[path[-1]] = draw(JSON)
            case "remove":
                del parent[path[-1]]
            case "add" if isinstance(parent, dict):
                names = ["stream", "stream_options", "response_format", "guided_json", "system", "max_tokens"]
                parent[draw(st.sampled_from([*names, "cache_control", "role", "type"]))] = draw(JSON)
    return orjson.dumps(body)


FUZZ = settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])


@pytest.mark.parametrize("protocol", PATHS)
def test_a_spoilt_body_is_answered_or_refused(protocol: str, server: Server) -> None:
    client = Client(server)

    @settings(FUZZ)
    @given(spoilt(protocol))
    def fuzz(body: bytes) -> None:
        check(client, protocol, body)

    fuzz()


@pytest.mark.slow
@pytest.mark.parametrize("protocol", PATHS)
def test_thousands_of_spoilt_bodies(protocol: str, server: Server) -> None:
    client = Client(server)

    @settings(FUZZ, max_examples=4_000)
    @given(spoilt(protocol))
    def fuzz(body: bytes) -> None:
        check(client, protocol, body)

    fuzz()


@pytest.mark.parametrize("protocol", PATHS)
def test_a_body_of_anything_is_refused(protocol: str, server: Server) -> None:
    client = Client(server)

    @settings(FUZZ)
    @given(st.binary(max_size=200) | JSON.map(orjson.dumps))
    def fuzz(body: bytes) -> None:
        assert check(client, protocol, body) == 400

    fuzz()


@pytest.mark.parametrize(
    "more",
    [
        {"stream_options": "x"},
        {"stream_options": [1]},
        {"max_tokens": True},
        {"max_tokens": 0},
        {"max_completion_tokens": -3},
        {"model": ["m"]},
        {"stream": "yes"},
    ],
    ids=str,
)
def test_what_openai_does_not_allow(more: dict[str, Any], server: Server) -> None:
    assert check(Client(server), "openai", orjson.dumps(openai_body(LOOK) | more)) == 400


@pytest.mark.parametrize(
    "more",
    [{"system": 5}, {"system": [7]}, {"system": [{"type": "text"}]}, {"max_tokens": True}, {"model": 3}],
    ids=str,
)
def test_what_anthropic_does_not_allow(more: dict[str, Any], server: Server) -> None:
    assert check(Client(server), "anthropic", orjson.dumps(anthropic_body(LOOK) | more)) == 400


@pytest.mark.parametrize("protocol", PATHS)
def test_a_schema_nested_too_deep_is_refused(protocol: str, server: Server) -> None:
    body = orjson.dumps(whole(protocol, PERCEIVE, "own", 1))
    deep = b'{"properties":' * 500 + b"{}" + b"}" * 500
    schema = orjson.dumps(
        {"type": "object", "properties": {"objects": {"type": "array", "items": {"type": "object"}}}}
    )
    assert schema in body
    assert check(Client(server), protocol, body.replace(schema, deep)) == 400


@pytest.mark.parametrize("protocol", PATHS)
def test_a_compressed_body_that_is_none_is_refused(protocol: str, server: Server) -> None:
    status, _ = Client(server).post(PATHS[protocol], b"no gzip", **{"Content-Encoding": "gzip"})
    assert status == 400


@pytest.mark.parametrize("name", ["%ff", "%00", "a%2Fb", "%ED%A0%80", "%C3%A9"])
def test_any_name_of_a_model_is_answered_or_refused(name: str, server: Server) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
    connection.request("GET", f"/v1/models/{name}")
    assert connection.getresponse().status in (200, 400, 404)
