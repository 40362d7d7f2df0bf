"""Models that cannot be used: seconds, one line, nothing left behind. And keys that never show."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.runs.e2e import (
    Done,
    Run,
    Server,
    check_no_traceback,
    finish,
    pictures,
    serving,
    start,
    uncanny,
    uncanny_here,
)

OTHER = "openai-compatible"
SECRET = "sk-secret-marker-123"


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving(objects=2) as server:
        yield server


@pytest.fixture
def images(tmp_path: Path) -> Path:
    return pictures(tmp_path / "in", 8)


def check_one_line(done: Done, run: Run, *words: str) -> None:
    assert done.code == 2, done
    assert done.out == ""
    check_no_traceback(done)
    (line,) = done.told.splitlines()
    assert all(word in line for word in words), line
    assert not (run.path / "annotations.jsonl").exists() or not run.records()


@pytest.mark.slow
@pytest.mark.parametrize("provider", ["openai", "anthropic", "vllm"])
def test_wrong_key(provider: str, server: Server, images: Path, run: Run) -> None:
    variable = f"{provider.upper()}_API_KEY"
    before = server.requests()
    arguments = ("annotate", images, *server.asked(provider), "-o", run.path)
    done = uncanny_here(*arguments, env={variable: "wrong-key"})
    check_one_line(done, run, "401", variable)
    assert server.requests() - before <= 8
    assert uncanny_here(*arguments, "-q").code == 0
    assert run.statuses() == {"ok": 8}


@pytest.mark.slow
def test_wrong_key_as_a_process(server: Server, images: Path, run: Run) -> None:
    arguments = ("annotate", images, *server.asked(), "-o", run.path)
    check_one_line(uncanny(*arguments, env={"OPENAI_API_KEY": "wrong-key"}), run, "401", "OPENAI_API_KEY")


def test_wrong_key_and_broken_files_are_still_wrong_use(server: Server, images: Path, run: Run) -> None:
    (images / "a.png").write_bytes(b"no picture")
    arguments = ("annotate", images, *server.asked(), "-o", run.path)
    done = uncanny_here(*arguments, env={"OPENAI_API_KEY": "wrong-key"})
    assert (done.code, done.out, len(done.told.splitlines())) == (2, "", 1)
    assert set(run.statuses()) <= {"unreadable"}


@pytest.mark.parametrize("provider", ["openai", "anthropic", OTHER])
def test_unknown_model(provider: str, server: Server, images: Path, run: Run) -> None:
    before = server.requests()
    done = uncanny_here("annotate", images, *server.asked(provider, "unknown-model"), "-o", run.path)
    check_one_line(done, run, "404", "unknown-model")
    assert server.requests() - before <= 8


def test_a_wrong_model_binds_nobody_though_a_file_is_broken(server: Server, images: Path, run: Run) -> None:
    (images / "a.png").write_bytes(b"no picture")
    wrong = ("annotate", images, *server.asked(name="unknown-model"), "-o", run.path)
    assert uncanny_here(*wrong).code == 2
    # The run may end before the record of the broken file is due.
    assert set(run.statuses()) <= {"unreadable"}
    done = uncanny_here("annotate", images, *server.asked(), "-o", run.path)
    assert (done.code, done.told) == (1, "")
    assert {record.model for record in run.records()} == {"openai/any"}
    assert sorted(set(run.statuses())) == ["ok", "unreadable"]
    # From the first answer on it does.
    refused = uncanny_here("annotate", images, *server.asked(name="other"), "-o", run.path)
    assert refused.code == 2
    assert "made with other settings" in refused.told


@pytest.mark.parametrize(("provider", "variable"), [("openai", "OPENAI"), ("anthropic", "ANTHROPIC")])
def test_missing_key(provider: str, variable: str, server: Server, images: Path, run: Run) -> None:
    arguments = ("annotate", images, *server.asked(provider), "-o", run.path)
    done = uncanny_here(*arguments, env={f"{variable}_API_KEY": None})
    check_one_line(done, run, f"{variable}_API_KEY")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


@pytest.mark.slow
def test_nobody_listens(images: Path, run: Run) -> None:
    dead = Server(f"http://127.0.0.1:{free_port()}")
    began = time.monotonic()
    done = uncanny("annotate", images, *dead.asked(), "-o", run.path)
    check_one_line(done, run, "cannot be reached", f"{dead.port}")
    assert time.monotonic() - began < 40  # far from the patience with a model that has answered


@pytest.mark.slow
def test_a_server_that_dies_is_given_up_and_the_run_goes_on_when_it_is_back(images: Path, run: Run) -> None:
    with serving(objects=4, latency_ms=30) as server:
        arguments = ["annotate", images, *server.asked(), "-o", run.path, "--patience", "2"]
        arguments += ["--schedule", "paper"]
        process = start(*arguments, "--concurrency", "4")
        while server.requests() < 4 * (3 + 6 * 4 + 1):
            assert process.poll() is None
            time.sleep(0.01)
        asked = server.requests()
    done = finish(process)
    check_no_traceback(done)
    assert done.code == 1
    assert "Stopped" in done.told
    assert len(done.told.splitlines()) <= 2
    assert run.manifest()["state"] == "stopped"
    with serving(port=server.port, objects=4) as back:
        assert uncanny_here(*arguments, "-q").code == 0
        assert asked + back.requests() <= 8 * (3 + 6 * 4 + 1) + 4
    assert run.statuses() == {"ok": 8}


@pytest.mark.slow
def test_a_server_that_dies_before_the_first_image_is_done(tmp_path: Path, run: Run) -> None:
    with serving(latency_ms=30) as server:
        arguments = ("annotate", pictures(tmp_path / "in", 1), *server.asked(), "-o", run.path)
        arguments = (*arguments, "--schedule", "paper")
        process = start(*arguments, "--patience", "1")
        while server.requests() < 10:
            assert process.poll() is None
            time.sleep(0.01)
    done = finish(process)
    check_no_traceback(done)
    assert done.code == 1, "answers were paid for and kept: not wrong use"
    with serving(port=server.port) as back:
        assert uncanny_here(*arguments, "-q").code == 0
        assert back.requests() < 3 + 6 * 8 + 1
    assert run.statuses() == {"ok": 1}


@pytest.mark.parametrize(
    "provider",
    ["openai", *(pytest.param(each, marks=pytest.mark.slow) for each in ("anthropic", "vllm", OTHER))],
)
def test_the_key_shows_nowhere(provider: str, tmp_path: Path, run: Run) -> None:
    images = pictures(tmp_path / "in", 8)
    variable = provider.upper().replace("-", "_") + "_API_KEY"
    faults = {"500": 0.05, "cut": 0.05, "malformed": 0.05, "refusal": 0.03, "truncated-json": 0.05}
    outputs = []
    with serving(objects=2, faults=faults, seed=1) as server:
        arguments = ["annotate", images, *server.asked(provider), "-o", run.path]
        outputs.append(uncanny_here(*arguments, env={variable: SECRET}))
        assert outputs[0].code in (0, 1)
        assert server.requests() > 20
    dead = ["annotate", images, "--model", f"{provider}/x", "--base-url", "http://127.0.0.1:9/v1/", "-o"]
    outputs.append(uncanny_here(*dead, tmp_path / "dead", env={variable: SECRET}))
    assert outputs[1].code == 2
    for done in outputs:
        assert SECRET not in done.out + done.told
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert any(path.name == "answers.db" for path in files)
    assert [path for path in files if SECRET.encode() in path.read_bytes()] == []
