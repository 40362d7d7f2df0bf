"""Servers that are started again when they die, several at once, GPUs and adapters."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import httpx2
import psutil  # type: ignore[import-untyped]
import pytest

from tests.models.vllm.processes import STAND_IN, members, until_gone
from uncanny.errors import ModelUnusableError, UncannyError, UsageError
from uncanny.models.vllm import server as server_module
from uncanny.models.vllm.fleet import DEVICES_VARIABLE, keep_up, started, starting, vllm_fleet
from uncanny.models.vllm.server import COMMAND_VARIABLE, VllmServer, served_models

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def stand_in(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(COMMAND_VARIABLE, " ".join(STAND_IN))
    monkeypatch.delenv(DEVICES_VARIABLE, raising=False)
    monkeypatch.chdir(tmp_path)


def fleet(model: str = "m", **options: Any) -> list[VllmServer]:
    return vllm_fleet(model, log_path=Path("vllm.log"), **options)


async def ask(server: VllmServer, page: str) -> Any:
    async with httpx2.AsyncClient(trust_env=False) as client:
        return (await client.get(f"{server.base_url.removesuffix('/v1')}/{page}")).json()


def kill(server: VllmServer, number: int = signal.SIGKILL) -> None:
    assert server.group is not None
    os.kill(server.group, number)


async def test_a_dead_server_is_started_again_at_its_address(tmp_path: Path) -> None:
    said: list[str] = []
    (server,) = servers = fleet(max_restarts=2, on_restart=said.append)
    async with started(servers):
        first, address = server.group, server.base_url
        kill(server)
        await server.revive()
        assert server.ready
        assert server.base_url == address
        assert await served_models(address) == ("m", "other")
        assert members(first) == []
        assert server.group != first
        await server.revive()  # nothing is wrong with it
        assert server.restarts == 1
    assert members(server.group) == []
    (sentence,) = said
    assert "ended by SIGKILL, perhaps because the machine was out of memory" in sentence
    assert sentence.endswith("Starting it again (1 of 2 restarts)")
    assert (tmp_path / "vllm.log").read_text().count("starting serve m") == 2


async def test_a_dead_engine_is_a_dead_server() -> None:
    said: list[str] = []
    (server,) = servers = fleet(max_restarts=1, on_restart=said.append)
    async with started(servers):
        (engine,) = psutil.Process(server.group).children()
        engine.kill()
        await server.revive()
        assert server.ready
    assert "EngineDeadError: the engine is not there any more" in said[0]


async def test_after_the_last_restart_its_reason_is_the_error() -> None:
    (server,) = servers = fleet(max_restarts=2)
    async with started(servers):
        for _ in range(2):
            kill(server, signal.SIGABRT)
            await server.revive()
        kill(server, signal.SIGABRT)
        with pytest.raises(
            ModelUnusableError, match=r"ended by SIGABRT, after 2 restarts; its log"
        ) as caught:
            await server.revive()
    assert "start a server yourself" in str(caught.value)


async def test_a_restart_that_fails_counts_and_tells_why() -> None:
    (server,) = servers = fleet("once", max_restarts=2)
    async with started(servers):
        kill(server)
        with pytest.raises(ModelUnusableError, match="no such model") as caught:
            await server.revive()
    assert "ended with exit code 3 before it was ready, after 2 restarts" in str(caught.value)


async def test_without_restarts_the_first_death_is_the_last() -> None:
    (server,) = servers = fleet()
    async with started(servers):
        kill(server)
        with pytest.raises(ModelUnusableError, match="ended by SIGKILL"):
            await server.revive()


async def test_a_server_that_hangs_is_started_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_module, "HANGS_S", 0.5)
    monkeypatch.setattr(server_module, "LOOK_S", 0.2)
    said: list[str] = []
    (server,) = servers = fleet(max_restarts=1, on_restart=said.append)
    async with started(servers):
        hanging = server.group
        kill(server, signal.SIGSTOP)
        reviving = asyncio.create_task(server.revive())
        await asyncio.sleep(1)
        assert hanging is not None
        os.kill(hanging, signal.SIGCONT)  # so that it hears of its end; else it is killed 15 seconds later
        await reviving
        assert server.group != hanging
    assert "did not answer for 0.5 seconds" in said[0]


async def test_a_port_that_another_program_took_meanwhile_is_an_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(server_module, "LOOK_S", 0.2)
    (server,) = servers = fleet(max_restarts=3)
    async with started(servers):
        port = int(server.base_url.removesuffix("/v1").rpartition(":")[2])
        kill(server)
        assert await until_gone(server.group) == []
        with socket.create_server(("127.0.0.1", port)), pytest.raises(UsageError, match=f"Port {port}"):
            await server.revive()


async def test_replicas_have_a_log_a_port_and_a_gpu_each(tmp_path: Path) -> None:
    servers = fleet(replicas=2)
    async with started(servers):
        assert len({server.base_url for server in servers}) == 2
        devices = [(await ask(server, "environment"))[DEVICES_VARIABLE] for server in servers]
        assert devices == ["0", "1"]
        assert starting(servers) is None
    assert [members(server.group) for server in servers] == [[], []]
    assert [(tmp_path / name).is_file() for name in ("vllm.log", "vllm-2.log")] == [True, True]


async def test_one_replica_that_does_not_start_stops_the_others() -> None:
    servers = [*fleet("m"), *fleet("dies")]
    servers[1].log_path = Path("dies.log")
    with pytest.raises(ModelUnusableError, match="no such model"):
        async with started(servers):
            pass
    assert await until_gone(servers[0].group) == []
    assert not servers[0].ready


async def test_what_a_starting_server_prints_can_be_shown() -> None:
    servers = fleet("sleeps")
    assert starting(servers) == "starting vLLM"
    opening = asyncio.ensure_future(started(servers).__aenter__())
    while starting(servers) != "starting vLLM: Loading weights: 40 %":  # noqa: ASYNC110 - a file
        await asyncio.sleep(0.05)
    opening.cancel()
    with pytest.raises(asyncio.CancelledError):
        await opening
    assert await until_gone(servers[0].group) == []


async def test_servers_are_kept_up_until_the_last_is_lost() -> None:
    lost: list[UncannyError] = []
    servers = fleet(replicas=2, max_restarts=1)
    async with started(servers):
        keeping = asyncio.create_task(keep_up(servers, on_lost=lost.append))

        async def until(restarts: int) -> None:
            while not (servers[0].ready and servers[0].restarts == restarts):  # noqa: ASYNC110
                await asyncio.sleep(0.05)

        kill(servers[0])
        await until(1)
        kill(servers[0])
        while not lost:  # noqa: ASYNC110
            await asyncio.sleep(0.05)
        assert "after 1 restart;" in str(lost[0])
        assert not keeping.done()
        kill(servers[1])
        while servers[1].restarts == 0 or not servers[1].ready:  # noqa: ASYNC110
            await asyncio.sleep(0.05)
        kill(servers[1])
        with pytest.raises(ModelUnusableError, match="after 1 restart;"):
            await keeping


def environments(replicas: int, gpus: Sequence[str] = (), *words: str) -> list[str | None]:
    servers = fleet(replicas=replicas, gpus=gpus, extra_args=words)
    return [server._env.get(DEVICES_VARIABLE) for server in servers]


def test_gpus_are_shared_out(monkeypatch: pytest.MonkeyPatch) -> None:
    assert environments(1) == [None]
    assert environments(2) == ["0", "1"]
    assert environments(1, ["3"]) == ["3"]
    assert environments(2, ["4", "5", "6", "7"]) == ["4,5", "6,7"]
    assert environments(2, ["GPU-a", "GPU-a"]) == ["GPU-a", "GPU-a"]
    with pytest.raises(UsageError, match="3 GPUs cannot be shared out evenly among 2 replicas"):
        environments(2, ["0", "1", "2"])
    assert environments(2, (), "--tensor-parallel-size", "2") == ["0,1", "2,3"]
    assert environments(2, (), "-tp=4") == ["0,1,2,3", "4,5,6,7"]
    assert environments(1, (), "-tp", "4") == [None]
    monkeypatch.setenv(DEVICES_VARIABLE, "5,7")
    assert environments(2) == ["5", "7"]
    with pytest.raises(UsageError, match="3 replicas need a GPU each, but CUDA_VISIBLE_DEVICES names 2"):
        environments(3)
    with pytest.raises(UsageError, match="2 replicas need 2 GPUs each, but CUDA_VISIBLE_DEVICES names 2"):
        environments(2, (), "-tp", "2")


@pytest.mark.parametrize("words", [["--port", "9000"], ["--port=9000"]])
def test_the_port_is_not_one_of_vllms_own_options(words: list[str]) -> None:
    with pytest.raises(UsageError, match="--port is not for vLLM's own options"):
        fleet(extra_args=words)


async def test_a_server_with_several_gpus_splits_the_model() -> None:
    servers = fleet(gpus=["0", "1"], extra_args=["--max-model-len", "99"])
    async with started(servers):
        arguments = await ask(servers[0], "arguments")
    assert arguments[-4:] == ["--tensor-parallel-size", "2", "--max-model-len", "99"]


def adapter(folder: Path, content: object) -> Path:
    folder.mkdir()
    (folder / "adapter_config.json").write_text(json.dumps(content))
    return folder


async def test_adapters_are_served_by_name(tmp_path: Path) -> None:
    adapters = {"hands": adapter(tmp_path / "a", {"r": 8}), "text": adapter(tmp_path / "b", {"r": 24})}
    servers = fleet(adapters=adapters)
    async with started(servers):
        arguments = await ask(servers[0], "arguments")
    assert arguments[arguments.index("--enable-lora") :] == [
        "--enable-lora",
        *("--max-lora-rank", "32", "--max-loras", "2"),
        *("--lora-modules", f"hands={tmp_path / 'a'}", f"text={tmp_path / 'b'}"),
    ]


@pytest.mark.parametrize(
    ("content", "why"), [({}, "it has no rank `r`"), ({"r": "big"}, "its rank `r` is 'big'"), ([], "no rank")]
)
def test_what_is_no_adapter_is_an_error_before_anything_starts(
    tmp_path: Path, content: object, why: str
) -> None:
    with pytest.raises(UsageError, match=rf"adapter 'x' cannot be used: .*adapter_config\.json: .*{why}"):
        fleet(adapters={"x": adapter(tmp_path / "a", content)})
    with pytest.raises(UsageError, match="No such file"):
        fleet(adapters={"x": tmp_path / "nowhere"})
