"""Imports go one way only; the contract is in pyproject.toml."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
CONFIG = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
CONTRACTS = CONFIG["tool"]["importlinter"]["contracts"]


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
    assert f"{len(CONTRACTS)} kept, 0 broken" in done.stdout


def test_every_package_has_a_layer() -> None:
    layered = {
        name.strip().removeprefix("uncanny.")
        for layer in CONTRACTS[0]["layers"]
        for part in layer.split("|")
        for name in part.split(":")
    }
    source = ROOT / "src" / "uncanny"
    packages = {path.parent.name for path in source.glob("*/__init__.py")} - {"eval"}
    packages |= {f"eval.{path.parent.name}" for path in (source / "eval").glob("*/__init__.py")}
    assert packages <= layered


def test_of_the_demo_protocols_may_know_the_scenes_alone() -> None:
    demo = ROOT / "src" / "uncanny" / "demo"
    modules = {f"uncanny.demo.{path.stem}" for path in demo.glob("*.py") if path.stem != "__init__"}
    modules |= {f"uncanny.demo.{path.parent.name}" for path in demo.glob("*/__init__.py")}
    contract = next(each for each in CONTRACTS if "uncanny.eval" in each.get("source_modules", ()))
    data = {"uncanny.demo.scenes", "uncanny.demo.sets"}
    assert set(contract["forbidden_modules"]) == modules - data
