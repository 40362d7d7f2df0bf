"""`--server`: the same command, run by a service; its results come home as if they had been made here."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
from click.core import ParameterSource

from uncanny.cli.common.terminal import complain, on_terminal, say, say_json
from uncanny.cli.server.results import BROKEN, INTERRUPTED, Results
from uncanny.errors import NotFoundError, ServiceError, UsageError
from uncanny.records.run_folder import RunFolder
from uncanny.runs.parameters import LIMITS
from uncanny.wording import counted, harmless, layout, option

if TYPE_CHECKING:
    from uncanny.cli.server.folder import ServerFolder
    from uncanny.cli.server.inputs import Sent, ServerCommand
    from uncanny.service.client.client import Client
    from uncanny.service.client.job import ClientJob

_MOST_REFUSED: Final = 10
_GIVEN: Final = (ParameterSource.COMMANDLINE, ParameterSource.ENVIRONMENT, ParameterSource.DEFAULT_MAP)


def run_on_server(kind: str, context: click.Context, url: str, *, detach: bool, **values: Any) -> None:
    """Run the command of `context` as a job of this kind on the service at `url`. Ends with its exit code."""
    from uncanny.cli.server.inputs import server_command
    from uncanny.protocol import protocols
    from uncanny.service.client.client import Client

    with Client(url) as client:
        try:
            code = _ServerRun(client, server_command(protocols()[kind]), context, values).run(detach=detach)
        except ServiceError as error:
            if not client.connection.was_reached:
                raise
            complain(layout([f"Error: {error}", "Run the same command again to resume."]))
            code = BROKEN
    context.exit(code)


class _ServerRun:
    def __init__(
        self, client: Client, command: ServerCommand, context: click.Context, values: dict[str, Any]
    ) -> None:
        self._client, self._command, self._values = client, command, values
        self._quiet = bool(values.get("quiet"))
        self._given = {
            name: value
            for name, value in values.items()
            if context.get_parameter_source(name) in _GIVEN and value is not None
        }
        self._usage = context.command_path
        self._results = Results(client.url, command, values)

    def run(self, *, detach: bool) -> int:
        params = self._params()
        self._check_taken(params)
        target = self._target(detach=detach)
        # One command a folder, of this kind or a run that is made here.
        with nullcontext() if target is None else RunFolder(target).locked():
            folder = None if target is None else self._folder(target, params)
            sent, params = self._send(folder, params)
            job = self._start(folder, params, new=sent.new > 0)
            if detach:
                return self._leave(job)
            code = self._attend(job)
            return self._results.bring_home(job, folder, sent) if code is None else code

    # What is asked.

    def _params(self) -> dict[str, Any]:
        """Options as parameters of the job, but for inputs."""
        from uncanny.cli.common.asking import role_models

        params: dict[str, Any] = {}
        for name, value in self._given.items():
            if name in self._command.send or self._command.stays(name):
                continue
            if name == "models":
                if len(value) > 1:
                    raise UsageError(
                        "A command on a service takes one model",
                        remedy="Run the command for each model, with its own -o; --detach does not wait.",
                    )
                params["model"] = value[0]
            elif name == "roles":
                params["roles"] = role_models(value)
            else:
                params[name] = list(value) if isinstance(value, tuple) else value
        return params

    def _check_taken(self, params: Mapping[str, Any]) -> None:
        """Raises UsageError that names every option the service does not take for this command."""
        kind = self._client.kinds().get(self._command.kind)
        if kind is None:
            raise UsageError(f"{self._client.url} cannot run {self._usage.removeprefix('uncanny ')}")
        taken = kind.params.get("properties", {})
        # Options that belong to an input and are sent with it.
        of_pairs = {"root", "original", "edited", "masks"}
        known = of_pairs if {"items", "pairs"} & self._command.send.keys() else set()
        refused = sorted(name for name in params if name not in taken and name not in known)
        files = [name for name, value in params.items() if isinstance(value, Path) and name not in known]
        if refused:
            raise UsageError(
                f"{self._client.url} does not take {', '.join(map(option, refused))}",
                remedy="Remove it, or run the command here.",
            )
        for name in files:
            if params[name].is_dir():
                raise UsageError(
                    f"{option(name)} names a folder, and uncanny does not upload folders",
                    remedy="Pass a folder of the service: server:PATH.",
                )

    def _target(self, *, detach: bool) -> Path | None:
        """The folder that results go to; None where they are single files, or stay on the service."""
        if self._command.page is not None or self._command.outputs:
            self._results.check()
        if self._command.folder is None:
            return None
        target: Path | None = self._values.get(self._command.folder)
        # A page of figures needs no folder.
        if target is None and not detach and self._command.page is None:
            raise UsageError("No run folder is given", remedy="Pass -o runs/NAME.")
        return target

    # The job.

    def _folder(self, target: Path, params: Mapping[str, Any]) -> ServerFolder:
        from uncanny.cli.server.folder import (
            ServerFolder,
            ServerState,
            check_new,
            differing_options,
            read_state,
        )
        from uncanny.service.client.connection import new_key

        options = {
            **{name: str(value) if isinstance(value, Path) else value for name, value in params.items()},
            **{name: _shown_input(self._values.get(name)) for name in self._command.send},
        }
        state = read_state(target)
        if state is None:
            if not self._values.get("force"):
                check_new(target)
            state = ServerState(
                server=self._client.url, kind=self._command.kind, key=new_key(), options=options
            )
            return ServerFolder(target, state)
        if (state.server, state.kind) != (self._client.url, self._command.kind):
            raise UsageError(
                f"{target} belongs to {state.job or 'a job'} ({state.kind}) on {state.server}",
                remedy="Pass another run folder with -o, or use that server.",
            )
        differing = differing_options(state.options, options)
        if state.job is not None and not set(differing) <= set(LIMITS):
            names = ", ".join(map(option, differing))
            raise UsageError(
                f"{target} is the run of {state.job}, which was started with other values of {names}",
                remedy="Pass another run with -o, or pass the same options.",
            )
        if state.job is None:
            state.options = options
        limits = {name: params.get(name) for name in differing} if state.job is not None else {}
        return ServerFolder(target, state, limits)

    def _send(self, folder: ServerFolder | None, options: dict[str, Any]) -> tuple[Sent, dict[str, Any]]:
        from uncanny.cli.server.folder import write_state
        from uncanny.cli.server.inputs import Sent, there_already

        def on_set(set_id: str) -> None:
            if folder is not None:
                folder.state.sets.append(set_id)
                write_state(folder.path, folder.state)

        into = [] if folder is None else list(folder.state.sets)
        with _sending(enabled=not self._quiet) as on_sent:
            sent = Sent(self._client, on_sent, into, on_set)
            try:
                params = self._send_inputs(sent, options)
            except NotFoundError:
                if not into:
                    raise
                # What was sent before is gone from there; it is sent again.
                assert folder is not None
                folder.state.sets.clear()
                sent = Sent(self._client, on_sent, (), on_set)
                params = self._send_inputs(sent, options)
            for name in [name for name, value in params.items() if isinstance(value, Path)]:
                params[name] = there_already(params[name]) or sent.file(params[name])
        if sent.refused:
            more = len(sent.refused) - _MOST_REFUSED
            lines = [f"  {each}" for each in sent.refused[:_MOST_REFUSED]]
            lines += [f"  and {more:,} more"] if more > 0 else []
            complain(layout([f"Warning: {counted(len(sent.refused), 'image')} left out:", *lines]))
        return sent, params

    def _send_inputs(self, sent: Sent, options: dict[str, Any]) -> dict[str, Any]:
        """The parameters with what the inputs became, without what belongs to them."""
        params = dict(options)
        for name, send in self._command.send.items():
            value = self._values.get(name)
            if value or name == "pairs":
                send(sent, value, params)
        return params

    def _start(self, folder: ServerFolder | None, params: dict[str, Any], *, new: bool) -> ClientJob:
        """The job of the folder, begun again where something is left to do, as `new` images; or a new one."""
        from uncanny.cli.server.folder import write_state
        from uncanny.service.client.connection import new_key

        if folder is None:
            return self._client.submit(self._command.kind, params)
        state = folder.state
        if state.job is not None:
            try:
                job = self._client.job(state.job)
            except NotFoundError:
                complain(
                    harmless(f"Warning: {state.job} is no longer on {self._client.url}; starting a new job")
                )
                state.job, state.key = None, new_key()
            else:
                if folder.limits:
                    job = job.limits(**folder.limits)
                    state.options |= folder.limits
                    write_state(folder.path, state)
                again = new or bool(folder.limits) or job.state != "finished"
                return job.retry() if job.has_ended and again else job
        write_state(folder.path, state)
        job = self._client.submit(
            self._command.kind,
            params,
            name=harmless(folder.path.resolve().name).strip()[:200] or None,
            key=state.key,
        )
        state.job = job.id
        write_state(folder.path, state)
        return job

    def _leave(self, job: ClientJob) -> int:
        if self._values.get("as_json"):
            say_json({"job": job.id, "state": job.state, "url": job.url})
        elif not self._quiet:
            say(layout([f"Job      {job.id}", f"Page     {job.url}", f"Results  {self._results.way_back()}"]))
        return 0

    def _attend(self, job: ClientJob) -> int | None:
        """Wait for the end. An exit code where nothing is to be brought home now."""
        try:
            job.wait(progress=not self._quiet)
            return None
        except KeyboardInterrupt:
            if not self._wants_cancel(job):
                lines = [f"{job.id} keeps running: {job.url}", f"Results: {self._results.way_back()}"]
                complain(layout(lines))
                return INTERRUPTED
        except ServiceError as error:
            stays = f"{job.id} keeps running there. Results: {self._results.way_back()}"
            complain(layout([f"Error: {error}", stays]))
            return BROKEN
        job.cancel().wait(progress=not self._quiet)
        return None

    def _wants_cancel(self, job: ClientJob) -> bool:
        """Asked once; another Ctrl-C, no answer and no terminal leave the job alone."""
        import sys

        if not (on_terminal() and sys.stdin.isatty()):
            return False
        try:
            return click.confirm(f"Cancel {job.id} too? If not, it keeps running", default=False, err=True)
        except (click.Abort, KeyboardInterrupt):
            complain("")  # ends the line of the question
            return False


def _shown_input(value: object) -> Any:
    if isinstance(value, list | tuple):
        return [str(each) for each in value]
    return None if value is None else str(value)


@contextmanager
def _sending(*, enabled: bool) -> Iterator[Callable[[int, int], object]]:
    """Shows how many images are sent, where somebody watches."""
    if not enabled or not on_terminal():
        yield lambda _sent, _of: None
        return
    from uncanny.runs.live_line import LineParts, LiveLine

    counts = [0, 0]

    def parts() -> LineParts:
        sent, of = counts
        words = f"{sent:,}/{of:,} images"
        return LineParts([f"sending {words}", words], share=sent / of if of else None)

    def show(sent: int, of: int) -> None:
        counts[:] = sent, of
        line.draw()

    line = LiveLine(parts)
    line.open()
    try:
        yield show
    finally:
        line.close()
