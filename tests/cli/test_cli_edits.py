"""`uncanny edits` as a process: what it writes, its exit codes, and wrong use in one sentence."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import orjson
import pytest

from tests.eval.edits.made_pairs import bad_set, known_cases


def run(*arguments: str | Path, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "uncanny", "edits", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        cwd=cwd,
    )


def test_measure_writes_records_figures_and_page(tmp_path: Path) -> None:
    out, figures = tmp_path / "m.jsonl", tmp_path / "m.json"
    done = run("measure", bad_set(tmp_path), "-o", out, "--json", figures, "--preserved")
    assert done.returncode == 1, done.stderr
    assert "post_edit_ratio" in done.stdout
    assert "Failed: missing" in done.stdout
    page = (tmp_path / "m.html").read_text()
    assert len(out.read_bytes().splitlines()) == 12
    assert orjson.loads(figures.read_bytes())["statuses"]["failed"] == 5
    done = run("measure", tmp_path / "edits.jsonl", "--cutoffs", figures, "-o", tmp_path / "n.csv")
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "n.html").is_file()
    assert (tmp_path / "m.html").read_text() == page, "each output has a page of its own"


def test_its_own_output_is_written_again(tmp_path: Path) -> None:
    for suffix in ("jsonl", "csv", "parquet"):
        for _ in range(2):
            file = tmp_path / f"m.{suffix}"
            done = run("measure", known_cases(tmp_path), "-o", file, "--no-report")
            assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nowhere.jsonl"], "cannot be read"),
        ([], "No pairs are named"),
        (["scenes", "-o", "m.txt"], "suffixes"),
        (["scenes", "--window", "4"], "window must be odd"),
        (["scenes", "--threshold", "nan"], "--threshold"),
        (["scenes", "--cutoffs", "edits.jsonl"], "is no JSON"),
        (["scenes", "--original", ".", "--edited", "."], "named twice"),
        (["--original", "nowhere", "--edited", "."], "is no folder"),
        (["--original", "."], "go together"),
        (["edits.jsonl", "-o", "edits.jsonl"], "would be written over"),
        (["edits.jsonl", "-o", "other.jsonl"], "is no file of measured edits"),
        (["latin.csv"], "cannot be read as a table"),
        (["half.csv"], "field original"),
    ],
)
def test_wrong_use_ends_with_a_sentence(arguments: list[str], words: str, tmp_path: Path) -> None:
    known_cases(tmp_path)
    (tmp_path / "other.jsonl").write_text('{"mine": 1}\n')
    (tmp_path / "latin.csv").write_bytes(b"id,original,edited\n\xff\xfe,a,b\n")
    (tmp_path / "half.csv").write_text("id,edited\n1,a.png\n")
    done = run("measure", *arguments, cwd=tmp_path)
    assert done.returncode == 2, done.stdout
    assert words in done.stderr
    assert "Traceback" not in done.stderr
