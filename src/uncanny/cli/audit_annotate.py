"""The image folders of an audit, annotated one after the other at the terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from uncanny.cli.annotate_options import read_plan, read_policy
from uncanny.cli.display import live_progress
from uncanny.cli.models import read_models, read_run_options
from uncanny.cli.outputs import check_run_folder
from uncanny.cli.session import RUN_CODES, about, complain_all, exit_code
from uncanny.cli.terminal import complain, layout
from uncanny.errors import UsageError
from uncanny.eval.audit.annotate import Annotating
from uncanny.eval.audit.guard import check_alike
from uncanny.eval.audit.result import Provenance
from uncanny.eval.audit.sources import Source
from uncanny.records.run_folder import RunFolder
from uncanny.runs.annotate_run import annotate


def annotate_folders(
    sources: Sequence[Source],
    made: Mapping[str, Provenance],
    *,
    out: Path | None,
    quiet: bool,
    allow_mixed: bool,
    force: bool = False,
    **options: Any,
) -> tuple[Sequence[Source], int]:
    """All sources with their annotations, and an exit code: past 1 the audit has to wait for a next time.

    Raises UsageError where no model or no folder is named, and where the annotations would not be made as
    those in `made` were.
    """
    folders = [source for source in sources if source.kind == "images"]
    if not folders:
        return sources, 0
    annotating = _annotating(folders[0], out, options)
    runs = {source.name: annotating.folder(source) for source in folders}
    for run in runs.values():
        check_run_folder(run.path, report=False, force=force)
    planned = {source.name: annotating.planned(source, folders) for source in folders}
    check_alike({**made, **planned}, allow_mixed=allow_mixed)
    code = 0
    for source in folders:
        job = annotating.job(source, folders)
        with live_progress(about(job), enabled=not quiet) as started:
            end = annotate(job, started)
        complain_all(end, source.name)
        code = max(code, exit_code(end))
        if code > RUN_CODES["failures"]:
            return sources, code
        if not quiet:
            complain(layout([f"{source.name}: {end.progress.done:,} images, {runs[source.name].path}"]))
        _warn_of_others(source, runs[source.name], end.progress.total)
    ready = [annotating.annotated(source) if source in folders else source for source in sources]
    return ready, code


def _warn_of_others(source: Source, run: RunFolder, asked: int) -> None:
    """A run that was made of more images before keeps their records, and they are in the figures."""
    with run.annotations.open("rb") as lines:
        others = sum(1 for _ in lines) - asked
    if others > 0:
        warning = (
            f"{source.name}: Warning: {run.annotations} has {others:,} more records than images were given "
            "now; they count too. Name another -o to leave them out."
        )
        complain(layout([warning]))


def forecast_folders(
    sources: Sequence[Source], *, out: Path | None, **options: Any
) -> dict[str, dict[str, Any]]:
    """What annotating each image folder would ask and roughly cost; leaves nothing behind."""
    from uncanny.runs.forecast import forecast

    folders = [source for source in sources if source.kind == "images"]
    if not folders:
        return {}
    annotating = _annotating(folders[0], out or Path("runs/unnamed"), options)
    return {source.name: forecast(annotating.job(source, folders, dry=True)) for source in folders}


def _annotating(source: Source, out: Path | None, options: dict[str, Any]) -> Annotating:
    what = source.style or str(source.path)
    if options["model"] is None:
        raise UsageError(
            f"{source.name}: {what} holds images without annotations, and no model is named",
            remedy="Say which one annotates them with --model.",
        )
    if out is None:
        raise UsageError(
            f"{source.name}: {what} holds images without annotations, and no folder is named for them",
            remedy="Say where the annotations go with -o runs/NAME.",
        )
    return Annotating(
        out, read_models(**options), read_plan(**options), read_policy(**options), read_run_options(**options)
    )
