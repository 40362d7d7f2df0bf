"""The fake server as a process of its own: its first line, and its ends."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import urllib.request

import pytest

SERVE = "from uncanny.service.fake_server import serve, FakeServerOptions as O; serve(O(max_seconds={}))"


def start(max_seconds: float) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", SERVE.format(max_seconds)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM])
def test_says_where_it_listens_and_stops_when_told(stop: signal.Signals) -> None:
    with start(60) as server:
        assert server.stdout is not None
        line = server.stdout.readline()
        assert re.fullmatch(r"listening on http://127\.0\.0\.1:\d+\n", line)
        with urllib.request.urlopen(line.split()[-1] + "/stats") as reply:
            assert reply.status == 200
        server.send_signal(stop)
        output, errors = server.communicate(timeout=30)
        assert (server.returncode, output, errors) == (0, "", "")


def test_stops_by_itself() -> None:
    with start(0.2) as server:
        _, errors = server.communicate(timeout=30)
        assert (server.returncode, errors) == (0, "")
