"""Who really answered: a model's name stands for one snapshot after another, and a run says for which."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from tests.runs.e2e import Run, pictures, uncanny_here

PROTOCOLS = ["openai", "anthropic"]


class Snapshots:
    """A server that answers every question, each time under the name that `name` has then."""

    def __init__(self, server: HTTPServer) -> None:
        self.name: str | None = "gpt-4o-2024-05-13"
        self.number = 0
        self.url = server.url_for("")
        server.expect_request("/v1/chat/completions").respond_with_handler(self._chat)
        server.expect_request("/v1/messages").respond_with_handler(self._message)

    def asked(self, provider: str = "openai") -> tuple[str, ...]:
        url = self.url if provider == "anthropic" else f"{self.url}v1"
        return "--model", f"{provider}/gpt-4o", "--base-url", url

    def _chat(self, _: Request) -> Response:
        message = {"role": "assistant", "content": "It is hard to say."}
        return self._answer({"choices": [{"message": message, "finish_reason": "stop"}]}, "x-request-id")

    def _message(self, _: Request) -> Response:
        content = [{"type": "text", "text": "It is hard to say."}]
        return self._answer({"type": "message", "content": content, "stop_reason": "end_turn"}, "request-id")

    def _answer(self, body: dict[str, Any], header: str) -> Response:
        self.number += 1
        named = {} if self.name is None else {"model": self.name}
        headers = {header: f"req-{self.number}"}
        return Response(orjson.dumps(named | body), headers=headers, content_type="application/json")


@pytest.fixture
def server(httpserver: HTTPServer) -> Snapshots:
    return Snapshots(httpserver)


@pytest.fixture
def images(tmp_path: Path) -> Path:
    return pictures(tmp_path / "in", 2)


def detected(images: Path, server: Snapshots, run: Run, *more: str, provider: str = "openai") -> None:
    done = uncanny_here("detect", images, *server.asked(provider), "-o", run.path, *more)
    assert (done.code, done.told) == (0, "")


@pytest.mark.parametrize("provider", PROTOCOLS)
def test_calls_and_manifest_name_who_answered(
    provider: str, images: Path, server: Snapshots, run: Run
) -> None:
    detected(images, server, run, "--limit", "1", "--no-report", provider=provider)
    server.name = "gpt-4o-2024-08-06"
    detected(images, server, run, provider=provider)
    assert [(call["served_model"], call["request_id"]) for call in run.calls()] == [
        # A verdict that is not clear is asked for once more.
        ("gpt-4o-2024-05-13", "req-1"),
        ("gpt-4o-2024-05-13", "req-2"),
        ("gpt-4o-2024-08-06", "req-3"),
        ("gpt-4o-2024-08-06", "req-4"),
    ]
    manifest = run.manifest()
    model = f"{provider}/gpt-4o"
    assert manifest["served_as"] == {model: ["gpt-4o-2024-05-13", "gpt-4o-2024-08-06"]}
    assert manifest["served_unnamed"] == []
    page = (run.path / "report.html").read_text()
    assert "<code>gpt-4o-2024-05-13</code>, <code>gpt-4o-2024-08-06</code>" in page


def test_a_server_without_names_is_not_taken_for_the_model_asked_for(
    images: Path, server: Snapshots, run: Run
) -> None:
    server.name = None
    detected(images, server, run)
    assert {call["served_model"] for call in run.calls()} == {None}
    assert (run.manifest()["served_as"], run.manifest()["served_unnamed"]) == ({}, ["openai/gpt-4o"])
    assert "not known of some answers" in (run.path / "report.html").read_text()


def test_replayed_answers_keep_their_names(images: Path, server: Snapshots, run: Run, tmp_path: Path) -> None:
    answers = tmp_path / "answers"
    detected(images, server, run, "--cache-dir", str(answers), "--no-report")
    again = Run(tmp_path / "again")
    detected(images, server, again, "--cache-dir", str(answers), "--no-report")
    assert {call["request_id"] for call in again.calls()} == {"req-1", "req-2", "req-3", "req-4"}
    assert again.manifest()["served_as"] == {"openai/gpt-4o": ["gpt-4o-2024-05-13"]}
    assert server.number == 4
