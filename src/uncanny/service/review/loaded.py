"""A run under review in memory, as its files are now: records, what people said of them, and the queue.

`annotations.jsonl` is read once for the queue, and a record again when its finding is shown. Lines that other
processes add to `reviews.jsonl` are taken up before anything is answered.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import RLock
from typing import Final, Self

from uncanny.errors import RecordError, UsageError
from uncanny.eval.common.inputs.runs import ReadRun, open_run
from uncanny.eval.common.parameters import MIN_CONFIDENCE
from uncanny.files import open_file
from uncanny.records.jsonl import parse_line
from uncanny.records.reviews import MAJORITY, Review, ReviewedImage, ReviewLog, Rule, review_image
from uncanny.records.run_folder import check_recorded
from uncanny.records.sample import SAMPLE, read_sample
from uncanny.records.shared_log import file_state
from uncanny.schema import Annotation
from uncanny.service.review.findings import FindingId, ImageEnd, Place
from uncanny.service.review.queue import ReviewQueue, Row, Standing
from uncanny.service.review.records import (
    ADDED,
    ImageRecord,
    image_key,
    no_collection,
    read_records,
    state_of,
)
from uncanny.service.review.sample import SampleQueue, Whole

# How many steps of a reviewer can be taken back, beyond which nobody remembers what they were.
UNDO_STEPS: Final = 1000
# Rows are added to the queue together: each time all of it is copied.
_IMAGES_AT_ONCE: Final = 1000
# What a reviewer did: the image, the finding, None for a completion, and the line in the log.
_Step = tuple[str, int | None, str]


class LoadedRun:
    """One run folder under review. `per_finding` verdicts of a finding are enough; None: all judge all.

    Findings below `min_confidence`, 0-1, are hidden until somebody asks for them. `rule` makes decisions of
    verdicts.
    """

    def __init__(
        self,
        read: ReadRun,
        *,
        per_finding: int | None = None,
        min_confidence: float = MIN_CONFIDENCE,
        rule: Rule = MAJORITY,
    ) -> None:
        """Reads the annotations and all reviews. Raises RecordError, UsageError."""
        self.folder = read.folder.path
        self.name = self.folder.resolve().name
        self._read, self._per_finding, self.min_confidence = read, per_finding, min_confidence
        self.rule = rule
        self._log = ReviewLog.of_run(self.folder)
        self._lock = RLock()
        self._load()

    @classmethod
    def open(
        cls,
        folder: Path,
        *,
        per_finding: int | None = None,
        min_confidence: float = MIN_CONFIDENCE,
        rule: Rule = MAJORITY,
    ) -> Self:
        """Raises UsageError where `folder` is no run with annotations, RecordError for an invalid line."""
        if not folder.is_dir():
            raise UsageError(f"{folder} is not a run folder", remedy="Pass the folder of a run.")
        read = open_run(folder)
        if not read.file.is_file():
            check_recorded(folder, read.file.name)
        return cls(read, per_finding=per_finding, min_confidence=min_confidence, rule=rule)

    def refresh(self) -> None:
        """Read the annotations anew where the run has gone on. Raises RecordError, UsageError."""
        with self._lock:
            if state_of(self._read.file) != self._state:
                self._load()
            self._catch_up()

    @contextmanager
    def _now(self) -> Iterator[None]:
        """One thread at a time, with what others have written by now."""
        with self._lock:
            self._catch_up()
            yield

    def _write(self, key: str, make: Callable[[ReviewedImage], Review | None]) -> None:
        with self._lock, self._log.locked():
            self._catch_up()
            reviewed, _ = self._reviewed(self._images[self._number(ImageEnd(key))])
            review = make(reviewed)
            if review is not None:
                self._log.append([review])
                self._catch_up()

    def _load(self) -> None:
        self._read = open_run(self.folder)
        self._state = state_of(self._read.file)
        self._images: list[ImageRecord] = []
        self._numbers: dict[str, int] = {}
        self._rows: dict[FindingId, int] = {}
        self._steps: dict[str, deque[_Step]] = {}
        self._undone: dict[str, tuple[str, _Step]] = {}
        self._whole: dict[int, Whole] = {}
        self._sampled: tuple[object, SampleQueue] | None = None
        self._end = 0
        self._latest: tuple[object, ReviewedImage, list[Review]] | None = None
        with no_collection():
            self._queue = ReviewQueue(
                self._read_rows(), self._per_finding, ties_are_open=self.rule.agree == "majority"
            )
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
        step = (key, review.anomaly, review.id)
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
            self._whole.pop(number, None)
            if reviewed.completed_by:
                self._whole[number] = Whole.of(reviewed, self.min_confidence)
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
        return review_image(record, lines, self.rule), lines

    def _sample(self) -> SampleQueue:
        """The sample as it is now. Raises UsageError where none was drawn, RecordError for an invalid one."""
        state = file_state(self.folder / SAMPLE)
        if self._sampled is None or self._sampled[0] != state:
            sample = read_sample(self.folder)
            if sample is None:
                raise UsageError(
                    f"{self.folder} has no sample of images to judge",
                    remedy="Draw one first: `uncanny sample RUN`.",
                )

            def image_of(key: str) -> tuple[int, ImageRecord] | None:
                number = self._numbers.get(key)
                return None if number is None else (number, self._images[number])

            queue = SampleQueue(sample, image_of, self._queue, self._whole, self._per_finding or 1)
            self._sampled = state, queue
        return self._sampled[1]

    def _number(self, at: Place) -> int:
        number = self._numbers.get(at.image)
        if number is None:
            raise UsageError("There is no such image in this run", remedy="Load the page again.")
        return number

    def _row(self, at: FindingId) -> int:
        row = self._rows.get(at)
        if row is None:
            raise UsageError("There is no such finding in this run", remedy="Load the page again.")
        return row

    def _id(self, row: int) -> FindingId:
        return FindingId(self._images[int(self._queue.image[row])].key, int(self._queue.anomaly[row]))
