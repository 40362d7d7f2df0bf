"""A run with verdicts, for what goes out and what comes back."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.exports.made_runs import usual_run


@pytest.fixture
def run(tmp_path: Path) -> Path:
    folder = tmp_path / "run"
    folder.mkdir()
    usual_run(folder)
    return folder
