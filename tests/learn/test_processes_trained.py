"""Training in two processes, as `accelerate launch` and `torchrun` start them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import uncanny.learn
from benchmarks.learning.planted import plant
from tests.learn.planted import SMALL, make_base, write_chats
from tests.learn.vision.planted_models import save_dinov2
from uncanny.learn.common.result import LearnRun

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

SCRIPT = """
import sys
sys.path.insert(0, {root!r})
import tests.learn.conftest
import uncanny.learn
uncanny.learn.{kind}({data!r}, **{settings!r})
"""


def in_two(folder: Path, kind: str, data: Path, settings: dict[str, Any]) -> LearnRun:
    script = folder / "script.py"
    root = str(Path(__file__).parents[2])
    given = {name: str(value) if isinstance(value, Path) else value for name, value in settings.items()}
    script.write_text(SCRIPT.format(root=root, kind=kind, data=str(data), settings=given))
    command = (sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2", script)
    env = os.environ | {"ACCELERATE_USE_CPU": "true", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stderr[-3000:]
    return LearnRun(settings["out"])


def test_two_processes_learn_what_one_learns_with_twice_the_steps(tmp_path: Path) -> None:
    base = tmp_path / "base"
    base.mkdir()
    make_base(base)
    data = write_chats(tmp_path / "data", train=range(4), test=range(100, 101))
    settings = {**SMALL, "base": base, "batch": 2, "learning_rate": 1e-2, "answer_tokens": 5}
    one = uncanny.learn.reasoner(data, out=tmp_path / "one", accumulate=2, **settings)
    two = in_two(tmp_path, "reasoner", data, {**settings, "out": tmp_path / "two", "accumulate": 1})
    assert (two.state, len(two.steps)) == ("finished", 3)
    assert [each.loss for each in two.steps] == pytest.approx([each.loss for each in one.steps], rel=1e-4)
    assert two.results["figures"].keys() == one.results["figures"].keys()
    assert (two.model / "adapter_model.safetensors").is_file()


def test_the_best_of_several_weights_is_found_by_two_processes(tmp_path: Path) -> None:
    """One of them writes, and the others wait before they read what it wrote."""
    data = plant(tmp_path / "planted", 8, 0, 32)
    settings = {
        "base": save_dinov2(tmp_path / "dinov2"),
        "out": tmp_path / "run",
        "device": "cpu",
        "side": 32,
    }
    shares = {"held_out_share": 0.25, "validation_share": 0.34, "benign_weights": [0.0, 1.0]}
    run = in_two(tmp_path, "detector", data, {**settings, **shares, "batch": 2, "max_steps": 2})
    assert run.state == "finished"
    assert run.results["examples"] == {"train": 4, "test": 2, "validation": 2}
    assert sorted(each.name for each in run.path.glob("benign-*")) == ["benign-0-seed-0", "benign-1-seed-0"]
    assert (run.model / "model.safetensors").is_file()
