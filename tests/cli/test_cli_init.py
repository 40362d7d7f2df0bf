"""`uncanny init`: a file of all options, and one of a run with which the same run is made again."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from tests.bundled_runs import BundledRuns, Kind
from tests.cli.complaints import one_line
from tests.runs.e2e import uncanny_here
from uncanny.cli import uncanny
from uncanny.cli.common.config import commands, parameters
from uncanny.cli.init import toml
from uncanny.demo.scenes import scenes
from uncanny.records.run_folder import RunFolder
from uncanny.records.run_manifest import RunSettings

_VALUE = re.compile(r"^# ([a-z][a-z0-9-]*) = (?!<)", re.MULTILINE)


def settings(run: Path) -> dict[str, Any]:
    """All that must be the same for two runs to be one."""
    manifest = RunFolder(run).read_manifest()
    assert manifest is not None
    return {key: value for key, value in manifest.comparable().items() if key in RunSettings.model_fields}


def test_all_commands_stand_in_one_file_that_is_taken_as_it_is(tmp_path: Path) -> None:
    file = tmp_path / "run.toml"
    assert uncanny_here("init", "-o", file).out == f"{file}\n"
    one_line(uncanny_here("init", "-o", file), "already exists", "--force")
    assert uncanny_here("init", "-o", file, "--force").code == 0
    text = file.read_text(encoding="utf-8")
    # All is commented out, so it changes nothing; with its defaults it is TOML, each key in its place.
    assert not [line for line in text.splitlines() if not line.startswith(("#", "[")) and line]
    content = tomllib.loads(_VALUE.sub(r"\1 = ", text))
    for words, command in commands(uncanny):
        table: Any = content
        for word in words:
            table = table.get(word, {})
        left = [
            key
            for key in parameters(command)
            if key not in table and key not in content and not re.search(rf"^# {key} = <", text, re.MULTILINE)
        ]
        assert not left, words
    image = scenes()[0].image_path
    done = uncanny_here("annotate", image, "--model", "demo", "--dry-run", "--config", file)
    assert (done.code, done.err) == (0, "")


def test_defaults_uncommented_are_the_defaults(tmp_path: Path) -> None:
    written = uncanny_here("init", "annotate", "-o", "-").out
    known = re.compile(
        r"^# ((?:[a-z-]+) = (?:true|false|[\d.]+|\"(?:open|English|keep|link)\"))$", re.MULTILINE
    )
    file = tmp_path / "run.toml"
    file.write_text(known.sub(r"\1", written), encoding="utf-8")
    image = scenes()[0].image_path
    call = ("annotate", image, "--model", "demo", "--dry-run", "--json")
    by_file = uncanny_here(*call[:-1], "--no-cache", "--config", file, "--json")
    assert by_file.code == 0, by_file.err
    assert by_file.out == uncanny_here(*call).out
    assert "concurrency = 32" in file.read_text(encoding="utf-8").splitlines()


def test_a_mistyped_command_and_a_run_in_its_place(bundled_run: BundledRuns) -> None:
    assert "Did you mean annotate" in uncanny_here("init", "anotate", "-o", "-").err
    run = bundled_run("detect").path
    endless = uncanny_here("init", "w" * 10_000, "-o", "-")
    assert (endless.code, len(endless.err) < 600) == (2, True)
    one_line(uncanny_here("init", run, "-o", "-"), f"Write uncanny init --from {run}")
    one_line(uncanny_here("init", "--from", run.parent, "-o", "-"), "has no run.json", "It contains runs")
    one_line(uncanny_here("init", "token", "add", "-o", "-"), "does not take options from a file")


@pytest.mark.parametrize(
    "text",
    [
        f'[detect]\nmodel = "{"m" * 100_000}"',
        f'[detect]\nmodel = "{"m " * 50_000}/x"',
        f"[{'m' * 100_000}]\na = 1",
    ],
)
def test_long_texts_of_a_file_are_cut_in_errors(tmp_path: Path, text: str) -> None:
    file = tmp_path / "run.toml"
    file.write_text(text, encoding="utf-8")
    done = uncanny_here("detect", scenes()[0].image_path, "--config", file, "-o", tmp_path / "run")
    assert (done.code, len(done.err) < 1000, "line" in done.err) == (2, True, True), done.err[:2000]


def test_a_path_that_no_file_can_have_is_cut_in_its_error() -> None:
    done = uncanny_here("report", "/".join(["p" * 200] * 25))
    assert (done.code, len(done.err) < 600, "too long" in done.err) == (2, True, True), done.err[:2000]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["annotate", "detect", "mcq", "realism"])
def test_a_run_is_made_again_from_its_file(tmp_path: Path, bundled_run: BundledRuns, kind: Kind) -> None:
    run, file = bundled_run(kind).path, tmp_path / "again.toml"
    assert uncanny_here("init", "--from", run / "run.json", "-o", file).out == f"{file}\n"
    words = (kind, "run") if kind in ("mcq", "realism") else (kind, scenes()[0].image_path)
    done = uncanny_here(*words, "--config", file, "-o", tmp_path / "again", "--limit", "1", "--no-cache")
    assert done.code == 0, done.err
    assert settings(tmp_path / "again") == settings(run)


def test_texts_of_a_run_go_with_its_file(tmp_path: Path) -> None:
    texts = tmp_path / "mine"
    texts.mkdir()
    (texts / "q1.md").write_text("Is anything wrong here? Answer with yes or no.", encoding="utf-8")
    first = tmp_path / "first"
    call = ("mcq", "run", "scenes", "--model", "noop", "--limit", "1", "--no-cache", "-q")
    assert uncanny_here(*call, "--prompts", texts, "--temperature", "0.4", "-o", first).code in (0, 1)
    file = tmp_path / "elsewhere" / "again.toml"
    file.parent.mkdir()
    assert uncanny_here("init", "--from", first, "-o", file).code == 0
    assert tomllib.loads(file.read_text(encoding="utf-8"))["mcq"]["run"]["prompts"] == "again-texts"
    again = uncanny_here("mcq", "run", "--config", file, "-o", tmp_path / "b", "--limit", "1", "-q")
    assert again.code in (0, 1), again.err
    assert settings(tmp_path / "b") == settings(first)


def test_values_are_toml() -> None:
    values = {"a": True, "b": 3, "c": 0.5, "d": 'q"\\\n\x7fü 🙂', "e": ["x", "y"], "f": {"open ai": "z"}}
    text = "\n".join(f"{key} = {toml(value)}" for key, value in values.items())
    assert tomllib.loads(text) == values
