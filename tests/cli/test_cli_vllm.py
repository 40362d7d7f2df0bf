"""`uncanny vllm up`: addresses when all are ready, restarts, and no process left on any way out."""

from __future__ import annotations

import os
import shlex
import signal
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cli.complaints import one_line
from tests.cli.pseudo_terminal import at_terminal
from tests.models.vllm.processes import STAND_IN, naming, servers, until_none_names
from tests.runs.e2e import Done, finish, start, uncanny_here
from uncanny.models.vllm.server import COMMAND_VARIABLE

OWN = {COMMAND_VARIABLE: shlex.join(STAND_IN)}
"""In place of vLLM."""


class Up:
    """A running `uncanny vllm up`. Its log, in a folder of the test's own, is not named by any process."""

    def __init__(self, process: subprocess.Popen[bytes], model: str) -> None:
        self.process, self.model = process, model
        self.addresses: list[str] = []

    def until_ready(self) -> None:
        assert self.process.stdout is not None
        line = self.process.stdout.readline().decode()
        assert line.startswith("listening on "), finish(self.process)
        self.addresses = line.removeprefix("listening on ").strip().split(",")

    def servers(self) -> list[int]:
        return servers(self.model)

    def end(self, number: int) -> Done:
        self.process.send_signal(number)
        return finish(self.process, 60)


@contextmanager
def up(tmp_path: Path, *arguments: object, model: str = "m") -> Iterator[Up]:
    # A name that no other test's processes have.
    name = f"{model}@{tmp_path}"
    port = () if "--port" in arguments else ("--port", 0)
    command = ("vllm", "up", name, *port, "--log", tmp_path / "vllm.log", *arguments)
    with start(*command, env=OWN) as process:
        try:
            yield Up(process, name)
        finally:
            if process.poll() is None:
                process.kill()
                process.communicate()
            assert until_none_names(name) == []


def answers(address: str) -> bool:
    with urllib.request.urlopen(address.removesuffix("/v1") + "/health", timeout=10) as reply:
        return bool(reply.status == 200)


@pytest.mark.parametrize(
    "number",
    [
        signal.SIGINT,
        *(pytest.param(each, marks=pytest.mark.slow) for each in (signal.SIGTERM, signal.SIGHUP)),
    ],
)
def test_it_says_where_it_listens_and_a_signal_ends_all(tmp_path: Path, number: signal.Signals) -> None:
    with up(tmp_path, "--replicas", 2) as running:
        running.until_ready()
        assert [answers(address) for address in running.addresses] == [True, True]
        assert len(running.servers()) == 2
        done = running.end(number)
        assert naming(running.model) == []
    assert done.code == 0
    assert f"Starting 2 vLLM servers of {running.model}; output goes to {tmp_path}/vllm.log, " in done.err
    both = ",".join(running.addresses)
    assert f"Ask with --model vllm/{running.model} --base-url {both}; Ctrl-C stops it.\n" in done.err


@pytest.mark.slow
def test_sigkill_ends_all_as_well(tmp_path: Path) -> None:
    with up(tmp_path) as running:
        running.until_ready()
        assert running.end(signal.SIGKILL).code == -signal.SIGKILL
        assert until_none_names(running.model) == []


@pytest.mark.slow
def test_a_signal_while_it_starts_ends_all(tmp_path: Path) -> None:
    with up(tmp_path, model="sleeps") as running:
        while not running.servers():
            time.sleep(0.05)
        done = running.end(signal.SIGINT)
        assert naming(running.model) == []
    assert (done.code, done.out) == (0, "")


@pytest.mark.slow
def test_a_server_that_dies_is_started_again_until_it_died_too_often(tmp_path: Path) -> None:
    with up(tmp_path, "--max-restarts", 1) as running:
        running.until_ready()
        (first,) = running.servers()
        os.kill(first, signal.SIGKILL)
        while not (again := [pid for pid in running.servers() if pid != first]):
            time.sleep(0.05)
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            try:
                assert answers(running.addresses[0])
                break
            except OSError:
                time.sleep(0.1)
        os.kill(again[0], signal.SIGKILL)
        done = finish(running.process, 60)
    assert done.code == 2
    lines = done.err.splitlines()
    assert "ended by SIGKILL" in lines[2]
    assert lines[2].endswith("Starting it again (1 of 1 restarts)")
    assert lines[3].startswith("Error: The vLLM server for ")
    assert "ended by SIGKILL" in lines[3]
    assert "after 1 restart; its log " in lines[3]
    assert len(lines) == 4


def test_a_server_that_does_not_start_is_one_line_with_the_reason(tmp_path: Path) -> None:
    command = ("vllm", "up", "dies", "--port", 0, "--log", tmp_path / "vllm.log")
    done = uncanny_here(*command, env=OWN)
    assert (done.code, done.out) == (2, "")
    said, error = done.err.splitlines()
    assert said.startswith("Starting 1 vLLM server of dies;")
    assert "exit code 3 before it was ready" in error
    assert "ValueError: no such model" in error


def test_a_taken_port_is_said_before_anything_starts(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        done = uncanny_here("vllm", "up", "m", "--port", port, "--log", tmp_path / "vllm.log", env=OWN)
    assert done.code == 2
    assert f"Port {port} on 127.0.0.1 is not free" in done.err
    assert not (tmp_path / "vllm.log").exists()


@pytest.mark.slow
def test_a_port_is_taken_while_its_server_still_starts(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
    with up(tmp_path, "--port", port, model="sleeps") as running:
        while not running.servers():
            time.sleep(0.05)
        done = uncanny_here("vllm", "up", "m", "--port", port, "--log", tmp_path / "other.log", env=OWN)
    assert done.code == 2
    assert f"Port {port} on 127.0.0.1 is not free" in done.err
    assert not (tmp_path / "other.log").exists()


def test_a_log_has_the_output_of_one_command(tmp_path: Path) -> None:
    log = tmp_path / "vllm.log"
    with up(tmp_path, model="sleeps") as running:
        while not running.servers():
            time.sleep(0.05)
        before = log.read_text()
        done = uncanny_here("vllm", "up", "dies", "--port", 0, "--log", log, env=OWN)
        assert done.code == 2
        assert f"Another command writes the output of its vLLM server to {log}" in done.err
        assert "Pass another file with --log." in done.err
        assert "dies" not in log.read_text().removeprefix(before)
        other = uncanny_here("vllm", "up", "dies", "--port", 0, "--log", tmp_path / "other.log", env=OWN)
        assert "no such model" in other.err
    done = uncanny_here("vllm", "up", "dies", "--port", 0, "--log", log, env=OWN)
    assert "no such model" in done.err


def test_an_option_of_vllm_before_the_dashes_is_told_where_it_goes() -> None:
    done = uncanny_here("vllm", "up", "m", "--max-model-len", "100", env=OWN)
    assert done.code == 2
    assert "No such option '--max-model-len'. Options of vLLM come after --." in done.err


@pytest.mark.parametrize("options", [(), ("--", "--max-model-len", "100")])
def test_words_of_vllm_before_the_dashes_are_unexpected(options: tuple[str, ...]) -> None:
    done = uncanny_here("vllm", "up", "m", "other", "100", *options, env=OWN)
    assert done.code == 2
    assert "Got unexpected extra words (other 100). Options of vLLM come after --." in done.err


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("--lora", "hands"), "--lora 'hands' has no name"),
        (("--lora", "a=x", "--lora", "a=y"), "--lora names 'a' twice"),
        (("--lora", "a=nowhere"), "adapter_config.json: No such file"),
        (("--port", "65535", "--replicas", "2"), "--port 65535 leaves no room for 2 replicas"),
        (("--gpu", "0,1,2", "--replicas", "2"), "3 GPUs cannot be shared out evenly among 2 replicas"),
        (("--replicas", "0"), "--replicas must be from 1 to 64, not 0"),
    ],
)
def test_mistakes_are_one_line(arguments: tuple[str, ...], complaint: str) -> None:
    done = uncanny_here("vllm", "up", "m", *arguments, env=OWN)
    one_line(done, complaint)


def test_without_vllm_it_says_how_to_get_it(tmp_path: Path) -> None:
    done = uncanny_here("vllm", "up", "m", env={COMMAND_VARIABLE: None, "PATH": str(tmp_path)})
    assert "vLLM is not installed here" in done.err
    assert done.code == 2


@pytest.mark.slow
def test_options_of_vllm_come_after_two_dashes(tmp_path: Path) -> None:
    with up(tmp_path, "--", "--max-model-len", "4096") as running:
        running.until_ready()
    assert "--max-model-len 4096" in (tmp_path / "vllm.log").read_text()


@pytest.mark.slow
def test_at_a_terminal_the_last_line_of_the_log_is_shown(tmp_path: Path) -> None:
    name = f"sleeps@{tmp_path}"
    command = ("vllm", "up", name, "--port", "0", "--log", str(tmp_path / "vllm.log"))
    with at_terminal(*command, env=OWN) as terminal:
        terminal.wait_for(lambda text: "0 of 1 ready" in text and "Loading weights: 40 %" in text)
        terminal.press_ctrl_c()
        assert terminal.end() == 0
    assert until_none_names(name) == []
