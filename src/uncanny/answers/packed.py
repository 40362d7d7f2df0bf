"""What the answers of the packed schedule look like, and how they are read.

A batch is about several objects: one item that does not validate costs its object the answer and no other
one, so that this object alone is asked about again. Findings are numbered from 1, and an answer accounts for
every number: what it leaves out is named when it is asked for again.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Annotated, Any, Final, Generic, Literal, TypeVar, get_args

from pydantic import BaseModel, Field

from uncanny.answers.boxes import BOX_FORMATS, AnyBox, BoxFormatName, GivenBox
from uncanny.answers.forms import (
    BOX_FIELD,
    MAX_NAMES,
    AnswerItem,
    ItemField,
    ListForm,
    Names,
    make_form,
    with_box_key,
)
from uncanny.answers.lists import InvalidItem, read_each, read_numbers, values_of
from uncanny.errors import AnswerError
from uncanny.schema import KINDS, Kind, Name, Severity, Text

Decision = Literal["keep", "correct", "drop"]
DECISIONS: Final[tuple[Decision, ...]] = get_args(Decision)
Ids = Annotated[tuple[int, ...], Field(min_length=1)]


class InventoryItem(AnswerItem):
    """An object, and where it is."""

    name: Name
    description: Text
    box: AnyBox = None


class Fault(AnswerItem):
    """Something wrong. `objects` are names where the whole picture is looked at, numbers in a batch."""

    objects: Names
    observed: Text
    explanation: Text
    box: AnyBox = None

    @property
    def numbers(self) -> tuple[int, ...]:
        """The objects as numbers. Raises AnswerError where they are none."""
        return read_numbers(self.objects, "objects")


class Judgement(AnswerItem):
    """What became of the findings `ids`, all about one fault.

    An empty text keeps that of the first of them; where it is dropped there is nothing to be said.
    """

    ids: Ids
    why: str = ""
    decision: Decision
    phenomenon: str = ""
    reasoning: str = ""
    box: AnyBox = None


class FinalText(AnswerItem):
    """The quadruple of the faults `ids`; an empty text leaves that of the fault.

    `realism` is from 0, cannot be, to 100, fully realistic.
    """

    ids: Ids
    name: Name
    phenomenon: str = ""
    reasoning: str = ""
    realism: Severity
    kind: Kind | None = None
    objects: Annotated[tuple[str, ...], Field(max_length=MAX_NAMES)] = ()


def _judged(judgement: Judgement) -> Judgement:
    if judgement.decision == "drop":
        if not judgement.why:
            raise ValueError("why is empty: a finding is dropped for a reason")
    elif judgement.decision == "correct" and not judgement.phenomenon:
        raise ValueError("phenomenon is empty: what is corrected has to be said")
    return judgement


_WHY = ("reasoning", "reason", "why", "rationale", "justification")
_SEEN = ("observation", "observed phenomenon", "phenomenon", "what is observed", "observed issue")
_EXPLANATION = ItemField("explanation", labels=_WHY)
_DECISION = ItemField(
    "decision",
    kind="choice",
    labels=("verdict", "action"),
    offered=DECISIONS,
    choices={
        **dict.fromkeys(("keep", "kept", "confirm", "confirmed"), "keep"),
        **dict.fromkeys(("correct", "corrected", "revise", "revised", "keep corrected"), "correct"),
        **dict.fromkeys(("drop", "dropped", "remove", "removed", "reject", "rejected", "discard"), "drop"),
    },
)
_KIND = ItemField(
    "kind",
    kind="choice",
    labels=("category", "type"),
    required=False,
    offered=(*KINDS, "other"),
    choices={**{each: each for each in KINDS}, "other": None},
)

INVENTORY: Final[ListForm[InventoryItem]] = make_form(
    "objects",
    InventoryItem,
    (
        ItemField("name", labels=("title", "object name", "object")),
        ItemField("description", labels=("details", "appearance", "location")),
        BOX_FIELD,
    ),
    nouns=("objects",),
    title="name",
)
# One form for everybody who looks for faults: a schema that all calls share is paid for with each of them.
FAULTS: Final[ListForm[Fault]] = make_form(
    "findings",
    Fault,
    (
        ItemField(
            "objects",
            kind="ids",
            labels=("object", "object id", "object ids", "ids", "id", "object name", "objects involved"),
        ),
        ItemField("observed", labels=(*_SEEN, "description")),
        _EXPLANATION,
        BOX_FIELD,
    ),
    nouns=("findings", "faults", "anomalies"),
)
"""Answers that list faults, as agents of the schedule `packed` get them."""
JUDGEMENTS: Final[ListForm[Judgement]] = make_form(
    "entries",
    Judgement,
    (
        ItemField("ids", kind="numbers", labels=("id", "findings", "numbers", "finding ids")),
        ItemField("why", labels=("reason", "check", "evidence"), required=False),
        _DECISION,
        ItemField("phenomenon", labels=("observed", "observation", "description"), required=False),
        ItemField("reasoning", labels=("explanation", "rationale"), required=False),
        BOX_FIELD,
    ),
    check=_judged,
)
FINAL_TEXTS: Final[ListForm[FinalText]] = make_form(
    "anomalies",
    FinalText,
    (
        ItemField("ids", kind="numbers", labels=("id", "findings", "numbers", "finding ids")),
        ItemField("name", labels=("title", "anomaly name")),
        ItemField("phenomenon", labels=("observed", "observation", "description"), required=False),
        ItemField("reasoning", labels=("explanation", "reason", "why", "rationale"), required=False),
        ItemField(
            "realism",
            kind="severity",
            labels=("realism score", "severity", "severity score", "score"),
        ),
        _KIND,
        ItemField(
            "objects",
            kind="names",
            labels=("objects involved", "object", "objects concerned"),
            required=False,
        ),
    ),
    nouns=("anomalies", "semantic anomalies"),
    title="name",
)
PACKED_FORMS: Final[tuple[ListForm[Any], ...]] = (INVENTORY, FAULTS, JUDGEMENTS, FINAL_TEXTS)

T = TypeVar("T", bound=BaseModel)


@cache
def asked_in(form: ListForm[T], box: BoxFormatName) -> ListForm[T]:
    """The form with boxes asked for under the key of a box format."""
    return with_box_key(form, BOX_FORMATS[box].key)


def given_by(item: T, model: str) -> T:
    """The item with its box as that of the model: what the numbers count depends on who gave them."""
    box = getattr(item, "box", None)
    return item.model_copy(update={"box": replace(box, model=model)}) if isinstance(box, GivenBox) else item


@dataclass(frozen=True, slots=True)
class BatchAnswer:
    """The items of a batch that validate, and the objects whose part of it does not, with the reason.

    `set_aside` are valid items about the latter, for when nothing comes of asking anew. `left_out` items came
    after as many as are read.
    """

    items: tuple[Fault, ...]
    invalid: Mapping[int, str]
    set_aside: Mapping[int, tuple[Fault, ...]]
    left_out: int = 0


def read_batch(text: str, batch: Collection[int], model: str = "") -> BatchAnswer:
    """What `model` says of the objects with the numbers of `batch`; an item's first of these is its subject.

    Numbers of other objects are kept, of which only the subject must be in the batch. What else was said of
    an object with an invalid item is set aside, since it will be said anew. Raises `AnswerError` where the
    answer as a whole is none, where it cannot be told which object an item is about, and where nothing of it
    can be used.
    """
    subjects: list[tuple[int, Fault]] = []
    invalid: dict[int, str] = {}
    answer = read_each(text, FAULTS)
    for place, item in enumerate(answer.items, start=1):
        if isinstance(item, InvalidItem):
            subject = _subject(values_of(item.raw, FAULTS, "objects"), batch)
            if subject is None:
                raise AnswerError(item.problem)
            invalid.setdefault(subject, item.problem)
            continue
        subject = _subject(item.objects, batch)
        if subject is None:
            named, listed = ", ".join(item.objects), ", ".join(map(str, sorted(batch)))
            raise AnswerError(f"item {place}: objects {named} is none of the numbers asked about: {listed}")
        subjects.append((subject, given_by(item, model)))
    if len(invalid) == len(batch):
        raise AnswerError("; ".join(invalid.values()))
    items = dict.fromkeys(item for subject, item in subjects if subject not in invalid)
    set_aside = {
        number: tuple(dict.fromkeys(item for subject, item in subjects if subject == number))
        for number in invalid
    }
    return BatchAnswer(tuple(items), invalid, set_aside, answer.left_out)


def _subject(value: object, batch: Collection[int]) -> int | None:
    try:
        numbers = read_numbers(value)
    except AnswerError:
        return None
    return next((number for number in numbers if number in batch), None)


N = TypeVar("N", Judgement, FinalText)


@dataclass(slots=True)
class Numbered(Generic[N]):
    """Reads answers that account for the findings 1 to `count`, and keeps the best for when none is whole.

    Of a number that stands in several entries the first counts that keeps it; numbers of no finding are left
    out, and so are entries that name only such.
    """

    form: ListForm[N]
    count: int
    best: tuple[N, ...] | None = None
    missing: tuple[int, ...] = ()

    def read(self, text: str, model: str = "") -> tuple[N, ...]:
        """Entries of `model`, every number once. Raises `AnswerError` that names what is missing."""
        items: list[N] = []
        problems: list[str] = []
        for item in read_each(text, self.form).items:
            if isinstance(item, InvalidItem):
                problems.append(item.problem)
            else:
                items.append(given_by(item, model))
        entries = _once(items, self.count)
        named = {number for entry in entries for number in entry.ids}
        missing = tuple(number for number in range(1, self.count + 1) if number not in named)
        if (entries or not self.count) and (self.best is None or len(missing) <= len(self.missing)):
            self.best, self.missing = entries, missing
        if missing:
            numbers = ", ".join(map(str, missing))
            problems.append(f"these numbers stand in no entry: {numbers}")
        if problems:
            raise AnswerError("; ".join(problems[-3:])[:600])
        return entries


def _once(items: Sequence[N], count: int) -> tuple[N, ...]:
    """Every number in one entry alone; an entry that keeps goes before one that drops."""
    by_place = sorted(enumerate(items), key=lambda each: getattr(each[1], "decision", None) == "drop")
    taken: set[int] = set()
    entries: list[tuple[int, N]] = []
    for place, item in by_place:
        ids = tuple(number for number in item.ids if 1 <= number <= count and number not in taken)
        taken.update(ids)
        if ids:
            entries.append((place, item if ids == item.ids else item.model_copy(update={"ids": ids})))
    return tuple(entry for _, entry in sorted(entries, key=lambda each: each[0]))
