"""NAME=FILE, read in one way by all commands that set figures of several files side by side."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import pytest

from tests.bundled_runs import BundledRuns, some_items
from tests.cli.complaints import one_line
from tests.runs.e2e import uncanny_here
from uncanny.cli.common.places import Place, name_and_path, names_and_paths
from uncanny.errors import UsageError


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for folder in ("runs/t=0.3", "runs/a", "a=b"):
        (tmp_path / folder).mkdir(parents=True)


@pytest.mark.parametrize(
    ("argument", "name", "path"),
    [
        ("runs/a", None, "runs/a"),
        ("ours=runs/a", "ours", "runs/a"),
        (" ours =runs/a", "ours", "runs/a"),
        # A folder with an equals sign, alone and with a name; a name with a slash, and one with the sign.
        ("runs/t=0.3", None, "runs/t=0.3"),
        ("warm=runs/t=0.3", "warm", "runs/t=0.3"),
        ("openai/gpt-4o=runs/a", "openai/gpt-4o", "runs/a"),
        ("t=0.3=runs/a", "t=0.3", "runs/a"),
        ("x=a=b", "x", "a=b"),
        # What is not there is said by whoever reads it.
        ("ours=nowhere", "ours", "nowhere"),
        ("gpt/4=nowhere", "gpt/4", "nowhere"),
        ("rendered=scenes:rendered", "rendered", "scenes:rendered"),
    ],
)
def test_a_name_and_a_path(argument: str, name: str | None, path: str) -> None:
    assert name_and_path(argument) == (name, Path(path))


@pytest.mark.parametrize("argument", ["=runs/a", "ours=", "="])
def test_half_of_it_is_refused(argument: str) -> None:
    with pytest.raises(UsageError, match="Write NAME=PATH"):
        name_and_path(argument)


def test_a_folder_that_is_not_there_is_not_taken_for_a_name() -> None:
    with pytest.raises(UsageError, match=r"runs/t=0.5 does not exist, and neither does 0.5 under the name"):
        name_and_path("runs/t=0.5")


def test_a_name_without_its_sign_is_recognised() -> None:
    with pytest.raises(UsageError, match=r"ours does not exist. To name runs/a so, write ours=runs/a"):
        names_and_paths(["ours", "runs/a"])
    assert names_and_paths(["scenes", "runs/a"]) == [(None, Path("scenes")), (None, Path("runs/a"))]


def test_paths_of_a_file_start_from_it(tmp_path: Path) -> None:
    folder = Path("conf")
    (tmp_path / "conf" / "x=y").mkdir(parents=True)
    named = Place("scenes", named=True)
    assert named.beside("a.jsonl", folder) == "conf/a.jsonl"
    assert named.beside("ours=../a.jsonl", folder) == "ours=conf/../a.jsonl"
    assert named.beside("x=y", folder) == "conf/x=y"
    for word in ("scenes", "server:runs/a", "scenes:drawn", "-"):
        assert named.beside(word, folder) == word
    assert named.beside("d=scenes:drawn", folder) == "d=scenes:drawn"
    assert named.beside("/data/a", folder) == "/data/a"


@pytest.mark.parametrize("kind", ["mcq", "realism"])
def test_scores_are_shown_under_the_names(
    bundled_run: BundledRuns, tmp_path: Path, kind: Literal["mcq", "realism"]
) -> None:
    made = bundled_run(kind)
    Path("runs/x=1").symlink_to(made.path)
    run, copy = made.path, made.copy(tmp_path / "copy")
    words = [
        kind,
        "score",
        *([some_items(tmp_path / "items", 2)] if kind == "mcq" else []),
        "--resamples",
        "50",
    ]
    done = uncanny_here(*words, "first one=runs/x=1", copy, "--json", "s.json", "--report", "p.html")
    assert (done.code, done.err) == (0, "")
    for text in (done.out, Path("s.json").read_text("utf-8"), Path("p.html").read_text("utf-8")):
        assert "first one" in text
        assert "demo" in text  # the other has the name of its model
    twice = uncanny_here(*words, f"a={run}", f"a={copy}", "--no-report")
    one_line(twice, "two sets of", "called 'a'")
    one_line(uncanny_here(*words, "ours", copy, "--no-report"), f"write ours={copy}")
