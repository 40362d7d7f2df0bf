"""One image that a server's moderation flags, among others that it does not."""

from __future__ import annotations

import base64
import urllib.request
from pathlib import Path

import orjson
import pytest
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from tests.runs.e2e import Run, Server, check_no_traceback, pictures, serving, uncanny_here

FLAGGED = {
    "error": {
        "code": 403,
        "message": "This model requires moderation. Your input was flagged.",
        "metadata": {"reasons": ["violence"], "provider_name": "Some"},
    }
}


def moderated(httpserver: HTTPServer, server: Server, flagged: Path) -> str:
    """A gateway before `server` that lets all through but one image."""
    image = base64.b64encode(flagged.read_bytes())

    def answer(request: Request) -> Response:
        body = request.get_data()
        if image in body:
            return Response(orjson.dumps(FLAGGED), 403, content_type="application/json")
        onward = urllib.request.Request(server.url + request.path, body, {"content-type": "application/json"})
        with urllib.request.urlopen(onward, timeout=30) as reply:
            return Response(reply.read(), reply.status, content_type="application/json")

    httpserver.expect_request("/v1/chat/completions").respond_with_handler(answer)
    return httpserver.url_for("/v1")


@pytest.mark.slow
@pytest.mark.parametrize("model", ["openai/any", "openai-compatible/any"])
def test_one_flagged_image_costs_that_image_and_no_other(
    model: str, tmp_path: Path, run: Run, httpserver: HTTPServer
) -> None:
    images = pictures(tmp_path / "in", 20)
    with serving(objects=1) as server:
        url = moderated(httpserver, server, images / "p07.png")
        done = uncanny_here("annotate", images, "-m", model, "--base-url", url, "-o", run.path)
    check_no_traceback(done)
    assert done.code == 1
    assert run.statuses() == {"ok": 19, "failed": 1}
    assert run.manifest()["state"] == "finished"
    errors = run.record("p07.png").errors
    assert [(error.agent, error.kind) for error in errors] == [
        ("ObjectPerceiver", "refused"),
    ]
    assert all("flagged: violence" in error.message for error in errors)
    details = [call["detail"] for call in run.calls() if call["outcome"] == "refused"]
    assert len(details) == 1
    assert all("HTTP 403" in detail and "violence" in detail for detail in details)
