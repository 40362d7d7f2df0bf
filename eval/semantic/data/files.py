"""A file of images taken apart: JSON Lines, one JSON object with the images as keys, or a JSON list.

Anomalies as other tools write them: objects with the fields under many names, or a model's plain text.

Reading predictions and truths, ours and other people's: whole, or refused with all that is wrong."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, get_args

import orjson
from pydantic import BaseModel, BeforeValidator, ConfigDict

from uncanny.answers import ANOMALIES, ListForm, make_form, read_list, read_severity
from uncanny.answers.forms import Kind, label_key
from uncanny.demo.scenes import scenes
from uncanny.errors import AnswerError, UsageError
from uncanny.eval.common.problems import ItemsError, Problem, shown
from uncanny.eval.semantic.data.images import AnomalyFile, ScoredAnomaly, ScoredImage
from uncanny.records.run_folder import RunFolder, unfinished
from uncanny.schema import Source, Status

_UTF8_MARK = b"\xef\xbb\xbf"
TEXT_KEYS = ("text", "answer", "raw")
# Keys of a record: an object with one of them and no image is not an object of images.
_RECORD_KEYS = frozenset({"anomalies", "status", "source", "sha256", "prompts", *TEXT_KEYS})


class Entry(NamedTuple):
    """What a file holds of one image: a record, a list of anomalies, or an answer as text."""

    image: str
    value: Any
    line: int | None


def read_bytes(path: Path) -> bytes:
    """Raises UsageError where the file cannot be read or is empty."""
    try:
        data = path.read_bytes().removeprefix(_UTF8_MARK)
    except OSError as error:
        raise UsageError(
            f"{path} cannot be read: {error.strerror or error}",
            remedy="Name a JSON or JSON Lines file, or a run folder.",
        ) from error
    if not data.strip():
        raise UsageError(f"{path} is empty", remedy="Give a file with an image a line.")
    return data


def take_apart(data: bytes, path: Path) -> tuple[list[Entry], list[Problem]]:
    """All entries in order, repeated images too, and what is wrong with the rest.

    It is JSON Lines where the first line is JSON by itself and not the only one, else one JSON value.
    """
    lines = [(number, line) for number, line in enumerate(data.splitlines(), start=1) if line.strip()]
    if len(lines) > 1 and _is_json(lines[0][1]):
        return _from_lines(lines)
    try:
        return _from_document(data.decode("utf-8"))
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        return [], [Problem(None, None, "is not UTF-8", line=line)]
    except json.JSONDecodeError as error:
        if path.suffix == ".jsonl":
            return _from_lines(lines)
        return [], [Problem(None, None, f"not valid JSON ({error.msg})", line=error.lineno)]
    except RecursionError:
        return [], [Problem(None, None, "not valid JSON (nested too deeply)")]


def _is_json(line: bytes) -> bool:
    try:
        orjson.loads(line)
    except orjson.JSONDecodeError:
        return False
    return True


def _from_lines(lines: Iterable[tuple[int, bytes]]) -> tuple[list[Entry], list[Problem]]:
    entries: list[Entry] = []
    problems: list[Problem] = []
    for number, line in lines:
        try:
            value = orjson.loads(line)
        except orjson.JSONDecodeError as error:
            problems.append(Problem(None, None, f"not valid JSON ({error.msg})", line=number))
            continue
        if isinstance(value, dict):
            _add(value, list(value.items()), number, entries, problems)
        else:
            problems.append(
                Problem(None, None, f"must be an object with an image, not {shown(value)}", line=number)
            )
    return entries, problems


def _from_document(text: str) -> tuple[list[Entry], list[Problem]]:
    outermost: list[tuple[str, Any]] = []

    def keep(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        nonlocal outermost
        outermost = pairs  # the last object to be closed is the outermost one
        return dict(pairs)

    value = json.loads(text, object_pairs_hook=keep)
    entries: list[Entry] = []
    problems: list[Problem] = []
    if isinstance(value, dict):
        _add(value, outermost, None, entries, problems)
        entries = _with_lines(entries, text)
    elif isinstance(value, list):
        for number, record in enumerate(value):
            if isinstance(record, dict) and isinstance(record.get("image"), str):
                entries.append(Entry(record["image"], record, None))
            else:
                problems.append(Problem(None, f"{number}.image", "is missing"))
    else:
        problems.append(Problem(None, None, f"must hold images, not {shown(value)}"))
    return entries, problems


def _add(
    value: dict[str, Any],
    pairs: list[tuple[str, Any]],
    line: int | None,
    entries: list[Entry],
    problems: list[Problem],
) -> None:
    if isinstance(value.get("image"), str):
        entries.append(Entry(value["image"], value, line))
    elif _RECORD_KEYS & value.keys() or not all(
        isinstance(each, list | str | dict | None) for each in value.values()
    ):
        message = f"must be a string, not {shown(value['image'])}" if "image" in value else "is missing"
        problems.append(Problem(None, "image", message, line=line))
    else:
        # The authors' scorer takes null for an empty list too.
        entries += [Entry(image, [] if held is None else held, line) for image, held in pairs]


def _with_lines(entries: list[Entry], text: str) -> list[Entry]:
    """Where each key stands, as far as it is written plainly."""
    found: list[Entry] = []
    at, line = 0, 1
    for entry in entries:
        written = {json.dumps(entry.image, ensure_ascii=False), json.dumps(entry.image)}
        place = re.compile("(?:" + "|".join(map(re.escape, written)) + r")\s*:").search(text, at)
        if place is None:
            found.append(entry)
            continue
        line += text.count("\n", at, place.start())
        found.append(entry._replace(line=line))
        at = place.start() + 1
    return found


_TEXTS = ("name", "phenomenon", "reasoning")
# Released files keep the mark of the answer in the name: `@1. Name: Floating book`.
_MARK = re.compile(r"^@\d{1,4}[.:)]?\s*(?:name\s*:)?\s*", re.IGNORECASE)


def known_severity(value: object) -> int | None:
    """The severity that words say, None where they say none."""
    try:
        return read_severity(value)
    except AnswerError:
        return None


def is_unicode(text: str) -> bool:
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
    severity: Annotated[int | None, BeforeValidator(known_severity)] = None


def _form(kind: Kind) -> ListForm[_TextAnomaly]:
    fields = tuple(
        replace(each, kind=kind, required=False) if each.name == "severity" else each
        for each in ANOMALIES.fields
        if each.name != "objects"
    )
    return make_form("anomalies", _TextAnomaly, fields, nouns=ANOMALIES.nouns, title="name")


# A score is read without its severity where that says nothing: it only ranks.
_FORMS = (_form("severity"), _form("text"))


@dataclass(slots=True)
class Allowances:
    """What was read although it is not as it should be."""

    blank_texts: int = 0
    unread_severities: int = 0
    unread_answers: list[str] = field(default_factory=list)


class FieldError(Exception):
    """A value that cannot be read; `field` is its path within the record."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field, self.message = field, message


def read_objects(items: list[Any], where: str, allowed: Allowances) -> Iterator[ScoredAnomaly | FieldError]:
    """Every item as an anomaly or as what is wrong with it; `where` is the path of the list."""
    for number, item in enumerate(items):
        path = f"{where}.{number}" if where else str(number)
        try:
            yield _object(item, path, allowed)
        except FieldError as error:
            yield error


def read_text(text: str, allowed: Allowances) -> tuple[ScoredAnomaly, ...]:
    """The anomalies of a model's answer. Raises AnswerError where it is no list of anomalies."""
    try:
        found = read_list(text, _FORMS[0])
    except AnswerError:
        found = read_list(text, _FORMS[1])
        allowed.unread_severities += sum(item.severity is None for item in found)
    return tuple(_counted(ScoredAnomaly(**item.model_dump()), allowed) for item in found)


def _object(item: object, path: str, allowed: Allowances) -> ScoredAnomaly:
    if not isinstance(item, Mapping):
        raise FieldError(path, f"must be an object with phenomenon and reasoning, not {shown(item)}")
    values: dict[str, Any] = {}
    for key, value in item.items():
        known = ANOMALIES.by_label.get(label_key(str(key)))
        if known is not None and (known.name not in values or key == known.name):
            values[known.name] = value
    if "phenomenon" not in values and "reasoning" not in values:
        raise FieldError(
            path, f"has neither phenomenon nor reasoning, only {shown(', '.join(map(str, item)))}"
        )
    texts = {name: _text(values.get(name), f"{path}.{name}") for name in _TEXTS}
    texts["name"] = _MARK.sub("", texts["name"])
    severity = _severity(values.get("severity"), f"{path}.severity", allowed)
    return _counted(ScoredAnomaly(**texts, severity=severity), allowed)


def _text(value: object, path: str) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        raise FieldError(path, f"must be a string, not {shown(value)}")
    if not is_unicode(value):
        raise FieldError(path, "holds characters that are not valid Unicode")
    return value.strip()


def _severity(value: object, path: str, allowed: Allowances) -> int | None:
    if value is None:
        return None
    if isinstance(value, str):
        found = known_severity(value)
        allowed.unread_severities += found is None
        return found
    try:
        return read_severity(value)
    except AnswerError as error:
        raise FieldError(path, error.message) from None


def _counted(anomaly: ScoredAnomaly, allowed: Allowances) -> ScoredAnomaly:
    allowed.blank_texts += (not anomaly.phenomenon.strip()) + (not anomaly.reasoning.strip())
    return anomaly


Role = Literal["predictions", "truth"]

SCENES = "scenes"
_NOTHING_LIKE_IT = ScoredAnomaly("", "", "")


def load_anomalies(path: Path, role: Role) -> AnomalyFile:
    """All images of a file, or of a run folder's `annotations.jsonl`.

    Takes records (`image`, `anomalies`, `source`) as JSON Lines or a JSON list, one JSON object with the
    images as keys, and, in either, an answer as plain text instead of the list of anomalies. Fields of an
    anomaly have many names, as `Observed Phenomenon` and `Severity Score: "25/100 (…)"`.

    Raises ItemsError with everything that is wrong, repeated images too, UsageError for a file that cannot
    be read or holds no image.
    """
    if path.is_dir():
        RunFolder(path).check_links()
    file = path / "annotations.jsonl" if path.is_dir() else path
    data = read_bytes(file)
    of_run = file.name == "annotations.jsonl" and (file.parent / "run.json").is_file()
    if of_run and not data.endswith(b"\n"):
        data = data[: data.rfind(b"\n") + 1]  # a line that is being written
    entries, problems = take_apart(data, file)
    if of_run:  # an image that was asked again has a further line while the run goes on
        entries = list({entry.image: entry for entry in entries}.values())
    else:
        problems += _repeated(entries)
    reader = _Reader(role)
    images = [image for entry in entries if (image := reader.image(entry)) is not None]
    problems += reader.problems
    if problems:
        problems.sort(key=lambda problem: problem.line or 0)
        raise ItemsError(str(file), problems, remedy="Correct these; nothing was scored.")
    if not images:
        raise UsageError(f"{file} holds no image", remedy="Give a file with an image a line.")
    allowed = reader.allowed
    return AnomalyFile(
        path,
        tuple(images),
        allowed.blank_texts,
        allowed.unread_severities,
        tuple(allowed.unread_answers),
        unfinished(file.parent, len(images)) if of_run else None,
    )


def scenes_truth() -> AnomalyFile:
    """What is true of the bundled scenes: anomalous ones stand for generated images, clean ones for real."""
    images = [
        ScoredImage(
            Path(scene.image).name,
            tuple(
                ScoredAnomaly(anomaly.name, anomaly.phenomenon, anomaly.reasoning, anomaly.severity)
                for anomaly in scene.anomalies
            ),
            "generated" if scene.role == "anomalous" else "real",
            has_source=True,
            sha256=scene.sha256,
        )
        for scene in scenes()
    ]
    return AnomalyFile(Path(SCENES), tuple(images))


def load_truth(name: str) -> AnomalyFile:
    """A truth by its path; the word `scenes`, where there is no such file, is the bundled set's."""
    if name == SCENES and not Path(name).exists():
        return scenes_truth()
    return load_anomalies(Path(name), "truth")


class _Reader:
    """From entries to images; `problems` and `allowed` gather what is met on the way."""

    def __init__(self, role: Role) -> None:
        self._role = role
        self.problems: list[Problem] = []
        self.allowed = Allowances()

    def image(self, entry: Entry) -> ScoredImage | None:
        """None where something is wrong with it."""
        before = len(self.problems)
        record: dict[str, Any] = entry.value if isinstance(entry.value, dict) else {}
        status: Status = self._one_of(entry, record, "status", get_args(Status)) or "ok"
        source = self._one_of(entry, record, "source", get_args(Source))
        sha256 = record.get("sha256")
        if sha256 is not None and not isinstance(sha256, str):
            self._wrong(entry, "sha256", f"must be a string, not {shown(sha256)}")
        anomalies = self._anomalies(entry, record) if status == "ok" else ()
        if not entry.image.strip() or not is_unicode(entry.image):
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
        )

    def _anomalies(self, entry: Entry, record: dict[str, Any]) -> tuple[ScoredAnomaly, ...]:
        where, value = "", entry.value
        if isinstance(value, dict):
            where = next(
                (key for key in ("anomalies", *TEXT_KEYS) if record.get(key) is not None), "anomalies"
            )
            value = record.get(where)
        if isinstance(value, str):
            return self._answer(entry, where, value)
        if not isinstance(value, list):
            self._wrong(
                entry, where, "is missing" if value is None else f"must be a list, not {shown(value)}"
            )
            return ()
        found: list[ScoredAnomaly] = []
        for item in read_objects(value, where, self.allowed):
            if isinstance(item, FieldError):
                self._wrong(entry, item.field, item.message)
            else:
                found.append(item)
        return tuple(found)

    def _answer(self, entry: Entry, where: str, text: str) -> tuple[ScoredAnomaly, ...]:
        try:
            return read_text(text, self.allowed)
        except AnswerError as error:
            if self._role == "truth":
                self._wrong(entry, where or None, error.message)
                return ()
            self.allowed.unread_answers.append(entry.image)
            return (_NOTHING_LIKE_IT,)

    def _one_of(self, entry: Entry, record: dict[str, Any], key: str, known: tuple[Any, ...]) -> Any:
        value = record.get(key)
        if value is not None and value not in known:
            self._wrong(entry, key, f"must be one of {', '.join(known)}, not {shown(value)}")
        return value

    def _wrong(self, entry: Entry, field: str | None, message: str) -> None:
        self.problems.append(Problem(entry.image, field, message, line=entry.line))


def _repeated(entries: Iterable[Entry]) -> list[Problem]:
    first: dict[str, Entry] = {}
    found = []
    for entry in entries:
        before = first.setdefault(entry.image, entry)
        if before is not entry:
            where = "" if before.line is None else f", at line {before.line}"
            message = f"the image was there before{where}; keep one of them"
            found.append(Problem(entry.image, "image", message, line=entry.line))
    return found
