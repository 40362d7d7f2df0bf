"""What people say in a run folder, one thing after another: what comes next, the way back, what went wrong.

A person sees things in an order that is theirs. What they say is a line of a file that several processes may
write to. All methods may be called from several threads at once.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from threading import RLock
from typing import Any, Generic, TypeVar

from pydantic import BaseModel

from uncanny import __version__
from uncanny.errors import ReviewConflictError, UsageError
from uncanny.records.run_folder import RunFolder, check_same_protocol
from uncanny.records.run_manifest import FORMAT, RunManifest
from uncanny.records.shared_log import SharedLog, file_state
from uncanny.wording import option

T = TypeVar("T")
L = TypeVar("L", bound=BaseModel)
V = TypeVar("V")


class PeopleSession(Generic[T, L, V]):
    """A run folder in which people say something of things (`T`), each a line (`L`) of `log`.

    `V` is a thing as a person has it before them. There is a break after every `break_every` things, with 0
    none. The folder is made with `settings`, or has the same. What cannot be shown is passed over, and
    recorded once its person says something of another thing; it is shown again after a restart.
    """

    said_already: str
    left_already: str
    break_every = 0

    def __init__(self, folder: Path, log: SharedLog[L], settings: Mapping[str, Any]) -> None:
        """Raises UsageError, RunMismatchError, RecordError."""
        self.folder = folder
        # Stands in addresses of pictures, which browsers keep: files may change while nothing is served.
        self.tag = f"{time.time_ns():x}"
        self._log, self._logs = log, [log.path]
        self._lock = RLock()
        self._said: dict[str, dict[Hashable, L]] = {}
        # By person the place in their order before which nothing is taken back any more.
        self._left: dict[str, int] = {}
        self._orders: dict[str, Sequence[T]] = {}
        # Failures that the file has already.
        self._failures: set[tuple[str, Hashable, str | None]] = set()
        self._state: object = None
        _begin(folder, settings, log.path.name)

    def current(self, person: str) -> V | None:
        """What this person has to say something of now; None where there is nothing more.

        What cannot be shown is passed over, and recorded with what is said next. This writes nothing. Raises
        StorageError where nothing can be shown now.
        """
        with self._lock:
            self._catch_up()
            thing = self._now(person)
            if thing is None:
                return None
            following = self._open(person)[1:2]
            return self._view(person, thing, following[0] if following else None)

    def rests(self, person: str) -> bool:
        """Whether it is time for a break."""
        done, _ = self.progress(person)
        return bool(self.break_every and done and done % self.break_every == 0)

    def progress(self, person: str) -> tuple[int, int]:
        """Of how many things this person has said something, and of how many they are to, now.

        What could not be shown is in neither.
        """
        with self._lock:
            self._catch_up()
            order, said = self._order(person), self._said.get(person, {})
            lines = [said[key] for key in map(self._key, order) if key in said]
            done = sum(self._error(line) is None for line in lines)
            return done, done + len(self._open(person))

    def unshown(self, person: str) -> int:
        """How many things could not be shown to this person."""
        with self._lock:
            return sum(self._error(line) is not None for line in self._said.get(person, {}).values())

    def undo(self, person: str) -> None:
        """Take the last line back. Raises ReviewConflictError where there is none, or its group was left."""
        with self._lock, self._log.locked():
            self._catch_up()
            said = self._said.get(person, {})
            key = next((key for key, line in reversed(said.items()) if self._error(line) is None), None)
            if key is None:
                raise ReviewConflictError("You have nothing to undo")
            if self._place(person, key) < self._left.get(person, 0):
                raise ReviewConflictError(self.left_already)
            self._log.remove(lambda line: self._of(line) == (person, key))
            self._catch_up()

    # What a protocol says of its things and lines.

    def _key(self, thing: T) -> Hashable:
        raise NotImplementedError

    def _view(self, person: str, thing: T, following: T | None) -> V:
        raise NotImplementedError

    def _group(self, key: Hashable) -> Hashable:
        """Things of a group follow each other, and are taken back until the next group is begun."""
        return key

    def _ordered(self, person: str) -> Sequence[T]:
        raise NotImplementedError

    def _of(self, line: L) -> tuple[str, Hashable] | None:
        """Whose line it is, and of which thing; None where that is not asked, or not any more."""
        raise NotImplementedError

    def _error(self, line: L) -> str | None:
        """Why the thing of a line could not be shown; None where it was."""
        raise NotImplementedError

    def _fault(self, thing: T) -> str | None:
        """Why a thing cannot be shown. Raises StorageError where that may pass."""
        raise NotImplementedError

    def _failure(self, person: str, thing: T, error: str) -> L:
        raise NotImplementedError

    # Within

    def _say(self, person: str, asked: Hashable, make: Callable[[T], L]) -> None:
        """Keep a line about the thing that is shown now, with those around it that were passed over.

        Raises ReviewConflictError where that is not the one with the key `asked`.
        """
        with self._lock, self._log.locked():
            self._catch_up()
            thing = self._now(person)
            if thing is None or self._key(thing) != asked:
                raise ReviewConflictError(self.said_already, remedy="This is the one that comes now.")
            self._append(person, self._key(thing), make(thing))
            self._left[person] = self._place(person, self._key(thing))
            self._now(person)
            for key, line in list(self._said[person].items()):
                error = self._error(line)
                if error is not None and (person, key, error) not in self._failures:
                    self._failures.add((person, key, error))
                    self._append(person, key, line)

    def _catch_up(self) -> None:
        """Read the files anew where others have written to them."""
        state = [file_state(path) for path in self._logs]
        if state == self._state:
            return
        read: dict[str, dict[Hashable, L]] = {}
        for line in self._log.read():
            if (of := self._of(line)) is None:
                continue
            person, key = of
            if (error := self._error(line)) is not None:
                self._failures.add((person, key, error))
                continue  # is shown again
            # In order of the latest words: undo begins with these.
            said = read.setdefault(person, {})
            said.pop(key, None)
            said[key] = line
        for person, said in read.items():
            if person not in self._left:
                self._left[person] = self._place(person, next(reversed(said)))
        for person, said in self._said.items():
            failed = {key: line for key, line in said.items() if self._error(line) is not None}
            read.setdefault(person, {}).update(failed)
        self._said, self._state = read, state
        self._read_more()

    def _read_more(self) -> None:
        """What else there is to be read anew."""

    def _order(self, person: str) -> Sequence[T]:
        if person not in self._orders:
            self._orders[person] = self._ordered(person)
        return self._orders[person]

    def _place(self, person: str, key: Hashable) -> int:
        """Where the group of a thing begins in this person's order."""
        group = self._group(key)
        order = enumerate(self._order(person))
        return next((place for place, thing in order if self._group(self._key(thing)) == group), 0)

    def _open(self, person: str) -> list[T]:
        """What this person has said nothing of, in their order."""
        said = self._said.get(person, {})
        return [thing for thing in self._order(person) if self._key(thing) not in said]

    def _now(self, person: str) -> T | None:
        """What is shown to this person now; None where there is nothing more."""
        for thing in self._open(person):
            if (error := self._fault(thing)) is None:
                return thing
            said = self._said.setdefault(person, {})
            said[self._key(thing)] = self._failure(person, thing, error)
        return None

    def _append(self, person: str, key: Hashable, line: L) -> None:
        with self._log.locked():
            self._log.append([line])
            self._said.setdefault(person, {})[key] = line
            self._state = [file_state(path) for path in self._logs]


def _begin(path: Path, settings: Mapping[str, Any], record_file: str) -> None:
    """Make the folder with a `run.json` that has `settings`, or see to it that its own has the same.

    Raises UsageError where it cannot be made or contains records of another kind, RunMismatchError.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(
            f"{path} cannot be made: {error.strerror or error}", remedy="Pass another folder."
        ) from error
    folder = RunFolder(path)
    before = folder.read_manifest()
    if before is not None:
        written = before.written()
        check_same_protocol(folder, {key: written.get(key) for key in settings}, dict(settings))
        return
    if folder.begun():
        raise UsageError(
            f"{path} contains records of another kind", remedy=f"Pass another one with {option('out')}."
        )
    head = {"format": FORMAT, "uncanny": __version__, "started": datetime.now(UTC).isoformat()}
    manifest = RunManifest.model_validate({**head, **settings, "record_file": record_file})
    folder.write_manifest(manifest.written())


def rounded(seconds: float | None) -> float | None:
    """Seconds as lines have them."""
    return None if seconds is None else round(seconds, 2)


def now() -> str:
    """The time in UTC, to the second, as ISO 8601."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def apart(groups: Sequence[Hashable], seed: str) -> list[int]:
    """The places of `groups` in a shuffled order in which no two of one group follow each other.

    Where that cannot be, because one group has more than half of the places, those that are too many stand
    together at the end. The same `seed` gives the same order.

    >>> apart(["cup", "cup", "dog", "dog"], "Ann") == apart(["cup", "cup", "dog", "dog"], "Ann")
    True
    """
    order = list(range(len(groups)))
    random.Random(seed).shuffle(order)
    place = 1
    while place < len(order):
        before = groups[order[place - 1]]
        if groups[order[place]] == before:
            other = next((at for at in range(place + 1, len(order)) if groups[order[at]] != before), None)
            if other is None:
                break
            order[place], order[other] = order[other], order[place]
        place += 1
    # What is left is of one group: between others, wherever there is room.
    rest, order = order[place:], order[:place]
    for each in rest:
        group = groups[each]
        room = (
            at
            for at in range(len(order) + 1)
            if (at == 0 or groups[order[at - 1]] != group)
            and (at == len(order) or groups[order[at]] != group)
        )
        order.insert(next(room, len(order)), each)
    return order
