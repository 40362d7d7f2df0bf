"""Images and their anomalies, from what a file has of them: fields under many names, or a model's plain text.

The authors' files say `Observed Phenomenon` and `Severity Score: "25/100 (…)"`, a model's answer is a list in
prose, ours are records. What can be read is read and counted (`Allowances`); what cannot be is a problem.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Literal, TypeVar, get_args

from pydantic import BaseModel, BeforeValidator, ConfigDict, TypeAdapter, ValidationError

from uncanny.answers.forms import ANOMALIES, LISTED, FieldKind, ListForm, label_key, make_form
from uncanny.answers.lists import read_list
from uncanny.answers.scores import read_severity
from uncanny.errors import AnswerError, Problem
from uncanny.eval.common.confidence import Sure, sure_enough
from uncanny.eval.common.inputs.image_files import TEXT_KEYS, Entry
from uncanny.eval.common.score_json import digest_of
from uncanny.eval.common.similarity.base import is_blank
from uncanny.records.run_folder import Unfinished
from uncanny.schema import Box, Confidence, Kind, Source, Status
from uncanny.wording import counted, harmless, shown


@dataclass(frozen=True, slots=True)
class ScoredAnomaly:
    """One anomaly, predicted or true. A blank text is similar to nothing.

    `severity` runs from 0, completely unreal, to 100, fully realistic; `box` is in pixels of the image file,
    `kind` is what sort of thing is wrong, `confidence`, 0-1, is how sure the model is of it. Each is None
    where it is not known.
    """

    name: str
    phenomenon: str
    reasoning: str
    severity: int | None = None
    box: Box | None = None
    kind: Kind | None = None
    confidence: float | None = None


@dataclass(frozen=True, slots=True)
class ScoredImage:
    """One image with its anomalies. Only `status` `ok` is scored: what failed is no empty prediction.

    `source` is None where there is no clear answer; `has_source` says whether the record speaks of it at all.
    `line` counts from 1 and is None where the record has no line of its own. `columns` may say what images
    belong together.
    """

    image: str
    anomalies: tuple[ScoredAnomaly, ...]
    source: Source | None = None
    has_source: bool = False
    sha256: str | None = None
    status: Status = "ok"
    line: int | None = None
    columns: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)


@dataclass(frozen=True, slots=True, repr=False)
class AnomalySet:
    """Predictions or truth: all images of a file or of records in memory, in order; names are unique.

    `origin` says where they are from: the path, `scenes`, or what they were given as. Counts of what was read
    with allowances: `blank_texts`, phenomena and reasonings without a word; `unread_severities`, words that
    say no severity, which then is unknown; `unread_answers`, plain text that is no list of anomalies and
    stands as one prediction that matches nothing. `unfinished`: what the run they are of has still to do.
    `texts`: ids of the texts that models were asked with, as the records name them, sorted.
    `sure` counts the anomalies that were left out, as the model was not sure enough.
    """

    origin: str
    images: tuple[ScoredImage, ...]
    blank_texts: int = 0
    unread_severities: int = 0
    unread_answers: tuple[str, ...] = ()
    unfinished: Unfinished | None = None
    texts: tuple[str, ...] = ()
    sure: Sure = field(default_factory=Sure)

    def __repr__(self) -> str:
        return f"<anomalies of {counted(len(self.images), 'image')} of {harmless(self.origin)}>"

    @property
    def has_source(self) -> bool:
        """Whether any image says, or says that it does not know, if it is generated or real."""
        return any(image.has_source for image in self.images)

    def only_sure(self, min_confidence: float) -> AnomalySet:
        """The same without anomalies below `min_confidence`, 0-1, which are counted."""
        kept = [sure_enough(image.anomalies, min_confidence) for image in self.images]
        left_out = sum(number for _, number in kept)
        if not left_out:
            return self
        images = tuple(
            replace(image, anomalies=anomalies)
            for image, (anomalies, _) in zip(self.images, kept, strict=True)
        )
        return replace(self, images=images, sure=Sure(min_confidence, left_out))


def digest(images: Iterable[ScoredImage]) -> str:
    """SHA-256, in hexadecimal, of all that scores depend on in a truth; not of the order of its images."""
    return digest_of(
        [
            image.image,
            image.source,
            image.status,
            [[anomaly.phenomenon, anomaly.reasoning] for anomaly in image.anomalies],
        ]
        for image in images
    )


Role = Literal["predictions", "truth"]

T = TypeVar("T")
_BOX: TypeAdapter[Box] = TypeAdapter(Box)
_KIND: TypeAdapter[Kind] = TypeAdapter(Kind)
_CONFIDENCE: TypeAdapter[Confidence] = TypeAdapter(Confidence)

_TEXTS = ("name", "phenomenon", "reasoning")
# Released files keep the mark of the answer in the name: `@1. Name: Floating book`.
_MARK = re.compile(r"^@\d{1,4}[.:)]?\s*(?:name\s*:)?\s*", re.IGNORECASE)
_MATCHES_NOTHING = ScoredAnomaly("", "", "")


def _columns(record: Mapping[str, Any]) -> Mapping[str, Any]:
    """What a truth says of the image besides, of which a column may say what images belong together."""
    own = {key: value for key, value in record.items() if isinstance(value, str | int | float)}
    columns = record.get("columns")
    cells = own | (dict(columns) if isinstance(columns, Mapping) else {})
    return {key: value for key, value in cells.items() if key not in (*ScoredImage.__slots__, *TEXT_KEYS)}


@dataclass(slots=True)
class Allowances:
    """What was read although it is not as it should be."""

    blank_texts: int = 0
    unread_severities: int = 0
    unread_answers: list[str] = field(default_factory=list)


class EntryReader:
    """From entries to images; `problems` and `allowances` gather what is met on the way.

    A prediction that is no list of anomalies stands as one that matches nothing; in a truth it is a problem.
    """

    def __init__(self, role: Role) -> None:
        self._role = role
        self.problems: list[Problem] = []
        self.allowances = Allowances()

    def image(self, entry: Entry) -> ScoredImage | None:
        """None where something is wrong with it."""
        before = len(self.problems)
        record: Mapping[str, Any] = entry.value if isinstance(entry.value, Mapping) else {}
        status: Status = self._one_of(entry, record, "status", get_args(Status)) or "ok"
        source = self._one_of(entry, record, "source", get_args(Source))
        sha256 = record.get("sha256")
        if sha256 is not None and not isinstance(sha256, str):
            self._wrong(entry, "sha256", f"must be a string, not {shown(sha256)}")
        anomalies = self._anomalies(entry, record) if status == "ok" else ()
        if not entry.image.strip() or not _is_unicode(entry.image):
            self._wrong(entry, "image", "must be a name in valid Unicode")
        if len(self.problems) > before:
            return None
        return ScoredImage(
            entry.image,
            anomalies,
            source,
            "source" in record,
            sha256.lower() if sha256 else None,
            status,
            entry.line,
            _columns(record) if self._role == "truth" else {},
        )

    def _anomalies(self, entry: Entry, record: Mapping[str, Any]) -> tuple[ScoredAnomaly, ...]:
        where, value = "", entry.value
        if isinstance(value, Mapping):
            where = next(
                (key for key in ("anomalies", *TEXT_KEYS) if record.get(key) is not None), "anomalies"
            )
            value = record.get(where)
        if isinstance(value, str):
            return self._answer(entry, where, value)
        if not isinstance(value, list | tuple):
            self._wrong(
                entry, where, "is missing" if value is None else f"must be a list, not {shown(value)}"
            )
            return ()
        anomalies: list[ScoredAnomaly] = []
        for result in _read_objects(value, where, self.allowances):
            if isinstance(result, _FieldError):
                self._wrong(entry, result.field, result.message)
            else:
                anomalies.append(result)
        return tuple(anomalies)

    def _answer(self, entry: Entry, where: str, text: str) -> tuple[ScoredAnomaly, ...]:
        try:
            return _read_text(text, self.allowances)
        except AnswerError as error:
            if self._role == "truth":
                self._wrong(entry, where or None, error.message)
                return ()
            self.allowances.unread_answers.append(entry.image)
            return (_MATCHES_NOTHING,)

    def _one_of(self, entry: Entry, record: Mapping[str, Any], key: str, known: tuple[Any, ...]) -> Any:
        value = record.get(key)
        if value is not None and value not in known:
            self._wrong(entry, key, f"must be one of {', '.join(known)}, not {shown(value)}")
        return value

    def _wrong(self, entry: Entry, field: str | None, message: str) -> None:
        self.problems.append(Problem(entry.image, field, message, line=entry.line))


class _FieldError(Exception):
    """A value that cannot be read; `field` is its path within the record."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field, self.message = field, message


def _read_objects(
    items: Sequence[Any], where: str, allowances: Allowances
) -> Iterator[ScoredAnomaly | _FieldError]:
    """Every item as an anomaly or as what is wrong with it; `where` is the path of the list."""
    for number, item in enumerate(items):
        path = f"{where}.{number}" if where else str(number)
        try:
            yield _read_object(item, path, allowances)
        except _FieldError as error:
            yield error


def _read_object(item: object, path: str, allowances: Allowances) -> ScoredAnomaly:
    if not isinstance(item, Mapping):
        raise _FieldError(path, f"must be an object with phenomenon and reasoning, not {shown(item)}")
    values: dict[str, Any] = {}
    for key, value in item.items():
        known = ANOMALIES.by_label.get(label_key(str(key)))
        if known is not None and (known.name not in values or key == known.name):
            values[known.name] = value
    if "phenomenon" not in values and "reasoning" not in values:
        raise _FieldError(
            path, f"has neither phenomenon nor reasoning, only {shown(', '.join(map(str, item)))}"
        )
    texts = {name: _text(values.get(name), f"{path}.{name}") for name in _TEXTS}
    texts["name"] = _MARK.sub("", texts["name"])
    severity = _severity(values.get("severity"), f"{path}.severity", allowances)
    box, kind = _known(_BOX, item.get("box")), _known(_KIND, item.get("kind"))
    confidence = _known(_CONFIDENCE, item.get("confidence"))
    anomaly = ScoredAnomaly(**texts, severity=severity, box=box, kind=kind, confidence=confidence)
    return _count_blanks(anomaly, allowances)


def _known(form: TypeAdapter[T], value: object) -> T | None:
    """What other tools mean by the same key may be something else: then it is not known."""
    try:
        return form.validate_python(value)
    except ValidationError:
        return None


def _text(value: object, path: str) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        raise _FieldError(path, f"must be a string, not {shown(value)}")
    if not _is_unicode(value):
        raise _FieldError(path, "contains characters that are not valid Unicode")
    return value.strip()


def _severity(value: object, path: str, allowances: Allowances) -> int | None:
    if value is None:
        return None
    if isinstance(value, str):
        severity = _severity_in_words(value)
        allowances.unread_severities += severity is None
        return severity
    try:
        return read_severity(value)
    except AnswerError as error:
        raise _FieldError(path, error.message) from None


def _severity_in_words(value: object) -> int | None:
    """The severity that words say, None where they say none."""
    try:
        return read_severity(value)
    except AnswerError:
        return None


def _count_blanks(anomaly: ScoredAnomaly, allowances: Allowances) -> ScoredAnomaly:
    allowances.blank_texts += is_blank(anomaly.phenomenon) + is_blank(anomaly.reasoning)
    return anomaly


def _is_unicode(text: str) -> bool:
    """False where half a surrogate pair is in it, which no file can hold."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


class _TextAnomaly(BaseModel):
    model_config = ConfigDict(frozen=True)

    name: str
    phenomenon: str
    reasoning: str
    severity: Annotated[int | None, BeforeValidator(_severity_in_words)] = None
    confidence: float | None = None


def _form(severity: FieldKind) -> ListForm[_TextAnomaly]:
    fields = tuple(
        replace(each, kind=severity, required=False) if each.name == "severity" else each
        for each in LISTED.fields
        if each.name != "objects"
    )
    return make_form("anomalies", _TextAnomaly, fields, nouns=ANOMALIES.nouns, title="name")


# An anomaly is read without its severity where that says nothing: it only ranks.
_WITH_SEVERITY, _WITH_ANY_SEVERITY = _form("severity"), _form("text")


def _read_text(text: str, allowances: Allowances) -> tuple[ScoredAnomaly, ...]:
    """The anomalies of a model's answer. Raises AnswerError where it is no list of anomalies."""
    try:
        items = read_list(text, _WITH_SEVERITY)
    except AnswerError:
        items = read_list(text, _WITH_ANY_SEVERITY)
        allowances.unread_severities += sum(item.severity is None for item in items)
    return tuple(_count_blanks(ScoredAnomaly(**item.model_dump()), allowances) for item in items)
