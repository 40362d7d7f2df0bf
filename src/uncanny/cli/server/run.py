"""`--server`: the same command, run by a service; its results come home as if they had been made here."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click
from click.core import ParameterSource

from uncanny.cli.common.terminal import complain, harmless, layout, on_terminal, say, say_json
from uncanny.errors import NotFoundError, ServiceError, UncannyError, UsageError
from uncanny.wording import counted

if TYPE_CHECKING:
    from uncanny.cli.server.folder import ServerState
    from uncanny.cli.server.inputs import Sent, ServerCommand
    from uncanny.service.client.client import Client
    from uncanny.service.client.job import ClientJob
    from uncanny.service.client.local_names import LocalNames

F = TypeVar("F", bound=Callable[..., Any])
INTERRUPTED: Final = 130
BROKEN: Final = 1
_MOST_REFUSED: Final = 10
_LIMITS: Final = frozenset({"max_cost_usd", "max_tokens_total", "limit", "concurrency"})
_GIVEN: Final = (ParameterSource.COMMANDLINE, ParameterSource.ENVIRONMENT, ParameterSource.DEFAULT_MAP)


def on_server(kind: str) -> Callable[[F], F]:
    """Give a command `--server` and `--detach`: with the first it runs as a job of this kind on a service."""

    def decorate(command: F) -> F:
        @functools.wraps(command)
        def choose(*, server: str | None, detach: bool, **values: Any) -> Any:
            if server is not None and not values.get("dry_run"):
                context = click.get_current_context()
                raise click.exceptions.Exit(_run(kind, context, values, server, detach=detach))
            if detach:
                raise UsageError("--detach is for runs on a service", remedy="Name one with --server URL.")
            return command(**values)

        # click keeps them in reverse order: these come last in `--help`.
        params: list[click.Parameter] = choose.__click_params__  # type: ignore[attr-defined]
        params[:0] = [
            click.Option(["--detach"], is_flag=True, help="With --server: start it there and leave."),
            click.Option(
                ["--server"], metavar="URL", help="Run it on the service at this address (`uncanny serve`)."
            ),
        ]
        return choose  # type: ignore[return-value]

    return decorate


def _run(kind: str, context: click.Context, values: dict[str, Any], url: str, *, detach: bool) -> int:
    """Returns the exit code."""
    from uncanny.cli.server.inputs import COMMANDS
    from uncanny.service.client.client import Client

    with Client(url) as client:
        try:
            return _ServerRun(client, COMMANDS[kind], context, values).run(detach=detach)
        except ServiceError as error:
            if not client.connection.was_reached:
                raise
            complain(layout([f"Error: {error}", "The same command goes on."]))
            return BROKEN


@dataclass(frozen=True)
class _Folder:
    """Where the results of a run go, and what is known of its job."""

    path: Path
    state: ServerState
    limits: Mapping[str, Any] = field(default_factory=dict)
    """Those that differ from what the job was asked with."""


class _ServerRun:
    """One command on a service, from its options to its exit code."""

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
        self._flags = {each.name or "": each.opts[-1] for each in context.command.params}
        self._usage = context.command_path

    def run(self, *, detach: bool) -> int:
        options = {
            name: value
            for name, value in self._given.items()
            if name not in self._command.send and not self._command.stays(name)
        }
        params = self._params(options)
        self._check_taken(params)
        target = self._target(detach=detach)
        with self._locked(target):
            folder = None if target is None else self._folder(target, params)
            sent, params = self._send(folder, params)
            job = self._start(folder, params, new=sent.new > 0)
            if detach:
                return self._leave(job)
            code = self._attend(job)
            return self._bring_home(job, folder, sent) if code is None else code

    @contextmanager
    def _locked(self, target: Path | None) -> Iterator[None]:
        """One command a folder, of this kind or a run that is made here."""
        from uncanny.records.run_folder import RunFolder

        if target is None:
            yield
            return
        with RunFolder(target).locked():
            yield

    # What is asked.

    def _params(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """Options as parameters of the job, but for inputs."""
        from uncanny.cli.common.asking import role_models

        params: dict[str, Any] = {}
        for name, value in options.items():
            if name == "models":
                if len(value) > 1:
                    raise UsageError(
                        "On a service one model is asked at a time",
                        remedy="Start the command for each, with -o for each, and --detach to go on at once.",
                    )
                params["model"] = value[0]
            elif name == "roles":
                params["roles"] = role_models(value)
            elif name == "to":
                params["to"] = [each for names in value for each in names]
            else:
                params[name] = list(value) if isinstance(value, tuple) else value
        return params

    def _check_taken(self, params: Mapping[str, Any]) -> None:
        """Raises UsageError that names every option the service does not take for this command."""
        kind = self._client.kinds().get(self._command.kind)
        if kind is None:
            raise UsageError(f"{self._client.url} runs no {self._usage.removeprefix('uncanny ')}")
        taken = kind.params.get("properties", {})
        known = {"root", "original", "edited", "masks"} & self._inputs_of_pairs()
        refused = [self._flags.get(name, name) for name in params if name not in taken and name not in known]
        files = [name for name, value in params.items() if isinstance(value, Path) and name not in known]
        if refused:
            raise UsageError(
                f"{self._client.url} takes no {', '.join(sorted(refused))}",
                remedy="Leave it out, or run the command here.",
            )
        for name in files:
            if params[name].is_dir():
                raise UsageError(
                    f"{self._flags.get(name, name)} names a folder, which is not sent",
                    remedy="Name one of the service's own: server:PATH.",
                )

    def _inputs_of_pairs(self) -> set[str]:
        """Options that belong to an input and are sent with it."""
        return (
            {"root", "original", "edited", "masks"}
            if {"items", "pairs"} & self._command.send.keys()
            else set()
        )

    def _target(self, *, detach: bool) -> Path | None:
        """The folder that results go to; None where they are single files, or stay on the service."""
        name = "out" if self._command.kind in ("audit", "export") else "run"
        if self._command.kind in ("semantic", "compare", "edits_measure"):
            self._check_outputs()
            return None
        target: Path | None = self._values.get(name)
        if self._command.kind == "audit":
            self._check_outputs()
            return target
        if target is None and not detach:
            raise UsageError("No run folder is named", remedy="Say where results go with -o runs/NAME.")
        return target

    def _check_outputs(self) -> None:
        from uncanny.cli.common.files import check_outputs, page, rows_jsonl, scores_json

        outputs = []
        json_file, per_image = self._values.get("json_file"), self._values.get("per_image")
        if json_file is not None and str(json_file) != "-":
            outputs.append(scores_json(json_file, ()))
        if per_image is not None:
            outputs.append(rows_jsonl(per_image, ("predictions", "n_pred", "n_true")))
        place = self._page_place()
        if place is not None:
            outputs.append(page(place, makes_folder=True))
        check_outputs(outputs, (), force=bool(self._values.get("force")))
        measured: Path | None = self._values.get("out") if self._command.kind == "edits_measure" else None
        if measured is not None and measured.suffix != ".jsonl":
            raise UsageError(f"A service writes {measured.stem}.jsonl, not {measured.name}")

    def _page_place(self) -> Path | None:
        """Where the page of scores goes; None where none is wanted."""
        named: Path | None = self._values.get("report")
        if self._command.page is None or self._values.get("no_report"):
            return None
        if named is not None:
            return named
        if self._quiet or str(self._values.get("json_file")) == "-":
            return None
        if self._command.kind != "audit":
            return Path(Path(self._command.page).name)
        folder: Path | None = self._values.get("out")
        return None if folder is None else folder / Path(self._command.page).name

    # The job.

    def _folder(self, target: Path, params: Mapping[str, Any]) -> _Folder:
        from uncanny.cli.server.folder import ServerState, check_new, differing_options, read_state
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
            return _Folder(target, state)
        if (state.server, state.kind) != (self._client.url, self._command.kind):
            raise UsageError(
                f"{target} is the run of {state.job or 'a job'}, {state.kind}, on {state.server}",
                remedy="Name another run with -o, or that server.",
            )
        differing = differing_options(state.options, options)
        if state.job is not None and not _LIMITS.issuperset(differing):
            flags = ", ".join(self._flags.get(name, name) for name in differing)
            raise UsageError(
                f"{target} is the run of {state.job}, which was asked with other {flags}",
                remedy="Name another run with -o, or give the same options.",
            )
        if state.job is None:
            state.options = options
        limits = {name: params.get(name) for name in differing} if state.job is not None else {}
        return _Folder(target, state, limits)

    def _send(self, folder: _Folder | None, options: dict[str, Any]) -> tuple[Sent, dict[str, Any]]:
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
            complain(
                layout(
                    [
                        f"Warning: {counted(len(sent.refused), 'image')} left out:",
                        *(f"  {each}" for each in sent.refused[:_MOST_REFUSED]),
                        *(
                            [f"  and {len(sent.refused) - _MOST_REFUSED:,} more"]
                            * (len(sent.refused) > _MOST_REFUSED)
                        ),
                    ]
                )
            )
        return sent, params

    def _send_inputs(self, sent: Sent, options: dict[str, Any]) -> dict[str, Any]:
        """The parameters with what the inputs became, without what belongs to them."""
        params = dict(options)
        for name, send in self._command.send.items():
            value = self._values.get(name)
            if value or name == "pairs":
                send(sent, value, params)
        return params

    def _start(self, folder: _Folder | None, params: dict[str, Any], *, new: bool) -> ClientJob:
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
                    harmless(f"Warning: {state.job} is no longer on {self._client.url}; a new job is started")
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
            say(layout([f"Job      {job.id}", f"Page     {job.url}", f"Results  {self._way_back()}"]))
        return 0

    def _attend(self, job: ClientJob) -> int | None:
        """Wait for the end. An exit code where nothing is to be brought home now."""
        try:
            job.wait(progress=not self._quiet)
            return None
        except KeyboardInterrupt:
            if not self._wants_cancel(job):
                complain(layout([f"{job.id} goes on: {job.url}", f"Results: {self._way_back()}"]))
                return INTERRUPTED
        except ServiceError as error:
            complain(layout([f"Error: {error}", f"{job.id} goes on there. Results: {self._way_back()}"]))
            return BROKEN
        job.cancel().wait(progress=not self._quiet)
        return None

    def _wants_cancel(self, job: ClientJob) -> bool:
        """Asked once; another Ctrl-C, no answer and no terminal leave the job alone."""
        import sys

        if not (on_terminal() and sys.stdin.isatty()):
            return False
        try:
            return click.confirm(f"Cancel {job.id} too? Else it goes on", default=False, err=True)
        except (click.Abort, KeyboardInterrupt):
            complain("")  # ends the line of the question
            return False

    def _way_back(self) -> str:
        if self._values.get("run") is not None or self._values.get("out") is not None:
            return "the same command brings them"
        return f"on its page, or `uncanny.Client({self._client.url!r})`"

    # The results.

    def _bring_home(self, job: ClientJob, folder: _Folder | None, sent: Sent) -> int:
        from uncanny.cli.server.folder import bring_home
        from uncanny.service.client.answers import EXIT_CODES
        from uncanny.service.client.local_names import LocalNames

        names = LocalNames.of_images(
            sent.images,
            folders=sent.folders,
            files=sent.files,
            runs={} if folder is None else {job.id: folder.path},
            root=self._values.get("root") if "root" in self._command.here else None,
        )
        warnings: list[str] = []
        try:
            if folder is not None:
                under = "out/" if self._command.kind == "export" else "run/"
                warnings = bring_home(job, folder.path, folder.state, names, under=under)
            result = self._result(job, names, folder)
            written = self._write_files(job, result)
            written += self._write_page(job, folder)
        except KeyboardInterrupt:
            complain(layout([f"{job.id} has ended: {job.url}", f"Results: {self._way_back()}"]))
            return INTERRUPTED
        except (UncannyError, OSError) as error:
            complain(
                layout([f"Error: {error}", f"{job.id} has ended: {job.url}. Results: {self._way_back()}"])
            )
            return BROKEN
        for warning in warnings:
            complain(harmless(f"Warning: {warning}"))
        self._show(job, folder, result, written)
        code = EXIT_CODES[job.state] if job.exit_code is None else job.exit_code
        return max(code, BROKEN) if sent.refused else code

    def _result(self, job: ClientJob, names: LocalNames, folder: _Folder | None) -> Any:
        """What the command prints as JSON; None where it came to none."""
        try:
            return _from_here(names.of(job.result, Path()), folder)
        except NotFoundError:
            return None

    def _write_files(self, job: ClientJob, result: Any) -> list[str]:
        import orjson

        from uncanny.records.jsonl import write_atomically

        written: list[str] = []
        file = self._values.get("json_file")
        if file is not None and result is not None:
            if str(file) == "-":
                say_json(result)
            else:
                write_atomically(file, [orjson.dumps(result, option=orjson.OPT_INDENT_2)])
                written.append(f"JSON     {file}")
        for option, source in self._command.outputs.items():
            target: Path | None = self._values.get(option)
            if target is not None and job.fetch(source, target):
                written.append(f"Records  {target}")
        return written

    def _write_page(self, job: ClientJob, folder: _Folder | None) -> list[str]:
        """The page: of scores the service's, of a run one written here, with the pictures that are here."""
        if self._command.page is not None:
            place = self._page_place()
            return [f"Report   {place}"] if place is not None and job.fetch(self._command.page, place) else []
        if folder is None or self._values.get("report") is not True:
            return []
        from uncanny.eval.report import report

        records = folder.path / "annotations.jsonl"
        if not records.is_file() or not records.stat().st_size:
            return []
        return [f"Report   {report(folder.path, pictures=self._values['pictures'])}"]

    def _show(self, job: ClientJob, folder: _Folder | None, result: Any, written: list[str]) -> None:
        from uncanny.service.client.watching import facts

        if job.state == "failed":
            complain(layout([f"Error: {job.id} failed", *f"{job.error or ''}".splitlines()]))
        elif job.error:
            complain(layout(job.error.splitlines()))
        if self._values.get("as_json"):
            if result is not None:
                say_json(result)
            return
        if self._quiet or str(self._values.get("json_file")) == "-" or job.state == "failed":
            return
        progress = job.progress
        lines = [f"Job      {job.id}, {job.state.replace('_', ' ')}: {job.url}"]
        if progress.total is not None:
            lines.append(f"Done     {progress.done or 0:,} of {progress.total:,} · {facts(progress)}")
        if folder is not None:
            lines.append(f"Run      {folder.path}")
        say(layout([*lines, *written]))


def _from_here(result: Any, folder: _Folder | None) -> Any:
    """A result whose paths, which the command has from the job's folder, are those of this machine."""
    if isinstance(result, dict):
        return {key: _from_here(value, folder) for key, value in result.items()}
    if isinstance(result, str) and folder is not None:
        top, _, rest = result.partition("/")
        return str(folder.path / rest) if top in ("run", "out") and result.isprintable() else result
    return result


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
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    columns = (TextColumn("sending images"), BarColumn(16), MofNCompleteColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("images", total=None)
        yield lambda sent, of: bar.update(task, completed=sent, total=of)
