"""The fake server as a process of its own: its first line, and its ends."""

from __future__ import annotations

import re
import signal
import socket
import subprocess
import sys
import urllib.request

import pytest

SERVE = "from uncanny.demo.server.app import serve, FakeServerOptions as O; serve(O({}))"


def start(options: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", SERVE.format(options)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.slow
@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM])
def test_says_where_it_listens_and_stops_when_told(stop: signal.Signals) -> None:
    with start("max_seconds=60") as server:
        assert server.stdout is not None
        line = server.stdout.readline()
        assert re.fullmatch(r"listening on http://127\.0\.0\.1:\d+\n", line)
        with urllib.request.urlopen(line.split()[-1] + "/stats") as reply:
            assert reply.status == 200
        server.send_signal(stop)
        output, errors = server.communicate(timeout=30)
        assert (server.returncode, output, errors) == (0, "", "")


@pytest.mark.slow
def test_stops_by_itself() -> None:
    with start("max_seconds=0.2") as server:
        _, errors = server.communicate(timeout=30)
        assert (server.returncode, errors) == (0, "")


@pytest.mark.slow
def test_a_hanging_answer_does_not_keep_it_from_stopping() -> None:
    with start("max_seconds=60, faults={'hang': 1.0}") as server:
        assert server.stdout is not None
        port = int(server.stdout.readline().rpartition(":")[2])
        with socket.create_connection(("127.0.0.1", port)) as client:
            body = b'{"messages": [{"role": "user", "content": "Hello"}]}'
            head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n"
            client.sendall(head.encode() + body)
            while b'"hang":1' not in urllib.request.urlopen(f"http://127.0.0.1:{port}/stats").read():
                pass
            server.send_signal(signal.SIGTERM)
            _, errors = server.communicate(timeout=30)
        assert (server.returncode, errors) == (0, "")
