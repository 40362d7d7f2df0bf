"""Servers and users that do odd things while questions are in batches or in the background: no question is
handed in, and paid for, twice, and none is lost."""

from __future__ import annotations

import re
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request as Asked
from urllib.request import urlopen

import orjson
import pytest
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from tests.runs.e2e import (
    Done,
    Run,
    Server,
    check_no_traceback,
    finish,
    pictures,
    serving,
    start,
    uncanny_here,
)
from tests.runs.test_e2e_batches import entries, killed_when_submitted

# Sessions that wait for batches: seconds each.
pytestmark = pytest.mark.slow

IMAGES = 4
LINES = IMAGES - 1
Change = Callable[[Request, Callable[[], Response]], Response | None]
BATCH, BACKGROUND = ("--batch",), ("--completion-window", "2h")


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("uncanny.client.discount.LEAST_PATIENCE_S", 2.0)
    monkeypatch.setattr("uncanny.client.batches.LISTED_S", 0.1)


@pytest.fixture
def images(tmp_path: Path) -> Path:
    return pictures(tmp_path / "in", IMAGES)


@contextmanager
def between(server: Server, change: Change) -> Iterator[Server]:
    """A server that gives what `change` makes of the requests, and passes others on."""

    def handle(request: Request) -> Response:
        def forward() -> Response:
            kept = {"Content-Type", "Authorization", "X-Api-Key", "Anthropic-Version"}
            headers = {name: value for name, value in request.headers.items() if name in kept}
            asked = Asked(
                server.url + request.full_path, request.get_data() or None, headers, method=request.method
            )
            try:
                with urlopen(asked, timeout=30) as reply:
                    return Response(reply.read(), reply.status, content_type="application/json")
            except HTTPError as error:
                return Response(error.read(), error.code, content_type="application/json")

        return change(request, forward) or forward()

    with HTTPServer(threaded=True) as proxy:
        proxy.expect_request(re.compile("/")).respond_with_handler(handle)
        yield Server(proxy.url_for("").rstrip("/"))


def command(images: Path, server: Server, run: Run, *more: object, provider: str = "openai") -> list[object]:
    asked = server.asked(provider, name="gpt-4o" if provider == "openai" else "any")
    fixed = ("--schedule", "single", "--no-report", "-q", "--patience", "2")
    return ["annotate", images, *asked, "-o", run.path, *fixed, *more]


def annotated(images: Path, server: Server, run: Run, *more: object, provider: str = "openai") -> Done:
    done = uncanny_here(*command(images, server, run, *more, provider=provider))
    check_no_traceback(done)
    return done


def changed(path: str, how: Callable[[dict[str, Any]], object], method: str = "GET") -> Change:
    """Requests to `path`, and what lies below it, are answered with another body."""

    def change(request: Request, forward: Callable[[], Response]) -> Response | None:
        if request.method != method or not request.path.startswith(path):
            return None
        reply = forward()
        body = orjson.dumps(how(orjson.loads(reply.get_data())))
        return Response(body, reply.status_code, content_type="application/json")

    return change


def test_a_batch_is_looked_for_until_the_list_can_be_read(images: Path, run: Run) -> None:
    """The answer to handing it in was lost, and then the list of batches failed once."""
    created: list[Response] = []
    listed: list[int] = []

    def change(request: Request, forward: Callable[[], Response]) -> Response | None:
        if request.path != "/v1/batches":
            return None
        if request.method == "POST" and not created:
            created.append(forward())
            return Response("{}", 502)
        if request.method == "GET" and not listed:
            listed.append(1)
            return Response("{}", 500)
        return None

    with serving() as server, between(server, change) as odd:
        assert annotated(images, odd, run, *BATCH).code == 0
        assert server.stats()["batch_lines"] == LINES
    assert run.statuses() == {"ok": IMAGES}


@pytest.mark.parametrize("provider", ["openai", "anthropic"])
def test_results_that_are_cut_off_on_the_way_are_fetched_again(provider: str, images: Path, run: Run) -> None:
    fetched: list[str] = []

    def change(request: Request, forward: Callable[[], Response]) -> Response | None:
        if not request.path.endswith(("/content", "/results")):
            return None
        fetched.append(request.path)
        data = forward().get_data()
        odd = [data[: len(data) // 2 + 1], b"<html>\nTry later\n</html>", data]
        return Response(odd[len(fetched) - 1], 200, content_type="application/jsonl")

    with serving() as server, between(server, change) as odd:
        assert annotated(images, odd, run, *BATCH, provider=provider).code == 0
        assert (len(fetched), server.stats()["batch_lines"], server.requests()) == (3, LINES, 1)
    assert run.statuses() == {"ok": IMAGES}


def test_answers_that_are_here_are_used_where_the_provider_has_no_results_any_more(
    images: Path, run: Run
) -> None:
    """A line is missing; what is here is paid for, and that line alone is asked again."""
    gone: list[str] = []

    def change(request: Request, _: Callable[[], Response]) -> Response | None:
        return Response(b'{"error": {"message": "No such file"}}', 404) if request.path in gone else None

    with serving(batch_seconds=1.0) as server, between(server, change) as odd:
        arguments = killed_when_submitted(images, odd, run)
        (batch,) = [each for each in entries(run) if each["event"] == "submitted"]
        time.sleep(1.2)
        with urlopen(f"{server.v1}/batches/{batch['id']}", timeout=30) as reply:
            path = f"/v1/files/{orjson.loads(reply.read())['output_file_id']}/content"
        with urlopen(f"{server.url}{path}", timeout=30) as reply:
            lines = reply.read().splitlines(keepends=True)
        assert len(lines) == LINES
        (run.path / f"batches/{batch['tag']}.results.jsonl").write_bytes(b"".join(lines[1:]))
        gone.append(path)
        assert uncanny_here(*arguments).code == 0
        # One question goes ahead of the batch, and now that line.
        assert (server.stats()["batch_lines"], server.requests()) == (LINES, 2)
    assert run.statuses() == {"ok": IMAGES}


@pytest.mark.parametrize("mode", [BATCH, BACKGROUND])
def test_a_status_that_nobody_knows_is_not_waited_for_for_ever(
    mode: tuple[str, ...], images: Path, run: Run
) -> None:
    path = "/v1/batches/" if mode == BATCH else "/v1/responses/"
    change = changed(path, lambda body: body | {"status": ["paused"]})
    with serving() as server, between(server, change) as odd:
        done = annotated(images, odd, run, *mode)
        assert done.code == 1
        assert "unknown status" in done.err
        assert "3 questions" in done.err
        stats = server.stats()
        assert stats["batch_lines"] + stats["background"] == LINES


@pytest.mark.parametrize("errors", [None, "x", {"data": ["x"]}, {"data": [{"code": 5}]}])
def test_a_batch_that_failed_without_a_readable_reason_ends_the_run(
    errors: object, images: Path, run: Run
) -> None:
    change = changed("/v1/batches/", lambda body: body | {"status": "failed", "errors": errors})
    with serving() as server, between(server, change) as odd:
        done = annotated(images, odd, run, *BATCH)
    assert (done.code, "cannot be asked in a batch: no reason given" in done.err) == (1, True)


def test_what_was_uploaded_for_a_batch_that_is_not_taken_is_deleted(images: Path, run: Run) -> None:
    deleted = []

    def change(request: Request, _forward: Callable[[], Response]) -> Response | None:
        if request.method == "DELETE":
            deleted.append(request.path)
        if request.method == "POST" and request.path == "/v1/batches":
            return Response('{"error": {"message": "no batches here"}}', 400)
        return None

    with serving() as server, between(server, change) as odd:
        assert "no batches here" in annotated(images, odd, run, *BATCH).err
    assert len(deleted) == 1


def test_a_list_of_batches_with_odd_entries_is_read(images: Path, run: Run) -> None:
    """Anthropic's: counts that are no numbers, and a time without a zone."""

    def change(request: Request, forward: Callable[[], Response]) -> Response | None:
        if request.path != "/v1/messages/batches":
            return None
        reply = forward()
        if request.method == "POST":
            return Response("{}", 502)
        body = orjson.loads(reply.get_data())
        for each in body["data"]:
            each["created_at"] = each["created_at"].removesuffix("Z").partition("+")[0]
            each["request_counts"]["odd"] = "x"
        return Response(orjson.dumps(body), 200, content_type="application/json")

    with serving() as server, between(server, change) as odd:
        assert annotated(images, odd, run, *BATCH, provider="anthropic").code == 0
        assert server.stats()["batch_lines"] == LINES


def killed(arguments: list[object], journal: Path, lines: int) -> None:
    with start(*arguments) as process:
        while not journal.exists() or len(journal.read_bytes().splitlines()) < lines:
            assert process.poll() is None
            time.sleep(0.02)
        process.kill()
        process.wait(30)


@pytest.mark.parametrize("provider", ["openai", "anthropic"])
def test_answers_that_fewer_inputs_do_not_need_are_kept(provider: str, images: Path, run: Run) -> None:
    with serving(batch_seconds=3) as server:
        arguments = command(images, server, run, *BATCH, provider=provider)
        killed(arguments, run.path / "batches.jsonl", 2)
        # The question that goes ahead alone may be of any image, and answered before the kill.
        earlier = (
            {record.image for record in run.records()} if (run.path / "annotations.jsonl").exists() else set()
        )
        assert annotated(images, server, run, *BATCH, "--limit", "2", provider=provider).code == 0
        first = {f"../in/{path.name}" for path in sorted(images.iterdir())[:2]}
        assert {record.image for record in run.records()} == first | earlier
        done = annotated(images, server, run, *BATCH, provider=provider)
        assert (done.code, done.err) == (0, "")
        stats = server.stats()
        assert (stats["batch_lines"], stats["requests"]) == (LINES, 1)
    assert run.statuses() == {"ok": IMAGES}
    assert not (run.path / "batches").exists()


@pytest.mark.parametrize("mode", [BATCH, BACKGROUND])
def test_another_server_address_is_said_to_leave_questions_behind(
    mode: tuple[str, ...], images: Path, run: Run
) -> None:
    name = "batches.jsonl" if mode == BATCH else "background.jsonl"
    with serving(batch_seconds=60.0) as server, serving() as other:
        killed(command(images, server, run, *mode), run.path / name, 2 if mode == BATCH else LINES)
        done = annotated(images, other, run, *mode)
    assert "with another model or server address" in done.err
    assert run.statuses() == {"ok": IMAGES}


def test_batches_say_what_is_left_in_the_background(images: Path, run: Run) -> None:
    with serving(batch_seconds=3.0) as server:
        killed(command(images, server, run, *BACKGROUND), run.path / "background.jsonl", LINES)
        done = annotated(images, server, run, *BATCH)
    assert "3 questions under way in the background; without --completion-window they are asked" in done.err


def test_an_answer_costs_what_its_own_window_costs(images: Path, run: Run) -> None:
    with serving(batch_seconds=1.0) as server:
        first = command(images, server, run, "--completion-window", "8h")
        killed(first, run.path / "background.jsonl", LINES)
        assert annotated(images, server, run, *BACKGROUND).code == 0
    shares = []
    for call in run.calls():
        cached = call["cached_tokens"] or 0
        full = 2.5 * (call["input_tokens"] - cached) + 1.25 * cached + 10 * call["output_tokens"]
        shares.append(round(1e6 * call["cost_usd"] / full, 4))
    assert sorted(shares) == [0.6] * LINES + [1.0]


@pytest.mark.parametrize("name", [None, "../x"])
def test_a_question_without_an_id_is_not_handed_in_again_and_again(
    name: str | None, images: Path, run: Run
) -> None:
    change = changed("/v1/responses", lambda body: body | {"id": name}, "POST")
    with serving() as server, between(server, change) as odd:
        done = annotated(images, odd, run, *BACKGROUND)
        assert server.stats()["background"] == 2 * LINES
    assert "asked directly, at full price" in done.err
    assert run.statuses() == {"ok": IMAGES}


@pytest.mark.parametrize("status", [400, 404])
def test_a_server_that_takes_nothing_in_the_background_ends_the_run(
    status: int, run: Run, tmp_path: Path
) -> None:
    def change(request: Request, _forward: Callable[[], Response]) -> Response | None:
        if request.path != "/v1/responses":
            return None
        return Response('{"error": {"message": "no background here"}}', status)

    images = pictures(tmp_path / "many", 30)
    with serving() as server, between(server, change) as odd:
        done = annotated(images, odd, run, *BACKGROUND)
        assert server.requests() < 15
    assert done.code == 1
    assert "openai/gpt-4o cannot be asked in the background" in done.err
    assert "without --completion-window to ask directly" in done.err


def test_odd_ids_and_usage_of_a_response_do_not_cost_its_answer(images: Path, run: Run) -> None:
    change = changed("/v1/responses/", lambda body: body | {"id": 5, "model": 7, "usage": "x"})
    with serving() as server, between(server, change) as odd:
        assert annotated(images, odd, run, *BACKGROUND).code == 0
    assert run.statuses() == {"ok": IMAGES}


def test_what_is_being_handed_in_when_a_run_is_interrupted_is_waited_for(images: Path, run: Run) -> None:
    def change(request: Request, forward: Callable[[], Response]) -> Response | None:
        if (request.method, request.path) != ("POST", "/v1/responses"):
            return None
        reply = forward()
        time.sleep(2.0)
        return reply

    with serving() as server, between(server, change) as slow:
        arguments = command(images, slow, run, *BACKGROUND)
        with start(*arguments) as process:
            while server.stats()["background"] < LINES:
                assert process.poll() is None
                time.sleep(0.02)
            process.send_signal(signal.SIGINT)
            _, err = process.communicate(timeout=30)
        assert b"3 questions under way in the background" in err
        assert uncanny_here(*arguments).code == 0
        assert server.stats()["background"] == LINES
    assert run.statuses() == {"ok": IMAGES}


@pytest.mark.parametrize("mode", [BATCH, BACKGROUND])
def test_answers_that_do_not_fit_on_the_disk_are_read_again(
    mode: tuple[str, ...], images: Path, run: Run
) -> None:
    with serving(batch_seconds=1.0) as server:
        arguments = command(images, server, run, *mode)
        full = finish(start(*arguments, file_limit_kib=72))
        assert full.code == 1
        check_no_traceback(full)
        assert uncanny_here(*arguments).code == 0
        stats = server.stats()
        assert stats["batch_lines"] + stats["background"] == LINES
    assert run.statuses() == {"ok": IMAGES}


def test_answers_that_are_paid_for_are_used_though_the_model_was_given_up(images: Path, run: Run) -> None:
    """The repair of the first line is refused for want of money: the other lines have answers already."""
    single: list[int] = []

    def change(request: Request, _forward: Callable[[], Response]) -> Response | None:
        if request.path != "/v1/chat/completions":
            return None
        single.append(1)
        if len(single) == 1:
            return None
        body = orjson.dumps({"error": {"message": "no money", "code": "insufficient_quota"}})
        return Response(body, 429, content_type="application/json")

    spare = ("--fallback", "anthropic/any", "--concurrency", 1)
    with serving(batch_faults={"malformed": 1.0}) as server, between(server, change) as odd:
        done = annotated(images, odd, run, *BATCH, *spare, "--base-url", f"anthropic={server.url}")
        assert done.code == 0
    assert len(single) == 2
    read = [call["model"] for call in run.calls() if call["outcome"] == "unparseable"]
    assert read.count("openai/gpt-4o") == LINES
