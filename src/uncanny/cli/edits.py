"""`uncanny edits`: how much edits of images changed, which are fit for use, and what detectors miss."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from uncanny.cli.common.asking import asking_options
from uncanny.cli.common.command import Group, end
from uncanny.cli.common.files import Output, ScoreFiles, at_rest, check_run_folder, in_folder_of
from uncanny.cli.common.options import PATH, force_option, json_option, quiet_option, score_options
from uncanny.cli.common.parameters import given_parameters, parameter_options
from uncanny.cli.common.places import Place, names_and_paths
from uncanny.cli.common.summary import Summary, failure_lines
from uncanny.cli.common.terminal import say, say_json
from uncanny.cli.serving.people import (
    edits_people_command,
    edits_rate_command,
    people_score_command,
    rate_score_command,
)
from uncanny.demo.sets import BUNDLED
from uncanny.errors import UsageError
from uncanny.eval.edits.parameters import (
    CompressParameters,
    CropParameters,
    GateParameters,
    MasksParameters,
    MeasureParameters,
    StressParameters,
)
from uncanny.eval.edits.run.parameters import PerturbParameters, PromptsParameters
from uncanny.wording import harmless

if TYPE_CHECKING:
    from uncanny.parameters import Parameters


@click.group("edits", cls=Group)
def command() -> None:
    """Measure how much edits changed, apply quality gates, and find the edits that detectors miss.

    PAIRS is a file with one original and its edit per line (JSON Lines, CSV, Parquet), a folder that contains
    original/, edited/ and optionally masks/, or `scenes` or `large-scenes` for the bundled pairs.

    \b
    Out of the box:
      uncanny edits measure scenes -o edits.jsonl
      uncanny edits gate edits.jsonl
      uncanny detect scenes -m demo -o runs/d
      uncanny edits stress runs/d --meta edits.jsonl
    """


command.add_command(edits_people_command)
command.add_command(people_score_command)
command.add_command(edits_rate_command)
command.add_command(rate_score_command)


@command.command("measure", job="edits_measure")
@click.argument("pairs", required=False, type=Place(*BUNDLED))
@parameter_options(MeasureParameters)
@score_options("beside -o, with the suffix .html")
def measure_command(pairs: str | None, **values: Any) -> None:
    """Measure how much each edit of PAIRS changed, and where. No model is called.

    FILE gets the mask ratio, SSIM, MSE, the post-edit mask with its components and clusters, the shape
    (localized or diffused), and a bin for each figure. LPIPS, DreamSim and text similarity are measured if
    you name their weights; uncanny downloads nothing. The same command resumes.

    Exit code 1 if some edits could not be measured, or only in part; FILE says why.
    """
    from uncanny.eval.edits.result import HEADS, PAGE
    from uncanny.eval.edits.score import measure

    out = values["out"]
    if out is None and values["report"] is None:
        values["no_report"] = True
    files = ScoreFiles.of(values, (out or Path(PAGE)).with_suffix(".html"))
    own = [] if out is None else [records_output(out)]
    files.check(("edits", "statuses", "cutoffs"), HEADS, [pairs, values["cutoffs"]], *own)
    given = given_parameters(MeasureParameters, values)
    edits = measure(_source(pairs), **given, progress=not files.quiet)
    files.write_scores(edits, after=_where(out))
    end(failed=bool(edits.statuses["failed"] or edits.statuses["partial"]))


@command.command("gate")
@click.argument("pairs", required=False, type=Place(*BUNDLED))
@parameter_options(GateParameters)
@score_options()
def gate_command(pairs: str | None, **values: Any) -> None:
    """Find the edits of PAIRS that pass the quality gates. PAIRS is best a file of `edits measure`.

    Gates: all-black edits, BRISQUE, CLIP similarity of the images, directional similarity, how well the
    caption fits the original, length and characters of the edited label and caption, and their similarity to
    the original's. FILE has `passed` and `failed_gates` for each edit. A gate that was measured for no edit
    is not applied. An edit is undecided if another gate was not measured for it, or if its images cannot be
    compared.

    Exit code 1 if some edits are undecided.
    """
    from uncanny.eval.edits.gate import HEADS, gate

    out = values["out"]
    files = ScoreFiles.of(values)
    own = [] if out is None else [records_output(out, "passed", "failed_gates")]
    files.check(("edits", "passed", "gates"), HEADS, [pairs, values["limits"]], *own)
    edits = gate(_source(pairs), **given_parameters(GateParameters, values), progress=not files.quiet)
    files.write_scores(edits, after=_where(out))
    end(failed=any(each.passed is None for each in edits))


def _where(out: Path | None) -> str:
    """Where the records of a command went, to stand below its tables."""
    return "" if out is None else f"\n\nRecords  {harmless(str(out))}"


def _source(pairs: str | None) -> str | Path | None:
    """PAIRS as `load` takes it; a pipe is read once and kept."""
    return None if pairs is None else pairs if not Path(pairs).exists() else at_rest(Path(pairs))


def records_output(path: Path, *keys: str) -> Output:
    """A file of records with these columns, unless they are given those of measured edits."""

    def ours(file: Path) -> bool:
        from uncanny.eval.common.inputs.table_files import columns
        from uncanny.eval.edits.columns import COLUMNS

        if file.suffix.lower() == ".csv":
            with file.open(encoding="utf-8", errors="replace", newline="") as lines:
                return set(keys or COLUMNS) <= set(next(csv.reader(lines), []))
        return set(keys or COLUMNS) <= columns(file)

    return Output(path, "a file of measured edits", ours)


@command.command("stress")
@click.argument("predictions", nargs=-1, type=Place(named=True), metavar="[NAME=]PREDICTIONS…")
@parameter_options(StressParameters)
@score_options("stress.html beside the first PREDICTIONS, or META")
def stress_command(predictions: tuple[str, ...], **values: Any) -> None:
    """Show which edits a detector misses: recall by size, source, method, model and what became what.

    PREDICTIONS are a run folder of `uncanny detect`, or JSON Lines, CSV or Parquet with `image` and `source`
    (generated or real), `score`, or both. NAME is the name of the detector. NAME@jpeg-85 (with one detector,
    jpeg-85 alone) are its predictions on copies that `uncanny edits compress` made, or on any others. META is
    what `uncanny edits measure` writes, or any table with `edited` and `original`, or with `image` and its
    true `source`. With --detector no PREDICTIONS are needed.

    \b
    Out of the box:
      uncanny edits measure scenes -o edits.jsonl
      uncanny detect scenes -m demo -o runs/d
      uncanny edits stress runs/d --meta edits.jsonl
    """
    from uncanny.edits import stress
    from uncanny.eval.common.anomalies.load import name_paths
    from uncanny.eval.edits.stress.result import COLUMNS, KEYS, PAGE

    named = name_paths(names_and_paths(predictions)) if predictions else {}
    paths = {name: at_rest(path) for name, path in named.items()}
    given = given_parameters(StressParameters, values)
    tables = [at_rest(path) for path in given.pop("meta")]
    beside = [*named.values(), *tables]
    files = ScoreFiles.of(values, in_folder_of(beside[0], PAGE))
    files.check(KEYS, COLUMNS, [*paths.values(), *tables])
    files.write_scores(stress(paths or None, meta=tables, **given, progress=not files.quiet))


@command.command("compress")
@click.argument("images", nargs=-1, required=True, type=Place(*BUNDLED))
@parameter_options(CompressParameters)
@json_option
@quiet_option
def compress_command(images: tuple[str, ...], as_json: bool, quiet: bool, **values: Any) -> None:
    """Write compressed copies of IMAGES, to test a detector on them.

    IMAGES are folders or files, or `scenes` or `large-scenes` (bundled). The copy of IMAGES/a/cat.png is
    DIR/jpeg-85/a/cat.jpg. Existing copies are kept, so the same command resumes. Run the detector on
    DIR/jpeg-85, and pass its predictions to `uncanny edits stress` as jpeg-85=PREDICTIONS.

    Exit code 1 if some images could not be read.
    """
    from uncanny.edits import compress

    result = compress(images, **_into(CompressParameters, values), progress=not quiet and not as_json)
    _tell(result, as_json, quiet)


@command.command("crop")
@click.argument("pairs", required=False, type=Place(*BUNDLED))
@parameter_options(CropParameters)
@json_option
@quiet_option
def crop_command(pairs: str | None, as_json: bool, quiet: bool, **values: Any) -> None:
    """Write crops of PAIRS for a detector that keep the edit (Semi-Truths, algorithm 1).

    A crop is in the middle if enough of the mask is in it, else elsewhere. An edit without a mask is cropped
    by what changed. DIR/pairs.jsonl names the crops. Run the detector on DIR, and pass `--meta
    DIR/pairs.jsonl` to `uncanny edits stress`.

    Exit code 1 if some edits could not be cropped.
    """
    from uncanny.edits import crop

    result = crop(_source(pairs), **_into(CropParameters, values), progress=not quiet and not as_json)
    _tell(result, as_json, quiet)


@command.command("masks")
@click.argument("masks", nargs=-1, required=True, type=PATH)
@parameter_options(MasksParameters)
@json_option
@quiet_option
def masks_command(masks: tuple[Path, ...], as_json: bool, quiet: bool, **values: Any) -> None:
    """Prepare MASKS for an inpainting model: widened, smoothed and blurred (Semi-Truths, appendix A.1).

    MASKS are folders or files; what is not black is masked. DIR/NAME.png is white where the model is to
    paint.

    Exit code 1 if some masks could not be read.
    """
    from uncanny.edits import masks as prepare

    result = prepare(masks, **_into(MasksParameters, values), progress=not quiet and not as_json)
    _tell(result, as_json, quiet)


def _into(kind: type[Parameters], values: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters of a command that fills a folder. Raises UsageError where it is something else."""
    given = given_parameters(kind, values)
    if given["out"].exists() and not given["out"].is_dir():
        raise UsageError(f"{given['out']} is not a folder", remedy="Pass a folder for the copies.")
    return given


def _tell(result: Any, as_json: bool, quiet: bool) -> NoReturn:
    """What was written into a folder, as JSON or in words, and the end."""
    if as_json:
        say_json(result.to_json())
    elif not quiet:
        say(str(result))
    end(failed=bool(result.failed))


@command.command("perturb")
@click.argument("texts", type=Place(*BUNDLED))
@asking_options(PerturbParameters)
@force_option
def perturb_command(texts: str, force: bool, **values: Any) -> None:
    """Ask a model to change captions and labels a little, more, or much.

    TEXTS is a JSON Lines file with `id` and `caption`, `label` or both per line, and optionally the image as
    `original`, such as an edits.jsonl; or `scenes` or `large-scenes` (bundled). Each text is changed once
    per magnitude; uncanny asks again for a text that fails the gates of `edits gate`. Results go to
    RUN/perturbations.jsonl as they come; the same command resumes the run. With several models, each gets its
    own run folder in RUN.

    Role: perturber.
    """
    from uncanny.eval.edits.run.forecast import perturb_forecast
    from uncanny.eval.edits.run.perturb import perturb_async

    _ask(PerturbParameters, texts, perturb_async, perturb_forecast, force, values)


@command.command("prompts")
@click.argument("texts", type=Place(*BUNDLED))
@asking_options(PromptsParameters)
@force_option
def prompts_command(texts: str, force: bool, **values: Any) -> None:
    """Ask a model to choose an object to paint over, and to write the prompt for it (SAOR).

    TEXTS is a JSON Lines file with `id`, `caption` and a list of `objects` per line, or the word `scenes` for
    the bundled set. The object must be in the list; uncanny asks again for a prompt that fails the gates of a
    caption. Results go to RUN/prompts.jsonl as they come; the same command resumes the run. With several
    models, each gets its own run folder in RUN.

    Role: writer.
    """
    from uncanny.eval.edits.run.forecast import prompts_forecast
    from uncanny.eval.edits.run.prompts import prompts_async

    _ask(PromptsParameters, texts, prompts_async, prompts_forecast, force, values)


def _ask(
    kind: type[Parameters], texts: str, run: Any, forecast: Any, force: bool, values: Mapping[str, Any]
) -> NoReturn:
    """What a model writes has no scores of its own."""
    from uncanny.cli.common.several import Asking, Scores, ask_models

    check = partial(check_run_folder, inputs=[Path(texts)], report=False, force=force)
    asking = Asking(kind, texts, run, forecast, check, WritingSummary, lambda _: Scores((), None))
    raise click.exceptions.Exit(ask_models(asking, values))


@dataclass(frozen=True, slots=True)
class WritingSummary(Summary[Any]):
    """Counts and texts that are missing. There is no page."""

    missing = "Without a text, or without a whole one:"

    def failures(self) -> list[str]:
        missing = [line for line in map(_why, self.run.records) if line is not None]
        where = f", in {self.run.path / self.run.record_file}"
        return failure_lines(self.missing, missing, where=where)


def _why(record: Any) -> str | None:
    """Why a record has no text; None where it has one."""
    if record.outcome == "ok":
        return None
    name = "/".join(
        str(getattr(record, each)) for each in ("id", "kind", "magnitude") if hasattr(record, each)
    )
    return f"{record.outcome:<9} {name}: {record.errors[0].message if record.errors else 'no reason given'}"
