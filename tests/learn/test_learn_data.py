"""Chats, checkpoints and the log of steps, without anything that trains."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import pytest
from PIL import Image

from uncanny.errors import ItemsError, RunMismatchError, UncannyError, UsageError
from uncanny.learn.common.chats import chats_file, read_chats
from uncanny.learn.common.session import StopTrainingError, last_checkpoint, mark_whole, training
from uncanny.learn.common.steps import StepLog, read_steps
from uncanny.learn.reasoning.data import (
    Example,
    examples_of,
    fit,
    join_entries,
    questions,
    split_entries,
    text_of,
)
from uncanny.learn.reasoning.measure import cases_of, figures_of
from uncanny.learn.reasoning.parameters import ReasonerParameters
from uncanny.learn.reasoning.run import special_tokens

ENTRY = "Name: Extra finger\nPhenomenon: Six fingers.\nReasoning: Hands have five.\nSeverity Score: 20."


def chat(*turns: tuple[str, str], image: str = "a.png", **more: Any) -> dict[str, Any]:
    messages = []
    for number, (asked, said) in enumerate(turns):
        picture = [{"type": "image"}] if not number else []
        messages.append({"role": "user", "content": [*picture, {"type": "text", "text": asked}]})
        messages.append({"role": "assistant", "content": [{"type": "text", "text": said}]})
    return {"messages": messages, "images": [image], "run_image": image} | more


def written(folder: Path, *chats: dict[str, Any], name: str = "train.jsonl") -> Path:
    file = folder / name
    file.write_text("".join(json.dumps(each) + "\n" for each in chats))
    for each in chats:
        for image in each["images"]:
            Image.new("RGB", (8, 8)).save(folder / image)
    return file


def examples(folder: Path, *chats: dict[str, Any], special: tuple[str, ...] = ()) -> list[Example]:
    return examples_of(read_chats(written(folder, *chats)), folder, special)


def words(example: Example) -> int:
    return sum(len(text_of(each).split()) for each in example.messages)


def test_the_file_is_found_in_an_export(tmp_path: Path) -> None:
    (tmp_path / "sft").mkdir()
    file = written(tmp_path / "sft", chat(("What?", "No anomalies.")))
    assert chats_file(tmp_path) == chats_file(tmp_path / "sft") == chats_file(file) == file
    with pytest.raises(UsageError, match="elsewhere does not exist"):
        chats_file(tmp_path / "elsewhere")
    (tmp_path / "elsewhere").mkdir()
    with pytest.raises(UsageError, match="has no file of chats"):
        chats_file(tmp_path / "elsewhere")
    (tmp_path / "sft-detect").mkdir()
    written(tmp_path / "sft-detect", chat(("What?", "Yes.")))
    with pytest.raises(UsageError, match="several files of chats"):
        chats_file(tmp_path)


def test_everything_wrong_with_chats_is_told_at_once(tmp_path: Path) -> None:
    file = tmp_path / "train.jsonl"
    file.write_text('{"messages": [], "images": ["a.png"]}\n{"messages": "x", "images": []}\n')
    with pytest.raises(ItemsError) as caught:
        read_chats(file)
    assert {each.line for each in caught.value.problems} == {1, 2}
    file.write_text("\n")
    with pytest.raises(UsageError, match="has no chats"):
        read_chats(file)


def test_both_forms_of_content_are_the_same(tmp_path: Path) -> None:
    parts = chat(("What is wrong?", "Nothing."))
    tags = parts | {
        "messages": [
            {"role": "user", "content": "<image>What is wrong?"},
            {"role": "assistant", "content": "Nothing."},
        ]
    }
    first, second = examples(tmp_path, parts, tags)
    assert first.messages == second.messages
    assert first.messages[0]["content"] == [{"type": "image"}, {"type": "text", "text": "What is wrong?"}]


def test_text_cannot_pass_for_a_picture_or_the_end_of_a_turn(tmp_path: Path) -> None:
    said = chat(("What?", "A sign says <|image_pad|> and <|im_end|>."))
    (one,) = examples(tmp_path, said, special=("<|image_pad|>", "<|im_end|>"))
    assert text_of(one.messages[-1]) == "A sign says < |image_pad|> and < |im_end|>."


def test_missing_images_are_told_before_anything_runs(tmp_path: Path) -> None:
    chats = read_chats(written(tmp_path, chat(("What?", "Nothing."))))
    (tmp_path / "a.png").unlink()
    with pytest.raises(UsageError, match="1 of the images of the chats do not exist"):
        examples_of(chats, tmp_path)


def test_a_list_over_the_limit_is_divided_and_never_cut(tmp_path: Path) -> None:
    entries = [ENTRY.replace("Extra", f"Extra {number}") for number in range(5)]
    (one,) = examples(tmp_path, chat(("List all.", join_entries(entries))))
    whole = words(one)
    assert [each.examples for each in (fit([one], words, whole, lambda: None),)] == [[one]]
    fitted = fit([one], words, whole // 2, lambda: None)
    assert (fitted.split, fitted.left_out) == (1, 0)
    assert max(fitted.tokens) <= whole // 2
    answers = [text_of(each.messages[-1]) for each in fitted.examples]
    assert [entry for answer in answers for entry in split_entries(answer)] == entries
    assert all(answer.startswith("@1. ") for answer in answers)
    assert fit([one], words, 5, lambda: None).left_out == 5


def test_an_image_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    (one,) = examples(tmp_path, chat(("What?", "Nothing.")))
    (tmp_path / "a.png").write_bytes(b"no picture")

    def count(example: Example) -> int:
        example.pictures()
        return 1

    fitted = fit([one], count, None, lambda: None)
    assert fitted.examples == []
    assert len(fitted.unreadable) == 1
    (why,) = fitted.unreadable.values()
    assert "a.png" in why


def test_the_questions_are_those_of_detect(tmp_path: Path) -> None:
    generated = chat(("Made by a generator?", "Yes."), ("List all.", f"@1. {ENTRY}"))
    real = chat(("Made by a generator?", "No."), ("What does it show?", "A cup."), image="b.png")
    assert questions(examples(tmp_path, generated, real)) == {
        "system": "",
        "source": "Made by a generator?",
        "anomalies": "List all.",
        "content": "What does it show?",
    }
    one_turn = examples(tmp_path, chat(("List all.", "No anomalies.")))
    assert questions(one_turn) == {"system": "", "anomalies": "List all."}


def test_a_list_in_parts_is_measured_as_a_whole(tmp_path: Path) -> None:
    parts = [chat(("List all.", f"@1. {ENTRY}"), sha256="a", part=number, parts=2) for number in (1, 2)]
    (case,) = cases_of(examples(tmp_path, *parts))
    assert case.wanted == f"@1. {ENTRY}\n@2. {ENTRY}"


def test_figures_of_answers(tmp_path: Path) -> None:
    cases = cases_of(
        examples(
            tmp_path,
            chat(("List all.", f"@1. {ENTRY}")),
            chat(("List all.", f"@1. {ENTRY}"), image="b.png"),
        )
    )
    figures = figures_of(cases, [f"@1. {ENTRY}", "I cannot say."])
    assert figures == {
        "SemAP (chrF)": 0.5,
        "SemF1 (chrF)": 0.5,
        "share of answers in the expected form": 0.5,
        "share of answers that are equal to the expected one": 0.5,
    }


def test_the_log_goes_back_to_a_checkpoint(tmp_path: Path) -> None:
    log = StepLog(tmp_path / "steps.jsonl")
    for step in range(1, 6):
        log.append({"step": step, "loss": float(step), "reward": 0.5})
    with log.path.open("ab") as file:
        file.write(b'{"step": 6, "lo')  # killed while it wrote
    assert [each.step for each in read_steps(log.path)] == [1, 2, 3, 4, 5]
    log.cut(3)
    log.append({"step": 4, "loss": float("nan")})
    steps = read_steps(log.path)
    assert [(each.step, each.loss) for each in steps] == [(1, 1.0), (2, 2.0), (3, 3.0), (4, None)]
    assert (steps[0].model_extra or {})["reward"] == 0.5


def test_a_checkpoint_that_was_not_written_to_the_end_does_not_count(tmp_path: Path) -> None:
    assert last_checkpoint(tmp_path) is None
    for step in (5, 20, 100):
        (tmp_path / f"checkpoint-{step}").mkdir()
    mark_whole(tmp_path / "checkpoint-5")
    mark_whole(tmp_path / "checkpoint-20")
    found = last_checkpoint(tmp_path)
    assert found is not None
    assert found.name == "checkpoint-20"


def test_a_run_resumes_with_the_same_settings_only(tmp_path: Path) -> None:
    file = written(tmp_path, chat(("What?", "Nothing.")))
    base = tmp_path / "base"
    base.mkdir()
    (base / "config.json").write_text("{}")

    def parameters(**more: Any) -> ReasonerParameters:
        return ReasonerParameters(base=base, out=tmp_path / "run", **more)

    with training("learn_reasoner", parameters(), data={"train": file}, plan={}) as session:
        assert (session.finished, session.resumed) == (False, None)
        raise StopTrainingError
    with training("learn_reasoner", parameters(device="cpu"), data={"train": file}, plan={}) as session:
        assert not session.finished
    with (
        pytest.raises(RunMismatchError, match="rank"),
        training("learn_reasoner", parameters(rank=4), data={"train": file}, plan={}),
    ):
        pass
    (base / "config.json").write_text('{"changed": 1}')
    with (
        pytest.raises(RunMismatchError, match="files of `base`"),
        training("learn_reasoner", parameters(), data={"train": file}, plan={}),
    ):
        pass


def test_a_run_that_could_not_begin_may_with_other_settings(tmp_path: Path) -> None:
    file = written(tmp_path, chat(("What?", "Nothing.")))
    (tmp_path / "config.json").write_text("{}")
    out = tmp_path.parent / f"{tmp_path.name}-run"

    def parameters(rank: int) -> ReasonerParameters:
        return ReasonerParameters(base=tmp_path, out=out, rank=rank)

    with (
        pytest.raises(UsageError, match="of another kind"),
        training("learn_reasoner", parameters(4), data={"train": file}, plan={}),
    ):
        raise UsageError("The model is of another kind", remedy="Pass another.")
    assert not (out / "run.json").exists()
    with training("learn_reasoner", parameters(8), data={"train": file}, plan={}) as session:
        session.steps.append({"step": 1, "loss": 1.0})
    assert (out / "run.json").exists()


def test_all_processes_know_how_a_session_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that does not write is not to read the state, which the first one may not have written yet."""
    file = written(tmp_path, chat(("What?", "Nothing.")))
    (tmp_path / "config.json").write_text("{}")
    parameters = ReasonerParameters(base=tmp_path, out=tmp_path.parent / f"{tmp_path.name}-run")
    monkeypatch.setenv("RANK", "1")
    with training("learn_reasoner", parameters, data={"train": file}, plan={}) as session:
        during: str = session.state
    assert (during, session.state) == ("running", "finished")
    assert not session.path.exists()
    with training("learn_reasoner", parameters, data={"train": file}, plan={}) as session:
        raise StopTrainingError
    assert session.state == "interrupted"


def test_training_that_diverged_is_not_saved() -> None:
    torch = pytest.importorskip("torch")
    pytest.importorskip("transformers")
    from uncanny.learn.common.trainer import RunCallback, train

    trainer, session = MagicMock(), MagicMock(resumed=None)
    weight = torch.nn.Parameter(torch.ones(2))
    trainer.model.parameters.return_value = [weight]
    callback = RunCallback(session, None, lambda *_: None)
    train(trainer, session, callback)
    weight.data[0] = torch.nan
    with pytest.raises(UncannyError, match="Training diverged"):
        train(trainer, session, callback)


def test_tokens_without_a_name_are_special_too() -> None:
    added = {
        5: SimpleNamespace(content="<|pad_0|>", special=True),
        6: SimpleNamespace(content="ha", special=False),
    }
    tokenizer = SimpleNamespace(all_special_tokens=["</s>", "_"], added_tokens_decoder=added)
    assert special_tokens(tokenizer) == ["</s>", "<|pad_0|>"]
