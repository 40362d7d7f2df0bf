"""The workflow of `docs/pipelines.md`: its steps run as they stand, by the shell that CI uses."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
import yaml

from tests.runs.e2e import environment

PAGE = Path(__file__).parents[2] / "docs" / "pipelines.md"


@pytest.mark.slow
def test_the_steps_run_as_they_stand(tmp_path: Path) -> None:
    workflow = yaml.safe_load(PAGE.read_text(encoding="utf-8").split("```yaml\n")[1].split("```")[0])
    (job,) = workflow["jobs"].values()
    env = environment(dict.fromkeys((f"{name}_API_KEY" for name in ("OPENAI", "ANTHROPIC")), None))
    env["PATH"] = os.pathsep.join((str(Path(sys.executable).parent), env["PATH"]))
    steps = [step["run"] for step in job["steps"] if "run" in step]
    # What is tested is installed; the others run.
    assert steps[0] == "pip install -e ."
    assert len(steps) == 3

    def run(step: str) -> subprocess.CompletedProcess[str]:
        # As GitHub runs a step whose shell is not named.
        command = ["bash", "-e", "-c", step]
        return subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True)

    for step in steps[1:]:
        done = run(step)
        assert done.returncode == 0, done.stderr
    suite = ElementTree.parse(tmp_path / "gate.xml").getroot()
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("2", "0", "0")
    uploaded = job["steps"][-1]["with"]["path"].split()
    assert all((tmp_path / name).is_file() for name in uploaded)
    # And it fails where it is to fail.
    done = run(steps[2].replace("visible>0.9", "visible>0.1"))
    assert done.returncode == 4, done.stderr
