"""A run under review: its findings with what people said of them, and everything a reviewer can do.

What people say goes to `reviews.jsonl` (`records/reviews.py`). All methods may be called from several threads
at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from uncanny.errors import ReviewConflictError, UsageError
from uncanny.eval.common.anomalies.doubt import doubts
from uncanny.eval.metrics.significance import Agreement, krippendorff_alpha
from uncanny.records.reviews import (
    DECISIONS,
    Decision,
    RatingSpread,
    Review,
    ReviewedAnomaly,
    ReviewedImage,
    completion,
    new_review,
    quadruple_sha256,
    rating_spread,
    review_image,
)
from uncanny.records.sample import SAMPLE
from uncanny.schema import Anomaly, Box
from uncanny.service.pictures import Picture
from uncanny.service.review.findings import (
    FindingId,
    FindingView,
    ImageEnd,
    ImageView,
    Place,
    check_box,
    finding_at,
    state_of_image,
    unchanged,
)
from uncanny.service.review.loaded import LoadedRun
from uncanny.service.review.queue import Filters, Move, Progress
from uncanny.service.review.sample import SampleProgress, Walk

# An image may hold so many findings of people; whoever adds more has leant on a key.
MOST_ADDED: Final = 200
_EDITED: Final = ("name", "phenomenon", "reasoning", "severity", "kind")


class ReviewRun(LoadedRun):
    """One run folder under review."""

    # What is there

    @property
    def kinds(self) -> list[str]:
        return self._queue.kinds

    @property
    def agents(self) -> list[str]:
        return self._queue.agents

    @property
    def reviewers(self) -> list[str]:
        with self._lock:
            return self._queue.reviewers

    @property
    def has_sample(self) -> bool:
        """Whether a sample was drawn; it may still be invalid."""
        return (self.folder / SAMPLE).is_file()

    def progress(self, filters: Filters, reviewer: str | None) -> Progress:
        """Of the sample's images alone where `filters` say so. Raises as `sample_progress` then."""
        with self._now():
            images = self._sample().images if filters.sample else None
            return self._queue.progress(filters, reviewer, images)

    def sample_progress(self, filters: Filters, reviewer: str | None) -> SampleProgress:
        """Raises UsageError where no sample was drawn, RecordError for an invalid one."""
        with self._now():
            return self._sample().progress(filters, reviewer)

    def first(self, filters: Filters, reviewer: str | None) -> FindingId | None:
        """Where the queue begins; None where nothing is in it."""
        with self._now():
            row = self._queue.next(None, "next", filters, reviewer)
            return None if row is None else self._id(row)

    def step(self, at: FindingId, move: Move, filters: Filters, reviewer: str | None) -> FindingId | None:
        """The finding that `move` leads to; None where there is none. Raises UsageError for no finding."""
        with self._now():
            row = self._queue.next(self._row(at), move, filters, reviewer)
            return None if row is None else self._id(row)

    def back(self, filters: Filters, reviewer: str) -> FindingId | None:
        """Where the way back leads from the end: to this reviewer's last step, else to the queue's last."""
        with self._now():
            for key, place, _ in reversed(self._steps.get(reviewer, ())):
                at = FindingId(key, place or 0)
                if at in self._rows and self._queue.leads_back_to(self._rows[at], filters, reviewer):
                    return at
            row = self._queue.next(None, "previous", filters, reviewer)
            return None if row is None else self._id(row)

    def walk(self, at: Place | None, move: Walk, filters: Filters, reviewer: str | None) -> Place | None:
        """Where `move` leads in the sample, None where there is nothing further; `at` is None at its end.

        Raises UsageError for no place, and as `sample_progress`.
        """
        with self._now():
            sample, back = self._sample(), move in ("previous", "previous-image")
            if at is None and back:
                for key, place, _ in reversed(self._steps.get(reviewer or "", ())):
                    image = self._numbers[key]
                    if image in sample:
                        row = None if place is None else self._rows.get(FindingId(key, place))
                        gone = row is None or row not in self._queue.shown(self._images[image].rows, filters)
                        return ImageEnd(key) if gone or place is None else FindingId(key, place)
            spot = None
            if at is not None:
                spot = self._number(at), None if isinstance(at, ImageEnd) else self._row(at)
            to = sample.walk(spot, move, filters, reviewer)
            if to is None:
                return None
            return ImageEnd(self._images[to[0]].key) if to[1] is None else self._id(to[1])

    def page(
        self, after: FindingId | None, filters: Filters, reviewer: str | None, limit: int
    ) -> list[FindingId]:
        """The queue behind a finding, at most `limit` of it. Raises UsageError for no finding."""
        with self._now():
            row = None if after is None else self._row(after)
            return [self._id(each) for each in self._queue.page(row, filters, reviewer, limit)]

    def has(self, at: Place) -> bool:
        """Whether there is such a place, or such a finding was one before it was taken back."""
        with self._lock:
            return at.image in self._numbers if isinstance(at, ImageEnd) else at in self._rows

    def is_gone(self, at: Place) -> bool:
        """Whether whoever added the finding has taken it back. Raises UsageError for no finding."""
        with self._now():
            return not isinstance(at, ImageEnd) and self._queue.is_gone(self._row(at))

    def view(self, at: FindingId, filters: Filters | None, reviewer: str | None) -> FindingView:
        """Without `filters` nobody asks what follows in the queue: `next_image` is None.

        Raises UsageError for no such finding, RecordError where its record is no longer there.
        """
        with self._now():
            row = self._row(at)
            image = self._images[int(self._queue.image[row])]
            reviewed, lines = self._reviewed(image)
            finding = finding_at(reviewed, at.anomaly)
            following = None if filters is None else self._next_image(at, filters, reviewer)
            record = reviewed.annotation
            return FindingView(
                at,
                image.key,
                record,
                finding,
                quadruple_sha256(finding.anomaly),
                tuple(self._siblings(at, reviewed, filters)),
                doubts(record)[at.anomaly] if finding.original is not None else None,
                tuple(line for line in lines if line.anomaly == at.anomaly),
                following,
            )

    def image_view(self, at: ImageEnd, filters: Filters, reviewer: str | None) -> ImageView:
        """Raises as `view`."""
        with self._now():
            image = self._images[self._number(at)]
            reviewed, _ = self._reviewed(image)
            rows = self._queue.shown(image.rows, filters)
            shown = {int(self._queue.anomaly[row]) for row in rows}
            findings = [(FindingId(at.image, each.index), each) for each in reviewed.anomalies]
            return ImageView(
                at,
                reviewed.annotation,
                tuple((place, each) for place, each in findings if each.index in shown),
                sum(each.index not in shown for _, each in findings),
                sum(not self._queue.has_judged(row, reviewer) for row in rows),
                reviewed.completed_by,
                state_of_image(reviewed),
                self._next_image(at, filters, reviewer),
            )

    def _next_image(self, at: Place, filters: Filters, reviewer: str | None) -> str | None:
        if filters.sample:
            number = self._sample().ahead(self._number(at), filters, reviewer)
        elif isinstance(at, ImageEnd):
            return None
        else:
            row = self._queue.next(self._row(at), "next-image", filters, reviewer)
            number = None if row is None else int(self._queue.image[row])
        return None if number is None else self._images[number].key

    def _siblings(
        self, at: FindingId, reviewed: ReviewedImage, filters: Filters | None
    ) -> Iterator[tuple[FindingId, ReviewedAnomaly]]:
        for each in reviewed.anomalies:
            other = FindingId(at.image, each.index)
            shown = filters is None or filters.doubtful or not self._queue.is_doubtful(self._rows[other])
            if other != at and shown:
                yield other, each

    def picture(self, key: str) -> Picture | None:
        """The file of the image that pages call `key`; None for no such image."""
        with self._lock:
            number = self._numbers.get(key)
            if number is None:
                return None
            image = self._images[number]
            known = image.sha256 or ("" if self._read.is_run else None)
            return Picture(self._read.picture(image.name), known)

    def image_tag(self, key: str) -> str:
        """What changes in the address of a picture when the picture does."""
        return (self._images[self._numbers[key]].sha256 or "any")[:16]

    def agreement(self) -> Agreement:
        """Krippendorff's α over all findings that two or more have judged."""
        return krippendorff_alpha(self._verdicts())

    def ratings(self) -> RatingSpread:
        """The mean ratings of all findings that two or more have judged."""
        return rating_spread(self._verdicts())

    def _verdicts(self) -> list[dict[Decision, int]]:
        with self._now():
            table = self._queue.votes_by_row()
            counts = table[table.any(axis=1)].tolist()
        return [dict(zip(DECISIONS, each, strict=True)) for each in counts]

    # What a reviewer does

    def judge(self, at: FindingId, text: str, decision: Decision, reviewer: str) -> None:
        """Write a verdict on `text`. Raises ReviewConflictError where the finding has another text now."""

        def review(reviewed: ReviewedImage) -> Review:
            finding = unchanged(reviewed, at.anomaly, text)
            return new_review(reviewed.annotation, at.anomaly, finding.anomaly, reviewer, decision)

        self._write(at.image, review)

    def edit(
        self, at: FindingId, text: str, version: Anomaly, reviewer: str, decision: Decision | None = None
    ) -> None:
        """Write a new version of a finding: texts, severity and kind. A `decision` is on it.

        The rest of it goes on: what the model said besides (objects, agents), and the box, which somebody may
        have moved since the page was made. Raises ReviewConflictError as `judge`.
        """

        def review(reviewed: ReviewedImage) -> Review:
            finding = unchanged(reviewed, at.anomaly, text)
            rewritten = finding.anomaly.model_copy(update={name: getattr(version, name) for name in _EDITED})
            return new_review(
                reviewed.annotation, at.anomaly, finding.anomaly, reviewer, decision, version=rewritten
            )

        self._write(at.image, review)

    def move_box(self, at: FindingId, text: str, box: Box | None, reviewer: str) -> None:
        """Write where a finding is, in place of where it was; verdicts on its text stand.

        Raises ReviewConflictError as `judge`, UsageError for a box outside the picture.
        """

        def review(reviewed: ReviewedImage) -> Review:
            finding = unchanged(reviewed, at.anomaly, text)
            moved = finding.anomaly.model_copy(update={"box": box})
            check_box(moved, reviewed.annotation)
            return new_review(reviewed.annotation, at.anomaly, finding.anomaly, reviewer, version=moved)

        self._write(at.image, review)

    def add(self, image: str, anomaly: Anomaly, reviewer: str) -> FindingId:
        """Write a finding that the model missed, accepted by whoever adds it; its id. Raises UsageError."""
        place = 0

        def review(reviewed: ReviewedImage) -> Review:
            nonlocal place
            place = reviewed.next_index()
            if sum(each.original is None for each in reviewed.anomalies) >= MOST_ADDED:
                raise UsageError(f"An image can have at most {MOST_ADDED} added findings")
            check_box(anomaly, reviewed.annotation)
            return new_review(reviewed.annotation, place, None, reviewer, "accept", version=anomaly)

        self._write(image, review)
        return FindingId(image, place)

    def complete(self, at: ImageEnd, state: str, filters: Filters, reviewer: str) -> None:
        """Write that nothing is missed in an image, unless this reviewer has said so of it as it stands.

        Raises ReviewConflictError where it is another one than `state` says, or has findings left to judge,
        UsageError for an image that is not in the sample.
        """

        def review(reviewed: ReviewedImage) -> Review | None:
            if self._number(at) not in self._sample():
                raise UsageError("This image is not in the sample", remedy="Load the page again.")
            if state_of_image(reviewed) != state:
                raise ReviewConflictError(
                    "This image has changed meanwhile", remedy="Look at it as it is now, and complete it."
                )
            rows = self._queue.shown(self._images[self._number(at)].rows, filters)
            if not all(self._queue.has_judged(row, reviewer) for row in rows):
                raise ReviewConflictError("You have not judged all findings of this image yet")
            done = reviewer in reviewed.completed_by
            return None if done else completion(reviewed.annotation, reviewer)

        self._write(at.image, review)

    def undo(self, reviewer: str) -> Place | None:
        """Take this reviewer's last step back, by a line of its own; None without a step.

        Returns its finding, or its image where it completed that or added the finding which is gone now.

        Raises ReviewConflictError where others have built on it.
        """
        with self._lock, self._log.locked():
            self._catch_up()
            steps = self._steps.get(reviewer)
            if not steps:
                return None
            key, place, line = steps[-1]
            image = self._images[self._numbers[key]]
            reviewed, lines = self._reviewed(image)
            review = new_review(reviewed.annotation, place, None, reviewer, undoes=line)
            after = review_image(reviewed.annotation, [*lines, review])
            if len(after.stale) > len(reviewed.stale):
                raise ReviewConflictError(
                    "Someone else has judged or edited this finding since, so you cannot take it back",
                    remedy="Edit the finding anew instead.",
                )
            self._log.append([review])
            self._catch_up()
            if place is None or all(each.index != place for each in after.anomalies):
                return ImageEnd(key)
            return FindingId(key, place)
