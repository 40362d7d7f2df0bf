"""Realism scores at the terminal."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path

import orjson

from uncanny.cli.outputs import STANDARD_OUTPUT, check_outputs, page, scores_json, table_csv
from uncanny.cli.several import Scores
from uncanny.cli.terminal import harmless, layout, say, say_json
from uncanny.eval.common.estimates import Share
from uncanny.eval.common.published import CAVEATS
from uncanny.eval.realism.data import VERDICTS, load_verdicts
from uncanny.eval.realism.humans import HUMAN_LABELS, load_humans
from uncanny.eval.realism.report import published_humans
from uncanny.eval.realism.score import (
    COLUMNS,
    TWO_WAY,
    GroupScore,
    RealismScore,
    SetScore,
    report_csv,
    report_json,
    score_verdicts,
)
from uncanny.graphs.ugda_cases import CASES, LABELS
from uncanny.records.jsonl import write_atomically

NAME_WIDTH = 30
COLUMN_WIDTH = 26
CASE_WORDS = {
    1: "follows the position",
    2: "prefers the edit",
    3: "both, then the edit",
    4: "cannot tell",
}
Row = tuple[str, list[str]]


def score_and_show(
    files: Sequence[Path],
    *,
    json_file: Path | None,
    csv_file: Path | None,
    human: Sequence[Path],
    published: bool,
    report: Path | None,
    no_report: bool,
    root: Path | None,
    resamples: int,
    seed: int,
    force: bool,
) -> None:
    """Score, write what was asked for, print tables. Raises UsageError."""
    piped = json_file == STANDARD_OUTPUT
    # Whoever pipes figures on wants no page unless one is named.
    target = None if no_report or (report is None and piped) else report or beside(files[0])
    check_outputs(
        [
            None
            if json_file is None or piped
            else scores_json(json_file, ("labels", "cases", "position_bias")),
            None if csv_file is None else table_csv(csv_file, COLUMNS),
            None if target is None else page(target),
        ],
        [*files, *human],
        force=force,
    )
    humans = load_humans(human) if human else None
    score = score_verdicts(load_verdicts(files), humans=humans, resamples=resamples, seed=seed)
    if csv_file is not None:
        write_atomically(csv_file, [report_csv(score).encode()])
    if piped:
        say_json(report_json(score))
    elif json_file is not None:
        write_atomically(json_file, [orjson.dumps(report_json(score), option=orjson.OPT_INDENT_2)])
    if not piped:
        say(tables(score, published=published))
    if target is not None:
        from uncanny.eval.realism.report import write_realism_page

        write_realism_page(score, target, root=root, published=published)
        if not piped:
            say(harmless(f"Report   {target}"))


def scores_of_runs(folders: Sequence[Path]) -> Scores:
    """The table and the JSON of several runs; nothing where none has a verdict."""
    files = [folder / VERDICTS for folder in folders]
    judged = [file for file in files if file.is_file() and file.stat().st_size]
    if not judged:
        return Scores((), None)
    score = score_verdicts(load_verdicts(judged))
    command = shlex.join(["uncanny", "realism", "score", *(str(file.parent) for file in judged)])
    lines = [*tables(score, published=False).splitlines(), f"Score    {command}"]
    return Scores(lines, report_json(score))


def beside(verdicts: Path) -> Path:
    """Where the page goes when nobody says."""
    return (verdicts if verdicts.is_dir() else verdicts.parent) / "realism.html"


def tables(score: RealismScore, *, published: bool) -> str:
    """A column a set; then each set's groups, and people where they were asked."""
    sets = list(score.sets.values())
    rows = [*_overall_rows([each.overall for each in sets])]
    lines = [_line("", [_short(name) for name in score.sets]), *(_line(*row) for row in rows)]
    for name, found in score.sets.items():
        if found.groups:
            lines += ["", *_group_lines(name if len(sets) > 1 else "", found)]
    if published or any(found.human for found in sets):
        lines += ["", *_human_lines(score, published=published)]
    return layout([*lines, "", *_notes(score, published=published)])


def _overall_rows(columns: Sequence[GroupScore]) -> Iterator[Row]:
    yield "pairs", [f"{one.n:,}" for one in columns]
    for label in LABELS:
        yield label, [_share(one.labels[label]) for one in columns]
        if label == "deceiving":
            for case in CASES:
                yield f"  {case} {CASE_WORDS[case]}", [_share(one.cases[case]) for one in columns]
    yield "two-way reading", [""] * len(columns)
    for side in TWO_WAY[:2]:
        yield f"  {side}", [_share(one.two_way[side]) for one in columns]
    yield "second checks", [f"{one.position_bias.checks:,}" for one in columns]
    for place in ("first", "second", "both"):
        yield f"  chose {place}", [_place(one, place) for one in columns]
    yield "  position bias, p", [_p(one.position_bias.p_value) for one in columns]
    yield "questions asked", [f"{one.calls.questions:,}" for one in columns]
    yield "  saved by the early exit", [f"{one.calls.saved:,}" for one in columns]
    yield "calls with repeats", [_whole(one.calls.made) for one in columns]


def _group_lines(name: str, found: SetScore) -> Iterator[str]:
    heads = ["pairs", *(label.replace("_", "-") for label in LABELS), "bias p"]
    yield f"{(name or 'group')[:NAME_WIDTH]:<{NAME_WIDTH}}" + "".join(f"{head:>15}" for head in heads)
    for group, figures in found.groups.items():
        cells = [f"{figures.n:,}", *(_percent(figures.labels[label]) for label in LABELS)]
        cells.append(_p(figures.position_bias.p_value))
        yield f"{group[:NAME_WIDTH]:<{NAME_WIDTH}}" + "".join(f"{cell:>15}" for cell in cells)


def _human_lines(score: RealismScore, *, published: bool) -> Iterator[str]:
    """People's accuracy and IoU by label, a column a set, the published figures last."""
    asked = {name: found.human for name, found in score.sets.items() if found.human is not None}
    paper = published_humans() if published else {}
    yield _line("people", [*map(_short, asked), *(["published"] if published else [])])
    if asked:
        yield _line("  answers", [f"{one.answers:,}" for one in asked.values()])
    for words, key in (("accuracy", "acc"), ("IoU", "iou")):
        for label in HUMAN_LABELS:
            cells = [_mean(getattr(one, words.lower())[label]) for one in asked.values()]
            cells += [f"{paper[f'{key}_{label}']:.1f}"] if published else []
            yield _line(f"  {words} {label}", cells)


def _notes(score: RealismScore, *, published: bool) -> Iterator[str]:
    if published:
        yield CAVEATS["inpainting_scores"]
    for name, found in score.sets.items():
        if found.verdicts.unfinished is not None:
            yield f"{name}: {found.verdicts.unfinished}; the same `uncanny realism run` goes on"
        outcomes = found.overall.outcomes
        told = [f"{count:,} {kind}" for kind, count in outcomes.items() if kind != "judged" and count]
        if told:
            yield f"{name}: {', '.join(told)}; without a label, and in no share but that of undetermined"
        if found.human is not None and found.human.unused:
            yield f"{name}: people's answers about images without a verdict, left out: {found.human.unused:,}"
    intervals = " with 95 % intervals (Wilson)" if score.resamples else ""
    yield f"Percent{intervals}. Two-way: intermediate counts as non-deceiving."
    if any(found.human is not None for found in score.sets.values()) and score.resamples:
        yield f"Of IoU, and of several answers about an image: by {score.resamples:,} resamples of images."


def _line(name: str, cells: Sequence[str]) -> str:
    return f"{name:<{NAME_WIDTH}}" + "".join(f"{cell:>{COLUMN_WIDTH}}" for cell in cells)


def _short(name: str) -> str:
    return name if len(name) < COLUMN_WIDTH else f"…{name[-COLUMN_WIDTH + 2 :]}"


def _share(share: Share) -> str:
    interval = (
        "" if share.interval is None else " [{:.0f}, {:.0f}]".format(*(100 * e for e in share.interval))
    )
    return f"{share.counts:,}  {_percent(share)}{interval}"


def _mean(share: Share) -> str:
    interval = (
        "" if share.interval is None else " [{:.0f}, {:.0f}]".format(*(100 * e for e in share.interval))
    )
    return f"{_percent(share)}{interval}"


def _percent(share: Share) -> str:
    return "–" if share.value is None else f"{100 * share.value:.1f}"


def _place(figures: GroupScore, place: str) -> str:
    bias = figures.position_bias
    count = getattr(bias, place)
    return f"{count:,}  {100 * count / bias.checks:.1f}" if bias.checks else "–"


def _p(value: float | None) -> str:
    return "–" if value is None else "< 0.001" if value < 0.001 else f"{value:.3f}"


def _whole(value: int | None) -> str:
    return "?" if value is None else f"{value:,}"
