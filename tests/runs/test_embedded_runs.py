"""Runs held by a program: several at once under its event loop, stopped and watched from outside."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import multiprocessing
import os
import signal
import threading
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import orjson
import pytest

import uncanny
from tests.runs.e2e import pictures, serving
from uncanny.annotation.run import AnnotateRun, AnnotateTask
from uncanny.client.calls import CallRecord
from uncanny.demo.scenes import scenes
from uncanny.errors import ImageError
from uncanny.models.registry import ModelOptions, parse_model
from uncanny.records.run_folder import RunFolder
from uncanny.runs import resume
from uncanny.runs.manifest import Manifest
from uncanny.runs.parameters import RunOptions
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
            uncanny.annotate_async(images, **arguments, on_record=lambda _record: done.set())
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
        if not stop.requested:
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
        answered = server.requests()
    assert run.summary.state == "interrupted"
    assert run.summary.pending
    assert run.summary.calls == answered > 1


async def test_callbacks_see_the_start_every_record_and_every_call(tmp_path: Path) -> None:
    starts: list[Progress] = []
    records: list[uncanny.Annotation] = []
    calls: list[CallRecord] = []
    run = await uncanny.annotate_async(
        IMAGES[:2],
        model="demo",
        out=tmp_path / "run",
        on_start=starts.append,
        on_record=records.append,
        on_call=calls.append,
    )
    assert [progress.total for progress in starts] == [2]
    assert sorted(record.image for record in records) == [record.image for record in run.annotations]
    assert len(calls) == run.summary.calls


@pytest.mark.slow
async def test_what_a_callback_raises_ends_the_run_in_good_order_and_is_raised(tmp_path: Path) -> None:
    images, out = pictures(tmp_path / "in", 20), tmp_path / "run"

    def broken(_seen: object) -> None:
        raise ZeroDivisionError

    with serving(latency_ms=20.0) as server:
        asked: dict[str, Any] = {"model": "openai/any", "base_url": server.v1, "concurrency": 4}
        with pytest.raises(ZeroDivisionError):
            await uncanny.annotate_async(images, out=out, on_call=broken, **asked)
        # Those in flight come back; none is made after them.
        assert AnnotateRun(out).summary.calls == server.requests() <= 8
        with pytest.raises(ZeroDivisionError):
            await uncanny.annotate_async(images, out=out, on_record=broken, **asked)
        first = AnnotateRun(out)
        assert first.summary.state == "interrupted"
        assert 1 <= len(first.annotations) < 20
        await uncanny.annotate_async(images, out=out, **asked)
        assert server.requests() == AnnotateRun(out).summary.calls  # nothing was asked twice
    assert AnnotateRun(out).summary.statuses["ok"] == 20


async def test_a_run_that_is_cancelled_while_it_loads_leaves_the_next_one_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "run"
    await uncanny.annotate_async(IMAGES[:2], model="demo", out=out, root=IMAGES[0].parent)
    reached, going_on = threading.Event(), threading.Event()
    loading = Manifest

    def slow(*arguments: Any, **options: Any) -> Any:
        reached.set()
        going_on.wait(30)
        return loading(*arguments, **options)

    monkeypatch.setattr(resume, "Manifest", slow)
    doomed = asyncio.create_task(uncanny.annotate_async(IMAGES, model="demo", out=out, root=IMAGES[0].parent))
    await asyncio.to_thread(reached.wait, 30)
    doomed.cancel()
    await asyncio.sleep(0.1)
    with pytest.raises(uncanny.errors.RunLockedError):  # as long as its thread goes on
        await uncanny.annotate_async(IMAGES, model="demo", out=out, root=IMAGES[0].parent)
    going_on.set()
    with pytest.raises(asyncio.CancelledError):
        await doomed
    run = await uncanny.annotate_async(IMAGES, model="demo", out=out, root=IMAGES[0].parent)
    assert run.summary.statuses["ok"] == len(run.annotations) == 6


async def test_a_stop_is_heard_while_models_are_opened(tmp_path: Path) -> None:
    """A vLLM server that never gets ready."""
    server = tmp_path / "server.sh"
    server.write_text("#!/bin/sh\nexec sleep 600\n")
    server.chmod(0o755)
    stop = uncanny.Stop()
    stopping = threading.Timer(0.5, stop.request)
    stopping.start()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("UNCANNY_VLLM_COMMAND", str(server))
        run = await asyncio.wait_for(
            uncanny.annotate_async(IMAGES[:1], model="vllm/any", out=tmp_path / "run", stop=stop), 60
        )
    assert (run.summary.state, run.summary.pending, run.summary.calls) == ("interrupted", 1, 0)
    before = uncanny.Stop()
    before.request()
    run = await uncanny.annotate_async(IMAGES[:1], model="demo", out=tmp_path / "other", stop=before)
    assert (run.summary.state, run.summary.calls) == ("interrupted", 0)


async def test_usage_that_nobody_reports_counts_towards_a_limit_in_later_sessions_too(tmp_path: Path) -> None:
    class Silent:
        capabilities = uncanny.Capabilities()

        def __init__(self, model: str) -> None:
            self.name = f"silent/{model}"

        async def generate(self, _request: uncanny.ModelRequest) -> uncanny.ModelResponse:
            return uncanny.ModelResponse("Verdict: No")

    uncanny.register_provider("silent", Silent, replace=True)
    images, calls = pictures(tmp_path / "in", 20), list[int | None]()
    for _ in range(3):
        run = await uncanny.detect_async(
            images, model="silent/one", out=tmp_path / "run", max_tokens_total=20_000, cache=False
        )
        calls.append(run.summary.calls)
    assert run.summary.state == "budget"
    assert calls[0] in range(1, 20)
    assert calls[1:] == [calls[0]] * 2  # all was booked in the first session


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
    images, out = pictures(tmp_path / "in", 40), tmp_path / "run"
    calls: list[CallRecord] = []

    def tenth_call(call: CallRecord) -> None:
        calls.append(call)
        if len(calls) == 10:
            os.kill(os.getpid(), signal.SIGINT)

    with serving(latency_ms=200.0) as server:
        with pytest.raises(KeyboardInterrupt):
            uncanny.annotate(
                images, model="openai/any", base_url=server.v1, out=out, concurrency=8, on_call=tenth_call
            )
        # Those in flight came back and are counted.
        assert AnnotateRun(out).summary.calls == len(calls) == server.requests() > 10
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


async def test_a_stop_that_comes_when_all_is_done_leaves_a_finished_run(tmp_path: Path) -> None:
    out, stop = tmp_path / "run", uncanny.Stop()

    def last(_record: uncanny.Annotation) -> None:
        stop.request()

    run = await uncanny.annotate_async(IMAGES[:1], model="demo", out=out, stop=stop, on_record=last)
    assert (run.summary.state, run.summary.pending) == ("finished", 0)
    again = await uncanny.annotate_async(IMAGES[:1], model="demo", out=out, stop=stop)
    assert again.summary.state == "finished"


async def test_of_equal_defects_the_first_says_where(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def broken(_state: Any, _image: Any) -> Any:
        raise ZeroDivisionError("by zero")

    nodes: Any = {"format": broken}
    run = await uncanny.annotate_async(IMAGES[:3], model="demo", out=tmp_path / "run", nodes=nodes)
    assert run.summary.statuses["failed"] == len(caplog.records) > 1
    names = [image.name for image in IMAGES[:3]]
    for record in caplog.records:
        assert "by zero" in record.message
        assert any(name in record.message for name in names)
    assert [bool(record.exc_info) for record in caplog.records] == [True, *[False] * len(caplog.records[1:])]


class Stubborn:
    """A provider that swallows the first cancellation of each call, as careless retries do."""

    capabilities = uncanny.Capabilities()
    calls = 0

    def __init__(self, model: str) -> None:
        self.name = f"stubborn/{model}"

    async def generate(self, _request: uncanny.ModelRequest) -> uncanny.ModelResponse:
        type(self).calls += 1
        try:
            await asyncio.sleep(0.3)
        except asyncio.CancelledError:
            await asyncio.sleep(0.1)
        return uncanny.ModelResponse("Verdict: No")


@pytest.mark.slow
async def test_a_cancelled_run_asks_no_more_even_where_the_cancellation_is_swallowed(tmp_path: Path) -> None:
    uncanny.register_provider("stubborn", Stubborn, replace=True)
    Stubborn.calls = 0
    task = asyncio.create_task(
        uncanny.detect_async(
            pictures(tmp_path / "in", 40), model="stubborn/one", out=tmp_path / "run", concurrency=4
        )
    )
    while not Stubborn.calls:  # noqa: ASYNC110 - the provider is made by the run
        await asyncio.sleep(0.05)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert Stubborn.calls <= 8


async def test_a_cancellation_out_of_a_callback_ends_the_run_as_any_error_does(tmp_path: Path) -> None:
    def broken(_record: uncanny.Annotation) -> None:
        raise asyncio.CancelledError

    images, out = pictures(tmp_path / "in", 20), tmp_path / "run"
    with serving(latency_ms=50.0) as server, pytest.raises(asyncio.CancelledError):
        await uncanny.detect_async(
            images, model="openai/any", base_url=server.v1, out=out, on_record=broken, concurrency=1
        )
    summary = uncanny.DetectRun(out).summary
    assert (summary.state, bool(summary.pending)) == ("interrupted", True)


def annotated(image: Path) -> uncanny.Annotation:
    return uncanny.annotate_image(image, model="demo")


@pytest.mark.slow
@pytest.mark.parametrize("pool", ["futures", "multiprocessing"])
def test_one_bad_image_in_a_pool_of_processes_is_that_images_error(pool: str, tmp_path: Path) -> None:
    bad = tmp_path / "bad.png"
    bad.write_bytes(IMAGES[1].read_bytes()[:2_000])
    images = [IMAGES[0], bad, IMAGES[2], tmp_path / "missing.png", IMAGES[3]]
    spawn = multiprocessing.get_context("spawn")
    ends: list[uncanny.Annotation | Exception] = []
    with contextlib.ExitStack() as stack:
        if pool == "futures":
            executor = stack.enter_context(ProcessPoolExecutor(2, mp_context=spawn))
            waits = [executor.submit(annotated, image).result for image in images]
        else:
            processes = stack.enter_context(spawn.Pool(2))
            waits = [processes.apply_async(annotated, (image,)).get for image in images]
        for wait in waits:
            try:
                ends.append(wait(60))  # it would never come back, and the test would hang
            except ImageError as error:
                ends.append(error)
    good = [end.status for end in ends if isinstance(end, uncanny.Annotation)]
    errors = [end for end in ends if isinstance(end, ImageError)]
    assert good == ["ok"] * 3
    assert [error.kind for error in errors] == ["truncated", "missing"]
    assert str(bad) in str(errors[0])
    assert errors[1].remedy is None or errors[1].remedy in str(errors[1])
