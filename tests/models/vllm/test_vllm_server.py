from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import httpx2
import psutil  # type: ignore[import-untyped]
import pytest

import uncanny
from tests.models.vllm.processes import STAND_IN, members, until_gone
from uncanny.errors import ModelUnusableError, UsageError
from uncanny.models.vllm.server import (
    COMMAND_VARIABLE,
    PrefixCache,
    VllmServer,
    prefix_cache_counters,
    served_models,
    vllm_command,
)

pytestmark = pytest.mark.slow


def server(folder: Path, model: str = "m", **options: float) -> VllmServer:
    return VllmServer(model, command=STAND_IN, log_path=folder / "logs" / "vllm.log", **options)  # type: ignore[arg-type]


async def test_it_is_ready_and_answers(tmp_path: Path) -> None:
    async with server(tmp_path) as running:
        assert await served_models(running.base_url) == ("m", "other")
        assert len(members(running.group)) == 2
    log = (tmp_path / "logs" / "vllm.log").read_text()
    assert "starting serve m --host 127.0.0.1 --port" in log
    assert "--enable-prompt-tokens-details" in log


async def test_stopping_ends_the_whole_group(tmp_path: Path) -> None:
    async with server(tmp_path) as running:
        pass
    assert members(running.group) == []


async def test_a_child_that_ignores_sigterm_is_killed(tmp_path: Path) -> None:
    async with server(tmp_path, "stubborn") as running:
        pass
    assert members(running.group) == []


async def test_children_are_ended_when_the_main_process_is_killed(tmp_path: Path) -> None:
    async with server(tmp_path) as running:
        assert running.group is not None
        os.kill(running.group, signal.SIGKILL)
        assert await until_gone(running.group) == []


async def test_the_group_is_ended_even_without_its_watcher(tmp_path: Path) -> None:
    async with server(tmp_path) as running:
        assert running.group is not None
        psutil.Process(running.group).parent().kill()
    assert await until_gone(running.group) == []


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends a process with its parent")
async def test_the_main_process_is_asked_to_end_when_its_watcher_is_killed(tmp_path: Path) -> None:
    """Also where we are killed at the same moment, so that nobody is left to end the group."""
    async with server(tmp_path) as running:
        assert running.group is not None
        main = psutil.Process(running.group)
        main.parent().kill()
        for _ in range(100):
            if not main.is_running():
                break
            await asyncio.sleep(0.05)
        assert not main.is_running()


async def test_an_error_inside_ends_the_group(tmp_path: Path) -> None:
    running = server(tmp_path)
    with pytest.raises(ZeroDivisionError):
        async with running:
            raise ZeroDivisionError
    assert members(running.group) == []


async def test_a_server_that_dies_at_the_start_is_an_error_with_the_end_of_its_log(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "vllm.log").write_text("of an earlier run\n")
    with pytest.raises(ModelUnusableError, match="no such model") as caught:
        async with server(tmp_path, "dies"):
            pass
    assert "exit code 3" in str(caught.value)
    assert "vllm.log" in str(caught.value)
    assert "earlier run" not in str(caught.value)


async def test_keys_that_a_server_prints_are_in_no_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_0123456789abcdef")
    running = VllmServer(
        "tells", command=STAND_IN, log_path=tmp_path / "log", extra_args=["--api-key", "sk-0123456789abcdef"]
    )
    with pytest.raises(ModelUnusableError, match="no model with") as caught:
        async with running:
            pass
    for shown in (str(caught.value), running.last_line()):
        assert "0123456789abcdef" not in shown
        assert "[key]" in shown


async def test_a_child_that_has_left_the_group_is_killed(tmp_path: Path) -> None:
    async with server(tmp_path, "leaves") as running:
        assert running.group is not None
        children = [each for each in psutil.Process(running.group).children() if each.pid != running.group]
        assert len(children) == 2
    for each in children:
        assert not each.is_running() or each.status() == psutil.STATUS_ZOMBIE


async def test_not_ready_in_time(tmp_path: Path) -> None:
    running = server(tmp_path, "sleeps", ready_timeout_s=0.5)
    with pytest.raises(ModelUnusableError, match=r"not ready after 0\.5 seconds"):
        async with running:
            pass
    assert members(running.group) == []


async def test_cancelling_the_start_ends_the_group(tmp_path: Path) -> None:
    running = server(tmp_path, "sleeps")
    start = asyncio.create_task(running.__aenter__())
    while running.group is None:  # noqa: ASYNC110 - there is no event to wait for
        await asyncio.sleep(0.02)
    start.cancel()
    with pytest.raises(asyncio.CancelledError):
        await start
    assert members(running.group) == []


PARENT = """
import asyncio, signal, sys
from pathlib import Path
from uncanny.models.vllm.server import VllmServer

# A shell that starts the tests in the background has them ignore Ctrl-C, and children inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)

async def main():
    async with VllmServer("m", command=sys.argv[2:], log_path=Path(sys.argv[1])) as running:
        print(running.group, flush=True)
        await asyncio.sleep(600)

asyncio.run(main())
"""


@pytest.mark.parametrize(
    "number",
    [
        signal.SIGKILL,
        *(pytest.param(each, marks=pytest.mark.slow) for each in (signal.SIGTERM, signal.SIGINT)),
    ],
)
async def test_the_server_dies_with_its_parent(tmp_path: Path, number: signal.Signals) -> None:
    source = str(Path(uncanny.__file__).parents[1])
    with subprocess.Popen(  # noqa: ASYNC220 - started in no time
        (sys.executable, "-c", PARENT, str(tmp_path / "vllm.log"), *STAND_IN),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": source},
    ) as parent:
        assert parent.stdout is not None
        group = int(parent.stdout.readline())
        assert len(members(group)) == 2
        parent.send_signal(number)
    assert await until_gone(group) == []


async def test_a_command_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ModelUnusableError, match=r"no-such-command.*cannot be started"):
        async with VllmServer("m", command=["/no-such-command"], log_path=tmp_path / "log"):
            pass


async def test_a_taken_port_is_refused_before_anything_starts(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(UsageError, match=f"Port {port}"):
            async with server(tmp_path, port=port):
                pass
    assert not (tmp_path / "logs").exists()


def test_the_command_is_looked_for(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv(COMMAND_VARIABLE, raising=False)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    with pytest.raises(UsageError, match=r"\[vllm\].*`base_url`"):
        vllm_command()
    for place in (tmp_path / "bin" / "vllm", tmp_path / "vllm"):
        place.parent.mkdir(exist_ok=True)
        place.write_text("#!/bin/sh\n")
        place.chmod(0o755)
        assert vllm_command() == (str(place),)
    monkeypatch.setenv(COMMAND_VARIABLE, "docker run 'my image'")
    assert vllm_command() == ("docker", "run", "my image")


async def test_counters_are_summed_over_engines(tmp_path: Path) -> None:
    async with server(tmp_path) as running:
        assert await prefix_cache_counters(running.base_url) == PrefixCache(queries=450, hits=128)


async def test_counters_that_are_not_exposed_are_none(tmp_path: Path) -> None:
    async with server(tmp_path, "bare") as running:
        assert await prefix_cache_counters(running.base_url) is None
    assert await prefix_cache_counters(running.base_url) is None


async def test_nobody_there_to_list_models(tmp_path: Path) -> None:
    async with server(tmp_path) as running:
        base_url = running.base_url
    with pytest.raises(ModelUnusableError, match="`base_url`"):
        await served_models(base_url)


async def test_something_else_there(tmp_path: Path) -> None:
    async with server(tmp_path) as running:
        async with httpx2.AsyncClient() as client:
            assert (await client.get(running.base_url)).status_code == 404
        with pytest.raises(ModelUnusableError, match="404"):
            await served_models(running.base_url + "/v2")
