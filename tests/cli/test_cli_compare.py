"""`uncanny compare`: runs and files side by side, outputs, names, exit codes, and what cannot be compared."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest

import uncanny
from tests.cli.complaints import one_line, problems
from tests.eval.compare.made_runs import anomaly, record, written
from tests.runs.e2e import Done, check_no_traceback, uncanny_here
from uncanny.eval.compare.score.result import COLUMNS

# The contract; further keys may stand beside these.
KEYS = {
    *("runs", "images", "anomalies", "changed", "by_kind", "figures", "cost", "truth", "per_image"),
}


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    a = [record("x.png", [anomaly("one")]), record("y.png", [anomaly("two")]), record("z.png")]
    b = [record("x.png", [anomaly("one")]), record("y.png"), record("w.png")]
    return written(tmp_path / "a.jsonl", a), written(tmp_path / "b.jsonl", b)


def compared(*arguments: object) -> Done:
    done = uncanny_here("compare", "--resamples", "50", *arguments)
    check_no_traceback(done)
    return done


def test_it_prints_and_writes_what_the_function_returns(
    files: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    done = compared(*files, "--json", "out.json", "--csv", "out.csv")
    assert (done.code, done.err) == (0, "")
    result = uncanny.compare(*files, resamples=50)
    page = tmp_path / "compare.html"
    assert done.out == f"{result}\nReport   {page}\n"
    content = orjson.loads(Path("out.json").read_bytes())
    assert content == orjson.loads(orjson.dumps(result.to_json()))
    assert set(content) >= KEYS
    assert content["runs"] == ["a", "b"]
    assert content["images"] == {"both": 2, "only_a": 1, "only_b": 1}
    assert set(content["cost"]) >= {"calls", "input_tokens", "cached_tokens", "output_tokens", "cost_usd"}
    assert set(content["figures"]["mai"]) == {"a", "b", "difference", "ci", "p_value", "adjusted_p"}
    assert content["truth"] is None
    assert Path("out.csv").read_text() == result.to_csv()
    assert Path("out.csv").read_text().splitlines()[0] == ",".join(COLUMNS)
    assert b"Image by image" in page.read_bytes()
    assert {path.name for path in elsewhere.iterdir()} == {"out.json", "out.csv"}
    # Its own files it writes again; those of others it does not.
    assert compared(*files, "--json", "out.json", "--csv", "out.csv").code == 0
    several = compared(*files, f"c={files[0]}", "--json", "out.json", "--no-report")
    assert several.code == 0
    assert len(orjson.loads(Path("out.json").read_bytes())["comparisons"]) == 2
    assert compared(*files, "--json", "out.json", "--no-report").code == 0
    Path("out.json").write_text('{"mine": 1}')
    one_line(compared(*files, "--json", "out.json"), "out.json already exists")


def test_piped_on_there_is_nothing_else(files: tuple[Path, Path], tmp_path: Path) -> None:
    content = compared(*files, "--json", "-").json()
    assert content["changed"]["found_to_none"] == 1
    assert compared(*files, "--csv", "-").out.startswith("run_a,run_b,")
    assert compared(*files, "-q", "--no-report").out == ""
    assert not list(tmp_path.glob("*.html"))


def test_names(files: tuple[Path, Path]) -> None:
    assert compared(f"old={files[0]}", f"new={files[1]}", "--json", "-").json()["runs"] == ["old", "new"]
    one_line(compared(f"x={files[0]}", f"x={files[1]}"), "two runs are called 'x'")
    one_line(compared(files[0], files[0]), "two runs are called", "NAME=PATH")


def test_exit_code_1_where_records_failed(files: tuple[Path, Path], tmp_path: Path) -> None:
    failed = written(tmp_path / "failed.jsonl", [record("x.png", status="failed"), record("y.png")])
    done = compared(files[0], failed, "--json", "-")
    assert done.code == 1
    assert done.json()["left_out"]["b"]["failed"] == 1
    assert done.json()["images"]["both"] == 1


def test_an_unclear_verdict_is_no_failure(tmp_path: Path) -> None:
    """A run that is compared with itself has nothing that failed, whatever its models declined to say."""
    lines = [record("x.png") | {"source": None}, record("y.png") | {"source": "real"}]
    file = written(tmp_path / "detected.jsonl", lines)
    done = compared(f"a={file}", f"b={file}", "--json", "-")
    assert done.code == 0
    assert done.json()["left_out"]["a"]["unclear"] == 1
    assert done.json()["images"]["both"] == 1


def test_where_no_pair_counts_nothing_is_measured(files: tuple[Path, Path], tmp_path: Path) -> None:
    failed = written(tmp_path / "failed.jsonl", [record("x.png", status="failed")])
    done = compared(files[0], failed, "--report", tmp_path / "page.html")
    assert done.code == 1
    assert "have no image in common that counts" in done.out
    content = compared(files[0], failed, "--json", "-").json()
    nothing = dict.fromkeys(("a", "b", "difference", "ci", "p_value", "adjusted_p"))
    assert content["figures"]["af"] == nothing
    assert content["per_image"] == []


def test_what_cannot_be_compared_is_refused(files: tuple[Path, Path], tmp_path: Path) -> None:
    a, b = files
    one_line(compared(a), "two runs or more")
    one_line(compared(a, tmp_path / "none.jsonl"), "does not exist")
    one_line(compared(a, tmp_path), "contains no annotations")
    one_line(compared(a, b, "--match-threshold", "0"), "--match-threshold")
    one_line(compared(a, b, "--truth", "scenes"), "no image of")
    one_line(compared(a, b, "--truth", "scenes", "--by", "prompt"), "--truth belongs to one set")
    one_line(compared(a, b, "--backbone", "x"), "chrf has no backbone")
    broken = tmp_path / "broken.jsonl"
    broken.write_text('{"image": "x.png"}\nno json\n')
    problems(compared(a, broken), "broken.jsonl", "status", "not valid JSON", "nothing was compared")
