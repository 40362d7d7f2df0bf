"""`uncanny semantic`: files side by side, what is left out, names, and files that cannot be scored."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.bundled_runs import BundledRuns
from tests.cli.complaints import one_line, problems
from tests.runs.e2e import Done, uncanny_here
from uncanny import semantic
from uncanny.eval.common.anomalies.load import scenes_truth

CHRF = ("--similarity", "chrf", "--resamples", "20", "--no-report")


@pytest.fixture(scope="module")
def demo(bundled_run: BundledRuns) -> Path:
    return bundled_run("annotate").path


def scenes_file(path: Path, **changes: Any) -> Path:
    """The bundled truth as a file in the released form, without sources."""
    images = {
        image.image: [
            {
                "Name": anomaly.name,
                "Observed Phenomenon": anomaly.phenomenon,
                "Reasoning": anomaly.reasoning,
                "Severity Score": f"{anomaly.severity}/100 (…)",
            }
            for anomaly in image.anomalies
        ]
        for image in scenes_truth().images
    }
    path.write_bytes(orjson.dumps(images | changes))
    return path


def scored(*arguments: object, truth: object = "scenes") -> Done:
    return uncanny_here("semantic", *CHRF, "--truth", truth, *arguments)


def test_a_run_against_the_bundled_truth(demo: Path) -> None:
    done = scored(demo)
    assert (done.code, done.err) == (0, "")
    assert all(len(line) <= 80 for line in done.out.splitlines()), done.out
    assert "Published figures do not compare" in done.out
    scores = scored(demo, "--json", "-").json()["predictions"]
    assert list(scores) == ["demo"]
    assert scores["demo"]["release"]["images"] == scores["demo"]["paper"]["images"] == 34
    assert (scores["demo"]["accuracy"], scores["demo"]["paper"]["csemap"]) == (None, None)


def test_the_command_prints_and_writes_what_the_function_returns(tmp_path: Path, demo: Path) -> None:
    same = scenes_file(tmp_path / "same.json")
    options: dict[str, Any] = {"thresholds": (0.5, 0.9), "balance": 0.25, "resamples": 20, "seed": 7}
    scores = semantic.score({"demo": demo, "b": same}, truth="scenes", similarity="chrf", **options)
    words = (
        "--thresholds",
        "0.5,0.9",
        "--balance",
        "0.25",
        "--resamples",
        "20",
        "--seed",
        "7",
        "--no-report",
    )
    command = ("semantic", "--similarity", "chrf", "--truth", "scenes", *words, demo, f"b={same}")
    assert uncanny_here(*command, "--json", "-").json() == scores.to_json()
    rows = tmp_path / "rows.jsonl"
    done = uncanny_here(*command, "--json", tmp_path / "scores.json", "--per-image", rows)
    assert done.out == f"{scores}\n"
    assert json.loads((tmp_path / "scores.json").read_bytes()) == scores.to_json()
    lines = [orjson.loads(line) for line in rows.read_bytes().splitlines()]
    for name, prediction in scores.predictions.items():
        by_image = {line["image"]: line for line in lines if line["predictions"] == name}
        for image in prediction.per_image():
            assert image.semap["paper"] is not None
            assert image.semap["paper"]["full"] == by_image[image.image]["paper"]["full"]["semap"]


def test_the_truth_against_itself(tmp_path: Path) -> None:
    scores = scored(scenes_file(tmp_path / "same.json"), "--json", "-").json()["predictions"]["same"]
    # 18 of 34 images have nothing wrong, which release scores 0 and paper 1.
    assert scores["release"]["semap"] == {"phe": 16 / 34, "rea": 16 / 34, "full": 16 / 34}
    assert scores["paper"]["semf1"] == {"phe": 1, "rea": 1, "full": 1}


def test_several_files_side_by_side(tmp_path: Path, demo: Path) -> None:
    same = scenes_file(tmp_path / "same.json")
    out, rows = tmp_path / "scores.json", tmp_path / "rows.jsonl"
    done = scored(demo, f"theirs={same}", f"again={demo}", "--json", out, "--per-image", rows)
    assert (done.code, done.err) == (0, "")
    assert all(len(line) <= 80 for line in done.out.splitlines()), done.out
    assert "theirs − again" in done.out
    scores = json.loads(out.read_bytes())
    assert list(scores["predictions"]) == ["demo", "theirs", "again"]
    assert len(scores["differences"]) == 3 * 2 * 2 * 3
    lines = [orjson.loads(line) for line in rows.read_bytes().splitlines()]
    assert len(lines) == 3 * 34
    assert {line["predictions"] for line in lines} == set(scores["predictions"])


def test_what_is_left_out_is_listed(tmp_path: Path) -> None:
    truth = scenes_file(tmp_path / "truth.json", **{"only-there.png": []})
    lines: list[dict[str, Any]] = [
        {"image": "d01-six-fingers.png", "anomalies": [], "status": "failed"},
        {"image": "only-here.png", "anomalies": []},
    ]
    lines += [
        {"image": image.image, "anomalies": "I see nothing but a cup"}
        for image in scenes_truth().images
        if "d01-six" not in image.image
    ]
    mine = tmp_path / "mine.jsonl"
    mine.write_bytes(b"".join(orjson.dumps(line) + b"\n" for line in lines))
    done = scored(mine, truth=truth)
    assert done.code == 1
    text = " ".join(done.out.split())
    assert "mine: 1 image without a prediction: not in release, empty in paper (only-there.png)" in text
    assert "mine: 1 predicted image not in the truth and not counted (only-here.png)" in text
    assert "mine: 1 failed record not scored; run it again (d01-six-fingers.png)" in text
    assert "mine: 33 answers not a list of anomalies" in text


def test_detection_has_its_tables(tmp_path: Path) -> None:
    mine = tmp_path / "mine.jsonl"
    lines: list[dict[str, Any]] = [
        {"image": image.image, "anomalies": [], "source": "real" if number else None}
        for number, image in enumerate(scenes_truth().images)
    ]
    mine.write_bytes(b"".join(orjson.dumps(line) + b"\n" for line in lines))
    done = scored(mine)
    assert done.code == 0
    assert "cSemAP" in done.out
    line = next(line for line in done.out.splitlines() if "accuracy" in line)
    below = done.out.splitlines()[done.out.splitlines().index(line) + 1].split()
    # 17 of 18 real ones, none of the generated; one answer says nothing.
    assert (below[1], below[2], below[-1]) == ("34", "0.5000", "1")


def test_files_that_cannot_be_scored(tmp_path: Path, demo: Path) -> None:
    bad = tmp_path / "bad.jsonl"
    bad.write_text('{"anomalies": []}\nnot json\n')
    problems(scored(bad), "bad.jsonl: 2 problems", "line 1, field image", "line 2: not valid JSON")
    problems(scored(demo, truth=bad), "bad.jsonl: 2 problems")
    one_line(scored(tmp_path / "none.json"), "none.json cannot be read")
    one_line(scored(demo, truth=tmp_path / "none.json"), "none.json cannot be read")
    other = tmp_path / "other.json"
    other.write_text('{"x.png": []}')
    one_line(scored(other), "no image of", "x.png", "Name images alike")
    one_line(scored(f"a={demo}", f"a={other}"), "two predictions are called 'a'")
    one_line(scored("=x"), "NAME=PATH")
    one_line(scored(demo, "--json", bad / "scores.json"), "cannot be written")
    one_line(scored(demo, "--per-image", "-"), "Cannot write to standard output")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--thresholds", "0.7,x"), "--thresholds"),
        (("--thresholds", "0"), "thresholds"),
        (("--balance", "2"), "--balance"),
        (("--num-layers", "0"), "--num-layers"),
        (("--backbone", "bert"), "chrf has no backbone"),
        (("--similarity", "bleu"), "--similarity"),
    ],
)
def test_options_that_make_no_sense(demo: Path, options: tuple[str, ...], words: str) -> None:
    problems(scored(demo, *options), words)


def test_no_rows_are_left_of_a_run_that_fails(tmp_path: Path, demo: Path) -> None:
    rows = tmp_path / "rows.jsonl"
    one_line(scored(demo, "--per-image", rows, "--balance", "0.5", truth=tmp_path / "none"), "none")
    assert list(tmp_path.iterdir()) == []


def test_a_file_whose_name_has_an_equals_sign_is_no_name(tmp_path: Path) -> None:
    file = scenes_file(tmp_path / "x=y.json")
    assert list(scored(file, "--json", "-").json()["predictions"]) == ["x=y"]
    one_line(scored("a=1.json", "a=2.json"), "two predictions are called 'a'")


@pytest.mark.slow
def test_the_page_goes_beside_the_predictions_or_where_it_is_asked_for(tmp_path: Path) -> None:
    file = scenes_file(tmp_path / "mine.json")
    command = ("semantic", "--similarity", "chrf", "--resamples", "0", "--truth", "scenes", file)
    done = uncanny_here(*command)
    assert done.out.splitlines()[-1] == f"Report   {tmp_path / 'semantic.html'}"
    assert "SemAP 0.4706" in (tmp_path / "semantic.html").read_text("utf-8")
    chosen = tmp_path / "page.html"
    assert "predictions" in uncanny_here(*command, "--report", chosen, "--json", "-").json()
    assert chosen.exists()
    chosen.unlink()
    assert "Report" not in uncanny_here(*command, "--no-report").out
    made = tmp_path / "not there yet" / "page.html"
    assert uncanny_here(*command, "--report", made).code == 0
    assert made.is_file()
