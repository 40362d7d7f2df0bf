"""`uncanny vllm up`: vLLM servers on this machine, one or several of a model, kept running until Ctrl-C."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from uncanny.cli.common.command import Command, Group
from uncanny.cli.common.options import PATH, Several, Whole
from uncanny.cli.common.places import name_and_path
from uncanny.cli.common.terminal import complain, on_terminal, say
from uncanny.errors import UncannyError, UsageError
from uncanny.wording import counted, duration, harmless, option

if TYPE_CHECKING:
    from uncanny.models.vllm.server import VllmServer
    from uncanny.runs.live_line import LineParts

_DRAWN_EVERY_S = 0.25
_TOLD_EVERY_S = 30.0


@click.group("vllm", cls=Group)
def command() -> None:
    """Start vLLM servers on this machine and keep them running."""


class _UpCommand(Command):
    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        after = args[args.index("--") + 1 :] if "--" in args else []
        try:
            left = super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            raise click.UsageError(f"{error.format_message()} Options of vLLM come after --.", ctx) from error
        if before := ctx.params["arguments"][: -len(after) or None]:
            words = " ".join(before)
            raise click.UsageError(
                f"Got unexpected extra words ({words}). Options of vLLM come after --.", ctx
            )
        return left


@command.command("up", cls=_UpCommand, config=False)
@click.argument("model")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, metavar="[-- VLLM_OPTIONS]")
@click.option(
    "--port",
    type=Whole(0, 65_535),
    default=8000,
    show_default=True,
    help="Port of the first server, each further one takes the next; 0 takes free ones.",
)
@click.option(
    "--replicas",
    type=Whole(1, 64),
    default=1,
    show_default=True,
    help="Number of servers that share the calls, a GPU each.",
)
@click.option(
    "--gpu",
    "gpus",
    type=Several(click.STRING),
    default=None,
    metavar="GPU,…",
    help="GPUs to use, as CUDA_VISIBLE_DEVICES names them. They are shared out evenly; a server with several "
    "splits the model over them.  [default: one for each server; a single server sees all]",
)
@click.option(
    "--lora",
    "adapters",
    metavar="NAME=DIR",
    multiple=True,
    help="LoRA adapter to serve as vllm/NAME; repeatable.",
)
@click.option(
    "--max-restarts",
    type=Whole(0, 1_000),
    default=3,
    show_default=True,
    help="Number of times each server that died is started again.",
)
@click.option(
    "--log",
    "log_path",
    type=PATH,
    default=Path("vllm.log"),
    show_default=True,
    help="File that the first server's output is appended to; those of others end in -2, -3, ….",
)
def up(
    model: str,
    arguments: tuple[str, ...],
    port: int,
    replicas: int,
    gpus: list[str] | None,
    adapters: tuple[str, ...],
    max_restarts: int,
    log_path: Path,
) -> None:
    """Run `vllm serve MODEL` until Ctrl-C, and start it again if it dies.

    The first line printed is `listening on` and the addresses, with commas between several, when all servers
    answer. Pass them as --base-url, or set VLLM_BASE_URL to them: each image then stays with one server,
    which has its pictures and prompts cached. A server's processes end with this command, however it ends.

    \b
    uncanny vllm up Qwen/Qwen3-VL-8B-Instruct
    uncanny vllm up Qwen/Qwen3-VL-8B-Instruct --replicas 4 --lora hands=adapters/hands
    uncanny vllm up Qwen/Qwen3-VL-32B-Instruct --gpu 0,1 -- --max-model-len 32768

    \b
    In another terminal:
      uncanny annotate photos/ --model vllm/Qwen/Qwen3-VL-8B-Instruct \\
          --base-url http://127.0.0.1:8000/v1 -o runs/a
    """
    from uncanny.models.vllm.fleet import vllm_fleet

    if port + replicas - 1 > 65_535:
        raise UsageError(
            f"{option('port', port)} leaves no room for {counted(replicas, 'replica')}",
            remedy="Pass a lower one.",
        )
    named = _named(adapters)
    servers = vllm_fleet(
        model,
        log_path=log_path,
        replicas=replicas,
        gpus=gpus or (),
        port=port,
        adapters=named,
        extra_args=arguments,
        max_restarts=max_restarts,
        on_restart=complain,
    )
    with contextlib.suppress(asyncio.CancelledError):
        asyncio.run(_keep_up(servers, [model, *named]))


def _named(adapters: Sequence[str]) -> dict[str, Path]:
    """Folders of adapters by name."""
    named: dict[str, Path] = {}
    for each in adapters:
        name, folder = name_and_path(each)
        if not name:
            raise UsageError(f"--lora {each!r} has no name", remedy="Write --lora NAME=DIR.")
        if name in named:
            raise UsageError(f"--lora names {name!r} twice", remedy="Give each a different name.")
        named[name] = folder
    return named


async def _keep_up(servers: Sequence[VllmServer], models: Sequence[str]) -> None:
    """Raises `CancelledError` on Ctrl-C and SIGTERM, and what ends the last of the servers."""
    from uncanny.models.vllm.fleet import keep_up, started

    logs = ", ".join(str(server.log_path) for server in servers)
    complain(
        harmless(f"Starting {counted(len(servers), 'vLLM server')} of {models[0]}; output goes to {logs}")
    )
    with _ended_by_signals():
        async with contextlib.AsyncExitStack() as stack:
            telling = asyncio.create_task(_tell(servers))
            try:
                await stack.enter_async_context(started(servers))
            finally:
                telling.cancel()
                await asyncio.gather(telling, return_exceptions=True)
            addresses = ",".join(server.base_url for server in servers)
            say(f"listening on {addresses}")
            asked = " or ".join(f"vllm/{name}" for name in models)
            complain(harmless(f"Ask with --model {asked} --base-url {addresses}; Ctrl-C stops it."))
            await keep_up(servers, on_lost=_complain_of)


def _complain_of(error: UncannyError) -> None:
    complain(str(error.message))


@contextlib.contextmanager
def _ended_by_signals() -> Iterator[None]:
    """Cancel the task on the first signal; a second one leaves the end of the servers to their watchers."""
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None
    numbers = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]
    for number in numbers:
        loop.add_signal_handler(number, task.cancel)
    try:
        yield
    finally:
        for number in numbers:
            loop.remove_signal_handler(number)


async def _tell(servers: Sequence[VllmServer]) -> None:
    """How far they are: a live line at a terminal, one every half minute elsewhere."""
    from uncanny.runs.live_line import LineParts, LiveLine

    began = time.monotonic()

    def parts() -> LineParts:
        ready = sum(server.ready for server in servers)
        words = f"starting vLLM · {ready} of {len(servers)} ready · {duration(time.monotonic() - began)}"
        last = next((server.last_line() for server in servers if not server.ready), "")
        return LineParts([f"{words} · {harmless(last)}", words] if last else [words])

    if not on_terminal():
        while True:
            await asyncio.sleep(_TOLD_EVERY_S)
            complain(parts().whole())
    line = LiveLine(parts)
    line.open()
    try:
        while True:
            line.draw()
            await asyncio.sleep(_DRAWN_EVERY_S)
    finally:
        line.close()
