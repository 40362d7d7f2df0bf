"""Servers that hang, hang up, stop in the middle or are not there."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from uncanny.errors import ProviderError, TransientError
from uncanny.models.base import Message, ModelRequest, Sampling
from uncanny.models.openai import OpenAIProvider

KEY = "sk-proj-0123456789abcdefSECRET"
REQUEST = ModelRequest((Message("user", ("?",)),), Sampling())


async def failure(base_url: str, timeout_s: float = 5) -> ProviderError:
    provider = OpenAIProvider("gpt-4o", base_url=base_url, api_key=KEY, timeout_s=timeout_s)
    try:
        await provider.generate(REQUEST)
    except ProviderError as error:
        return error
    finally:
        await provider.close()
    raise AssertionError("the call did not fail")


def transient(error: ProviderError) -> TransientError:
    assert isinstance(error, TransientError), error
    return error


Behaviour = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n"


async def hang(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
    await reader.read()


async def trickle(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(HEAD + b"transfer-encoding: chunked\r\n\r\n")
    for _turn in range(60):
        writer.write(b"1\r\n \r\n")
        await writer.drain()
        await asyncio.sleep(0.05)


async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.readuntil(b"\r\n\r\n")
    writer.close()


async def cut(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.readuntil(b"\r\n\r\n")
    writer.write(HEAD + b'content-length: 500\r\n\r\n{"choices": [')
    await writer.drain()
    writer.close()


async def babble(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.readuntil(b"\r\n\r\n")
    writer.write(b"this is not HTTP\r\n\r\n")
    await writer.drain()
    writer.close()


@pytest.fixture
async def raw_server(request: pytest.FixtureRequest) -> AsyncIterator[str]:
    behaviour: Behaviour = request.param

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await behaviour(reader, writer)
        except (ConnectionError, asyncio.CancelledError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    yield f"http://127.0.0.1:{port}/v1"
    server.close()


@pytest.mark.parametrize(
    ("raw_server", "kind", "overloaded"),
    [
        (hang, "timeout", True),
        (trickle, "timeout", True),
        (hang_up, "connection", False),
        (cut, "bad_body", False),
        (babble, "connection", False),
    ],
    indirect=["raw_server"],
)
async def test_a_server_that_does_not_behave(raw_server: str, kind: str, overloaded: bool) -> None:
    error = transient(await failure(raw_server, timeout_s=0.4))
    assert (error.kind, error.overloaded) == (kind, overloaded)
    assert "127.0.0.1" in error.message or kind == "bad_body"


async def test_nobody_listens() -> None:
    server = await asyncio.start_server(hang, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    server.close()
    await server.wait_closed()
    error = transient(await failure(f"http://127.0.0.1:{port}/v1"))
    assert (error.kind, error.overloaded) == ("connection", False)
    assert f"127.0.0.1:{port}" in str(error)


async def test_cancelling_a_call_cancels_it() -> None:
    server = await asyncio.start_server(hang, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
    call = asyncio.create_task(failure(url))
    await asyncio.sleep(0.1)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    server.close()
