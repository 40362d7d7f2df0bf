"""Five models from one command to a table with intervals, with the mistakes that users made."""

from __future__ import annotations

import json

import pytest

from tests.runs.e2e import Server
from tests.whole_jobs.conftest import Shell

# Many processes: a busy machine takes its time.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

MODELS = ("openai/tern", "openai/heron", "anthropic/ibis", "openai-compatible/gull", "demo")


def test_five_models_are_compared(shell: Shell, server: Server) -> None:
    addresses = {"openai": server.v1, "anthropic": server.url, "openai-compatible": server.v1}
    asked = [part for model in MODELS for part in ("-m", model)]
    asked += [part for name, url in addresses.items() for part in ("--base-url", f"{name}={url}")]

    assert "Did you mean score" in shell.mistake("mcq", "scroe", "scenes", "runs/five")
    commas = shell.mistake("mcq", "run", "scenes", "-m", "demo,openai/tern", "-o", "runs/commas")
    assert "-m demo -m openai/tern" in commas
    assert "given 2 times" in shell.mistake("annotate", ".", "-m", "demo", "-m", "noop", "-o", "runs/two")

    done = shell.uncanny("mcq", "run", "scenes", *asked, "--limit", 4, "-o", "runs/five")
    assert done.code == 0, done.err
    assert all(model in done.out for model in MODELS)

    scored = shell.uncanny(
        "mcq", "score", "scenes", "runs/five", "--baselines", "--json", "s.json", "--latex", "t.tex"
    )
    assert scored.code == 0, scored.err
    # Names stand whole, whatever the width of the terminal.
    assert all(model in scored.out for model in MODELS)
    models = json.loads((shell.folder / "s.json").read_text())["models"]
    assert set(MODELS) < set(models)
    # A share of 0 or 100 % has an interval with a width.
    artifact = [(model["splits"]["artifact"], model["ci"]["splits"]["artifact"]) for model in models.values()]
    at_an_end = [
        intervals[name] for shares, intervals in artifact for name in intervals if shares[name] in (0, 1)
    ]
    assert at_an_end
    assert all(low < high for low, high in at_an_end)
    assert "\\begin{tabular}" in (shell.folder / "t.tex").read_text()

    again = shell.mistake(
        "mcq", "score", "scenes", "runs/five/demo", "--json", "runs/five/demo/answers.jsonl"
    )
    assert "would be overwritten" in again
    assert shell.uncanny("report", "runs/five/demo").code == 0
    assert "contains 5 runs" in shell.mistake("report", "runs/five")
