"""A vLLM server that lives exactly as long as the run that started it, and what can be asked of any one.

The server is started through `vllm_watch`, a small process between it and us. It ends the server's whole
process group when the pipe to us breaks, so that no engine or worker process stays behind: not after an
exception, a second Ctrl-C or even SIGKILL. (vLLM's main process leaves its children alive when it is killed.)
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import re
import shlex
import shutil
import signal
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import isfinite
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self

import httpx2
import orjson

from uncanny.errors import ModelUnusableError, UsageError
from uncanny.extras import install_hint
from uncanny.models.addresses import Address, parse_address
from uncanny.models.error_body import KeyMask, one_line
from uncanny.models.http import http_client
from uncanny.models.http_errors import HTTP_ERRORS
from uncanny.models.vllm import watcher as vllm_watch
from uncanny.models.vllm.watcher import cause_lines
from uncanny.settings import secrets
from uncanny.wording import counted, marked, option, server_address

COMMAND_VARIABLE = "UNCANNY_VLLM_COMMAND"

# xgrammar lets raw control characters into strings of limited length.
STRUCTURED_OUTPUTS = ("--structured-outputs-config", '{"backend":"guidance"}')
DEFAULT_ARGUMENTS = (
    "--enable-prompt-tokens-details",  # without it, usage does not say how many tokens came from the cache
    *STRUCTURED_OUTPUTS,
)

_HOST = "127.0.0.1"
_CLAIM_HOST = "127.0.0.2"
_POLL_S = 0.2
_QUESTION_S = 10.0
HANGS_S = 120.0
"""How long a server that runs may not answer before it is started again."""
LOOK_S = 5.0
"""How long it may take to say whether it is well."""
_LOG_READ = 1_000_000
_LAST_LINE_READ = 4_000
_LOGGED = re.compile(r"^(?:\([^()]*\) )?(?:[A-Z]+ \S+ \S+ \[[^][]*\] )?")
_COUNTER = re.compile(r"^vllm:prefix_cache_(queries|hits)_total(?:\{.*\})? (\S+)", re.MULTILINE)


def vllm_command() -> tuple[str, ...]:
    """The command to start vLLM with: `$UNCANNY_VLLM_COMMAND`, or `vllm` beside this Python, or on the path.

    Raises `UsageError` when there is none.
    """
    if command := os.environ.get(COMMAND_VARIABLE):
        return tuple(shlex.split(command))
    beside = Path(sys.executable).with_name("vllm")
    if path := str(beside) if os.access(beside, os.X_OK) else shutil.which("vllm"):
        return (path,)
    raise UsageError(
        "vLLM is not installed here",
        remedy=install_hint(
            "vllm",
            instead=f"start a server yourself and pass its address as {server_address('VLLM_BASE_URL')}",
        ),
    )


class VllmServer:
    """Starts `vllm serve MODEL` on the loopback address and stops it; use as `async with`.

    `command` comes before `serve`; None looks for it (`vllm_command`). `port` 0 takes a free one. Later
    `extra_args` win over `DEFAULT_ARGUMENTS`. `env` is added to this process's environment. The server's
    output is appended to `log_path`. Entering waits until the server is ready, at most `ready_timeout_s`
    seconds; it raises `UsageError` when there is no vLLM or the port or the log is taken, and
    `ModelUnusableError`, with the end of the log, when the server exits or is not ready in time. `revive`
    starts a server that has died again, at most `max_restarts` times, at the same address; `on_restart` gets
    a sentence about each.
    """

    def __init__(
        self,
        model: str,
        *,
        log_path: Path,
        command: Sequence[str] | None = None,
        port: int = 0,
        extra_args: Sequence[str] = (),
        env: Mapping[str, str] | None = None,
        ready_timeout_s: float = 900,
        max_restarts: int = 0,
        on_restart: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.model = model
        self.log_path = log_path
        self.restarts = 0
        self._command = command
        self._port = port
        self._extra_args = tuple(extra_args)
        self._env = dict(env or {})
        # vLLM prints its arguments, and what it was told in its environment.
        key = next((own for name, own in pairwise(extra_args) if name == "--api-key"), "")
        self._mask = KeyMask([key, *(secret for _, secret in secrets())])
        self._ready_timeout_s = ready_timeout_s
        self._max_restarts, self._on_restart = max_restarts, on_restart
        self._claim: socket.socket | None = None
        self._log_claim: BinaryIO | None = None
        self._watcher: subprocess.Popen[bytes] | None = None
        self._group: int | None = None
        self._log_start = 0
        self._ready = False
        self._reviving = asyncio.Lock()

    @property
    def base_url(self) -> str:
        """Where the OpenAI-compatible interface is, as clients want it: `http://127.0.0.1:PORT/v1`."""
        return f"http://{_HOST}:{self._port}/v1"

    @property
    def group(self) -> int | None:
        """Process group of the server, which is also its main process's id; None before it was started."""
        return self._group

    @property
    def ready(self) -> bool:
        """Whether it answered when it was last looked at, and runs."""
        return self._ready and self._watcher is not None and self._watcher.poll() is None

    def last_line(self) -> str:
        """The last line of its log without process, time and place, empty where there is none yet."""
        try:
            lines = self._log_lines(_LAST_LINE_READ)
        except OSError:
            return ""
        texts = (_LOGGED.sub("", line).strip() for line in reversed(lines))
        return next(filter(None, texts), "")

    async def __aenter__(self) -> Self:
        self._port = _free_port(self._port)
        self._claim = _claim(self._port)
        try:
            self._start()
            if (problem := await self._problem(starts=True)) is not None:
                raise self._unusable(problem)
        except BaseException:
            await self._end()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._end()

    async def _end(self) -> None:
        try:
            await self._stop()
        finally:
            for claim in (self._claim, self._log_claim):
                if claim is not None:
                    claim.close()

    async def revive(self) -> None:
        """Return when the server answers, having started it again where it has died.

        One that runs and does not answer for `HANGS_S` seconds counts as dead. Raises `ModelUnusableError`,
        with the end of the log, when it has died more often than `max_restarts`, and `UsageError` when
        another program has taken its port.
        """
        async with self._reviving:
            starts = False
            while (problem := await self._problem(starts=starts)) is not None:
                error = self._unusable(problem, restarts=self.restarts)
                if self.restarts >= self._max_restarts:
                    raise error
                await self._stop()
                self.restarts += 1
                self._on_restart(
                    f"{marked(error.message)}. Starting it again "
                    f"({self.restarts} of {self._max_restarts} restarts)"
                )
                _free_port(self._port)
                self._start()
                starts = True

    def _start(self) -> None:
        command = tuple(self._command) if self._command is not None else vllm_command()
        address = ("--host", _HOST, "--port", str(self._port))
        serve = (*command, "serve", self.model, *address, *DEFAULT_ARGUMENTS, *self._extra_args)
        self.log_path.parent.mkdir(parents=True, exist_ok=True)
        if self._log_claim is None:
            self._log_claim = _claim_log(self.log_path)
        self._group = None
        with self.log_path.open("ab") as log:
            self._log_start = log.tell()
            self._watcher = subprocess.Popen(
                (sys.executable, vllm_watch.__file__, *serve),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env={**os.environ, **self._env},
                start_new_session=True,  # Ctrl-C in the terminal is ours to answer, not the server's
            )

    async def _problem(self, *, starts: bool) -> str | None:
        """Wait until it answers; None when it does, else what happened instead, in words."""
        if (watcher := self._watcher) is None:
            return "was stopped"
        assert watcher.stdout is not None
        self._ready = False
        if self._group is None:
            line = await asyncio.to_thread(watcher.stdout.readline)
            self._group = int(line) if line.strip() else None
        within_s = self._ready_timeout_s if starts else HANGS_S
        deadline = time.monotonic() + within_s
        async with httpx2.AsyncClient(trust_env=False, timeout=LOOK_S) as client:
            while watcher.poll() is None:
                with contextlib.suppress(httpx2.HTTPError):
                    if (await client.get(f"http://{_HOST}:{self._port}/health")).is_success:
                        self._ready = True
                        return None
                if time.monotonic() > deadline:
                    how = "was not ready after" if starts else "did not answer for"
                    return f"{how} {within_s:g} seconds"
                await asyncio.sleep(_POLL_S)
        return f"ended {_how(watcher.returncode)}{' before it was ready' if starts else ''}"

    def _log_lines(self, most: int) -> list[str]:
        """The end of the log since the last start, at most so many bytes of it, without keys."""
        with self.log_path.open("rb") as log:
            log.seek(max(self._log_start, self.log_path.stat().st_size - most))
            return self._mask(log.read(most).decode(errors="replace")).splitlines()

    def _unusable(self, what: str, *, restarts: int = 0) -> ModelUnusableError:
        causes = " | ".join(cause_lines(self._log_lines(_LOG_READ))) or "nothing"
        again = f", after {counted(restarts, 'restart')}" if restarts else ""
        return ModelUnusableError(
            f"The vLLM server for {self.model!r} {what}{again}; its log {self.log_path} says: {causes}",
            remedy="Fix the cause, or start a server yourself and pass its address as "
            f"{server_address('VLLM_BASE_URL')}",
        )

    async def _stop(self) -> None:
        """Let the watcher end the group, and wait for it. Cancelling this leaves the watcher at its work."""
        watcher = self._watcher
        if watcher is None:
            return
        assert watcher.stdin is not None
        assert watcher.stdout is not None
        watcher.stdin.close()
        watcher.stdout.close()
        deadline = time.monotonic() + vllm_watch.GRACE_S + 3 * vllm_watch.LEFT_OVER_S + 5
        while watcher.poll() is None and time.monotonic() < deadline:  # noqa: ASYNC110 - no task of ours
            await asyncio.sleep(_POLL_S)
        # For a watcher that hangs or was killed itself.
        if watcher.returncode is None:
            watcher.kill()
            watcher.wait()
        if self._group is not None and watcher.returncode < 0:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._group, signal.SIGKILL)
        self._watcher, self._ready = None, False


def _how(code: int) -> str:
    """How a server ended. The watcher says of one that was killed what a shell would."""
    number = -code if code < 0 else code - 128
    try:
        name = signal.Signals(number).name
    except ValueError:
        return f"with exit code {code}"
    memory = ", perhaps because the machine was out of memory" if name == "SIGKILL" else ""
    return f"by {name}{memory}"


def _free_port(wanted: int) -> int:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((_HOST, wanted))
        except OSError as error:
            raise _taken(wanted, error) from error
        port: int = probe.getsockname()[1]
        return port


def _claim(port: int) -> socket.socket | None:
    """Keep a port from other commands of ours until this is closed.

    vLLM takes the port some time after its start. Until then, another server on it would be taken for this
    one. The claim is the same port of another loopback address, at which nothing listens; None where the
    system has no such address.
    """
    claim = socket.socket()
    try:
        claim.bind((_CLAIM_HOST, port))
    except OSError as error:
        claim.close()
        if error.errno == errno.EADDRNOTAVAIL:
            return None
        raise _taken(port, error) from error
    return claim


def _claim_log(path: Path) -> BinaryIO:
    """Keep a log from other commands of ours until this is closed: messages quote it as one server's.

    Processes of a server that outlive this one do not have the claim. Raises UsageError.
    """
    import fcntl

    claim = path.open("ab")
    try:
        if stat.S_ISREG(os.fstat(claim.fileno()).st_mode):
            fcntl.flock(claim, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        claim.close()
        raise UsageError(
            f"Another command writes the output of its vLLM server to {path}",
            remedy=f"Pass another file with {option('log_path')}.",
        ) from None
    except OSError:
        pass  # file systems of a network may have no locks
    return claim


def _taken(port: int, error: OSError) -> UsageError:
    return UsageError(
        f"Port {port} on {_HOST} is not free: {error.strerror}",
        remedy="Pass another port, or 0 for a free one.",
    )


async def served_models(server: str | Address, *, api_key: str | None = None) -> tuple[str, ...]:
    """Names of the models that the server behind a base URL offers; empty when it offers none.

    Raises `ModelUnusableError` when nothing answers there, or something that is no such server, and
    `UsageError` for what is no base URL.
    """
    address = parse_address(server) if isinstance(server, str) else server
    try:
        answer = await _get(address, f"{address.url}models", api_key)
        answer.raise_for_status()
        return tuple(str(model["id"]) for model in orjson.loads(answer.content)["data"])
    except (*HTTP_ERRORS, ValueError, KeyError, TypeError) as error:
        reason = one_line(f"{type(error).__name__}: {error}", (api_key or "", *address.secrets))
    raise ModelUnusableError(
        f"{address} does not list its models: {reason}",
        remedy=f"Check {server_address('VLLM_BASE_URL')} and that the server runs",
    )


async def answers(address: Address, *, api_key: str | None = None) -> bool:
    """Whether anything answers at a base URL, other than that it is out of order."""
    try:
        return (await _get(address, f"{address.url}models", api_key)).status_code < 500
    except HTTP_ERRORS:
        return False


async def _get(address: Address, url: str, api_key: str | None) -> httpx2.Response:
    """Raises `HTTP_ERRORS`; a status is not among them."""
    headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
    if address.authorization:
        headers["Authorization"] = address.authorization
    async with http_client(address, _QUESTION_S) as client:
        return await client.get(url, headers=headers, params=address.parameters)


@dataclass(frozen=True, slots=True)
class PrefixCache:
    """What vLLM's prefix cache did since the server was started, in tokens: looked up, and hit."""

    queries: int
    hits: int


async def prefix_cache_counters(base_url: str) -> PrefixCache | None:
    """Read the server's counters, summed over its engines; None when it does not expose them.

    Raises `UsageError` for what is no base URL.
    """
    address = parse_address(base_url)
    try:
        answer = await _get(address, f"{address.url.rstrip('/').removesuffix('/v1')}/metrics", None)
    except HTTP_ERRORS:
        return None
    totals: dict[str, float] = {}
    for which, value in _COUNTER.findall(answer.text):
        with contextlib.suppress(ValueError):
            totals[which] = totals.get(which, 0.0) + float(value)
    if (
        not answer.is_success
        or totals.keys() != {"queries", "hits"}
        or not all(map(isfinite, totals.values()))
    ):
        return None
    return PrefixCache(queries=int(totals["queries"]), hits=int(totals["hits"]))
