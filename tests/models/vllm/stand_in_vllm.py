"""A stand-in for the vllm command: `stand_in_vllm.py serve MODEL --host H --port P …`.

The model's name decides: `dies` and `sleeps` never get ready, `once` gets ready the first time only (a file
of that name in the current folder says that it was there), `stubborn` has a child that ignores SIGTERM,
`leaves` has one in a session of its own, `tells` prints its environment and dies, `bare` exposes no counters,
`annotates` answers like the fake server, `annotates-once` too, but never gets ready again, anything else is
well. What comes after an @ is for the test to tell its own processes by. Like vLLM it has a child process
that does not notice the death of its parent, and it ends when the child does.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

METRICS = """\
# TYPE vllm:prefix_cache_queries_total counter
vllm:prefix_cache_queries_total{engine="0",model_name="m"} 300.0
vllm:prefix_cache_queries_total{engine="1",model_name="m"} 1.5e+02
vllm:prefix_cache_hits_total{engine="0",model_name="m"} 96.0
vllm:prefix_cache_hits_total{engine="1",model_name="m"} 32.0
vllm:prefix_cache_hits_created{engine="0",model_name="m"} 1.7e+09
"""
CHILD = "import signal, time; {}; print('child', flush=True); time.sleep(600)"
IGNORE = "signal.signal(signal.SIGTERM, signal.SIG_IGN)"
# Long enough for a test to kill something in the midst of a run.
LATENCY_MS = 30.0
MODEL, _, TAG = (sys.argv[2] if len(sys.argv) > 2 else "").partition("@")


class Answers(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        pages = {
            "/health": "",
            "/v1/models": json.dumps({"object": "list", "data": [{"id": MODEL}, {"id": "other"}]}),
            "/metrics": "" if MODEL == "bare" else METRICS,
            "/environment": json.dumps(dict(os.environ)),
            "/arguments": json.dumps(sys.argv[1:]),
        }
        body = pages.get(self.path, "not found").encode()
        self.send_response(200 if self.path in pages else 404)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Not a line for every look at it."""


def end_with(child: subprocess.Popen[bytes]) -> None:
    child.wait()
    print("EngineDeadError: the engine is not there any more", flush=True)
    os._exit(1)


def serve(port: int) -> None:
    if MODEL.startswith("annotates"):
        from uncanny.demo.server.app import FakeServerOptions
        from uncanny.demo.server.app import serve as serve_answers

        serve_answers(FakeServerOptions(port=port, latency_ms=LATENCY_MS))
    else:
        ThreadingHTTPServer(("127.0.0.1", port), Answers).serve_forever()


if __name__ == "__main__":
    print("starting", *sys.argv[1:], flush=True)
    if MODEL == "dies" or (MODEL == "once" and Path("once").exists()):
        print("ValueError: no such model", flush=True)
        raise SystemExit(3)
    if MODEL == "tells":
        print("ValueError: no model with", os.environ["HF_TOKEN"], *sys.argv[1:], flush=True)
        raise SystemExit(3)
    if MODEL == "leaves":
        subprocess.Popen([sys.executable, "-c", CHILD.format(IGNORE)], start_new_session=True)
    if MODEL == "once":
        Path("once").touch()
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD.format(IGNORE if MODEL == "stubborn" else "pass")],
        stdout=subprocess.PIPE,
    )
    assert child.stdout is not None
    child.stdout.readline()
    threading.Thread(target=end_with, args=(child,), daemon=True).start()
    again = Path(f"{TAG}.started")
    sleeps = MODEL == "sleeps" or (MODEL == "annotates-once" and again.exists())
    if MODEL == "annotates-once":
        again.touch()
    if sleeps:
        print("(Worker pid=7) INFO 11-27 12:40:19 [manager.py:242] Loading weights: 40 %", flush=True)
        time.sleep(600)
    serve(int(sys.argv[sys.argv.index("--port") + 1]))
