"""`uncanny edits`: what it writes, its exit codes, and wrong use in one sentence."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest

from tests.eval.edits.made_pairs import bad_set, known_cases
from tests.runs.e2e import uncanny, uncanny_here


@pytest.mark.slow
def test_measure_writes_records_figures_and_page(tmp_path: Path) -> None:
    out, figures = tmp_path / "m.jsonl", tmp_path / "m.json"
    done = uncanny("edits", "measure", bad_set(tmp_path), "-o", out, "--json", figures, "--preserved")
    assert done.code == 1, done.err
    assert "post_edit_ratio" in done.out
    assert "Failed: missing" in done.out
    page = (tmp_path / "m.html").read_text()
    assert len(out.read_bytes().splitlines()) == 12
    assert orjson.loads(figures.read_bytes())["statuses"]["failed"] == 5
    again = ("measure", tmp_path / "edits.jsonl", "--cutoffs", figures, "-o", tmp_path / "n.csv")
    done = uncanny_here("edits", *again)
    assert (done.code, done.err) == (0, "")
    assert (tmp_path / "n.html").is_file()
    assert (tmp_path / "m.html").read_text() == page, "each output has a page of its own"


def test_its_own_output_is_written_again(tmp_path: Path) -> None:
    for suffix in ("jsonl", "csv", "parquet"):
        for _ in range(2):
            file = tmp_path / f"m.{suffix}"
            done = uncanny_here("edits", "measure", known_cases(tmp_path), "-o", file, "--no-report")
            assert done.code == 0, done.err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nowhere.jsonl"], "cannot be read"),
        ([], "No pairs are given"),
        (["scenes", "-o", "m.txt"], "must end in one of"),
        (["scenes", "--window", "4"], "window must be odd"),
        (["scenes", "--difference-threshold", "nan"], "--difference-threshold must be a number"),
        (["scenes", "--cutoffs", "edits.jsonl"], "is not valid JSON"),
        (["scenes", "--original", ".", "--edited", "."], "both as a source and as two folders"),
        (["--original", "nowhere", "--edited", "."], "is not a folder"),
        (["--original", "."], "must be given together"),
        (["edits.jsonl", "-o", "edits.jsonl"], "would be overwritten"),
        (["edits.jsonl", "-o", "other.jsonl"], "is not a file of measured edits"),
        (["latin.csv"], "cannot be read as a table"),
        (["half.csv"], "field original"),
    ],
)
def test_wrong_use_ends_with_a_sentence(
    arguments: list[str], words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    known_cases(tmp_path)
    (tmp_path / "other.jsonl").write_text('{"mine": 1}\n')
    (tmp_path / "latin.csv").write_bytes(b"id,original,edited\n\xff\xfe,a,b\n")
    (tmp_path / "half.csv").write_text("id,edited\n1,a.png\n")
    done = uncanny_here("edits", "measure", *arguments)
    assert done.code == 2, done.out
    assert words in done.err
    assert "Traceback" not in done.err
