"""Pictures of pairs that people judge or rate: what is shown when, and the run folder of what they say."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

from uncanny.errors import ImageError, StorageError
from uncanny.eval.edits.data import EditFiles, EditSet
from uncanny.eval.edits.people.data import Change, Judgement, Rating, Side
from uncanny.images.file_bytes import RecordedFile, changed_files
from uncanny.images.prepared import Measured
from uncanny.records.run_folder import check_apart
from uncanny.records.shared_log import SharedLog
from uncanny.service.decoding import measure
from uncanny.service.people.session import PeopleSession, apart, now
from uncanny.service.pictures import Picture

L = TypeVar("L", Judgement, Rating)


class ShownFile(NamedTuple):
    """A picture, and what people call its file."""

    path: Path
    name: str


@dataclass(frozen=True, slots=True)
class Trial:
    """What is shown at once: one picture to be judged, or both of a pair to be rated.

    `key` names it in addresses and tells nothing of it. `group` is the original that it belongs to.
    `check` is the right answer of an attention check.
    """

    key: str
    id: str
    group: str
    files: Mapping[Side, ShownFile]
    check: Change | None = None


@dataclass(frozen=True, slots=True)
class TrialView:
    """A trial as a person has it before them: width and height of each picture in pixels, as seen upright,
    and the key of the trial after it."""

    key: str
    sizes: Mapping[Side, tuple[int, int]]
    next: str | None


class TrialSession(PeopleSession[Trial, L, TrialView], Generic[L]):
    """A run folder in which people say something of `trials` with the pictures of `pairs`.

    What was said of a picture that was replaced since is asked again. Lines of the `record_file` are of the
    `model`, whose field `answer` is None where a trial could not be shown.
    """

    task: ClassVar[str]
    record_file: ClassVar[str]
    model: ClassVar[type[Any]]
    answer: ClassVar[str]

    def __init__(
        self,
        pairs: EditSet,
        run: Path,
        trials: Sequence[Trial],
        also: Sequence[Trial] = (),
        *,
        break_every: int,
    ) -> None:
        """Makes the folder, or goes on with one; `also` are shown among `trials`.

        Raises UsageError, RunMismatchError, RecordError.
        """
        self.break_every, self.trials = break_every, trials
        self._by_key = {trial.key: trial for trial in (*trials, *also)}
        shown = [file.path for each in self._by_key.values() for file in each.files.values()]
        check_apart(run, shown)
        self._files = PictureFiles()
        source: Any = pairs.source
        if not isinstance(source, str):
            source = ", ".join(os.path.relpath(place, run) for place in source)
        what = Path(self.record_file).stem
        log: SharedLog[Any] = SharedLog(
            run / self.record_file, self.model, lock=f".{what}.lock", what=what, exclude_none=False
        )
        super().__init__(run, log, {"task": self.task, "pairs": source})

    def picture(self, key: str, side: Side | None = None) -> Picture | None:
        """The file of one side, None for the only one; None for no such trial, or if it cannot be read."""
        with self._lock:
            trial = self._by_key.get(key)
            if trial is None:
                return None
            measured = self._measured(trial)
            shown = next(iter(measured)) if side is None else side
            file = measured.get(shown)
            return Picture(trial.files[shown].path, file.sha256) if isinstance(file, Measured) else None

    # Within

    def _key(self, thing: Trial) -> str:
        return thing.key

    def _view(self, person: str, thing: Trial, following: Trial | None) -> TrialView:  # noqa: ARG002
        sizes = {side: (file.width, file.height) for side, file in self._readable(thing).items()}
        return TrialView(thing.key, sizes, None if following is None else following.key)

    def _fault(self, thing: Trial) -> str | None:
        return next((each for each in self._measured(thing).values() if isinstance(each, str)), None)

    def _error(self, line: L) -> str | None:
        return (line.error or "") if getattr(line, self.answer) is None else None

    def _failure(self, person: str, thing: Trial, error: str) -> L:
        return self._line(person, thing, {self.answer: None, "error": error})

    def _ordered(self, person: str) -> list[Trial]:
        return [self.trials[place] for place in apart([each.group for each in self.trials], person)]

    def _line(self, person: str, trial: Trial, said: Mapping[str, Any]) -> L:
        """A line with what is said of a trial; `_where` names the trial."""
        line: L = self.model.model_validate(
            {"id": trial.id, **self._where(trial), "person": person, "at": now(), **said}
        )
        return line

    def _where(self, trial: Trial) -> Mapping[str, Any]:
        raise NotImplementedError

    def _current(self, line: L, key: str) -> tuple[str, str] | None:
        """Whose line it is, and of which trial; None of a trial or picture that is not there any more."""
        trial = self._by_key.get(key)
        if trial is None:
            return None
        paths = [file.path for file in trial.files.values()]
        return None if self._files.replaced(line.files(paths[0], paths[-1])) else (line.person, key)

    def _measured(self, trial: Trial) -> dict[Side, Measured | str]:
        return {side: self._files.of(*file) for side, file in trial.files.items()}

    def _readable(self, trial: Trial) -> dict[Side, Measured]:
        """The same of a trial without a fault."""
        return {side: file for side, file in self._measured(trial).items() if isinstance(file, Measured)}


def shown_files(pair: EditFiles) -> dict[Side, ShownFile]:
    """Both pictures of a pair."""
    return {
        "original": ShownFile(pair.original, pair.pair.original),
        "edited": ShownFile(pair.edited, pair.pair.edited),
    }


class PictureFiles:
    """What the files of pictures measure, or why they cannot be shown; each is looked at once."""

    def __init__(self) -> None:
        self._files: dict[Path, Measured | str] = {}
        self._replaced: dict[RecordedFile, bool] = {}

    def replaced(self, shown: Set[RecordedFile]) -> bool:
        """Whether one of the files has other bytes than when it was shown; one that is gone has not."""
        changed = changed_files(new := shown - self._replaced.keys())
        self._replaced |= {file: file in changed for file in new}
        return any(self._replaced[file] for file in shown)

    def of(self, path: Path, name: str) -> Measured | str:
        """`name` is what people call the file. Raises StorageError where no image can be decoded now."""
        if path not in self._files:
            try:
                self._files[path] = measure(path)
            except ImageError as error:
                self._files[path] = str(error)
            except OSError as error:
                # Not the image's fault: nobody is to miss it for that.
                raise StorageError(
                    f"{name} cannot be shown now: {error.strerror or error}",
                    remedy="Load the page again in a moment.",
                ) from error
        return self._files[path]
