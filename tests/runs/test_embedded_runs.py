"""Runs held by a program: several at once under its event loop, stopped and watched from outside."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import signal
import threading
from pathlib import Path
from typing import Any

import orjson
import pytest

import uncanny
from tests.runs.e2e import pictures, serving
from uncanny.client.calls import CallRecord
from uncanny.demo.scenes import scenes
from uncanny.eval.annotate.run import AnnotateRun, AnnotateTask
from uncanny.models.registry import parse_model
from uncanny.records.run_folder import RunFolder
from uncanny.runs.config import ModelOptions, RunOptions
from uncanny.runs.progress import Progress
from uncanny.runs.run import Observer, open_run

IMAGES = [scene.image_path for scene in scenes()][:6]


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "any")


def lone_records(run: AnnotateRun) -> list[dict[str, Any]]:
    """Records without what differs from run to run."""
    return [record.model_dump(exclude={"usage", "file_stamp"}) for record in run.annotations]


def host() -> list[object]:
    """What a run must leave as it is."""
    return [
        *(signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)),
        gc.get_threshold(),
        gc.isenabled(),
        Path.cwd(),
        list(logging.getLogger().handlers),
        logging.getLogger("uncanny").level,
    ]


async def test_two_runs_and_a_scoring_at_once_and_one_of_them_cancelled(tmp_path: Path) -> None:
    lone = await uncanny.annotate_async(IMAGES, model="demo", out=tmp_path / "lone", root=IMAGES[0].parent)
    detected = await uncanny.detect_async(IMAGES, model="demo", out=tmp_path / "d", root=IMAGES[0].parent)
    before = host()
    reached = asyncio.Event()
    images = pictures(tmp_path / "in", 30)
    with serving(latency_ms=200.0) as server:
        doomed = asyncio.create_task(
            uncanny.annotate_async(
                images,
                model="openai/any",
                base_url=server.v1,
                out=tmp_path / "doomed",
                on_call=lambda _call: reached.set(),
            )
        )
        beside = asyncio.create_task(
            uncanny.annotate_async(IMAGES, model="demo", out=tmp_path / "beside", root=IMAGES[0].parent)
        )
        scoring = asyncio.create_task(
            asyncio.to_thread(uncanny.semantic.score, detected.path, truth="scenes", similarity="chrf")
        )
        await asyncio.wait_for(reached.wait(), 60)
        doomed.cancel()
        with pytest.raises(asyncio.CancelledError):
            await doomed
        run, scores = await beside, await scoring
    assert lone_records(run) == lone_records(lone)
    assert run.summary.state == "finished"
    assert str(scores)
    assert AnnotateRun(tmp_path / "doomed").summary.state == "interrupted"
    assert host() == before


async def test_a_cancelled_run_goes_on_where_it_was(tmp_path: Path) -> None:
    images = pictures(tmp_path / "in", 6)
    done = asyncio.Event()
    with serving(latency_ms=20.0) as server:
        arguments: dict[str, Any] = {
            "model": "openai/any",
            "base_url": server.v1,
            "out": tmp_path / "run",
            "concurrency": 4,
        }
        first = asyncio.create_task(
            uncanny.annotate_async(images, **arguments, on_image=lambda _record: done.set())
        )
        await asyncio.wait_for(done.wait(), 60)
        first.cancel()
        await asyncio.wait([first])
        finished = len(AnnotateRun(tmp_path / "run").annotations)
        run = await uncanny.annotate_async(images, **arguments)
    assert finished >= 1
    assert run.summary.statuses["ok"] == len(run.annotations) == 6
    lines = (tmp_path / "run" / "calls.jsonl").read_bytes().splitlines()
    moments = [orjson.loads(line)["started"] for line in lines]
    assert len(set(moments)) == len(moments)


async def test_a_stop_from_another_thread_lets_calls_in_flight_come_back(tmp_path: Path) -> None:
    stop = uncanny.Stop()

    def first_call(_call: CallRecord) -> None:
        threading.Thread(target=stop.request).start()

    with serving(latency_ms=50.0) as server:
        run = await uncanny.annotate_async(
            pictures(tmp_path / "in", 20),
            model="openai/any",
            base_url=server.v1,
            out=tmp_path / "run",
            concurrency=4,
            stop=stop,
            on_call=first_call,
        )
    assert run.summary.state == "interrupted"
    assert run.summary.pending
    assert run.summary.calls


async def test_callbacks_see_the_start_every_record_and_every_call(tmp_path: Path) -> None:
    starts: list[Progress] = []
    records: list[uncanny.Annotation] = []
    calls: list[CallRecord] = []
    run = await uncanny.annotate_async(
        IMAGES[:2],
        model="demo",
        out=tmp_path / "run",
        on_start=starts.append,
        on_image=records.append,
        on_call=calls.append,
    )
    assert [progress.total for progress in starts] == [2]
    assert sorted(record.image for record in records) == [record.image for record in run.annotations]
    assert len(calls) == run.summary.calls


async def test_what_a_callback_raises_ends_the_run_and_is_raised(tmp_path: Path) -> None:
    def broken(_record: uncanny.Annotation) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await uncanny.annotate_async(IMAGES[:2], model="demo", out=tmp_path / "run", on_image=broken)
    run = await uncanny.annotate_async(IMAGES[:2], model="demo", out=tmp_path / "run")
    assert run.summary.statuses["ok"] == 2


async def test_an_opened_run_that_is_not_worked_on_is_interrupted(tmp_path: Path) -> None:
    task = AnnotateTask(
        folder=RunFolder(tmp_path / "run"), paths=IMAGES[:2], models=ModelOptions(parse_model("demo"))
    )
    async with open_run(task, observer=Observer()) as opened:
        assert len(opened.loaded.pending) == 2
        with pytest.raises(uncanny.errors.RunLockedError):
            await uncanny.annotate_async(IMAGES[:2], model="demo", out=tmp_path / "run")
    assert opened.end is not None
    assert opened.end.reason == "interrupt"


def test_the_plain_functions_work_without_and_under_a_loop(tmp_path: Path) -> None:
    before = host()
    run = uncanny.annotate(IMAGES[0], model="demo", out=tmp_path / "run")

    async def notebook() -> AnnotateRun:
        return uncanny.annotate(IMAGES[0], model="demo", out=tmp_path / "other")

    other = asyncio.run(notebook())
    assert lone_records(run)[0]["anomalies"] == lone_records(other)[0]["anomalies"]
    assert host() == before


def test_ctrl_c_ends_a_plain_function_in_good_order(tmp_path: Path) -> None:
    images = pictures(tmp_path / "in", 40)
    threading.Timer(3, os.kill, (os.getpid(), signal.SIGINT)).start()
    out = tmp_path / "run"
    with serving(latency_ms=50.0) as server, pytest.raises(KeyboardInterrupt):
        uncanny.annotate(images, model="openai/any", base_url=server.v1, out=out, concurrency=2)
    assert AnnotateRun(out).summary.state == "interrupted"


def test_options_out_of_range_are_refused_by_name(tmp_path: Path) -> None:
    for options, word in (
        ({"concurrency": 0}, "concurrency"),
        ({"max_cost_usd": 0.0}, "max_cost_usd"),
        ({"repeats": 0}, "repeats"),
        ({"limit": 0}, "limit"),
        ({"timeout_s": 0.0}, "timeout_s"),
    ):
        with pytest.raises(uncanny.errors.UsageError, match=word):
            uncanny.annotate(IMAGES[0], model="demo", out=tmp_path / "run", **options)
    assert not (tmp_path / "run").exists()
    assert RunOptions().concurrency == 32
