"""The measurements can be run one by one, and need only what they measure."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


def test_only_benchmarks_that_are_there_are_named() -> None:
    command = [sys.executable, "-m", "benchmarks", "no such one"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    names = done.stderr.strip().split("Choose among ")[1].strip(".").split(", ")
    assert all("\ndef main(" in (ROOT / "benchmarks" / f"{name}.py").read_text() for name in names)


@pytest.mark.parametrize("name", ["overhead", "orchestration", "startup"])
def test_what_measures_no_service_needs_none(name: str) -> None:
    script = f"import sys; sys.modules |= dict.fromkeys(['fastapi', 'uvicorn']); import benchmarks.{name}"
    subprocess.run([sys.executable, "-c", script], cwd=ROOT, check=True)
