"""What people said of findings: the log `reviews.jsonl` of a run, and what follows from it for an image.

The log is append-only: a changed verdict, an edited text, a finding that the model missed and an undo are
lines of their own, so that two reviewers never overwrite each other and nothing that was said is lost. A
verdict is about a text: where the text is another one now, it does not count for it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from itertools import count
from pathlib import Path
from typing import Annotated, Final, Literal, NamedTuple, Self, get_args
from uuid import uuid4

import orjson
from pydantic import AfterValidator, Field, StringConstraints, model_validator

from uncanny.records.jsonl import ByImage, parse_line
from uncanny.records.shared_log import SharedLog, whole_lines
from uncanny.schema import Annotation, Anomaly, Record
from uncanny.wording import counted, option

REVIEWS: Final = "reviews.jsonl"
LOCK: Final = ".reviews.lock"

Decision = Literal["accept", "reject", "unsure"]
DECISIONS: tuple[Decision, ...] = get_args(Decision)
# X-AIGD, section 3.2 and appendix A: each artifact is rated 1 (clear), 0.5 (ambiguous) or 0 (none).
RATED: Final[Mapping[Decision, float]] = {"accept": 1.0, "reject": 0.0, "unsure": 0.5}
AgreeRule = Literal["majority", "all"]
Reviewer = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=200)]


def _in_utc(at: datetime) -> datetime:
    try:
        return at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
    except OverflowError:
        raise ValueError("the time is before the first year or after the last one") from None


class Review(Record):
    """One line of `reviews.jsonl`: what a reviewer said of a finding, at `at` (UTC where no zone is named).

    `anomaly` is the finding's place, from 0, in the annotation's list; one that a reviewer adds takes a place
    behind it. `decision` answers "is this description correct for this image?", None where the line only
    brings a version or takes something back. `text_sha256` is the `quadruple_sha256` of what was judged; a
    line without it, as written by hand, is about the model's text.

    A line of the `type` "complete" says that the reviewer has looked at the whole image and added what the
    model missed. It has no `anomaly`, and its `text_sha256` is `findings_sha256` of what the model had found.

    `version` is the finding as the reviewer has rewritten it, or drawn its box, made from the text
    `replaces`; without `replaces` it is a finding that the reviewer adds. A decision in the same line is
    about this version. `undoes` is the `id` of an earlier line of the same image that is taken back by this
    one; undoing an undo brings it back.
    """

    type: Literal["complete"] | None = None
    image: str
    sha256: str | None = None
    anomaly: Annotated[int, Field(ge=0, le=2**31 - 1, strict=True)] | None = None
    decision: Decision | None = None
    reviewer: Reviewer
    at: Annotated[datetime, AfterValidator(_in_utc)]
    id: str | None = None
    text_sha256: str | None = None
    version: Anomaly | None = None
    replaces: str | None = None
    undoes: str | None = None

    @model_validator(mode="after")
    def _is_about_something(self) -> Self:
        if self.type is None and self.anomaly is None and self.undoes is None:
            raise ValueError("anomaly is missing")
        judged = (self.anomaly, self.decision, self.version)
        if self.type is not None and any(each is not None for each in judged):
            raise ValueError("a line that completes an image judges no finding")
        return self


def quadruple_sha256(anomaly: Anomaly) -> str:
    """What tells one text from another: name, phenomenon, reasoning and severity, not the box."""
    quadruple = [anomaly.name, anomaly.phenomenon, anomaly.reasoning, anomaly.severity]
    return sha256(orjson.dumps(quadruple)).hexdigest()


def findings_sha256(annotation: Annotation) -> str:
    """What tells one list of findings of a model from another."""
    texts = [quadruple_sha256(each) for each in annotation.anomalies]
    return sha256(orjson.dumps(texts)).hexdigest()


def completion(annotation: Annotation, reviewer: str, *, at: datetime | None = None) -> Review:
    """A line that says that nothing is missed in an image. Raises pydantic.ValidationError."""
    return Review(
        type="complete",
        image=annotation.image,
        sha256=annotation.sha256,
        reviewer=reviewer,
        at=at or datetime.now(UTC),
        id=uuid4().hex,
        text_sha256=findings_sha256(annotation),
    )


def new_review(
    annotation: Annotation,
    index: int | None,
    judged: Anomaly | None,
    reviewer: str,
    decision: Decision | None = None,
    *,
    version: Anomaly | None = None,
    undoes: str | None = None,
    at: datetime | None = None,
) -> Review:
    """A line about the finding `index` of an image whose text is `judged` now, None for one that is added.

    It also says which model and prompts the text is from. A severity that was a stand-in is rated once it is
    another one. Raises pydantic.ValidationError.
    """
    if version is not None and judged is not None and version.severity != judged.severity:
        version = version.model_copy(update={"severity_rated": True})
    text = version or judged
    return Review.model_validate(
        {
            "image": annotation.image,
            "sha256": annotation.sha256,
            "anomaly": index,
            "decision": decision,
            "reviewer": reviewer,
            "at": at or datetime.now(UTC),
            "id": uuid4().hex,
            "text_sha256": None if text is None else quadruple_sha256(text),
            "version": version,
            "replaces": None if version is None or judged is None else quadruple_sha256(judged),
            "undoes": undoes,
            "model": annotation.model,
            "prompts": annotation.prompts,
        }
    )


def majority(decisions: Iterable[Decision]) -> Decision | None:
    """What most reviewers say; `unsure` for a tie, None of nothing."""
    counts = Counter(decisions)
    if len(counts) < 2:
        return next(iter(counts), None)
    ranked = counts.most_common(2)
    return "unsure" if ranked[0][1] == ranked[1][1] else ranked[0][0]


def disputed(decisions: Iterable[Decision]) -> bool:
    """Whether some accept what others reject. Being unsure disagrees with nobody."""
    return {"accept", "reject"} <= set(decisions)


class Rule(NamedTuple):
    """How the verdicts on a finding make a decision.

    `agree`: what most reviewers say, or what all of them say; SalArt-VQA (appendix B) keeps only items that
    three reviewers accept. With fewer than `least_verdicts` there is no decision.
    """

    agree: AgreeRule = "majority"
    least_verdicts: int = 1

    def decide(self, verdicts: Collection[Decision]) -> Decision | None:
        """The decision; `unsure` for a tie, or if all have to agree and do not; None of too few."""
        if len(verdicts) < self.least_verdicts:
            return None
        if self.agree == "all" and len(set(verdicts)) > 1:
            return "unsure"
        return majority(verdicts)

    @property
    def words(self) -> str:
        """What makes it accept, after "accepted by"."""
        whose = "all" if self.agree == "all" else "most"
        return f"{whose} of its reviewers, with {counted(self.least_verdicts, 'verdict')} or more"

    @property
    def remedy(self) -> str:
        """What to do where it accepts nothing."""
        return f"Get more reviews, or pass a smaller number with {option('least_verdicts')}."


MAJORITY: Final = Rule()


def mean_rating(verdicts: Collection[Decision]) -> float | None:
    """The mean of the verdicts as ratings, 0-1 (`RATED`); None of none."""
    return sum(RATED[each] for each in verdicts) / len(verdicts) if verdicts else None


class RatingSpread(NamedTuple):
    """How clear findings are to several reviewers: the `mean` over `findings` of their mean ratings, 0-1, and
    how many have which (`by_bin`). The mean is None without a finding."""

    findings: int
    mean: float | None
    by_bin: Mapping[str, int]


_RATING_BINS: Final = ("0", "0 to 0.5", "0.5", "0.5 to 1", "1")


def rating_spread(tables: Iterable[Mapping[Decision, int]]) -> RatingSpread:
    """Of findings with two verdicts or more, each given by how many verdicts of each kind it has.

    X-AIGD, figure 2, has the distribution of these means for three annotators.
    """
    means: list[float] = []
    by_bin = dict.fromkeys(_RATING_BINS, 0)
    for table in tables:
        verdicts = [decision for decision, number in table.items() for _ in range(number)]
        mean = mean_rating(verdicts)
        if mean is not None and len(verdicts) > 1:
            means.append(mean)
            # 0, a half and 1 are bins of their own.
            by_bin[_RATING_BINS[sum((mean > 0, mean >= 0.5, mean > 0.5, mean >= 1))]] += 1
    return RatingSpread(len(means), sum(means) / len(means) if means else None, by_bin)


@dataclass(frozen=True, slots=True)
class ReviewedAnomaly:
    """A finding as it stands: its latest text, and what reviewers say of that text, each by the last word.

    `original` is the model's, None where `added_by` names the reviewer who added it. `votes_before` counts
    verdicts that earlier texts of it had. `rule` makes the decision.
    """

    index: int
    anomaly: Anomaly
    original: Anomaly | None
    votes: Mapping[str, Decision]
    added_by: str | None = None
    edited_by: str | None = None
    votes_before: int = 0
    rule: Rule = MAJORITY

    @property
    def decision(self) -> Decision | None:
        """By the rule; None where too few have judged this text."""
        return self.rule.decide(self.votes.values())

    @property
    def decisions(self) -> set[Decision | None]:
        """By any rule: what an export may say of it."""
        return {Rule(agree).decide(self.votes.values()) for agree in get_args(AgreeRule)}

    @property
    def rating(self) -> float | None:
        """The mean of the verdicts, 0 (reject) to 1 (accept); None where nobody has judged this text."""
        return mean_rating(self.votes.values())

    @property
    def tied(self) -> bool:
        """Whether reviewers disagree so that no decision has the most votes; one more vote decides. If all
        have to agree, whether some accept what others reject."""
        if len(set(self.votes.values())) < 2:
            return False
        if self.rule.agree == "all":
            return disputed(self.votes.values())
        counts = sorted(Counter(self.votes.values()).values())
        return counts[-1] == counts[-2]


@dataclass(frozen=True, slots=True)
class ReviewedImage:
    """An image's findings as they stand, those of reviewers last, and `stale` lines, which fit none of them:
    the image, or the model's text, is another one since.

    `completed_by` are the reviewers who found nothing missing since the last finding was added or rewritten.
    """

    annotation: Annotation
    anomalies: tuple[ReviewedAnomaly, ...]
    stale: tuple[Review, ...] = ()
    completed_by: tuple[str, ...] = ()

    def is_judged(self, min_confidence: float = 0.0) -> bool:
        """Whether somebody has said that nothing is missed, and each finding has a decision.

        Findings below `min_confidence`, 0-1, are hidden from whoever judges, and need none.
        """
        return bool(self.completed_by) and self.has_decisions(min_confidence) is not False

    def has_decisions(self, min_confidence: float = 0.0) -> bool | None:
        """Whether each finding from `min_confidence`, 0-1, on has a decision; None without such a finding."""
        shown = [
            each.decision is not None
            for each in self.anomalies
            if each.anomaly.confidence is None or each.anomaly.confidence >= min_confidence
        ]
        return all(shown) if shown else None

    def true_anomalies(self, *, unsure: bool = False) -> list[Anomaly]:
        """What is wrong with the image according to people: findings they accepted, as they rewrote them, and
        those they added and did not reject. Findings they are unsure of only count with `unsure`."""
        counts: set[Decision | None] = {"accept", "unsure"} if unsure else {"accept"}
        return [
            each.anomaly
            for each in self.anomalies
            if each.decision in counts or (each.original is None and not each.votes)
        ]

    def next_index(self, also: Iterable[int] = ()) -> int:
        """The place that a finding gets which is added now, behind the model's; those of `also` are taken."""
        stale = (review.anomaly for review in self.stale if review.anomaly is not None)
        used = {*also, *(each.index for each in self.anomalies), *stale}
        return next(place for place in count(len(self.annotation.anomalies)) if place not in used)


@dataclass(slots=True)
class _Finding:
    index: int
    original: Anomaly | None
    anomaly: Anomaly
    texts: set[str]
    votes: dict[str, dict[str, Decision]]
    added_by: str | None = None
    edited_by: str | None = None


def standing(reviews: Sequence[Review]) -> list[Review]:
    """The lines of one image, in their order, without undos and what they take back."""
    undone: set[str] = set()
    stands: list[Review] = []
    for review in reversed(reviews):
        if review.id is not None and review.id in undone:
            continue
        if review.undoes is not None:
            undone.add(review.undoes)
        else:
            stands.append(review)
    return stands[::-1]


def review_image(annotation: Annotation, reviews: Sequence[Review], rule: Rule = MAJORITY) -> ReviewedImage:
    """What `reviews`, the lines about this image in their order, make of its findings by `rule`."""
    findings = [
        _Finding(index, anomaly, anomaly, {quadruple_sha256(anomaly)}, {})
        for index, anomaly in enumerate(annotation.anomalies)
    ]
    models = {finding.index: finding for finding in findings}
    stale: list[Review] = []
    completed: dict[str, None] = {}
    found = findings_sha256(annotation)
    for review in standing(reviews):
        if None not in (review.sha256, annotation.sha256) and review.sha256 != annotation.sha256:
            stale.append(review)
            continue
        if review.anomaly is None:
            if review.text_sha256 in (None, found):
                completed[review.reviewer] = None
            else:
                stale.append(review)
            continue
        about = review.replaces or review.text_sha256
        finding = (
            models.get(review.anomaly)
            if about is None
            else next(
                (each for each in findings if each.index == review.anomaly and about in each.texts), None
            )
        )
        if review.version is not None:
            text = quadruple_sha256(review.version)
            if finding is None and review.replaces is None:
                finding = _Finding(review.anomaly, None, review.version, {text}, {}, added_by=review.reviewer)
                findings.append(finding)
                completed.clear()
            elif finding is not None:
                if text != quadruple_sha256(finding.anomaly):  # and not only another box
                    completed.clear()
                finding.anomaly, finding.edited_by = review.version, review.reviewer
                finding.texts.add(text)
        elif about is not None:
            text = about
        elif finding is not None and finding.original is not None:
            text = quadruple_sha256(finding.original)
        if finding is None:
            stale.append(review)
        elif review.decision is not None:
            votes = finding.votes.setdefault(text, {})
            votes[review.reviewer] = review.decision
    standing_now = tuple(_as_it_stands(finding, rule) for finding in findings)
    return ReviewedImage(annotation, standing_now, tuple(stale), tuple(completed))


def _as_it_stands(finding: _Finding, rule: Rule) -> ReviewedAnomaly:
    text = quadruple_sha256(finding.anomaly)
    return ReviewedAnomaly(
        finding.index,
        finding.anomaly,
        finding.original,
        finding.votes.get(text, {}),
        finding.added_by,
        finding.edited_by,
        sum(len(votes) for other, votes in finding.votes.items() if other != text),
        rule,
    )


class ReviewLog(SharedLog[Review]):
    """The file `reviews.jsonl`."""

    def __init__(self, path: Path) -> None:
        """Creating the object touches nothing on disk."""
        super().__init__(path, Review, lock=LOCK, what="reviews")

    @classmethod
    def of_run(cls, folder: Path) -> ReviewLog:
        return cls(folder / REVIEWS)

    def by_image(self) -> ReviewsByImage:
        """The lines of each image, read as they are asked for. Raises UsageError."""
        return ReviewsByImage(self)


def read_reviews(path: Path) -> Iterator[Review]:
    """The lines of a log, wherever it lies, without a last one that is half-written.

    Raises RecordError, UsageError.
    """
    return (review for _, review in whole_lines(path, Review))


class ReviewsByImage(ByImage[Review]):
    """The lines about each image that were there when this was made, in their order, read when asked for.

    An image nobody has said anything of is a KeyError, an invalid line a RecordError.
    """

    def __init__(self, log: ReviewLog) -> None:
        """Raises UsageError, RecordError for a line that names no image."""
        log.check_no_link()
        super().__init__(log.path)
        self.get("")

    def of_line(self, number: int, line: bytes) -> Review:
        return parse_line(line, Review, self.path, number)
