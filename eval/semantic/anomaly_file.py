"""Reading predictions and truths, ours and other people's: whole, or refused with all that is wrong."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal, get_args

from uncanny.demo.scenes import scenes
from uncanny.errors import AnswerError, UsageError
from uncanny.eval.mcq.problems import ItemsError, Problem, shown
from uncanny.eval.metrics.detection import Source
from uncanny.eval.semantic.entries import TEXT_KEYS, Entry, read_bytes, take_apart
from uncanny.eval.semantic.read_anomaly import Allowances, FieldError, is_unicode, read_objects, read_text
from uncanny.eval.semantic.scored_image import AnomalyFile, ScoredAnomaly, ScoredImage
from uncanny.records.run_folder import RunFolder, unfinished
from uncanny.schema import Status

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
