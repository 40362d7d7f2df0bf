"""What people said of edited images and originals, and of themselves: records, the questionnaire, reading.

A `Judgement` is about one image, real or edited; a `Rating` about a pair, how much has changed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Final, Literal, get_args

from pydantic import Field, StringConstraints, ValidationError, field_validator

from uncanny.errors import ItemsError, Problem, UsageError
from uncanny.eval.common.inputs.people import read_people
from uncanny.eval.common.inputs.problems import NonEmpty, of_validation
from uncanny.eval.edits.data import EditFiles, EditSource, load
from uncanny.files import read_json
from uncanny.images.file_bytes import RecordedFile, changed_files
from uncanny.schema import Box, Number, Record, Whole

JUDGEMENTS: Final = "judgements.jsonl"
PROFILES: Final = "profiles.jsonl"
RATINGS: Final = "ratings.jsonl"
FORM: Final = "questionnaire.json"
# The questionnaire that comes with the package, by this name.
DEFAULT_FORM: Final = "default"

Side = Literal["original", "edited"]
Verdict = Literal["real", "edited"]
# In the words of Semi-Truths, section 5, from least to most; figures take them as 1, 2 and 3.
Change = Literal["not much", "some", "a lot"]
CHANGES: Final[tuple[Change, ...]] = get_args(Change)
_Short = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=500)]
_Id = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_-]{1,60}$")]


class Judgement(Record):
    """One line of `judgements.jsonl`: what a person said of one image.

    `id` is the pair's, `shown` which of its two images; an original that several pairs share is shown once,
    under the first of them. `judged` is None where the image could not be shown, and `error` says why.
    `boxes` are x0, y0, x1, y1 in pixels of the file as seen upright, `width` × `height`; None of what is
    judged real, empty where an edit was seen and no place named. `seconds` are from when the image was to be
    seen to the end of the answer, without those in which the page was hidden.
    """

    id: NonEmpty
    shown: Side
    image: str
    person: NonEmpty
    judged: Verdict | None
    boxes: tuple[Box, ...] | None = None
    width: Whole | None = None
    height: Whole | None = None
    sha256: str | None = None
    seconds: Annotated[Number, Field(ge=0, allow_inf_nan=False)] | None = None
    error: str | None = None
    at: str | None = None

    def files(self, original: Path, edited: Path) -> set[RecordedFile]:
        """The file of the pair that was shown, with its bytes then; empty if these are unknown."""
        return _recorded((original if self.shown == "original" else edited, self.sha256))


class Rating(Record):
    """One line of `ratings.jsonl`: how much a person says has changed between an original and its edit.

    `check` is the right answer if the pair is an attention check, else None. `id` is the pair's. A check of
    two identical images has the id of the pair whose original is on both sides. `change` is None if the pair
    could not be shown, and `error` says why. `seconds` are as in a `Judgement`.
    """

    id: NonEmpty
    check: Change | None = None
    original: str
    edited: str
    person: NonEmpty
    change: Change | None
    original_sha256: str | None = None
    edited_sha256: str | None = None
    seconds: Annotated[Number, Field(ge=0, allow_inf_nan=False)] | None = None
    error: str | None = None
    at: str | None = None

    def files(self, original: Path, edited: Path) -> set[RecordedFile]:
        """The files of the pair that were shown, with their bytes then; without those that are unknown.

        Empty for an attention check, which is about the person.
        """
        if self.check is not None:
            return set()
        return _recorded((original, self.original_sha256), (edited, self.edited_sha256))


def _recorded(*shown: tuple[Path, str | None]) -> set[RecordedFile]:
    return {RecordedFile(path, sha256, None) for path, sha256 in shown if sha256 is not None}


class Profile(Record):
    """One line of `profiles.jsonl`: what a person said of themselves, None where they would not say.

    Of several lines of a person the last one stands.
    """

    person: NonEmpty
    answers: Mapping[str, str | None]
    at: str | None = None


class FormQuestion(Record):
    """One question with its options, two at least; everybody may leave it open."""

    id: _Id
    text: _Short
    options: Annotated[tuple[_Short, ...], Field(min_length=2, max_length=30)]

    @field_validator("options")
    @classmethod
    def _differ(cls, options: tuple[str, ...]) -> tuple[str, ...]:
        if len(set(options)) < len(options):
            raise ValueError("two options are the same")
        return options


class Form(Record):
    """A questionnaire: `questions` with ids of their own, which are the names of columns in scores."""

    title: _Short = "A few questions first"
    lead: str = ""
    questions: Annotated[tuple[FormQuestion, ...], Field(min_length=1, max_length=40)]

    @field_validator("questions")
    @classmethod
    def _ids_differ(cls, questions: tuple[FormQuestion, ...]) -> tuple[FormQuestion, ...]:
        ids = [question.id for question in questions]
        if len(set(ids)) < len(ids):
            raise ValueError("two questions have the same id")
        return questions


@cache
def default_form() -> Form:
    """The questions of SAGI, supplementary, table 2, in words of our own."""
    text = files("uncanny.eval.edits.people").joinpath(FORM).read_bytes()
    return Form.model_validate_json(text)


def read_form(source: str | Path) -> Form:
    """A questionnaire from its JSON file, or the word `default`. Raises UsageError, ItemsError."""
    if source == DEFAULT_FORM and not Path(source).exists():
        return default_form()
    path = Path(source)
    try:
        return Form.model_validate(read_json(path, remedy="Pass a questionnaire, or the word default."))
    except ValidationError as error:
        problems = of_validation(error, item=None, line=None)
        raise ItemsError(str(path), problems, remedy="Correct the questionnaire.") from error


def read_judgements(folders: Sequence[Path]) -> tuple[list[Judgement], list[Profile]]:
    """What people said in one folder or several, in order; files may be named in place of folders.

    A person who is in several folders counts as one in each, named with the folder: two people may have the
    same name. A last line that is half-written is passed over. Raises ItemsError with every invalid line,
    UsageError where nothing was judged.
    """
    judgements, profiles = read_people(folders, {JUDGEMENTS: Judgement, PROFILES: Profile})
    if not judgements:
        raise UsageError("There are no judgements yet", remedy="Begin with `uncanny edits people`.")
    return judgements, profiles


def read_ratings(folders: Sequence[Path]) -> list[Rating]:
    """How people rated pairs, in one folder or several, as in `read_judgements`.

    Raises ItemsError with every invalid line, UsageError if nothing was rated.
    """
    (ratings,) = read_people(folders, {RATINGS: Rating})
    if not ratings:
        raise UsageError("There are no ratings yet", remedy="Begin with `uncanny edits rate`.")
    return ratings


def replaced(said: Sequence[Judgement | Rating], pairs: Mapping[str, EditFiles]) -> list[bool]:
    """By line, whether a picture of its pair has other bytes now than those it is about.

    False for other pairs, for pictures that are gone, and where the line does not say which bytes.
    """
    files = [
        each.files(pairs[each.id].original, pairs[each.id].edited) if each.id in pairs else set()
        for each in said
    ]
    changed = changed_files(set().union(*files))
    return [bool(shown & changed) for shown in files]


def read_checks(source: EditSource) -> list[tuple[EditFiles, Change]]:
    """Attention checks: pairs as in `load`, each with its right answer in the column `change`.

    Raises what `load` does, and ItemsError with every pair whose `change` is none of `CHANGES`.
    """
    checks: list[tuple[EditFiles, Change]] = []
    problems: list[Problem] = []
    for each in load(source):
        known = (each.pair.model_extra or {}).get("change")
        if known in CHANGES:
            checks.append((each, known))
        else:
            answers = ", ".join(map(repr, CHANGES))
            problems.append(Problem(each.id, "change", f"must be one of {answers}, got {known!r}"))
    if problems:
        raise ItemsError("the attention checks", problems, remedy="Give each pair its right answer.")
    return checks
