"""`uncanny report`."""

from __future__ import annotations

from pathlib import Path

import click

from uncanny.cli.command import Command
from uncanny.cli.options import Whole
from uncanny.cli.outputs import check_outputs, force_option, page
from uncanny.cli.terminal import harmless, say
from uncanny.errors import UsageError
from uncanny.records.run_folder import RunFolder, check_within
from uncanny.records.run_manifest import RunManifest


@click.command("report", cls=Command)
@click.argument("run", type=click.Path(path_type=Path))
@click.option(
    "--max-images",
    type=Whole(0, 1_000_000),
    default=300,
    show_default=True,
    help="Images shown; the page says so if not all.",
)
@force_option
def command(run: Path, max_images: int, force: bool) -> None:
    """Write RUN/report.html, one self-contained file, for a finished or unfinished run.

    Of a run of `mcq run` or `realism run` it is the page of its scores, as `uncanny mcq score` and
    `uncanny realism score` write it with their defaults.
    """
    check_outputs([page(run / "report.html")] if run.is_dir() else [], [run], force=force)
    say(harmless(str(_write(run, max_images))))


def _write(run: Path, max_images: int) -> Path:
    folder = RunFolder(run)
    folder.check_links()
    if folder.annotations.is_file():
        from uncanny.eval.annotate.report import write_report

        return write_report(run, max_images=max_images)
    if (run / "answers.jsonl").is_file():
        return _mcq_page(run, folder.read_manifest() or RunManifest(), folder.report)
    if (run / "verdicts.jsonl").is_file():
        from uncanny import realism

        return realism.score(run).report(folder.report)
    raise UsageError(
        f"{run} is not a run: it has no annotations.jsonl, answers.jsonl or verdicts.jsonl",
        remedy="Name a run folder.",
    )


def _mcq_page(run: Path, manifest: RunManifest, target: Path) -> Path:
    from uncanny.eval.mcq.data.load import load
    from uncanny.eval.mcq.score.score import score

    items_file = run / (manifest.items or "")
    if not items_file.is_file():
        raise UsageError(
            f"{run} is a run of `mcq run`, and its items are not where it has them from",
            remedy=f"Name them: uncanny mcq score ITEMS {run}",
        )
    items = load(items_file, root=manifest.root)
    if items_file.resolve().is_relative_to(run.resolve()):
        remedy = f"Name them yourself: uncanny mcq score ITEMS {run}"
        check_within(run, items_file, items.image_files(), remedy=remedy)
    overlays = run / "overlays"
    return score(items, run).report(target, published=False, overlays=overlays if overlays.is_dir() else None)
