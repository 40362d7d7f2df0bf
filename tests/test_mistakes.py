"""Mistakes of who calls from Python: each is answered with what to do, before anything is asked or made."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import PIL.Image
import pytest

import uncanny
from tests.runs.e2e import KEYS, serving
from uncanny.demo.scenes import scenes
from uncanny.errors import ImageError, StoppedError, TransientError, UsageError
from uncanny.models.registry import Access, open_model, parse_model

TABLE = pd.DataFrame({"n": [1], "file_name": ["a.png"]})
IMAGE = next(iter(scenes())).image_path


def _option(value: object) -> str:
    return next(iter(value)) if isinstance(value, dict) else ""


def _kind(value: object) -> str:
    return type(value).__name__


async def _callback(_record: object) -> None:
    """What nobody would await."""


class AsyncCallback:
    async def __call__(self, record: object) -> None: ...


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_cost": 1}, "no option `max_cost`. Did you mean `max_cost_usd`?"),
        ({"model": ["demo", "noop"]}, "`model` must be text, not"),
        ({"model": None}, "`model` is missing"),
        ({"out": None}, "`out` is missing"),
        ({"out": ""}, "`out` must not be empty"),
        ({"concurrency": "4"}, "`concurrency` must be a whole number, not '4'"),
        ({"limit": 1.5}, "`limit` must be a whole number"),
        ({"limit": True}, "`limit` must be a whole number"),
        ({"max_cost_usd": "20"}, "`max_cost_usd` must be a number"),
        ({"retry_failed": "no"}, "`retry_failed` must be True or False"),
        ({"roles": "formatter=demo"}, "`roles` must be a mapping"),
        ({"base_url": 8000}, "`base_url` must be"),
        ({"base_url": {"openai": 3}}, "`base_url` must be"),
        ({"stop": threading.Event()}, r"`stop` must be an uncanny\.Stop"),
        ({"on_record": "print"}, "`on_record` must be a function"),
        ({"on_record": _callback}, "`on_record` is an async function"),
        ({"on_call": _callback}, "`on_call` is an async function"),
        ({"max_side": "512"}, "`max_side` must be a whole number"),
        ({"root": 3}, "`root` must be a path"),
    ],
    ids=_option,
)
@pytest.mark.parametrize("function", [uncanny.annotate, uncanny.detect])
def test_a_wrong_option_is_named(
    function: Callable[..., Any], options: dict[str, Any], message: str, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match=message):
        function(IMAGE, **{"model": "demo", "out": tmp_path / "run"} | options)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    "images", [3, None, [], b"bytes", [b"bytes"], PIL.Image.new("RGB", (8, 8))], ids=_kind
)
def test_images_of_a_run_are_paths(images: Any, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"paths of files and folders|There are no images"):
        uncanny.annotate(images, model="demo", out=tmp_path / "run")


@pytest.mark.parametrize("protocol", [uncanny.mcq, uncanny.realism], ids=["mcq", "realism"])
def test_runs_of_one_and_of_several_models_do_not_share_a_folder(protocol: Any, tmp_path: Path) -> None:
    one, each = protocol.run, protocol.run_each
    assert set(each("scenes", models=["demo", "noop"], out=tmp_path, limit=2)) == {"demo", "noop"}
    with pytest.raises(UsageError, match="contains runs of several models"):
        one("scenes", model="demo", out=tmp_path)
    with pytest.raises(UsageError, match="`model` must be text, not 3"):
        one("scenes", model=3, out=tmp_path)
    with pytest.raises(UsageError, match="`models` must be a list"):
        each("scenes", models="demo", out=tmp_path)
    with pytest.raises(UsageError, match="Did you mean `max_cost_usd`"):
        one("scenes", model="demo", out=tmp_path / "other", max_cost=1)
    with pytest.raises(UsageError, match="`temperature` must be a number"):
        one("scenes", model="demo", out=tmp_path / "other", temperature="hot")


@pytest.mark.parametrize("option", ["out", "root", "format", "truth"])
def test_one_image_takes_no_folder(option: str) -> None:
    options: Any = {option: "run"}
    with pytest.raises(UsageError, match=f"no option `{option}`"):
        uncanny.annotate_image(IMAGE, model="demo", **options)


@pytest.mark.parametrize("mode", ["CMYK", "HSV", "F"])
def test_a_pillow_image_that_is_no_png_is_told_of(mode: str) -> None:
    with pytest.raises(ImageError, match="convert"):
        uncanny.annotate_image(PIL.Image.new(mode, (8, 8)), model="noop")


def test_an_audit_names_a_wrong_option(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="Did you mean `max_cost_usd`"):
        uncanny.audit({"drawn": "scenes:drawn"}, model="demo", out=tmp_path, max_cost=1)  # type: ignore[call-arg]


def test_what_a_callback_for_calls_raises_ends_the_run_and_costs_no_record(tmp_path: Path) -> None:
    def fail(_call: object) -> None:
        raise ValueError("my own")

    with pytest.raises(ValueError, match="my own"):
        uncanny.annotate(IMAGE, model="demo", out=tmp_path, on_call=fail)
    assert uncanny.AnnotateRun(tmp_path).summary.state == "interrupted"
    assert uncanny.annotate(IMAGE, model="demo", out=tmp_path).summary.statuses["ok"] == 1


def test_a_stop_ends_one_image_while_its_model_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEYS["OPENAI_API_KEY"])
    stop = uncanny.Stop()

    async def stopped(url: str) -> None:
        work = asyncio.create_task(
            uncanny.annotate_image_async(IMAGE, model="openai/any", base_url=url, stop=stop)
        )
        while not server.requests():  # noqa: ASYNC110
            await asyncio.sleep(0.02)
        stop.request()
        with pytest.raises(StoppedError):
            await work

    with serving(latency_ms=600_000.0) as server:
        asyncio.run(stopped(server.v1))
    with pytest.raises(StoppedError):
        uncanny.annotate_image(IMAGE, model="demo", stop=stop)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"nodes": ["perceive"]}, "nodes must be a mapping"),
        ({"graph": "graph"}, "graph must be a compiled LangGraph"),
    ],
    ids=_option,
)
def test_nodes_and_graphs_of_another_kind_are_refused(
    options: dict[str, Any], message: str, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match=message):
        uncanny.annotate(IMAGE, model="demo", out=tmp_path, **options)


def test_a_node_that_returns_nothing_is_named_in_the_record(tmp_path: Path) -> None:
    async def forgetful(_state: object, _image: object) -> None:
        """Nothing is returned."""

    nodes: Any = {"format": forgetful}
    run = uncanny.annotate(IMAGE, model="demo", out=tmp_path, nodes=nodes)
    assert "returned NoneType, not a mapping with 'anomalies'" in run.annotations[0].errors[0].message


@pytest.mark.parametrize(("name", "factory"), [(3, dict), ("mine", 3)])
def test_a_provider_has_a_name_and_a_factory(name: Any, factory: Any) -> None:
    with pytest.raises(UsageError, match=r"cannot|is not a valid"):
        uncanny.register_provider(name, factory)


class Provider:
    """A provider whose answer is never what was asked for."""

    capabilities = uncanny.Capabilities()

    def __init__(self, model: str) -> None:
        self.name = f"mistaken/{model}"

    async def generate(self, _request: uncanny.ModelRequest) -> uncanny.ModelResponse:
        if self.name.endswith("/hangs"):
            await asyncio.Event().wait()
        return uncanny.ModelResponse('["\ud800"]')


def test_a_call_that_hangs_in_a_provider_is_ended_after_the_time_limit() -> None:
    uncanny.register_provider("mistaken", Provider, replace=True)
    model = open_model(parse_model("mistaken/hangs"), Access(timeout_s=0.05))
    request: Any = None
    with pytest.raises(TransientError, match=r"no answer within 0\.05 s"):
        asyncio.run(model.generate(request))


def test_text_that_no_file_takes_costs_no_run(tmp_path: Path) -> None:
    uncanny.register_provider("mistaken", Provider, replace=True)
    run = uncanny.annotate(IMAGE, model="mistaken/surrogates", out=tmp_path)
    assert run.summary.state == "finished"
    assert len(run.annotations) == 1
    assert uncanny.ModelResponse("\ud800").text == "\ufffd"
    assert uncanny.ModelResponse("\U0001f600é").text == "\U0001f600é"


def test_a_run_of_another_kind_is_no_run_without_records(tmp_path: Path) -> None:
    uncanny.annotate(IMAGE, model="demo", out=tmp_path)
    with pytest.raises(UsageError, match="is a run of"):
        uncanny.mcq.McqRun(tmp_path)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda u: u.annotate(IMAGE, "demo", "run"),
            r"annotate\(\): too many .* Write annotate\(images, model=…, out=…",
        ),
        (lambda u: u.annotate(TABLE, model="demo", out="run"), r"not a DataFrame. Give frame\['file_name'\]"),
        (lambda u: u.detect(TABLE, model="demo", out="run"), "paths of files and folders, not a DataFrame"),
        (
            lambda u: u.annotate_forecast(TABLE[["n"]], model="demo"),
            r"Give its column of paths, as frame\['path",
        ),
        (lambda u: u.artifacts.run(TABLE, model="demo", out="run"), "not a DataFrame"),
        (lambda u: u.edits.compress(TABLE, out="copies"), r"folders or files, not a DataFrame. Give frame"),
        (lambda u: u.mcq.run(TABLE, model="demo", out="run"), "Items are .* not a DataFrame. Save it"),
        (lambda u: u.realism.run(TABLE, model="demo", out="run"), "not a DataFrame"),
        (lambda u: u.annotate_image(TABLE, model="demo"), "not a DataFrame|DataFrame"),
        (lambda u: u.audit({"a": TABLE}), "DataFrame"),
        (lambda u: u.annotate(IMAGE, mdoel="demo", out="run"), "no option `mdoel`. Did you mean `model`?"),
        (lambda u: u.annotate(IMAGE, model="demo", otu="run"), "no option `otu`. Did you mean `out`?"),
        (lambda u: u.annotate(IMAGE, model="demo", out="run", rot="."), "`rot`. Did you mean `root`?"),
        (lambda u: u.annotate(IMAGE, model="demo", out="run", formt="jsonl"), "Did you mean `format`?"),
        (lambda u: u.annotate(IMAGE, model="demo", out="run", on_recor=print), "Did you mean `on_record`?"),
        (lambda u: u.annotate(IMAGE, model="demo", out="run", xyzzy=1), "no option `xyzzy`. Remove it"),
        (lambda u: u.annotate_forecast(IMAGE, mdoel="demo"), "no option `mdoel`. Did you mean `model`?"),
        (lambda u: u.annotate_image(IMAGE, mdoel="demo"), "no option `mdoel`. Did you mean `model`?"),
        (lambda u: u.annotate_image(IMAGE), r"missing .*'model'. Write annotate_image\(image, model=…\)"),
        (lambda u: u.annotate_image(IMAGE, model="demo", nam="a"), "no option `nam`"),
        (lambda u: u.Annotator(mdoel="demo"), "no option `mdoel`. Did you mean `model`?"),
        (lambda u: u.Annotator(), r"missing .*'model'. Write Annotator\(model\)"),
        (lambda u: u.detect(IMAGE, mdel="demo", out="run"), "no option `mdel`. Did you mean `model`?"),
        (lambda u: u.detect(IMAGE, model="demo", out="run", truht="scenes"), "Did you mean `truth`?"),
        (lambda u: u.mcq.run("scenes", modle="demo", out="run"), "no option `modle`. Did you mean `model`?"),
        (lambda u: u.mcq.forecast("scenes", modle="demo"), "no option `modle`. Did you mean `model`?"),
        (lambda u: u.audit({"a": "b"}, modle="demo", out="run"), "no option `modle`. Did you mean `model`?"),
        (
            lambda u: asyncio.run(u.annotate_async(IMAGE, mdoel="demo", out="run")),
            "no option `mdoel`. Did you mean `model`?",
        ),
        (lambda u: u.realism.run("scenes"), r"run\(\): missing .* Write run\(pairs, model=…, out=…\)"),
        (lambda u: u.mcq.run(3, model="demo", out="run"), "Items are a file, .*, not 3"),
        (lambda u: u.mcq.run([], model="demo", out="run"), "There are no items to ask about"),
        (lambda u: u.mcq.score("scenes", None), "Answers are run folders, .*, not None"),
        (lambda u: u.mcq.score("scenes", {"mine": 3}), "Answers are run folders, .*, not 3"),
        (lambda u: u.mcq.baseline_answers("scenes", "luck"), "no baseline 'luck'. Choose random or"),
        (lambda u: u.realism.load(3), "Pairs are a file, .*, not 3"),
        (
            lambda u: u.realism.run([("a", "b")], model="demo", out="run"),
            r"Pairs are .*, not \('a', 'b'\)",
        ),
        (lambda u: u.realism.score(None), "Verdicts are run folders, .*, not None"),
        (lambda u: u.semantic.score([], truth=3), "there are no predictions"),
        (lambda u: u.semantic.load(3, role="truth"), "the truth must be a path or records, not 3"),
        (
            lambda u: u.semantic.score("a", truth="b", on_image=print, resamples=-1),
            "`resamples` must be at least 0, not -1",
        ),
        (
            lambda u: u.semantic.score("a", truth="b", on_image=lambda name: name),
            "called with 2 arguments",
        ),
        (lambda u: u.report(None), "`run` must be a path, not None"),
        (
            lambda u: u.report("a", max_images=-1),
            "`max_images` must be at least 0, not -1",
        ),
        (lambda u: u.AnnotateRun(3), "`run` must be"),
    ],
)
def test_a_wrong_argument_is_answered_with_what_belongs_there(
    call: Callable[[Any], Any], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match=message):
        call(uncanny)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"model": "demo", "base_url": "http://gpu/v1"},
            "`base_url` is an address for demo, which has no server",
        ),
        (
            {"model": "openai/any", "base_url": {"opnai": "http://gpu/v1"}},
            "for opnai, which is not a provider",
        ),
    ],
)
def test_an_address_that_nobody_would_use_is_refused(
    options: dict[str, Any], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEYS["OPENAI_API_KEY"])
    with pytest.raises(UsageError, match=message):
        uncanny.annotate(IMAGE, out=tmp_path / "run", **options)


def test_a_run_folder_that_this_process_works_on_is_said_so(tmp_path: Path) -> None:
    async def both() -> list[Any]:
        runs = (uncanny.annotate_async(IMAGE, model="demo", out=tmp_path) for _ in range(2))
        return await asyncio.gather(*runs, return_exceptions=True)

    (error,) = (each for each in asyncio.run(both()) if isinstance(each, Exception))
    assert "This process is already working on" in str(error)
    assert "pass another run folder with `out`" in str(error)


@pytest.mark.parametrize("sources", [["runs/a"], "runs/a", {"a": None}, {"a": [1]}], ids=_kind)
def test_an_audit_is_of_annotations_by_name(sources: Any) -> None:
    with pytest.raises(UsageError, match=r"mapping from name|is not an Annotation|runs/a cannot be read"):
        uncanny.audit(sources)


def test_a_folder_of_any_name_cannot_steer_the_terminal(tmp_path: Path) -> None:
    run = uncanny.annotate(IMAGE, model="demo", out=tmp_path / "out\x1b[31m")
    assert "\x1b" not in repr(run) + repr(run.annotations) + str(run)


def test_the_page_of_several_runs_is_that_of_one_of_them(tmp_path: Path) -> None:
    uncanny.mcq.run_each("scenes", models=["demo", "noop"], out=tmp_path, limit=1)
    with pytest.raises(UsageError, match=r"contains 2 runs: demo, noop\. Pass one of them"):
        uncanny.report(tmp_path)


def test_the_traceback_of_a_wrong_call_is_about_the_call(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        uncanny.annotate("nowhere", model="demo", out=tmp_path / "run")
    assert [entry.name for entry in caught.traceback] == [
        "test_the_traceback_of_a_wrong_call_is_about_the_call",
        "twin",
    ]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"repeats": "3"}, "`repeats` must be a whole number, not '3'"),
        ({"repeats": True}, "`repeats` must be a whole number, not True"),
        ({"max_objects": "9"}, "`max_objects` must be a whole number, not '9'"),
        ({"scene_scans": 1.5}, "`scene_scans` must be a whole number"),
        ({"formatter_output_tokens": "9"}, "`formatter_output_tokens` must be a whole number"),
        ({"temperature": "0.1"}, "`temperature` must be a number, not '0.1'"),
        ({"root": "nowhere"}, "`root` must be a folder that exists, not 'nowhere'"),
        ({"on_record": AsyncCallback()}, "`on_record` is an async function"),
    ],
    ids=_option,
)
def test_a_value_that_would_pass_for_another_is_refused(
    options: dict[str, Any], message: str, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match=message):
        uncanny.annotate(IMAGE, model="demo", out=tmp_path / "run", **options)
    assert not (tmp_path / "run").exists()


def test_the_limit_of_an_audit_is_for_each_generator(tmp_path: Path) -> None:
    sources = {"drawn": "scenes:drawn", "rendered": "scenes:rendered"}
    result = uncanny.audit(sources, model="demo", out=tmp_path, limit=2, repeats=1, resamples=0)
    assert [result[name].images for name in sources] == [2, 2]


def test_calls_are_told_of_as_call_records(tmp_path: Path) -> None:
    calls: list[uncanny.CallRecord] = []
    uncanny.detect(IMAGE, model="demo", out=tmp_path, on_call=calls.append)
    assert [type(call) for call in calls] == [uncanny.CallRecord] * 2


@pytest.mark.parametrize(
    ("images", "options"),
    [
        ("", {}),
        ("a\0b", {}),
        (IMAGE, {"out": "a\0b"}),
        (IMAGE, {"cache_dir": "a\0"}),
        (IMAGE, {"max_output_tokens": 10**29}),
        (IMAGE, {"max_pixels": 10**29}),
        (IMAGE, {"timeout_s": 10**400}),
    ],
)
def test_what_no_file_takes_is_refused_before_anything_is_made(
    images: Any, options: dict[str, Any], tmp_path: Path
) -> None:
    with pytest.raises(UsageError):
        uncanny.detect(images, model="demo", **{"out": tmp_path / "run", **options})
    assert not list(tmp_path.iterdir())


def test_a_root_that_cannot_be_written_down_is_refused(tmp_path: Path) -> None:
    root = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff"))
    root.mkdir()
    with pytest.raises(UsageError, match="valid Unicode"):
        uncanny.detect(IMAGE, model="demo", out=tmp_path / "run", root=root)
    assert not (tmp_path / "run").exists()
