"""Imports go one way only; the contract is in pyproject.toml."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_the_layers_are_kept() -> None:
    done = subprocess.run(
        [sys.executable, "-c", "import sys; from importlinter.cli import lint_imports_command as run; run()"],
        cwd=ROOT,
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "3 kept, 0 broken" in done.stdout


def test_every_package_has_a_layer() -> None:
    config = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contract = config["tool"]["importlinter"]["contracts"][0]
    layered = {
        name.strip().removeprefix("uncanny.")
        for layer in contract["layers"]
        for part in layer.split("|")
        for name in part.split(":")
    }
    packages = {path.parent.name for path in (ROOT / "src" / "uncanny").glob("*/__init__.py")}
    assert packages <= layered
