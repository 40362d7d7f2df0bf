"""The pages that commands write: where they go, and when there is none."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import click
import orjson
import pytest

from tests.bundled_runs import BundledRuns
from tests.cli.complaints import one_line
from tests.eval.audit.annotation_sets import record, written
from tests.eval.edits.made_pairs import known_cases
from tests.runs.e2e import uncanny_here
from uncanny.cli.annotate import report_command
from uncanny.eval.common.pages.pictures import PICTURES

AUDIT = ("audit", "rendered=scenes:rendered", "drawn=scenes:drawn", "--model", "demo", "--resamples", 50)


@pytest.mark.slow
def test_an_audit_writes_its_page_and_says_where(tmp_path: Path) -> None:
    done = uncanny_here(*AUDIT, "-o", tmp_path / "a", "--published")
    page = tmp_path / "a" / "audit.html"
    assert f"Report   {page}" in done.out
    html = page.read_text(encoding="utf-8")
    assert "<bdi>rendered</bdi>" in html
    assert html.count("data:image/webp;base64,") >= 8
    assert "image cannot be read" not in html
    elsewhere = tmp_path / "elsewhere.html"
    assert f"Report   {elsewhere}" in uncanny_here(*AUDIT, "-o", tmp_path / "a", "--report", elsewhere).out
    assert elsewhere.is_file()


def test_scoring_realism_writes_its_page_and_says_where(tmp_path: Path, bundled_run: BundledRuns) -> None:
    run = bundled_run("realism").copy(tmp_path / "r")
    done = uncanny_here("realism", "score", run, "--resamples", 50)
    assert f"Report   {run / 'realism.html'}" in done.out
    html = (run / "realism.html").read_text(encoding="utf-8")
    assert html.count("data:image/webp;base64,") == 12  # four deceiving pairs, each with its difference
    elsewhere = tmp_path / "elsewhere.html"
    done = uncanny_here("realism", "score", run, "--json", "-", "--report", elsewhere)
    assert done.json()["n"] == 16
    assert elsewhere.is_file()


@pytest.mark.parametrize("options", [("--no-report",), ("--json", "-")])
def test_no_page_where_none_is_wanted(
    options: tuple[str, ...], tmp_path: Path, bundled_run: BundledRuns
) -> None:
    run = bundled_run("realism").copy(tmp_path / "r")
    assert "Report" not in uncanny_here("realism", "score", run, "--resamples", 50, *options).out
    assert not (run / "realism.html").exists()
    assert "Report" not in uncanny_here(*AUDIT, "-o", tmp_path / "a", *options).out
    assert not (tmp_path / "a" / "audit.html").exists()


@pytest.mark.slow
def test_a_report_of_any_run_is_the_page_of_its_protocol(tmp_path: Path) -> None:
    for task, file in (("mcq", "answers.jsonl"), ("realism", "verdicts.jsonl")):
        run = tmp_path / task
        assert uncanny_here(task, "run", "scenes", "--model", "demo", "-o", run, "-q").code == 0
        assert (run / file).is_file()
        done = uncanny_here("report", run)
        assert (done.code, done.out, done.err) == (0, f"{run / 'report.html'}\n", "")
        assert "demo" in (run / "report.html").read_text(encoding="utf-8")
    shutil.rmtree(tmp_path / "mcq" / "items")
    one_line(
        uncanny_here("report", tmp_path / "mcq"),
        "cannot find its item file",
        "uncanny mcq score ITEMS",
    )
    one_line(uncanny_here("report", tmp_path), "is not a run")
    one_line(uncanny_here("report", tmp_path / "nowhere"), "is not a run")


def test_a_report_of_a_file_of_annotations_goes_beside_it(tmp_path: Path) -> None:
    file = written(tmp_path / "a.jsonl", [record("a.png", [20])])
    done = uncanny_here("report", file)
    assert (done.code, done.out, done.err) == (0, f"{tmp_path / 'a.html'}\n", "")
    assert "six fingers" in (tmp_path / "a.html").read_text(encoding="utf-8")
    (tmp_path / "a.html").write_text("mine")
    one_line(uncanny_here("report", file), "already exists and is not an uncanny page", "--force")
    assert uncanny_here("report", file, "--force").code == 0


def test_a_run_of_another_command_is_named_in_one_line(tmp_path: Path, bundled_run: BundledRuns) -> None:
    run = bundled_run("annotate").copy(tmp_path / "run")
    for name in ("detect", "mcq run", "realism run"):
        done = uncanny_here(*name.split(), "scenes", "-m", "demo", "-o", run)
        one_line(done, "contains a run of `annotate`", f"`{name}` cannot resume", "-o")
        assert len(done.err) < 300 + len(str(run))


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["link", "embed"])
def test_full_size_pictures_are_linked_or_embedded(mode: str, tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    pages = [
        (
            ("detect", "scenes", "-m", "demo", "-o", runs / "d", "--limit", 6, "-q"),
            runs / "d" / "report.html",
        ),
        (("report", runs / "d"), runs / "d" / "report.html"),
        (
            ("semantic", runs / "d", "--truth", "scenes", "--similarity", "chrf", "--resamples", 9, "-q"),
            runs / "d" / "semantic.html",
        ),
        (
            ("audit", f"a={runs / 'd'}", f"b={runs / 'd'}", "--resamples", 9, "--report", runs / "a.html"),
            runs / "a.html",
        ),
    ]
    for arguments, page in pages:
        assert uncanny_here(*arguments, "--pictures", mode).code < 2, arguments
        html = page.read_text(encoding="utf-8")
        views = json.loads(html.split('id="views">')[1].split("</script>")[0])
        assert views
        sources = [layer["src"] for view in views for layer in view["layers"]]
        if mode == "embed":
            assert set(sources) == {None}
            assert "img-src data:;" in html
        else:
            assert all((page.parent / source).is_file() for source in sources)


def test_the_words_for_pictures_are_those_of_the_functions() -> None:
    (option,) = (each for each in report_command.params if each.name == "pictures")
    assert isinstance(option.type, click.Choice)
    assert tuple(option.type.choices) == PICTURES


@pytest.mark.slow
def test_quiet_commands_write_their_pages_over_old_ones(tmp_path: Path) -> None:
    """`-q` is about the terminal: an old page beside new figures would pass for theirs."""
    known_cases(tmp_path)
    edits, predictions = tmp_path / "m.jsonl", tmp_path / "p.jsonl"
    rows = [
        {"image": f"{name}.png", "score": 0.9, "regions": []} for name in ("one", "two", "corner", "black")
    ]
    predictions.write_bytes(
        b"".join(orjson.dumps({**row, "width": 256, "height": 256}) + b"\n" for row in rows)
    )
    commands = {
        "m.html": ("edits", "measure", tmp_path / "edits.jsonl", "-o", edits),
        "stress.html": ("edits", "stress", predictions, "--meta", edits, "--resamples", 9),
        "artifacts.html": ("artifacts", "score", predictions, "--truth", predictions, "--resamples", 9),
    }
    for name, command in commands.items():
        page = tmp_path / name
        old = '<meta name="generator" content="uncanny 0">'
        page.write_text(old)
        done = uncanny_here(*command, "-q")
        assert (done.code, done.out, done.err) == (0, "", ""), command
        assert len(page.read_text()) > 1000, command
        page.write_text(old)
        done = uncanny_here(*command, "--no-report")
        assert done.err == f"No report written; {page} is that of an earlier call.\n"
        assert page.read_text() == old
        page.unlink()
        assert uncanny_here(*command, "--no-report").err == ""
        assert not page.exists()


def test_a_run_without_a_page_says_what_there_is_instead(tmp_path: Path) -> None:
    for words, expected in (
        (("artifacts", "run"), f"uncanny artifacts score {tmp_path / 'artifacts'} --truth TRUTH"),
        (("edits", "perturb"), str(tmp_path / "edits" / "perturbations.jsonl")),
    ):
        run = tmp_path / words[0]
        assert uncanny_here(*words, "scenes", "-m", "demo", "-o", run, "--limit", "1", "-q").code == 0
        one_line(uncanny_here("report", run), expected)
