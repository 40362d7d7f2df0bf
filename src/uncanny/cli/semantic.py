"""`uncanny semantic`.

What prediction files are called in a report.

How many images are scored, live on a terminal.

Semantic scores at the terminal: read, score, and tell."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import click
import orjson

from uncanny.cli.command import Command
from uncanny.cli.inputs import at_rest
from uncanny.cli.options import RESAMPLES, SEED, Real, Whole
from uncanny.cli.outputs import STANDARD_OUTPUT, check_outputs, force_option, page, rows_jsonl, scores_json
from uncanny.cli.semantic_table import score_text
from uncanny.cli.session import RUN_CODES
from uncanny.cli.terminal import harmless, on_terminal, say, say_json
from uncanny.errors import UsageError
from uncanny.eval.semantic.data.files import load_anomalies, load_truth
from uncanny.eval.semantic.data.images import AnomalyFile, pair_images
from uncanny.eval.semantic.score.result import ScoredPair, SemanticScore, image_json, semantic_json
from uncanny.eval.semantic.score.score import OnImage, ScoreSettings, score_semantic
from uncanny.eval.semantic.similarity.base import MeasureOptions, Similarity, open_measure
from uncanny.records.jsonl import write_atomically
from uncanny.records.run_folder import RunFolder

PATH = click.Path(path_type=Path)


def _thresholds(_ctx: click.Context, _option: click.Parameter, value: str) -> tuple[float, ...]:
    try:
        found = tuple(float(part) for part in value.split(","))
    except ValueError:
        found = ()
    if not found or not all(0 <= threshold <= 1 for threshold in found):
        raise click.BadParameter(f"{value!r} is no list of numbers from 0 to 1 such as 0.7,0.8,0.9")
    return found


@click.command("semantic", cls=Command)
@click.argument("predictions", nargs=-1, required=True, metavar="[NAME=]PRED…")
@click.option(
    "--truth", required=True, metavar="TRUTH", help="The true anomalies; `scenes` is the bundled set's."
)
@click.option(
    "--json", "json_file", type=PATH, metavar="FILE", help="Write every figure; - for standard output."
)
@click.option(
    "--per-image", type=PATH, metavar="FILE", help="Write an image a line, with every match, as JSON Lines."
)
@click.option(
    "--similarity",
    type=click.Choice(["bertscore", "chrf"]),
    default="bertscore",
    show_default=True,
    help="How texts are compared. chrf needs no weights and compares with no published figure.",
)
@click.option("--backbone", help="Name or folder of BERTScore's model. [default: distilbert-base-uncased]")
@click.option("--num-layers", type=Whole(1, 1_000), help="Layer of the backbone. [default: the usual one]")
@click.option("--device", help="cpu, cuda, cuda:1, mps. [default: the fastest there is]")
@click.option("--batch-tokens", type=Whole(1, 10**9), help="Tokens a forward pass. [default: by device]")
@click.option("--keep-all", is_flag=True, help="Keep embeddings of predicted texts on disk too.")
@click.option(
    "--thresholds",
    default="0.7,0.8,0.9",
    show_default=True,
    callback=_thresholds,
    help="From which similarity on a match counts.",
)
@click.option(
    "--lambda",
    "balance",
    type=Real(0, 1),
    default=0.5,
    show_default=True,
    help="The share of the phenomenon in the view full; the rest is the reasoning's.",
)
@click.option(
    "--resamples",
    type=RESAMPLES,
    default=10_000,
    show_default=True,
    help="Bootstrap resamples over images.",
)
@click.option("--seed", type=SEED, default=0, show_default=True, help="Same seed, same intervals.")
@click.option("--published", is_flag=True, help="Show the published models beside yours.")
@click.option(
    "--report", type=PATH, metavar="FILE", help="Where the page goes. [default: semantic.html beside PRED]"
)
@click.option("--no-report", is_flag=True, help="Write no page.")
@force_option
@click.option("-q", "--quiet", is_flag=True, help="Show no progress.")
def command(predictions: tuple[str, ...], **options: Any) -> None:
    """Score predicted anomalies against the true ones, by meaning: SemAP, SemF1, cSemAP, cSemF1.

    PRED is a run folder, records as JSON Lines, or one JSON object with images as keys and, as values, their
    anomalies or a model's plain text. TRUTH is the same. Both protocols are reported.

    \b
    Out of the box:
      uncanny demo -o runs/demo
      uncanny semantic runs/demo --truth scenes --similarity chrf

    Exit code 1 if there are records that failed; they are in no score.
    """

    raise click.exceptions.Exit(score_and_show(predictions, **options))


RECORDS = "annotations.jsonl"


def named_predictions(arguments: Sequence[str]) -> dict[str, Path]:
    """Paths by their names: the given one, else a run's model, else that of the file or folder.

    Derived names that are the same get the folder's name behind them, or else become the paths. Raises
    UsageError for two files of one name.
    """
    given = [_split(argument) for argument in arguments]
    derived = [name or _name(path) for name, path in given]
    for tell_apart in (_with_folder, _whole_path):
        counts = Counter(derived)
        derived = [
            name if own or counts[name] == 1 else tell_apart(name, path)
            for name, (own, path) in zip(derived, given, strict=True)
        ]
    found: dict[str, Path] = {}
    for key, (_, path) in zip(derived, given, strict=True):
        if key in found:
            raise UsageError(
                f"two predictions are called {key!r}: {found[key]} and {path}",
                remedy="Give names of their own: NAME=PATH.",
            )
        found[key] = path
    return found


def _split(argument: str) -> tuple[str | None, Path]:
    name, equals, path = argument.partition("=")
    if not equals or Path(argument).exists():
        return None, Path(argument)
    if not name.strip() or not path:
        raise UsageError(f"{argument!r} has no name or no path", remedy="Write NAME=PATH.")
    return name.strip(), Path(path)


def _name(path: Path) -> str:
    if not path.is_dir() and path.name != RECORDS:
        return path.stem
    folder = _folder(path)
    manifest = RunFolder(folder).read_manifest()
    return (manifest and manifest.model) or folder.name


def _with_folder(name: str, path: Path) -> str:
    return f"{name} ({_folder(path).name})"


def _whole_path(_name: str, path: Path) -> str:
    return str(path)


def _folder(path: Path) -> Path:
    return path.resolve() if path.is_dir() else path.resolve().parent


@contextmanager
def image_progress(total: int, *, enabled: bool) -> Iterator[OnImage]:
    """What is to be called after each image; silent where nobody watches."""
    if not enabled or not on_terminal():
        yield lambda _name, _scored: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("images"), BarColumn(24), MofNCompleteColumn(), TimeRemainingColumn())
    told = TextColumn("{task.fields[name]}", markup=False)
    with Progress(*columns, told, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("images", total=total, name="")

        def show(name: str, _scored: ScoredPair) -> None:
            bar.update(task, advance=1, name=harmless(name))

        yield show


def score_and_show(
    predictions: Sequence[str],
    *,
    truth: str,
    json_file: Path | None,
    per_image: Path | None,
    similarity: str,
    thresholds: tuple[float, ...],
    balance: float,
    resamples: int,
    seed: int,
    published: bool,
    report: Path | None,
    no_report: bool,
    quiet: bool,
    force: bool,
    **measure_options: Any,
) -> int:
    """Returns the exit code. Raises UsageError before anything is scored or written."""
    settings = ScoreSettings(thresholds, balance, resamples, seed)
    told = json_file != STANDARD_OUTPUT
    named = {name: at_rest(path) for name, path in named_predictions(predictions).items()}
    # Whoever pipes figures on gets a page only where one is asked for.
    target = None if no_report or not (told or report) else report or beside(next(iter(named.values())))
    check_outputs(
        [
            None if json_file is None or not told else scores_json(json_file, ("predictions", "signature")),
            None if per_image is None else rows_jsonl(per_image, ("predictions", "n_pred", "n_true")),
            None if target is None else page(target),
        ],
        [*named.values(), Path(truth)],
        force=force,
    )
    true = load_truth(truth)
    files = _checked(named, true)
    measure = open_measure(similarity, MeasureOptions(**measure_options))
    result = _scored(files, true, measure, settings, per_image=per_image, quiet=quiet)
    _write_json(result, json_file)
    if told:
        say(score_text(result, published=published))
    if target is not None:
        from uncanny.eval.semantic.report.page import write_semantic_page

        write_semantic_page(result, target, published=published)
        if told:
            say(harmless(f"Report   {target}"))
    return RUN_CODES["failures"] if _failures(result) else 0


def _scored(
    files: Mapping[str, Callable[[], AnomalyFile]],
    truth: AnomalyFile,
    measure: Similarity,
    settings: ScoreSettings,
    *,
    per_image: Path | None,
    quiet: bool,
) -> SemanticScore:
    with ExitStack() as stack:
        tellers = [stack.enter_context(image_progress(len(truth.images) * len(files), enabled=not quiet))]
        if per_image is not None:
            tellers.append(stack.enter_context(_rows(per_image)))

        def tell(name: str, scored: ScoredPair) -> None:
            for teller in tellers:
                teller(name, scored)

        return score_semantic(files, truth, measure, settings, on_image=tell)


def _write_json(result: SemanticScore, json_file: Path | None) -> None:
    if json_file == STANDARD_OUTPUT:
        say_json(semantic_json(result))
    elif json_file is not None:
        write_atomically(json_file, [orjson.dumps(semantic_json(result), option=orjson.OPT_INDENT_2)])


def beside(predictions: Path) -> Path:
    """Where the page goes when nobody says."""
    return (predictions if predictions.is_dir() else predictions.parent) / "semantic.html"


def _checked(named: Mapping[str, Path], truth: AnomalyFile) -> dict[str, Callable[[], AnomalyFile]]:
    """Every file opened once, so that all is known to be sound before the long work begins.

    One file is kept; of several none is, and each is read again when its turn comes.
    """
    files: dict[str, Callable[[], AnomalyFile]] = {}
    for name, path in named.items():
        file = load_anomalies(path, "predictions")
        pair_images(file, truth)
        if len(named) == 1:
            files[name] = partial(_held, file)
        else:
            files[name] = partial(load_anomalies, path, "predictions")
    return files


def _held(file: AnomalyFile) -> AnomalyFile:
    return file


@contextmanager
def _rows(path: Path) -> Iterator[OnImage]:
    """A file that gets a line an image, and its name only when it is whole."""
    temporary = path.with_name(f".{path.name}.tmp")
    try:
        with temporary.open("wb") as file:

            def write(name: str, scored: ScoredPair) -> None:
                file.write(orjson.dumps(image_json(name, scored)) + b"\n")

            yield write
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def _failures(result: SemanticScore) -> bool:
    """Whether any record of a prediction or of the truth is no finished answer."""
    scores = result.predictions.values()
    return any(score.left_out.truth or any(score.left_out.unfinished.values()) for score in scores)
