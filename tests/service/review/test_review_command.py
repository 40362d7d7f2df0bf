"""`uncanny review`: what it prints, how it ends, what it refuses."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import httpx2
import pytest

from tests.runs.e2e import uncanny_here
from tests.service.made_review import anomaly, make_run, served


def start(*arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "uncanny", "review", *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def refused(*arguments: str) -> str:
    done = uncanny_here("review", *arguments)
    assert (done.code, done.out) == (2, "")
    assert "Traceback" not in done.err
    return done.err


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_listens_on_loopback_until_it_is_told_to_end(tmp_path: Path, number: signal.Signals) -> None:
    run = make_run(tmp_path / "run", [[anomaly()]])
    with start(str(run), "--reviewer", "ann") as process:
        assert process.stdout is not None
        assert process.stderr is not None
        address = process.stdout.readline().split()[-1]
        assert address.startswith("http://127.0.0.1:")
        assert httpx2.get(address).status_code == 200
        process.send_signal(number)
        assert process.wait(30) == 0
        assert process.stderr.read() == ""
    assert not (run / "reviews.jsonl").exists()


@pytest.mark.slow
def test_wrong_use_is_refused_in_a_line(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", [[anomaly()]])
    assert "is not a run folder" in refused(str(tmp_path / "nothing"))
    for name in (" ", "a\udcff", "a" * 201):
        assert "1 to 200 characters" in refused(str(run), "--reviewer", name)
    with served(run) as address:
        assert "cannot listen on port" in refused(str(run), "--port", address.rsplit(":", 1)[1])
    (run / "reviews.jsonl").write_text('{"image": "images/000.png", "anomaly": "first"}\n')
    assert "reviews.jsonl:1, field 'anomaly'" in refused(str(run))
