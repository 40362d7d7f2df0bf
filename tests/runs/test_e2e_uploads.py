"""Images that batches name instead of holding: each is uploaded once, and deleted when nobody needs it."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from urllib.request import Request as Asked
from urllib.request import urlopen

import orjson
import pytest
from PIL import Image
from werkzeug import Request, Response

from tests.runs.e2e import Run, Server, finish, serving, start, uncanny_here
from tests.runs.test_e2e_batches import (
    IMAGES,
    LINES,
    PROVIDERS,
    command,
    entries,
    found,
    handed_in,
    in_batches,
    killed_when_submitted,
    nothing_left,
)
from tests.runs.test_e2e_discount_odd import between

# Sessions that wait for batches: seconds each.
pytestmark = pytest.mark.slow

SIDE = 128
# Where a second session asks all lines of the first once more: one of them goes ahead alone.
AGAIN = (2, 2 * LINES - 1, 2)


@pytest.fixture
def large(tmp_path: Path) -> Path:
    """Images that are worth uploading."""
    (folder := tmp_path / "large").mkdir()
    for number in range(IMAGES):
        pixels = random.Random(number).randbytes(3 * SIDE * SIDE)
        Image.frombytes("RGB", (SIDE, SIDE), pixels).save(folder / f"p{number}.png")
    return folder


def uploaded(server: Server) -> tuple[int, int]:
    """Images that were uploaded, and files that are left."""
    stats = server.stats()
    return stats["uploads"], stats["files"]


@pytest.mark.parametrize("provider", PROVIDERS)
def test_an_image_is_uploaded_once_for_all_questions_about_it(
    provider: str, large: Path, run: Run, tmp_path: Path
) -> None:
    def items(folder: Path) -> Path:
        """Five questions about one image."""
        folder.mkdir()
        (folder / "p.png").write_bytes((large / "p0.png").read_bytes())
        options = {letter: f"part {letter}" for letter in "ABCD"}
        asked = {"options": options, "answer": "E"}
        other = {"options": options | {"A": "the sky"}, "answer": "E"}
        first = {"id": "a", "split": "ref_real", "image": "p.png", "q1": {"answer": "no"}}
        second = {"id": "b", "split": "ref_pg", "image": "p.png", "q2": other, "q4": other}
        lines = map(orjson.dumps, (first | {"q2": asked, "q4": asked}, second))
        (folder / "items.jsonl").write_bytes(b"\n".join(lines))
        return folder / "items.jsonl"

    with serving() as server:
        command = ("mcq", "run", items(tmp_path / "mcq"), *server.asked(provider), "-q", "-o", run.path)
        done = uncanny_here(*command, "--batch")
        assert (done.code, done.err) == (0, "")
        assert handed_in(server) == (1, 4, 1)
        assert uploaded(server) == (1, 0)
        assert server.stats()["upload_bytes"] < 100_000
    assert nothing_left(run)
    names = [entry["event"] for entry in entries(run) if "tag" not in entry]
    assert names == ["uploaded", "deleted"]


@pytest.mark.parametrize("provider", PROVIDERS)
def test_enlarged_parts_are_uploaded_too(
    provider: str, large: Path, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Many questions about one input side by side: that one ends its walk loses no other."""
    monkeypatch.setattr("uncanny.client.uploads.SMALLEST_FILE", 0)
    alone = Run(tmp_path / "alone")
    more = ("--schedule", "packed")
    with serving(objects=4) as server:
        assert uncanny_here(*command(large, server, alone, *more, provider=provider)).code == 0
        needed = server.requests()
        done = in_batches(large, server, run, *more, provider=provider)
        assert (done.code, done.err) == (0, "")
        made, lines, single = handed_in(server)
        assert (made, lines, single - needed) == (3, needed - 1, 1)
        images, left = uploaded(server)
        assert (images >= IMAGES, left) == (True, 0)
    assert found(run) == found(alone)
    assert nothing_left(run)


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("days", [0, 2])
def test_a_resumed_run_uses_what_was_uploaded_unless_that_is_about_to_expire(
    days: int, provider: str, large: Path, run: Run
) -> None:
    with serving(batch_seconds=0.5) as server:
        arguments, journal = killed_when_submitted(large, server, run, provider), run.path / "batches.jsonl"
        assert uploaded(server)[0] == LINES
        kept = [entry for entry in entries(run) if entry["event"] == "uploaded"]
        for entry in kept:
            moment = datetime.fromisoformat(entry["at"]) - timedelta(days=days)
            entry["at"] = moment.isoformat()
        # As if it had been killed before it handed in the batch.
        journal.write_bytes(b"".join(orjson.dumps(entry) + b"\n" for entry in kept))
        assert uncanny_here(*arguments).code == 0
        assert handed_in(server) == AGAIN
        images, left = uploaded(server)
        # The lines of the batch that it does not know of any more.
        assert images == (LINES if days == 0 else 2 * LINES - 1)
        assert left == (1 if provider == "openai" else 0)
    assert run.statuses() == {"ok": IMAGES}
    assert nothing_left(run)


@pytest.mark.parametrize("provider", PROVIDERS)
def test_an_image_that_the_provider_does_not_know_any_more_is_uploaded_again(
    provider: str, large: Path, run: Run
) -> None:
    with serving(batch_seconds=1.0) as server:
        arguments = killed_when_submitted(large, server, run, provider)
        for entry in entries(run):
            if entry["event"] == "uploaded":
                with urlopen(Asked(f"{server.v1}/files/{entry['id']}", method="DELETE"), timeout=30):
                    pass
        done = uncanny_here(*arguments)
        assert (done.code, done.err) == (0, "")
        assert handed_in(server) == AGAIN
        assert uploaded(server) == (2 * LINES - 1, 0)
    assert run.statuses() == {"ok": IMAGES}
    assert nothing_left(run)


def test_an_interrupted_run_keeps_images_for_the_next_session(large: Path, run: Run) -> None:
    with serving(batch_seconds=2.0) as server:
        arguments = command(large, server, run, "--batch")
        with start(*arguments) as process:
            while handed_in(server)[0] == 0:
                assert process.poll() is None
                time.sleep(0.02)
            process.terminate()
            assert finish(process).code == 130
        assert uploaded(server) == (LINES, LINES + 1)
        assert uncanny_here(*arguments).code == 0
        assert uploaded(server) == (LINES, 0)
    assert nothing_left(run)


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize(("status", "uploads"), [(400, 0), (500, LINES)])
def test_an_image_that_is_not_taken_as_a_file_is_in_the_line(
    status: int,
    uploads: int,
    provider: str,
    large: Path,
    run: Run,
) -> None:
    """And one that the server fails to take at first is uploaded in the end."""
    failed: list[str] = []

    def change(request: Request, _forward: Callable[[], Response]) -> Response | None:
        image = request.path == "/v1/files" and b"content-type: image/png" in request.get_data().lower()
        if not image or (failed and status == 500):
            return None
        failed.append(request.path)
        return Response('{"error": {"message": "no images here"}}', status)

    with serving() as server, between(server, change) as odd:
        done = in_batches(large, odd, run, provider=provider)
        assert (done.code, done.err) == (0, "")
        stats = server.stats()
        assert (stats["batch_lines"], stats["requests"], stats["uploads"]) == (LINES, 1, uploads)
    assert failed
    assert run.statuses() == {"ok": IMAGES}
