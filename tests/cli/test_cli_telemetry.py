"""What commands send to an OTLP endpoint, and that they need nothing of OpenTelemetry without one."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from pytest_httpserver import HTTPServer

from tests.collector import Collector, collecting
from tests.runs.e2e import Run, check_no_traceback, environment, finish, pictures, serving, start, uncanny
from uncanny.demo.scenes import scenes

SCENE = next(iter(scenes())).image_path
TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"


@pytest.fixture
def collector(httpserver: HTTPServer) -> Collector:
    return collecting(httpserver)


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """A run that is yet to be made."""
    return Run(tmp_path / "run")


@pytest.mark.slow
def test_a_command_sends_spans_and_metrics(collector: Collector, tmp_path: Path, run: Run) -> None:
    images = pictures(tmp_path / "in", 2)
    env = {
        **collector.variables(),
        "OTEL_EXPORTER_OTLP_HEADERS": "api-key=of-the-collector",
        "OTEL_RESOURCE_ATTRIBUTES": "deployment.environment.name=test",
        "TRACEPARENT": f"00-{TRACE}-{PARENT}-01",
    }
    with serving(objects=2) as server:
        done = uncanny("annotate", images, *server.asked(), "-o", run.path, env=env)
    check_no_traceback(done)
    assert (done.code, done.told) == (0, "")
    spans = collector.spans()
    assert {span.trace_id.hex() for span in spans} == {TRACE}
    (whole,) = [span for span in spans if span.name == "invoke_workflow annotate"]
    assert whole.parent_span_id.hex() == PARENT
    assert len([span for span in spans if span.name == "uncanny.input"]) == 2
    assert len([span for span in spans if span.name == "chat any"]) == len(run.calls())
    for resource in collector.resources():
        assert resource["service.name"] == "uncanny"
        assert resource["deployment.environment.name"] == "test"
    assert {headers["Api-Key"] for headers in collector.headers} == {"of-the-collector"}
    assert collector.metric_names() >= {
        "gen_ai.client.operation.duration",
        "gen_ai.client.token.usage",
        "uncanny.call.count",
        "uncanny.input.count",
    }


@pytest.mark.slow
def test_the_standard_variables_hold(collector: Collector, run: Run) -> None:
    env = {
        **collector.variables(),
        "OTEL_SERVICE_NAME": "ours",
        "OTEL_TRACES_SAMPLER": "always_off",
        "OTEL_METRIC_EXPORT_INTERVAL": "600000",
    }
    done = uncanny("annotate", SCENE, "--model", "demo", "-o", run.path, env=env)
    assert done.code == 0
    assert collector.spans() == []
    assert collector.metrics


@pytest.mark.slow
def test_one_signal_alone(collector: Collector, run: Run) -> None:
    env = {"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": f"{collector.url}/v1/traces"}
    done = uncanny("annotate", SCENE, "--model", "demo", "-o", run.path, env=env)
    assert (done.code, done.told) == (0, "")
    assert collector.spans()
    assert collector.metrics == []


@pytest.mark.slow
@pytest.mark.parametrize("variables", [{"OTEL_SDK_DISABLED": "true"}, {"OTEL_TRACES_EXPORTER": "none"}])
def test_it_can_be_switched_off(variables: dict[str, str], collector: Collector, run: Run) -> None:
    env = {**collector.variables(), "OTEL_METRICS_EXPORTER": "none", **variables}
    done = uncanny("annotate", SCENE, "--model", "demo", "-o", run.path, env=env)
    assert done.code == 0
    assert collector.headers == []


@pytest.mark.slow
def test_an_interrupted_run_is_sent(collector: Collector, tmp_path: Path, run: Run) -> None:
    images = pictures(tmp_path / "in", 20)
    with serving(objects=2, latency_ms=100) as server:
        arguments = ("annotate", images, *server.asked(), "-o", run.path, "--concurrency", "2")
        process = start(*arguments, env=collector.variables())
        while server.requests() < 4:
            assert process.poll() is None
            time.sleep(0.005)
        process.send_signal(signal.SIGINT)
        done = finish(process)
    check_no_traceback(done)
    assert done.code == 130
    names = [span.name for span in collector.spans()]
    assert "invoke_workflow annotate" in names
    assert names.count("chat any") >= 4
    assert "gen_ai.client.operation.duration" in collector.metric_names()


@pytest.mark.slow
def test_a_run_that_a_model_ends_is_sent(collector: Collector, tmp_path: Path, run: Run) -> None:
    arguments = ("annotate", pictures(tmp_path / "in", 1), "--model", "openai/any", "-o", run.path)
    env = {**collector.variables(), "OPENAI_BASE_URL": "http://127.0.0.1:9/v1", "UNCANNY_PATIENCE_S": "0.5"}
    done = uncanny(*arguments, env=env)
    check_no_traceback(done)
    assert done.code == 2
    (agent,) = [span for span in collector.spans() if span.name.startswith("invoke_agent")]
    errors = {each.key: each.value.string_value for each in agent.attributes}
    assert errors["error.type"] == "ModelDownError"
    calls = [span for span in collector.spans() if span.name == "chat any"]
    assert calls
    told = {each.value.string_value for span in calls for each in span.attributes if each.key == "error.type"}
    assert "connection" in told


@pytest.mark.slow
@pytest.mark.parametrize("timeout_s", [None, "1"])
def test_a_collector_that_is_down_costs_a_warning(timeout_s: str | None, run: Run) -> None:
    env = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9", "OTEL_EXPORTER_OTLP_TIMEOUT": timeout_s}
    done = uncanny("annotate", SCENE, "--model", "demo", "-o", run.path, env=env)
    check_no_traceback(done)
    assert done.code == 0
    assert done.told.startswith("Warning: OpenTelemetry did not send everything: ")
    assert done.told.count("Warning") == 1
    assert "retrying" not in done.told
    assert len(run.records()) == 1


def test_an_exporter_that_is_not_there_is_an_error() -> None:
    done = uncanny("providers", env={"OTEL_TRACES_EXPORTER": "nosuch"})
    check_no_traceback(done)
    assert done.code == 2
    assert done.err.startswith("Error: OpenTelemetry cannot be set up: ")
    assert "'nosuch'" in done.err


PROGRAM = """
import sys
if "absent" in sys.argv:
    sys.modules |= {"opentelemetry.distro": None, "opentelemetry.sdk": None}
from uncanny.cli import main
try:
    main(sys.argv[2:])
finally:
    print(*(name for name, module in sys.modules.items() if module), file=sys.stderr)
"""


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["absent", "not asked for"])
def test_nothing_of_opentelemetry_is_imported(kind: str, tmp_path: Path, run: Run) -> None:
    wanted = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9"} if kind == "absent" else {}
    with serving(objects=2) as server:
        arguments = ["annotate", pictures(tmp_path / "in", 1), *server.asked(), "-o", run.path, "--quiet"]
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM, kind, *map(str, arguments)],
            env=environment(wanted),
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    assert len(run.records()) == 1
    loaded = {name for name in done.stderr.split() if name.startswith("opentelemetry.")}
    # LangSmith, which comes with LangGraph, imports the tracing of the SDK where it is installed.
    ours = ("opentelemetry.distro", "opentelemetry.exporter", "opentelemetry.sdk.metrics")
    assert {name for name in loaded if name.startswith(ours) or kind == "absent"} == set()
