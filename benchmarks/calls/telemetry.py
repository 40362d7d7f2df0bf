"""CPU a call that OpenTelemetry takes: not asked for, sampled, and sent to an OTLP endpoint.

Models cost nothing here, so the share is as large as it can be. Each way runs in processes of its own, in
turns, as a process has its providers for good; the endpoint is another process.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import timeit
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from benchmarks.common import apart, figure, sized, write_folder

IMAGES = sized(120, 8)  # beyond `MOST_IN_ONE_TRACE`: each has a trace of its own
CALLS = 52
ROUNDS = sized(5, 1)
ENDPOINT: Final = "OTEL_EXPORTER_OTLP_ENDPOINT"
SAMPLED: Final = {"OTEL_TRACES_SAMPLER": "traceidratio", "OTEL_TRACES_SAMPLER_ARG": "0.01"}
# An endpoint that takes everything; it counts the bytes.
SINK = """
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
class Sink(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()
    def log_message(self, *_):
        pass
server = ThreadingHTTPServer(("127.0.0.1", 0), Sink)
print(server.server_port, flush=True)
server.serve_forever()
"""


@contextmanager
def sink() -> Iterator[str]:
    """The address of an endpoint; it is ended by its own pid."""
    with subprocess.Popen([sys.executable, "-c", SINK], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield f"http://127.0.0.1:{process.stdout.readline().strip()}"
        finally:
            process.terminate()


def child(folder: Path, run: Path) -> None:
    """One run as the command line makes it; prints its CPU seconds, sending included."""
    from uncanny.agents.config import AnnotateConfig
    from uncanny.annotation.run import AnnotateTask
    from uncanny.cli.common.exporting import exporting
    from uncanny.cli.common.session import run_here
    from uncanny.models.registry import ModelOptions, parse_model
    from uncanny.records.run_folder import RunFolder
    from uncanny.runs.parameters import RunOptions

    def spent(name: str) -> float:
        task = AnnotateTask(
            folder=RunFolder(run / name),
            paths=[folder],
            models=ModelOptions(parse_model("noop")),
            options=RunOptions(concurrency=64, cache=False),
            config=AnnotateConfig(schedule="paper"),
        )
        began = time.process_time()
        end = run_here(task, quiet=True)
        assert end.progress.spending.calls == IMAGES * CALLS, end.progress.spending.calls
        return time.process_time() - began

    with exporting():
        spent("warm")
        measured, began = spent("measured"), time.process_time()
    print(json.dumps([measured, time.process_time() - began]))


def not_asked_for() -> float:
    """Nanoseconds that a call takes for nothing: the contexts of its agent and its own."""
    from uncanny.client.telemetry import telemetry

    nothing, none = telemetry(), (None,) * 4
    assert type(nothing).__name__ == "Telemetry"
    make: Any = nothing

    def call() -> None:
        with make.agent(*none[:2]), make.call(*none) as watch:
            watch.finished("stop")

    return min(timeit.repeat(call, number=100_000, repeat=5)) / 100_000 * 1e9


def main() -> None:
    ways: dict[str, dict[str, str]] = {"not asked for": {}, "1 % of the images sampled": SAMPLED, "sent": {}}
    figures: dict[str, list[float]] = {name: [] for name in ways}
    last: list[float] = []
    clean = {name: value for name, value in os.environ.items() if not name.startswith("OTEL_")}
    with tempfile.TemporaryDirectory() as tmp, sink() as url:
        write_folder(Path(tmp) / "images", IMAGES, None)
        for turn in range(ROUNDS):
            for name, variables in ways.items():
                env = clean | variables | ({} if name == "not asked for" else {ENDPOINT: url})
                folders = f"{tmp}/images", f"{tmp}/{name}-{turn}"
                measured, sending = apart("benchmarks.calls.telemetry", *folders, env=env)
                figures[name].append(1e6 * measured / (IMAGES * CALLS))
                if name == "sent":
                    last.append(1000 * sending)
    print(f"{IMAGES * CALLS:,} calls of the schedule of the paper, median of {ROUNDS} rounds")
    figure("the contexts of a call, not asked for", not_asked_for(), "ns")
    without = statistics.median(figures["not asked for"])
    for name, spent in figures.items():
        beside = None if name == "not asked for" else without
        figure(
            f"a run, {name}, CPU a call", statistics.median(spent), "µs", beside, "not asked for", wanted=None
        )
    figure("sending what is left at the end, CPU", statistics.median(last), "ms")


if __name__ == "__main__":
    child(Path(sys.argv[2]), Path(sys.argv[3]))
