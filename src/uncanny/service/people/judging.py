"""Edited images and originals judged by people: who is shown what and when, and what they said.

Each person sees every image once, in an order of their own that is the same each time, and never an edit next
to its original or to another edit of it. What they say goes to `judgements.jsonl` and `profiles.jsonl` of the
run folder (`eval/edits/people/data.py`).
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

import orjson

from uncanny.errors import UsageError
from uncanny.eval.edits.data import EditSet
from uncanny.eval.edits.people.data import FORM, JUDGEMENTS, PROFILES, Form, Judgement, Profile, Side, Verdict
from uncanny.images.prepared import Measured
from uncanny.records.jsonl import write_atomically
from uncanny.records.run_folder import check_apart
from uncanny.records.shared_log import SharedLog
from uncanny.schema import Box
from uncanny.service.people.session import PeopleSession, PictureFiles, apart, now
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


class PeopleJudging(PeopleSession[Trial, Judgement]):
    """A run folder in which people judge the images of `pairs`.

    `form` is asked before the first image, None asks nothing. There is a break after every `break_every`
    images, with 0 none.
    """

    said_already = "This picture is judged already"
    left_already = "You can undo only your last judgment"

    def __init__(self, pairs: EditSet, run: Path, *, form: Form | None = None, break_every: int = 50) -> None:
        """Makes the folder, or goes on with one. Raises UsageError, RunMismatchError, RecordError."""
        self.pairs, self.form, self.break_every = pairs, form, break_every
        self.trials, self._groups = _trials(pairs)
        check_apart(run, (trial.path for trial in self.trials))
        self._originals = {each.id: str(each.original) for each in pairs}
        self._by_key = {trial.key: trial for trial in self.trials}
        self._profiles = SharedLog(run / PROFILES, Profile, lock=LOCK, what="answers", exclude_none=False)
        self._profiled: set[str] = set()
        self._files = PictureFiles()
        source: Any = pairs.source
        if not isinstance(source, str):
            source = ", ".join(os.path.relpath(place, run) for place in source)
        log = SharedLog(run / JUDGEMENTS, Judgement, lock=LOCK, what="judgements", exclude_none=False)
        super().__init__(run, log, {"task": TASK, "pairs": source})
        self._logs.append(self._profiles.path)
        if form is not None:
            # What was asked stands beside what was answered.
            text = orjson.dumps(form.model_dump(mode="json"), option=orjson.OPT_INDENT_2)
            write_atomically(run / FORM, [text])
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
            self._profiles.append([Profile(person=person, answers=full, at=now())])
            self._catch_up()

    def current(self, person: str) -> TrialView | None:
        """The image to be judged now; None where all are.

        One that cannot be read is passed over; `judge` records it. This writes nothing. Raises StorageError
        where no image can be decoded now.
        """
        with self._lock:
            self._catch_up()
            trial = self._now(person)
            if trial is None:
                return None
            file = self._file(trial)
            assert isinstance(file, Measured)
            done, of = self.progress(person)
            ahead = [each.key for each in self._open(person)[1:2]]
            after_break = bool(self.break_every and done and done % self.break_every == 0)
            following = ahead[0] if ahead else None
            return TrialView(trial.key, file.width, file.height, done + 1, of, after_break, following)

    def judge(
        self, person: str, key: str, judged: Verdict, boxes: Sequence[Box], seconds: float | None
    ) -> None:
        """Keep a judgement, and record the images around it that were passed over.

        Raises ReviewConflictError where this is not the image that is shown now, UsageError for boxes that
        reach beyond it.
        """

        def line(trial: Trial) -> Judgement:
            file = self._file(trial)
            assert isinstance(file, Measured)
            if judged == "real" and boxes:
                raise UsageError("A real picture cannot have boxes")
            for x0, y0, x1, y1 in boxes:
                if not (0 <= x0 < x1 <= file.width and 0 <= y0 < y1 <= file.height):
                    raise UsageError("A box reaches beyond the picture", remedy="Draw it again.")
            return self._line(
                person,
                trial,
                judged=judged,
                boxes=tuple(boxes) if judged == "edited" else None,
                **file._asdict(),
                seconds=None if seconds is None else round(seconds, 2),
            )

        self._say(person, key, line)

    def picture(self, key: str) -> Picture | None:
        """The file of an image; None for no such image, and where it cannot be read."""
        with self._lock:
            trial = self._by_key.get(key)
            file = None if trial is None else self._file(trial)
            return Picture(trial.path, file.sha256) if trial and isinstance(file, Measured) else None

    # Within

    def _key(self, thing: Trial) -> str:
        return thing.key

    def _ordered(self, person: str) -> list[Trial]:
        return [self.trials[place] for place in apart(self._groups, person)]

    def _of(self, line: Judgement) -> tuple[str, str] | None:
        """An original is one image, whichever of its pairs it is shown under."""
        if line.id not in self._originals:
            return None
        name = line.id if line.shown == "edited" else self._originals[line.id]
        trial = self._by_key[_key(line.shown, name)]
        return None if self._files.replaced(line.files(trial.path, trial.path)) else (line.person, trial.key)

    def _error(self, line: Judgement) -> str | None:
        return (line.error or "") if line.judged is None else None

    def _fault(self, thing: Trial) -> str | None:
        file = self._file(thing)
        return file if isinstance(file, str) else None

    def _failure(self, person: str, thing: Trial, error: str) -> Judgement:
        return self._line(person, thing, error=error)

    def _read_more(self) -> None:
        self._profiled = {profile.person for profile in self._profiles.read()}

    def _file(self, trial: Trial) -> Measured | str:
        return self._files.of(trial.path, trial.name)

    def _line(self, person: str, trial: Trial, **about: Any) -> Judgement:
        unknown = dict.fromkeys(("judged", "boxes", "width", "height", "sha256", "seconds", "error"))
        where = {"id": trial.id, "shown": trial.shown, "image": trial.name}
        return Judgement.model_validate({**where, "person": person, "at": now(), **unknown, **about})


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
