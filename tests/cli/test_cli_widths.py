"""What is seen of a command while it works, at real terminals from narrow to wide."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.cli.pseudo_terminal import Terminal, at_terminal
from tests.runs.e2e import Server, pictures, serving
from tests.service.running import running

pytestmark = pytest.mark.slow

WIDTHS: Final = (200, 100, 80, 40)
DONE: Final = re.compile(r"\d+/\d+")
RATE: Final = re.compile(r"[\d.]+( calls)?/s\b")
LEFT: Final = re.compile(r"\bto go\b|no answer for")
# Every command that asks a model, with enough to do for a look at each width.
ASKING: Final = {
    "annotate": ("annotate", "PICTURES"),
    "detect": ("detect", "PICTURES"),
    "artifacts": ("artifacts", "run", "PICTURES"),
    "audit": ("audit", "A=PICTURES", "B=OTHERS"),
    "mcq": ("mcq", "run", "scenes"),
    "realism": ("realism", "run", "scenes"),
    "perturb": ("edits", "perturb", "scenes"),
    "prompts": ("edits", "prompts", "scenes"),
}


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving(latency_ms=700.0) as slow:
        yield slow


def drawn(terminal: Terminal, mark: int) -> list[str]:
    """The live lines since `mark` that are whole."""
    return [line for line in terminal.lines(mark)[1:-1] if DONE.search(line)]


def check(terminal: Terminal, unit: str) -> None:
    """At each width the line is on one row, and says first how far, how fast and how long still."""
    terminal.wait_for(DONE.search)
    for width in WIDTHS:
        terminal.resize(width)
        mark = terminal.mark()
        until = time.monotonic() + 20
        while len(drawn(terminal, mark)) < 2:
            assert time.monotonic() < until, terminal.text()[-2000:]
            assert terminal.process.poll() is None, terminal.text()[-2000:]
            time.sleep(0.05)
        line = drawn(terminal, mark)[-1]
        assert len(line) < width, line
        places = [pattern.search(line) for pattern in (DONE, RATE, LEFT)]
        assert None not in places, line
        starts = [each.start() for each in places if each is not None]
        assert starts == sorted(starts), line
        if width >= 80:
            assert f"{unit} · " in line, line
        if width >= 100:
            assert "calls" in line.partition("go")[2], line
        if width >= 200:
            assert "tokens" in line, line
            assert "cached" in line, line


@pytest.mark.parametrize("name", ASKING)
def test_the_line_of_a_run_fits_and_says_first_what_counts(name: str, server: Server, tmp_path: Path) -> None:
    folders = {"PICTURES": tmp_path / "in", "OTHERS": tmp_path / "others"}
    for first, folder in enumerate(folders.values()):
        pictures(folder, 30, 40 * first)
    command = []
    for word in ASKING[name]:
        label, _, place = word.rpartition("=")
        command.append(f"{label}{'=' * bool(label)}{folders.get(place, place)}")
    options = ("-o", tmp_path / "run", "--concurrency", 2)
    with at_terminal(*command, *server.asked(), *options, columns=WIDTHS[0]) as terminal:
        check(terminal, {"mcq": "questions", "realism": "pairs"}.get(name, ""))


def test_a_command_that_asks_no_model_fits_too(tmp_path: Path) -> None:
    for width in (40, 80):
        out = tmp_path / f"edits-{width}.jsonl"
        with at_terminal("edits", "measure", "scenes", "-o", out, columns=width) as terminal:
            assert terminal.end() == 0
        lines = [line for line in terminal.lines() if DONE.match(line.lstrip("━╸ "))]
        assert lines
        # A window that is narrower than the line would show it on two rows.
        assert all(len(line) < width for line in lines), lines
        assert all(RATE.search(line) and LEFT.search(line) for line in lines), lines
        assert terminal.lines()[-1], "the line is gone in the end"


def test_a_run_on_a_service_fits_too(server: Server, tmp_path: Path) -> None:
    images = pictures(tmp_path / "in", 40)
    asked = {"OPENAI_BASE_URL": server.v1, "OPENAI_API_KEY": "any-key"}
    with running(tmp_path / "service", environment=asked) as service:
        arguments = (
            "annotate",
            images,
            "-m",
            "openai/any",
            "-o",
            tmp_path / "run",
            "--server",
            service.address,
        )
        with at_terminal(*arguments, "--concurrency", 2, columns=200) as terminal:
            terminal.wait_for(LEFT.search)
            for width in WIDTHS:
                terminal.resize(width)
                mark = terminal.mark()
                terminal.wait_for(lambda _text, mark=mark: len(drawn(terminal, mark)) > 1)  # type: ignore[misc]
                line = drawn(terminal, mark)[-1]
                assert len(line) < width, line
                assert DONE.search(line), line
                assert RATE.search(line), line
