"""Edited images and originals judged by people: who is shown what and when, and what they said.

Each person sees every image once, in an order of their own that is the same each time, and never an edit next
to its original or to another edit of it. What they say goes to `judgements.jsonl` and `profiles.jsonl` of the
run folder (`eval/edits/people/data.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

import orjson

from uncanny.errors import UsageError
from uncanny.eval.edits.data import EditSet
from uncanny.eval.edits.people.data import FORM, JUDGEMENTS, PROFILES, Form, Judgement, Profile, Side, Verdict
from uncanny.records.jsonl import write_atomically
from uncanny.records.shared_log import SharedLog
from uncanny.schema import Box
from uncanny.service.people.session import now, rounded
from uncanny.service.people.trials import Trial, TrialSession, shown_files

MOST_BOXES: Final = 50


class PeopleJudging(TrialSession[Judgement]):
    """A run folder in which people judge the images of `pairs`.

    `form` is asked before the first image, None asks nothing.
    """

    said_already = "This picture is judged already"
    left_already = "You can undo only your last judgment"
    task, record_file, model, answer = "edits_people", JUDGEMENTS, Judgement, "judged"

    def __init__(self, pairs: EditSet, run: Path, *, form: Form | None = None, break_every: int = 50) -> None:
        """Makes the folder, or goes on with one. Raises UsageError, RunMismatchError, RecordError."""
        self.form = form
        self._originals = {each.id: str(each.original) for each in pairs}
        super().__init__(pairs, run, _trials(pairs), break_every=break_every)
        lock = self._log.path.with_suffix(".lock").name
        self._profiles = SharedLog(
            run / PROFILES, Profile, lock=f".{lock}", what="answers", exclude_none=False
        )
        self._profiled: set[str] = set()
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

    def judge(
        self, person: str, key: str, judged: Verdict, boxes: Sequence[Box], seconds: float | None
    ) -> None:
        """Keep a judgement, and record the images around it that were passed over.

        Raises ReviewConflictError where this is not the image that is shown now, UsageError for boxes that
        reach beyond it.
        """

        def line(trial: Trial) -> Judgement:
            (file,) = self._readable(trial).values()
            if judged == "real" and boxes:
                raise UsageError("A real picture cannot have boxes")
            for x0, y0, x1, y1 in boxes:
                if not (0 <= x0 < x1 <= file.width and 0 <= y0 < y1 <= file.height):
                    raise UsageError("A box reaches beyond the picture", remedy="Draw it again.")
            drawn = tuple(boxes) if judged == "edited" else None
            said = {"judged": judged, "boxes": drawn, **file._asdict(), "seconds": rounded(seconds)}
            return self._line(person, trial, said)

        self._say(person, key, line)

    # Within

    def _of(self, line: Judgement) -> tuple[str, str] | None:
        """An original is one image, whichever of its pairs it is shown under."""
        name = line.id if line.shown == "edited" else self._originals.get(line.id)
        return None if name is None else self._current(line, _key(line.shown, name))

    def _where(self, trial: Trial) -> Mapping[str, Any]:
        ((shown, file),) = trial.files.items()
        return {"shown": shown, "image": file.name}

    def _read_more(self) -> None:
        self._profiled = {profile.person for profile in self._profiles.read()}


def _trials(pairs: EditSet) -> list[Trial]:
    """Every image once."""
    trials: dict[str, Trial] = {}
    for each in pairs:
        for shown, file in shown_files(each).items():
            key = _key(shown, each.id if shown == "edited" else str(each.original))
            trials.setdefault(key, Trial(key, each.id, str(each.original), {shown: file}))
    return list(trials.values())


def _key(shown: Side, name: str) -> str:
    return sha256(f"{shown} {name}".encode("utf-8", "surrogatepass")).hexdigest()[:16]
