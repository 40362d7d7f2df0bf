"""Runs whose inputs are worked on by actors of Ray: the same records, whatever becomes of the actors."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
import psutil  # type: ignore[import-untyped]
import pytest
from PIL import Image

import uncanny
from tests.models.vllm.processes import title
from tests.runs.e2e import Run, Server, pictures, serving_process, start
from tests.runs.e2e import uncanny as command
from uncanny.client.calls import CallRecord
from uncanny.errors import ModelUnusableError, UsageError
from uncanny.eval.mcq.task import McqTask, PendingItem
from uncanny.models.registry import ModelOptions, parse_model
from uncanny.records.run_folder import RunFolder
from uncanny.runs.cluster.driver import _RAY_SETTINGS
from uncanny.runs.engine import Engine
from uncanny.runs.parameters import RunOptions, RunParameters
from uncanny.runs.run import run_with

ray = pytest.importorskip("ray")
pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]
CONCURRENCY = 8


@pytest.fixture(scope="module", autouse=True)
def cluster() -> Iterator[str]:
    """The address of a cluster of two CPUs on this machine."""
    ray.cloudpickle.register_pickle_by_value(sys.modules[__name__])
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENAI_API_KEY", "any-key")
        for name, value in _RAY_SETTINGS.items():
            patch.setenv(name, value)
        context = ray.init(
            num_cpus=2, include_dashboard=False, object_store_memory=10**8, log_to_driver=False
        )
        yield context.address_info["gcs_address"]
        ray.shutdown()


@pytest.fixture
def server() -> Iterator[Server]:
    with serving_process("--latency-ms", "40") as server:
        yield server


def actors() -> list[psutil.Process]:
    """The processes in which inputs are worked on."""
    processes = psutil.Process().children(recursive=True)
    return [each for each in processes if title(each).startswith("ray::Worker")]


def asked(images: Path, server: Server, run: Path, *more: object) -> list[object]:
    options: list[object] = ["--concurrency", CONCURRENCY, "-q", "--no-report", "--schedule", "paper", *more]
    return ["annotate", images, *server.asked(), *options, "-o", run]


def same_lines(run: Path, other: Path, name: str) -> list[dict[str, Any]]:
    """The lines of a file that two runs have, the same but for what depends on the moment."""
    found = [lines(folder / name) for folder in (run, other)]
    assert found[0] == found[1]
    return found[0]


def lines(path: Path) -> list[dict[str, Any]]:
    lines = [orjson.loads(line) for line in path.read_bytes().splitlines()]
    for line in lines:
        line.pop("usage", None)
        for part in (line, line.get("original"), line.get("edited")):
            if isinstance(part, dict):
                part.pop("file_stamp", None)  # None for a file that was written just before
    return lines


PROTOCOLS: dict[str, tuple[str, Callable[..., Any]]] = {
    "annotate": (
        "annotations.jsonl",
        lambda **options: uncanny.annotate(scene_folder(options["out"]), **options, limit=4),
    ),
    "detect": ("annotations.jsonl", lambda **options: uncanny.detect("scenes", **options, limit=4)),
    "artifacts": ("artifacts.jsonl", lambda **options: uncanny.artifacts.run("scenes", **options, limit=3)),
    "mcq": ("answers.jsonl", lambda **options: uncanny.mcq.run("scenes", **options, limit=4)),
    "realism": ("verdicts.jsonl", lambda **options: uncanny.realism.run("scenes", **options, limit=4)),
    "perturb": ("perturbations.jsonl", lambda **options: uncanny.edits.perturb("scenes", **options, limit=3)),
    "prompts": ("prompts.jsonl", lambda **options: uncanny.edits.prompts("scenes", **options, limit=3)),
    "pairs make": ("candidates.jsonl", lambda **options: made_pairs(options.pop("model"), **options)),
    "pairs screen": (
        "annotations.jsonl",
        lambda **options: uncanny.pairs.screen(
            made_pairs("demo", out=options["out"].parent / "pairs", limit=1), **options
        ),
    ),
}


def made_pairs(inpainter: str, **options: Any) -> Any:
    """Candidates of three scenes, each with a mask of its own."""
    from uncanny.demo.scenes import scenes

    masks = options["out"].parent / "masks"
    masks.mkdir(exist_ok=True)
    for number, scene in enumerate(scenes()[:3]):
        image = Image.new("L", Image.open(scene.image_path).size)
        image.paste(255, (20 + number, 20, 120, 90))
        image.save(masks / f"{scene.image_path.stem}.png")
    return uncanny.pairs.make(
        "scenes", inpainter=inpainter, masks=masks, **{"limit": 3, "attempts": 3, **options}
    )


def scene_folder(run: Path) -> Path:
    """Four bundled scenes, one of them twice, and a file that is not an image, beside a run."""
    from uncanny.demo.scenes import scenes

    folder = run.parent / "in"
    folder.mkdir(exist_ok=True)
    for number, scene in enumerate([*scenes()[:3], scenes()[0]]):
        shutil.copy2(scene.image_path, folder / f"{number}{scene.image_path.suffix}")
    (folder / "0.txt.png").write_text("not an image")
    return folder


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_records_are_those_of_the_local_engine(protocol: str, tmp_path: Path) -> None:
    file, run = PROTOCOLS[protocol]
    done = run(model="demo", out=tmp_path / "ray", engine="ray", ray_actors=2)
    here = run(model="demo", out=tmp_path / "local")
    records = same_lines(tmp_path / "ray", tmp_path / "local", file)
    assert len(records) >= 3
    assert done.summary.state == here.summary.state == "finished"
    totals = [orjson.loads((tmp_path / each / "run.json").read_bytes()) for each in ("ray", "local")]
    assert totals[0]["pixels"] == totals[1]["pixels"]
    assert totals[0]["parameters"] == totals[1]["parameters"]
    assert totals[0]["totals"]["calls"] == len(lines(tmp_path / "ray/calls.jsonl"))
    assert actors() == []


def test_an_actor_that_is_killed_costs_the_calls_in_flight(tmp_path: Path, server: Server) -> None:
    images = pictures(tmp_path / "in", 8)
    seen, killed = 0, 0

    def kill(_: CallRecord) -> None:
        nonlocal seen, killed
        seen += 1
        if seen in (60, 200):
            actors()[0].kill()
            killed += 1

    run = uncanny.annotate(
        images,
        model="openai/any",
        base_url=server.v1,
        out=tmp_path / "run",
        schedule="paper",
        concurrency=CONCURRENCY,
        engine="ray",
        ray_actors=2,
        on_call=kill,
    )
    assert (run.summary.state, killed) == ("finished", 2)
    assert Run(tmp_path / "run").statuses() == {"ok": 8}
    needed = 8 * 52
    assert needed <= server.requests() <= needed + killed * CONCURRENCY
    assert len(Run(tmp_path / "run").calls()) == needed


@pytest.mark.filterwarnings("ignore")
def test_an_input_that_ends_its_actors_fails_alone(tmp_path: Path) -> None:
    items = uncanny.mcq.load("scenes")[:5]
    task = Ending(
        folder=RunFolder(tmp_path / "run"),
        models=ModelOptions(parse_model("demo")),
        options=RunOptions(engine="ray", ray_actors=1, concurrency=4),
        items=items,
        last=items[2].id,
    )
    end = asyncio.run(run_with(task, RunParameters()))
    assert end.reason is None
    outcomes = {line["id"]: line["outcome"] for line in lines(tmp_path / "run/answers.jsonl")}
    assert [outcomes[item.id] for item in items] == ["answered", "answered", "error", "answered", "answered"]
    errors = {line["error"] for line in lines(tmp_path / "run/answers.jsonl") if line["outcome"] == "error"}
    assert len(errors) == 1
    assert "LostActorError: 3 actors of Ray were lost" in errors.pop()


@dataclass(kw_only=True)
class Ending(McqTask):
    """Ends the process, as a picture might that takes all memory."""

    last: str

    async def process(self, item: PendingItem, engine: Engine, calls: list[CallRecord]) -> Sequence[Any]:
        if item.item.id == self.last:
            os._exit(1)
        return await McqTask.process(self, item, engine, calls)


class Failing(McqTask):
    """Has a mistake."""

    async def process(self, *_: Any) -> Sequence[Any]:
        raise KeyError("color")


def test_a_defect_is_recorded_as_by_the_local_engine(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for options in (RunOptions(limit=2), RunOptions(engine="ray", ray_actors=1, limit=2)):
        task = Failing(
            folder=RunFolder(tmp_path / options.engine),
            models=ModelOptions(parse_model("demo")),
            options=options,
            items=uncanny.mcq.load("scenes"),
        )
        asyncio.run(run_with(task, RunParameters()))
    records = same_lines(tmp_path / "ray", tmp_path / "local", "answers.jsonl")
    assert {record["error"] for record in records} == {"defect: KeyError: 'color'"}
    assert caplog.text.count('raise KeyError("color")') == 2  # once each


@pytest.mark.parametrize("actors", [1, 2])
def test_a_limit_on_tokens_holds_for_all_actors_together(actors: int, tmp_path: Path, server: Server) -> None:
    images = pictures(tmp_path / "in", 6)

    def run(limit: int | None) -> Any:
        return uncanny.annotate(
            images,
            model="openai/any",
            base_url=server.v1,
            out=tmp_path / "run",
            concurrency=CONCURRENCY,
            engine="ray",
            ray_actors=actors,
            max_tokens_total=limit,
        )

    limit = 40_000
    stopped = run(limit)
    totals = stopped.summary
    assert totals.state == "budget"
    assert limit / 2 < totals.input_tokens + totals.output_tokens <= limit
    assert f"of {limit:,} tokens spent" in str(totals.error)
    requests = server.requests()
    assert run(None).summary.state == "finished"
    assert server.requests() > requests
    assert Run(tmp_path / "run").manifest()["totals"]["calls"] == server.requests()


def test_a_limit_holds_while_actors_are_lost(
    tmp_path: Path, server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    """Leases are taken back from all actors, and one that takes another's place is still opening."""
    seen = 0

    def kill(_: CallRecord) -> None:
        nonlocal seen
        seen += 1
        if seen % 3 == 0 and (there := actors()):
            there[0].kill()

    limit = 60_000
    run: Any = uncanny.annotate(
        pictures(tmp_path / "in", 6),
        model="openai/any",
        base_url=server.v1,
        out=tmp_path / "run",
        concurrency=CONCURRENCY,
        engine="ray",
        ray_actors=2,
        max_tokens_total=limit,
        on_call=kill,
    )
    assert run.summary.state in ("budget", "finished")
    assert run.summary.input_tokens is not None
    assert run.summary.output_tokens is not None
    assert run.summary.input_tokens + run.summary.output_tokens <= limit
    assert "AttributeError" not in caplog.text


def test_an_interrupted_run_loses_no_call(tmp_path: Path, server: Server, cluster: str) -> None:
    images = pictures(tmp_path / "in", 6)
    arguments = asked(images, server, tmp_path / "run", "--engine", "ray", "--ray-address", cluster)
    for number in (signal.SIGINT, signal.SIGTERM):
        ended = stopped(arguments, server, number)
        assert ended.returncode == 130
        assert b"Stopping: waiting for" in ended.stderr
    assert Run(tmp_path / "run").manifest()["totals"]["calls"] == server.requests()
    assert command(*arguments).code == 0
    assert server.requests() == Run(tmp_path / "run").manifest()["totals"]["calls"] == 6 * 52


def stopped(arguments: Sequence[object], server: Server, number: int) -> subprocess.CompletedProcess[bytes]:
    """A run that gets a signal once it has made some calls."""
    before = server.requests()
    with start(*arguments) as process:
        while process.poll() is None and server.requests() < before + 40:
            time.sleep(0.02)
        assert process.poll() is None
        process.send_signal(number)
        out, err = process.communicate(timeout=60)
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)


def test_a_killed_run_resumes_with_any_engine(tmp_path: Path, server: Server, cluster: str) -> None:
    """What actors ask until Ray ends them is kept, too."""
    images = pictures(tmp_path / "in", 6)
    on_ray = ("--engine", "ray", "--ray-address", cluster)
    kills = 0
    for actors_now in (1, 2):
        arguments = asked(images, server, tmp_path / "run", *on_ray, "--ray-actors", actors_now)
        assert stopped(arguments, server, signal.SIGKILL).returncode == -9
        kills += 1
    # Only when the actors are gone: Ray ends them within seconds, and until then slots are theirs.
    stopped(asked(images, server, tmp_path / "run"), server, signal.SIGKILL)
    kills += 1
    assert command(*asked(images, server, tmp_path / "run", *on_ray)).code == 0
    needed = 6 * 52
    assert needed <= server.requests() <= needed + kills * CONCURRENCY
    assert Run(tmp_path / "run").statuses() == {"ok": 6}
    requests = server.requests()
    # Nothing is left to do, so that no actor is started.
    began = time.monotonic()
    assert command(*asked(images, server, tmp_path / "run", *on_ray)).code == 0
    assert server.requests() == requests
    assert time.monotonic() - began < 10


def test_a_slot_is_open_in_one_actor_at_a_time(tmp_path: Path, server: Server) -> None:
    images = pictures(tmp_path / "in", 12)
    open_at_once: set[str] = set()
    done = threading.Event()

    def watch() -> None:
        while not done.wait(0.05):
            for each in actors():
                try:
                    open_at_once.update(
                        f"{Path(file.path).parent.name} {each.pid}"
                        for file in each.open_files()
                        if file.path.endswith("answers.db")
                    )
                except psutil.Error:
                    continue

    watching = threading.Thread(target=watch)
    watching.start()
    try:
        uncanny.annotate(
            images,
            model="openai/any",
            base_url=server.v1,
            out=tmp_path / "run",
            engine="ray",
            ray_actors=2,
        )
    finally:
        done.set()
        watching.join()
    slots = [each.partition(" ")[0] for each in open_at_once]
    assert len(slots) == len(set(slots)) >= 6


def test_what_cannot_be_spread_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    images = pictures(tmp_path / "in", 1)

    def run(**options: Any) -> Any:
        return uncanny.annotate(images, out=tmp_path / "run", engine="ray", ray_actors=1, **options)

    with pytest.raises(UsageError, match="`batch` does not go with `engine` ray"):
        run(model="openai/gpt-4o", batch=True)
    with pytest.raises(UsageError, match="no vLLM server is started for vllm/any"):
        run(model="vllm/any")
    monkeypatch.delenv("OPENAI_API_KEY")
    monkeypatch.setenv("RAY_ADDRESS", "")
    lock = threading.Lock()

    async def node(*_: object) -> Any:
        return lock

    with pytest.raises(UsageError, match="cannot be sent to other processes: cannot pickle"):
        run(model="noop", nodes={"integrate": node})
    with pytest.raises((ModelUnusableError, UsageError)):
        run(model="openai-compatible/any")
    assert not (tmp_path / "run/run.json").exists()


def test_a_cluster_that_does_not_start_is_said_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ray raises plain exceptions where the machine is too busy."""

    def init(**_: object) -> None:
        raise Exception("The current node timed out during startup.\nDetails")

    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    monkeypatch.setattr(ray, "init", init)
    monkeypatch.setattr(ray, "shutdown", lambda: None)
    images = pictures(tmp_path / "in", 1)
    for address, words in (
        (None, "Ray cannot be started on this"),
        ("ray:1", "The Ray cluster at ray:1 cannot"),
    ):
        with pytest.raises(
            UsageError, match=rf"{words}.*: The current node timed out during startup\."
        ) as error:
            uncanny.annotate(images, model="noop", out=tmp_path / "run", engine="ray", ray_address=address)
        assert "Details" not in str(error.value)
