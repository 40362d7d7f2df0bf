"""Edited images and originals judged by people: who is shown what and when, and what they said.

Each person sees every image once, in an order of their own that is the same each time, and never an edit next
to its original or to another edit of it. What they say goes to `judgements.jsonl` and `profiles.jsonl` of the
run folder (`eval/edits/people/data.py`). All methods may be called from several threads at once.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from threading import RLock
from typing import Any, Final

import orjson

from uncanny.errors import ImageError, ReviewConflictError, StorageError, UsageError
from uncanny.eval.edits.data import EditSet
from uncanny.eval.edits.people.data import FORM, JUDGEMENTS, PROFILES, Form, Judgement, Profile, Side, Verdict
from uncanny.images.prepared import Measured
from uncanny.records.jsonl import write_atomically
from uncanny.records.run_folder import check_apart
from uncanny.records.shared_log import SharedLog, file_state
from uncanny.schema import Box
from uncanny.service.decoding import measure
from uncanny.service.people.folder import begin
from uncanny.service.people.order import apart
from uncanny.service.pictures import Picture

TASK: Final = "edits_people"
LOCK: Final = ".judgements.lock"
MOST_BOXES: Final = 50


@dataclass(frozen=True, slots=True)
class Trial:
    """One image to be judged: `key` names it in addresses and tells nothing of it."""

    key: str
    id: str
    shown: Side
    path: Path
    name: str


@dataclass(frozen=True, slots=True)
class TrialView:
    """A trial as a person has it before them: the picture's size in pixels, as seen upright, and the place
    among all, from 1. `after_break` says that it follows a break."""

    key: str
    width: int
    height: int
    place: int
    of: int
    after_break: bool
    next: str | None


class PeopleJudging:
    """A run folder in which people judge the images of `pairs`.

    `form` is asked before the first image, None asks nothing. There is a break after every `break_every`
    images, with 0 none.
    """

    def __init__(self, pairs: EditSet, run: Path, *, form: Form | None = None, break_every: int = 50) -> None:
        """Makes the folder, or goes on with one. Raises UsageError, RunMismatchError, RecordError."""
        self.pairs, self.folder, self.form, self.break_every = pairs, run, form, break_every
        # Stands in addresses of pictures, which browsers keep: files may change while nothing is served.
        self.tag = f"{time.time_ns():x}"
        self.trials, self._groups = _trials(pairs)
        check_apart(run, (trial.path for trial in self.trials))
        self._originals = {each.id: str(each.original) for each in pairs}
        self._by_key = {trial.key: trial for trial in self.trials}
        self._log = SharedLog(run / JUDGEMENTS, Judgement, lock=LOCK, what="judgements", exclude_none=False)
        self._profiles = SharedLog(run / PROFILES, Profile, lock=LOCK, what="answers", exclude_none=False)
        self._lock = RLock()
        self._judged: dict[str, dict[str, Judgement]] = {}
        self._profiled: set[str] = set()
        # By person the place in their order before which nothing is taken back any more.
        self._left: dict[str, int] = {}
        self._orders: dict[str, list[Trial]] = {}
        self._files: dict[str, Measured | str] = {}
        self._failures: set[tuple[str, str, str | None]] = set()
        self._state: object = None
        self._begin()
        self._catch_up()

    def wants_profile(self, person: str) -> bool:
        """Whether the questionnaire is still to be asked."""
        with self._lock:
            self._catch_up()
            return self.form is not None and person not in self._profiled

    def keep_profile(self, person: str, answers: Mapping[str, str | None]) -> None:
        """Keep what a person says of themselves. Raises UsageError for what the form does not have."""
        options = {} if self.form is None else {each.id: each.options for each in self.form.questions}
        for name, answer in answers.items():
            if name not in options or (answer is not None and answer not in options[name]):
                raise UsageError("The questionnaire has no such answer", remedy="Load the page again.")
        with self._lock:
            full = {name: answers.get(name) for name in options}
            self._profiles.append([Profile(person=person, answers=full, at=_now())])
            self._catch_up()

    def current(self, person: str) -> TrialView | None:
        """The image to be judged now; None where all are.

        One that cannot be read is passed over; `judge` records it. This writes nothing. Raises StorageError
        where no image can be decoded now.
        """
        with self._lock:
            self._catch_up()
            trial = self._trial(person)
            if trial is None:
                return None
            file = self._files[trial.key]
            assert isinstance(file, Measured)
            done, of = self.progress(person)
            order, judged = self._order(person), self._judged.get(person, {})
            ahead = next((each.key for each in order if each.key not in judged and each is not trial), None)
            after_break = bool(self.break_every and done and done % self.break_every == 0)
            return TrialView(trial.key, file.width, file.height, done + 1, of, after_break, ahead)

    def progress(self, person: str) -> tuple[int, int]:
        """How many images this person has judged, and of how many."""
        with self._lock:
            return len(self._judged.get(person, {})), len(self.trials)

    def judge(
        self, person: str, key: str, judged: Verdict, boxes: Sequence[Box], seconds: float | None
    ) -> None:
        """Keep a judgement, and record the images around it that were passed over.

        Raises ReviewConflictError where this is not the image that is shown now, UsageError for boxes that
        reach beyond it.
        """
        with self._lock, self._log.locked():
            self._catch_up()
            trial = self._trial(person)
            if trial is None or trial.key != key:
                raise ReviewConflictError(
                    "This picture is judged already", remedy="This is the one that comes now."
                )
            file = self._files[key]
            assert isinstance(file, Measured)
            if judged == "real" and boxes:
                raise UsageError("A picture that is real has no boxes")
            for x0, y0, x1, y1 in boxes:
                if not (0 <= x0 < x1 <= file.width and 0 <= y0 < y1 <= file.height):
                    raise UsageError("A box reaches beyond the picture", remedy="Draw it anew.")
            self._append(self._line(person, trial, file, judged, boxes, seconds))
            self._left[person] = self._order(person).index(trial)
            self._record_failures(person)

    def undo(self, person: str) -> None:
        """Take the last judgement back. Raises ReviewConflictError where there is none, or it was done."""
        with self._lock, self._log.locked():
            self._catch_up()
            own = self._judged.get(person, {})
            last = next((each for each in reversed(own.values()) if each.judged is not None), None)
            if last is None:
                raise ReviewConflictError("There is nothing of yours to take back")
            trial = self._by_key[self._key(last)]
            if self._order(person).index(trial) < self._left.get(person, 0):
                raise ReviewConflictError("Only the last picture can be judged anew")
            self._log.remove(
                lambda each: each.person == person and (each.id, each.shown) == (last.id, last.shown)
            )
            self._catch_up()

    def picture(self, key: str) -> Picture | None:
        """The file of an image; None for no such image, and where it cannot be read."""
        with self._lock:
            trial = self._by_key.get(key)
            file = None if trial is None else self._file(trial)
            return Picture(trial.path, file.sha256) if trial and isinstance(file, Measured) else None

    # Within

    def _key(self, judgement: Judgement) -> str:
        """An original is one image, whichever of its pairs it is shown under."""
        edited = judgement.shown == "edited"
        return _key(judgement.shown, judgement.id if edited else self._originals[judgement.id])

    def _begin(self) -> None:
        source: Any = self.pairs.source
        if not isinstance(source, str):
            source = ", ".join(os.path.relpath(place, self.folder) for place in source)
        begin(self.folder, {"task": TASK, "pairs": source}, JUDGEMENTS)
        if self.form is not None:
            # What was asked stands beside what was answered.
            text = orjson.dumps(self.form.model_dump(mode="json"), option=orjson.OPT_INDENT_2)
            write_atomically(self.folder / FORM, [text])

    def _catch_up(self) -> None:
        """Read the files anew where others have written to them."""
        state = [file_state(log.path) for log in (self._log, self._profiles)]
        if state == self._state:
            return
        failed = {
            person: {key: each for key, each in own.items() if each.judged is None}
            for person, own in self._judged.items()
        }
        judged: dict[str, dict[str, Judgement]] = {}
        for each in self._log.read():
            if each.id not in self._originals:
                continue
            if each.judged is None:
                self._failures.add((each.person, each.id, each.error))
                continue  # is shown again
            own = judged.setdefault(each.person, {})
            key = self._key(each)
            own.pop(key, None)
            own[key] = each
        for person, unread in failed.items():
            judged.setdefault(person, {}).update(unread)
        self._judged, self._state = judged, state
        self._profiled = {profile.person for profile in self._profiles.read()}
        for person, own in judged.items():
            last = [key for key, each in own.items() if each.judged is not None]
            if last and person not in self._left:
                self._left[person] = self._order(person).index(self._by_key[last[-1]])

    def _order(self, person: str) -> list[Trial]:
        if person not in self._orders:
            self._orders[person] = [self.trials[place] for place in apart(self._groups, person)]
        return self._orders[person]

    def _trial(self, person: str) -> Trial | None:
        judged = self._judged.get(person, {})
        for trial in self._order(person):
            if trial.key in judged:
                continue
            file = self._file(trial)
            if isinstance(file, Measured):
                return trial
            judged = self._judged.setdefault(person, {})
            judged[trial.key] = self._line(person, trial, None, None, (), None, error=file)
        return None

    def _record_failures(self, person: str) -> None:
        """Write what this person was not shown, up to the image that is shown now, unless it is there."""
        self._trial(person)
        for each in self._judged[person].values():
            failure = (each.person, each.id, each.error)
            if each.judged is None and failure not in self._failures:
                self._failures.add(failure)
                self._append(each)

    def _file(self, trial: Trial) -> Measured | str:
        if trial.key not in self._files:
            try:
                self._files[trial.key] = measure(trial.path)
            except ImageError as error:
                self._files[trial.key] = str(error)
            except OSError as error:
                # Not the image's fault: nobody is to miss it for that.
                raise StorageError(
                    f"{trial.name} cannot be shown now: {error.strerror or error}",
                    remedy="Load the page again in a moment.",
                ) from error
        return self._files[trial.key]

    def _line(
        self,
        person: str,
        trial: Trial,
        file: Measured | None,
        judged: Verdict | None,
        boxes: Sequence[Box],
        seconds: float | None,
        *,
        error: str | None = None,
    ) -> Judgement:
        return Judgement(
            id=trial.id,
            shown=trial.shown,
            image=trial.name,
            person=person,
            judged=judged,
            boxes=tuple(boxes) if judged == "edited" else None,
            width=None if file is None else file.width,
            height=None if file is None else file.height,
            sha256=None if file is None else file.sha256,
            seconds=None if seconds is None else round(seconds, 2),
            error=error,
            at=_now(),
        )

    def _append(self, judgement: Judgement) -> None:
        with self._log.locked():
            self._log.append([judgement])
            self._judged.setdefault(judgement.person, {})[self._key(judgement)] = judgement
            self._state = [file_state(log.path) for log in (self._log, self._profiles)]


def _trials(pairs: EditSet) -> tuple[list[Trial], list[str]]:
    """Every image once, and the original that each belongs to."""
    trials: dict[str, Trial] = {}
    groups: list[str] = []
    for each in pairs:
        sides: tuple[tuple[Side, Path, str], ...] = (
            ("original", each.original, each.pair.original),
            ("edited", each.edited, each.pair.edited),
        )
        for shown, path, name in sides:
            key = _key(shown, each.id if shown == "edited" else str(each.original))
            if key not in trials:
                trials[key] = Trial(key, each.id, shown, path, name)
                groups.append(str(each.original))
    return list(trials.values()), groups


def _key(shown: Side, name: str) -> str:
    return sha256(f"{shown} {name}".encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
