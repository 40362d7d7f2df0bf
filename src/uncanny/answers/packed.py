"""What the answers of the packed schedule look like, and how they are read.

A batch is about several enlarged parts of the image: one item that does not validate costs its part the
answer and no other one, so that this part alone is asked about again. Findings are numbered from 1, and an
answer accounts for every number: what it leaves out is named when it is asked for again.
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
    CONFIDENCE_FIELD,
    MAX_NAMES,
    AnswerItem,
    ItemField,
    ListForm,
    make_form,
    with_box_key,
)
from uncanny.answers.lists import InvalidItem, read_each, read_first, read_numbers, values_of
from uncanny.errors import AnswerError
from uncanny.schema import KINDS, Kind, Name, Severity, Sort, Text

Decision = Literal["keep", "correct", "drop", "add"]
DECISIONS: Final[tuple[Decision, ...]] = get_args(Decision)
Ids = Annotated[tuple[int, ...], Field(min_length=1)]
SomeNames = Annotated[tuple[str, ...], Field(max_length=MAX_NAMES)]


class InventoryItem(AnswerItem):
    """An object, and where it is."""

    name: Name
    description: Text
    sort: Sort | None = None
    box: AnyBox = None


class Fault(AnswerItem):
    """Something wrong or doubtful. `confidence`, 0 to 1, is how likely it is there and a fault.

    `part` is the number of the enlarged part that it was seen in, 0 for the whole image, and `doubt` the
    number of the finding that it answers, 0 for a further one. `box` is within what it was seen in.
    """

    part: int = 0
    doubt: int = 0
    objects: SomeNames = ()
    observed: Text
    explanation: Text
    kind: Kind | None = None
    confidence: float | None = None
    box: AnyBox = None


class Judgement(AnswerItem):
    """What became of the findings `ids`, all about one fault, and its final texts.

    An entry that drops its findings gives the reason, `why`. `add` is a fault that no finding is about.
    `part` is the number of the enlarged part that `box` is within, 0 for the whole image. `realism` is from
    0, cannot be, to 100, fully realistic.
    """

    ids: Ids
    why: str = ""
    decision: Decision
    confidence: float | None = None
    name: Annotated[str, Field(max_length=200)] = ""
    phenomenon: str = ""
    reasoning: str = ""
    realism: Severity | None = None
    kind: Kind | None = None
    objects: SomeNames = ()
    part: int = 0
    box: AnyBox = None


class FinalText(AnswerItem):
    """What the fault `ids` lacks: its name and its realism, from 0, cannot be, to 100, fully realistic."""

    ids: Ids
    name: Name
    phenomenon: str = ""
    reasoning: str = ""
    realism: Severity
    kind: Kind | None = None
    objects: SomeNames = ()


def _judged(judgement: Judgement) -> Judgement:
    if judgement.decision == "drop":
        if not judgement.why:
            raise ValueError("why is empty: a finding is dropped for a reason")
        return judgement
    missing = [key for key in ("name", "phenomenon", "reasoning") if not getattr(judgement, key)]
    if missing or judgement.realism is None:
        raise ValueError(f"{(*missing, 'realism')[0]} is missing: a fault that stands has final texts")
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
        **dict.fromkeys(("add", "added", "new"), "add"),
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

_REALISM = ItemField(
    "realism",
    kind="severity",
    labels=("realism score", "severity", "severity score", "score"),
)
_CONCERNED = ItemField(
    "objects",
    kind="ids",
    labels=("object", "object name", "objects involved", "objects concerned"),
    required=False,
)
_SORT = ItemField(
    "sort",
    kind="choice",
    labels=("type", "category"),
    required=False,
    offered=get_args(Sort),
    choices={each: each for each in get_args(Sort)},
)
_PART = ItemField("part", kind="number", labels=("part number", "region", "crop"), required=False)
_SEEN_THERE = (
    _CONCERNED,
    ItemField("observed", labels=(*_SEEN, "description")),
    _EXPLANATION,
    _KIND,
    CONFIDENCE_FIELD,
    BOX_FIELD,
)

INVENTORY: Final[ListForm[InventoryItem]] = make_form(
    "inventory",
    InventoryItem,
    (
        ItemField("name", labels=("title", "object name", "object")),
        ItemField("description", labels=("details", "appearance", "location")),
        _SORT,
        BOX_FIELD,
    ),
    nouns=("objects",),
    title="name",
)
FAULTS: Final[ListForm[Fault]] = make_form(
    "findings", Fault, _SEEN_THERE, nouns=("findings", "faults", "anomalies")
)
"""Answers that list faults of the whole image, as agents of the schedule `packed` get them."""
PART_FAULTS: Final[ListForm[Fault]] = make_form(
    "findings",
    Fault,
    (
        _PART,
        ItemField("doubt", kind="number", labels=("doubt id", "id", "finding"), required=False),
        *_SEEN_THERE,
    ),
    nouns=("findings", "faults", "anomalies"),
)
"""Answers that list faults of enlarged parts of the image, and say what became of doubts about them."""
JUDGEMENTS: Final[ListForm[Judgement]] = make_form(
    "entries",
    Judgement,
    (
        ItemField("ids", kind="numbers", labels=("id", "findings", "numbers", "finding ids")),
        ItemField("why", labels=("reason", "check", "evidence"), required=False),
        _DECISION,
        CONFIDENCE_FIELD,
        ItemField("name", labels=("title", "anomaly name"), required=False),
        ItemField("phenomenon", labels=("observed", "observation", "description"), required=False),
        ItemField("reasoning", labels=("explanation", "rationale"), required=False),
        replace(_REALISM, required=False),
        _KIND,
        _CONCERNED,
        _PART,
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
        _REALISM,
        _KIND,
        _CONCERNED,
    ),
    nouns=("anomalies", "semantic anomalies"),
    title="name",
)
PACKED_FORMS: Final[tuple[ListForm[Any], ...]] = (INVENTORY, FAULTS, PART_FAULTS, JUDGEMENTS, FINAL_TEXTS)

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
class LookAnswer:
    """One open look at the image: what is wrong or doubtful, and what is there.

    `left_out` counts what came after as many items as are read, by list.
    """

    faults: tuple[Fault, ...]
    inventory: tuple[InventoryItem, ...]
    left_out: Mapping[str, int]


def read_look(text: str, model: str = "") -> LookAnswer:
    """Both lists of `model`'s answer. Raises `AnswerError` where one of them is missing or invalid."""
    faults, inventory = read_first(text, FAULTS), read_first(text, INVENTORY)
    return LookAnswer(
        tuple(given_by(each, model) for each in faults.items),
        tuple(given_by(each, model) for each in inventory.items),
        {FAULTS.key: faults.left_out, INVENTORY.key: inventory.left_out},
    )


@dataclass(frozen=True, slots=True)
class PartsAnswer:
    """The items about parts that validate, and the parts whose items do not, with the reason.

    `set_aside` are valid items about the latter, for when nothing comes of asking anew. `left_out` items came
    after as many as are read.
    """

    items: tuple[Fault, ...]
    invalid: Mapping[int, str]
    set_aside: Mapping[int, tuple[Fault, ...]]
    left_out: int = 0


def read_parts(
    text: str, parts: Mapping[int, Collection[int]], model: str = "", *, leave_strays: bool = False
) -> PartsAnswer:
    """What `model` says of parts of the image by their numbers, each with the numbers of its doubts.

    An item without a part is about the one its doubt is in, or the only one there is. What else was said of a
    part with an invalid item is set aside, since it will be said anew. Raises `AnswerError` where the answer
    as a whole is none, where nothing of it can be used, and where it cannot be told which part an item is
    about; with `leave_strays` such an item counts as left out.
    """
    of_doubt: dict[int, int] = {}  # of a doubt in several parts the first
    for number, doubts in parts.items():
        of_doubt.update((doubt, number) for doubt in doubts if doubt not in of_doubt)
    placed: list[tuple[int, Fault]] = []
    invalid: dict[int, str] = {}
    answer = read_each(text, PART_FAULTS)

    def part_of(part: int | None, doubt: int | None) -> int | None:
        if part in parts:
            return part
        return of_doubt.get(doubt or 0, next(iter(parts)) if len(parts) == 1 else None)

    strays: list[str] = []

    part: int | None
    for place, item in enumerate(answer.items, start=1):
        if isinstance(item, InvalidItem):
            part = part_of(_number(item, "part"), _number(item, "doubt"))
            if part is None:
                strays.append(item.problem)
                continue
            invalid.setdefault(part, item.problem)
            continue
        part = part_of(item.part, item.doubt)
        if part is None:
            listed = ", ".join(map(str, sorted(parts)))
            strays.append(f"item {place}: part {item.part} is not one of the parts asked about: {listed}")
            continue
        # A doubt about another part is a finding of its own here.
        doubt = item.doubt if item.doubt in parts[part] else 0
        placed.append((part, given_by(item.model_copy(update={"part": part, "doubt": doubt}), model)))
    # Part 0, the whole image, is there beside the parts that are asked about.
    if invalid.keys() >= ({number for number in parts if number} or parts.keys()):
        raise AnswerError("; ".join(invalid.values()))
    if strays and not (leave_strays and placed):
        raise AnswerError("; ".join(strays))
    items = dict.fromkeys(item for part, item in placed if part not in invalid)
    set_aside = {
        number: tuple(dict.fromkeys(item for part, item in placed if part == number)) for number in invalid
    }
    return PartsAnswer(tuple(items), invalid, set_aside, answer.left_out + len(strays))


def _number(item: InvalidItem, name: str, form: ListForm[Any] = PART_FAULTS) -> int | None:
    try:
        return read_numbers(values_of(item.raw, form, name))[0]
    except AnswerError:
        return None


N = TypeVar("N", Judgement, FinalText)


@dataclass(slots=True)
class Numbered(Generic[N]):
    """Reads answers that account for the findings 1 to `count`, and keeps the best for when none is whole.

    `lost` counts the entries of the best answer that did not validate and that no number accounts for.

    Of a number that stands in several entries the first counts that keeps it; numbers of no finding are left
    out, and so are entries that name only such, but for those that add a fault.
    """

    form: ListForm[N]
    count: int
    best: tuple[N, ...] | None = None
    missing: tuple[int, ...] = ()
    lost: int = 0

    def read(self, text: str, model: str = "") -> tuple[N, ...]:
        """Entries of `model`, every number once. Raises `AnswerError` that names what is missing."""
        items: list[N] = []
        problems: list[str] = []
        lost = 0
        for item in read_each(text, self.form).items:
            if isinstance(item, InvalidItem):
                problems.append(item.problem)
                number = _number(item, "ids", self.form)
                lost += number is None or not 1 <= number <= self.count
            else:
                items.append(given_by(item, model))
        entries = _once(items, self.count)
        named = {number for entry in entries for number in entry.ids}
        missing = tuple(number for number in range(1, self.count + 1) if number not in named)
        if (entries or not self.count) and (self.best is None or len(missing) <= len(self.missing)):
            self.best, self.missing, self.lost = entries, missing, lost
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
        if getattr(item, "decision", None) == "add":
            entries.append((place, item.model_copy(update={"ids": (0,)})))
            continue
        ids = tuple(number for number in item.ids if 1 <= number <= count and number not in taken)
        taken.update(ids)
        if ids:
            entries.append((place, item if ids == item.ids else item.model_copy(update={"ids": ids})))
    return tuple(entry for _, entry in sorted(entries, key=lambda each: each[0]))
