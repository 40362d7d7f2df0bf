"""Whole runs with vLLM servers: started by the run or given, one or several, killed in the midst of it."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.models.vllm.processes import STAND_IN, naming, servers, until_none_names
from tests.runs.e2e import Done, Run, finish, pictures, serving, start, uncanny, uncanny_here
from uncanny.models.vllm.server import COMMAND_VARIABLE

IMAGES = 12
QUIET = ("--no-report", "--json", "--schedule", "packed", "--concurrency", 4)


def environment(**more: object) -> dict[str, str | None]:
    own = {f"UNCANNY_VLLM_{name.upper()}": str(value) for name, value in more.items()}
    return {COMMAND_VARIABLE: shlex.join(STAND_IN), "VLLM_BASE_URL": None, **own}


def command(images: Path, run: Run, kind: str = "annotates") -> list[object]:
    return ["annotate", images, "--model", f"vllm/{model(run, kind)}", "-o", run.path, *QUIET]


def model(run: Run, kind: str = "annotates") -> str:
    """A name that no other test's processes have."""
    return f"{kind}@{run.path}"


def wait_for_a_record(run: Run, process: subprocess.Popen[bytes]) -> None:
    records = run.path / "annotations.jsonl"
    while not (records.exists() and records.stat().st_size):
        assert process.poll() is None, finish(process)
        time.sleep(0.01)


def content(run: Run) -> dict[str, Mapping[str, Any]]:
    """What the records say, without what differs from run to run."""
    return {
        Path(record.image).name: record.model_dump(exclude={"usage", "created", "image", "seconds"})
        for record in run.records()
    }


def check_complete(done: Done, run: Run) -> None:
    assert done.code == 0, done.err
    assert run.statuses() == {"ok": IMAGES}
    assert {call["model"] for call in run.calls()} == {f"vllm/{model(run)}"}
    assert until_none_names(model(run)) == []


@pytest.mark.slow
@pytest.mark.parametrize("killed", ["main process", "engine"])
def test_a_server_that_dies_in_the_midst_of_a_run_is_started_again(
    killed: str, tmp_path: Path, run: Run
) -> None:
    images = pictures(tmp_path / "in", IMAGES)
    with start(*command(images, run), env=environment()) as process:
        wait_for_a_record(run, process)
        (main,) = servers(f"@{run.path}")
        engine = next(each.pid for each in naming("print('child'") if each.ppid() == main)
        os.kill(main if killed == "main process" else engine, signal.SIGKILL)
        done = finish(process)
    check_complete(done, run)
    (warning,) = run.manifest()["warnings"]
    assert warning.startswith(f"The vLLM server for '{model(run)}' ended ")
    assert warning.endswith("Starting it again (1 of 3 restarts)")
    assert warning in done.err.replace("\n", " ")


@pytest.mark.slow
def test_a_run_that_is_killed_leaves_no_server_and_resumes(tmp_path: Path, run: Run) -> None:
    images = pictures(tmp_path / "in", IMAGES)
    with start(*command(images, run), env=environment()) as process:
        wait_for_a_record(run, process)
        process.kill()
        process.communicate()
    assert until_none_names(model(run)) == []
    check_complete(uncanny(*command(images, run), env=environment()), run)


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_run_and_server_in_good_order(number: signal.Signals, tmp_path: Path, run: Run) -> None:
    images = pictures(tmp_path / "in", IMAGES)
    with start(*command(images, run), env=environment()) as process:
        wait_for_a_record(run, process)
        process.send_signal(number)
        assert finish(process).code == 130
    assert naming(model(run)) == []


@pytest.mark.slow
def test_a_run_can_be_stopped_while_its_server_starts_again(tmp_path: Path, run: Run) -> None:
    images = pictures(tmp_path / "in", IMAGES)
    with start(*command(images, run, "annotates-once"), env=environment()) as process:
        wait_for_a_record(run, process)
        (first,) = servers(f"@{run.path}")
        os.kill(first, signal.SIGKILL)
        while first in servers(f"@{run.path}") or not servers(f"@{run.path}"):
            assert process.poll() is None, finish(process).err
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        done = finish(process, 60)
    assert done.code == 130, done.err
    assert naming(f"@{run.path}") == []
    assert run.manifest()["state"] == "interrupted"


@pytest.mark.slow
def test_a_server_that_dies_too_often_ends_the_run_with_its_reason(tmp_path: Path, run: Run) -> None:
    images = pictures(tmp_path / "in", IMAGES)
    with start(*command(images, run), env=environment(restarts=0)) as process:
        wait_for_a_record(run, process)
        os.kill(servers(f"@{run.path}")[0], signal.SIGKILL)
        done = finish(process)
    assert done.code == 1, done.err
    assert "ended by SIGKILL" in done.err
    assert run.manifest()["state"] == "stopped"
    assert until_none_names(model(run)) == []
    check_complete(uncanny(*command(images, run), env=environment()), run)


@pytest.mark.slow
def test_replicas_share_the_images_and_records_do_not_say_which_answered(tmp_path: Path, run: Run) -> None:
    images = pictures(tmp_path / "in", IMAGES)
    with start(*command(images, run), env=environment(replicas=2)) as process:
        wait_for_a_record(run, process)
        both = servers(f"@{run.path}")
        assert len(both) == 2
        os.kill(both[0], signal.SIGKILL)
        done = finish(process)
    check_complete(done, run)
    assert (run.path / "vllm-2.log").is_file()
    shared = content(run)
    # The same answers are found by a run with one server: their keys do not name a replica.
    (run.path / "annotations.jsonl").unlink()
    with start(*command(images, run), env=environment()) as process:
        check_complete(finish(process), run)
    assert content(run) == shared
    assert all(call["replayed"] for call in run.calls())


def test_given_servers_share_the_calls_and_one_may_be_down(tmp_path: Path, run: Run) -> None:
    images = pictures(tmp_path / "in", IMAGES)
    options = ("--no-report", "--schedule", "packed", "-m", "vllm/any", "-o", run.path)
    with serving() as first, serving() as second:
        dead = "http://127.0.0.1:9/v1"
        done = uncanny_here(
            *("annotate", images, *options, "--base-url", f"{first.v1},{second.v1}", "--base-url", dead)
        )
        asked = [first.requests(), second.requests()]
    assert done.code == 0, done.err
    assert min(asked) > 0
    assert run.statuses() == {"ok": IMAGES}
    (warning,) = run.manifest()["warnings"]
    assert warning.startswith(f"vllm/any at {dead}/ is not asked for now: ")


def test_addresses_may_come_from_the_environment(tmp_path: Path, run: Run) -> None:
    images = pictures(tmp_path / "in", 6)
    options = ("--no-report", "--schedule", "packed", "-m", "vllm/any", "-o", run.path)
    with serving() as first, serving() as second:
        done = uncanny_here("annotate", images, *options, env={"VLLM_BASE_URL": f"{first.v1}, {second.v1}"})
        assert min(first.requests(), second.requests()) > 0
    assert done.code == 0, done.err


def test_only_servers_of_ones_own_can_be_several(tmp_path: Path) -> None:
    urls = ("--base-url", "http://127.0.0.1:1/v1", "--base-url", "http://127.0.0.1:2/v1")
    done = uncanny_here("annotate", tmp_path, "-m", "openai/any", *urls, "-o", tmp_path / "run")
    assert done.code == 2
    assert "openai has 2 addresses, but only servers of your own can be several" in done.err
