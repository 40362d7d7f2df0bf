"""Real servers that die, are killed or share the calls: the run ends complete, and no process is left.

Answers are noise: an image may end `partial`. What counts is that each has its record, and nothing is
pending.
"""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import sysconfig
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx2
import psutil  # type: ignore[import-untyped]
import pytest

from tests.runs.e2e import KEYS, SOURCE, Done, Run, check_no_traceback, environment, finish, start
from uncanny.demo.scenes import scenes
from uncanny.models.vllm.server import COMMAND_VARIABLE

pytestmark = [pytest.mark.vllm, pytest.mark.slow]

PATIENCE_S = 400.0
IMAGES = [scene.image_path for scene in scenes()[:8]]
CONFIG = ("--repeats", 1, "--max-objects", 1, "--concurrency", 4, "--schedule", "paper", "--json")


class Watched:
    """A command, and all processes it ever started, as the system lists them."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process
        self.started: dict[psutil.Process, str] = {}
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()

    def _look(self) -> None:
        while not self._ended.wait(0.1):
            try:
                children = psutil.Process(self.process.pid).children(recursive=True)
            except psutil.Error:
                continue
            for each in children:
                # One that is dead and not yet waited for has no command line. Those behind it have.
                with suppress(psutil.Error):
                    # Engines call themselves so some time after their start.
                    self.started[each] = " ".join(each.cmdline())

    def finish(self) -> Done:
        done = finish(self.process, PATIENCE_S)
        self._ended.set()
        self._thread.join()
        return done

    def alive(self) -> list[psutil.Process]:
        return [each for each in self.started if each.is_running() and not _is_zombie(each)]

    def named(self, text: str) -> list[psutil.Process]:
        """Those that run now and have `text` in their command line."""
        return [each for each in self.alive() if text in self.started[each]]

    def until_gone(self, seconds: float = 40.0) -> list[psutil.Process]:
        deadline = time.monotonic() + seconds
        while self.alive() and time.monotonic() < deadline:
            time.sleep(0.1)
        return self.alive()


def _is_zombie(process: psutil.Process) -> bool:
    try:
        return bool(process.status() == psutil.STATUS_ZOMBIE)
    except psutil.Error:
        return True


@contextmanager
def annotating(run: Run, model: Path, command: tuple[str, ...], **settings: object) -> Iterator[Watched]:
    """`uncanny annotate` that starts its own servers."""
    own: Mapping[str, str | None] = {
        COMMAND_VARIABLE: shlex.join(command),
        **{f"UNCANNY_VLLM_{name.upper()}": str(value) for name, value in settings.items()},
    }
    arguments = ("annotate", *IMAGES, "-o", run.path, "-m", f"vllm/{model}", *CONFIG)
    with start(*arguments, env=own) as process:
        watched = Watched(process)
        try:
            yield watched
        finally:
            if process.poll() is None:
                process.kill()
                process.communicate()


def wait_for_a_record(run: Run, watched: Watched) -> None:
    records = run.path / "annotations.jsonl"
    deadline = time.monotonic() + PATIENCE_S
    while not (records.exists() and records.stat().st_size):
        assert watched.process.poll() is None, finish(watched.process)
        assert time.monotonic() < deadline
        time.sleep(0.05)


def check_complete(run: Run, done: Done) -> None:
    check_no_traceback(done)
    assert done.code in (0, 1), done.err
    assert run.manifest()["totals"]["pending"] == 0
    assert {record.status for record in run.records()} <= {"ok", "partial"}
    assert len(run.records()) == len(IMAGES)


def main_process(watched: Watched) -> psutil.Process:
    """`vllm serve`, which neither the watcher nor the script before it is."""
    (found,) = [each for each in watched.named("/bin/vllm serve") if each.pid == os.getpgid(each.pid)]
    return found


def engine(watched: Watched) -> psutil.Process:
    return next(each for each in watched.alive() if "EngineCore" in watched.started[each])


@pytest.mark.parametrize("victim", [main_process, engine])
def test_a_server_killed_in_the_midst_of_a_run_is_started_again(
    victim: Callable[[Watched], psutil.Process],
    tiny_model: Path,
    vllm_command: tuple[str, ...],
    tmp_path: Path,
) -> None:
    run = Run(tmp_path / "run")
    with annotating(run, tiny_model, vllm_command) as watched:
        wait_for_a_record(run, watched)
        victim(watched).kill()
        done = watched.finish()
        assert watched.alive() == []
    check_complete(run, done)
    (warning,) = [each for each in run.manifest()["warnings"] if "The vLLM server for" in each]
    assert warning.endswith("Starting it again (1 of 3 restarts)")
    assert len([line for line in watched.started.values() if "/bin/vllm serve" in line]) >= 2


def test_a_run_that_is_killed_leaves_nothing_and_resumes(
    tiny_model: Path, vllm_command: tuple[str, ...], tmp_path: Path
) -> None:
    run = Run(tmp_path / "run")
    with annotating(run, tiny_model, vllm_command) as watched:
        wait_for_a_record(run, watched)
        assert len(watched.alive()) >= 3
        watched.process.kill()
        assert watched.finish().code == -signal.SIGKILL
        assert watched.until_gone() == []
    with annotating(run, tiny_model, vllm_command) as watched:
        check_complete(run, watched.finish())
        assert watched.alive() == []


def test_one_of_two_replicas_is_killed(
    tiny_model: Path, vllm_command: tuple[str, ...], tmp_path: Path
) -> None:
    run = Run(tmp_path / "run")
    with annotating(run, tiny_model, vllm_command, replicas=2) as watched:
        wait_for_a_record(run, watched)
        mains = [each for each in watched.named("/bin/vllm serve") if each.pid == os.getpgid(each.pid)]
        assert len(mains) == 2
        mains[0].kill()
        done = watched.finish()
        assert watched.alive() == []
    check_complete(run, done)
    logs = [(run.path / name).read_text() for name in ("vllm.log", "vllm-2.log")]
    assert all('"POST /v1/chat/completions HTTP/1.1" 200' in log for log in logs)


ADAPTER = """
import json, sys
from pathlib import Path
import torch
from safetensors.torch import save_file
model, out = Path(sys.argv[1]), Path(sys.argv[2])
text = json.loads((model / "config.json").read_text())["text_config"]
hidden, rank = text["hidden_size"], 8
width = text["num_attention_heads"] * text["head_dim"]
torch.manual_seed(0)
weights = {}
for layer in range(text["num_hidden_layers"]):
    place = f"base_model.model.model.language_model.layers.{layer}.self_attn.q_proj"
    weights[f"{place}.lora_A.weight"] = torch.randn(rank, hidden)
    weights[f"{place}.lora_B.weight"] = torch.randn(width, rank)
out.mkdir()
save_file(weights, out / "adapter_model.safetensors")
config = {"peft_type": "LORA", "r": rank, "lora_alpha": 16, "target_modules": ["q_proj"], "bias": "none"}
(out / "adapter_config.json").write_text(json.dumps(config))
"""


def test_up_serves_an_adapter_by_name_and_ends_all(
    tiny_model: Path, vllm_command: tuple[str, ...], vllm_venv: Path, tmp_path: Path
) -> None:
    adapter = tmp_path / "adapter"
    subprocess.run((vllm_venv / "bin" / "python", "-c", ADAPTER, tiny_model, adapter), check=True)
    arguments = ("vllm", "up", tiny_model, "--port", 0, "--lora", f"noisy={adapter}")
    log = ("--log", tmp_path / "vllm.log")
    with start(*arguments, *log, env={COMMAND_VARIABLE: shlex.join(vllm_command)}) as process:
        watched = Watched(process)
        assert process.stdout is not None
        line = process.stdout.readline().decode()
        assert line.startswith("listening on "), finish(process)
        address = line.split()[-1]
        answers = [
            httpx2.post(
                f"{address}/chat/completions",
                json={
                    "model": model,
                    "messages": [{"role": "user", "content": "What is odd here?"}],
                    "max_tokens": 30,
                    "temperature": 0,
                },
                headers={"Authorization": f"Bearer {KEYS['VLLM_API_KEY']}"},  # the server takes it from there
                timeout=120,
                trust_env=False,
            ).json()
            for model in (str(tiny_model), "noisy")
        ]
        run = Run(tmp_path / "run")
        with start(
            *("annotate", IMAGES[0], "-o", run.path, "-m", "vllm/noisy", "--base-url", address, *CONFIG)
        ) as annotate:
            assert finish(annotate, PATIENCE_S).code in (0, 1)
        process.send_signal(signal.SIGINT)
        done = watched.finish()
        assert watched.until_gone(5) == []
    check_no_traceback(done)
    assert done.code == 0, done.err
    base, noisy = (answer["choices"][0]["message"]["content"] for answer in answers)
    assert base != noisy
    assert {call["served_model"] for call in run.calls() if call["outcome"] == "answered"} == {"noisy"}


IN_PROCESS = """
import sys
sys.path += sys.argv.pop().split(":")
from uncanny.cli import main
main(sys.argv[1:])
"""
# Those of vllm.sh.
SMALL = {
    "HF_HUB_OFFLINE": "1",
    "VLLM_NO_USAGE_STATS": "1",
    "TORCHDYNAMO_DISABLE": "1",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "OMP_NUM_THREADS": "1",
    "UNCANNY_VLLM_ARGS": "--dtype float32 --enforce-eager --max-model-len 16384 --max-num-seqs 8 "
    "--block-size 32 --kv-cache-memory-bytes 128M --mm-processor-cache-gb 0.1 "
    '--limit-mm-per-prompt \'{"image": 5, "video": 0}\'',
}


def test_vllm_in_this_process_answers_as_constrained_and_leaves_nothing(
    tiny_model: Path, vllm_venv: Path, tmp_path: Path
) -> None:
    run = Run(tmp_path / "run")
    arguments = ("annotate", *IMAGES[:3], "-o", run.path, "-m", f"vllm-inproc/{tiny_model}", *CONFIG)
    # vLLM's environment with this one's packages behind its own.
    packages = ":".join([str(SOURCE), sysconfig.get_path("purelib"), *filter(None, sys.path)])
    with subprocess.Popen(
        [vllm_venv / "bin" / "python", "-c", IN_PROCESS, *map(str, arguments), packages],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**environment(SMALL), "PYTHONPATH": ""},
    ) as process:
        watched = Watched(process)
        done = watched.finish()
        assert watched.until_gone(5) == []
    check_no_traceback(done)
    assert done.code in (0, 1), done.err
    assert json.loads(done.out)["totals"]["pending"] == 0
    calls = run.calls()
    answered = [call for call in calls if call["outcome"] == "answered"]
    assert len(answered) >= len(calls) // 2
    assert all(call["input_tokens"] > 0 and call["cached_tokens"] is not None for call in answered)
    constrained = [call for call in answered if call["agent"] == "ObjectPerceiver"]
    assert constrained
    assert all(list(json.loads(call["answer"])["answer"]) == ["objects"] for call in constrained)
