"""The command as users have it: from the built wheel, in an environment of its own, in an empty folder.

UNCANNY_CLEAN_VENV names that environment; `.ci/wheel` makes it once for all of these tests.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.runs.e2e import Done, Server

VENV = os.environ.get("UNCANNY_CLEAN_VENV")
KEYS = {f"{name}_API_KEY": "any-key" for name in ("OPENAI", "ANTHROPIC", "OPENAI_COMPATIBLE")}
# Variables that a user's shell would have; whatever concerns uncanny, Python or providers is left out.
KEPT = ("LANG", "PATH", "TMPDIR")


@dataclass(frozen=True, slots=True)
class Shell:
    """A user's terminal in `folder`; `env` is what was exported."""

    folder: Path
    env: Mapping[str, str]

    def uncanny(self, *arguments: object, **env: str) -> Done:
        assert VENV is not None
        done = subprocess.run(
            [Path(VENV) / "bin" / "uncanny", *map(str, arguments)],
            cwd=self.folder,
            env={**self.env, **env},
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )
        assert "Traceback" not in done.stderr
        return Done(done.returncode, done.stdout, done.stderr)

    def mistake(self, *arguments: object, **env: str) -> str:
        """What is said to wrong use: a few lines, exit code 2, and nothing done."""
        done = self.uncanny(*arguments, **env)
        assert (done.code, done.out) == (2, ""), done
        message = " ".join(done.err.split())
        assert len(message) < 500, message
        assert not re.search(r"[0-9a-f]{32}", message), message
        return message


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    if VENV is None:
        pytest.skip("UNCANNY_CLEAN_VENV names no environment with the built wheel")
    kept = {name: os.environ[name] for name in KEPT if name in os.environ}
    home = tmp_path / "home"  # empty: nobody's cache and settings
    home.mkdir()
    folder = tmp_path / "work"
    folder.mkdir()
    return Shell(folder, {**kept, **KEYS, "HOME": str(home)})


@pytest.fixture
def server(shell: Shell) -> Iterator[Server]:
    assert VENV is not None
    command = [f"{VENV}/bin/uncanny", "fake-server", "--max-seconds", "500"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=shell.folder) as process:
        assert process.stdout is not None
        try:
            first_line = process.stdout.readline()
            assert first_line.startswith("listening on http"), (first_line, process.poll())
            yield Server(first_line.split()[-1])
        finally:
            process.terminate()


@pytest.fixture
def scenes(shell: Shell) -> Path:
    """The bundled images as `uncanny demo` leaves them."""
    assert shell.uncanny("demo", "-o", "first", "--quiet").code == 0
    return shell.folder / "first" / "images"


def copy(source: Path, target: Path, *names: str) -> Path:
    target.mkdir(parents=True, exist_ok=True)
    for name in names:
        shutil.copy(source / name, target / name)
    return target
