from __future__ import annotations

from pathlib import Path

import pytest

from tests.runs.e2e import Run


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """A run that is yet to be made."""
    return Run(tmp_path / "run")
