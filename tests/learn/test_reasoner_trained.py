"""A reasoner on a tiny model: what it learns, on which tokens, what stays as it was, what a kill costs."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

import uncanny.learn
from tests.learn.planted import PLANTED, QUESTION, SMALL, color_of, make_base, planted, write_chats
from tests.runs.e2e import uncanny_here
from uncanny.errors import UsageError
from uncanny.learn.common.chats import read_chats
from uncanny.learn.common.language import LanguageModel, adapted_layers, check_learned
from uncanny.learn.common.result import LearnRun
from uncanny.learn.reasoning.data import examples_of
from uncanny.learn.reasoning.parameters import ReasonerParameters
from uncanny.learn.reasoning.run import _batch, _collator

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_base(tmp_path_factory.mktemp("base"))


@pytest.fixture(scope="module")
def trained(base: Path, tmp_path_factory: pytest.TempPathFactory) -> LearnRun:
    folder = tmp_path_factory.mktemp("trained")
    data = write_chats(folder / "data", train=range(6), test=range(100, 102))
    return uncanny.learn.reasoner(
        data,
        base=base,
        out=folder / "run",
        before_and_after=5,
        whole_model=True,
        **PLANTED,
    )


def test_it_learns_a_planted_pattern_that_the_base_does_not_know(trained: LearnRun) -> None:
    losses = [each.loss or 0 for each in trained.steps]
    assert len(losses) == 120
    assert sum(losses[-5:]) < 0.1 * sum(losses[:5])
    assert len(trained.examples) == 5  # of 6 that are measured
    assert trained.results["notes"][0].startswith("Measured on 6 of 6 held-out images")
    for example in trained.examples:
        assert example["wanted"] == planted(color_of(example["image"]))
        assert example["before"] != example["wanted"]
    share = trained.results["figures"]["share of answers that are equal to the expected one"]
    assert share["before"] == 0
    assert share["after"] >= 5 / 6
    assert trained.results["figures"]["SemAP (chrF)"]["after"] > 0.9
    # Of the whole model as it is saved none would be trainable.
    assert 0 < trained.results["trainable_parameters"] < trained.results["parameters"]


def test_what_was_frozen_is_bit_for_bit_as_it_was(trained: LearnRun, base: Path) -> None:
    before, after = load_file(base / "model.safetensors"), load_file(trained.model / "model.safetensors")
    assert before.keys() == after.keys()
    changed = {name for name in before if not torch.equal(before[name], after[name])}
    assert changed == {
        f"model.layers.{layer}.self_attn.{name}.weight"
        for layer in range(8)
        for name in ("q_proj", "k_proj", "v_proj")
    }


def test_a_run_has_all_that_it_depends_on(trained: LearnRun, base: Path) -> None:
    plan = trained.manifest.plan
    assert (trained.state, plan["seed"], plan["rank"]) == ("finished", 0, 16)
    assert set(plan["data"]) == {"train", "test"}
    assert all(len(each) == 64 for each in (*plan["data"].values(), plan["base_sha256"]))
    assert {"torch", "transformers", "trl", "peft"} <= trained.manifest.libraries.keys()
    prompts = {file.name: file.read_text() for file in (trained.path / "prompts").iterdir()}
    assert prompts == {"system.md": "", "anomalies.md": QUESTION}
    card = (trained.model / "README.md").read_text()
    assert f'base_model: "{base}"' in card
    assert f"uncanny vllm up {trained.model}" in card
    assert plan["data"]["train"] in card
    assert not list(trained.path.rglob("*.bin"))  # nothing is pickled
    assert not (trained.path / "checkpoints").exists()


def test_the_page_and_the_command(trained: LearnRun, tmp_path: Path) -> None:
    page = trained.report(tmp_path / "page.html").read_text()
    assert "Before and after training" in page
    assert page.count('class="example"') == 5
    assert "red glow" in page
    done = uncanny_here("report", trained.path)
    assert done.code == 0, done.told
    assert (trained.path / "report.html").is_file()


def test_the_command_trains_once(base: Path, tmp_path: Path) -> None:
    data = write_chats(tmp_path / "data", train=range(2), test=range(100, 101))
    pixels = ("--min-pixels", 3136, "--max-pixels", 3136)
    more = ("--max-steps", 2, "--learning-rate", 0.01, "--accumulate", 1, "--before-and-after", 1)
    command = ("learn", "reasoner", data, "--base", base, "-o", tmp_path / "run", *pixels, *more)
    done = uncanny_here(*command, "--answer-tokens", 5, "--json")
    assert done.code == 0, done.err
    assert "Warning" not in done.err
    result = json.loads(done.out)
    assert (result["state"], result["steps"]) == ("finished", 2)
    assert result["first_loss"] > 0
    assert Path(result["report"]).is_file()
    before = (tmp_path / "run" / "steps.jsonl").read_bytes()
    again = uncanny_here(*command, "--answer-tokens", 5)
    assert again.code == 0, again.err
    assert "optimizer steps" in again.out
    assert (tmp_path / "run" / "steps.jsonl").read_bytes() == before
    other = uncanny_here(*command, "--answer-tokens", 6)
    assert other.code == 2
    assert "was made with other settings (--answer-tokens: 5 before, 6 now)" in other.told


def test_a_held_out_image_that_cannot_be_read_is_named_and_not_measured(base: Path, tmp_path: Path) -> None:
    data = write_chats(tmp_path / "data", train=range(1), test=range(100, 101))
    first = read_chats(data / "test.jsonl")[0].images[0]
    (data / first).write_bytes(b"no picture")
    settings = {**SMALL, "answer_tokens": 5, "accumulate": 1, "max_steps": 2, "learning_rate": 1e-2}
    run = uncanny.learn.reasoner(data, base=base, out=tmp_path / "run", **settings)
    assert run.state == "finished"
    measured, unreadable = run.results["notes"]
    assert measured.startswith("Measured on 2 of 2 held-out images")
    assert unreadable.startswith("1 held-out image could not be read, first ")
    assert first in unreadable


@pytest.mark.parametrize(
    "template", ["{{ raise_exception('no') }}", "{% for %}", "{{ ''.__class__.__mro__ }}", "{{ 1 / 0 }}"]
)
def test_a_chat_template_that_cannot_be_used_is_refused(base: Path, tmp_path: Path, template: str) -> None:
    copy = shutil.copytree(base, tmp_path / "copy")
    (copy / "chat_template.jinja").write_text(template)
    with pytest.raises(UsageError, match=r"The chat template of .* cannot be used"):
        LanguageModel(ReasonerParameters(base=copy, out=tmp_path / "run", **SMALL), torch.device("cpu"))


def turns_of(collator: Any, ids: torch.Tensor) -> str:
    text: str = collator.processor.tokenizer.decode(ids)
    return text


@pytest.mark.parametrize("detect", [False, True])
def test_the_loss_is_on_the_answers_and_on_nothing_else(base: Path, tmp_path: Path, detect: bool) -> None:
    folder = write_chats(tmp_path / "data", train=range(1), test=range(0), detect=detect)
    examples = examples_of(read_chats(folder / "train.jsonl"), folder)
    model = LanguageModel(ReasonerParameters(base=base, out=tmp_path / "run", **SMALL), torch.device("cpu"))
    collator = _collator(model, examples)
    batch = _batch(collator, examples[:2])
    for row, example in enumerate(examples[:2]):
        ids, labels = batch["input_ids"][row], batch["labels"][row]
        trained_on = labels != -100
        assert torch.equal(ids[trained_on], labels[trained_on])
        color = color_of(example.images[0])
        end = "<|im_end|>\n"
        assert turns_of(collator, labels[trained_on]) == ("Yes." + end) * detect + planted(color) + end
        masked = turns_of(collator, ids[~trained_on & (batch["attention_mask"][row] == 1)])
        assert QUESTION in masked
        assert "<|image_pad|>" in masked
        assert planted(color)[:10] not in masked


def test_dividing_a_step_changes_no_gradient(base: Path, tmp_path: Path) -> None:
    """The mean is over all answer tokens of a step, not over means of passes."""
    data = write_chats(tmp_path / "data", train=range(2), test=range(0))
    lines = (data / "train.jsonl").read_text().splitlines()
    longer = json.loads(lines[0])
    longer["messages"][1]["content"][0]["text"] *= 2  # answers of several lengths
    (data / "train.jsonl").write_text("\n".join([json.dumps(longer), *lines[1:]]) + "\n")
    losses = []
    for batch, accumulate in ((6, 1), (2, 3)):
        run = uncanny.learn.reasoner(
            data,
            base=base,
            out=tmp_path / f"run{batch}",
            batch=batch,
            accumulate=accumulate,
            max_steps=2,
            epochs=100.0,
            learning_rate=1e-2,
            **SMALL,
        )
        losses.append([each.loss for each in run.steps])
    assert losses[0] == pytest.approx(losses[1], rel=1e-3)


def test_adapters_are_in_the_language_model_only(base: Path, tmp_path: Path) -> None:
    parameters = ReasonerParameters(base=base, out=tmp_path / "run", **SMALL)
    model = LanguageModel(parameters, torch.device("cpu"))
    model.add_adapter(parameters, 0.0, 0)
    trained = {name for name, each in model.model.named_parameters() if each.requires_grad}
    assert len(trained) == 2 * 3 * 2  # layers 0 and 4, three projections, A and B
    assert all(".language_model.layers." in name for name in trained)
    assert adapted_layers([0, 4]).count("0|4") == 1
    with pytest.raises(uncanny.UncannyError, match="did not change the model"):
        check_learned(model.model)


KILLED = """
import sys
sys.path.insert(0, {root!r})
import tests.learn.conftest
import uncanny.learn
uncanny.learn.reasoner({data!r}, base={base!r}, out={out!r}, **{settings!r})
"""


def test_a_run_that_is_killed_goes_on_as_if_it_had_not_been(base: Path, tmp_path: Path) -> None:
    data = write_chats(tmp_path / "data", train=range(4), test=range(0))
    settings = {**SMALL, "dropout": 0.3, "learning_rate": 1e-2, "batch": 3, "accumulate": 1, "epochs": 2.0}
    settings |= {"checkpoint_every": 3}
    whole = uncanny.learn.reasoner(data, base=base, out=tmp_path / "whole", **settings)
    assert len(whole.steps) == 8
    root = str(Path(__file__).parents[2])
    script = KILLED.format(
        root=root, data=str(data), base=str(base), out=str(tmp_path / "killed"), settings=settings
    )
    with subprocess.Popen((sys.executable, "-c", script), env=os.environ) as process:
        wait_for_checkpoint(tmp_path / "killed", process)
        process.send_signal(signal.SIGKILL)
    stopped = LearnRun(tmp_path / "killed")
    assert stopped.state == "running"
    assert 3 <= len(stopped.steps) < 8
    again = uncanny.learn.reasoner(data, base=base, out=tmp_path / "killed", **settings)
    assert again.state == "finished"
    assert [each.step for each in again.steps] == list(range(1, 9))
    assert [each.loss for each in again.steps] == [each.loss for each in whole.steps]
    name = "adapter_model.safetensors"
    assert (again.model / name).read_bytes() == (whole.model / name).read_bytes()


def wait_for_checkpoint(run: Path, process: subprocess.Popen[bytes]) -> None:
    began = time.monotonic()
    while not (run / "checkpoints" / "checkpoint-3" / "complete").is_file():
        assert process.poll() is None
        assert time.monotonic() - began < 600
        time.sleep(0.01)
