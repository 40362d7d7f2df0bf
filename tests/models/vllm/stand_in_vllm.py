"""A stand-in for the vllm command: `stand_in_vllm.py serve MODEL --host H --port P …`.

The model's name decides: `dies` and `sleeps` never get ready, `stubborn` has a child that ignores
SIGTERM, `bare` exposes no counters, anything else is well. Like vLLM it has a child process that does not
notice the death of its parent.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

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

MODEL = sys.argv[2]


class Answers(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        pages = {
            "/health": "",
            "/v1/models": json.dumps({"object": "list", "data": [{"id": MODEL}, {"id": "other"}]}),
            "/metrics": "" if MODEL == "bare" else METRICS,
        }
        body = pages.get(self.path, "not found").encode()
        self.send_response(200 if self.path in pages else 404)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


if __name__ == "__main__":
    print("starting", *sys.argv[1:], flush=True)
    if MODEL == "dies":
        print("ValueError: no such model", flush=True)
        raise SystemExit(3)
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD.format(IGNORE if MODEL == "stubborn" else "pass")],
        stdout=subprocess.PIPE,
    )
    assert child.stdout is not None
    child.stdout.readline()
    if MODEL == "sleeps":
        time.sleep(600)
    port = int(sys.argv[sys.argv.index("--port") + 1])
    ThreadingHTTPServer(("127.0.0.1", port), Answers).serve_forever()
