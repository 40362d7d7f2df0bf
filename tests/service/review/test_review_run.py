"""What reviewers do, and what then stands in the log and on the page."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.service.made_review import anomaly, log_of, make_run
from uncanny.errors import RecordError, ReviewConflictError, UsageError
from uncanny.schema import Anomaly
from uncanny.service.review.findings import FindingId
from uncanny.service.review.queue import Filters
from uncanny.service.review.run import ReviewRun

ALL = Filters("all", "file")


@pytest.fixture
def run(tmp_path: Path) -> ReviewRun:
    return ReviewRun.open(make_run(tmp_path / "run", [[anomaly("one"), anomaly("two")], [anomaly("three")]]))


def ids(run: ReviewRun, filters: Filters = ALL, reviewer: str = "ann") -> list[FindingId]:
    found: list[FindingId] = []
    at = run.first(filters, reviewer)
    while at is not None and at not in found:
        found.append(at)
        at = run.step(at, "next", filters, reviewer)
    return found


def text(run: ReviewRun, at: FindingId) -> str:
    return run.view(at, ALL, "ann").text


def names(run: ReviewRun) -> list[str]:
    return [run.view(at, ALL, None).finding.anomaly.name for at in ids(run)]


def rewritten(name: str, **changes: object) -> Anomaly:
    return Anomaly.model_validate(anomaly(name, **changes))


def test_a_verdict_says_who_judged_which_text_of_which_model(run: ReviewRun) -> None:
    at = ids(run)[0]
    run.judge(at, text(run, at), "accept", "ann")
    (line,) = log_of(run.folder)
    assert (line.image, line.anomaly, line.decision, line.reviewer) == ("images/000.png", 0, "accept", "ann")
    assert line.text_sha256 == text(run, at)
    assert line.model_extra == {"model": "openai/gpt-4o", "prompts": "packed@1"}
    assert at not in ids(run, Filters())
    assert at in ids(run, Filters(), "ben")


def test_a_tie_waits_for_a_third_who_decides(run: ReviewRun) -> None:
    at = ids(run)[0]
    run.judge(at, text(run, at), "accept", "ann")
    run.judge(at, text(run, at), "reject", "ben")
    assert ids(run, Filters("ties")) == [at]
    run.judge(at, text(run, at), "reject", "cid")
    assert ids(run, Filters("ties")) == []
    assert ids(run, Filters("rejected")) == [at]
    assert (run.agreement().units, run.agreement().judgements) == (1, 3)


def test_what_another_process_writes_is_there_at_once(run: ReviewRun) -> None:
    other = ReviewRun.open(run.folder)
    at = ids(run)[0]
    other.judge(at, text(other, at), "unsure", "ben")
    other.add(at.image, rewritten("found by ben"), "ben")
    assert run.view(at, ALL, "ann").finding.votes == {"ben": "unsure"}
    assert "found by ben" in names(run)
    assert run.reviewers == ["ben"]


def test_an_edit_is_a_version_on_which_nobody_else_has_a_verdict(run: ReviewRun) -> None:
    at = ids(run)[0]
    before = text(run, at)
    run.judge(at, before, "accept", "ben")
    run.edit(at, before, rewritten("better", severity=5), "ann", "accept")
    finding = run.view(at, ALL, "ann").finding
    assert (finding.anomaly.name, finding.anomaly.severity) == ("better", 5)
    assert finding.anomaly.found_by == ("AttributeAnalyzer",)
    assert (finding.votes, finding.edited_by, finding.votes_before) == ({"ann": "accept"}, "ann", 1)
    assert at in ids(run, Filters(), "ben")
    assert ids(run, Filters("changed")) == [at]
    with pytest.raises(ReviewConflictError, match="changed meanwhile"):
        run.judge(at, before, "accept", "ben")
    assert run.undo("ann") == at
    assert run.view(at, ALL, "ann").finding.votes == {"ben": "accept"}


def test_a_moved_box_leaves_verdicts_where_they_are(run: ReviewRun) -> None:
    at = ids(run)[0]
    run.judge(at, text(run, at), "accept", "ben")
    run.move_box(at, text(run, at), (0, 0, 400, 300), "ann")
    finding = run.view(at, ALL, "ann").finding
    assert (finding.anomaly.box, finding.votes) == ((0, 0, 400, 300), {"ben": "accept"})
    with pytest.raises(UsageError, match="beyond the picture"):
        run.move_box(at, text(run, at), (0, 0, 401, 300), "ann")
    run.move_box(at, text(run, at), None, "ann")
    assert run.view(at, ALL, "ann").finding.anomaly.box is None


def test_steps_are_taken_back_one_after_the_other(run: ReviewRun) -> None:
    first, second, _ = ids(run)
    run.judge(first, text(run, first), "accept", "ann")
    run.judge(second, text(run, second), "reject", "ann")
    run.judge(second, text(run, second), "accept", "ben")
    run.judge(first, text(run, first), "unsure", "ann")
    assert run.undo("ann") == first
    assert run.view(first, ALL, "ann").finding.votes == {"ann": "accept"}
    assert [run.undo("ann"), run.undo("ann"), run.undo("ann")] == [second, first, None]
    assert run.view(second, ALL, "ann").finding.votes == {"ben": "accept"}
    assert len(log_of(run.folder)) == 7
    # Another process, and this one after a restart, know the same.
    again = ReviewRun.open(run.folder)
    assert again.undo("ann") is None
    assert again.undo("ben") == second


def test_an_added_finding_is_a_finding_until_it_is_taken_back(run: ReviewRun) -> None:
    image = ids(run)[0].image
    at = run.add(image, rewritten("missed", box=None), "ann")
    assert at == FindingId(image, 2)
    assert names(run) == ["one", "two", "missed", "three"]
    assert run.view(at, ALL, "ben").finding.added_by == "ann"
    assert ids(run, Filters("accepted")) == [at]
    assert names(ReviewRun.open(run.folder)) == ["one", "two", "missed", "three"]
    run.undo("ann")
    assert names(run) == ["one", "two", "three"]
    assert names(ReviewRun.open(run.folder)) == ["one", "two", "three"]
    with pytest.raises(ReviewConflictError):
        run.view(at, ALL, "ann")


def test_what_others_have_built_on_is_not_taken_back(run: ReviewRun) -> None:
    image = ids(run)[0].image
    at = run.add(image, rewritten("missed"), "ann")
    run.judge(at, text(run, at), "reject", "ben")
    with pytest.raises(ReviewConflictError, match="Someone else"):
        run.undo("ann")
    assert len(log_of(run.folder)) == 2


def test_a_run_that_goes_on_is_read_again(run: ReviewRun) -> None:
    at = ids(run)[2]
    run.judge(at, text(run, at), "accept", "ann")
    records = (run.folder / "annotations.jsonl").read_bytes().splitlines(keepends=True)
    more = records[0].replace(b"images/000.png", b"images/0000.png")
    with (run.folder / "annotations.jsonl").open("ab") as file:
        file.write(more + b'{"image": "images/half')
    assert len(ids(run)) == 3
    run.refresh()
    assert len(ids(run)) == 5
    # In the end the run puts its file in order, as another file of the same name.
    ordered = run.folder / "ordered"
    ordered.write_bytes(b"".join(sorted([*records, more], reverse=True)))
    ordered.replace(run.folder / "annotations.jsonl")
    assert run.view(at, ALL, "ann").finding.votes == {"ann": "accept"}


def test_a_log_that_was_put_away_is_missed(run: ReviewRun) -> None:
    at = ids(run)[0]
    run.judge(at, text(run, at), "accept", "ann")
    (run.folder / "reviews.jsonl").rename(run.folder / "kept.jsonl")
    assert run.view(at, ALL, "ann").finding.votes == {}
    assert run.progress(ALL, "ann").judged == 0


def test_what_is_no_run_or_has_an_invalid_line_is_refused(tmp_path: Path, run: ReviewRun) -> None:
    with pytest.raises(UsageError, match="not a run folder"):
        ReviewRun.open(tmp_path / "nothing")
    with pytest.raises(UsageError, match="not a run folder"):
        ReviewRun.open(run.folder / "images")
    with (run.folder / "annotations.jsonl").open("ab") as file:
        file.write(b'{"image": 5}\n')
    with pytest.raises(RecordError, match=r"annotations\.jsonl:3"):
        ReviewRun.open(run.folder)
