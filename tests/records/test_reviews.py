"""The log of verdicts: what stands, what is counted, and what several writers leave behind."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import orjson
import pytest
from pydantic import ValidationError

from uncanny.errors import RecordError, UsageError
from uncanny.records.reviews import (
    Decision,
    Review,
    ReviewLog,
    Rule,
    completion,
    majority,
    new_review,
    quadruple_sha256,
    rating_spread,
    review_image,
)
from uncanny.schema import Annotation, Anomaly

FIRST = Anomaly(
    name="Six fingers", phenomenon="Six on the left hand.", reasoning="Hands have five.", severity=9
)
SECOND = Anomaly(name="No shadow", phenomenon="The cup has none.", reasoning="Light casts one.", severity=40)
ANNOTATION = Annotation(
    image="a/cat.png",
    sha256="ab" * 32,
    width=64,
    height=64,
    status="ok",
    anomalies=(FIRST, SECOND),
    model="m",
    prompts="p@1",
)


def _says(who: str, decision: Decision, index: int = 0) -> Review:
    return new_review(ANNOTATION, index, ANNOTATION.anomalies[index], who, decision)


def _decisions(*reviews: Review) -> list[Decision | None]:
    return [each.decision for each in review_image(ANNOTATION, reviews).anomalies]


def test_the_majority_stands_and_a_tie_is_unsure() -> None:
    assert majority([]) is None
    assert majority(["accept"]) == "accept"
    assert majority(["accept", "reject"]) == "unsure"
    assert majority(["accept", "reject", "reject"]) == "reject"
    assert majority(["accept", "accept", "reject", "unsure"]) == "accept"
    assert _decisions(_says("ann", "accept"), _says("bob", "reject")) == ["unsure", None]
    assert _decisions(_says("ann", "accept"), _says("bob", "reject"), _says("eve", "accept")) == [
        "accept",
        None,
    ]


def test_a_tie_is_told_from_people_who_are_unsure() -> None:
    tied = review_image(ANNOTATION, [_says("ann", "accept"), _says("bob", "reject")]).anomalies[0]
    unsure = review_image(ANNOTATION, [_says("ann", "unsure")]).anomalies[0]
    assert (tied.decision, tied.tied, unsure.decision, unsure.tied) == ("unsure", True, "unsure", False)


def test_all_three_have_to_agree_where_that_is_the_rule() -> None:
    """SalArt-VQA, appendix B: an item stays if all three reviewers accept it."""
    three = Rule("all", 3)
    assert three.decide(["accept"] * 3) == "accept"
    assert three.decide(["reject"] * 4) == "reject"
    assert three.decide(["accept", "accept", "reject"]) == "unsure"
    assert three.decide(["accept"] * 2) is None
    assert Rule(least_verdicts=2).decide(["reject"]) is None
    said = [_says("ann", "accept"), _says("bob", "accept"), _says("eve", "reject"), _says("ann", "accept", 1)]
    first, second = review_image(ANNOTATION, said, three).anomalies
    assert (first.decision, first.tied, first.decisions) == ("unsure", True, {"accept", "unsure"})
    assert (second.decision, second.tied) == (None, False)
    # By majority the first one is true, and the second, too.
    assert len(review_image(ANNOTATION, said).true_anomalies()) == 2
    assert review_image(ANNOTATION, said, three).true_anomalies() == []


def test_verdicts_are_ratings_from_0_to_1() -> None:
    """X-AIGD, appendix A: three people rate each artifact 0, 0.5 or 1, and figure 2 has the means."""
    said = [_says("ann", "accept"), _says("bob", "accept"), _says("eve", "unsure")]
    first, second = review_image(ANNOTATION, said).anomalies
    assert first.rating == pytest.approx(2.5 / 3)
    assert second.rating is None
    tables: list[dict[Decision, int]] = [
        {"accept": 3, "reject": 0, "unsure": 0},
        {"accept": 2, "reject": 0, "unsure": 1},
        {"accept": 1, "reject": 1, "unsure": 1},
        {"accept": 1, "reject": 2, "unsure": 0},
        {"accept": 0, "reject": 3, "unsure": 0},
        {"accept": 1, "reject": 0, "unsure": 0},  # of one person
    ]
    spread = rating_spread(tables)
    assert spread.findings == 5
    assert spread.mean == pytest.approx((1 + 2.5 / 3 + 0.5 + 1 / 3 + 0) / 5)
    assert spread.by_bin == dict.fromkeys(("0", "0 to 0.5", "0.5", "0.5 to 1", "1"), 1)
    assert rating_spread([]).mean is None


def test_the_last_word_of_each_reviewer_counts() -> None:
    assert _decisions(_says("ann", "reject"), _says("ann", "accept")) == ["accept", None]


def test_undo_brings_back_what_was_before_and_can_be_undone() -> None:
    first, second = _says("ann", "reject"), _says("ann", "accept")
    undo = new_review(ANNOTATION, 0, FIRST, "ann", undoes=second.id)
    redo = new_review(ANNOTATION, 0, FIRST, "ann", undoes=undo.id)
    assert _decisions(first, second, undo) == ["reject", None]
    assert _decisions(first, second, undo, redo) == ["accept", None]


def test_an_edit_is_a_new_version_that_earlier_verdicts_do_not_count_for() -> None:
    better = FIRST.model_copy(update={"phenomenon": "Six fingers on the right hand."})
    edit = new_review(ANNOTATION, 0, FIRST, "bob", "accept", version=better)
    finding = review_image(ANNOTATION, [_says("ann", "reject"), edit]).anomalies[0]
    assert finding.anomaly == better
    assert finding.original == FIRST
    assert (finding.votes, finding.edited_by, finding.votes_before) == ({"bob": "accept"}, "bob", 1)
    undo = new_review(ANNOTATION, 0, FIRST, "bob", undoes=edit.id)
    assert review_image(ANNOTATION, [_says("ann", "reject"), edit, undo]).anomalies[0].decision == "reject"


def test_a_moved_box_leaves_the_verdicts_on_the_text() -> None:
    moved = FIRST.model_copy(update={"box": (1, 2, 30, 40)})
    finding = review_image(
        ANNOTATION, [_says("ann", "accept"), new_review(ANNOTATION, 0, FIRST, "bob", version=moved)]
    ).anomalies[0]
    assert (finding.anomaly.box, finding.votes) == ((1, 2, 30, 40), {"ann": "accept"})


def test_a_missed_anomaly_is_added_judged_and_edited() -> None:
    missed = Anomaly(name="Bent horizon", phenomenon="It bends.", reasoning="Water is level.", severity=15)
    index = review_image(ANNOTATION, []).next_index()
    added = new_review(ANNOTATION, index, None, "ann", "accept", version=missed)
    state = review_image(ANNOTATION, [added])
    assert (index, state.next_index(), len(state.anomalies)) == (2, 3, 3)
    assert (state.anomalies[2].added_by, state.anomalies[2].original) == ("ann", None)
    against = new_review(ANNOTATION, index, missed, "bob", "reject")
    assert review_image(ANNOTATION, [added, against]).anomalies[2].decision == "unsure"
    undo = new_review(ANNOTATION, index, missed, "ann", undoes=added.id)
    assert len(review_image(ANNOTATION, [added, undo]).anomalies) == 2


def test_verdicts_on_what_is_no_longer_there_are_stale_and_not_counted() -> None:
    other = ANNOTATION.model_copy(update={"anomalies": (SECOND,)})
    state = review_image(other, [_says("ann", "accept")])
    assert (state.anomalies[0].decision, len(state.stale)) == (None, 1)
    state = review_image(ANNOTATION.model_copy(update={"sha256": "cd" * 32}), [_says("ann", "accept")])
    assert (state.anomalies[0].decision, len(state.stale)) == (None, 1)


def test_a_line_of_the_contract_alone_is_about_the_models_text() -> None:
    line = (
        b'{"image": "a/cat.png", "sha256": "%s", "anomaly": 1, "decision": "accept", "reviewer": "ann",'
        b' "at": "2026-01-01T00:00:00Z"}' % (b"ab" * 32)
    )
    review = Review.model_validate_json(line)
    assert review.at == datetime(2026, 1, 1, tzinfo=UTC)
    assert _decisions(review) == [None, "accept"]
    assert orjson.loads(review.model_dump_json(exclude_none=True)) == orjson.loads(line)


def test_the_hash_is_of_the_text_and_not_of_the_box() -> None:
    boxed = FIRST.model_copy(update={"box": (0, 0, 1, 1), "kind": "anatomy"})
    assert quadruple_sha256(boxed) == quadruple_sha256(FIRST)
    assert quadruple_sha256(FIRST.model_copy(update={"severity": 10})) != quadruple_sha256(FIRST)


def test_a_log_is_read_as_it_was_written_and_followed_from_where_one_was(tmp_path: Path) -> None:
    log = ReviewLog.of_run(tmp_path)
    assert list(log.read()) == []
    first, second = _says("ann", "accept"), _says("bob", "reject", 1)
    log.append([first])
    ((_, end, review),) = log.lines_from(0)
    assert review == first
    assert log.append([second]) > end
    assert [(start, review) for start, _, review in log.lines_from(end)] == [(end, second)]
    assert dict(log.by_image()) == {"a/cat.png": [first, second]}


def test_a_half_written_last_line_is_passed_over_and_dropped(tmp_path: Path) -> None:
    log = ReviewLog.of_run(tmp_path)
    first, second = _says("ann", "accept"), _says("bob", "reject")
    log.append([first])
    with log.path.open("ab") as file:
        file.write(second.model_dump_json().encode()[:40])
    assert list(log.read()) == [first]
    assert list(log.by_image()["a/cat.png"]) == [first]
    log.append([second])
    assert list(log.read()) == [first, second]


def test_a_whole_last_line_without_an_end_is_kept(tmp_path: Path) -> None:
    log = ReviewLog.of_run(tmp_path)
    first, second = _says("ann", "accept"), _says("bob", "reject")
    log.path.write_bytes(first.model_dump_json().encode())
    log.append([second])
    assert list(log.read()) == [first, second]


_LINE = b'{"image": "a", "anomaly": 0, "decision": "accept", "reviewer": "x", "at": "2026-01-01T00:00:00Z"}'


@pytest.mark.parametrize(
    ("line", "field"),
    [
        (_LINE.replace(b"0, ", b"-1, "), "anomaly"),
        (_LINE.replace(b'"accept"', b'"yes"'), "decision"),
        (_LINE.replace(b'"x"', b'" "'), "reviewer"),
        (_LINE.replace(b'"a"', b"7"), "image"),
        (b"[1]", None),
        (b"nothing", None),
    ],
)
def test_an_invalid_line_is_named(tmp_path: Path, line: bytes, field: str | None) -> None:
    log = ReviewLog.of_run(tmp_path)
    log.append([_says("ann", "accept")])
    with log.path.open("ab") as file:
        file.write(line + b"\n")
    with pytest.raises(RecordError) as raised:
        list(log.read())
    assert (raised.value.line, raised.value.field) == (2, field)
    with pytest.raises(RecordError):
        [log.by_image()[image] for image in log.by_image()]


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    log = ReviewLog.of_run(tmp_path)
    (tmp_path / "elsewhere").write_bytes(b"")
    log.path.symlink_to(tmp_path / "elsewhere")
    for use in (lambda: list(log.read()), lambda: log.append([_says("ann", "accept")]), log.by_image):
        with pytest.raises(UsageError, match="link"):
            use()


def test_threads_and_processes_lose_nothing_of_each_other(tmp_path: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from uncanny.records.reviews import Review, ReviewLog\n"
        "log = ReviewLog.of_run(Path(sys.argv[1]))\n"
        "for n in range(50):\n"
        "    log.append([Review(image='i', anomaly=n, decision='accept', reviewer=sys.argv[2],"
        " at='2026-01-01T00:00:00Z')])\n"
    )
    workers = [
        subprocess.Popen([sys.executable, "-c", program, str(tmp_path), f"process {number}"], env=os.environ)
        for number in range(2)
    ]
    log = ReviewLog.of_run(tmp_path)

    def work(number: int) -> None:
        for index in range(50):
            with log.locked():
                log.append([_says(f"thread {number}", "accept", index % 2)])

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(work, range(4)))
    assert [worker.wait() for worker in workers] == [0, 0]
    reviewers = [review.reviewer for review in log.read()]
    assert sorted(set(reviewers)) == ["process 0", "process 1", *(f"thread {number}" for number in range(4))]
    assert all(reviewers.count(name) == 50 for name in set(reviewers))


def _added(who: str = "ann", text: str = "Two clocks") -> Review:
    missed = Anomaly(name=text, phenomenon="They differ.", reasoning="One time.", severity=30)
    return new_review(ANNOTATION, 2, None, who, "accept", version=missed)


def test_an_image_is_judged_when_each_finding_has_a_decision_and_nothing_is_missed() -> None:
    both = [_says("ann", "accept"), _says("ann", "reject", 1)]
    done = completion(ANNOTATION, "ann")
    assert not review_image(ANNOTATION, both).is_judged()
    assert not review_image(ANNOTATION, [both[0], done]).is_judged()
    image = review_image(ANNOTATION, [*both, done])
    assert (image.is_judged(), image.completed_by) == (True, ("ann",))
    assert image.true_anomalies() == [FIRST]
    # Without findings there is nothing but the completion.
    flawless = ANNOTATION.model_copy(update={"anomalies": ()})
    assert review_image(flawless, [completion(flawless, "bob")]).is_judged()


def test_a_hidden_finding_needs_no_decision_for_an_image_to_be_judged() -> None:
    doubtful = SECOND.model_copy(update={"confidence": 0.3})
    record = ANNOTATION.model_copy(update={"anomalies": (FIRST, doubtful)})
    image = review_image(record, [_says("ann", "accept"), completion(record, "ann")])
    assert [image.is_judged(least) for least in (0.5, 0.3, 0.0)] == [True, False, False]
    assert not review_image(record, [completion(record, "ann")]).is_judged(0.5)
    assert not review_image(record, [_says("ann", "accept")]).is_judged(0.5)


def test_a_finding_that_is_added_or_rewritten_opens_the_image_again_and_a_moved_box_does_not() -> None:
    done = [_says("ann", "accept"), _says("ann", "reject", 1), completion(ANNOTATION, "ann")]
    text = FIRST.model_copy(update={"name": "Seven fingers"})
    box = FIRST.model_copy(update={"box": (1, 1, 9, 9)})
    edited = new_review(ANNOTATION, 0, FIRST, "bob", "accept", version=text)
    moved = new_review(ANNOTATION, 0, FIRST, "bob", version=box)
    assert not review_image(ANNOTATION, [*done, _added()]).is_judged()
    assert not review_image(ANNOTATION, [*done, edited]).is_judged()
    assert review_image(ANNOTATION, [*done, moved]).is_judged()
    again = review_image(ANNOTATION, [*done, _added(), completion(ANNOTATION, "bob")])
    assert (again.is_judged(), again.completed_by) == (True, ("bob",))
    assert [each.name for each in again.true_anomalies()] == ["Six fingers", "Two clocks"]


def test_a_completion_can_be_taken_back_and_is_of_one_image_and_one_list_of_findings() -> None:
    votes = [_says("ann", "accept"), _says("ann", "reject", 1)]
    done = completion(ANNOTATION, "ann")
    undo = new_review(ANNOTATION, None, None, "ann", undoes=done.id)
    assert not review_image(ANNOTATION, [*votes, done, undo]).is_judged()
    replaced = ANNOTATION.model_copy(update={"sha256": "cd" * 32})
    assert not review_image(replaced, [completion(ANNOTATION, "ann")]).completed_by
    other = ANNOTATION.model_copy(update={"anomalies": (SECOND,)})
    image = review_image(other, [done])
    assert (image.completed_by, image.stale) == ((), (done,))
    by_hand = Review.model_validate({**done.model_dump(), "text_sha256": None, "id": None})
    assert review_image(other, [by_hand]).completed_by == ("ann",)


def test_the_unsure_disagree_with_nobody() -> None:
    """If all have to agree, some accept what others reject, or somebody is unsure: two counts."""
    cases: tuple[tuple[Decision, bool], ...] = (("accept", False), ("reject", True), ("unsure", False))
    for said, tied in cases:
        lines = [_says("ann", "accept"), _says("bob", "unsure"), _says("eve", said)]
        finding = review_image(ANNOTATION, lines, Rule("all")).anomalies[0]
        assert (finding.decision, finding.tied) == ("unsure", tied)


def test_findings_that_people_are_unsure_of_count_only_if_asked_for() -> None:
    lines = [_says("ann", "unsure"), _says("ann", "reject", 1), _added(), completion(ANNOTATION, "ann")]
    image = review_image(ANNOTATION, lines)
    assert image.is_judged()
    assert [each.name for each in image.true_anomalies()] == ["Two clocks"]
    assert [each.name for each in image.true_anomalies(unsure=True)] == ["Six fingers", "Two clocks"]
    rejected = new_review(ANNOTATION, 2, _added().version, "bob", "reject")
    twice = new_review(ANNOTATION, 2, _added().version, "eve", "reject")
    assert review_image(ANNOTATION, [*lines, rejected, twice]).true_anomalies() == []


@pytest.mark.parametrize(
    "line",
    [
        {"type": "complete", "anomaly": 0},
        {"type": "complete", "decision": "accept"},
        {"type": "done"},
        {},
    ],
)
def test_a_line_is_about_a_finding_or_completes_an_image(line: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        Review.model_validate({"image": "a.png", "reviewer": "ann", "at": datetime.now(UTC), **line})
