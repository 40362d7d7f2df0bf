"""Pairs rated by people: who is shown which pair when, and how much they say has changed.

Each person rates the pairs in an order of their own that is the same each time, no two of one original after
each other where that can be, with attention checks among them. What they say goes to `ratings.jsonl` of the
run folder (`eval/edits/people/data.py`).
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

from uncanny.eval.edits.data import EditFiles, EditSet
from uncanny.eval.edits.people.data import CHANGES, RATINGS, Change, Rating
from uncanny.service.people.session import rounded
from uncanny.service.people.trials import Trial, TrialSession, shown_files


class PeopleRating(TrialSession[Rating]):
    """A run folder in which people rate `pairs`.

    Each `check_every` pairs have an attention check among them, with 0 none does: one of `checks`, until all
    were shown. Without these it is an original beside itself, or beside another original, where nothing or
    everything has changed, so that nobody passes who always answers the same. A pair that `per_pair` other
    people have rated is not shown any more; None shows everybody all. There is a break after every
    `break_every` pairs, with 0 none.
    """

    said_already = "You have already rated this pair, or it has enough ratings"
    left_already = "You can undo only your last rating"
    task, record_file, model, answer = "edits_rate", RATINGS, Rating, "change"

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
        self.check_every, self.per_pair = check_every, per_pair
        if not check_every:
            self.checks: list[Trial] = []
        elif checks is None:
            originals = list({str(each.original): each for each in pairs}.values())
            others = [*originals[1:], *originals[:1]]
            self.checks = [_beside(each, each, CHANGES[0]) for each in originals]
            if len(originals) > 1:
                self.checks += [_beside(*each, CHANGES[-1]) for each in zip(originals, others, strict=True)]
        else:
            self.checks = [_trial(each, known) for each, known in checks]
        trials = [_trial(each, None) for each in pairs]
        super().__init__(pairs, run, trials, self.checks, break_every=break_every)
        self._catch_up()

    def rate(self, person: str, key: str, change: Change, seconds: float | None) -> None:
        """Keep a rating, and record the pairs around it that were passed over.

        Raises ReviewConflictError where this is not the pair that is shown now.
        """

        def line(trial: Trial) -> Rating:
            digests = {f"{side}_sha256": file.sha256 for side, file in self._readable(trial).items()}
            return self._line(person, trial, {"change": change, **digests, "seconds": rounded(seconds)})

        self._say(person, key, line)

    # Within

    def _ordered(self, person: str) -> list[Trial]:
        """The pairs, and in each block of `check_every` one check, at a place that nobody can foresee."""
        order = super()._ordered(person)
        if not self.checks:
            return order
        chance = random.Random(person)
        checks = _alternating(chance.sample(self.checks, len(self.checks)))
        shown: list[Trial] = []
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

    def _open(self, person: str) -> list[Trial]:
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
        return self._current(line, _key(line.id, line.check))

    def _where(self, trial: Trial) -> Mapping[str, Any]:
        return {"check": trial.check, **{side: file.name for side, file in trial.files.items()}}


def _alternating(checks: Sequence[Trial]) -> list[Trial]:
    """Checks of one answer after those of another, as far as there are any."""
    often = Counter[Change | None]()
    ranks: dict[str, int] = {}
    for each in checks:
        ranks[each.key] = often[each.check]
        often[each.check] += 1
    return sorted(checks, key=lambda each: ranks[each.key])


def _trial(files: EditFiles, check: Change | None) -> Trial:
    return Trial(_key(files.id, check), files.id, str(files.original), shown_files(files), check)


def _beside(files: EditFiles, other: EditFiles, check: Change) -> Trial:
    """A check with the original of one pair beside that of another, or itself."""
    trial = _trial(files, check)
    original = shown_files(other)["original"]
    return replace(trial, files={"original": trial.files["original"], "edited": original})


def _key(pair: str, check: Change | None) -> str:
    return sha256(f"{check} {pair}".encode("utf-8", "surrogatepass")).hexdigest()[:16]
