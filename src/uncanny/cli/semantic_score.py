"""Semantic scores at the terminal: read, score, and tell."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import orjson

from uncanny.cli.inputs import at_rest
from uncanny.cli.outputs import STANDARD_OUTPUT, check_outputs, page, rows_jsonl, scores_json
from uncanny.cli.semantic_names import named_predictions
from uncanny.cli.semantic_progress import image_progress
from uncanny.cli.semantic_table import score_text
from uncanny.cli.session import RUN_CODES
from uncanny.cli.terminal import harmless, say, say_json
from uncanny.eval.semantic.anomaly_file import load_anomalies, load_truth
from uncanny.eval.semantic.pair_images import pair_images
from uncanny.eval.semantic.result import SemanticScore
from uncanny.eval.semantic.score import ScoreSettings, score_semantic
from uncanny.eval.semantic.score_file import OnImage
from uncanny.eval.semantic.score_image import ScoredPair
from uncanny.eval.semantic.score_json import image_json, semantic_json
from uncanny.eval.semantic.scored_image import AnomalyFile
from uncanny.eval.semantic.similarity import MeasureOptions, Similarity, open_measure
from uncanny.records.jsonl import write_atomically


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
        from uncanny.eval.semantic.report import write_semantic_page

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
