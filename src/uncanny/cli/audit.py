"""`uncanny audit`: annotate image folders, score all generators, and print the leaderboard.

Here are options, the progress of annotation runs, outputs and the exit code; what is checked, asked and
scored is that of `eval.audit.run.audit`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import orjson

from uncanny.cli.command import Command
from uncanny.cli.options import (
    RESAMPLES,
    SEED,
    Whole,
    annotate_options,
    options_where_asked,
    read_config,
    read_models,
    read_policy,
    read_run_options,
)
from uncanny.cli.outputs import (
    STANDARD_OUTPUT,
    Output,
    check_outputs,
    check_run_folder,
    force_option,
    page,
    scores_json,
    table_csv,
)
from uncanny.cli.terminal import complain, harmless, layout, say, say_json
from uncanny.errors import UsageError

if TYPE_CHECKING:
    from uncanny.eval.audit.data.sources import AnnotationSource, Source
    from uncanny.eval.audit.run import Annotating
    from uncanny.eval.audit.score.result import AuditResult
    from uncanny.records.run_folder import RunFolder

PATH = click.Path(path_type=Path)


@click.command("audit", cls=Command)
@click.argument("generators", nargs=-1, required=True, metavar="NAME=RUN_OR_FILE_OR_FOLDER…")
@click.option(
    "--against",
    multiple=True,
    metavar="NAME=RUN_OR_FILE",
    help="The same generators as a second assessor sees them; repeatable. Shows how far the ranks agree.",
)
@click.option(
    "--pair-by",
    metavar="stem|COLUMN",
    help="What images of one prompt share: their file name, or a column of their records. "
    "They are resampled together. [default: images are independent]",
)
@click.option("--allow-mixed", is_flag=True, help="Compare annotations that were not made alike.")
@click.option("--published", is_flag=True, help="Show the published generators beside yours.")
@click.option(
    "--resamples",
    type=RESAMPLES,
    default=10_000,
    show_default=True,
    help="Bootstrap resamples for the intervals.",
)
@click.option("--seed", type=SEED, default=0, show_default=True, help="Same seed, same intervals.")
@click.option(
    "--json", "json_file", type=PATH, metavar="FILE", help="Write every figure; - for standard output."
)
@click.option("--csv", "csv_file", type=PATH, metavar="FILE", help="Write the table; - for standard output.")
@click.option(
    "--report", type=PATH, help="Where the page goes. [default: OUT/audit.html, without -o audit.html]"
)
@click.option("--no-report", is_flag=True, help="Write no page.")
@force_option
@click.option(
    "--worst", type=Whole(0, 10_000), default=12, show_default=True, help="Worst images kept, a generator."
)
@click.option(
    "--root",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="Where image paths of annotation files start. [default: the file's folder]",
)
@click.option(
    "-o", "--out", type=PATH, help="Folder for the runs of image folders. Needed where there are any."
)
@lambda command: options_where_asked(command, "where a generator is a folder of images")
@annotate_options
def command(generators: tuple[str, ...], **options: Any) -> None:
    """How plausible is what a generator makes? A leaderboard with MAI, AF and CAP; lower is better.

    Each generator is a run of `uncanny annotate`, a file of annotations, or a folder of images, which is
    annotated first, into OUT/NAME; the same command goes on where it stopped. `scenes:rendered` and
    `scenes:drawn` are the bundled images by style. Exit code: 0 all audited, 1 some images failed and are
    left out, 2 wrong use, 3 budget spent, 130 interrupted.

    \b
    Out of the box:
      uncanny audit rendered=scenes:rendered drawn=scenes:drawn --model demo -o runs/a
    """

    raise click.exceptions.Exit(audit_and_show(generators, **options))


def annotate_images(images: Sequence[Source], annotating: Annotating, *, quiet: bool) -> int:
    """An exit code: past 1 the audit has to wait for a next time."""
    from uncanny.cli.session import RUN_CODES, complain_all, exit_code, run_here

    code = 0
    for source in images:
        end = run_here(annotating.task(source, images), quiet=quiet)
        complain_all(end, source.name)
        code = max(code, exit_code(end))
        if code > RUN_CODES["failures"]:
            return code
        run = annotating.folder(source)
        if not quiet:
            complain(layout([f"{source.name}: {end.progress.done:,} images, {run.path}"]))
        _warn_of_others(source, run, end.progress.total)
    return code


def _warn_of_others(source: Source, run: RunFolder, images: int) -> None:
    """A run that was made of more images before keeps their records, and they are in the figures."""
    with run.annotations.open("rb") as lines:
        others = sum(1 for _ in lines) - images
    if others > 0:
        warning = (
            f"{source.name}: Warning: {run.annotations} has {others:,} more records than images were given "
            "now; they count too. Name another -o to leave them out."
        )
        complain(layout([warning]))


def forecast_images(images: Sequence[Source], annotating: Annotating) -> int:
    """Print what annotating each would ask and roughly cost; leaves nothing behind. Returns the exit code."""
    from uncanny.cli.session import show_forecast
    from uncanny.eval.annotate.forecast import forecast_task

    forecasts = {source.name: forecast_task(annotating.task(source, images, dry=True)) for source in images}
    return max(show_forecast(forecast, name=name) for name, forecast in forecasts.items())


def read_annotating(source: Source, out: Path | None, options: dict[str, Any]) -> Annotating:
    """How all images are annotated. Raises UsageError where no model or folder is named for `source`."""
    from uncanny.eval.audit.run import Annotating, check_named

    check_named(source, options["model"], out)
    assert out is not None
    return Annotating(
        out,
        read_models(**options),
        read_config(**options),
        read_policy(**options),
        read_run_options(**options),
    )


def audit_and_show(
    generators: Sequence[str],
    *,
    against: Sequence[str],
    root: Path | None,
    pair_by: str | None,
    worst: int,
    out: Path | None,
    dry_run: bool,
    **options: Any,
) -> int:
    """Returns the exit code. Raises UsageError before anything is asked or written."""
    from uncanny.cli.session import RUN_CODES
    from uncanny.eval.audit.data.sources import read_sources
    from uncanny.eval.audit.run import Scoring, check_against

    sources, second = read_sources(named_sources(generators)), read_sources(named_sources(against))
    check_against(second)
    if options["json_file"] == options["csv_file"] == STANDARD_OUTPUT:
        raise UsageError("--json and --csv cannot both go to standard output")
    images = [source for source in sources if source.kind == "images"]
    if dry_run and images:
        return forecast_images(images, read_annotating(images[0], out or Path("runs/unnamed"), options))
    if dry_run:
        say("All generators have their annotations; nothing would be asked.")
        return 0
    inputs = [source.path for source in (*sources, *second) if source.path is not None]
    check_outputs(_outputs(out=out, **options), inputs, force=options["force"])
    settings = {name: options[name] for name in ("resamples", "seed", "allow_mixed", "published")}
    scoring = Scoring(pair_by=pair_by, worst=worst, root=root, **settings)
    code = 0
    if images:
        annotating = read_annotating(images[0], out, options)
        for source in images:
            check_run_folder(annotating.folder(source).path, report=False, force=options["force"])
        annotating.check(sources, second, scoring)
        code = annotate_images(images, annotating, quiet=options["quiet"])
        if code > RUN_CODES["failures"]:
            return code
        sources = annotating.annotated(sources)
    result = scoring.score(sources, second)
    _write(result, out=out, **options)
    left_out = any(
        score.left_out.total for board in result.leaderboards for score in board.generators.values()
    )
    return max(code, RUN_CODES["failures"] if left_out else 0)


def named_sources(arguments: Sequence[str]) -> dict[str, AnnotationSource]:
    """Places by generator from NAME=PLACE. Raises UsageError for no such form and a name used twice."""
    sources: dict[str, AnnotationSource] = {}
    for argument in arguments:
        name, equals, place = argument.partition("=")
        name = name.strip()
        if not equals or not name or not place:
            raise UsageError(
                f"{argument!r} does not name a generator and its annotations",
                remedy="Write NAME=RUN, NAME=FILE.jsonl or NAME=FOLDER.",
            )
        if name in sources:
            raise UsageError(f"{name!r} names two generators", remedy="Give each a name of its own.")
        sources[name] = place
    return sources


def _page(report: Path | None, out: Path | None, options: Mapping[str, Any]) -> Path | None:
    """Where the page goes. Whoever pipes figures on wants none unless one is named."""
    if options["no_report"] or (report is None and not _prints(options)):
        return None
    return report or (out or Path()) / "audit.html"


def _prints(options: Mapping[str, Any]) -> bool:
    """Whether the terminal gets words: whoever pipes figures on wants nothing else among them."""
    return not options["quiet"] and STANDARD_OUTPUT not in (options["json_file"], options["csv_file"])


def _outputs(
    *, json_file: Path | None, csv_file: Path | None, report: Path | None, out: Path | None, **options: Any
) -> list[Output | None]:
    from uncanny.eval.audit.score.result import COLUMNS

    target = _page(report, out, {**options, "json_file": json_file, "csv_file": csv_file})
    named = [None if file == STANDARD_OUTPUT else file for file in (json_file, csv_file)]
    return [
        None if named[0] is None else scores_json(named[0], ("generators", "order")),
        None if named[1] is None else table_csv(named[1], COLUMNS),
        None if target is None else page(target, makes_folder=out is not None),
    ]


def _write(
    result: AuditResult,
    *,
    json_file: Path | None,
    csv_file: Path | None,
    report: Path | None,
    no_report: bool,
    out: Path | None,
    quiet: bool,
    **_: object,
) -> None:
    from uncanny.records.jsonl import write_atomically

    if json_file == STANDARD_OUTPUT:
        say_json(result.to_json())
    elif json_file is not None:
        write_atomically(json_file, [orjson.dumps(result.to_json(), option=orjson.OPT_INDENT_2)])
    if csv_file == STANDARD_OUTPUT:
        say(result.to_csv().removesuffix("\n"))
    elif csv_file is not None:
        write_atomically(csv_file, [result.to_csv().encode()])
    chosen = {"no_report": no_report, "quiet": quiet, "json_file": json_file, "csv_file": csv_file}
    if _prints(chosen):
        say(str(result))
    target = _page(report, out, chosen)
    if target is not None:
        result.report(target)
        if _prints(chosen):
            say(harmless(f"Report   {target}"))
