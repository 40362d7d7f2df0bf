"""The stand-in for the command of vLLM, and which processes there are."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from pathlib import Path

import psutil  # type: ignore[import-untyped]

STAND_IN = (sys.executable, str(Path(__file__).with_name("stand_in_vllm.py")))


def members(group: int | None) -> list[int]:
    """Live processes of a group; zombies that nobody has reaped do not count."""
    assert group is not None
    pids = []
    for process in psutil.process_iter(["status"]):
        try:
            if os.getpgid(process.pid) == group and process.info["status"] != psutil.STATUS_ZOMBIE:
                pids.append(process.pid)
        except ProcessLookupError:
            continue
    return pids


async def until_gone(group: int | None) -> list[int]:
    for _ in range(200):
        if not members(group):
            break
        await asyncio.sleep(0.1)
    return members(group)


def naming(text: str) -> list[psutil.Process]:
    """Live processes with `text` in their command line, such as a log of the test's own."""
    return [
        process
        for process in psutil.process_iter(["cmdline", "status"])
        if process.info["status"] != psutil.STATUS_ZOMBIE and text in " ".join(process.info["cmdline"] or ())
    ]


def title(process: psutil.Process) -> str:
    """Its command line; nothing of one that has ended meanwhile."""
    try:
        return " ".join(process.cmdline())
    except psutil.Error:
        return ""


def servers(text: str) -> list[int]:
    """Main processes of the servers that `text` names: the watcher and its command name it, too."""
    return [process.pid for process in naming(text) if process.info["cmdline"][1:3] == [STAND_IN[1], "serve"]]


def until_none_names(text: str, seconds: float = 30.0) -> list[psutil.Process]:
    """Processes that name `text` and are still there after so long."""
    deadline = time.monotonic() + seconds
    while (left := naming(text)) and time.monotonic() < deadline:
        time.sleep(0.1)
    return left
