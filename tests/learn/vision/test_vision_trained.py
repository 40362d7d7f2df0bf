"""Training of detectors and multitask models, from data to a model that is asked and scored."""

from __future__ import annotations

import json
import shutil
import signal
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

import uncanny  # noqa: E402
import uncanny.artifacts  # noqa: E402
import uncanny.learn  # noqa: E402
from benchmarks.learning.planted import plant  # noqa: E402
from tests.learn.vision.planted_models import save_dinov2, save_swin  # noqa: E402
from tests.runs.e2e import uncanny_here  # noqa: E402
from uncanny.detectors.loading import load_classifier  # noqa: E402
from uncanny.errors import UsageError  # noqa: E402
from uncanny.learn.common.session import mark_whole  # noqa: E402

SMALL: Any = {"device": "cpu", "max_steps": 2, "side": 32, "held_out_share": 0.25}


@pytest.fixture
def truth(tmp_path: Path) -> Path:
    return plant(tmp_path / "planted", 8, 0, 32)


@pytest.fixture
def dinov2(tmp_path: Path) -> Path:
    return save_dinov2(tmp_path / "dinov2")


@pytest.fixture
def swin(tmp_path: Path) -> Path:
    return save_swin(tmp_path / "swin")


def steps(run: Path) -> list[float]:
    return [json.loads(line)["loss"] for line in (run / "steps.jsonl").read_text().splitlines()]


@pytest.mark.slow
@pytest.mark.parametrize("tuning", ["full", "lora"])
def test_a_detector_is_trained_asked_and_scored(
    tmp_path: Path, truth: Path, dinov2: Path, tuning: str
) -> None:
    out = tmp_path / "run"
    words = ("learn", "detector", truth, "--base", dinov2, "-o", out, "--tuning", tuning)
    sizes = ("--max-steps", 2, "--batch", 4, "--side", 32, "--held-out-share", 0.25, "--device", "cpu")
    done = uncanny_here(*words, *sizes)
    assert done.code == 0, done.err
    run = uncanny.learn.LearnRun(out)
    assert run.state == "finished"
    assert run.results["figures"]["balanced accuracy"]["after"] is not None
    masks = {
        "full": ["none", "saliency", "artifact"],
        "lora": ["none", "benign", "random", "saliency", "artifact"],
    }
    assert [row[0] for row in run.results["published"]["rows"]] == [f"mask: {name}" for name in masks[tuning]]
    assert {"loss", "bce", "alignment"} <= json.loads(
        (out / "steps.jsonl").read_text().splitlines()[0]
    ).keys()
    assert (out / "model" / "README.md").is_file()
    assert (out / "report.html").is_file()
    # It is a classifier of transformers, which says what its class token alone says.
    model: Any = transformers.AutoModelForImageClassification.from_pretrained(out / "model")
    assert model.config.id2label == {0: "real", 1: "generated"}
    assert not model.classifier.weight[:, 24:].any()
    asked = uncanny_here(
        "detect", truth.parent, "--detector", out / "model", "--truth", truth, "-o", tmp_path / "d"
    )
    assert asked.code == 0, asked.err
    assert "Accuracy" in asked.out


@pytest.mark.slow
def test_the_same_seed_gives_the_same_loss_and_a_resumed_run_goes_on_with_it(
    tmp_path: Path, truth: Path, dinov2: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    common = {**SMALL, "base": dinov2, "batch": 2, "max_steps": 4, "checkpoint_every": 2}
    whole = uncanny.learn.detector(truth, out=tmp_path / "whole", keep_checkpoints=9, **common)
    assert len(steps(whole.path)) == 4
    # A run that was killed behind its checkpoint of step 2.
    killed = tmp_path / "killed"

    def mark_and_die(checkpoint: Path) -> None:
        mark_whole(checkpoint)
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("uncanny.learn.common.trainer.mark_whole", mark_and_die)
        with pytest.raises(KeyboardInterrupt):
            uncanny.learn.detector(truth, out=killed, **common)
    resumed = uncanny.learn.detector(truth, out=killed, **common)
    assert resumed.state == "finished"
    assert steps(killed) == steps(whole.path)
    both = [load_classifier(run / "model").module.state_dict() for run in (killed, whole.path)]
    assert all(torch.equal(value, both[1][name]) for name, value in both[0].items())


@pytest.mark.slow
def test_a_run_that_is_interrupted_names_no_model_that_is_not_there(
    tmp_path: Path, dinov2: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On the bundled images, which `scenes` names."""
    run = tmp_path / "run"
    words = ("learn", "detector", "scenes", "--base", dinov2, "-o", run, "--device", "cpu", "--side", 32)
    sizes = ("--batch", 4, "--max-steps", 3, "--held-out-share", 0.5, "--checkpoint-every", 1)
    stopping: list[Path] = []

    def mark_and_interrupt(checkpoint: Path) -> None:
        mark_whole(checkpoint)
        if checkpoint.name == "checkpoint-1" and not stopping:
            stopping.append(checkpoint)
            signal.raise_signal(signal.SIGINT)

    with monkeypatch.context() as patched:
        patched.setattr("uncanny.learn.common.trainer.mark_whole", mark_and_interrupt)
        stopped = uncanny_here(*words, *sizes)
    assert stopped.code == 130, stopped.told
    assert "Model" not in stopped.out
    assert "The same command resumes it" in stopped.err
    assert uncanny.learn.LearnRun(run).state == "interrupted"
    assert not (run / "model").exists()
    done = uncanny_here(*words, *sizes)
    assert done.code == 0, done.told
    assert f"Model    {run / 'model'}" in done.out
    assert len(steps(run)) == 3


@pytest.mark.slow
def test_the_best_of_several_weights_is_kept(tmp_path: Path, truth: Path, dinov2: Path) -> None:
    run = uncanny.learn.detector(
        truth,
        base=dinov2,
        out=tmp_path / "run",
        benign_weights=[0.0, 1.0],
        repeats=2,
        batch=2,
        validation_share=0.34,
        **SMALL,
    )
    assert sorted(each.name for each in run.path.glob("benign-*")) == [
        f"benign-{weight}-seed-{seed}" for weight in (0, 1) for seed in (0, 1)
    ]
    parts = {
        (weight, seed): uncanny.learn.LearnRun(run.path / f"benign-{weight}-seed-{seed}").results
        for weight in (0, 1)
        for seed in (0, 1)
    }
    # All have the same images, and those that choose are neither trained nor measured on.
    assert run.results["examples"] == {"train": 4, "test": 2, "validation": 2}
    assert len({str(each["figures"]["balanced accuracy"]["before"]) for each in parts.values()}) <= 2
    chosen = {
        seed: max((0, 1), key=lambda weight: parts[weight, seed]["validation"]["balanced accuracy"])
        for seed in (0, 1)
    }
    assert run.results["chosen"] == {str(seed): weight for seed, weight in chosen.items()}
    after = [parts[weight, seed]["figures"]["balanced accuracy"]["after"] for seed, weight in chosen.items()]
    assert run.results["figures"]["balanced accuracy"]["after"] == sum(after) / 2
    assert (run.model / "model.safetensors").is_file()


def test_alignment_needs_a_transformer_with_a_class_token(tmp_path: Path, truth: Path, swin: Path) -> None:
    pytest.importorskip("peft")
    with pytest.raises(UsageError, match="has no class token"):
        uncanny.learn.detector(truth, base=swin, out=tmp_path / "run", **SMALL)


@pytest.mark.slow
def test_each_task_trains_saves_predicts_and_is_scored(tmp_path: Path, truth: Path, swin: Path) -> None:
    common = {**SMALL, "side": 64, "batch": 2, "head_channels": 8}
    runs: dict[str, Any] = {}
    for task in ("pixels", "authenticity", "multitask", "probe", "transfer"):
        base = runs["pixels"].model if task in ("probe", "transfer") else swin
        run = runs[task] = uncanny.learn.multitask(truth, base=base, task=task, out=tmp_path / task, **common)
        assert run.state == "finished"
        assert run.results["class_pixels"][2:] == [0] * 6
        detector = f"detector/{run.model}"
        if task in ("pixels", "multitask", "probe"):
            found = uncanny.artifacts.run(truth.parent, model=detector, out=tmp_path / f"a-{task}")
            assert all(record.status == "ok" for record in found.artifacts)
            scores = uncanny.artifacts.score(found.path, truth=truth)
            assert len(scores) == 1
            assert all((record.score is None) == (task == "pixels") for record in found.artifacts)
        else:
            judged = uncanny.detect(truth.parent, model=detector, out=tmp_path / f"d-{task}", truth=truth)
            assert judged.score().scored.images == 8
    before, probe, transfer = (
        load_classifier(runs[task].model).module.state_dict() for task in ("pixels", "probe", "transfer")
    )
    changed = {
        name: [name for name, value in state.items() if not torch.equal(value, before[name])]
        for name, state in (("probe", probe), ("transfer", transfer))
    }
    # A probe leaves all but the classifier as it was, statistics of normalization too.
    assert {name.partition(".")[0] for name in changed["probe"]} == {"classifier"}
    assert any("backbone" in name for name in changed["transfer"])
    with pytest.raises(UsageError, match="must be a model that was trained for artifacts"):
        uncanny.learn.multitask(truth, base=swin, task="probe", out=tmp_path / "no", **common)
    with pytest.raises(UsageError, match="does not say what is generated"):
        uncanny.detect(truth.parent, model=f"detector/{runs['pixels'].model}", out=tmp_path / "no")
    shutil.rmtree(tmp_path / "pixels")
