"""Scores at the terminal.

What an MCQ run says of itself in the end."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from uncanny.cli.annotate import MOST_FAILURES, spending_lines
from uncanny.cli.inputs import at_rest
from uncanny.cli.outputs import STANDARD_OUTPUT, check_outputs, page, scores_json
from uncanny.cli.several import Scores
from uncanny.cli.terminal import harmless, layout, say, say_json
from uncanny.errors import UsageError
from uncanny.eval.common.estimates import Share
from uncanny.eval.mcq.data.items import Answer, Item
from uncanny.eval.mcq.data.load import load_answers, load_predictions
from uncanny.eval.mcq.report.page import published_caveat, published_scores
from uncanny.eval.mcq.run import McqTask
from uncanny.eval.mcq.score.aggregate import as_rater
from uncanny.eval.mcq.score.result import SetScore
from uncanny.eval.mcq.score.score import baseline_answers, report_json, score_set
from uncanny.records.jsonl import read_records, write_atomically
from uncanny.records.run_folder import RunFolder
from uncanny.runs.run import RunEnd

# Column: heading, split, score.
COLUMNS = (
    ("Q1 recall", "artifact", "q1"),
    ("Q1 spec.", "ref_real", "q1"),
    ("Q2", "artifact", "q2"),
    ("Q3", "artifact", "q3"),
    ("Q4", "artifact", "q4"),
    ("art. Q1-4", "artifact", "all_q1_4"),
    ("real Q1-4", "ref_real", "all_q1_4"),
    ("all Q1-4", "overall", "all_q1_4"),
    ("all Q2-4", "overall", "all_q2_4"),
)
NAME_WIDTH = 28
MOST_NAMED = 5


def score_and_show(
    items: Sequence[Item],
    items_file: Path,
    files: Sequence[Path],
    *,
    root: Path | None,
    report: Path | None,
    no_report: bool,
    json_file: Path | None,
    parser: Any,
    resamples: int,
    seed: int,
    baselines: bool,
    published: bool,
    require_complete: bool,
    human: Sequence[Path],
    force: bool,
) -> None:
    """Score, print a table, write JSON and page. Raises UsageError."""
    piped = json_file == STANDARD_OUTPUT
    target = None if no_report or piped else report or beside(files[0])
    check_outputs(
        [
            None
            if json_file is None or piped
            else scores_json(json_file, ("n_images", "splits", "patterns")),
            None if target is None else page(target),
        ],
        [items_file, *files, *human],
        force=force,
    )
    answers = read_answers(files)
    if baselines:
        answers += [*baseline_answers(items, "random", seed=seed), *baseline_answers(items, "always-E/no")]
    for file in human:
        answers += as_rater(read_answers([file]), file.stem)
    result = score_set(
        items, answers, resamples=resamples, seed=seed, parser=parser, require_complete=require_complete
    )
    if piped:
        say_json(report_json(result, items, answers, parser))
        return
    if json_file is not None:
        write_atomically(
            json_file, [orjson.dumps(report_json(result, items, answers, parser), option=orjson.OPT_INDENT_2)]
        )
    say(table(result, published=published_caveat(items) if published else None))
    if target is not None:
        from uncanny.eval.mcq.report.page import write_mcq_report

        drawn = beside(files[0]).with_name("overlays")
        write_mcq_report(
            result,
            items,
            answers,
            items_file=items_file,
            root=root,
            out=target,
            overlays=drawn if drawn.is_dir() else None,
        )
        say(harmless(f"Report   {target}"))


def scores_of_runs(items: Sequence[Item], named: str, folders: Sequence[Path]) -> Scores:
    """The table and the JSON of several runs of the same items, which the command line calls `named`.

    Nothing where no run has an answer.
    """
    files = [folder / "answers.jsonl" for folder in folders]
    answers = load_answers([file for file in files if file.is_file()])
    if not answers:
        return Scores((), None)
    result = score_set(items, answers)
    command = shlex.join(["uncanny", "mcq", "score", named, *map(str, folders)])
    return Scores(
        [*table(result).splitlines(), f"Score    {command}"],
        report_json(result, items, answers, "exact"),
    )


def beside(answers: Path) -> Path:
    """Where the page goes when nobody says."""
    return (answers if answers.is_dir() else answers.parent) / "mcq.html"


def read_answers(files: Sequence[Path]) -> list[Answer]:
    """Answers from record files, prediction files and run folders. Raises UsageError."""
    records: list[Path] = []
    answers: list[Answer] = []
    for file in map(at_rest, files):
        if file.is_dir():
            RunFolder(file).check_links()
            records.append(file / "answers.jsonl")
        elif _is_predictions(file):
            answers += load_predictions(file, model=file.stem)
        else:
            records.append(file)
    return [*load_answers(records), *answers] if records else answers


def _is_predictions(file: Path) -> bool:
    try:
        with file.open("rb") as lines:
            first = orjson.loads(next((line for line in lines if line.strip()), b"{}"))
    except OSError as error:
        raise UsageError(f"{file} cannot be read: {error.strerror}", remedy="Name answer files.") from None
    except orjson.JSONDecodeError:
        return False
    return isinstance(first, dict) and "row_id" in first


def table(result: SetScore, *, published: str | None = None) -> str:
    """Percent, a line a model, with what has to be known before they are believed.

    `published` is in what else the published rows differ; None leaves them out.
    """
    head = f"{'':<{NAME_WIDTH}}" + "".join(f"{name:>11}" for name, _, _ in COLUMNS)
    lines = [head]
    for name, scores in result.models.items():
        values = [scores.splits.get(split, {}).get(key) for _, split, key in COLUMNS]
        lines.append(f"{name[:NAME_WIDTH]:<{NAME_WIDTH}}" + "".join(f"{_percent(one):>11}" for one in values))
    if published is not None:
        lines.append("published:")
        for row in published_scores()["main"]:
            values = [row.get(f"{split}_{key}") for _, split, key in COLUMNS]
            shown = "".join(f"{'' if one is None else f'{one:.1f}':>11}" for one in values)
            lines.append(f"{row['model'][:NAME_WIDTH]:<{NAME_WIDTH}}{shown}")
    lines += ["", *([published] if published is not None else []), *_notes(result)]
    return layout(lines)


def _notes(result: SetScore) -> list[str]:
    notes = []
    for name, scores in result.models.items():
        missing, invalid = sum(scores.missing.values()), sum(scores.invalid.values())
        if missing:
            reasons = ", ".join(f"{count} {reason}" for reason, count in scores.missing.items())
            notes.append(
                f"{name}: {missing} answers are missing ({reasons}) of {scores.asked:,}, and in no share"
            )
        if scores.changed:
            notes.append(f"{name}: {changed_words(scores.changed)}")
        if invalid:
            refused = sum(scores.refused.values())
            notes.append(f"{name}: {invalid} invalid answers count as wrong, {refused} of them refusals")
    if result.oracle is not None and len(result.models) > 1:
        notes.append(
            f"At least one model gets all four right on {_percent(result.oracle)} % of artifact images"
        )
    where = " 95 % intervals are in the JSON and the report." if result.resamples else ""
    return [*notes, f"Percent.{where}"]


def changed_words(changed: Sequence[tuple[str, str]]) -> str:
    """Which answers are no answers any more, and what to do about it."""
    answers = "1 answer was" if len(changed) == 1 else f"{len(changed):,} answers were"
    named = ", ".join(f"{item} {question}" for item, question in changed[:MOST_NAMED])
    more = f", and {len(changed) - MOST_NAMED:,} more in the JSON" if len(changed) > MOST_NAMED else ""
    return (
        f"{answers} given before the question was changed, and left out ({named}{more}). "
        "The same `uncanny mcq run` asks again; or score against the items as they were."
    )


def _percent(share: Share | None) -> str:
    if share is None or share.value is None:
        return "–"
    return f"{100 * share.value:.1f}"


@dataclass(frozen=True, slots=True)
class McqSummary:
    """Counts, failures, and what to do next. There is no page: `uncanny mcq score` writes it."""

    task: McqTask
    items: str

    @property
    def answers(self) -> Path:
        return self.task.folder.path / "answers.jsonl"

    def page(self) -> Path | None:
        return None

    def as_json(self, end: RunEnd, page: Path | None) -> dict[str, Any]:
        return {
            "run": str(self.task.folder.path),
            "state": end.manifest.get("state"),
            "answers": str(self.answers),
            "report": None if page is None else str(page),
            "totals": end.manifest.get("totals"),
            "failures": [
                {"id": answer.id, "question": answer.question, "error": answer.error}
                for answer in read_records(self.answers, Answer)
                if answer.outcome == "error"
            ],
            "warnings": end.progress.warnings,
            "error": None if end.error is None else str(end.error),
        }

    def text(self, end: RunEnd, page: Path | None) -> str:  # noqa: ARG002  one protocol for all runs
        progress = end.progress
        left = progress.total - progress.done
        counts = ", ".join(f"{progress.statuses[kind]:,} {kind}" for kind in progress.kinds)
        lines = [f"Asked    {progress.total:,}: {counts}" + (f", {left:,} not done" if left else "")]
        failed = [
            f"  {answer.id} {answer.question}: {answer.error}"
            for answer in read_records(self.answers, Answer)
            if answer.outcome == "error"
        ]
        if failed:
            lines = ["Without an answer:", *failed[:MOST_FAILURES], *_more(failed), "", *lines]
        return layout(
            [
                *lines,
                *spending_lines(end),
                "",
                f"Answers  {self.answers}",
                f"Score    uncanny mcq score {self.items} {self.answers}",
            ]
        )


def _more(failed: list[str]) -> list[str]:
    return [f"  … and {len(failed) - MOST_FAILURES:,} more"] if len(failed) > MOST_FAILURES else []
