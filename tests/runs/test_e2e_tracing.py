"""LangSmith gets nothing of a run, whatever the environment or the program around says, unless asked for."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypedDict

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.tracers.context import tracing_v2_callback_var, tracing_v2_enabled
from langchain_core.tracers.langchain import wait_for_all_tracers
from langgraph.graph import END, START, StateGraph
from langsmith import utils
from langsmith.run_helpers import get_tracing_context, tracing_context
from pytest_httpserver import HTTPServer

import uncanny
from tests.runs.e2e import environment
from uncanny.demo.scenes import scenes
from uncanny.settings import settings

TRACING = ("LANGSMITH_TRACING", "LANGSMITH_TRACING_V2", "LANGCHAIN_TRACING", "LANGCHAIN_TRACING_V2")
SCENES = [scene.image_path for scene in scenes()]

# Every protocol that asks models.
EVERYTHING = """
import sys
from pathlib import Path
from langchain_core.tracers.langchain import wait_for_all_tracers
import uncanny
from uncanny.demo.scenes import scenes

out = Path(sys.argv[1])
images = [scene.image_path for scene in scenes()][:1]
kinds = {
    "paper": lambda at: uncanny.annotate(images, model="demo", out=at, schedule="paper"),
    "packed": lambda at: uncanny.annotate(images, model="demo", out=at),
    "detect": lambda at: uncanny.detect(images, model="demo", out=at),
    "mcq": lambda at: uncanny.mcq.run("scenes", model="demo", out=at, limit=1),
    "realism": lambda at: uncanny.realism.run("scenes", model="demo", out=at, limit=1),
    "artifacts": lambda at: uncanny.artifacts.run("scenes", model="demo", out=at, limit=1),
    "prompts": lambda at: uncanny.edits.prompts("scenes", model="demo", out=at, limit=1),
    "perturb": lambda at: uncanny.edits.perturb("scenes", model="demo", out=at, limit=1),
}
for kind, run in kinds.items():
    run(out / kind)
    assert (out / kind / "calls.jsonl").stat().st_size, kind
uncanny.annotate_image(images[0], model="demo")
wait_for_all_tracers()
"""


@pytest.fixture
def langsmith(httpserver: HTTPServer) -> HTTPServer:
    """Takes whatever it is sent."""
    httpserver.expect_request("/info").respond_with_json({})
    httpserver.expect_request("/runs/batch").respond_with_json({}, status=202)
    httpserver.expect_request("/runs/multipart").respond_with_json({}, status=202)
    httpserver.expect_request("/runs").respond_with_json({}, status=202)
    return httpserver


def variables(server: HTTPServer) -> dict[str, str]:
    return {
        **dict.fromkeys(TRACING, "true"),
        "LANGSMITH_ENDPOINT": server.url_for("").rstrip("/"),
        "LANGCHAIN_ENDPOINT": server.url_for("").rstrip("/"),
        "LANGSMITH_API_KEY": "lsv2_a_key_of_a_test",
    }


def forget() -> None:
    """What both keep of the environment."""
    caches: list[Any] = [utils.get_env_var, settings]
    for cache in caches:
        cache.cache_clear()


@pytest.fixture
def traced(langsmith: HTTPServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[HTTPServer]:
    """A process whose environment says that everything is traced."""
    for name, value in variables(langsmith).items():
        monkeypatch.setenv(name, value)
    forget()
    yield langsmith
    wait_for_all_tracers()
    forget()


@pytest.mark.slow
@pytest.mark.parametrize("asked", [False, True])
def test_nothing_of_any_protocol_is_sent_unless_asked_for(
    asked: bool, langsmith: HTTPServer, tmp_path: Path
) -> None:
    env = environment({**variables(langsmith), "UNCANNY_LANGSMITH": "1" if asked else None})
    command = [sys.executable, "-c", EVERYTHING, str(tmp_path)]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert (len(langsmith.log) > 0) is asked


@pytest.mark.parametrize("name", TRACING)
def test_each_variable_by_itself_traces_nothing_and_breaks_nothing(
    name: str, traced: HTTPServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for other in set(TRACING) - {name}:
        monkeypatch.delenv(other)
    assert uncanny.annotate_image(SCENES[0], model="demo").status == "ok"
    wait_for_all_tracers()
    assert traced.log == []


class Seen(BaseCallbackHandler):
    """What a program around watches its own graphs with."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def on_chain_start(self, *_: Any, **more: Any) -> None:
        self.names.append(more.get("name") or "")


class Asked(TypedDict):
    status: str


async def ask(state: Asked) -> Asked:
    record = await uncanny.annotate_image_async(SCENES[0], model="demo")
    return {**state, "status": record.status}


@pytest.mark.parametrize("kind", ["context", "v2"])
async def test_a_program_that_traces_itself_does_not_trace_us(kind: str, traced: HTTPServer) -> None:
    with tracing_context(enabled=True) if kind == "context" else tracing_v2_enabled("mine") as tracer:
        before = get_tracing_context()
        assert (await uncanny.annotate_image_async(SCENES[0], model="demo")).status == "ok"
        assert get_tracing_context() == before
        assert tracing_v2_callback_var.get() is (tracer if kind == "v2" else None)
    wait_for_all_tracers()
    # The tracer of the program itself asks what its server can do.
    assert [request.path for request, _ in traced.log if request.path != "/info"] == []


async def test_a_graph_around_is_not_handed_what_is_in_ours() -> None:
    seen = Seen()
    graph = StateGraph(Asked)
    graph.add_node("ask", ask)
    graph.add_edge(START, "ask")
    graph.add_edge("ask", END)
    state = await graph.compile(name="theirs").ainvoke({"status": ""}, {"callbacks": [seen]})
    assert state["status"] == "ok"
    assert set(seen.names) == {"theirs", "ask"}
