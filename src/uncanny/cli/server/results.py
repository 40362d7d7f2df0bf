"""What a command gets back from a service: files and figures, as if they had been made here."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final

from uncanny.cli.common.terminal import complain, say, say_json, told
from uncanny.errors import NotFoundError, UncannyError, UsageError
from uncanny.protocol import named
from uncanny.wording import harmless, layout

if TYPE_CHECKING:
    from uncanny.cli.server.folder import ServerFolder
    from uncanny.cli.server.inputs import Sent, ServerCommand
    from uncanny.service.client.job import ClientJob
    from uncanny.service.client.local_names import LocalNames

INTERRUPTED: Final = 130
BROKEN: Final = 1


class Results:
    """What `command` with the options `values` gets back from the service at `url`."""

    def __init__(self, url: str, command: ServerCommand, values: Mapping[str, Any]) -> None:
        self._url, self._command, self._values = url, command, values
        self._quiet = bool(values.get("quiet"))
        piped = [name for name in ("json_file", *command.outputs) if str(values.get(name)) == "-"]
        if len(piped) + bool(piped and values.get("as_json")) > 1:
            raise UsageError("Only one of the results can go to standard output", remedy="Pass files.")
        self._piped = bool(piped)

    def check(self) -> None:
        """Raises UsageError for an output that cannot be written or would replace what it must not."""
        from uncanny.cli.common.files import ScoreFiles, rows_jsonl

        place, per_image = self._page_place(), self._values.get("per_image")
        usual = {"quiet": False, "force": False}
        files = ScoreFiles.of({**usual, **self._values, "report": place, "no_report": place is None})
        columns = named(self._command.csv_head) if files.csv is not None else ()
        rows = [] if per_image is None else [rows_jsonl(per_image, ("predictions", "n_pred", "n_true"))]
        files.check((), columns, (), *rows)
        measured: Path | None = self._values.get("out") if "out" in self._command.outputs else None
        if measured is not None and measured.suffix != ".jsonl":
            raise UsageError(f"A service writes {measured.stem}.jsonl, not {measured.name}")

    def _page_place(self) -> Path | None:
        """Where the page of scores goes; None where none is wanted."""
        named: Path | None = self._values.get("report")
        if self._command.page is None or self._values.get("no_report"):
            return None
        if named is not None:
            return named
        if self._quiet or self._piped:
            return None
        name = Path(self._command.page).name
        if self._command.folder is None:
            return Path(name)
        folder: Path | None = self._values.get(self._command.folder)
        return None if folder is None else folder / name

    def way_back(self) -> str:
        """How somebody who goes now gets the results later."""
        if self._values.get("run") is not None or self._values.get("out") is not None:
            return "the same command brings them"
        return f"on its page, or `uncanny.Client({self._url!r})`"

    def bring_home(self, job: ClientJob, folder: ServerFolder | None, sent: Sent) -> int:
        """Fetch, write and show what a job that has ended came to; the exit code."""
        from uncanny.cli.server.folder import bring_home
        from uncanny.service.answers import EXIT_CODES
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
                warnings = bring_home(job, folder.path, folder.state, names, under=self._command.brings)
            result = self._result(job, names, folder)
            written = self._write_files(job, result)
            written += self._write_page(job, folder)
        except KeyboardInterrupt:
            complain(layout([f"{job.id} has ended: {job.url}", f"Results: {self.way_back()}"]))
            return INTERRUPTED
        except (UncannyError, OSError) as error:
            lines = [f"Error: {told(error)}", f"{job.id} has ended: {job.url}. Results: {self.way_back()}"]
            complain(layout(lines))
            return BROKEN
        for warning in warnings:
            complain(harmless(f"Warning: {warning}"))
        self._show(job, folder, result, written)
        code = EXIT_CODES[job.state] if job.exit_code is None else job.exit_code
        return max(code, BROKEN) if sent.refused else code

    def _result(self, job: ClientJob, names: LocalNames, folder: ServerFolder | None) -> Any:
        """What the command prints as JSON; None where it came to none."""
        try:
            return _from_here(names.of(job.result, Path()), folder)
        except NotFoundError:
            return None

    def _write_files(self, job: ClientJob, result: Any) -> list[str]:
        from uncanny.files import dump_json
        from uncanny.records.jsonl import write_named

        written: list[str] = []
        file = self._values.get("json_file")
        if file is not None and result is not None:
            if str(file) == "-":
                say_json(result)
            else:
                write_named(file, [dump_json(result, indent=True)])
                written.append(f"JSON     {file}")
        for option, source in self._command.outputs.items():
            target: Path | None = self._values.get(option)
            if target is not None:
                written += _fetched(job, source, target)
        return written

    def _write_page(self, job: ClientJob, folder: ServerFolder | None) -> list[str]:
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

    def _show(self, job: ClientJob, folder: ServerFolder | None, result: Any, written: list[str]) -> None:
        from uncanny.service.client.job import facts

        if job.state == "failed":
            complain(layout([f"Error: {job.id} failed", *f"{job.error or ''}".splitlines()]))
        elif job.error:
            complain(layout(job.error.splitlines()))
        if self._values.get("as_json"):
            if result is not None:
                say_json(result)
            return
        if self._quiet or self._piped or job.state == "failed":
            return
        progress = job.progress
        lines = [f"Job      {job.id}, {job.state.replace('_', ' ')}: {job.url}"]
        if progress.total is not None:
            lines.append(f"Done     {progress.done or 0:,} of {progress.total:,} · {facts(progress)}")
        if folder is not None:
            lines.append(f"Run      {folder.path}")
        say(layout([*lines, *written]))


def _fetched(job: ClientJob, source: str, target: Path) -> list[str]:
    """Bring a file to where it is wanted, and return what to print of it; warn where the job has none."""
    kind = "Records" if source.endswith(".jsonl") else "Tables"
    with TemporaryDirectory() as folder:
        place = Path(folder) / Path(source).name if str(target) == "-" else target
        if not job.fetch(source, place):
            complain(harmless(f"Warning: {job.id} has no {source}; {target} is not written"))
            return []
        if place != target:
            say(place.read_text(encoding="utf-8").removesuffix("\n"))
            return []
    return [f"{kind:<8} {target}"]


def _from_here(result: Any, folder: ServerFolder | None) -> Any:
    """A result whose paths, which the command has from the job's folder, are those of this machine."""
    if isinstance(result, dict):
        return {key: _from_here(value, folder) for key, value in result.items()}
    if isinstance(result, str) and folder is not None:
        top, _, rest = result.partition("/")
        return str(folder.path / rest) if top in ("run", "out") and result.isprintable() else result
    return result
