"""`uncanny artifacts score`: the whole path, files side by side, and files that cannot be scored."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.cli.complaints import one_line, problems
from tests.eval.artifacts.made_sets import (
    SQUARE,
    box,
    image,
    labelme,
    polygon,
    shape,
    write_labelme,
    write_lines,
)
from tests.runs.e2e import Done, uncanny_here


@pytest.fixture
def truth(tmp_path: Path) -> Path:
    return write_labelme(tmp_path / "truth", labelme("a.png", shape("Semantics", SQUARE)), labelme("b.png"))


def scored(*arguments: object, truth: object) -> Done:
    return uncanny_here("artifacts", "score", "--resamples", "20", "--truth", truth, *arguments)


def test_lines_against_labelme_from_end_to_end(tmp_path: Path, truth: Path) -> None:
    lines = [image("a.png", box(), score=0.9), image("b.png", box("color")), image("c.png")]
    file = write_lines(tmp_path / "boxes.jsonl", lines)
    done = scored(file, "--csv", tmp_path / "scores.csv", truth=truth)
    assert (done.code, done.err) == (0, "")
    line = next(line for line in done.out.splitlines() if line.startswith("Semantics  "))
    figures = re.sub(r" *\[[^]]*\]", "", line).split()
    assert figures == ["Semantics", "36.0", "36.0", "100.0", "52.9", "100.0", "50.0", "1", "/", "1"]
    assert "1 image that the truth does not have, not counted" in done.out
    assert (tmp_path / "scores.csv").read_text().startswith("prediction,part,of,figure,value,low,high")
    assert 'class="region-card"' in (tmp_path / "artifacts.html").read_text()
    scores = scored(file, "--json", "-", truth=truth).json()
    assert scores["pad"]["categories"]["semantics"]["pixel"]["iou"] == 0.36
    assert scores["left_out"]["only_predictions"] == ["c.png"]
    assert scores["ci"]["agnostic"]["pixel"]["iou"]


@pytest.mark.slow
def test_a_run_of_the_demo_against_the_bundled_truth(tmp_path: Path) -> None:
    run = tmp_path / "run"
    assert (
        uncanny_here("artifacts", "run", "scenes", "--model", "demo", "-o", run, "--likelihood", "-q").code
        == 0
    )
    done = scored(run, truth="scenes")
    assert (done.code, done.err) == (0, "")
    assert "demo" in done.out
    assert (run / "artifacts.html").is_file()
    scores = scored(run, "--json", "-", truth="scenes").json()
    assert scores["aj"]["images"] == 34
    assert 0 < scores["pad"]["agnostic"]["pixel"]["iou"] < 1


def test_several_files_by_name_and_all_options(tmp_path: Path, truth: Path) -> None:
    file = write_lines(tmp_path / "boxes.jsonl", [image("a.png", box())])
    more = write_lines(tmp_path / "more.jsonl", [image("a.png", polygon())])
    options = ("--protocol", "release", "--t", "0.3", "--min-confidence", "0.5", "--weight-confidence")
    done = scored(
        f"A={file}", f"B={more}", *options, "--published", "--json", tmp_path / "s.json", truth=truth
    )
    assert (done.code, done.err) == (0, "")
    models = json.loads((tmp_path / "s.json").read_text())["models"]
    assert list(models) == ["A", "B"]
    assert models["A"]["pad"]["protocol"] == "release"
    assert models["A"]["settings"]["min_confidence"] == 0.5
    assert models["A"]["pad"]["categories"]["semantics"]["instance"]["f1"] == 1
    again = scored(f"A={file}", "--json", tmp_path / "s.json", truth=truth)
    assert again.code == 0


def test_predictions_that_failed_are_exit_code_one(tmp_path: Path, truth: Path) -> None:
    lines = [image("a.png", box()), image("b.png", status="failed")]
    done = scored(write_lines(tmp_path / "boxes.jsonl", lines), truth=truth)
    assert done.code == 1
    assert "1 image whose prediction failed or is partial" in done.out


def test_files_that_are_wrong_are_told_in_lines(tmp_path: Path, truth: Path) -> None:
    bad = [
        image("a.png", box("hands"), {"category": "color", "box": [3, 3, 1, 1]}),
        {"image": "b.png", "score": 2},
    ]
    done = scored(write_lines(tmp_path / "bad.jsonl", bad), truth=truth)
    problems(done, "bad.jsonl: 3 problems", "'hands'", "not 2")
    assert not (tmp_path / "artifacts.html").exists()
    good = write_lines(tmp_path / "good.jsonl", [image("a.png", box())])
    (truth / "a.json").write_text(json.dumps(labelme("a.png", shape("hands", SQUARE))))
    done = scored(good, truth=truth)
    problems(done, "item 'a.json', field shapes.0.label: 'hands' is not a category")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--t", "0"), "--t must be above 0 and at most 1, not 0"),
        (("--bins", "niqe"), "no record has a number in 'niqe'"),
        (("--min-confidence", "2"), "--min-confidence must be from 0 to 1, not 2"),
        (("--n-bins", "x"), "--n-bins must be a whole number, not x"),
        (("--json", "-", "--csv", "-"), "cannot both go to standard output"),
    ],
)
def test_options_that_are_wrong(tmp_path: Path, truth: Path, options: tuple[str, ...], words: str) -> None:
    file = write_lines(tmp_path / "boxes.jsonl", [image("a.png", box())])
    done = scored(file, *options, truth=truth)
    one_line(done, words)
    one_line(scored(file, truth=tmp_path / "nowhere"), "nowhere does not exist")
