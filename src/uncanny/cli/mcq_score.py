"""`uncanny mcq score` at the terminal, and what `uncanny mcq run` says in the end."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import orjson

from uncanny.cli.annotate import MOST_FAILURES, spending_lines
from uncanny.cli.inputs import at_rest
from uncanny.cli.outputs import STANDARD_OUTPUT, check_outputs, page, scores_json
from uncanny.cli.several import Scores
from uncanny.cli.terminal import harmless, layout, say, say_json
from uncanny.eval.mcq.data.answers import ANSWERS_FILE
from uncanny.eval.mcq.data.items import Answer, ItemSet
from uncanny.eval.mcq.run import McqRun, McqTask
from uncanny.eval.mcq.score.score import score
from uncanny.records.jsonl import write_atomically
from uncanny.runs.run import RunEnd


def score_and_show(
    items: ItemSet,
    answers: Sequence[Path],
    *,
    human: Sequence[Path],
    report: Path | None,
    no_report: bool,
    json_file: Path | None,
    published: bool,
    force: bool,
    parser: Literal["exact", "lenient"],
    resamples: int,
    seed: int,
    baselines: bool,
    require_complete: bool,
) -> None:
    """Score as `score` does; print a table, write JSON and page. Raises UsageError."""
    piped = json_file == STANDARD_OUTPUT
    target = None if no_report or piped else report or _beside(answers[0]) / "mcq.html"
    check_outputs(
        [
            None
            if json_file is None or piped
            else scores_json(json_file, ("n_images", "splits", "patterns")),
            None if target is None else page(target),
        ],
        [items.file, *answers, *human],
        force=force,
    )
    scores = score(
        items,
        [*map(at_rest, answers)],
        human=[*map(at_rest, human)],
        parser=parser,
        resamples=resamples,
        seed=seed,
        baselines=baselines,
        require_complete=require_complete,
    )
    if piped:
        say_json(scores.to_json())
        return
    if json_file is not None:
        write_atomically(json_file, [orjson.dumps(scores.to_json(), option=orjson.OPT_INDENT_2)])
    say(scores.table(published=published).text())
    if target is not None:
        drawn = _beside(answers[0]) / "overlays"
        scores.report(target, overlays=drawn if drawn.is_dir() else None)
        say(harmless(f"Report   {target}"))


def _beside(answers: Path) -> Path:
    """The folder where the page goes when nobody says, and where a run keeps its drawn boxes."""
    return answers if answers.is_dir() else answers.parent


def scores_of_runs(items: ItemSet, named: str, folders: Sequence[Path]) -> Scores:
    """The table and the JSON of several runs of the same items, which the command line calls `named`.

    Nothing where no run has an answer.
    """
    files = [folder / ANSWERS_FILE for folder in folders]
    if not any(file.is_file() and file.stat().st_size for file in files):
        return Scores((), None)
    scores = score(items, [file for file in files if file.is_file()])
    command = shlex.join(["uncanny", "mcq", "score", named, *map(str, folders)])
    return Scores([*str(scores).splitlines(), f"Score    {command}"], scores.to_json())


@dataclass(frozen=True, slots=True)
class McqSummary:
    """Counts, failures, and what to do next. There is no page: `uncanny mcq score` writes it."""

    task: McqTask
    items: str

    def page(self) -> Path | None:
        return None

    def as_json(self, end: RunEnd, page: Path | None) -> dict[str, Any]:  # noqa: ARG002  there is none
        return McqRun(self.task.folder.path, end).to_json()

    def text(self, end: RunEnd, page: Path | None) -> str:  # noqa: ARG002
        run, progress = McqRun(self.task.folder.path, end), end.progress
        left = progress.total - progress.done
        counts = ", ".join(f"{progress.statuses[kind]:,} {kind}" for kind in progress.kinds)
        answers = run.path / ANSWERS_FILE
        return layout(
            [
                *_without_answer(run.answers),
                f"Asked    {progress.total:,}: {counts}" + (f", {left:,} not done" if left else ""),
                *spending_lines(end),
                "",
                f"Answers  {answers}",
                f"Score    uncanny mcq score {self.items} {answers}",
            ]
        )


def _without_answer(answers: Iterable[Answer]) -> list[str]:
    """The first of the questions whose call failed, with the reason."""
    failed = [answer for answer in answers if answer.outcome == "error"]
    lines = [f"  {answer.id} {answer.question}: {answer.error}" for answer in failed[:MOST_FAILURES]]
    more = [f"  … and {len(failed) - MOST_FAILURES:,} more"] if len(failed) > MOST_FAILURES else []
    return ["Without an answer:", *lines, *more, ""] if failed else []
