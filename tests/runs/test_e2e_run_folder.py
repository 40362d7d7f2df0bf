"""Run folders that are incomplete, damaged, or from somebody else: refused or mended, with a sentence."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.runs.e2e import (
    Done,
    Run,
    Server,
    check_no_traceback,
    pictures,
    serving,
    serving_process,
    start,
    uncanny_here,
)
from uncanny.agents.config import AnnotateConfig
from uncanny.images.encode import PixelPolicy
from uncanny.records.run_manifest import PixelCounts, Prompts, RunForecast, RunManifest, Sums, Totals

AN_IMAGE = 1 + 1 + 1


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving(objects=2) as server:
        yield server


@pytest.fixture
def images(tmp_path: Path) -> Path:
    return pictures(tmp_path / "in", 3)


def command(images: Path, server: Server, run: Run) -> list[object]:
    return ["annotate", images, *server.asked(name="demo"), "-o", run.path, "--no-report"]


def check_refused(done: Done, *words: str) -> None:
    check_no_traceback(done)
    assert (done.code, done.out, len(done.told.splitlines())) == (2, "", 1), done
    for word in words:
        assert word in done.told


def snapshot(folder: Path) -> dict[str, tuple[int, int, bytes]]:
    """Each file below `folder` with inode, time of change and content."""
    return {
        str(path.relative_to(folder)): (
            path.lstat().st_ino,
            path.lstat().st_mtime_ns,
            path.read_bytes() if path.is_file() else b"",
        )
        for path in folder.rglob("*")
    }


# run.json is missing


def test_records_of_another_model_are_not_taken_over(server: Server, images: Path, run: Run) -> None:
    arguments = command(images, server, run)
    assert uncanny_here(*arguments).code == 0
    (run.path / "run.json").unlink()
    before, asked = snapshot(run.path), server.requests()
    done = uncanny_here(*(each if each != "openai/demo" else "openai/other" for each in arguments))
    check_refused(done, "annotations.jsonl:1", "model: 'openai/demo' before, 'openai/other' now", "-o")
    after = snapshot(run.path)
    assert {name: after[name] for name in before} == before
    assert server.requests() == asked
    lines = (run.path / "annotations.jsonl").read_bytes()
    (run.path / "annotations.jsonl").write_bytes(lines.replace(b'"prompts":"packed@', b'"prompts":"packed@9'))
    check_refused(uncanny_here(*arguments), "prompts: 'packed@9")


def test_without_run_json_the_run_goes_on_with_what_it_had_spent(
    server: Server, images: Path, run: Run
) -> None:
    arguments = command(images, server, run)
    assert uncanny_here(*arguments, "--limit", "2").code == 0
    whole = run.manifest()["totals"]
    (run.path / "run.json").unlink()
    done = uncanny_here(*arguments, "--limit", "2")
    assert done.code == 0
    assert "run.json is missing" in done.told
    again = run.manifest()["totals"]
    for figure in ("calls", "input_tokens", "cached_tokens", "output_tokens", "sums", "outcomes"):
        assert again[figure] == whole[figure]
    (run.path / "run.json").unlink()
    spent = whole["input_tokens"] + whole["output_tokens"]
    budget = uncanny_here(*arguments, "--max-tokens-total", str(spent + 100))
    assert budget.code == 3
    assert f"{spent:,} of {spent + 100:,} tokens" in budget.told


# What a killed session had spent


@pytest.mark.slow
@pytest.mark.parametrize("cache", ["own", "shared", "none"])
def test_what_a_killed_session_spent_is_counted(cache: str, tmp_path: Path, run: Run) -> None:
    images = pictures(tmp_path / "in", 4)
    options: dict[str, list[object]] = {
        "own": [],
        "shared": ["--cache-dir", tmp_path / "shared"],
        "none": ["--no-cache"],
    }
    with serving_process("--latency-ms", "30", "--objects", "3") as server:
        schedule = ("--schedule", "paper")  # enough calls to be killed in the middle of
        arguments = [*command(images, server, run), *schedule, "--concurrency", "4", *options[cache]]
        with start(*arguments) as process:
            while server.requests() < 30:
                assert process.poll() is None
                time.sleep(0.005)
            process.kill()
            process.wait(30)
        asked = server.requests()
        totals = run.manifest()["totals"]
        assert totals["calls"] < asked - 4, "run.json knew all by itself"
        assert uncanny_here(*arguments).code == 0
        # Calls that were in flight when it was killed came back to nobody.
        counted = run.manifest()["totals"]["calls"]
        assert server.requests() - 4 <= counted <= server.requests()
    assert not (run.path / "spending.jsonl").exists()


def test_another_run_with_the_same_answers_spends_nothing(tmp_path: Path, run: Run, server: Server) -> None:
    images = pictures(tmp_path / "in", 3)
    shared = ["--cache-dir", tmp_path / "shared"]
    assert uncanny_here(*command(images, server, run), *shared).code == 0
    other = Run(tmp_path / "other")
    assert uncanny_here(*command(images, server, other), *shared).code == 0
    totals = other.manifest()["totals"]
    assert (totals["calls"], totals["replayed"], totals["input_tokens"]) == (0, 3 * AN_IMAGE, 0)


def test_calls_that_cannot_be_read_are_not_passed_over_in_silence(
    server: Server, images: Path, run: Run
) -> None:
    arguments = command(images, server, run)
    assert uncanny_here(*arguments).code == 0
    calls = run.path / "calls.jsonl"
    lines = calls.read_bytes().splitlines(keepends=True)
    calls.write_bytes(b"".join([b'{"started": 5}\n', *lines[2:-1], b"what\n", lines[-1]]))
    (run.path / "run.json").unlink()
    done = uncanny_here(*arguments)
    assert done.code == 0
    assert f"{calls} has 2 lines that are not calls; their cost is not counted" in done.told
    assert run.manifest()["totals"]["calls"] == len(lines) - 2


# The answer cache


@pytest.mark.slow
@pytest.mark.parametrize("pages", [range(1, 2), range(3, 4), range(2, 5)], ids=str)
def test_a_damaged_answer_cache_costs_a_warning_and_some_calls(
    pages: range, server: Server, images: Path, run: Run
) -> None:
    arguments = command(images, server, run)
    assert uncanny_here(*arguments).code == 0
    database = run.path / "answers" / "answers.db"
    with database.open("r+b") as file:
        for page in pages:
            file.seek(page * 4096)
            file.write(os.urandom(4096))
    (run.path / "annotations.jsonl").write_bytes(b"")  # so that all answers are looked up
    asked = server.requests()
    done = uncanny_here(*arguments)
    assert done.code == 0
    # Page 1 leads to all others of the table.
    assert server.requests() - asked < 3 * AN_IMAGE + (1 in pages)
    (warning,) = [line for line in done.told.splitlines() if line.startswith("Warning: ")]
    assert f"{database} is damaged" in warning
    assert "may be deleted" in warning
    again = uncanny_here(*arguments)
    assert (again.code, again.told) == (0, "")
    assert run.statuses() == {"ok": 3}


# A dry run


@pytest.mark.parametrize("torn", [b"", b'{"image":"torn', b"no newline"])
def test_a_dry_run_changes_nothing_on_disk(torn: bytes, server: Server, images: Path, run: Run) -> None:
    arguments = command(images, server, run)
    dry = [*arguments, "--dry-run", "--json"]
    assert uncanny_here(*dry).json()["pending"] == 3
    assert not run.path.exists()
    assert uncanny_here(*arguments, "--limit", "2").code == 0
    path = run.path / "annotations.jsonl"
    content = path.read_bytes()
    path.write_bytes(content[:-1] if torn == b"no newline" else content + torn)
    before = snapshot(run.path)
    for _ in range(2):
        done = uncanny_here(*dry)
        assert done.json()["pending"] == 1
        assert snapshot(run.path) == before


@pytest.mark.slow
@pytest.mark.parametrize(
    "protocol", ["detect scenes", "mcq run scenes", "realism run scenes", "audit a=scenes"]
)
def test_nor_do_those_of_other_protocols(protocol: str, tmp_path: Path) -> None:
    # What `audit` writes beside it is another matter.
    out = tmp_path / "run"
    arguments = [*protocol.split(), "-m", "demo", "-o", out]
    assert uncanny_here(*arguments, "--dry-run").code == 0
    assert not out.exists()
    assert uncanny_here(*arguments, "--limit", "3").code == 0
    for path in out.rglob("*.jsonl"):
        if path.name != "pairs.jsonl":  # the bundled pairs are input
            path.write_bytes(path.read_bytes() + b'{"torn')
    before = snapshot(out)
    assert uncanny_here(*arguments, "--dry-run").code == 0
    assert snapshot(out) == before


def test_a_last_record_without_its_newline_stands(server: Server, images: Path, run: Run) -> None:
    arguments = command(images, server, run)
    assert uncanny_here(*arguments).code == 0
    whole, calls, asked = run.records(), run.calls(), server.requests()
    for name in ("annotations.jsonl", "calls.jsonl"):
        path = run.path / name
        path.write_bytes(path.read_bytes()[:-1])
    pictures(images, 1, first=7)
    assert uncanny_here(*arguments).code == 0
    assert server.requests() - asked == AN_IMAGE
    assert [record for record in run.records() if "p07" not in record.image] == whole
    assert run.calls()[: len(calls)] == calls


# run.json with anything in it


@pytest.mark.parametrize(
    ("written", "remedy"),
    [
        (99, "A newer version wrote it: update uncanny."),
        (1, "An unreleased version wrote it: make the run again in another folder."),
        ("x", "An unreleased version wrote it"),
    ],
)
def test_a_run_of_another_format_is_refused(
    written: object, remedy: str, server: Server, images: Path, run: Run
) -> None:
    arguments = command(images, server, run)
    assert uncanny_here(*arguments).code == 0
    write_manifest(run, run.manifest() | {"format": written})
    before = snapshot(run.path)
    for refused in (arguments, [*arguments, "--dry-run"], ["report", run.path]):
        said = f"{run.path / 'run.json'} has format {written!r}; this version of uncanny reads format 2"
        check_refused(uncanny_here(*refused), said, remedy)
    assert snapshot(run.path) == before


def write_manifest(run: Run, content: object) -> None:
    (run.path / "run.json").write_bytes(orjson.dumps(content))


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8)
    | st.sampled_from(["2026-01-01", "0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59-23:59", "running"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=5,
)


def replaced(content: Any, place: tuple[str, ...], value: object) -> Any:
    if not place:
        return value
    return content | {place[0]: replaced(content.get(place[0], {}), place[1:], value)}


# What a run of `annotate` may write.
PLACES = sorted(
    {
        *((name,) for name in RunManifest.model_fields),
        *(("prompts", name) for name in Prompts.model_fields),
        *(("pixels", name) for name in PixelCounts.model_fields),
        *(("totals", name) for name in Totals.model_fields),
        *(("totals", "sums", name) for name in Sums.model_fields),
        *(("forecast", name) for name in RunForecast.model_fields),
        *(("plan", name) for name in AnnotateConfig.model_fields),
        *(("pixels", "policy", each.name) for each in fields(PixelPolicy)),
    }
)


@pytest.fixture(scope="module")
def noop_run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Run, list[object]]:
    """A run that costs nothing, one image of two done."""
    folder = tmp_path_factory.mktemp("fuzz")
    run = Run(folder / "run")
    arguments: list[object] = ["annotate", pictures(folder / "in", 2), "-m", "noop", "-o", run.path]
    assert uncanny_here(*arguments, "--limit", "1").code == 0
    return run, arguments


@pytest.mark.slow
@pytest.mark.parametrize("state", ["running", "finished"])
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(place=st.sampled_from(PLACES), value=JSON)
@example(place=("started",), value="0001-01-01T00:00:00+23:59")
@example(place=("started",), value=0)
@example(place=("totals", "sums"), value={"input_tokens": "x"})
@example(place=("totals", "sums", "cost_usd"), value=1e308)
@example(place=("totals", "calls"), value=2**64 - 1)
@example(place=("totals", "seconds"), value=[])
@example(place=("pixels",), value=None)
@example(place=("pixels", "changed"), value={"a": "b"})
@example(place=("prompts",), value="x")
@example(place=("root",), value=5)
@example(place=("format",), value="1")
@example(place=("parameters",), value=[1])
def test_whatever_stands_in_run_json_no_command_breaks(
    state: str, place: tuple[str, ...], value: object, noop_run: tuple[Run, list[object]]
) -> None:
    run, arguments = noop_run
    good = run.manifest()
    try:
        write_manifest(run, replaced(good | {"state": state}, place, value))
        for command in ([*arguments, "--dry-run"], ["report", run.path], [*arguments, "--limit", "1"]):
            done = uncanny_here(*command)
            check_no_traceback(done)
            assert done.code in (0, 1, 2)
            assert done.code != 2 or len(done.told.splitlines()) == 1
    finally:
        write_manifest(run, good)


CALL_KEYS = (
    "image", "agent", "step", "object", "sample", "model", "prompt", "asked", "sees_image", "attempt",
    "repair", "outcome", "answer", "detail", "latency_s", "started", "input_tokens", "cached_tokens",
    "output_tokens", "cost_usd", "replayed",
)  # fmt: skip


@pytest.mark.slow
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(key=st.sampled_from(CALL_KEYS), value=JSON)
@example(key="latency_s", value="x")
@example(key="outcome", value=[])
@example(key="input_tokens", value="many")
@example(key="cost_usd", value=1e308)
@example(key="started", value="9999-12-31T23:59:59-23:59")
@example(key="started", value="0001-01-01T00:00:00+23:59")
def test_whatever_stands_in_calls_no_command_breaks(
    key: str, value: object, noop_run: tuple[Run, list[object]]
) -> None:
    run, arguments = noop_run
    good, calls = run.manifest(), (run.path / "calls.jsonl").read_bytes()
    lines = calls.splitlines(keepends=True)
    try:
        line = orjson.dumps(orjson.loads(lines[0]) | {key: value}, option=orjson.OPT_APPEND_NEWLINE)
        (run.path / "calls.jsonl").write_bytes(line + b"".join(lines))
        write_manifest(run, good | {"state": "running"})
        for command in (["report", run.path], [*arguments, "--limit", "1"]):
            done = uncanny_here(*command)
            check_no_traceback(done)
            assert done.code == 0
    finally:
        write_manifest(run, good)
        (run.path / "calls.jsonl").write_bytes(calls)
