"""The words that edits are made after, over real protocols: faults, kills, and files that are wrong."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import orjson
import pytest

import uncanny as package
from tests.runs.e2e import (
    VLLM,
    Run,
    check_no_traceback,
    finish,
    pictures,
    serving,
    serving_process,
    start,
    uncanny,
    uncanny_here,
)
from uncanny.answers.writings import failed_caption_gates
from uncanny.demo.server.app import FaultName
from uncanny.eval.edits.run.perturb import Perturbation
from uncanny.eval.edits.run.prompts import WrittenPrompts
from uncanny.schema import columns_of

PROTOCOLS = ["openai", "anthropic"]
FAULTS: tuple[FaultName, ...] = ("429", "500", "hang", "malformed", "refusal", "length")


def texts(folder: Path, number: int, images: bool = True) -> Path:
    """A file of texts with labels, captions and objects, and a picture each where wanted."""
    if images:
        pictures(folder, number)
    folder.mkdir(parents=True, exist_ok=True)
    lines = [
        {
            "id": f"t{index:02d}",
            "original": f"p{index:02d}.png" if images else None,
            "label": f"dog number {index}",
            "caption": f"A dog with a collar and {index} balls on a lawn.",
            "objects": ["dog", "collar", f"{index} balls", "lawn"],
            "edited": "left as it is.png",
        }
        for index in range(number)
    ]
    file = folder / "edits.jsonl"
    file.write_bytes(b"".join(orjson.dumps(line) + b"\n" for line in lines))
    return file


def perturbations(run: Run) -> list[Perturbation]:
    """The records, checked: what they say hangs together."""
    lines = (run.path / "perturbations.jsonl").read_bytes().splitlines()
    found = [Perturbation.model_validate_json(line) for line in lines]
    keys = [(record.id, record.kind, record.magnitude) for record in found]
    assert keys == sorted(set(keys))
    for record in found:
        check(record, [record.perturbed], record.kind)
        assert record.text
        assert (record.label is None) == (record.kind == "caption")
        assert record.perturbed != record.text
    return found


def written(run: Run) -> list[WrittenPrompts]:
    lines = (run.path / "prompts.jsonl").read_bytes().splitlines()
    found = [WrittenPrompts.model_validate_json(line) for line in lines]
    assert [record.id for record in found] == sorted({record.id for record in found})
    for record in found:
        if record.mode == "remove":
            assert all(edit.prompt is None for edit in record.edits)
        else:
            check(record, [edit.prompt for edit in record.edits] or [None], "caption")
        objects = [edit.object for edit in record.edits]
        assert set(objects) <= set(record.objects)
        assert len(set(objects)) == len(objects)
    return found


def check(record: Any, results: Sequence[str | None], kind: Any) -> None:
    assert (record.outcome == "ok") == (not record.errors), record
    assert all(error.message and error.kind for error in record.errors), record
    if record.outcome == "ok":
        assert all(result and not failed_caption_gates(result, kind) for result in results), record


def calls(run: Run) -> list[dict[str, Any]]:
    return [orjson.loads(line) for line in (run.path / "calls.jsonl").read_bytes().splitlines()]


@pytest.mark.parametrize("provider", [*PROTOCOLS, VLLM])
def test_every_text_is_changed_by_every_magnitude(provider: str, tmp_path: Path, run: Run) -> None:
    file = texts(tmp_path / "in", 3)
    with serving() as server:
        command = ("edits", "perturb", file, *server.asked(provider), "-o", run.path)
        forecast = uncanny_here(*command, "--dry-run", "--json").json()
        done = uncanny_here(*command, "--json")
        assert done.code == 0
        assert server.requests() == forecast["calls"] == 18
        again = uncanny_here(*command, "-q")
        assert (again.code, server.requests()) == (0, 18)
        left = uncanny_here(*command, "--dry-run", "--json").json()
        assert (left["calls"], left["pending"]) == (0, 0)
    found = perturbations(run)
    assert Counter((record.kind, record.magnitude) for record in found) == {
        (kind, magnitude): 3 for kind in ("label", "caption") for magnitude in ("small", "medium", "large")
    }
    assert all(record.image_shown and record.sha256 for record in found)
    assert done.json()["totals"]["texts"] == done.json()["totals"]["ok"] == 18
    assert {call["sees_image"] for call in calls(run)} == {True}


def test_without_pictures_and_with_some_magnitudes_only(tmp_path: Path, run: Run) -> None:
    file = texts(tmp_path / "in", 2)
    with serving() as server:
        some = ("--magnitude", "large", "--kind", "label", "--no-images")
        command = ("edits", "perturb", file, *server.asked(), "-o", run.path)
        assert uncanny_here(*command, *some, "-q").code == 0
        assert server.requests() == 2
        other = uncanny_here(*command, "-q")
    assert other.code == 2
    for option in ("--kind: ['label'] before", "--magnitude: ['large'] before", "--images: False before"):
        assert option in other.err
    assert not any(record.image_shown for record in perturbations(run))
    assert not any(call["sees_image"] for call in calls(run))


@pytest.mark.parametrize("provider", PROTOCOLS)
@pytest.mark.parametrize(("mode", "calls_a_text"), [("inpaint", 1), ("double", 2), ("remove", 1)])
def test_prompts_of_every_mode(mode: str, calls_a_text: int, provider: str, tmp_path: Path, run: Run) -> None:
    file = texts(tmp_path / "in", 4, images=False)
    with serving() as server:
        command = ("edits", "prompts", file, *server.asked(provider), "-o", run.path, "--mode", mode)
        assert uncanny_here(*command, "--dry-run", "--json").json()["calls"] == 4 * calls_a_text
        assert uncanny_here(*command, "-q").code == 0
        assert server.requests() == 4 * calls_a_text
    found = written(run)
    assert [len(record.edits) for record in found] == [calls_a_text] * 4
    if provider == "openai":
        assert run.manifest()["parameters"]["openai/any"]["temperature"] == 1.2
        assert run.manifest()["parameters"]["openai/any"]["top_p"] == 0.8


@pytest.mark.slow
@pytest.mark.parametrize("command", ["perturb", "prompts"])
@pytest.mark.parametrize("provider", ["openai", "anthropic"])
def test_thirty_percent_of_faults_cost_nothing_but_what_they_spoil(
    provider: str, command: str, tmp_path: Path, run: Run
) -> None:
    number = 16 if command == "perturb" else 60
    file = texts(tmp_path / "in", number, images=False)
    with serving(faults=dict.fromkeys(FAULTS, 0.05), seed=5) as server:
        arguments = ("edits", command, file, *server.asked(provider), "-o", run.path, "--timeout", "1")
        done = uncanny_here(*arguments, "--json")
        stats = server.stats()
    check_no_traceback(done)
    assert all(struck > 0 for struck in stats["faults"].values()), "make it longer: not all faults struck"
    found: Sequence[Perturbation | WrittenPrompts]
    found = perturbations(run) if command == "perturb" else written(run)
    assert len(found) == (number * 6 if command == "perturb" else number)
    totals = run.manifest()["totals"]
    assert totals["calls"] == stats["requests"]
    outcomes = Counter(record.outcome for record in found)
    assert {name: totals[name] for name in outcomes} == outcomes
    assert outcomes["refused"] == stats["faults"]["refusal"]
    assert done.code == (1 if outcomes.keys() - {"ok", "refused"} else 0)


@pytest.mark.parametrize("command", ["perturb", "prompts"])
def test_further_keys_of_a_text_go_into_its_records_without_a_call(
    command: str, tmp_path: Path, run: Run
) -> None:
    file = texts(tmp_path / "in", 2)
    with serving() as server:
        arguments = ("edits", command, file, *server.asked(), "-o", run.path, "-q", "--no-cache")
        assert uncanny_here(*arguments).code == 0
        requests = server.requests()
        file.write_bytes(file.read_bytes().replace(b'{"', b'{"source": "coco", "'))
        assert uncanny_here(*arguments).code == 0
        assert server.requests() == requests
    found = perturbations(run) if command == "perturb" else written(run)
    assert [columns_of(each).get("source") for each in found] == ["coco"] * len(found)


def test_a_text_that_changed_is_asked_about_again(tmp_path: Path, run: Run) -> None:
    file = texts(tmp_path / "in", 2)
    with serving() as server:
        command = ("edits", "perturb", file, *server.asked(), "-o", run.path, "-q", "--kind", "label")
        assert uncanny_here(*command).code == 0
        file.write_bytes(file.read_bytes().replace(b"dog number 1", b"cat number 1"))
        assert uncanny_here(*command).code == 0
        assert server.requests() == 6 + 3
        pictures(tmp_path / "in", 1, first=1)
        (tmp_path / "in" / "p00.png").write_bytes((tmp_path / "in" / "p01.png").read_bytes())
        assert uncanny_here(*command).code == 0
        assert server.requests() == 9 + 3
    assert {record.text for record in perturbations(run)} == {"dog number 0", "cat number 1"}


def test_pictures_that_cannot_be_read_cost_their_own_texts(tmp_path: Path, run: Run) -> None:
    file = texts(tmp_path / "in", 2)
    (tmp_path / "in" / "p00.png").unlink()
    (tmp_path / "in" / "p01.png").write_bytes(b"no picture")
    with serving() as server:
        done = uncanny_here("edits", "perturb", file, *server.asked(), "-o", run.path)
        assert server.requests() == 0
    assert done.code == 1
    assert "unusable" in done.out
    assert {record.outcome for record in perturbations(run)} == {"unusable"}
    check_no_traceback(done)


@pytest.mark.parametrize("command", ["perturb", "prompts"])
@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "is empty"),
        ("{", "not valid JSON"),
        ('{"caption": "A dog."}', "id"),
        ('{"id": "1", "caption": ""}', "caption"),
        ('{"id": "1", "objects": "dog", "caption": "A dog."}', "objects"),
        ('{"id": "1"}', "None of 1 picture has"),
        ('{"id": "1", "caption": "A dog."}\n{"id": "1", "caption": "A cat."}', "used before"),
        ("\xff\xfe", "line 1"),
    ],
)
def test_files_that_are_wrong_are_refused_in_words(
    content: str, words: str, command: str, tmp_path: Path
) -> None:
    file = tmp_path / "texts.jsonl"
    file.write_bytes(content.encode("latin-1"))
    done = uncanny_here("edits", command, file, "-m", "demo", "-o", tmp_path / "run")
    assert done.code == 2
    assert words in done.err
    check_no_traceback(done)
    assert not (tmp_path / "run" / "calls.jsonl").exists()


def test_a_double_edit_needs_two_things_and_a_caption(tmp_path: Path, run: Run) -> None:
    file = tmp_path / "texts.jsonl"
    file.write_text(
        '{"id": "a", "objects": ["dog", "dog"], "caption": "A dog."}\n'
        '{"id": "b", "objects": ["dog", "cat"]}\n'
        '{"id": "c", "objects": ["dog", "cat"], "caption": "Two."}\n',
        encoding="utf-8",
    )
    done = uncanny_here("edits", "prompts", file, "-m", "demo", "-o", run.path, "--mode", "double")
    assert done.code == 1
    assert [record.outcome for record in written(run)] == ["unusable", "unusable", "ok"]
    assert "it has no caption" in done.out


def test_several_models_have_a_run_each(tmp_path: Path) -> None:
    file = texts(tmp_path / "in", 2, images=False)
    with serving() as server:
        models = (*server.asked("openai", "one"), "-m", "openai/two")
        command = ("edits", "prompts", file, *models, "-o", tmp_path / "runs", "--json")
        content = uncanny_here(*command).json()
    assert content["models"].keys() == {"openai/one", "openai/two"}
    assert content["scores"] is None
    for name in ("openai_one", "openai_two"):
        assert len(written(Run(tmp_path / "runs" / name))) == 2


def test_functions_and_commands_give_the_same(tmp_path: Path) -> None:
    run = package.edits.prompts("scenes", model="demo", out=tmp_path / "a", mode="double")
    assert (
        uncanny_here(
            "edits", "prompts", "scenes", "-m", "demo", "-o", tmp_path / "b", "--mode", "double", "-q"
        ).code
        == 0
    )
    other = package.edits.PromptsRun(tmp_path / "b")
    assert [record.edits for record in run.prompts] == [record.edits for record in other.prompts]
    assert list(run.to_pandas().columns) == ["id", "mode", "outcome", "model", "object", "prompt"]
    image = package.edits.DescribedImage(id="1", label="dog")
    changed = package.edits.perturb([image], model="demo", out=tmp_path / "c", magnitudes=["small"])
    assert changed.perturbations[0].perturbed
    assert len(changed.to_pandas()) == 1


@pytest.mark.slow
def test_killed_several_times_and_started_again(tmp_path: Path, run: Run) -> None:
    file, at_once, kills = texts(tmp_path / "in", 12), 4, 3
    with serving_process("--latency-ms", "40") as server:
        whole = Run(tmp_path / "whole")
        command = ["edits", "perturb", file, *server.asked(), "--concurrency", at_once, "-q"]
        assert uncanny(*command, "-o", whole.path).code == 0
        needed = server.requests()
        for kill in range(1, kills + 1):
            with start(*command, "-o", run.path) as process:
                while server.requests() < needed + 15 * kill:
                    assert process.poll() is None
                    time.sleep(0.005)
                process.kill()
                assert finish(process).code == -9
        done = uncanny(*command, "-o", run.path)
        assert (done.code, done.out, done.err) == (0, "", "")
        assert needed <= server.requests() - needed <= needed + kills * at_once
    left_out = {"original", "usage", "file_stamp"}
    assert [record.model_dump(exclude=left_out) for record in perturbations(run)] == [
        record.model_dump(exclude=left_out) for record in perturbations(whole)
    ]
    assert run.manifest()["state"] == "finished"
