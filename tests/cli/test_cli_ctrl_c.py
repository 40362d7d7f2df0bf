"""Ctrl-C at a real terminal: what is said at once, and that a second one leaves."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import Final

import orjson
import pytest

from tests.cli.pseudo_terminal import Terminal, at_terminal, python_at_terminal
from tests.runs.e2e import Run, Server, pictures, serving, uncanny_here

pytestmark = pytest.mark.slow

WAITING: Final = re.compile(r"Stopping: waiting for (\d+) calls?\. Ctrl-C again to leave now\.")
CONCURRENCY: Final = 6
# A call takes longer than any wait of these tests.
SLOW_MS: Final = 100_000.0
# Every kind of run, with inputs for more calls at once than are allowed.
COMMANDS: Final = {
    "annotate": ("annotate", "PICTURES"),
    "detect": ("detect", "PICTURES"),
    "artifacts": ("artifacts", "run", "PICTURES"),
    "mcq": ("mcq", "run", "scenes"),
    "realism": ("realism", "run", "scenes"),
    "perturb": ("edits", "perturb", "scenes"),
}


def waiting_for_answers(server: Server, terminal: Terminal) -> int:
    """Wait until all requests that can be there at once are at the server, which answers none of them yet."""
    until = time.monotonic() + 60
    requests, since = 0, time.monotonic()
    while requests < 2 or time.monotonic() - since < 1:
        assert time.monotonic() < until, terminal.text()[-2000:]
        assert terminal.process.poll() is None, terminal.text()[-2000:]
        if (now := server.requests()) != requests:
            requests, since = now, time.monotonic()
        time.sleep(0.02)
    return requests


def interrupt(terminal: Terminal, words: re.Pattern[str] = WAITING) -> int:
    """Press Ctrl-C; returns how many calls it says it waits for."""
    mark = terminal.mark()
    terminal.press_ctrl_c()
    # Whoever pressed a key waits for a sign, not for a call.
    terminal.wait_for(words.search, mark, timeout_s=20)
    assert terminal.process.poll() is None
    found = words.search(terminal.text(mark))
    assert found is not None
    return int(found[1])


def leave(terminal: Terminal) -> str:
    """Press Ctrl-C again, which ends it at once; returns what was said since."""
    mark = terminal.mark()
    began = time.monotonic()
    terminal.press_ctrl_c()
    code = terminal.end()
    assert time.monotonic() - began < 20  # and calls take a hundred seconds
    assert code == 130
    assert "Traceback" not in terminal.text()
    return terminal.text(mark)


@pytest.mark.parametrize("name", COMMANDS)
def test_ctrl_c_says_at_once_what_it_waits_for_and_a_second_one_leaves(name: str, tmp_path: Path) -> None:
    images = pictures(tmp_path / "in", 10)
    run = tmp_path / "run"
    command = [images if word == "PICTURES" else word for word in COMMANDS[name]]
    options = ("-o", run, "--concurrency", CONCURRENCY, "--limit", 8)
    with serving(latency_ms=SLOW_MS) as server:
        with at_terminal(*command, *server.asked(), *options) as terminal:
            requests = waiting_for_answers(server, terminal)
            assert interrupt(terminal) == requests
            assert "Interrupted, " in leave(terminal)
        assert server.requests() == requests, "a call was started after Ctrl-C"
        port = server.port
    with serving(port=port) as server:
        done = uncanny_here(*command, *server.asked(), *options, "-q")
    assert done.code == 0, done.err
    assert orjson.loads((run / "run.json").read_bytes())["state"] == "finished"


def test_after_one_ctrl_c_what_is_in_flight_is_shown_and_kept(tmp_path: Path) -> None:
    images, run = pictures(tmp_path / "in", 10), Run(tmp_path / "run")
    with serving(objects=2, latency_ms=8_000.0) as server:
        options = (*server.asked(), "-o", run.path, "--concurrency", CONCURRENCY)
        with at_terminal("annotate", images, *options) as terminal:
            requests = waiting_for_answers(server, terminal)
            mark = terminal.mark()
            assert interrupt(terminal) == requests
            # The live line has it, too, instead of the time to go.
            terminal.wait_for(lambda text: f"waiting for {requests} calls" in text.split("now.")[-1], mark)
            assert terminal.end() == 130
            assert "Traceback" not in terminal.text()
            drawn = [line for line in terminal.lines(mark) if "0/10 images · " in line]
            assert not any("to go" in line for line in drawn[1:])
            assert "Interrupted, 10 images not done. Run the same command again to resume." in terminal.text(
                mark
            )
        before = server.requests()
        port = server.port
    assert before == requests
    with serving(objects=2, port=port) as server:
        again = uncanny_here("annotate", images, *options, "-q")
        assert again.code == 0, again.err
        calls = len(run.calls())
        assert server.requests() + before == calls, "an answer that was waited for was asked again"


def test_it_is_said_of_a_quiet_run_and_of_one_of_several_models_too(tmp_path: Path) -> None:
    run = tmp_path / "run"
    with serving(latency_ms=SLOW_MS) as server:
        models = ("-m", "openai/one", "-m", "openai/two", "--base-url", server.v1)
        options = ("-o", run, "--concurrency", CONCURRENCY, "--quiet")
        with at_terminal("mcq", "run", "scenes", *models, *options) as terminal:
            requests = waiting_for_answers(server, terminal)
            assert interrupt(terminal) == requests
            leave(terminal)


def test_a_program_that_shows_progress_says_it_too(tmp_path: Path) -> None:
    images = pictures(tmp_path / "in", 10)
    program = (
        "import sys, uncanny\n"
        "uncanny.annotate(sys.argv[1], model='openai/any', base_url=sys.argv[2], out=sys.argv[3],\n"
        f"                 concurrency={CONCURRENCY}, progress=True)\n"
    )
    words = re.compile(r"Stopping: waiting for (\d+) calls\. Interrupt again to leave now\.")
    with serving(latency_ms=SLOW_MS) as server:
        arguments = ("-c", program, images, server.v1, tmp_path / "run")
        with python_at_terminal(*arguments) as terminal:
            requests = waiting_for_answers(server, terminal)
            assert interrupt(terminal, words) == requests
            began = time.monotonic()
            terminal.press_ctrl_c()
            assert terminal.end() != 0
            assert time.monotonic() - began < 20
            # For a program it is the exception that Python has for it.
            assert terminal.lines()[-1] == "KeyboardInterrupt"
