"""Whole numbers of more than 64 bits under keys of other tools: read, and written again as they are."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import uncanny
from tests.bundled_runs import BundledRuns, some_items
from tests.runs.e2e import check_no_traceback, uncanny_here
from uncanny.demo.scenes import scenes
from uncanny.files import dump_json, load_json

LARGE: dict[str, Any] = {"other": 2**64, "deep": {"list": [2**70, -(2**65), 0.5, 2**64 - 1]}}
IMAGES = [scene.image_path for scene in scenes()][:3]
Row = dict[str, Any]


def written(path: Path, rows: list[Row]) -> Path:
    path.write_text("".join(json.dumps(row | LARGE) + "\n" for row in rows))
    return path


def rows_of(path: Path) -> list[Row]:
    return [json.loads(line) for line in path.read_text().splitlines() if line.strip()]


def enlarged(path: Path) -> Path:
    return written(path, rows_of(path))


@pytest.fixture
def pairs(tmp_path: Path) -> Path:
    rows = [
        each.pair.model_dump(mode="json", exclude_none=True) for each in uncanny.edits.load("scenes").pairs
    ]
    return written(tmp_path / "pairs.jsonl", rows[:2])


@pytest.fixture
def items(tmp_path: Path) -> Path:
    return enlarged(some_items(tmp_path / "set", 4))


def run(*arguments: object, code: int = 0) -> str:
    done = uncanny_here(*arguments)
    check_no_traceback(done)
    assert done.code == code, done
    return done.out


def check_carried(file: Path) -> None:
    """Each line has them as they were."""
    rows = rows_of(file)
    assert rows
    for row in rows:
        assert {key: row[key] for key in LARGE} == LARGE


def test_edits_measured_and_gated(pairs: Path, tmp_path: Path) -> None:
    measured, gated = tmp_path / "measured.jsonl", tmp_path / "gated.jsonl"
    json.loads(run("edits", "measure", pairs, "-o", measured, "--json", "-", "--no-report"))
    check_carried(measured)
    run("edits", "gate", measured, "-o", gated)
    check_carried(gated)


@pytest.mark.slow
def test_edits_measured_into_tables_and_scored(pairs: Path, tmp_path: Path) -> None:
    for suffix in ("csv", "parquet"):
        table, again = tmp_path / f"measured.{suffix}", tmp_path / f"again-{suffix}.jsonl"
        run("edits", "measure", pairs, "-o", table, "--no-report")
        run("edits", "gate", table, "-o", again)
        assert str(2**64) in again.read_text()
    predictions = [{"id": row["id"], "image": row["edited"], "score": 0.7} for row in rows_of(pairs)]
    detector = written(tmp_path / "detector.jsonl", predictions)
    run("edits", "stress", f"d={detector}", "--meta", again, "--json", "-", "--by", "other")


def test_items_checked_and_drawn(items: Path, tmp_path: Path) -> None:
    run("mcq", "check", items)
    run("mcq", "overlay", items, "-o", tmp_path / "drawn")
    check_carried(next((tmp_path / "drawn").glob("*.jsonl")))


@pytest.mark.slow
def test_items_asked_scored_and_exported(items: Path, tmp_path: Path) -> None:
    for suffix in ("csv", "parquet"):
        run("mcq", "export", items, "-o", tmp_path / f"items.{suffix}")
    run("mcq", "run", items, "-m", "demo", "-o", tmp_path / "run", "--limit", "2")
    enlarged(tmp_path / "run" / "answers.jsonl")
    run("mcq", "run", items, "-m", "demo", "-o", tmp_path / "run", "--limit", "3")
    assert str(2**70) in (tmp_path / "run" / "answers.jsonl").read_text()
    json.loads(run("mcq", "score", items, tmp_path / "run", "--json", "-"))


@pytest.mark.slow
def test_pairs_judged_and_texts_written(pairs: Path, tmp_path: Path) -> None:
    run("realism", "run", pairs, "-m", "demo", "-o", tmp_path / "realism")
    json.loads(run("realism", "score", tmp_path / "realism", "--json", "-"))
    rows = [
        {"id": row["id"], "original": row["original"], "caption": row["caption"], "objects": row["objects"]}
        for row in rows_of(pairs)
    ]
    texts = written(tmp_path / "texts.jsonl", rows)
    for command in ("perturb", "prompts"):
        run("edits", command, texts, "-m", "demo", "-o", tmp_path / command)
        run("edits", command, texts, "-m", "demo", "-o", tmp_path / command)


def large_run(bundled_run: BundledRuns, tmp_path: Path) -> Path:
    path = bundled_run("annotate").copy(tmp_path / "run")
    for name in ("annotations.jsonl", "calls.jsonl"):
        enlarged(path / name)
    return path


FORMS = ["jsonl", "csv", "parquet", "coco", "labelstudio", "labelme", "cvat", "sft", "sft-detect", "agents"]


@pytest.mark.slow
def test_a_run_exported_in_every_form(bundled_run: BundledRuns, tmp_path: Path) -> None:
    path = large_run(bundled_run, tmp_path)
    for form in FORMS:
        run("export", path, "--all", "--to", form, "-o", tmp_path / form)
    exported = next((tmp_path / "jsonl").rglob("annotations.jsonl"), None) or tmp_path / "jsonl"
    assert str(2**70) in exported.read_text()


READERS: list[Callable[[Path, Path], list[object]]] = [
    lambda path, _: ["report", path],
    lambda path, _: ["audit", f"a={path}", f"b={path}", "--json", "-"],
    lambda path, _: ["compare", f"a={path}", f"b={path}", "--json", "-"],
    lambda path, _: ["semantic", path, "--truth", "scenes", "--similarity", "chrf", "--json", "-"],
    lambda path, out: ["mcq", "build", path, "-o", out / "drafts.jsonl"],
]


@pytest.mark.slow
@pytest.mark.parametrize("command", READERS, ids=["report", "audit", "compare", "semantic", "build"])
def test_whoever_reads_a_run(
    command: Callable[[Path, Path], list[object]], bundled_run: BundledRuns, tmp_path: Path
) -> None:
    path = large_run(bundled_run, tmp_path)
    run(*command(path, tmp_path))


@pytest.mark.slow
def test_a_run_goes_on_and_its_table_has_them(tmp_path: Path) -> None:
    path, images = tmp_path / "run", tmp_path / "in"
    images.mkdir()
    for image in IMAGES[:2]:
        shutil.copy(image, images)
    run("annotate", images, "-m", "demo", "-o", path)
    enlarged(path / "annotations.jsonl")
    shutil.copy(IMAGES[2], images)
    run("annotate", images, "-m", "demo", "-o", path, "--format", "parquet", "--json")
    assert sum(row.get("other") == 2**64 for row in rows_of(path / "annotations.jsonl")) == 2
    (path / "annotations.jsonl").unlink()
    run("report", path)  # makes the lines anew, of the table
    carried = [row for row in rows_of(path / "annotations.jsonl") if "other" in row]
    assert [{key: row[key] for key in LARGE} for row in carried] == [LARGE, LARGE]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
).filter(lambda value: "\\ud" not in json.dumps(value))


@given(JSON, st.booleans())
def test_any_json_comes_back_as_it_was(value: object, indent: bool) -> None:
    assert load_json(dump_json(value, indent=indent)) == value


@pytest.mark.parametrize("value", [object(), {"a": [2**70, object()]}, "\udc00", [2**64, "\udc00"]])
def test_what_is_no_json_is_a_type_error(value: object) -> None:
    with pytest.raises(TypeError):
        dump_json(value)


@pytest.mark.parametrize("text", [b"", b"{", b"NaN", b"Infinity", b"[18446744073709551616", b"\xff"])
def test_what_is_no_json_cannot_be_read(text: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011  whichever library it is
        load_json(text)
