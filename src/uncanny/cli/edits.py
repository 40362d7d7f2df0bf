"""`uncanny edits`: how much edits of images changed, which are fit for use, and what detectors miss."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

import click
import orjson

from uncanny.cli.common.command import Group
from uncanny.cli.common.files import Output, ScoreFiles, at_rest, check_outputs
from uncanny.cli.common.options import (
    FOLDER,
    PATH,
    F,
    Real,
    Whole,
    force_option,
    json_file_option,
    no_page_option,
    page_option,
    pictures_option,
    quiet_option,
    table_options,
    together,
)
from uncanny.cli.common.places import Place
from uncanny.cli.common.terminal import harmless
from uncanny.cli.edits_stress import compress_command, stress_command
from uncanny.cli.edits_writing import perturb_command, prompts_command
from uncanny.cli.people import edits_people_command, people_score_command
from uncanny.cli.server.run import on_server
from uncanny.files import read_file

if TYPE_CHECKING:
    from uncanny.eval.common.pictures import PicturesMode
    from uncanny.eval.edits.data import EditSet
    from uncanny.eval.edits.perceptual import LpipsNet
    from uncanny.eval.metrics.post_edit import EditProtocol

_ANY = Real(0, 1e9)


@click.group("edits", cls=Group)
def command() -> None:
    """Measure how much edits changed, sort out which are fit for use, and see which ones detectors miss.

    PAIRS is a file with an original and its edit a line (JSON Lines, CSV, Parquet), a folder with original/
    and edited/ and perhaps masks/ in it, or the word `scenes` for the bundled pairs.

    \b
    Out of the box:
      uncanny edits measure scenes -o edits.jsonl
      uncanny edits gate edits.jsonl
      uncanny detect scenes -m demo -o runs/d
      uncanny edits stress runs/d --meta edits.jsonl
    """


command.add_command(perturb_command)
command.add_command(prompts_command)
command.add_command(stress_command)
command.add_command(edits_people_command)
command.add_command(people_score_command)
command.add_command(compress_command)

pairs_options = together(
    click.option("--original", type=PATH, help="In place of PAIRS: the folder of originals."),
    click.option("--edited", type=PATH, help="In place of PAIRS: the folder of edits, of the same names."),
    click.option("--masks", type=PATH, help="With both: the folder of masks, of the same names."),
    click.option("--root", type=FOLDER, help="Where image paths start. [default: the pair file's folder]"),
)


device_option = click.option("--device", help="Where models compute: cpu, cuda, cuda:1, mps. [default: cpu]")


class ParameterKeywords(TypedDict):
    """The constants of the measures."""

    protocol: EditProtocol
    window: int
    threshold: float
    least_object: int | None
    dilation: int
    least_component: int
    neighbours: float
    diffused_ratio: float
    low_percentile: float
    high_percentile: float
    deviations: float


def _constant(name: str, kind: click.ParamType[Any], default: float | str, meaning: str) -> Callable[[F], F]:
    return click.option(f"--{name}", type=kind, default=default, show_default=True, help=meaning)


parameter_options = together(
    _constant(
        "protocol",
        click.Choice(["uncanny", "paper", "release"]),
        "uncanny",
        "How the post-edit mask is made and shapes are told: uncanny's way, Semi-Truths as printed, or the "
        "authors' released program.",
    ),
    _constant("window", Whole(3, 999), 5, "Side of SSIM's window in pixels, odd."),
    _constant("threshold", Real(0, 1), 0.1, "Post-edit mask: squared difference, 0–1, above which one is."),
    click.option(
        "--least-object",
        type=Whole(0, 10**9),
        help="Post-edit mask: pixels below which an object is noise. [default: 10; 0 by the protocol paper]",
    ),
    _constant("dilation", Whole(1, 999), 11, "Post-edit mask: side of the dilating square, odd."),
    _constant("least-component", Whole(0, 10**9), 200, "Post-edit mask: pixels of a component at least."),
    _constant("neighbours", _ANY, 200, "Pixels: components with nearer centroids are one cluster."),
    _constant("diffused-ratio", Real(0, 1), 0.2, "From which share of the image a component is diffused."),
    _constant("low-percentile", Real(0, 100), 25, "Bins: below it a value is small."),
    _constant("high-percentile", Real(0, 100), 75, "Bins: above it a value is large."),
    _constant("deviations", _ANY, 1, "Bins of scenes: so many standard deviations around the mean."),
)


@command.command("measure")
@on_server("edits_measure")
@click.argument("pairs", required=False, type=Place("scenes"))
@click.option(
    "-o", "--out", type=PATH, metavar="FILE", help="Write a line an edit: .jsonl, .parquet or .csv."
)
@pairs_options
@click.option("--preserved", is_flag=True, help="Measure the area outside the mask too.")
@click.option(
    "--cutoffs", type=PATH, metavar="FILE", help="Take bins and shape from a measured set's --json file."
)
@click.option("--published", is_flag=True, help="Show published figures of the area outside the mask.")
@click.option("--lpips", type=click.Choice(["alex", "vgg", "squeeze"]), help="Measure LPIPS, with this net.")
@click.option("--lpips-weights", type=PATH, metavar="FILE", help="torchvision's weights of that net.")
@click.option("--dreamsim", type=PATH, metavar="DIR", help="Measure DreamSim, with the weights in DIR.")
@click.option(
    "--text-model", type=PATH, metavar="DIR", help="Measure text similarity, by sentence-transformers."
)
@device_option
@click.option("--threads", type=Whole(1, 1024), help="Edits measured at once. [default: the cores there are]")
@parameter_options
@json_file_option
@table_options
@page_option("beside -o, with the suffix .html")
@no_page_option
@pictures_option
@force_option
@quiet_option
def measure_command(
    pairs: str | None,
    out: Path | None,
    original: Path | None,
    edited: Path | None,
    masks: Path | None,
    root: Path | None,
    preserved: bool,
    cutoffs: Path | None,
    published: bool,
    lpips: LpipsNet | None,
    lpips_weights: Path | None,
    dreamsim: Path | None,
    text_model: Path | None,
    device: str | None,
    threads: int | None,
    json_file: Path | None,
    csv_file: Path | None,
    markdown_file: Path | None,
    latex_file: Path | None,
    report: Path | None,
    no_report: bool,
    pictures: PicturesMode,
    force: bool,
    quiet: bool,
    **constants: Unpack[ParameterKeywords],
) -> None:
    """Measure how much every edit of PAIRS changed and where; nothing is asked of a model.

    Mask ratio, SSIM, MSE, the post-edit mask with its components and clusters, localized or diffused, and a
    bin for each, all of which are in FILE. LPIPS, DreamSim and text similarity are measured where their
    weights are named; nothing is downloaded. The same command goes on where it was interrupted.

    Exit code 1 if there are edits that could not be measured, or in part only; FILE says why.
    """
    from uncanny.cli.common.session import RUN_CODES
    from uncanny.eval.edits.columns import check_suffix
    from uncanny.eval.edits.data import load
    from uncanny.eval.edits.perceptual import open_perceptual
    from uncanny.eval.edits.result import HEADS, PAGE, EditParameters, SetCutoffs
    from uncanny.eval.edits.score import measure

    files = ScoreFiles.chosen(
        (out or Path(PAGE)).with_suffix(".html"),
        json_file=json_file,
        csv_file=csv_file,
        markdown_file=markdown_file,
        latex_file=latex_file,
        report=report,
        no_report=no_report or (out is None and report is None),
        quiet=quiet,
    )
    outputs = files.outputs(("edits", "statuses", "cutoffs"), HEADS)
    if out is not None:
        check_suffix(out)
        outputs.append(records_output(out))
    inputs = [Path(each) for each in (pairs, cutoffs) if each is not None]
    check_outputs(outputs, inputs, force=force)
    parameters = EditParameters(**constants)
    given = None if cutoffs is None else SetCutoffs.from_json(_json(cutoffs))
    models = open_perceptual(
        lpips=lpips, lpips_weights=lpips_weights, dreamsim=dreamsim, text_model=text_model, device=device
    )
    edits = load(_source(pairs), original=original, edited=edited, masks=masks, root=root)
    with progress(edits, enabled=not quiet) as on_edit:
        measured = measure(
            edits,
            out=out,
            preserved=preserved,
            perceptual=models,
            parameters=parameters,
            cutoffs=given,
            published=published,
            threads=threads,
            on_edit=on_edit,
        )
    files.write(
        to_json=measured.to_json,
        to_csv=measured.tables()[0].to_csv,
        tables=measured.tables,
        after=_where(out),
        report=partial(measured.report, pictures=pictures),
    )
    wrong = measured.statuses["failed"] + measured.statuses["partial"]
    raise click.exceptions.Exit(RUN_CODES["failures"] if wrong else 0)


class GateKeywords(TypedDict):
    """Where the gates are."""

    brisque: float
    clip_low: float
    clip_high: float
    directional: float
    clip_score_low: float
    text_low: float
    text_high: float
    label_words: int
    caption_words: int


_PERCENT = Real(0, 100)
gate_parameter_options = together(
    _constant("brisque", _ANY, 70, "BRISQUE below this passes; it is taken from a column of that name."),
    _constant("clip-low", _PERCENT, 20, "CLIP similarity of the images: from this percentile,"),
    _constant("clip-high", _PERCENT, 80, "to this one."),
    _constant("directional", _PERCENT, 23, "Directional similarity: above this percentile."),
    _constant("clip-score-low", _PERCENT, 5, "CLIPScore of the original's caption: from this percentile."),
    _constant("text-low", _PERCENT, 5, "Text similarity: from this percentile,"),
    _constant("text-high", _PERCENT, 95, "to this one."),
    _constant("label-words", Whole(0, 10**6), 5, "Words of an edited label at most."),
    _constant("caption-words", Whole(0, 10**6), 30, "Words of an edited caption at most."),
)


@command.command("gate")
@click.argument("pairs", required=False, type=Place("scenes"))
@click.option(
    "-o", "--out", type=PATH, metavar="FILE", help="Write a line an edit: .jsonl, .parquet or .csv."
)
@pairs_options
@click.option("--clip", type=PATH, metavar="DIR", help="Measure similarities with the CLIP model in DIR.")
@device_option
@click.option(
    "--limits", type=PATH, metavar="FILE", help="Take the gates' ends from another set's --json file."
)
@gate_parameter_options
@json_file_option
@table_options
@force_option
@quiet_option
def gate_command(
    pairs: str | None,
    out: Path | None,
    original: Path | None,
    edited: Path | None,
    masks: Path | None,
    root: Path | None,
    clip: Path | None,
    device: str | None,
    limits: Path | None,
    json_file: Path | None,
    csv_file: Path | None,
    markdown_file: Path | None,
    latex_file: Path | None,
    force: bool,
    quiet: bool,
    **constants: Unpack[GateKeywords],
) -> None:
    """Sort out which edits of PAIRS pass the quality gates; best a file of `edits measure`.

    All-black edits, BRISQUE, CLIP similarity of the images, directional similarity, how well the caption
    fits the original, length and characters of the edited label and caption, and their similarity to the
    original's. FILE has `passed` and `failed_gates` for each edit. A gate that was measured of no edit is not
    applied; an edit that lacks one of the others, or whose images cannot be compared, is undecided.

    Exit code 1 if there are undecided edits.
    """
    from uncanny.cli.common.session import RUN_CODES
    from uncanny.eval.edits.columns import check_suffix
    from uncanny.eval.edits.data import load
    from uncanny.eval.edits.gate import gate
    from uncanny.eval.edits.gate_result import HEADS, GateParameters

    files = ScoreFiles.chosen(
        None,
        json_file=json_file,
        csv_file=csv_file,
        markdown_file=markdown_file,
        latex_file=latex_file,
        quiet=quiet,
    )
    outputs = files.outputs(("edits", "passed", "gates"), HEADS)
    if out is not None:
        check_suffix(out)
        outputs.append(records_output(out, "passed", "failed_gates"))
    inputs = [Path(each) for each in (pairs, limits) if each is not None]
    check_outputs(outputs, inputs, force=force)
    parameters = GateParameters(**constants)
    bounds: Any = None if limits is None else _json(limits)
    edits = load(_source(pairs), original=original, edited=edited, masks=masks, root=root)
    with progress(edits, enabled=not quiet) as on_edit:
        gated = gate(
            edits,
            out=out,
            clip=clip,
            device=device,
            parameters=parameters,
            limits=bounds,
            on_edit=on_edit,
        )
    files.write(
        to_json=gated.to_json, to_csv=gated.tables()[0].to_csv, tables=gated.tables, after=_where(out)
    )
    undecided = any(each.passed is None for each in gated)
    raise click.exceptions.Exit(RUN_CODES["failures"] if undecided else 0)


def _where(out: Path | None) -> str:
    """Where the records of a command went, to stand below its tables."""
    return "" if out is None else f"\n\nRecords  {harmless(str(out))}"


def _source(pairs: str | None) -> str | Path | None:
    """PAIRS as `load` takes it; a pipe is read once and kept."""
    return None if pairs is None else pairs if not Path(pairs).exists() else at_rest(Path(pairs))


def _json(path: Path) -> object:
    """Raises UsageError where the file is no JSON."""
    from uncanny.errors import UsageError

    try:
        return orjson.loads(read_file(path))
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror or error}") from error
    except orjson.JSONDecodeError as error:
        raise UsageError(
            f"{path} is no JSON: {error}", remedy="Name a measured set's --json file."
        ) from error


def records_output(path: Path, *keys: str) -> Output:
    """A file of records with these columns, unless they are given those of measured edits."""

    def ours(file: Path) -> bool:
        from uncanny.eval.common.inputs.table_files import columns
        from uncanny.eval.edits.columns import COLUMNS

        if file.suffix.lower() == ".csv":
            with file.open(encoding="utf-8", errors="replace", newline="") as lines:
                return set(keys or COLUMNS) <= set(next(csv.reader(lines), []))
        return set(keys or COLUMNS) <= columns(file)

    return Output(path, "file of measured edits", ours)


@contextmanager
def progress(edits: EditSet, *, enabled: bool) -> Iterator[Callable[[Any], None] | None]:
    """What is to be called after each edit; None where nobody watches."""
    from uncanny.runs.display import counting

    with counting("edits", enabled=enabled) as counted:
        if counted is None:
            yield None
            return
        counted.begin(len(edits))
        yield lambda edit: counted.one(edit.id)
