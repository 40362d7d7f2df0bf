"""Runs in batches: the same records at half price, each question handed in once, whatever happens."""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import orjson
import pytest

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
from uncanny.client.batches import Batches
from uncanny.client.budget import Budget, Spend
from uncanny.errors import StorageError
from uncanny.models.discount import batches as batches_of_models
from uncanny.records.answer_store import AnswerStore

IMAGES = 4
# One question goes ahead alone.
LINES = IMAGES - 1
PROVIDERS = ("openai", "anthropic")


@pytest.fixture
def images(tmp_path: Path) -> Path:
    return pictures(tmp_path / "in", IMAGES)


def command(images: Path, server: Server, run: Run, *more: object, provider: str = "openai") -> list[object]:
    schedule = () if "--schedule" in more else ("--schedule", "single")
    options = (*schedule, "--no-report", "-q", *more)
    return ["annotate", images, *server.asked(provider), "-o", run.path, *options]


def in_batches(images: Path, server: Server, run: Run, *more: object, provider: str = "openai") -> Done:
    done = uncanny_here(*command(images, server, run, "--batch", *more, provider=provider))
    check_no_traceback(done)
    return done


def handed_in(server: Server) -> tuple[int, int, int]:
    """Batches, lines in them, and single calls."""
    stats = server.stats()
    return stats["batches"], stats["batch_lines"], stats["requests"]


def found(run: Run) -> list[dict[str, Any]]:
    return [record.model_dump(exclude={"usage", "file_stamp"}) for record in run.records()]


def entries(run: Run) -> list[dict[str, Any]]:
    return [orjson.loads(line) for line in (run.path / "batches.jsonl").read_bytes().splitlines()]


def nothing_left(run: Run) -> bool:
    """No file of a batch is left, none is under way, and nothing uploaded stands at the provider."""

    def told(*events: str) -> set[str]:
        return {
            entry["tag"] if "tag" in entry else entry["id"]
            for entry in entries(run)
            if entry["event"] in events
        }

    return (
        not (run.path / "batches").exists()
        and told("submitting", "submitted") == told("done")
        and told("uploaded") == told("deleted")
    )


def killed_when_submitted(images: Path, server: Server, run: Run, provider: str = "openai") -> list[object]:
    """A run that is killed while its batch is under way; the command that resumes it."""
    arguments, journal = (
        command(images, server, run, "--batch", provider=provider),
        run.path / "batches.jsonl",
    )
    with start(*arguments) as process:
        while not journal.exists() or b"submitted" not in journal.read_bytes():
            assert process.poll() is None
            time.sleep(0.02)
        process.kill()
        process.wait(30)
    return arguments


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize(
    ("schedule", "batches"),
    [("single", 1), ("packed", 3), pytest.param("paper", None, marks=pytest.mark.slow)],
)
def test_a_run_in_batches_finds_the_same(
    schedule: str, batches: int | None, provider: str, images: Path, run: Run, tmp_path: Path
) -> None:
    alone = Run(tmp_path / "alone")
    more = ("--schedule", schedule)
    with serving(objects=2) as server:
        assert uncanny_here(*command(images, server, alone, *more, provider=provider)).code == 0
        needed = server.requests()
        done = in_batches(images, server, run, *more, provider=provider)
        assert (done.code, done.err) == (0, "")
        made, lines, single = handed_in(server)
    assert found(run) == found(alone)
    assert (lines, single - needed) == (needed - 1, 1)
    assert batches in (made, None)
    assert nothing_left(run)
    totals, before = run.manifest()["totals"], alone.manifest()["totals"]
    assert totals["calls"] == before["calls"] == needed
    assert totals["output_tokens"] == before["output_tokens"]
    assert totals["replayed"] == 0
    # Where `run.json` is lost, the cost is counted again by the moments at which calls began.
    assert len({call["started"] for call in run.calls()}) == needed


@pytest.mark.slow
@pytest.mark.parametrize(
    ("protocol", "most"),
    [
        (("mcq", "run", "scenes", "--limit", "3"), 1),
        (("realism", "run", "scenes", "--limit", "3"), 2),
        (("detect",), 2),
    ],
)
def test_other_protocols_are_asked_in_batches(
    protocol: tuple[str, ...], most: int, images: Path, run: Run
) -> None:
    """In one, and in another for what its answers lead to."""
    inputs = (images,) if protocol == ("detect",) else ()
    with serving() as server:
        done = uncanny_here(*protocol, *inputs, *server.asked(), "-o", run.path, "--batch", "-q")
        assert (done.code, done.err) == (0, "")
        made, lines, single = handed_in(server)
    assert 1 <= made <= most
    assert (lines > 0, single) == (True, 1)
    assert run.manifest()["state"] == "finished"
    assert nothing_left(run)


def test_answers_of_batches_cost_half(images: Path, run: Run, tmp_path: Path) -> None:
    alone = Run(tmp_path / "alone")
    with serving() as server:
        asked = server.asked(name="gpt-4o")
        options = ("--schedule", "single", "--no-report", "-q")
        assert uncanny_here("annotate", images, *asked, *options, "-o", alone.path).code == 0
    with serving() as server:
        asked = server.asked(name="gpt-4o")
        assert uncanny_here("annotate", images, *asked, *options, "-o", run.path, "--batch").code == 0
    full = {call["image"]: call["cost_usd"] for call in alone.calls()}
    costs = {call["image"]: call["cost_usd"] for call in run.calls() if not call["replayed"]}
    ratios = sorted(round(costs[image] / full[image], 6) for image in full)
    assert ratios == [0.5] * LINES + [1.0]
    assert run.manifest()["totals"]["cost_usd"] == pytest.approx(sum(costs.values()))


def test_a_forecast_knows_the_price_of_batches(images: Path) -> None:
    def forecast(*more: str) -> dict[str, Any]:
        options = ("--model", "openai/gpt-4o", "--dry-run", "--json", *more)
        result: dict[str, Any] = uncanny_here("annotate", images, *options).json()
        return result

    once, half = forecast("--schedule", "single"), forecast("--schedule", "single", "--batch")
    assert half["cost_usd_uncached"] == pytest.approx(once["cost_usd_uncached"] / 2)


@pytest.mark.slow
@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_killed_run_waits_for_the_batches_it_handed_in(provider: str, images: Path, run: Run) -> None:
    with serving(batch_seconds=2.0) as server:
        arguments = killed_when_submitted(images, server, run, provider)
        assert handed_in(server) == (1, LINES, 1)
        done = uncanny_here(*arguments)
        assert (done.code, done.err) == (0, "")
        assert handed_in(server) == (1, LINES, 1)
    assert run.statuses() == {"ok": IMAGES}
    assert nothing_left(run)


@pytest.mark.slow
@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_batch_whose_id_was_lost_is_found_again(provider: str, images: Path, run: Run) -> None:
    """Killed after the server had it and before its id was written down."""
    with serving(batch_seconds=2.0) as server:
        arguments = command(images, server, run, "--batch", provider=provider)
        with start(*arguments) as process:
            while handed_in(server)[0] == 0:
                assert process.poll() is None
                time.sleep(0.005)
            process.kill()
            process.wait(30)
        kept = [
            line for line in (run.path / "batches.jsonl").read_bytes().splitlines() if b"submitting" in line
        ]
        (run.path / "batches.jsonl").write_bytes(b"\n".join(kept) + b"\n")
        done = uncanny_here(*arguments)
        assert (done.code, done.err) == (0, "")
        assert handed_in(server) == (1, LINES, 1)
    assert run.statuses() == {"ok": IMAGES}


def test_a_batch_that_was_written_down_and_never_handed_in_is_handed_in(images: Path, run: Run) -> None:
    run.path.mkdir()
    with serving() as server:
        assert in_batches(images, server, run).code == 0
        first = [
            line for line in (run.path / "batches.jsonl").read_bytes().splitlines() if b"submitting" in line
        ]
        other = orjson.loads(first[0]) | {"tag": "0" * 32}
        with (run.path / "batches.jsonl").open("ab") as file:
            file.write(orjson.dumps(other) + b"\n")
        (run.path / "annotations.jsonl").unlink()
        for each in (run.path / "answers").glob("answers.db*"):
            each.unlink()
        assert in_batches(images, server, run).code == 0
        assert handed_in(server) == (2, 2 * LINES, 2)
    assert run.statuses() == {"ok": IMAGES}
    assert nothing_left(run)


@pytest.mark.slow
@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_batch_of_which_the_server_did_not_tell_is_not_handed_in_again(
    provider: str, images: Path, run: Run
) -> None:
    with serving(lost_batches=1, batch_seconds=0.5) as server:
        done = in_batches(images, server, run, provider=provider)
        assert (done.code, done.err) == (0, "")
        assert handed_in(server) == (1, LINES, 1)
    assert run.statuses() == {"ok": IMAGES}


@pytest.mark.slow
def test_an_interrupted_run_says_what_is_under_way(images: Path, run: Run) -> None:
    with serving(batch_seconds=3.0) as server:
        arguments = [each for each in command(images, server, run, "--batch") if each != "-q"]
        with start(*arguments) as process:
            while handed_in(server)[0] == 0:
                assert process.poll() is None
                time.sleep(0.02)
            time.sleep(0.3)
            process.terminate()
            done = finish(process)
        check_no_traceback(done)
        assert done.code == 130
        assert "3 questions in batches under way; the same command waits for the answers" in done.err
        assert uncanny_here(*arguments).code == 0
        assert handed_in(server) == (1, LINES, 1)


@pytest.mark.slow
@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("fault", ["expired", "missing", "500"])
def test_lines_without_an_answer_go_into_one_more_batch_and_are_asked_then(
    fault: str, provider: str, images: Path, run: Run
) -> None:
    with serving(batch_faults={fault: 1.0}) as server:
        done = in_batches(images, server, run, provider=provider)
        assert handed_in(server) == (2, 2 * LINES, 1 + LINES)
    assert done.code == 0
    assert f"{LINES} questions without an answer in a batch were asked directly" in done.err
    assert run.statuses() == {"ok": IMAGES}
    assert nothing_left(run)


@pytest.mark.slow
@pytest.mark.parametrize("provider", PROVIDERS)
def test_rejected_lines_are_asked_at_once(provider: str, images: Path, run: Run) -> None:
    with serving(batch_faults={"rejected": 1.0}) as server:
        done = in_batches(images, server, run, provider=provider)
        assert handed_in(server) == (1, LINES, 1 + LINES)
    assert done.code == 0
    assert "a fault of the fake server" in done.err
    assert run.statuses() == {"ok": IMAGES}


@pytest.mark.slow
@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("fault", ["malformed", "length"])
def test_repairs_and_longer_answers_are_single_calls(
    fault: str, provider: str, images: Path, run: Run
) -> None:
    with serving(batch_faults={fault: 1.0}) as server:
        assert in_batches(images, server, run, provider=provider).code == 0
        assert handed_in(server) == (1, LINES, 1 + LINES)
    assert run.statuses() == {"ok": IMAGES}
    outcomes = [call["outcome"] for call in run.calls()]
    assert (outcomes.count("unparseable"), outcomes.count("answered")) == (LINES, IMAGES)


def test_a_refusal_in_a_batch_is_one(images: Path, run: Run) -> None:
    with serving(batch_faults={"refusal": 1.0}) as server:
        assert in_batches(images, server, run).code == 1
        assert handed_in(server) == (1, LINES, 1)
    assert run.statuses() == {"ok": 1, "failed": LINES}


@pytest.mark.slow
@pytest.mark.parametrize("provider", PROVIDERS)
def test_all_faults_together_leave_each_record_once(provider: str, run: Run, tmp_path: Path) -> None:
    images = pictures(tmp_path / "many", 30)
    rates = {"rejected": 0.1, "expired": 0.1, "missing": 0.1, "500": 0.1, "malformed": 0.1, "length": 0.1}
    with serving(batch_faults=rates, objects=2) as server:
        done = in_batches(images, server, run, "--schedule", "packed", provider=provider)
    assert done.code == 0
    assert run.statuses() == {"ok": 30}
    assert nothing_left(run)


@pytest.mark.slow
def test_batches_fit_into_the_limit_of_tokens(images: Path, run: Run) -> None:
    """No two lines fit at once: the batch comes in halves until each has one, one after the other."""
    with serving(batch_tokens=1_500, batch_seconds=0.3) as server:
        done = in_batches(images, server, run)
        assert (done.code, done.err) == (0, "")
        made, lines, single = handed_in(server)
        assert (lines, single) == (LINES, 1)
        assert made > 1
    assert run.statuses() == {"ok": IMAGES}
    assert nothing_left(run)


@pytest.mark.slow
def test_a_batch_that_is_not_taken_ends_the_run(images: Path, run: Run) -> None:
    with serving(batch_tokens=1) as server:
        done = in_batches(images, server, run)
        assert done.code == 1
        assert "openai/any cannot be asked in a batch: token_limit_exceeded" in done.err
        assert "Run the same without --batch" in done.err
        assert handed_in(server) == (0, 0, 1)
        assert uncanny_here(*command(images, server, run)).code == 0
        assert server.requests() == IMAGES


def test_large_batches_are_cut(images: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("uncanny.client.batches.MOST_LINES", 2)
    with serving() as server:
        assert in_batches(images, server, run).code == 0
        assert handed_in(server) == (2, LINES, 1)
    assert batches_of_models.MOST_LINES <= 50_000


@pytest.mark.slow
def test_the_budget_holds_for_batches(images: Path, run: Run) -> None:
    """Of four images two fit at the worst; what they really cost leaves room for the others."""
    options = ("--max-output-tokens", "2000", "--max-tokens-total")
    with serving() as server:
        done = in_batches(images, server, run, *options, "12000")
        assert done.code in (0, 3)
        totals = run.manifest()["totals"]
        assert totals["input_tokens"] + totals["output_tokens"] <= 12_000
        assert in_batches(images, server, run, *options, "200000").code == 0
        assert sum(handed_in(server)[1:]) == IMAGES
    assert run.statuses() == {"ok": IMAGES}


def test_what_cannot_be_asked_in_batches_is_said_at_the_start(images: Path, run: Run) -> None:
    with serving() as server:
        done = uncanny_here("annotate", images, *server.asked("openai-compatible"), "-o", run.path, "--batch")
        assert done.code == 2
        assert "openai-compatible/any cannot be asked in a batch" in done.err
        assert "Remove --batch, or use a model whose provider offers it" in done.err
        done = in_batches(images, server, run, "--no-cache")
        assert done.code == 2
        assert "--batch needs the answer cache" in done.err
        assert handed_in(server) == (0, 0, 0)
    assert not run.path.exists()


def test_a_wrong_key_is_found_before_anything_is_handed_in(images: Path, run: Run) -> None:
    with serving() as server:
        arguments = command(images, server, run, "--batch")
        done = uncanny_here(*arguments, env={"OPENAI_API_KEY": "wrong-key"})
        assert done.code == 2
        assert handed_in(server)[:2] == (0, 0)
    assert not (run.path / "batches").exists()


@pytest.mark.slow
def test_without_the_option_a_run_says_that_batches_are_under_way(images: Path, run: Run) -> None:
    with serving(batch_seconds=60.0) as server:
        killed_when_submitted(images, server, run)
        done = uncanny_here(*command(images, server, run))
        assert done.code == 0
        assert "3 questions under way in batches; without --batch they are asked, and paid for" in done.err
        assert handed_in(server) == (1, LINES, IMAGES)


@pytest.mark.slow
def test_a_batch_that_the_server_does_not_know_ends_the_run(images: Path, run: Run) -> None:
    """As with the key of another account."""
    with serving(batch_seconds=60.0) as server:
        arguments, journal = killed_when_submitted(images, server, run), run.path / "batches.jsonl"
        journal.write_bytes(journal.read_bytes().replace(b"batch_fake", b"batch_other"))
        done = uncanny_here(*arguments)
        check_no_traceback(done)
        assert done.code == 1
        assert "openai/any does not say what became of questions in a batch" in done.err
        tag = orjson.loads(journal.read_bytes().splitlines()[0])["tag"]
        assert f"delete only the lines with {tag} from {journal}." in done.err
        kept = [line for line in journal.read_bytes().splitlines(keepends=True) if tag.encode() not in line]
        journal.write_bytes(b"".join(kept))
        # What was in it is asked again, by single calls here: the server's batches take too long.
        assert uncanny_here(*command(images, server, run)).code == 0
    assert run.statuses() == {"ok": IMAGES}


@pytest.mark.slow
@pytest.mark.parametrize("damage", ["delete", "cut", "other lines"])
def test_results_that_are_gone_or_changed_under_way_are_fetched_again(
    damage: str, images: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is handed in, nor paid for, again."""
    fetch = Batches._fetch
    damaged: list[Path] = []

    async def fetched(self: Batches, batch: Any, **more: Any) -> None:
        await fetch(self, batch, **more)
        (results,) = (run.path / "batches").glob("*.results.jsonl")
        if not damaged:
            damaged.append(results)
            lines = results.read_bytes().splitlines(keepends=True)
            results.write_bytes(lines[0] if damage == "cut" else b"".join(reversed(lines)))
            if damage == "delete":
                results.unlink()

    monkeypatch.setattr(Batches, "_fetch", fetched)
    with serving() as server:
        done = in_batches(images, server, run)
        assert (done.code, done.err) == (0, "")
        assert handed_in(server) == (1, LINES, 1)
    assert damaged
    assert run.statuses() == {"ok": IMAGES}
    assert run.manifest()["totals"]["calls"] == IMAGES
    assert nothing_left(run)


@pytest.mark.slow
def test_damaged_results_of_an_earlier_session_are_fetched_again(images: Path, run: Run) -> None:
    with serving(batch_seconds=1.0) as server:
        arguments = killed_when_submitted(images, server, run)
        tag = entries(run)[0]["tag"]
        (run.path / f"batches/{tag}.results.jsonl").write_bytes(b'{"custom_id": "')
        time.sleep(1.0)
        assert uncanny_here(*arguments).code == 0
        assert handed_in(server) == (1, LINES, 1)
    assert run.statuses() == {"ok": IMAGES}
    assert nothing_left(run)


@pytest.mark.parametrize("fault", [{}, {"malformed": 1.0}])
@pytest.mark.parametrize("way", [("--batch",), ("--completion-window", "2h")])
def test_an_answer_that_cannot_be_kept_is_given_again_and_counted_once(
    way: tuple[str, ...], fault: dict[str, float], images: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    put = AnswerStore.put

    def put_one(self: AnswerStore, entries: Iterable[tuple[str, bytes]]) -> None:
        if len(self):
            raise StorageError("The answer cache cannot be written: disk is full")
        put(self, entries)

    booked: list[float] = []
    settle = Budget.settle

    def settled(self: Budget, worst: Spend, actual: Spend, estimated: Spend | None = None) -> None:
        booked.append(actual.cost_usd)
        settle(self, worst, actual, estimated)

    monkeypatch.setattr(Budget, "settle", settled)
    with serving(batch_faults=fault) as server:
        asked = ["annotate", images, *server.asked(name="gpt-4o"), "-o", run.path, "--max-cost-usd", "9"]
        asked += ["--schedule", "single", "--no-report", "-q", *way]
        with monkeypatch.context() as patch:
            patch.setattr(AnswerStore, "put", put_one)
            done = uncanny_here(*asked)
        check_no_traceback(done)
        assert (done.code, "disk is full" in done.err) == (1, True)
        assert run.manifest()["totals"]["calls"] > 1
        assert uncanny_here(*asked).code == 0
        stats, totals = server.stats(), run.manifest()["totals"]
    assert run.statuses() == {"ok": IMAGES}
    assert stats["batch_lines"] + stats["background"] == LINES
    assert totals["calls"] == LINES + stats["requests"]
    assert totals["cost_usd"] == pytest.approx(sum(booked))
    assert sum(cost > 0 for cost in booked) == totals["calls"]


def test_lines_that_are_gone_before_they_are_handed_in_are_asked_when_it_is_resumed(
    images: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    submit = Batches._submit

    async def submitted(self: Batches, batch: Any) -> None:
        (run.path / f"batches/{batch.tag}.jsonl").unlink()
        await submit(self, batch)

    with serving() as server:
        with monkeypatch.context() as patch:
            patch.setattr(Batches, "_submit", submitted)
            done = in_batches(images, server, run)
        assert done.code == 1
        assert ".jsonl cannot be read: No such file or directory. Run the same again" in done.err
        assert in_batches(images, server, run).code == 0
        assert handed_in(server) == (1, LINES - 1, 2)
    assert run.statuses() == {"ok": IMAGES}
    assert nothing_left(run)


@pytest.mark.slow
def test_ids_from_a_run_folder_do_not_lead_elsewhere(images: Path, run: Run) -> None:
    with serving(batch_seconds=60.0) as server:
        arguments, journal = killed_when_submitted(images, server, run), run.path / "batches.jsonl"
        (submitted,) = (entry for entry in entries(run) if entry["event"] == "submitted")
        changed = journal.read_bytes().replace(submitted["id"].encode(), b"../files/x?y=")
        journal.write_bytes(changed)
        before = handed_in(server)
        done = uncanny_here(*arguments)
        check_no_traceback(done)
        assert done.code == 2
        assert "batches.jsonl" in done.err
        assert handed_in(server) == before


@pytest.mark.slow
def test_equal_questions_of_several_items_are_one_line(run: Run, tmp_path: Path) -> None:
    """Questions without the image have the same words for several items."""
    options = ("--blind", "--control", "-q", "--limit", "6")
    with serving() as server:
        assert (
            uncanny_here("mcq", "run", "scenes", *server.asked(), *options, "-o", tmp_path / "alone").code
            == 0
        )
        needed = server.requests()
    with serving() as server:
        asked = uncanny_here("mcq", "run", "scenes", *server.asked(), *options, "--batch", "-o", run.path)
        assert (asked.code, asked.err) == (0, "")
        assert handed_in(server) == (1, needed - 1, 1)
