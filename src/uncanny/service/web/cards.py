"""A record in a few words, as a job's page shows it: what it is about, its worst finding, what failed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Final

from uncanny.service.store.ids import is_id

# What a page says of a text that a model or a file gave.
_LONGEST: Final = 300
# An answer that declines, or that nothing can be read from, is one all the same: nothing asks for it again.
ANSWERED: Final = ("ok", "refused", "undetermined")


@dataclass(frozen=True, slots=True)
class Card:
    """A record as a page shows it: what it is about, its worst finding in a line, and how many more it has.

    `severity` runs from 0 to 100, realistic; None where the record has none. `picture` is the key of its
    image, None where it has no image, or none whose bytes are known.
    """

    name: str
    status: str
    headline: str
    severity: int | None
    others: int
    picture: str | None


@dataclass(frozen=True, slots=True)
class Failure:
    """What went wrong with one input, in the words of its record."""

    name: str
    kind: str
    message: str


def image_name(image: str) -> str:
    """An image as people call it: uploads by the name they came with, others from their folder's name on."""
    steps = [step for step in image.split("/") if step not in ("..", ".", "")]
    if image.startswith("../") and len(steps) > 2 and steps[0] == "images" and is_id(steps[1], "set"):
        return "/".join(steps[2:])
    return "/".join(steps[-2:]) if image.startswith("../") else image


def picture_key(image: str) -> str:
    """What addresses call an image by."""
    return sha256(image.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def status_of(record: Mapping[str, Any]) -> str:
    """`ok`, or what its record says of an input that failed, in whole or in part."""
    status = record.get("status")
    if isinstance(status, str):
        return status
    if record.get("outcome") in ANSWERED:
        return str(record["outcome"])
    return "failed" if record.get("error") or record.get("errors") else "ok"


def card_of(record: Mapping[str, Any]) -> Card:
    """What a page shows of a record."""
    status = status_of(record)
    image = record.get("image")
    headline, severity, others = _headline(record, status)
    readable = isinstance(image, str) and isinstance(record.get("sha256"), str)
    return Card(
        _name(record),
        status,
        _short(headline),
        severity,
        others,
        picture_key(str(image)) if readable else None,
    )


def _name(record: Mapping[str, Any]) -> str:
    image = record.get("image")
    if isinstance(image, str):
        return image_name(image)
    return " ".join(_short(record[name]) for name in ("id", "question") if record.get(name))


def _headline(record: Mapping[str, Any], status: str) -> tuple[str, int | None, int]:
    """What the card says, with the severity of the worst finding, and how many findings there are besides."""
    findings = [each for each in _list(record, "anomalies") if isinstance(each.get("severity"), int)]
    if findings:
        worst = min(findings, key=lambda each: int(each["severity"]))
        return str(worst.get("name", "")), max(0, min(100, worst["severity"])), len(findings) - 1
    if status in ("failed", "unreadable"):
        return failure_of(record).message, None, 0
    if regions := _list(record, "regions"):
        return str(regions[0].get("category", "region")).replace("_", " "), None, len(regions) - 1
    for key in ("label", "raw", "source"):
        if isinstance(record.get(key), str):
            return str(record[key]).replace("_", " "), None, 0
    return ("in part only" if status == "partial" else "nothing found"), None, 0


def failure_of(record: Mapping[str, Any]) -> Failure:
    """What its record says of an input that failed."""
    errors = _list(record, "errors")
    error = errors[0] if errors else record.get("error")
    if isinstance(error, dict):
        kind, message = str(error.get("kind", "")), str(error.get("message", ""))
    else:
        kind, message = "", str(error or "It could not be done.")
    return Failure(_name(record), kind, _short(message))


def advice_on(kinds: set[str]) -> str:
    """What to do about failures of these kinds."""
    words = " ".join(kinds)
    if "authentication" in words or "permission" in words:
        return "The provider refused the key. Have the service's operator set it, then ask again."
    if "unreadable" in words or "image" in words:
        return (
            "A picture that cannot be read stays as it is: mend or leave out the file, and start a new job."
        )
    return "What failed is recorded and costs nothing further. “Ask failed again” asks for these only."


def _list(record: Mapping[str, Any], key: str) -> list[dict[str, Any]]:
    value = record.get(key)
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def _short(value: object) -> str:
    text = str(value)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
