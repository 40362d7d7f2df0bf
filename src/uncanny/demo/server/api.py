"""What a provider's API is to the fake server: a way to read requests, and to write answers and errors.

`openai` and `anthropic` are the two; here is what they share, from checking a body to counting its tokens.
"""

from __future__ import annotations

import binascii
import hashlib
import io
from abc import ABC, abstractmethod
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Final, Literal, TypeVar

import orjson
from PIL import Image
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from uncanny.demo.model import DemoAnswer, DemoRequest, SchemaForm, image_tokens
from uncanny.demo.views import image_key
from uncanny.models.tokens import image_tokens as model_image_tokens
from uncanny.models.tokens import text_tokens

WRONG_KEY: Final = "wrong-key"


class BadRequestError(Exception):
    """The body is no valid request; `str()` says why, `status` with which status."""

    def __init__(self, message: str, *, status: int = 400) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True, slots=True)
class Reply:
    """A whole answer that is not the model's: status, JSON, and headers besides."""

    status: int
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)


class Body(BaseModel):
    """Part of a request's body, as strict as the APIs are; what else is in it does not matter here."""

    model_config = ConfigDict(strict=True, frozen=True)


B = TypeVar("B", bound=Body)
Limit = Annotated[int, Field(ge=1)]


def read_body(model: type[B], body: Mapping[str, Any]) -> B:
    """Raises `BadRequestError` that names the first field the API does not allow."""
    try:
        return model.model_validate(body)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        field = ".".join(str(part) for part in first["loc"])
        raise BadRequestError(f"{field}: {first['msg']}") from None


Part = tuple[str, Literal["text", "image"], str]
"""(role, kind, text or the image's digest)."""


@dataclass(frozen=True, slots=True)
class PromptSize:
    """`prefix` is the digest of everything up to the last image; without an image, of the system text.

    `prefix_tokens` counts that part, `input_tokens` the whole request. `starts` has what ends with each
    image, the shortest first, as digest and tokens: any of it may have been sent before.
    """

    prefix: bytes
    prefix_tokens: int
    input_tokens: int
    starts: tuple[tuple[bytes, int], ...]

    def known(self, finished: Container[bytes]) -> int | None:
        """Tokens of the longest start that is among those that are `finished`."""
        return next((tokens for start, tokens in reversed(self.starts) if start in finished), None)

    def kept(self, least: int) -> list[bytes]:
        """The starts that are long enough to be kept for further requests."""
        return [start for start, tokens in self.starts if tokens >= least]


@dataclass(frozen=True, slots=True)
class ApiRequest:
    """A request as read. `writes_cache`: its prefix is to be cached, as asked or as the API always does.

    A prefix of fewer than `least_cached` tokens is not, whatever is asked.
    """

    demo: DemoRequest
    model: str
    size: PromptSize
    writes_cache: bool = True
    least_cached: int = 0
    stream: bool = False
    stream_usage: bool = False


@dataclass(frozen=True, slots=True)
class ApiAnswer:
    """An answer to be written. `refusal` where the model declines.

    `number` is the request's, from 0; `cached` is the prefix's tokens if it was answered before.
    """

    demo: DemoAnswer
    number: int
    cached: int | None
    refusal: str | None = None

    @property
    def text(self) -> str:
        return self.demo.text if self.refusal is None else self.refusal


class ProviderApi(ABC):
    """One provider's API."""

    name: str

    def __init__(self, digests: ImageDigests) -> None:
        self._digests = digests

    @abstractmethod
    def read(self, body: Mapping[str, Any]) -> ApiRequest:
        """Raises `BadRequestError` for anything the API does not allow."""

    @abstractmethod
    def write(self, request: ApiRequest, answer: ApiAnswer) -> bytes:
        """The body of the answer, or all server-sent events of it."""

    @abstractmethod
    def error(self, status: int, message: str, number: int) -> bytes:
        """The body of an error."""

    @abstractmethod
    def blocked(self) -> Reply:
        """What comes back where moderation turns a question down."""

    @abstractmethod
    def overloaded(self) -> Reply:
        """What comes back where there is too much to do."""

    def key(self, headers: Mapping[str, str]) -> str | None:
        """The key in a request's headers; None where one is needed and there is none."""
        return headers.get("x-api-key") or headers.get("Authorization", "").removeprefix("Bearer ")

    def wrong_key(self) -> tuple[int, str]:
        """Status and message for the key `WRONG_KEY`."""
        return 401, f"The API key {WRONG_KEY!r} is not valid; the fake server takes any other"

    @abstractmethod
    def models(self) -> bytes:
        """The list of models."""

    @abstractmethod
    def model(self, name: str) -> bytes:
        """One entry of that list."""


class ImageDigests:
    """sha256 of images from their base64, each image decoded once."""

    def __init__(self) -> None:
        self._known: dict[bytes, str] = {}
        self._sizes: dict[str, tuple[int, int]] = {}

    def tokens(self, digest: str, model: str) -> int:
        """What an image counts as for `provider/model`, by its size; 1024² where its header says none.

        As `models.tokens.image_tokens` counts it. A model that it knows nothing of, as most names that
        somebody makes up for this server are, takes what the demo model takes.
        """
        size = self._sizes.get(digest, (1024, 1024))
        tokens = model_image_tokens(model, *size)
        return image_tokens(*size) if tokens is None else tokens

    def digest(self, text: str) -> str:
        """Raises `BadRequestError` where the text is no base64."""
        try:
            raw = text.encode("ascii")
            key = hashlib.sha256(raw).digest()
            if key not in self._known:
                decoded = binascii.a2b_base64(raw, strict_mode=True)
                digest = self._known[key] = image_key(hashlib.sha256(decoded).hexdigest(), decoded)
                if (size := _size(decoded)) is not None:
                    self._sizes[digest] = size
        except ValueError as error:
            raise BadRequestError(f"an image is not valid base64: {error}") from None
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


def _size(data: bytes) -> tuple[int, int] | None:
    try:
        with Image.open(io.BytesIO(data)) as image:
            return image.size
    except Exception:  # whatever is wrong with it: the API takes any bytes
        return None


def prompt_size(
    api: str, model: str, schema: Any, system: str, parts: Sequence[Part], images: ImageDigests
) -> PromptSize:
    """Prefix and tokens of a request from its messages' parts.

    Raises `BadRequestError` for a schema nested too deep to be written.
    """
    try:
        schema_json = orjson.dumps(schema).decode()
    except TypeError as error:
        raise BadRequestError(f"the schema cannot be written as JSON: {error}") from None
    fixed = text_tokens(system) + (text_tokens(schema_json) if schema else 0)

    def tokens(parts: Iterable[Part]) -> int:
        return sum(
            images.tokens(text, f"{api}/{model}") if kind == "image" else text_tokens(text)
            for _, kind, text in parts
        )

    def start(end: int) -> tuple[bytes, int]:
        head = [api, model, schema_json, system, list(parts[:end])]
        return hashlib.sha256(orjson.dumps(head)).digest(), fixed + tokens(parts[:end])

    ends = [index + 1 for index, part in enumerate(parts) if part[1] == "image"]
    starts = tuple(start(end) for end in ends or [0])
    return PromptSize(*starts[-1], fixed + tokens(parts), starts)
