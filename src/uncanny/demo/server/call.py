"""One request to the fake server, protocol aside, and what its parts have in common."""

from __future__ import annotations

import binascii
import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Protocol, TypeVar

import orjson
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from uncanny.demo.prompts import IMAGE_TOKENS, BrainAnswer, BrainRequest, SchemaForm, text_tokens


class BadCallError(Exception):
    """The body is no valid request; `str()` says why."""


class Body(BaseModel):
    """Part of a request's body, as strict as the protocols are; what else is in it does not matter here."""

    model_config = ConfigDict(strict=True, frozen=True)


B = TypeVar("B", bound=Body)
Limit = Annotated[int, Field(ge=1)]


def read_body(model: type[B], body: Mapping[str, Any]) -> B:
    """Raises `BadCallError` that names the first field the protocol does not allow."""
    try:
        return model.model_validate(body)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        raise BadCallError(f"{where}: {first['msg']}") from None


@dataclass(frozen=True, slots=True)
class Call:
    """A request as read. `prefix` is the digest of everything up to the last image.

    Without an image it is the digest of the system text. `prefix_tokens` counts that part, `input_tokens`
    the whole request. `writes_cache`: the client asked for
    its prefix to be cached, or the protocol always does.
    """

    brain: BrainRequest
    model: str
    prefix: bytes
    prefix_tokens: int
    input_tokens: int
    writes_cache: bool = True
    stream: bool = False
    stream_usage: bool = False


@dataclass(frozen=True, slots=True)
class Answered:
    """What the model says: `refusal` where it declines; `cached` is the prefix's tokens if it was seen."""

    answer: BrainAnswer
    number: int
    cached: int | None
    refusal: str | None = None


class Dialect(Protocol):
    """One protocol's way to read requests and to write answers and errors."""

    name: str

    def read(self, body: Mapping[str, Any]) -> Call: ...

    def write(self, call: Call, said: Answered) -> bytes: ...

    def error(self, status: int, message: str, number: int) -> bytes: ...

    def models(self) -> bytes: ...

    def model(self, name: str) -> bytes: ...


class ImageDigests:
    """sha256 of images from their base64, each image decoded once."""

    def __init__(self) -> None:
        self._known: dict[bytes, str] = {}

    def of(self, text: str) -> str:
        """Raises `BadCallError` where the text is no base64."""
        try:
            raw = text.encode("ascii")
            key = hashlib.sha256(raw).digest()
            if key not in self._known:
                decoded = binascii.a2b_base64(raw, strict_mode=True)
                self._known[key] = hashlib.sha256(decoded).hexdigest()
        except ValueError as error:
            raise BadCallError(f"an image is not valid base64: {error}") from None
        return self._known[key]


def schema_form(schema: Any) -> SchemaForm:
    """Whether the schema asks for `{"answer": …}` around an object or list, or for the bare answer."""
    if not isinstance(schema, dict):
        return "none"
    properties = schema.get("properties")
    if not isinstance(properties, dict) or properties.keys() != {"answer"}:
        return "own"
    inner = properties["answer"]
    scalar = isinstance(inner, dict) and (
        inner.get("type") not in (None, "object", "array") or "enum" in inner
    )
    return "own" if scalar else "shared"


def measure(
    protocol: str, model: str, schema: Any, system: str, parts: list[tuple[str, str, str]]
) -> tuple[Any, ...]:
    """(prefix digest, prefix tokens, input tokens) from the messages' (role, kind, text or digest) parts.

    Raises `BadCallError` for a schema nested too deep to be written.
    """
    try:
        rendered = orjson.dumps(schema)
    except TypeError as error:
        raise BadCallError(f"the schema is no JSON that can be written: {error}") from None
    last = max((index for index, part in enumerate(parts) if part[1] == "image"), default=-1)
    head = [protocol, model, rendered.decode(), system, parts[: last + 1]]
    digest = hashlib.sha256(orjson.dumps(head)).digest()
    fixed = text_tokens(system) + (text_tokens(rendered.decode()) if schema else 0)
    return digest, fixed + _count(parts[: last + 1]), fixed + _count(parts)


def _count(parts: Iterable[tuple[str, str, str]]) -> int:
    return sum(IMAGE_TOKENS if kind == "image" else text_tokens(text) for _, kind, text in parts)
