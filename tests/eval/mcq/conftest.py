"""A run of the demo model over the bundled set, for all tests that leave it as it is."""

from __future__ import annotations

import pytest

from tests.bundled_runs import BundledRuns
from tests.eval.mcq.recording import McqRun

ALL = 129
"""Questions of the bundled set."""


@pytest.fixture(scope="session")
def demo(bundled_run: BundledRuns) -> McqRun:
    run = bundled_run("mcq")
    assert f"Asked    {ALL}: {ALL} ok, 0 refused, 0 failed" in run.out
    return McqRun(run.path)
