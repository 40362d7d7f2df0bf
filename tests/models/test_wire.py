"""Where calls go, through what, and how much is read of what comes back: over real sockets."""

from __future__ import annotations

import asyncio
import base64
import gzip
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import orjson
import pytest
from pytest_httpserver import HTTPServer
from werkzeug import Response

from tests.secure_server import secure_server
from uncanny.errors import ModelUnusableError, ProviderError, RequestRejectedError, TransientError, UsageError
from uncanny.models.addresses import warned_of
from uncanny.models.anthropic import AnthropicProvider
from uncanny.models.base import Message, ModelProvider, ModelRequest, ModelResponse, Sampling
from uncanny.models.http import LARGEST_RESPONSE
from uncanny.models.openai import CompatibleProvider, OpenAIProvider, VLLMProvider
from uncanny.models.registry import Access, open_model, parse_model
from uncanny.models.vllm.server import served_models

KEY = "sk-0123456789abcdefSECRET"
PASSWORD = "Hunter2Secret"
REQUEST = ModelRequest((Message("user", ("?",)),), Sampling())
CHAT = orjson.dumps({"choices": [{"message": {"content": "a cup"}, "finish_reason": "stop"}]})
MESSAGE = orjson.dumps({"type": "message", "content": [{"type": "text", "text": "a cup"}]})


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    monkeypatch.delenv("OPENAI_COMPATIBLE_API_KEY", raising=False)


async def answer(provider: ModelProvider) -> ModelResponse:
    try:
        return await provider.generate(REQUEST)
    finally:
        await provider.close()


async def failure(provider: ModelProvider) -> ProviderError:
    with pytest.raises(ProviderError) as caught:
        await answer(provider)
    assert PASSWORD not in f"{caught.value} {caught.value!r} {vars(caught.value)}"
    return caught.value


def transient(error: ProviderError) -> TransientError:
    assert isinstance(error, TransientError), error
    return error


MAKERS: dict[str, Callable[[str], ModelProvider]] = {
    "openai": lambda url: OpenAIProvider("m", base_url=url, api_key=KEY, timeout_s=20),
    "anthropic": lambda url: AnthropicProvider("m", base_url=url, api_key=KEY, timeout_s=20),
    "vllm": lambda url: VLLMProvider("m", base_url=url, api_key=KEY, timeout_s=20),
    "openai-compatible": lambda url: CompatibleProvider("m", base_url=url, api_key=KEY, timeout_s=20),
}
every_provider = pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)


def path(make: Callable[[str], ModelProvider]) -> str:
    return "/v1/messages" if make is MAKERS["anthropic"] else "/v1/chat/completions"


# Redirects


@every_provider
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_nothing_is_sent_where_a_server_redirects_to(
    httpserver: HTTPServer, make: Callable[[str], ModelProvider], status: int
) -> None:
    async with Sink() as other:
        target = f"{other.url}/v1/elsewhere?token={PASSWORD}"
        httpserver.expect_request(path(make)).respond_with_response(
            Response("", status, headers={"Location": target})
        )
        error = await failure(make(httpserver.url_for("/v1")))
        assert other.received == []
    assert isinstance(error, ModelUnusableError)
    assert f"redirects to {other.url}/v1/elsewhere (HTTP {status})" in str(error)
    assert "`base_url`" in str(error)
    assert len(httpserver.log) == 1


async def test_not_even_on_the_same_host(httpserver: HTTPServer) -> None:
    target = httpserver.url_for("/v1/chat/completions").replace("http:", "https:")
    httpserver.expect_request("/v1/chat/completions").respond_with_response(
        Response("", 308, headers={"Location": target})
    )
    error = await failure(MAKERS["openai"](httpserver.url_for("/v1")))
    assert f"redirects to {target}" in str(error)


# Credentials in the address


def test_user_and_password_take_the_header_a_key_needs() -> None:
    url = f"http://me:{PASSWORD}@127.0.0.1:9/v1"
    for make in (MAKERS["openai"], MAKERS["vllm"], MAKERS["openai-compatible"]):
        with pytest.raises(UsageError, match="header") as caught:
            make(url)
        assert PASSWORD not in str(caught.value)


@pytest.mark.parametrize("kind", [VLLMProvider, CompatibleProvider])
async def test_credentials_in_the_address_reach_the_server_and_no_error(
    httpserver: HTTPServer, kind: type[VLLMProvider | CompatibleProvider], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("VLLM_API_KEY", raising=False)
    token = base64.b64encode(f"me:{PASSWORD}".encode()).decode()
    body = f"no such page: http://me:{PASSWORD}@h/v1?api_key={PASSWORD}x {token}"
    httpserver.expect_request("/v1/chat/completions").respond_with_data(body, status=400)
    url = (
        httpserver.url_for("/v1").replace("://", f"://me:{PASSWORD}@") + f"?api_key={PASSWORD}&api-version=7"
    )
    provider = kind("m", base_url=url)
    assert PASSWORD not in f"{provider!r} {provider.endpoint}"
    error = await failure(provider)
    assert isinstance(error, RequestRejectedError)
    assert token not in str(error)
    sent = httpserver.log[0][0]
    assert sent.headers["authorization"] == f"Basic {token}"
    assert dict(sent.args) == {"api_key": PASSWORD, "api-version": "7"}


async def test_anthropic_has_a_header_of_its_own_for_the_key(httpserver: HTTPServer) -> None:
    httpserver.expect_request("/v1/messages").respond_with_data(MESSAGE)
    url = httpserver.url_for("/").replace("://", f"://me:{PASSWORD}@") + f"?api_key={PASSWORD}"
    provider = AnthropicProvider("m", base_url=url, api_key=KEY)
    assert PASSWORD not in f"{provider!r} {provider.endpoint}"
    assert (await answer(provider)).text == "a cup"
    sent = httpserver.log[0][0]
    assert sent.headers["authorization"].startswith("Basic ")
    assert sent.headers["x-api-key"] == KEY
    assert sent.args["api_key"] == PASSWORD


@pytest.mark.parametrize("variable", ["OPENAI_BASE_URL", "ANTHROPIC_BASE_URL", "VLLM_BASE_URL"])
def test_addresses_in_the_environment_are_checked_too(variable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    kinds = {"OPENAI": OpenAIProvider, "ANTHROPIC": AnthropicProvider, "VLLM": VLLMProvider}
    monkeypatch.setenv(variable, f"http://me:{PASSWORD}@host:99999/v1")
    with pytest.raises(UsageError, match="is not a base URL") as caught:
        kinds[variable.partition("_")[0]]("m", api_key=KEY)
    assert PASSWORD not in str(caught.value)


# Proxies


@dataclass
class Sink:
    """A server that keeps the head of every request and answers all with `response`."""

    response: bytes = b""
    received: list[bytes] = field(default_factory=list)
    url: str = ""

    async def __aenter__(self) -> Sink:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.received.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(self.response)
        await writer.drain()
        writer.close()


def http(status: str, body: bytes, *headers: str) -> bytes:
    head = "\r\n".join([f"HTTP/1.1 {status}", f"content-length: {len(body)}", "connection: close", *headers])
    return head.encode() + b"\r\n\r\n" + body


@every_provider
async def test_a_proxy_of_the_environment_is_between_elsewhere_but_not_here(
    httpserver: HTTPServer, make: Callable[[str], ModelProvider], monkeypatch: pytest.MonkeyPatch
) -> None:
    body = MESSAGE if make is MAKERS["anthropic"] else CHAT
    httpserver.expect_request(path(make)).respond_with_data(body)
    async with Sink(http("200 OK", body)) as proxy:
        monkeypatch.setenv("http_proxy", proxy.url.replace("://", f"://me:{PASSWORD}@"))
        assert (await answer(make(httpserver.url_for("/v1")))).text == "a cup"
        assert proxy.received == []
        assert (await answer(make("http://nowhere.invalid:8000/v1"))).text == "a cup"
        assert proxy.received[0].startswith(f"POST http://nowhere.invalid:8000{path(make)} ".encode())
        assert b"proxy-authorization: basic" in proxy.received[0].lower()


@pytest.mark.parametrize("host", ["127.1", "2130706433", "0x7f.1", "localhost.", "0"])
async def test_no_key_goes_to_a_proxy_for_this_machine_however_it_is_written(
    host: str, httpserver: HTTPServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    httpserver.expect_request("/v1/chat/completions").respond_with_data(CHAT)
    async with Sink(http("200 OK", CHAT)) as proxy:
        monkeypatch.setenv("http_proxy", proxy.url)
        monkeypatch.setenv("all_proxy", proxy.url)
        model = MAKERS["openai"](f"http://{host}:{httpserver.port}/v1")
        assert (await answer(model)).text == "a cup"
        assert proxy.received == []
    assert len(httpserver.log) == 1


@every_provider
async def test_a_key_over_plain_http_is_warned_of_once_unless_it_stays_here(
    make: Callable[[str], ModelProvider], caplog: pytest.LogCaptureFixture
) -> None:
    warned_of.cache_clear()
    for url in (
        "https://api.example/v1",
        "http://127.1:8000/v1",
        "http://[::1]:8000/v1",
        "http://localhost./v1",
    ):
        await make(url).close()
    assert caplog.messages == []
    for _ in range(2):
        await make("http://lab.example:8000/v1").close()
    (message,) = caplog.messages
    assert "over plain http" in message
    assert "http://lab.example:8000/" in message
    assert KEY not in message


async def test_a_local_server_without_a_key_is_asked_without_a_warning(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    warned_of.cache_clear()
    for key in (None, "EMPTY"):
        if key is not None:
            monkeypatch.setenv("VLLM_API_KEY", key)
        await open_model(parse_model("vllm/any"), Access("http://gpu.example:8000/v1", 5.0)).close()
    assert caplog.messages == []
    monkeypatch.delenv("VLLM_API_KEY")
    await open_model(parse_model("vllm/any"), Access(f"http://me:{PASSWORD}@gpu.example/v1", 5.0)).close()
    (message,) = caplog.messages
    assert "over plain http" in message
    assert PASSWORD not in message


async def test_requests_for_the_models_of_a_server_take_the_same_way(
    httpserver: HTTPServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed = orjson.dumps({"data": [{"id": "far"}]})
    httpserver.expect_request("/v1/models").respond_with_json({"data": [{"id": "near"}]})
    async with Sink(http("200 OK", listed)) as proxy:
        monkeypatch.setenv("http_proxy", proxy.url)
        assert await served_models(httpserver.url_for("/v1")) == ("near",)
        assert await served_models("http://nowhere.invalid/v1") == ("far",)


@every_provider
async def test_a_proxy_that_is_not_there_is_named(
    make: Callable[[str], ModelProvider], monkeypatch: pytest.MonkeyPatch
) -> None:
    async with Sink() as proxy:
        port = proxy.url.rpartition(":")[2]
    for name in ("http_proxy", "https_proxy"):
        monkeypatch.setenv(name, f"http://me:{PASSWORD}@127.0.0.1:{port}")
    for scheme in ("http", "https"):
        error = transient(await failure(make(f"{scheme}://nowhere.invalid/v1")))
        assert error.kind == "connection"
        assert f"through the proxy http://[key]@127.0.0.1:{port}" in error.message
        assert "NO_PROXY" in str(error)


@pytest.mark.parametrize("scheme", ["http", "https"])
async def test_a_proxy_that_wants_a_password(scheme: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async with Sink(http("407 Proxy Authentication Required", b"", "proxy-authenticate: Basic")) as proxy:
        monkeypatch.setenv(f"{scheme}_proxy", proxy.url)
        error = await failure(MAKERS["openai"](f"{scheme}://nowhere.invalid/v1"))
    assert isinstance(error, ModelUnusableError)
    assert f"the proxy {proxy.url} wants" in str(error)


@pytest.mark.parametrize("status", ["403 Forbidden", "502 Bad Gateway", "503 Service Unavailable"])
async def test_an_error_that_may_be_the_proxys_own_names_it(
    status: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with Sink(http(status, b"<html><title>Access denied</title></html>")) as proxy:
        monkeypatch.setenv("http_proxy", proxy.url)
        error = await failure(MAKERS["openai"]("http://nowhere.invalid/v1"))
    assert f"Access denied (through the proxy {proxy.url})" in str(error)


# Size


@asynccontextmanager
async def raw(behaviour: Callable[[asyncio.StreamWriter], Awaitable[None]]) -> AsyncIterator[str]:
    """A server that answers every request by `behaviour`; yields its base URL."""
    ended = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await reader.readuntil(b"\r\n\r\n")
            await behaviour(writer)
        except ConnectionError:
            pass
        finally:
            ended.set()
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
    await asyncio.wait_for(ended.wait(), 30)  # whoever would be read for ever notices that nobody reads
    server.close()


@every_provider
@pytest.mark.parametrize("head", [b"transfer-encoding: chunked", b"connection: close"])
async def test_a_body_without_an_end_is_not_read_to_it(
    head: bytes, make: Callable[[str], ModelProvider]
) -> None:
    sent = 0

    async def without_end(writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        writer.write(b"HTTP/1.1 200 OK\r\n" + head + b"\r\n\r\n")
        chunk = b"10000\r\n" + b" " * 0x10000 + b"\r\n" if b"chunked" in head else b" " * 0x10000
        while True:
            writer.write(chunk)
            await writer.drain()
            sent += 0x10000

    async with raw(without_end) as url:
        error = transient(await failure(make(url)))
    assert error.kind == "bad_body"
    assert f"more than {LARGEST_RESPONSE:,} bytes" in error.message
    assert sent < 10 * LARGEST_RESPONSE


def packed(body: bytes) -> bytes:
    return gzip.compress(body, mtime=0)


@cache
def bomb(wbits: int) -> bytes:
    """Ten times the longest response that is read, in a few kilobytes."""
    packer = zlib.compressobj(9, zlib.DEFLATED, wbits)
    zeros = bytes(1 << 20)
    return b"".join([*(packer.compress(zeros) for _ in range(10 * LARGEST_RESPONSE >> 20)), packer.flush()])


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "GZIP "])
async def test_a_bomb_is_defused(httpserver: HTTPServer, encoding: str) -> None:
    body = bomb(zlib.MAX_WBITS | (0 if encoding == "deflate" else 16))
    assert len(body) < 1 << 20
    response = Response(body, headers={"content-encoding": encoding})
    httpserver.expect_request("/v1/chat/completions").respond_with_response(response)
    error = transient(await failure(MAKERS["openai"](httpserver.url_for("/v1"))))
    assert error.kind == "bad_body"
    assert f"more than {LARGEST_RESPONSE:,} bytes" in error.message


@pytest.mark.parametrize(
    ("body", "encoding"),
    [
        (packed(CHAT), "gzip"),
        (packed(CHAT[:20]) + packed(CHAT[20:]), "gzip"),
        (packed(CHAT) + b"\0" * 100, "x-gzip"),
        (zlib.compress(CHAT), "deflate"),
        (CHAT, "identity"),
        (CHAT + b" " * (LARGEST_RESPONSE - len(CHAT)), ""),
    ],
)
async def test_what_is_compressed_unasked_is_read_all_the_same(
    httpserver: HTTPServer, body: bytes, encoding: str
) -> None:
    response = Response(body, headers={"content-encoding": encoding})
    httpserver.expect_request("/v1/chat/completions").respond_with_response(response)
    assert (await answer(MAKERS["openai"](httpserver.url_for("/v1")))).text == "a cup"
    assert httpserver.log[0][0].headers["accept-encoding"] == "identity"


@pytest.mark.parametrize(
    ("body", "encoding", "reason"),
    [
        (packed(CHAT)[:-12], "gzip", "cut off"),
        (b"", "gzip", "cut off"),
        (b"no gzip", "gzip", "broken"),
        (CHAT, "br", "'br'"),
        (CHAT, "zstd, gzip", "'zstd, gzip'"),
        (CHAT + b" " * LARGEST_RESPONSE, "", "more than"),
    ],
)
async def test_a_body_that_cannot_be_read_is_an_error_with_the_reason(
    httpserver: HTTPServer, body: bytes, encoding: str, reason: str
) -> None:
    response = Response(body, headers={"content-encoding": encoding})
    httpserver.expect_request("/v1/chat/completions").respond_with_response(response)
    error = transient(await failure(MAKERS["openai"](httpserver.url_for("/v1"))))
    assert error.kind == "bad_body"
    assert reason in error.message


@pytest.mark.slow
@pytest.mark.parametrize("make", ["openai", "anthropic"])
async def test_https_where_http_is_spoken_and_a_certificate_that_does_not_hold(
    httpserver: HTTPServer, make: str, tmp_path: Path
) -> None:
    """Neither is asked again: no later try mends it."""
    plain = httpserver.url_for("/v1").replace("http://", "https://")
    error = await failure(MAKERS[make](plain))
    assert isinstance(error, ModelUnusableError)
    assert "does not speak https" in error.message
    assert error.remedy == "Is it an http:// address?"
    with secure_server(tmp_path) as secure:
        error = await failure(MAKERS[make](secure.url_for("/v1")))
        assert isinstance(error, ModelUnusableError)
        assert "does not hold (self-signed certificate)" in error.message
        assert "SSL_CERT_FILE" in (error.remedy or "")
        with_http = await failure(MAKERS[make](secure.url_for("/v1").replace("https://", "http://")))
        assert transient(with_http).kind == "connection"


@pytest.mark.parametrize("encoding", ["", "gzip", "br"])
async def test_an_error_with_a_body_of_any_size_is_still_that_error(
    httpserver: HTTPServer, encoding: str
) -> None:
    body = b"x" * (2 * LARGEST_RESPONSE)
    response = Response(
        bomb(zlib.MAX_WBITS | 16) if encoding else body,
        429,
        headers={"content-encoding": encoding},
    )
    httpserver.expect_request("/v1/chat/completions").respond_with_response(response)
    error = transient(await failure(MAKERS["openai"](httpserver.url_for("/v1"))))
    assert (error.kind, error.overloaded) == ("http_429", True)


# Answers that are no HTTP


@pytest.mark.parametrize(
    "response",
    [
        b"",
        b"\0" * 100,
        b"HTTP/1.1 abc OK\r\n\r\n",
        b"HTTP/1.1 99999 OK\r\n\r\n",
        b"HTTP/1.1 99 Low\r\ncontent-length: 0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: -5\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: 99999999999999999999\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nZZ\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-type: \xff\xfe; charset=nonsense\r\ncontent-length: 2\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\ncontent-type: application/json; charset=\xc3\r\ncontent-length: 3\r\n\r\n\xff{}",
        b"HTTP/1.1 200 " + b"x" * 100_000 + b"\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nx: " + b"x" * 100_000 + b"\r\n\r\n",
        b"HTTP/1.1 204 No Content\r\n\r\n",
        b"HTTP/1.1 302 Found\r\nlocation: http://[::1\r\ncontent-length: 0\r\n\r\n",
        b"HTTP/1.1 304 Not Modified\r\n\r\n",
        b"HTTP/1.1 429 Slow\r\nretry-after: \xff\r\ncontent-length: 0\r\n\r\n",
        b"HTTP/1.1 500 \xff\xfe\r\ncontent-length: 1\r\n\r\n\xff",
        b"HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\n\r\n",
        b"HTTP/2.0 200 OK\r\ncontent-length: 2\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\nset-cookie: \x00=\x01; expires=never\r\ncontent-length: 2\r\n\r\n{}",
    ],
    ids=lambda response: repr(response)[:40],
)
@pytest.mark.parametrize("make", [MAKERS["openai"], MAKERS["anthropic"]], ids=["openai", "anthropic"])
async def test_any_bytes_are_one_of_our_errors(response: bytes, make: Callable[[str], ModelProvider]) -> None:
    async with Sink(response) as server:
        error = await failure(make(f"{server.url}/v1"))
    assert "\n" not in str(error)
    assert len(str(error)) < 1_000
