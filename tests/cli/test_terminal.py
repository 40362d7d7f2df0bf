"""What reaches the terminal: nothing that it would obey, in any encoding, with any stream closed."""

from __future__ import annotations

import ast
import os
import shlex
import subprocess
import sys
import unicodedata
from functools import cache
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.runs.e2e import Done, check_no_traceback, environment, pictures, serving, uncanny_here
from uncanny import cli
from uncanny.wording import harmless, layout

# Retitles the window, clears it, rings, writes from right to left, and pretends to be another line.
NASTY = "cat\x1b]0;owned\x07\x1b[2J\u202egnp.\u2066\r\nError: all is well\x9b31m\u200b"


def obeyed(text: str) -> set[str]:
    """Characters in `text` that a terminal does something with, but for line breaks."""
    kept = {"\n", "\u200c", "\u200d"}
    return {char for char in text if unicodedata.category(char) in ("Cc", "Cf", "Cs", "Zl", "Zp")} - kept


def test_what_a_terminal_would_obey_is_shown() -> None:
    assert harmless(NASTY) == (
        r"cat\x1b]0;owned\x07\x1b[2J\u202egnp.\u2066\r\nError: all is well\x9b31m\u200b"
    )
    assert harmless(os.fsdecode(b"caf\xe9.png")) == r"caf\xe9.png"
    assert harmless("Ünï – 你好 👩\u200d🚀") == "Ünï – 你好 👩\u200d🚀"


@settings(deadline=None)
@given(st.lists(st.text(), max_size=5))
def test_a_line_stays_a_line(lines: list[str]) -> None:
    text = layout(lines)
    assert len(text.split("\n")) == max(1, len(lines))
    assert not {char for char in obeyed(text) if ord(char) < 0x600 or 0x2000 <= ord(char) < 0x2100}
    assert layout(text.split("\n")) == text


def test_commands_print_through_the_terminal_alone() -> None:
    for file in Path(cli.__file__).parent.glob("*.py"):
        tree = ast.parse(file.read_text())
        names = {ast.unparse(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
        allowed = {"print"} if file.name == "terminal.py" else set()
        assert not names & {"print", "click.echo", "click.secho", "sys.stdout.write"} - allowed, file


def test_file_names_and_model_texts_are_not_obeyed(tmp_path: Path) -> None:
    images = pictures(tmp_path / "in", 2)
    (images / "p00.png").rename(images / f"{NASTY}.png")
    (images / "p01.png").write_bytes(b"no image")
    run = tmp_path / "run"
    with serving() as server:
        command = ("annotate", images, *server.asked(), "-o", run, "--no-report", "--max-objects", "2")
        assert uncanny_here(*command).code == 1
        records = [orjson.loads(line) for line in (run / "annotations.jsonl").read_bytes().splitlines()]
        for record in records:
            for anomaly in record["anomalies"]:
                anomaly["name"] = NASTY
            for error in record["errors"]:
                error["message"] = NASTY
        (run / "annotations.jsonl").write_bytes(b"".join(orjson.dumps(each) + b"\n" for each in records))
        done = uncanny_here(*command, "--keep-failed")
    assert obeyed(done.out + done.err) == set()
    assert r"\x1b[2J" in done.out
    assert not any(line.startswith("Error: all is well") for line in (done.out + done.err).splitlines())


def test_errors_quote_and_do_not_obey(tmp_path: Path) -> None:
    items = tmp_path / "items.jsonl"
    items.write_bytes(orjson.dumps({"id": NASTY, NASTY: 1, "image": NASTY, "split": NASTY}) + b"\n")
    for command in (
        ("mcq", "check", items),
        ("mcq", "score", items, items),
        ("mcq", "score", "scenes", tmp_path / NASTY),
        ("report", tmp_path / NASTY),
        ("semantic", f"{NASTY}={items}", "--truth", items),
        ("audit", f"{NASTY}={items}"),
        ("annotate", NASTY, "-m", "demo", "-o", tmp_path / "run"),
        ("annotate", "x", "-m", NASTY, "-o", tmp_path / "run"),
        (NASTY,),
    ):
        done = uncanny_here(*command)
        assert done.code == 2, done
        assert obeyed(done.out + done.err) == set(), done
        assert not any(line.startswith("Error: all is well") for line in done.err.splitlines()), done


def shell(command: str, folder: Path, **variables: str) -> Done:
    """`uncanny` in a shell, with its redirections."""
    line = f"{shlex.quote(sys.executable)} -m uncanny {command}"
    done = subprocess.run(
        ["bash", "-c", line], cwd=folder, env=environment(variables), capture_output=True, timeout=100
    )
    return Done(done.returncode, done.stdout.decode("latin-1"), done.stderr.decode("latin-1"))


ALL_CLOSED = "<&- >&- 2>&-"


def each_closed_or(*quick: str) -> list[Any]:
    """The ways to close streams; all but `quick` are left to the slow tests."""
    ways = ("<&-", ">&-", "2>&-", ALL_CLOSED)
    return [pytest.param(way, marks=() if way in quick else pytest.mark.slow) for way in ways]


@pytest.mark.parametrize("closed", each_closed_or())
def test_closed_streams_do_not_disturb_a_run(closed: str, tmp_path: Path) -> None:
    done = shell(f"detect scenes --limit 3 -m demo -o run {closed}", tmp_path)
    check_no_traceback(done)
    assert done.code == 0
    assert len((tmp_path / "run" / "annotations.jsonl").read_bytes().splitlines()) == 3
    assert (tmp_path / "run" / "report.html").is_file()
    assert ("standard output is closed" in done.err) == (closed == ">&-")
    done = shell(f"mcq score scenes run --json - {closed}", tmp_path)
    check_no_traceback(done)


@cache
def code_with_open_streams(command: str) -> int:
    return shell(command, Path.cwd()).code


@pytest.mark.slow
@pytest.mark.parametrize("command", ["--help", "--version", "mcq", "demo --nonsense", "report nowhere"])
@pytest.mark.parametrize("closed", each_closed_or(ALL_CLOSED))
def test_closed_streams_keep_the_exit_code(command: str, closed: str, tmp_path: Path) -> None:
    done = shell(f"{command} {closed}", tmp_path)
    check_no_traceback(done)
    assert done.code == code_with_open_streams(command)


@pytest.mark.slow
def test_a_standard_error_that_is_full_or_gone_changes_nothing(tmp_path: Path) -> None:
    for target in ("2>/dev/full", "2> >(exit)"):
        done = shell(f"mcq run scenes -m demo -o m {target}", tmp_path)
        assert done.code == 0
        assert shell(f"report nowhere {target}", tmp_path).code == 2


@pytest.mark.slow
def test_pipes_are_read_whole(tmp_path: Path) -> None:
    assert shell("mcq run scenes -m demo -o m -q", tmp_path).code == 0
    answers = (tmp_path / "m" / "answers.jsonl").read_bytes()
    assert len(answers) > 8192  # more than a first look takes out of a pipe
    assert shell("demo -o run -q", tmp_path).code == 0
    fast = "--resamples 0 --no-report"
    named = shell(f"mcq score scenes m {fast}", tmp_path)
    assert shell(f"mcq score scenes <(cat m/answers.jsonl) {fast}", tmp_path) == named
    assert shell(f"mcq score scenes /dev/stdin {fast} < <(cat m/answers.jsonl)", tmp_path) == named
    done = shell(
        "semantic <(cat run/annotations.jsonl) <(cat run/annotations.jsonl) --truth scenes "
        f"--similarity chrf {fast}",
        tmp_path,
    )
    assert done.code == 0
    assert shell(f"mcq score scenes /dev/stdin {fast} <&-", tmp_path).code == 2


@pytest.mark.slow
@pytest.mark.timeout(400)  # many processes
@pytest.mark.parametrize("encoding", ["latin-1", "ascii", "ascii:strict", "cp1252"])
def test_narrow_encodings_get_the_nearest_text(encoding: str, tmp_path: Path) -> None:
    variables = {"PYTHONIOENCODING": encoding}
    assert shell("demo -o run", tmp_path, **variables).code == 0
    for command in (
        "--help",
        "mcq run --help",
        "mcq run scenes -m demo -o m",
        "mcq score scenes m --baselines --published --resamples 0",
        "audit a=run b=run/annotations.jsonl --resamples 10",
        "detect scenes -m demo -o d",
        "semantic run --truth scenes --similarity chrf --resamples 0",
        "annotate nowhere –m",
    ):
        done = shell(command, tmp_path, **variables)
        check_no_traceback(done)
        assert done.code in (0, 2), done
        assert "\\u" not in done.out, done.out


@pytest.mark.slow
def test_the_c_locale_is_enough(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    pictures(tmp_path / "in", 1)
    (tmp_path / "in" / "p00.png").rename(tmp_path / "in" / "Bäume – 木.png")
    variables = {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}
    done = shell("annotate in -m noop -o run", tmp_path, **variables)
    check_no_traceback(done)
    assert done.code in (0, 1), done
