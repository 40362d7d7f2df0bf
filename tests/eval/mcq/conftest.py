"""A run of the demo model over the bundled set, for all tests that leave it as it is."""

from __future__ import annotations

import pytest

from tests.eval.mcq.recording import McqRun
from tests.runs.e2e import uncanny_here

ALL = 129
"""Questions of the bundled set."""


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory) -> McqRun:
    run = McqRun(tmp_path_factory.mktemp("demo") / "run")
    done = uncanny_here("mcq", "run", "scenes", "--model", "demo", "-o", run.path)
    assert (done.code, done.told) == (0, "")
    assert f"Asked    {ALL}: {ALL} ok, 0 refused, 0 failed" in done.out
    return run
