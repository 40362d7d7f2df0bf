"""An audit at the terminal: annotate what has to be, score, and tell about it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import orjson

from uncanny.cli.audit_annotate import annotate_folders, forecast_folders
from uncanny.cli.audit_table import leaderboard
from uncanny.cli.outputs import STANDARD_OUTPUT, Output, check_outputs, page, scores_json, table_csv
from uncanny.cli.session import RUN_CODES, show_forecast
from uncanny.cli.terminal import harmless, say, say_json
from uncanny.errors import UsageError
from uncanny.eval.audit.guard import provenances
from uncanny.eval.audit.load import Loaded, load_generators
from uncanny.eval.audit.result import AuditResult
from uncanny.eval.audit.score import audit
from uncanny.eval.audit.score_csv import COLUMNS, audit_csv
from uncanny.eval.audit.score_json import audit_json
from uncanny.eval.audit.sources import Source, read_sources
from uncanny.records.jsonl import write_atomically


def audit_and_show(
    generators: Sequence[str],
    *,
    against: Sequence[str],
    root: Path | None,
    pair_by: str | None,
    worst: int,
    dry_run: bool,
    **options: Any,
) -> int:
    """Returns the exit code. Raises UsageError before anything is asked or written."""
    sources, others = read_sources(generators), read_sources(against)
    _check_against([source.name for source in others if source.kind == "images"], options)
    if not dry_run:
        read = [source.path for source in (*sources, *others) if source.style is None]
        check_outputs(_outputs(**options), read, force=options["force"])
    if dry_run:
        return _show_forecast(forecast_folders(sources, **options))

    def load(chosen: Sequence[Source]) -> tuple[Loaded, ...]:
        return load_generators(chosen, root=root, pair_by=pair_by, worst=worst)

    # What can be refused is refused before a model is asked.
    second = load(others)
    ready: Sequence[Source] = sources
    code = 0
    if folders := [source for source in sources if source.kind == "images"]:
        made = provenances(load([source for source in sources if source not in folders]))
        ready, code = annotate_folders(sources, made, **options)
        if code > RUN_CODES["failures"]:
            return code
    settings = ("resamples", "seed", "allow_mixed", "published")
    chosen = {name: options[name] for name in settings}
    result = audit(load(ready), second, pair_by=pair_by, **chosen)
    _write(result, **options)
    return max(code, RUN_CODES["failures"] if _left_out(result) else 0)


def _check_against(folders: Sequence[str], options: Mapping[str, Any]) -> None:
    if folders:
        raise UsageError(
            f"--against {folders[0]} holds images without annotations",
            remedy="Annotate them first, with `uncanny annotate` and the second model.",
        )
    if options["json_file"] == options["csv_file"] == STANDARD_OUTPUT:
        raise UsageError("--json and --csv cannot both go to standard output")


def _page(report: Path | None, out: Path | None, options: Mapping[str, Any]) -> Path | None:
    """Where the page goes. Whoever pipes figures on wants none unless one is named."""
    if options["no_report"] or (report is None and not _told(options)):
        return None
    return report or (out or Path()) / "audit.html"


def _told(options: Mapping[str, Any]) -> bool:
    """Whether the terminal gets words: whoever pipes figures on wants nothing else among them."""
    return not options["quiet"] and STANDARD_OUTPUT not in (options["json_file"], options["csv_file"])


def _outputs(
    *, json_file: Path | None, csv_file: Path | None, report: Path | None, out: Path | None, **options: Any
) -> list[Output | None]:
    target = _page(report, out, {**options, "json_file": json_file, "csv_file": csv_file})
    named = [None if file == STANDARD_OUTPUT else file for file in (json_file, csv_file)]
    return [
        None if named[0] is None else scores_json(named[0], ("generators", "order")),
        None if named[1] is None else table_csv(named[1], COLUMNS),
        None if target is None else page(target, makes_folder=out is not None),
    ]


def _left_out(result: AuditResult) -> bool:
    boards = [result.board, *([result.against] if result.against else [])]
    return any(score.left_out.total for board in boards for score in board.generators.values())


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
    if json_file == STANDARD_OUTPUT:
        say_json(audit_json(result))
    elif json_file is not None:
        write_atomically(json_file, [orjson.dumps(audit_json(result), option=orjson.OPT_INDENT_2)])
    if csv_file == STANDARD_OUTPUT:
        say(audit_csv(result).removesuffix("\n"))
    elif csv_file is not None:
        write_atomically(csv_file, [audit_csv(result).encode()])
    chosen = {"no_report": no_report, "quiet": quiet, "json_file": json_file, "csv_file": csv_file}
    if _told(chosen):
        say(leaderboard(result))
    target = _page(report, out, chosen)
    if target is not None:
        from uncanny.eval.audit.report import write_audit_page

        write_audit_page(result, target)
        if _told(chosen):
            say(harmless(f"Report   {target}"))


def _show_forecast(found: Mapping[str, dict[str, Any]]) -> int:
    from uncanny.cli.summary import forecast_text

    if not found:
        say("All generators have their annotations; nothing would be asked.")
    codes = [show_forecast(each, forecast_text, name=name) for name, each in found.items()]
    return max(codes, default=0)
