"""The fake server in a process of its own, so that its work is not counted as ours."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def fake_server(*options: str) -> Iterator[str]:
    """Yields its base URL without `/v1`; it is ended by its own pid."""
    command = [sys.executable, "-m", "uncanny", "fake-server", "--max-seconds", "900", *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        line = server.stdout.readline()
        try:
            yield line.rpartition(" ")[2].strip()
        finally:
            server.terminate()
            server.wait(10)
