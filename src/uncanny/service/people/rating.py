"""Pairs rated by people: who is shown which pair when, and how much they say has changed.

Each person rates the pairs in an order of their own that is the same each time, no two of one original after
each other where that can be, with attention checks among them. What they say goes to `ratings.jsonl` of the
run folder (`eval/edits/people/data.py`).
"""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from uncanny.eval.edits.data import EditFiles, EditSet
from uncanny.eval.edits.people.data import CHANGES, RATINGS, Change, Rating, Side
from uncanny.images.prepared import Measured
from uncanny.records.run_folder import check_apart
from uncanny.records.shared_log import SharedLog
from uncanny.service.people.session import PeopleSession, PictureFiles, apart, now
from uncanny.service.pictures import Picture

TASK: Final = "edits_rate"
LOCK: Final = ".ratings.lock"


@dataclass(frozen=True, slots=True)
class PairTrial:
    """One pair to be rated: `key` names it in addresses and tells nothing of it. `check` is the right answer
    of an attention check, `group` the original that it belongs to."""

    key: str
    id: str
    check: Change | None
    original: Path
    edited: Path
    names: tuple[str, str]
    group: str

    def path(self, side: Side) -> Path:
        return self.original if side == "original" else self.edited


@dataclass(frozen=True, slots=True)
class PairView:
    """A trial as a person has it before them: width and height of both files in pixels, as seen upright."""

    key: str
    original: tuple[int, int]
    edited: tuple[int, int]
    after_break: bool
    next: str | None


class PeopleRating(PeopleSession[PairTrial, Rating]):
    """A run folder in which people rate `pairs`.

    Each `check_every` pairs have an attention check among them, with 0 none does: one of `checks`, until all
    were shown. Without these it is an original beside itself, or beside another original, where nothing or
    everything has changed, so that nobody passes who always answers the same. A pair that `per_pair` other
    people have rated is not shown any more; None shows everybody all. There is a break after every
    `break_every` pairs, with 0 none.
    """

    said_already = "You have already rated this pair, or it has enough ratings"
    left_already = "You can undo only your last rating"

    def __init__(
        self,
        pairs: EditSet,
        run: Path,
        *,
        checks: Sequence[tuple[EditFiles, Change]] | None = None,
        check_every: int = 10,
        per_pair: int | None = None,
        break_every: int = 50,
    ) -> None:
        """Makes the folder, or goes on with one. Raises UsageError, RunMismatchError, RecordError."""
        self.check_every, self.per_pair, self.break_every = check_every, per_pair, break_every
        self.trials = [_trial(each, None) for each in pairs]
        if not check_every:
            self.checks: list[PairTrial] = []
        elif checks is None:
            originals = list({str(each.original): each for each in pairs}.values())
            others = [*originals[1:], *originals[:1]]
            self.checks = [_unchanged(each) for each in originals]
            if len(originals) > 1:
                self.checks += [_another(each, other) for each, other in zip(originals, others, strict=True)]
        else:
            self.checks = [_trial(each, known) for each, known in checks]
        self._by_key = {trial.key: trial for trial in (*self.trials, *self.checks)}
        check_apart(run, (path for each in self._by_key.values() for path in (each.original, each.edited)))
        self._files = PictureFiles()
        source: Any = pairs.source
        if not isinstance(source, str):
            source = ", ".join(os.path.relpath(place, run) for place in source)
        log = SharedLog(run / RATINGS, Rating, lock=LOCK, what="ratings", exclude_none=False)
        super().__init__(run, log, {"task": TASK, "pairs": source})
        self._catch_up()

    def current(self, person: str) -> PairView | None:
        """The pair to be rated now; None where all are. Raises StorageError where nothing can be decoded."""
        with self._lock:
            self._catch_up()
            trial = self._now(person)
            if trial is None:
                return None
            done, _ = self.progress(person)
            ahead = [each.key for each in self._open(person)[1:2]]
            original, edited = ((file.width, file.height) for file in self._measured(trial))
            after_break = bool(self.break_every and done and done % self.break_every == 0)
            return PairView(trial.key, original, edited, after_break, ahead[0] if ahead else None)

    def rate(self, person: str, key: str, change: Change, seconds: float | None) -> None:
        """Keep a rating, and record the pairs around it that were passed over.

        Raises ReviewConflictError where this is not the pair that is shown now.
        """

        def line(trial: PairTrial) -> Rating:
            original, edited = self._measured(trial)
            return self._line(
                person,
                trial,
                change=change,
                original_sha256=original.sha256,
                edited_sha256=edited.sha256,
                seconds=None if seconds is None else round(seconds, 2),
            )

        self._say(person, key, line)

    def picture(self, key: str, side: Side) -> Picture | None:
        """The file of one side; None for no such pair, and where it cannot be read."""
        with self._lock:
            trial = self._by_key.get(key)
            if trial is None:
                return None
            file = self._file(trial, side)
            return Picture(trial.path(side), file.sha256) if isinstance(file, Measured) else None

    # Within

    def _key(self, thing: PairTrial) -> str:
        return thing.key

    def _ordered(self, person: str) -> list[PairTrial]:
        """The pairs, and in each block of `check_every` one check, at a place that nobody can foresee."""
        order = [self.trials[place] for place in apart([each.group for each in self.trials], person)]
        if not self.checks:
            return order
        chance = random.Random(person)
        checks = _alternating(chance.sample(self.checks, len(self.checks)))
        shown: list[PairTrial] = []
        for start in range(0, len(order), self.check_every):
            block = order[start : start + self.check_every]
            place = chance.randint(1, len(block)) if checks else 0
            if checks:
                beside = {each.group for each in block[max(0, place - 1) : place + 1]}
                check = next((each for each in checks if each.group not in beside), checks[0])
                checks.remove(check)
                block.insert(place, check)
            shown += block
        return shown

    def _open(self, person: str) -> list[PairTrial]:
        trials = super()._open(person)
        if self.per_pair is None:
            return trials
        done = {
            trial.key
            for trial in self.trials
            if sum(self._is_rated(other, trial.key) for other in self._said if other != person)
            >= self.per_pair
        }
        left = [each for each in trials if each.key not in done]
        # Checks alone say nothing of the pairs.
        return left if any(each.check is None for each in left) else []

    def _is_rated(self, person: str, key: str) -> bool:
        line = self._said[person].get(key)
        return line is not None and line.change is not None

    def _of(self, line: Rating) -> tuple[str, str] | None:
        trial = self._by_key.get(_key(line.id, line.check))
        if trial is None or self._files.replaced(line.files(trial.original, trial.edited)):
            return None
        return line.person, trial.key

    def _error(self, line: Rating) -> str | None:
        return (line.error or "") if line.change is None else None

    def _fault(self, thing: PairTrial) -> str | None:
        files = (self._file(thing, "original"), self._file(thing, "edited"))
        return next((each for each in files if isinstance(each, str)), None)

    def _failure(self, person: str, thing: PairTrial, error: str) -> Rating:
        return self._line(person, thing, change=None, error=error)

    def _file(self, trial: PairTrial, side: Side) -> Measured | str:
        return self._files.of(trial.path(side), trial.names[side == "edited"])

    def _measured(self, trial: PairTrial) -> tuple[Measured, Measured]:
        original, edited = self._file(trial, "original"), self._file(trial, "edited")
        assert isinstance(original, Measured)
        assert isinstance(edited, Measured)
        return original, edited

    def _line(self, person: str, trial: PairTrial, **about: Any) -> Rating:
        original, edited = trial.names
        where = {"id": trial.id, "check": trial.check, "original": original, "edited": edited}
        return Rating.model_validate({**where, "person": person, "at": now(), **about})


def _trial(files: EditFiles, check: Change | None) -> PairTrial:
    names = (files.pair.original, files.pair.edited)
    key = _key(files.id, check)
    return PairTrial(key, files.id, check, files.original, files.edited, names, str(files.original))


def _alternating(checks: Sequence[PairTrial]) -> list[PairTrial]:
    """Checks of one answer after those of another, as far as there are any."""
    often = Counter[Change | None]()
    ranks: dict[str, int] = {}
    for each in checks:
        ranks[each.key] = often[each.check]
        often[each.check] += 1
    return sorted(checks, key=lambda each: ranks[each.key])


def _unchanged(files: EditFiles) -> PairTrial:
    """A check with the original on both sides."""
    return _another(files, files, CHANGES[0])


def _another(files: EditFiles, other: EditFiles, check: Change = CHANGES[-1]) -> PairTrial:
    """A check with the original beside that of another pair."""
    names = (files.pair.original, other.pair.original)
    key = _key(files.id, check)
    return PairTrial(key, files.id, check, files.original, other.original, names, str(files.original))


def _key(pair: str, check: Change | None) -> str:
    return sha256(f"{check} {pair}".encode("utf-8", "surrogatepass")).hexdigest()[:16]
