"""`uncanny detect …`: its summary, scores, forecast, and what it says to wrong use."""

from __future__ import annotations

import csv
import shutil
from pathlib import Path

import orjson
import pytest

from tests.cli.complaints import one_line, problems
from tests.runs.e2e import pictures, serving, uncanny_here
from uncanny.demo.scenes import scenes

DETECT = ("detect", "--model", "demo")


def test_the_scenes_are_scored_and_the_way_to_the_semantic_score_is_told(tmp_path: Path) -> None:
    run = tmp_path / "run"
    done = uncanny_here(*DETECT, "scenes", "-o", run)
    assert (done.code, done.told) == (0, "")
    assert "Judged   15 generated, 18 real, 1 unparseable" in done.out
    assert "Accuracy 88.2 % (95 % interval " in done.out
    assert "30 of 34 right, truth by scenes" in done.out
    assert (
        "generated  precision 93.3 %, recall 87.5 %; taken for: 14 generated, 2 real, 0 unparseable"
        in done.out
    )
    assert (
        "real       precision 88.9 %, recall 88.9 %; taken for: 1 generated, 16 real, 1 unparseable"
        in done.out
    )
    assert f"uncanny semantic {run} --truth scenes" in done.out
    assert (run / "report.html").is_file()


def test_json_has_the_scores(tmp_path: Path) -> None:
    done = uncanny_here(*DETECT, "scenes", "-o", tmp_path / "run", "--json", "--no-report")
    told = done.json()
    assert (done.code, told["state"], told["failures"], told["error"]) == (0, "finished", [], None)
    assert told["verdicts"] == {"generated": 15, "real": 18, "unparseable": 1}
    scores = told["scores"]
    assert (scores["accuracy"], scores["unparseable"], scores["images"]) == (30 / 34, 1, 34)
    assert scores["confusion"]["real"] == {"generated": 1, "real": 16, "unparseable": 1}
    assert scores["classes"]["real"]["recall"] == 16 / 18
    assert told["report"] is None


def test_tables_are_written_and_piped(tmp_path: Path) -> None:
    run, table = tmp_path / "run", tmp_path / "t.tex"
    command = (*DETECT, "scenes", "-o", run, "--no-report")
    done = uncanny_here(*command, "--csv", "-", "--latex", table)
    head, *rows = csv.DictReader(done.out.splitlines())
    assert (done.code, head["model"], head["source"], len(rows)) == (0, "demo", "generated", 2)
    assert float(rows[1]["accuracy"]) == 30 / 34
    low, high = (f"{100 * float(rows[1][f'accuracy_{end}']):.1f}" for end in ("low", "high"))
    assert f"88.2 {{\\scriptsize [{low}, {high}]}}" in table.read_text()
    one_line(uncanny_here(*command, "--csv", "-", "--json"), "both go to standard output")
    records = (run / "annotations.jsonl").read_bytes()
    again = uncanny_here(*command, "--csv", run / "annotations.jsonl", "--force")
    one_line(again, "is an input of this command")
    assert (run / "annotations.jsonl").read_bytes() == records


def test_folders_are_a_truth(tmp_path: Path) -> None:
    for scene in scenes():
        folder = tmp_path / "set" / ("Generated" if scene.role == "anomalous" else "REAL")
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copy(scene.image_path, folder)
    shutil.copy(scenes()[0].image_path, tmp_path / "set" / "unsorted.png")
    done = uncanny_here(*DETECT, tmp_path / "set", "-o", tmp_path / "run", "--no-report")
    assert done.code == 0
    assert "Accuracy 88.2 %" in done.out
    assert "30 of 34 right, truth by folders" in done.out
    assert "1 without a known truth" in done.out
    assert "uncanny semantic" not in done.out


def test_another_truth_is_another_score_and_asks_nothing(tmp_path: Path) -> None:
    pictures(tmp_path / "in", 3)
    truth = tmp_path / "truth.jsonl"
    truth.write_text('{"image": "p00.png", "source": "real"}\n{"image": "p99.png", "source": "real"}\n')
    with serving() as server:
        command = ("detect", tmp_path / "in", *server.asked(), "-o", tmp_path / "run", "--no-report")
        assert "Accuracy" not in uncanny_here(*command).out
        asked = server.requests()
        scores = uncanny_here(*command, "--truth", truth, "--json").json()["scores"]
        assert server.requests() == asked
    assert (scores["truth"], scores["images"], scores["without_truth"]) == (str(truth), 1, 2)
    assert scores["truth_not_in_run"] == 1


def test_failures_are_listed_and_in_no_score(tmp_path: Path) -> None:
    pictures(tmp_path / "real", 2)
    (tmp_path / "real" / "broken.png").write_bytes(b"no picture")
    with serving() as server:
        command = ("detect", tmp_path / "real", *server.asked(), "-o", tmp_path / "run", "--no-report")
        done = uncanny_here(*command)
        told = uncanny_here(*command, "--json").json()
    assert done.code == 1
    assert "Not judged, or in part only:\n  unreadable" in done.out
    assert (told["scores"]["images"], told["scores"]["without_answer"]) == (2, 1)
    assert [failure["status"] for failure in told["failures"]] == ["unreadable"]


def test_a_dry_run_needs_no_key_asks_nothing_and_leaves_nothing(tmp_path: Path) -> None:
    with serving() as server:
        command = ("detect", "scenes", *server.asked("openai", "gpt-4o"), "--dry-run")
        done = uncanny_here(*command, env={"OPENAI_API_KEY": None})
        assert (done.code, done.err) == (0, "")
        assert "Calls    about 68, two an image (34 with one, 102 with three" in done.out
        told = uncanny_here(*command, "-o", tmp_path / "run", "--json", env={"OPENAI_API_KEY": None}).json()
        assert server.requests() == 0
    assert (told["images"], told["pending"], told["calls"], told["calls_least"]) == (34, 34, 68, 34)
    assert told["input_tokens"] > told["output_tokens"] > 0
    assert 0 < told["cost_usd"] < told["cost_usd_uncached"]
    assert not (tmp_path / "run").exists()


def test_a_dry_run_counts_what_is_left(tmp_path: Path) -> None:
    command = (*DETECT, "scenes", "-o", tmp_path / "run", "--no-report")
    assert uncanny_here(*command, "--limit", "6", "-q").code == 0
    assert uncanny_here(*command, "--dry-run", "--json").json()["calls"] == 2 * 28


def test_the_temperature_sent_stands_in_the_manifest(tmp_path: Path) -> None:
    folder = pictures(tmp_path / "in", 1)
    with serving() as server:
        for provider, sent in (("openai", {"temperature": 0.0}), ("anthropic", {})):
            run = tmp_path / provider
            command = ("detect", folder, *server.asked(provider), "-o", run, "--json", "--no-report")
            assert uncanny_here(*command).code == 0
            manifest = orjson.loads((run / "run.json").read_bytes())
            (parameters,) = manifest["parameters"].values()
            assert {key: value for key, value in parameters.items() if key == "temperature"} == sent
            assert manifest["plan"] == {
                "protocol": "conversation",
                "temperature": 0.0,
                "top_p": None,
                "max_output_tokens": 2000,
            }


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--temperature", "3"], ["--temperature", "3"]),
        (["--top-p", "0"], ["--top-p", "0"]),
        (["--max-output-tokens", "0"], ["--max-output-tokens", "0"]),
        (["--limit", "0"], ["--limit"]),
        (["--role", "perceiver=demo"], ["perceiver", "detector"]),
        (["--fallback", "gpt-4o"], ["gpt-4o"]),
        (["--truth", "nowhere.jsonl"], ["nowhere.jsonl"]),
        (["elsewhere"], ["scenes", "other images"]),
    ],
    ids=lambda value: " ".join(value),
)
def test_wrong_use_is_one_line(options: list[str], words: list[str], tmp_path: Path) -> None:
    run = tmp_path / "run"
    one_line(uncanny_here(*DETECT, "scenes", "-o", run, *options), *words)
    assert not (run / "annotations.jsonl").exists()


def test_a_run_needs_a_folder_images_and_a_key(tmp_path: Path) -> None:
    one_line(uncanny_here(*DETECT, "scenes"), "-o runs/NAME")
    one_line(uncanny_here(*DETECT, tmp_path, "-o", tmp_path / "run"), "No images")
    command = ("detect", "scenes", "--model", "openai/gpt-4o", "-o", tmp_path / "run")
    one_line(uncanny_here(*command, env={"OPENAI_API_KEY": None}), "OPENAI_API_KEY")


def test_a_wrong_truth_is_refused_before_anything_is_asked(tmp_path: Path) -> None:
    folder = pictures(tmp_path / "in", 1)
    truth = tmp_path / "truth.jsonl"
    truth.write_text('{"image": "p00.png", "source": "photo"}\n{"source": "real"}\n')
    with serving() as server:
        command = ("detect", folder, *server.asked(), "-o", tmp_path / "run", "--truth", truth)
        problems(uncanny_here(*command), "2 problems", "'photo'", "line 2")
        truth.write_text('{"image": "q.png", "source": "real"}\n')
        one_line(uncanny_here(*command), "no image of the run", "q.png")
        assert server.requests() == 0


def test_a_run_of_another_kind_is_not_gone_on_with(tmp_path: Path) -> None:
    run = tmp_path / "run"
    assert uncanny_here(*DETECT, "scenes", "-o", run, "--limit", "1", "-q").code == 0
    one_line(
        uncanny_here("annotate", run / "images", "--model", "demo", "-o", run),
        "contains a run of `detect`",
        "`annotate` cannot resume",
    )


def test_the_report_shows_what_images_were_taken_for(tmp_path: Path) -> None:
    run = tmp_path / "run"
    assert uncanny_here(*DETECT, "scenes", "-o", run, "-q", "--no-report").code == 0
    assert uncanny_here("report", run).code == 0
    page = (run / "report.html").read_text(encoding="utf-8")
    assert "taken for" in page
    assert '"source":"generated"' in page.replace('": "', '":"')


def test_the_semantic_score_takes_the_run_as_it_is_and_agrees_on_the_accuracy(tmp_path: Path) -> None:
    run = tmp_path / "run"
    told = uncanny_here(*DETECT, "scenes", "-o", run, "--no-report", "--json").json()
    command = ("semantic", run, "--truth", "scenes", "--similarity", "chrf", "--json", "-")
    done = uncanny_here(*command)
    assert (done.code, done.err) == (0, "")
    (scored,) = done.json()["predictions"].values()
    assert scored["accuracy"] == told["scores"]["accuracy"] == 30 / 34
    assert 0 < scored["release"]["csemap"]["full"] < 1
    assert 0 < scored["paper"]["csemf1"]["full"] < 1
