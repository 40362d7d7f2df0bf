"""Several vLLM servers of one model on this machine, a GPU or a group of GPUs each."""

from __future__ import annotations

import asyncio
import os
import re
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Final

import orjson

from uncanny.errors import UncannyError, UsageError
from uncanny.models.vllm.server import VllmServer
from uncanny.wording import counted, option

DEVICES_VARIABLE: Final = "CUDA_VISIBLE_DEVICES"
_SHOWN: Final = 60
_POLL_S: Final = 0.5
_LOOK_EVERY_S: Final = 30.0
_SPLIT: Final = re.compile(r"(?:--tensor-parallel-size|-tp)[= ](\d+)(?!\S)")
# What vLLM takes for `--max-lora-rank`; its default is 16.
_RANKS: Final = (8, 16, 32, 64, 128, 256, 320, 512)


def vllm_fleet(
    model: str,
    *,
    log_path: Path,
    replicas: int = 1,
    gpus: Sequence[str] = (),
    port: int = 0,
    adapters: Mapping[str, Path] | None = None,
    extra_args: Sequence[str] = (),
    max_restarts: int = 0,
    on_restart: Callable[[str], None] = lambda _: None,
) -> list[VllmServer]:
    """Servers of `model`, not started yet; see `VllmServer`.

    Args:
        model: as `vllm serve` takes it.
        log_path: log of the first replica; `vllm.log` is followed by `vllm-2.log`.
        replicas: how many servers, from 1.
        gpus: devices, as `CUDA_VISIBLE_DEVICES` names them, to be shared out evenly. Without any, several
            replicas get the first ones in order, as many each as `extra_args` split the model over, and one
            replica sees all there are.
        port: of the first replica, each of the others one more; 0 takes free ones.
        adapters: folders of LoRA adapters by the name that requests ask them under.
        extra_args: for `vllm serve`; they win over those from here.
        max_restarts: how often each replica is started again.
        on_restart: gets a sentence about each restart.

    Raises:
        UsageError: for GPUs that cannot be shared out, for a folder without an adapter, and for a port in
            `extra_args`, where it would not be waited for.
    """
    if any(each.partition("=")[0] == "--port" for each in extra_args):
        raise UsageError(
            "--port is not for vLLM's own options: uncanny would wait at another port",
            remedy=f"Remove it there. `uncanny vllm up` has {option('port')}.",
        )
    split = _SPLIT.search(" ".join(extra_args))
    environments = _environments(replicas, gpus, 1 if split is None else int(split[1]))
    each = len(gpus) // replicas
    parallel = ("--tensor-parallel-size", str(each)) if each > 1 else ()
    arguments = (*parallel, *_adapter_arguments(adapters or {}), *extra_args)
    return [
        VllmServer(
            model,
            log_path=log_path if not number else log_path.with_stem(f"{log_path.stem}-{number + 1}"),
            port=port + number if port else 0,
            extra_args=arguments,
            env=environment,
            max_restarts=max_restarts,
            on_restart=on_restart,
        )
        for number, environment in enumerate(environments)
    ]


def _environments(replicas: int, gpus: Sequence[str], split: int) -> list[dict[str, str]]:
    """The devices that each replica sees; `split` is how many a model takes."""
    if not gpus and replicas == 1:
        return [{}]
    if not gpus:
        needed = replicas * split
        visible = [each.strip() for each in os.environ.get(DEVICES_VARIABLE, "").split(",") if each.strip()]
        gpus = (visible or [str(number) for number in range(needed)])[:needed]
        if len(gpus) < needed:
            each_needs = "a GPU" if split == 1 else counted(split, "GPU")
            raise UsageError(
                f"{counted(replicas, 'replica')} need {each_needs} each, but {DEVICES_VARIABLE} names "
                f"{len(gpus)}",
                remedy=f"Start fewer, or name the same one several times with {option('gpus')}.",
            )
    if len(gpus) % replicas:
        raise UsageError(
            f"{counted(len(gpus), 'GPU')} cannot be shared out evenly among {counted(replicas, 'replica')}",
            remedy="Give each replica the same number of GPUs.",
        )
    each = len(gpus) // replicas
    return [{DEVICES_VARIABLE: ",".join(gpus[start : start + each])} for start in range(0, len(gpus), each)]


def _adapter_arguments(adapters: Mapping[str, Path]) -> tuple[str, ...]:
    """With a rank and a number that all of the adapters fit into."""
    if not adapters:
        return ()
    rank = max(_rank(name, folder) for name, folder in adapters.items())
    allowed = next((each for each in _RANKS if each >= rank), rank)
    modules = [f"{name}={folder.absolute()}" for name, folder in adapters.items()]
    sizes = ("--max-lora-rank", str(allowed), "--max-loras", str(len(adapters)))
    return ("--enable-lora", *sizes, "--lora-modules", *modules)


def _rank(name: str, folder: Path) -> int:
    file = folder / "adapter_config.json"
    try:
        rank = orjson.loads(file.read_bytes())["r"]
        if isinstance(rank, int) and rank > 0:
            return rank
        why = f"its rank `r` is {rank!r}"
    except OSError as error:
        why = error.strerror or str(error)
    except (ValueError, KeyError, TypeError):
        why = "it has no rank `r`"
    raise UsageError(
        f"The LoRA adapter {name!r} cannot be used: {file}: {why}",
        remedy="Pass the folder that was written when the adapter was trained.",
    )


@asynccontextmanager
async def started(servers: Sequence[VllmServer]) -> AsyncIterator[None]:
    """Start servers side by side; where one does not start, all are stopped. Raises as `VllmServer` does."""
    async with AsyncExitStack() as stack:
        try:
            async with asyncio.TaskGroup() as group:
                for server in servers:
                    group.create_task(stack.enter_async_context(server))
        except BaseExceptionGroup as errors:
            raise errors.exceptions[0] from None
        yield


async def keep_up(servers: Sequence[VllmServer], *, on_lost: Callable[[UncannyError], None]) -> None:
    """Start again what dies, until cancelled; servers have to be started.

    `on_lost` gets why a server is not started again while others are left; raises that of the last one.
    """
    left = len(servers)

    async def keep(server: VllmServer) -> None:
        nonlocal left
        looked = time.monotonic()
        while True:
            await asyncio.sleep(_POLL_S)
            if server.ready and time.monotonic() - looked < _LOOK_EVERY_S:
                continue
            try:
                await server.revive()
            except UncannyError as error:
                left -= 1
                if not left:
                    raise
                on_lost(error)
                return
            looked = time.monotonic()

    try:
        async with asyncio.TaskGroup() as group:
            for server in servers:
                group.create_task(keep(server))
    except BaseExceptionGroup as errors:
        raise errors.exceptions[0] from None


def starting(servers: Sequence[VllmServer]) -> str | None:
    """How far those are that have to start before anything can be asked; None while one is ready."""
    if any(server.ready for server in servers):
        return None
    line = servers[0].last_line()[:_SHOWN]
    return f"starting vLLM: {line}" if line else "starting vLLM"
