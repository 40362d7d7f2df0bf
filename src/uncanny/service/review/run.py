"""A run under review: its findings with what people said of them, and everything a reviewer can do.

`annotations.jsonl` is read once for the queue, and a record again when its finding is shown. What people say
goes to `reviews.jsonl` (`records/reviews.py`), and lines that other processes add there are taken up. All
methods may be called from several threads at once.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import RLock
from typing import Final

from uncanny.errors import RecordError, ReviewConflictError, UsageError
from uncanny.eval.common.anomalies.doubt import doubts
from uncanny.eval.common.inputs.runs import ReadRun, open_run
from uncanny.eval.common.parameters import MIN_CONFIDENCE
from uncanny.eval.metrics.significance import Agreement, krippendorff_alpha
from uncanny.files import open_file
from uncanny.records.jsonl import parse_line
from uncanny.records.reviews import (
    DECISIONS,
    Decision,
    Review,
    ReviewedAnomaly,
    ReviewedImage,
    ReviewLog,
    new_review,
    quadruple_sha256,
    review_image,
)
from uncanny.records.run_folder import check_recorded
from uncanny.records.shared_log import file_state
from uncanny.schema import Annotation, Anomaly, Box
from uncanny.service.pictures import Picture
from uncanny.service.review.findings import FindingId, FindingView, check_box, finding_at, unchanged
from uncanny.service.review.queue import Filters, Move, Progress, ReviewQueue, Row, Standing
from uncanny.service.review.records import (
    ADDED,
    ImageRecord,
    image_key,
    no_collection,
    read_records,
    state_of,
)

# How many steps of a reviewer can be taken back, beyond which nobody remembers what they were.
UNDO_STEPS: Final = 1000
# An image may hold so many findings of people; whoever adds more has leant on a key.
MOST_ADDED: Final = 200
# Rows are added to the queue together: each time all of it is copied.
_IMAGES_AT_ONCE: Final = 1000


class ReviewRun:
    """One run folder under review. `per_finding` verdicts of a finding are enough; None: all judge all.

    Findings below `min_confidence`, 0-1, are hidden until somebody asks for them.
    """

    def __init__(
        self, read: ReadRun, *, per_finding: int | None = None, min_confidence: float = MIN_CONFIDENCE
    ) -> None:
        """Reads the annotations and all reviews. Raises RecordError, UsageError."""
        self.folder = read.folder.path
        self.name = self.folder.resolve().name
        self._read, self._per_finding, self.min_confidence = read, per_finding, min_confidence
        self._log = ReviewLog.of_run(self.folder)
        self._lock = RLock()
        self._load()

    @classmethod
    def open(
        cls, folder: Path, *, per_finding: int | None = None, min_confidence: float = MIN_CONFIDENCE
    ) -> ReviewRun:
        """Raises UsageError where `folder` is no run with annotations, RecordError for an invalid line."""
        if not folder.is_dir():
            raise UsageError(f"{folder} is not a run folder", remedy="Pass the folder of a run.")
        read = open_run(folder)
        if not read.file.is_file():
            check_recorded(folder, read.file.name)
        return cls(read, per_finding=per_finding, min_confidence=min_confidence)

    # What is there

    def refresh(self) -> None:
        """Read the annotations anew where the run has gone on. Raises RecordError, UsageError."""
        with self._lock:
            if state_of(self._read.file) != self._state:
                self._load()
            self._catch_up()

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

    def progress(self, filters: Filters, reviewer: str | None) -> Progress:
        with self._now():
            return self._queue.progress(filters, reviewer)

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
                at = FindingId(key, place)
                if at in self._rows and self._queue.leads_back_to(self._rows[at], filters, reviewer):
                    return at
            row = self._queue.next(None, "previous", filters, reviewer)
            return None if row is None else self._id(row)

    def page(
        self, after: FindingId | None, filters: Filters, reviewer: str | None, limit: int
    ) -> list[FindingId]:
        """The queue behind a finding, at most `limit` of it. Raises UsageError for no finding."""
        with self._now():
            row = None if after is None else self._row(after)
            return [self._id(each) for each in self._queue.page(row, filters, reviewer, limit)]

    def has(self, at: FindingId) -> bool:
        """Whether there is such a finding, or was one before it was taken back."""
        with self._lock:
            return at in self._rows

    def is_gone(self, at: FindingId) -> bool:
        """Whether whoever added the finding has taken it back. Raises UsageError for no finding."""
        with self._now():
            return self._queue.is_gone(self._row(at))

    def view(self, at: FindingId, filters: Filters | None, reviewer: str | None) -> FindingView:
        """Without `filters` nobody asks what follows in the queue: `next_image` is None.

        Raises UsageError for no such finding, RecordError where its record is no longer there.
        """
        with self._now():
            row = self._row(at)
            image = self._images[int(self._queue.image[row])]
            reviewed, lines = self._reviewed(image)
            finding = finding_at(reviewed, at.anomaly)
            following = None if filters is None else self._queue.next(row, "next-image", filters, reviewer)
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
                None if following is None else self._images[int(self._queue.image[following])].key,
            )

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
        with self._now():
            table = self._queue.votes_by_row()
            counts = table[table.any(axis=1)].tolist()
        return krippendorff_alpha(dict(zip(DECISIONS, each, strict=True)) for each in counts)

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

    def undo(self, reviewer: str) -> FindingId | None:
        """Take this reviewer's last step back, by a line of its own; its finding, None without a step.

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
            gone = all(each.index != place for each in after.anomalies)
            return FindingId(key, 0 if gone and reviewed.annotation.anomalies else place)

    # Within

    @contextmanager
    def _now(self) -> Iterator[None]:
        """One thread at a time, with what others have written by now."""
        with self._lock:
            self._catch_up()
            yield

    def _write(self, key: str, make: Callable[[ReviewedImage], Review]) -> None:
        with self._lock, self._log.locked():
            self._catch_up()
            number = self._numbers.get(key)
            if number is None:
                raise UsageError("There is no such image in this run", remedy="Load the page again.")
            reviewed, _ = self._reviewed(self._images[number])
            self._log.append([make(reviewed)])
            self._catch_up()

    def _load(self) -> None:
        self._read = open_run(self.folder)
        self._state = state_of(self._read.file)
        self._images: list[ImageRecord] = []
        self._numbers: dict[str, int] = {}
        self._rows: dict[FindingId, int] = {}
        self._steps: dict[str, deque[tuple[str, int, str]]] = {}
        self._undone: dict[str, tuple[str, tuple[str, int, str]]] = {}
        self._end = 0
        self._latest: tuple[object, ReviewedImage, list[Review]] | None = None
        with no_collection():
            self._queue = ReviewQueue(self._read_rows(), self._per_finding)
            self._catch_up()

    def _read_rows(self) -> list[Row]:
        rows: list[Row] = []
        for image, findings in read_records(self._read.file):
            number = len(self._images)
            self._images.append(image)
            self._numbers[image.key] = number
            for place, (doubt, kind, agents, confidence) in enumerate(findings):
                doubtful = confidence is not None and confidence < self.min_confidence
                self._rows[FindingId(image.key, place)] = len(rows)
                image.rows.append(len(rows))
                rows.append(Row(number, place, doubt, kind, agents, doubtful=doubtful))
        return rows

    def _catch_up(self) -> None:
        """Take up what was added to the log, by whomever. Raises RecordError for an invalid line.

        Records that a run adds meanwhile wait for `refresh`; where it has put its file in order, all is read
        anew, as every record may lie elsewhere.
        """
        file, records = state_of(self._read.file)
        if file != self._state[0] or records < self._state[1]:
            self._load()
            return
        size = self._log.path.stat().st_size if self._log.path.is_file() else 0
        if size == self._end:
            return
        if size < self._end:  # somebody has put another file in its place
            self._load()
            return
        touched: dict[int, None] = {}
        try:
            for start, end, review in self._log.lines_from(self._end):
                self._end = end
                key = image_key(review.image)
                number = self._numbers.get(key)
                if number is not None:
                    self._images[number].lines.append((start, end))
                    touched[number] = None
                    self._remember(key, review)
        finally:  # also what stands before an invalid line
            images = list(touched)
            for first in range(0, len(images), _IMAGES_AT_ONCE):
                self._take_up(images[first : first + _IMAGES_AT_ONCE])

    def _remember(self, key: str, review: Review) -> None:
        if review.id is None:
            return
        step = (key, review.anomaly or 0, review.id)
        if review.undoes is None:
            self._steps.setdefault(review.reviewer, deque(maxlen=UNDO_STEPS)).append(step)
        elif review.undoes in self._undone:
            reviewer, step = self._undone.pop(review.undoes)
            self._steps.setdefault(reviewer, deque(maxlen=UNDO_STEPS)).append(step)
        else:
            for reviewer, steps in self._steps.items():
                for step in reversed(steps):
                    if step[2] == review.undoes:
                        steps.remove(step)
                        self._undone[review.id] = reviewer, step
                        return

    def _take_up(self, numbers: Sequence[int]) -> None:
        """Tell the queue what stands of the findings of some images."""
        standing: dict[int, Standing] = {}
        added: list[Row] = []
        for number in numbers:
            image = self._images[number]
            reviewed, _ = self._reviewed(image)
            standing |= dict.fromkeys(image.rows, Standing(gone=True))
            for each in reviewed.anomalies:
                at = FindingId(image.key, each.index)
                if at not in self._rows:
                    self._rows[at] = len(self._queue) + len(added)
                    image.rows.append(self._rows[at])
                    kind, agents = each.anomaly.kind, each.anomaly.found_by or ()
                    added.append(Row(number, each.index, ADDED, kind, agents, True))
                edited = each.edited_by is not None
                standing[self._rows[at]] = Standing(each.votes, each.decision, each.tied, edited)
        self._queue.add(added)
        for row, stands in standing.items():
            self._queue.set(row, stands)

    def _reviewed(self, image: ImageRecord) -> tuple[ReviewedImage, list[Review]]:
        """The latest one is kept as long as its files are as they were: it is asked for again and again."""
        state = (id(image), len(image.lines), file_state(self._read.file), file_state(self._log.path))
        if self._latest is None or self._latest[0] != state:
            self._latest = (state, *self._read_image(image))
        return self._latest[1], self._latest[2]

    def _read_image(self, image: ImageRecord) -> tuple[ReviewedImage, list[Review]]:
        with open_file(self._read.file) as file:
            line = os.pread(file.fileno(), image.length, image.offset)
        record = parse_line(line, Annotation, self._read.file, 1)
        if record.image != image.name:
            raise RecordError("the file has changed since", path=self._read.file, line=1, field="image")
        lines = self._log.lines_at(image.lines) if image.lines else []
        return review_image(record, lines), lines

    def _row(self, at: FindingId) -> int:
        row = self._rows.get(at)
        if row is None:
            raise UsageError("There is no such finding in this run", remedy="Load the page again.")
        return row

    def _id(self, row: int) -> FindingId:
        return FindingId(self._images[int(self._queue.image[row])].key, int(self._queue.anomaly[row]))


_EDITED = ("name", "phenomenon", "reasoning", "severity", "kind")
