"""`uncanny audit`: annotate image folders, score all generators, and print the leaderboard.

Here are options, the progress of annotation runs, outputs and the exit code; what is checked, asked and
scored is that of `eval.audit.run.audit`. `uncanny sample` and `uncanny trust` are about what people judge.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from uncanny.cli.common.asking import asked, asking_options
from uncanny.cli.common.command import Command
from uncanny.cli.common.files import (
    ScoreFiles,
    calibration_json,
    check_run_folder,
    gate_outputs,
    page,
    pass_gate,
)
from uncanny.cli.common.options import (
    PATH,
    force_option,
    gate_options,
    json_file_option,
    json_option,
    page_option,
    quiet_option,
    score_options,
    table_options,
)
from uncanny.cli.common.parameters import given_parameters, parameter_options
from uncanny.cli.common.places import Place, names_and_paths
from uncanny.cli.common.terminal import complain, say, say_json, told
from uncanny.errors import UncannyError, UsageError
from uncanny.eval.audit.parameters import AuditPageParameters, AuditParameters
from uncanny.eval.common.parameters import ConfidenceParameters
from uncanny.eval.trust.parameters import SampleParameters
from uncanny.wording import layout

if TYPE_CHECKING:
    from uncanny.eval.audit.run import Annotating
    from uncanny.eval.common.inputs.sources import AnnotationSource, Source
    from uncanny.records.run_folder import RunFolder


@click.command("audit", cls=Command, job="audit")
@click.argument(
    "generators",
    nargs=-1,
    required=True,
    type=Place(named=True),
    metavar="NAME=RUN_OR_FILE_OR_FOLDER…|FOLDER",
)
@click.option(
    "--before",
    type=Place(named=True),
    multiple=True,
    metavar="NAME=RUN_OR_FILE",
    help="Earlier release of a generator, on the same prompts; shows what changed. Repeat it, the oldest "
    "first, or pass a folder of runs, to see the trend.",
)
@click.option(
    "--against",
    type=Place(named=True),
    multiple=True,
    metavar="NAME=RUN_OR_FILE",
    help="The same generators as a second assessor sees them; repeatable. Shows how far the ranks agree.",
)
@parameter_options(AuditPageParameters)
@click.option(
    "--reports",
    is_flag=True,
    help="Write a page for each generator that has none, linked from the audit page; with --calibration for "
    "all of them.",
)
@gate_options
@score_options("OUT/audit.html; no page without -o", quiet=False)
@asking_options(AuditParameters, without=["before", "against"], several=False, summary=False)
def command(
    generators: tuple[str, ...],
    before: tuple[str, ...],
    against: tuple[str, ...],
    title: str | None,
    reports: bool,
    conditions: tuple[str, ...],
    junit: Path | None,
    **values: Any,
) -> None:
    """Rank image generators by how plausible their images are: MAI, AF and CAP; lower is better.

    Each generator is a run of `uncanny annotate`, a file of annotations, or a folder of images. uncanny
    annotates a folder of images first, into OUT/NAME; the same command resumes. A FOLDER without a name
    contains a folder of images or a run for each generator. `scenes:rendered` and `scenes:drawn` are the
    bundled images by style. Exit code: 0 all audited, 1 some images failed and are left out, 2 usage error, 3
    budget spent, 4 a --fail-if condition holds, 130 interrupted.

    \b
    Out of the box:
      uncanny audit rendered=scenes:rendered drawn=scenes:drawn --model demo -o runs/a

    \b
    For a release meeting, where runs/v2 has a run for each generator:
      uncanny audit runs/v2 --own ours --before ours=runs/v1/ours --pair-by stem -o runs/v2
    """
    from uncanny.cli.common.session import RUN_CODES
    from uncanny.eval.audit.data.folder import read_releases
    from uncanny.eval.audit.run import annotating_of, check_annotated, check_named, score_sources
    from uncanny.eval.audit.score.gate import audit_conditions, gated
    from uncanny.eval.audit.score.result import COLUMNS
    from uncanny.eval.common.inputs.sources import read_sources

    quiet, out, force, own = values["quiet"], values["out"], values["force"], values["own"]
    named, notices = read_generators(generators)
    sources, second = read_sources(named), read_sources(named_sources(against))
    earlier = read_releases(named_releases(before), sources)
    check_annotated(second, earlier)
    check_named(sources, earlier, own)
    audit_conditions(conditions)
    if conditions:
        gated([source.name for source in sources], own)
    gate_files = gate_outputs(conditions, junit)
    files = ScoreFiles.of(values, None if out is None else out / "audit.html", needs_place=True)
    images = [source for source in sources if source.kind == "images"]
    if notices and images and not quiet:
        complain(layout(notices))
    models = [] if values["model"] is None else [values["model"]]
    parameters = AuditParameters(**asked(AuditParameters, values, models))
    if values["dry_run"]:
        if not images:
            say("All generators have their annotations; nothing would be asked.")
            return
        annotating = annotating_of(parameters, images[0], dry=True)
        annotating.check(sources, second, earlier)
        raise click.exceptions.Exit(forecast_images(images, annotating))
    inputs = [source.path for source in (*sources, *second, *earlier) if source.path is not None]
    files.check(("generators", "order"), COLUMNS, inputs, *gate_files)
    code = 0
    if images:
        annotating = annotating_of(parameters, images[0])
        for source in images:
            check_run_folder(annotating.folder(source).path, report=False, force=force)
        annotating.check(sources, second, earlier)
        code = annotate_images(images, annotating, quiet=quiet, pages=not values["no_report"])
        if code > RUN_CODES["failures"]:
            raise click.exceptions.Exit(code)
        sources = annotating.annotated(sources)
    result = score_sources(parameters, sources, second, earlier, notices)
    files.write_scores(result, title=title, reports=reports)
    scores = (score for board in result.leaderboards for score in board.generators.values())
    has_failed = any(score.left_out.not_done for score in scores)
    if not pass_gate(result.gate, conditions, junit, quiet=quiet):
        raise click.exceptions.Exit(RUN_CODES["gate"])
    raise click.exceptions.Exit(max(code, RUN_CODES["failures"] if has_failed else 0))


def read_generators(arguments: Sequence[str]) -> tuple[dict[str, AnnotationSource], tuple[str, ...]]:
    """Places by generator from NAME=PLACE and from folders of generators, and what was taken of these.

    Raises UsageError as `named_sources` does, and for a folder that holds no generator.
    """
    from uncanny.eval.audit.data.folder import read_generator_folder

    named: list[str] = []
    notices: list[str] = []
    for argument, (name, place) in zip(arguments, names_and_paths(arguments), strict=True):
        if name is not None or not place.is_dir():
            named.append(argument)
            continue
        folder = read_generator_folder(argument)
        named += [f"{generator}={source}" for generator, source in folder.generators.items()]
        notices.append(folder.notice)
    return named_sources(named), tuple(notices)


def named_releases(arguments: Sequence[str]) -> dict[str, list[str]]:
    """The places of each generator from NAME=PLACE, in their order. Raises UsageError for no such form."""
    releases: dict[str, list[str]] = {}
    for argument in arguments:
        for name, place in named_sources([argument]).items():
            releases.setdefault(name, []).append(str(place))
    return releases


def named_sources(arguments: Sequence[str]) -> dict[str, AnnotationSource]:
    """Places by generator from NAME=PLACE. Raises UsageError for no such form and a name used twice."""
    sources: dict[str, AnnotationSource] = {}
    for argument, (name, place) in zip(arguments, names_and_paths(arguments), strict=True):
        if name is None:
            written = f"NAME={argument}" if place.exists() else "NAME=RUN, NAME=FILE.jsonl or NAME=FOLDER"
            raise UsageError(
                f"{argument!r} does not name a generator and its annotations",
                remedy=f"Write {written}, or pass a folder with a folder for each generator.",
            )
        if name in sources:
            raise UsageError(f"Two generators are called {name!r}", remedy="Give each a different name.")
        sources[name] = str(place)
    return sources


def annotate_images(
    images: Sequence[Source], annotating: Annotating, *, quiet: bool, pages: bool = True
) -> int:
    """An exit code: past 1 the audit has to wait for a next time. Each run gets its page where `pages`."""
    from uncanny.cli.common.session import RUN_CODES, complain_all, exit_code, run_here

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
        if pages:
            _write_page(source, run)
    return code


def _write_page(source: Source, run: RunFolder) -> None:
    """As `uncanny annotate` does in the end; the audit goes on without it."""
    from uncanny.annotation.report.page import write_report

    try:
        write_report(run.path)
    except (OSError, UncannyError) as error:
        again = f"; `uncanny report {run.path}` writes it again" if isinstance(error, OSError) else ""
        complain(layout([f"{source.name}: Warning: its page could not be written: {told(error)}{again}"]))


def forecast_images(images: Sequence[Source], annotating: Annotating) -> int:
    """Print what annotating each would ask and roughly cost, and all together; leaves nothing behind.

    Returns the exit code.
    """
    from uncanny.annotation.forecast import forecast_task, total_forecast
    from uncanny.cli.common.session import show_forecast

    forecasts = {source.name: forecast_task(annotating.task(source, images, dry=True)) for source in images}
    code = max(show_forecast(forecast, name=name) for name, forecast in forecasts.items())
    if len(forecasts) > 1:
        # What each warned of stands above.
        total = replace(total_forecast(list(forecasts.values())), warnings=())
        show_forecast(total, name=f"All {len(forecasts):,} generators together")
    return code


@click.command("sample", cls=Command)
@click.argument("runs", type=PATH, nargs=-1, required=True, metavar="RUN…")
@parameter_options(SampleParameters)
@json_option
@quiet_option
def sample_command(runs: tuple[Path, ...], as_json: bool, quiet: bool, **values: Any) -> None:
    """Draw images of RUN for people to judge whole, and write them to RUN/sample.json.

    What people say of a sample holds for all images, within an interval. The same command with a larger
    --size extends the sample and keeps what was judged. Images without a whole annotation are not drawn. No
    model is asked. Exit code: 0 drawn, 2 usage error.

    \b
    Out of the box:
      uncanny demo -o runs/demo
      uncanny sample runs/demo --size 10
    """
    from uncanny.eval.trust.draw import sample

    result = sample(runs, **given_parameters(SampleParameters, values))
    if as_json:
        say_json(result.to_json())
    elif not quiet:
        say(str(result))


@click.command("trust", cls=Command)
@click.argument("run", type=PATH)
@parameter_options(ConfidenceParameters)
@click.option(
    "--write",
    type=PATH,
    metavar="FILE",
    help="Write the calibration, for --calibration of annotate, audit and export.",
)
@page_option("none")
@json_file_option
@table_options
@force_option
@quiet_option
def trust_command(run: Path, write: Path | None, report: Path | None, **values: Any) -> None:
    """Say how far the findings of RUN can be trusted, from a sample that people judged whole.

    It prints the share of images with a visible fault, AF, MAI and CAP of all images, corrected by what
    people found in the sample, with 95 % intervals; which findings are right, by kind, agent and confidence;
    and what the model missed. Fewer than 30 judged images have no interval. No model is asked.

    \b
    Draw a sample, judge it, and see:
      uncanny sample runs/a --size 200
      uncanny review runs/a --sample
      uncanny trust runs/a

    \b
    Let findings say how likely they are right:
      uncanny trust runs/a --write calibration.json
      uncanny export runs/a --all --calibration calibration.json --to csv -o data/a

    Exit code: 0 printed and written, 2 usage error or too few findings for --write.
    """
    from uncanny.eval.trust.score import TrustResult, trust

    files = ScoreFiles.of(values)
    outputs = [
        *([] if write is None else [calibration_json(write)]),
        *([] if report is None else [page(report)]),
    ]
    files.check(("run", "sample", "corrected"), TrustResult.columns, [run], *outputs)
    result = trust(run, **given_parameters(ConfidenceParameters, values))
    files.write_scores(result)
    if report is not None:
        result.report(report)
    # Last: what else was asked for is there even where there are too few findings for it.
    if write is not None:
        result.write_calibration(write)
    if files.printed:
        for what, place in (("Calibration", write), ("Report", report)):
            if place is not None:
                say(layout([f"{what}   {place}"]))
