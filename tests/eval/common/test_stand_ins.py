"""Answers of a fallback: records name it, and scores do not pass them off as the run's model's."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.bundled_runs import some_items
from tests.runs.e2e import uncanny_here
from uncanny import Capabilities, ModelRequest, ModelResponse, mcq, realism, register_provider
from uncanny.errors import QuotaError
from uncanny.models import registry


class NoCredit:
    capabilities = Capabilities()

    def __init__(self, model: str) -> None:
        self.name = f"nocredit/{model}"

    async def generate(self, request: ModelRequest) -> ModelResponse:  # noqa: ARG002
        raise QuotaError("no credit")


@pytest.fixture(autouse=True)
def provider(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_REGISTERED", {})
    register_provider("nocredit", NoCredit)


def test_multiple_choice_says_whose_the_answers_are(tmp_path: Path) -> None:
    items = some_items(tmp_path / "set", 3)
    run = mcq.run(items, model="nocredit/x", out=tmp_path / "run", fallback="demo")
    assert all((answer.model_extra or {})["models"]["demo"] == 1 for answer in run.answers)
    scores = run.score(resamples=0)
    count = len(run.answers)
    assert scores["nocredit/x"].stand_ins == {"demo": count}
    assert scores.to_json()["stand_ins"] == {"demo": count}
    words = f"{count} of {count} answers came from demo"
    assert f"nocredit/x: {words}" in str(scores)
    assert words in uncanny_here("mcq", "score", items, run.path, "--no-report").out
    page = run.report().read_text()
    assert f"{count} of {count} answers came from <bdi>demo</bdi>" in page
    assert f"ours: {words}" in str(mcq.score(items, {"ours": run}, resamples=0))


def test_realism_says_whose_the_labels_are(tmp_path: Path) -> None:
    run = realism.run("scenes", model="nocredit/x", out=tmp_path / "run", fallback="demo", limit=3)
    assert all("demo" in (verdict.model_extra or {})["models"] for verdict in run.verdicts)
    labelled = sum(verdict.label != "undetermined" for verdict in run.verdicts)
    scores = run.score(resamples=0)
    words = f"{labelled} of {labelled} labels came from demo"
    assert scores.to_json()["stand_ins"] == {"demo": labelled}
    assert words in " ".join(str(scores).split())
    shown = uncanny_here("realism", "score", run.path, "--no-report").out
    assert words in " ".join(shown.split())
    assert f"{labelled} of {labelled} labels came from <bdi>demo</bdi>" in run.report().read_text()


def test_scores_of_answers_that_are_all_the_models_own_say_nothing(tmp_path: Path) -> None:
    run = mcq.run(some_items(tmp_path / "set", 2), model="demo", out=tmp_path / "mcq")
    assert "models" not in (run.answers[0].model_extra or {})
    assert "came from" not in str(run.score(resamples=0)) + run.report().read_text()
    judged = realism.run("scenes", model="demo", out=tmp_path / "realism", limit=2)
    assert "stand_ins" not in judged.score(resamples=0).to_json()
    assert "came from" not in str(judged.score(resamples=0)) + judged.report().read_text()
