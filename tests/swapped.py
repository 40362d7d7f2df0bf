"""Somebody who swaps files and folders for links while others open them, as fast as it goes."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

# For how many seconds an attack goes on in tests that are about nothing else.
ATTACK_S = float(os.environ.get("UNCANNY_ATTACK_S", "20"))
# A file is put back by a hard link and a folder by its name, so that what is there is never half a thing.
_PROGRAM = """
import os, sys, time
inside, aside, link, outside = sys.argv[1:]
print("ready", flush=True)
while True:
    if os.path.isdir(aside):
        os.symlink(outside, inside)
        os.unlink(inside)
        os.rename(aside, inside)
        for _ in range(100):
            os.stat(inside)  # the other side is to find it now and then
        os.rename(inside, aside)
    else:
        os.symlink(outside, link)
        os.replace(link, inside)
        os.link(aside, link)
        os.replace(link, inside)
"""


@contextmanager
def swapping(inside: Path, outside: Path) -> Iterator[None]:
    """`inside`, a file or a folder, is itself and a link to `outside` in turns until the context ends."""
    aside, link = (inside.with_name(f".{inside.name}.{what}") for what in ("aside", "link"))
    inside.rename(aside)
    command = [sys.executable, "-S", "-c", _PROGRAM, *map(str, (inside, aside, link, outside))]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == b"ready\n"
            yield
        finally:
            process.kill()
            process.wait()
            link.unlink(missing_ok=True)
            if inside.is_symlink() or inside.is_file():
                inside.unlink()
            if aside.exists():
                aside.rename(inside)


def attacked(
    read: Callable[[], bytes | None], inside: Path, outside: Path, secret: bytes, seconds: float = ATTACK_S
) -> tuple[int, int]:
    """How often `read` had something while `inside` was swapped, and how often that was the secret.

    Where it never had anything, as on a busy machine, it goes on for some time.
    """
    some = leaks = 0
    with swapping(inside, outside):
        until = time.monotonic() + seconds
        while time.monotonic() < (until if some else until + 20):
            data = read()
            some += data is not None
            leaks += data is not None and secret in data
    return some, leaks
