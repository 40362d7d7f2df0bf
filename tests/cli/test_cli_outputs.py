"""No command writes over what it reads, over records, or over a file that is not its own."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import uncanny
from tests.bundled_runs import BundledRuns, Kind
from tests.cli.complaints import one_line
from tests.runs.e2e import pictures, uncanny_here
from uncanny.cli.common.files import check_outputs, page
from uncanny.errors import UsageError

FAST = ("--resamples", "0")


@pytest.fixture
def runs(bundled_run: BundledRuns, tmp_path: Path) -> Path:
    """Finished runs with the bundled scenes, to be worked on."""
    kinds: dict[str, Kind] = {"a": "annotate", "m": "mcq", "r": "realism"}
    for name, kind in kinds.items():
        bundled_run(kind).copy(tmp_path / "runs" / name)
    return tmp_path / "runs"


def contents(folder: Path) -> dict[str, bytes]:
    """Everything in a folder but locks."""
    files = (file for file in folder.rglob("*") if file.is_file() and file.name != ".lock")
    return {str(file.relative_to(folder)): file.read_bytes() for file in files}


def over_inputs(runs: Path) -> Iterator[tuple[object, ...]]:
    """Commands whose output is one of their inputs."""
    annotations, answers = runs / "a/annotations.jsonl", runs / "m/answers.jsonl"
    verdicts, items = runs / "r/verdicts.jsonl", runs / "m/items/items.jsonl"
    mcq = ("mcq", "score", items, answers, *FAST)
    yield *mcq, "--json", answers
    yield *mcq, "--json", items
    yield *mcq, "--report", answers
    yield *mcq, "--no-report", "--markdown", answers
    yield *mcq, "--no-report", "--latex", items
    yield "mcq", "score", items, runs / "m", *FAST, "--json", answers
    yield *mcq, "--people", answers, "--json", answers
    yield "audit", f"a={annotations}", *FAST, "--csv", annotations
    yield "audit", f"a={runs / 'a'}", *FAST, "--json", annotations
    yield "audit", f"a={runs / 'a'}", *FAST, "--no-report", "--csv", runs / "a/run.json"
    compare = ("compare", f"x={annotations}", f"y={runs / 'a'}", *FAST, "--no-report")
    yield *compare, "--json", annotations
    yield *compare, "--csv", runs / "a/run.json"
    semantic = ("semantic", annotations, "--truth", annotations, "--similarity", "chrf", *FAST)
    yield *semantic, "--per-image", annotations
    yield *semantic, "--json", annotations
    yield "realism", "score", verdicts, *FAST, "--report", verdicts
    yield "realism", "score", runs / "r", *FAST, "--csv", verdicts
    yield "mcq", "build", runs / "a", "-o", annotations
    yield "mcq", "overlay", items, "-o", items.parent
    yield "mcq", "export", items, "-o", items.with_suffix(".csv")
    yield "mcq", "run", answers, "-m", "demo", "-o", runs / "m"
    yield "realism", "run", verdicts, "-m", "demo", "-o", runs / "r"


@pytest.mark.parametrize("force", [(), ("--force",)])
def test_no_input_is_written_over(force: tuple[str, ...], runs: Path) -> None:
    # On a file system that tells case apart, a hard link stands for the same name in another case.
    items = runs / "m/items/items.jsonl"
    os.link(items, items.with_suffix(".csv"))
    before = contents(runs)
    for command in over_inputs(runs):
        one_line(uncanny_here(*command, *force), "is an input of this command", str(command[-1])[:20])
        assert contents(runs) == before, command


def test_links_lead_to_the_same_file(runs: Path, tmp_path: Path) -> None:
    answers = runs / "m/answers.jsonl"
    os.link(answers, tmp_path / "hard.json")
    (tmp_path / "soft.json").symlink_to(answers)
    before = answers.read_bytes()
    for name in ("hard.json", "soft.json"):
        command = ("mcq", "score", "scenes", answers, *FAST, "--json", tmp_path / name, "--force")
        one_line(uncanny_here(*command), name, "is an input of this command")
        assert answers.read_bytes() == before


def over_others(runs: Path, target: Path) -> Iterator[tuple[object, ...]]:
    """Commands that write to `target`, which is somebody else's."""
    mcq = ("mcq", "score", "scenes", runs / "m", *FAST)
    yield *mcq, "--no-report", "--json", target
    yield *mcq, "--report", target
    yield *mcq, "--no-report", "--csv", target
    yield *mcq, "--no-report", "--markdown", target
    yield *mcq, "--no-report", "--latex", target
    audit = ("audit", f"a={runs / 'a'}", *FAST)
    yield *audit, "--no-report", "--json", target
    yield *audit, "--no-report", "--csv", target
    yield *audit, "--report", target
    semantic = ("semantic", runs / "a", "--truth", "scenes", "--similarity", "chrf", *FAST)
    yield *semantic, "--no-report", "--json", target
    yield *semantic, "--no-report", "--per-image", target
    yield *semantic, "--report", target
    realism = ("realism", "score", runs / "r", *FAST)
    yield *realism, "--no-report", "--json", target
    yield *realism, "--no-report", "--csv", target
    yield *realism, "--report", target
    yield "mcq", "build", runs / "a", "-o", target
    yield "mcq", "export", "scenes", "-o", target.with_suffix(".csv")
    yield "mcq", "overlay", "scenes", "-o", target.parent
    yield "report", runs / "a"


FOREIGN = [b"my notes\n", b'{"a": 1}\n', b"<!doctype html><title>Mine</title>", b"\xff\xfe\x00"]


@pytest.mark.slow
@pytest.mark.parametrize("foreign", FOREIGN, ids=["text", "json", "html", "binary"])
def test_a_file_of_others_is_replaced_by_force_only(foreign: bytes, runs: Path, tmp_path: Path) -> None:
    target = tmp_path / "out" / "items.jsonl"
    target.parent.mkdir()
    places = [target, target.with_suffix(".csv"), runs / "a/report.html"]
    for command in over_others(runs, target):
        for place in places:
            place.write_bytes(foreign)
        one_line(uncanny_here(*command), "already exists", "--force")
        assert all(place.read_bytes() == foreign for place in places), command
        assert uncanny_here(*command, "--force").code == 0, command
        assert any(place.read_bytes() != foreign for place in places), command


def test_records_of_a_run_are_others(runs: Path) -> None:
    before = contents(runs)
    for target in (runs / "a/annotations.jsonl", runs / "m/answers.jsonl", runs / "m/run.json"):
        command = ("realism", "score", runs / "r", *FAST, "--no-report", "--json", target)
        one_line(uncanny_here(*command), "already exists")
    assert contents(runs) == before


def test_the_table_of_a_run_that_is_read_is_not_written_over(tmp_path: Path) -> None:
    table = tmp_path / "run" / "annotations.parquet"
    table.parent.mkdir()
    table.write_bytes(b"rows")
    with pytest.raises(UsageError, match="is an input of this command"):
        check_outputs([page(table)], [table.parent], force=True)


@pytest.mark.slow
def test_ones_own_output_is_replaced_without_a_word(runs: Path, tmp_path: Path) -> None:
    target = tmp_path / "out" / "items.jsonl"
    target.parent.mkdir()
    for command in over_others(runs, target):
        shutil.rmtree(target.parent)
        target.parent.mkdir()
        for _ in range(2):
            done = uncanny_here(*command)
            assert (done.code, done.err) == (0, ""), command
    target.write_bytes(b"")  # as mktemp leaves it
    assert uncanny_here("mcq", "score", "scenes", runs / "m", *FAST, "--json", target).code == 0
    # Of several models too.
    for command in (
        ("mcq", "score", "scenes", runs / "m", "--baselines", *FAST, "--json", tmp_path / "several.json"),
        ("realism", "score", runs / "r", runs / "copy.jsonl", *FAST, "--json", tmp_path / "two.json"),
    ):
        shutil.copyfile(runs / "r/verdicts.jsonl", runs / "copy.jsonl")
        assert [uncanny_here(*command).code for _ in range(2)] == [0, 0]


def test_drafts_that_somebody_worked_on_are_kept(runs: Path, tmp_path: Path) -> None:
    drafts = tmp_path / "items.jsonl"
    command = ("mcq", "build", runs / "a", "-o", drafts)
    assert [uncanny_here(*command).code for _ in range(2)] == [0, 0]
    drafts.write_bytes(drafts.read_bytes().replace(b'"draft":true', b'"draft":false', 1))
    checked = drafts.read_bytes()
    one_line(uncanny_here(*command), "already exists and contains more than these drafts", "--force")
    one_line(uncanny_here(*command, "--seed", "1"), "already exists")
    assert drafts.read_bytes() == checked
    assert uncanny_here(*command, "--force").code == 0
    assert drafts.read_bytes() != checked


@pytest.mark.slow
def test_a_folder_of_others_is_no_run_folder(tmp_path: Path) -> None:
    images = pictures(tmp_path / "in", 1)
    commands = [
        ("annotate", images, "-m", "noop"),
        ("detect", images, "-m", "noop"),
        ("demo",),
        ("mcq", "run", "scenes", "-m", "demo"),
        ("realism", "run", "scenes", "-m", "demo"),
    ]
    for number, command in enumerate(commands):
        for name in ("run.json", "report.html"):
            if name == "report.html" and "run" in command:
                continue  # these write none
            theirs = tmp_path / f"theirs{number}{name}"
            theirs.mkdir()
            (theirs / name).write_text('{"scripts": {"start": "x"}}')
            before = contents(theirs)
            one_line(uncanny_here(*command, "-o", theirs), name)
            assert contents(theirs) == before
            assert uncanny_here(*command, "-o", theirs, "--force", "-q").code == 0
    theirs = tmp_path / "audit" / "a"
    theirs.mkdir(parents=True)
    (theirs / "run.json").write_text('{"scripts": {}}')
    command = ("audit", f"a={images}", "-m", "noop", "-o", theirs.parent, *FAST)
    one_line(uncanny_here(*command), "run.json is not the manifest of a run")


def outputs(bundled_run: BundledRuns, out: Path) -> Iterator[tuple[object, ...]]:
    """Every option that names a file to be written, in a folder that is not there yet."""
    a, m, r = (bundled_run(kind).path for kind in ("annotate", "mcq", "realism"))
    fast = (*FAST, "--report", out / "page.html", "--json", out / "scores.json", "--csv", out / "scores.csv")
    tables = ("--markdown", out / "tables.md", "--latex", out / "tables.tex")
    yield "mcq", "score", "scenes", m, *fast, *tables
    yield "mcq", "plan", "--json", out / "plan.json", "--csv", out / "plan.csv"
    yield "mcq", "build", a, "-o", out / "drafts.jsonl"
    yield "mcq", "export", m / "items" / "items.jsonl", "-o", out / "items.csv"
    yield "mcq", "export", m / "items" / "items.jsonl", "-o", out / "items.parquet"
    yield "realism", "score", r, *fast
    yield "audit", f"a={a}", f"b={a}", *fast, *tables
    yield "compare", f"a={a}", f"b={a}", *fast, *tables
    rows = ("--per-image", out / "images.jsonl")
    yield "semantic", a, "--truth", "scenes", "--similarity", "chrf", *fast, *rows
    yield "report", a, "-o", out / "page.html"
    for suffix in ("jsonl", "csv", "parquet"):
        yield "edits", "measure", "scenes", "--no-report", "-o", out / f"edits.{suffix}"
    yield "export", a, "--all", "--to", "csv", "-o", out / "findings.csv"
    yield "init", "annotate", "-o", out / "options.toml"


@pytest.mark.slow
@pytest.mark.parametrize("number", range(15))
def test_folders_of_named_files_are_made(number: int, bundled_run: BundledRuns, tmp_path: Path) -> None:
    out = tmp_path / "not" / "there yet"
    commands = list(outputs(bundled_run, out))
    assert len(commands) == 15
    done = uncanny_here(*commands[number])
    assert done.code == 0, done
    named = [each for each in commands[number] if isinstance(each, Path) and each.parent == out]
    assert named
    assert all(file.stat().st_size for file in named)


def test_a_folder_is_made_for_a_small_file_and_for_a_page(bundled_run: BundledRuns, tmp_path: Path) -> None:
    plan, page_file = tmp_path / "a" / "b" / "plan.json", tmp_path / "c" / "d" / "page.html"
    assert uncanny_here("mcq", "plan", "--json", plan).code == 0
    assert plan.is_file()
    run = uncanny.AnnotateRun(bundled_run("annotate").path)
    assert run.report(page_file) == page_file
    assert page_file.is_file()


@pytest.mark.parametrize("option", ["--json", "--report"])
def test_places_that_cannot_be_written(option: str, runs: Path, tmp_path: Path) -> None:
    command = ("mcq", "score", "scenes", runs / "m", *FAST, option)
    (tmp_path / "pipe").parent.mkdir(exist_ok=True)
    os.mkfifo(tmp_path / "pipe")
    one_line(uncanny_here(*command, "/dev/null", "--force"), "/dev/null is not a regular file")
    one_line(uncanny_here(*command, tmp_path / "pipe"), "is a named pipe, not a file")
    one_line(uncanny_here(*command, tmp_path), "is a folder")
    answers = runs / "m/answers.jsonl"
    one_line(uncanny_here(*command, answers / "x.json"), f"{answers} is not a folder")
    one_line(uncanny_here(*command, answers / "deep" / "x.json"), f"{answers} is not a folder")
    if option == "--report":
        one_line(uncanny_here(*command, "-"), "Cannot write to standard output")
        both = ("--json", tmp_path / "x", "--report", tmp_path / "." / "x")
        one_line(uncanny_here(*command[:-1], *both), "two outputs")


def test_images_and_tables_of_folders_that_are_read_stay(tmp_path: Path) -> None:
    image, table = tmp_path / "images/inner/a.PNG", tmp_path / "images/data/train.parquet"
    for file in (image, table):
        file.parent.mkdir(parents=True)
        file.write_bytes(b"x")
        for link in (file, tmp_path / "link"):
            if link != file:
                link.unlink(missing_ok=True)
                link.symlink_to(file)
            with pytest.raises(UsageError, match="is an input of this command"):
                check_outputs([page(link)], [tmp_path / "images"], force=True)
    (tmp_path / "images/a.html").write_bytes(b"x")
    check_outputs([page(tmp_path / "images/a.html")], [tmp_path / "images"], force=True)


@pytest.mark.slow
def test_scores_that_a_full_disk_refuses_leave_the_earlier_ones(tmp_path: Path) -> None:
    """Files of the process may have 0 bytes: what is written then fails as on a full disk."""
    file = tmp_path / "scores.json"
    script = (
        "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0));"
        "from uncanny.cli import main; main()"
    )
    file.write_text("")
    arguments = ("mcq", "score", "scenes", tmp_path / "answers.jsonl", "--no-report", "--json", file)
    uncanny.mcq.run("scenes", model="demo", out=tmp_path, limit=1)
    done = subprocess.run(
        [sys.executable, "-c", script, *arguments], capture_output=True, text=True, check=False
    )
    words = " ".join(done.stderr.split())
    assert (done.returncode, "Traceback" in words) == (1, False)
    assert words.startswith(f"Error: {file}: File too large")
    assert "Free some disk space" in words
    assert sorted(path.name for path in tmp_path.glob("*scores*")) == ["scores.json"]


@pytest.mark.slow
def test_a_current_folder_that_is_gone_is_named(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    script = (
        f"import os, pathlib; os.mkdir({str(gone)!r}); os.chdir({str(gone)!r}); os.rmdir({str(gone)!r});"
        "from uncanny.cli import main; main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, "serve", "--data", "d"], capture_output=True, text=True, check=False
    )
    words = " ".join(done.stderr.split())
    assert (done.returncode, words) == (1, "Error: the current folder is not there any more. Go to another.")
