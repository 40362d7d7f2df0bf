"""The same command again: what is done stays done, what failed or changed is asked again."""

from __future__ import annotations

import os
import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from filelock import FileLock

from tests.runs.e2e import Run, Server, check_no_traceback, pictures, serving, uncanny_here
from uncanny.demo.server.app import FaultName
from uncanny.schema import Annotation

AN_IMAGE = 1 + 1 + 1
PAPER_IMAGE = 3 + 6 * 2 + 1


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving(objects=2) as server:
        yield server


@pytest.fixture
def images(tmp_path: Path) -> Path:
    return pictures(tmp_path / "in", 3)


def command(images: Path, server: Server, run: Run, *options: object) -> list[object]:
    # A seed that is for faults changes the answers of every other name.
    return ["annotate", images, *server.asked(name="demo"), "-o", run.path, "--no-report", *options]


@pytest.mark.parametrize(
    ("schedule", "an_image"), [("packed", AN_IMAGE), ("paper", PAPER_IMAGE), ("single", 1)]
)
def test_a_finished_run_asks_nothing(
    schedule: str, an_image: int, server: Server, images: Path, run: Run
) -> None:
    arguments = command(images, server, run, "--schedule", schedule)
    before = server.requests()
    assert uncanny_here(*arguments).code == 0
    files = {name: (run.path / name).read_bytes() for name in ("annotations.jsonl", "calls.jsonl")}
    asked = server.requests()
    assert asked - before == 3 * an_image
    # And without the schedule, which is then the run's.
    for again in (arguments, command(images, server, run)):
        done = uncanny_here(*again, "--json")
        assert (done.code, server.requests()) == (0, asked)
        assert done.json()["totals"]["calls"] == 3 * an_image
    assert files == {name: (run.path / name).read_bytes() for name in files}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "named"),
    [
        (["--temperature", "0.5"], "--temperature: 0.3 before, 0.5 now"),
        (["--repeats", "2"], "repeats"),
        (["--schedule", "paper"], "--schedule: 'packed' before, 'paper' now"),
        (["--scene-scans", "0"], "--scene-scans: 1 before, 0 now"),
        (["--max-regions", "3"], "--max-regions: 12 before, 3 now"),
        (["--strictness", "strict"], "strictness"),
        (["--language", "German"], "language"),
        (["--box-format", "pixels"], "--box-format: not given before, 'pixels' now"),
        (["--max-objects", "1"], "--max-objects: 12 before, 1 now"),
        (["--max-side", "16"], "--max-side: not given before, 16 now"),
        (["--role", "formatter=openai/other"], "--role formatter: not given before, 'openai/other' now"),
        (["--model", "openai/other"], "openai/other"),
        (["--root", "."], "--root: not given before"),
    ],
)
def test_other_settings_are_refused_by_name(
    change: list[str], named: str, server: Server, images: Path, run: Run
) -> None:
    arguments = command(images, server, run)
    assert uncanny_here(*arguments, "--limit", "1").code == 0
    before, record = server.requests(), (run.path / "annotations.jsonl").read_bytes()
    if change[0] == "--model":  # an option is not given twice
        done = uncanny_here(*(change[1] if each == "openai/demo" else each for each in arguments))
    else:
        done = uncanny_here(*arguments, *change)
    assert (done.code, done.out, len(done.told.splitlines())) == (2, "", 1)
    check_no_traceback(done)
    assert named in done.told
    assert len(done.told) < 500
    assert server.requests() == before
    assert (run.path / "annotations.jsonl").read_bytes() == record


def test_a_run_that_is_being_worked_on_is_refused_at_once(server: Server, images: Path, run: Run) -> None:
    run.path.mkdir()
    before = server.requests()
    with FileLock(run.path / ".lock"):
        done = uncanny_here(*command(images, server, run))
    assert (done.code, done.out, len(done.told.splitlines())) == (2, "", 1)
    assert "Another process" in done.told
    assert server.requests() == before
    assert uncanny_here(*command(images, server, run)).code == 0


def torn(run: Run) -> list[bytes]:
    """As two processes leave a file that write to it at once: a record within another. The lines before."""
    lines = run.path.joinpath("annotations.jsonl").read_bytes().splitlines(keepends=True)
    broken = lines[1][:40] + lines[2] + lines[1][40:]
    run.path.joinpath("annotations.jsonl").write_bytes(b"".join([lines[0], broken, *lines[3:]]))
    return lines


def test_broken_records_are_set_aside_and_their_images_are_not_paid_for_again(
    server: Server, images: Path, run: Run
) -> None:
    arguments = command(images, server, run)
    assert uncanny_here(*arguments).code == 0
    before, lines = server.requests(), torn(run)
    done = uncanny_here(*arguments)
    assert done.code == 0
    assert "annotations.jsonl had 2 broken lines, which are in" in done.told
    assert "images without a whole record are worked on again" in done.told
    assert server.requests() == before
    assert len(run.records()) == len(lines)
    aside = (run.path / "annotations.broken.jsonl").read_bytes()
    assert aside == lines[1][:40] + lines[2] + lines[1][40:]
    again = uncanny_here(*arguments)
    assert (again.code, again.told) == (0, "")


def test_a_report_shows_what_is_whole_and_no_page_advises_itself(
    server: Server, images: Path, run: Run
) -> None:
    arguments = command(images, server, run)
    assert uncanny_here(*arguments).code == 0
    torn(run)
    done = uncanny_here("report", run.path)
    assert (done.code, done.told) == (0, "")
    assert (
        "2 lines of annotations.jsonl cannot be read and are not shown"
        in (run.path / "report.html").read_text()
    )
    for command_line in (("report", run.path / "annotations.jsonl"), ("report", run.path)):
        assert "uncanny report" not in uncanny_here(*command_line).told


def test_an_image_added_later_is_annotated(server: Server, images: Path, run: Run) -> None:
    arguments = command(images, server, run)
    assert uncanny_here(*arguments).code == 0
    before = server.requests()
    old = run.records()
    pictures(images, 1, first=7)
    assert uncanny_here(*arguments).code == 0
    assert server.requests() - before == AN_IMAGE
    assert [record for record in run.records() if "p07" not in record.image] == old
    assert run.record("p07.png").status == "ok"


@pytest.mark.parametrize("moment", [None, 1.0])
def test_a_file_with_other_bytes_is_annotated_again(
    moment: float | None, server: Server, images: Path, run: Run
) -> None:
    """Also where its times say that it is older than the run, as those of files that are moved in do."""
    arguments = command(images, server, run)
    assert uncanny_here(*arguments).code == 0
    old = run.record("p01.png")
    other = pictures(images.parent / "other", 1, first=9) / "p09.png"
    before = server.requests()
    shutil.copyfile(other, images / "p01.png")
    os.utime(images / "p01.png", None if moment is None else (moment, moment))
    os.utime(images / "p02.png")  # touched, not changed
    assert uncanny_here(*arguments).code == 0
    assert server.requests() - before == AN_IMAGE
    assert run.record("p01.png").sha256 != old.sha256
    assert run.statuses() == {"ok": 3}
    assert len([call for call in run.calls() if call["image"] == old.image]) >= AN_IMAGE


def test_what_failed_is_asked_again_unless_told_otherwise(images: Path, run: Run) -> None:
    faults: dict[FaultName, float] = {"refusal": 1.0}
    with serving(objects=2, faults=faults) as server:
        port = server.port
        assert uncanny_here(*command(images, server, run)).code == 1
        assert run.statuses() == {"failed": 3}
    with serving(objects=2, port=port) as server:
        arguments = command(images, server, run)
        kept = uncanny_here(*arguments, "--keep-failed")
        assert (kept.code, server.requests()) == (1, 0)
        assert run.statuses() == {"failed": 3}
        assert uncanny_here(*arguments).code == 0
        assert server.requests() == 3 * AN_IMAGE
    assert run.statuses() == {"ok": 3}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("schedule", "refused", "seed", "agent", "asked_again"),
    # The seed refuses one call. What builds upon its answer is asked again too: it is another question now.
    [
        ("packed", 0.3, 3, "AttributeAnalyzer", 1 + 1),
        ("packed", 0.3, 1, "AnomalyIntegrator", 1),
        ("paper", 0.05, 73, "AttributeAnalyzer", 6 + 1),
        ("paper", 0.05, 205, "AnomalyIntegrator", 2 + 1),
    ],
)
def test_a_partial_image_asks_only_what_failed(
    schedule: str, refused: float, seed: int, agent: str, asked_again: int, tmp_path: Path, run: Run
) -> None:
    # One image and one call at a time: they arrive in one order, and the same one is refused each time.
    images = pictures(tmp_path / "in", 1)
    with serving(objects=4, faults={"refusal": refused}, seed=seed) as server:
        port = server.port
        options = ("--schedule", schedule, "--concurrency", 1)
        assert uncanny_here(*command(images, server, run, *options)).code == 1
        assert server.stats()["faults"] == {"refusal": 1}
    assert run.statuses() == {"partial": 1}
    assert {error.agent for error in run.record("p00.png").errors} == {agent}
    with serving(objects=4, port=port) as server:
        assert uncanny_here(*command(images, server, run)).code == 0
        assert server.requests() == asked_again
    assert run.statuses() == {"ok": 1}


def test_an_unreadable_file_that_was_repaired_is_annotated(server: Server, images: Path, run: Run) -> None:
    good = (images / "p00.png").read_bytes()
    (images / "p00.png").write_bytes(good[: len(good) // 2])
    arguments = command(images, server, run)
    assert uncanny_here(*arguments).code == 1
    assert run.record("p00.png").status == "unreadable"
    (images / "p00.png").write_bytes(good)
    assert uncanny_here(*arguments).code == 0
    assert run.statuses() == {"ok": 3}


def test_equal_files_are_asked_about_once(server: Server, images: Path, run: Run) -> None:
    (images / "deep").mkdir()
    for copy in ("deep/copy.png", "a copy.png"):
        shutil.copyfile(images / "p00.png", images / copy)
    before = server.requests()
    done = uncanny_here(*command(images, server, run), "--json")
    assert (done.code, server.requests() - before) == (0, 3 * AN_IMAGE)
    same = [record for record in run.records() if record.sha256 == run.record("p00.png").sha256]
    assert len(same) == 3
    first = [record for record in same if not (record.model_extra or {}).get("duplicate_of")]
    assert len(first) == 1
    for record in same:
        assert (record.status, record.anomalies, record.objects) == (
            "ok",
            first[0].anomalies,
            first[0].objects,
        )
        if record is not first[0]:
            assert record.model_extra == {**(first[0].model_extra or {}), "duplicate_of": first[0].image}
            assert record.usage.calls == 0
    assert done.json()["totals"]["duplicates"] == 2


@pytest.mark.slow
@pytest.mark.parametrize(
    ("torn_record", "torn_calls"), [(1, 0), (40, 0), (0, 1), (0, 40), (0, 9_000)], ids=str
)
def test_what_a_kill_leaves_half_written_is_dropped(
    torn_record: int, torn_calls: int, server: Server, images: Path, run: Run
) -> None:
    arguments = command(images, server, run)
    assert uncanny_here(*arguments).code == 0
    whole, calls = run.records(), run.calls()
    tear(run, torn_record, torn_calls)
    before = server.requests()
    assert uncanny_here(*arguments).code == 0
    assert server.requests() == before
    assert without_usage(run.records()) == without_usage(whole)
    assert Counter(call["image"] for call in run.calls()) == Counter(call["image"] for call in calls)


def tear(run: Run, torn_record: int, torn_calls: int) -> None:
    """Leave the files as a kill during the last image would: its calls are written first, then its record."""
    data = (run.path / "calls.jsonl").read_bytes()
    last = run.calls()[-1]["image"]
    if torn_calls:
        (run.path / "calls.jsonl").write_bytes(data[:-torn_calls])
    path = run.path / "annotations.jsonl"
    lines = sorted(path.read_bytes().splitlines(keepends=True), key=lambda line: last.encode() in line)
    lines[-1] = b"" if torn_calls else lines[-1][:-torn_record]
    path.write_bytes(b"".join(lines))


def without_usage(records: list[Annotation]) -> list[Annotation]:
    return [record.model_copy(update={"usage": None}) for record in records]


def test_an_invalid_line_in_the_middle_is_named(server: Server, images: Path, run: Run) -> None:
    arguments = command(images, server, run)
    assert uncanny_here(*arguments).code == 0
    path = run.path / "annotations.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(lines[0] + lines[1].replace(b'"status":"ok"', b'"status":"fine"') + lines[2])
    before = path.read_bytes()
    done = uncanny_here(*arguments)
    assert (done.code, len(done.told.splitlines())) == (2, 1)
    assert f"{path}:2, field 'status'" in done.told
    assert path.read_bytes() == before
