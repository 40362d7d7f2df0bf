"""The server under the application: slow heads and bodies, streams that would never end, where it listens."""

from __future__ import annotations

import select
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import httpx2
import pytest

from uncanny.service.listen import is_loopback

pytestmark = pytest.mark.slow

# Serves what the tests ask of it, with short times, as a process: the server owns its signals.
PROGRAM = """
import asyncio, sys, threading
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, StreamingResponse
from starlette.routing import Route
from uncanny.service.listen import serve
from uncanny.service.safety import Guard

ending = threading.Event()

async def read(request: Request):
    return PlainTextResponse(str(len(await request.body())))

async def stream(request: Request):
    async def events():
        yield "first"
        while not ending.is_set():
            await asyncio.sleep(0.02)
        yield "last"
    return StreamingResponse(events())

async def where(request: Request):
    return PlainTextResponse(f"{request.client.host} {request.url.scheme}")

async def much(request: Request):
    async def pieces():
        for _ in range(256):
            yield bytes(2**20)
    return StreamingResponse(pieces())

routes = [Route("/", read, methods=["GET", "POST"]), Route("/stream", stream), Route("/where", where)]
app = Starlette(routes=[*routes, Route("/much", much)])
guard = Guard(app, ambient=lambda _: False, body_seconds=0.4)
serve(guard, 0, ending=ending.set, head_seconds=0.4, stall_seconds=0.8, proxies=sys.argv[1:])
"""


@contextmanager
def serving(*arguments: str, stderr: int | None = None) -> Iterator[tuple[subprocess.Popen[str], int]]:
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, *arguments], stdout=subprocess.PIPE, stderr=stderr, text=True
    ) as process:
        try:
            assert process.stdout is not None
            yield process, int(process.stdout.readline().rsplit(":", 1)[1])
        finally:
            process.terminate()
            assert process.wait(30) == 0


def answer_of(connection: socket.socket) -> bytes:
    connection.settimeout(20)
    received = b""
    while piece := connection.recv(65_536):
        received += piece
    return received


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    with serving() as (_, number):
        yield number


@pytest.mark.parametrize(
    "head",
    [
        b"",
        b"GET / HT",
        b"GET / HTTP/1.1\r\nHost: localhost\r\nX-",
        b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\nGET / ",
    ],
)
def test_a_head_that_does_not_come_is_given_up(port: int, head: bytes) -> None:
    """Also the second one of a connection, whose begin came with the first."""
    with socket.create_connection(("127.0.0.1", port)) as slow:
        slow.sendall(head)
        answer = answer_of(slow)
    assert b"HTTP/1.1 408" in answer
    assert answer.startswith(b"HTTP/1.1 200" if b"\r\n\r\n" in head else b"HTTP/1.1 408")


def test_a_head_that_trickles_is_given_up(port: int) -> None:
    with socket.create_connection(("127.0.0.1", port)) as slow:
        slow.sendall(b"GET / HTTP/1.1\r\n")
        try:
            for number in range(200):
                slow.sendall(b"X-%d: y\r\n" % number)
                time.sleep(0.05)
        except OSError:
            pass
        else:
            pytest.fail("it is still being read")


def test_a_connection_that_waits_between_requests_is_used_again(port: int) -> None:
    with httpx2.Client(base_url=f"http://127.0.0.1:{port}") as client:
        for pause in (0.0, 0.6, 0.6):
            time.sleep(pause)
            assert client.get("/").status_code == 200


@pytest.mark.parametrize("length", [b"Content-Length: 1000", b"Transfer-Encoding: chunked"])
def test_a_body_that_does_not_come_is_given_up(port: int, length: bytes) -> None:
    with socket.create_connection(("127.0.0.1", port)) as slow:
        slow.sendall(b"POST / HTTP/1.1\r\nHost: localhost\r\n" + length + b"\r\n\r\n1\r\n{")
        answer = answer_of(slow)
    assert answer.startswith(b"HTTP/1.1 408")
    assert b"connection: close" in answer.lower()


def test_a_body_that_keeps_coming_is_taken(port: int) -> None:
    """It takes longer than one may wait for a body, and comes faster than it has to."""
    with socket.create_connection(("127.0.0.1", port)) as steady:
        steady.sendall(
            b"POST / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: 320000\r\n\r\n"
        )
        for _ in range(10):
            steady.sendall(b"x" * 32_000)
            time.sleep(0.08)
        assert answer_of(steady).endswith(b"320000")


def test_an_answer_that_nobody_takes_is_given_up(port: int) -> None:
    with socket.create_connection(("127.0.0.1", port)) as lazy:
        lazy.sendall(b"GET /much HTTP/1.1\r\nHost: localhost\r\n\r\n")
        watched = select.poll()
        watched.register(lazy, select.POLLHUP | select.POLLERR)
        assert watched.poll(30_000), "it is still waited for"


def test_an_answer_that_is_taken_slowly_arrives(port: int) -> None:
    """It takes longer than one may take nothing."""
    with httpx2.stream("GET", f"http://127.0.0.1:{port}/much") as answer:
        size = 0
        for number, piece in enumerate(answer.iter_raw(2**24)):
            size += len(piece)
            time.sleep(0.15 if number < 10 else 0.0)
    assert size == 2**28


def test_what_is_sent_after_a_refusal_is_not_waited_for(port: int) -> None:
    with socket.create_connection(("127.0.0.1", port)) as loud:
        loud.sendall(b"POST / HTTP/1.1\r\nHost: evil\r\nContent-Length: 1000000\r\n\r\n")
        assert answer_of(loud).startswith(b"HTTP/1.1 400")


def test_a_stream_does_not_keep_the_server_from_ending() -> None:
    """It hears of the end and says its last words; nothing has to be cut off."""
    with serving() as (process, port), httpx2.stream("GET", f"http://127.0.0.1:{port}/stream") as answer:
        pieces = answer.iter_text()
        assert next(pieces) == "first"
        process.terminate()
        assert "".join(pieces) == "last"


@pytest.mark.parametrize("number", ["SIGINT", "SIGTERM"])
def test_it_ends_in_good_order_as_soon_as_it_says_that_it_listens(number: str) -> None:
    ended_at_once = f"import os, signal\n{PROGRAM}".replace(
        "proxies=sys.argv[1:]", f"ready=lambda _: os.kill(os.getpid(), signal.{number})"
    )
    done = subprocess.run([sys.executable, "-c", ended_at_once], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("listening on ")


def test_a_proxy_is_believed_where_it_is_named() -> None:
    headers = {"X-Forwarded-For": "203.0.113.7", "X-Forwarded-Proto": "https"}
    with serving() as (_, port):
        assert httpx2.get(f"http://127.0.0.1:{port}/where", headers=headers).text == "127.0.0.1 http"
    with serving("127.0.0.1") as (_, port):
        assert httpx2.get(f"http://127.0.0.1:{port}/where", headers=headers).text == "203.0.113.7 https"


@pytest.mark.parametrize(("proxies", "lines"), [((), 1), (("203.0.113.7",), 1), (("127.0.0.1",), 0)])
def test_a_proxy_that_is_not_named_is_warned_of_once(proxies: tuple[str, ...], lines: int) -> None:
    with serving(*proxies, stderr=subprocess.PIPE) as (process, port):
        for _ in range(3):
            headers = {"X-Forwarded-For": "198.51.100.1"}
            httpx2.get(f"http://127.0.0.1:{port}/where", headers=headers)
        httpx2.get(f"http://127.0.0.1:{port}/where")
        process.terminate()
        assert process.stderr is not None
        said = process.stderr.read().splitlines()
    assert len(said) == lines
    assert all("proxies='127.0.0.1'" in line and "198.51.100.1" not in line for line in said)


def test_what_is_reached_from_this_machine_only() -> None:
    assert all(is_loopback(host) for host in ("127.0.0.1", "127.1.2.3", "::1", "localhost"))
    assert not any(is_loopback(host) for host in ("0.0.0.0", "::", "10.0.0.1", "lab.example.org", ""))
