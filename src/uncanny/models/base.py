"""The interface between agents and models: a `ModelRequest` in, a `ModelResponse` with usage out.

A provider makes exactly one call per `generate` and never retries: retries, caching, budgets, repairs and
fallbacks are `uncanny.client.client`'s, once for all providers. An image is encoded here, once for all
requests about it.
"""

from __future__ import annotations

import base64
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, Protocol

import orjson

from uncanny.errors import writable

if TYPE_CHECKING:
    from uncanny.images.prepared import PreparedImage
    from uncanny.models.discount.batches import BatchApi
    from uncanny.models.discount.responses import BackgroundApi
    from uncanny.models.presets import Window

Finish = Literal["stop", "length", "refusal"]
Outcome = Literal["answered", "unparseable", "refused", "error"]
# How closely a server looks at an image, where it lets clients say.
Detail = Literal["low", "high", "auto", "original"]
COMMON_MEDIA_TYPES = frozenset({"image/png", "image/jpeg", "image/webp", "image/gif"})


@dataclass(frozen=True, slots=True, eq=False)
class SentImage:
    """An image as models see it: encoded once, then shared by every request about it.

    `sha256` is that of the bytes as sent. `base64` is ASCII. `data_url` is a ready JSON string (with its
    quotes), so that a request body is serialised without touching the megabyte inside it again.
    """

    sha256: str
    media_type: str
    width: int
    height: int
    base64: bytes
    data_url: orjson.Fragment = field(repr=False)


Part = str | SentImage
Files = Mapping[str, str]
"""The provider's ids of images that were uploaded, by their sha256."""
NO_FILES: Files = {}


@dataclass(frozen=True, slots=True)
class Message:
    """One turn. The first `shared` parts are the same in many requests: worth a cache breakpoint."""

    role: Literal["system", "user", "assistant"]
    parts: tuple[Part, ...]
    shared: int = 0


@dataclass(frozen=True, slots=True)
class AnswerSchema:
    """What a constrained answer must look like, as JSON schema.

    `own` describes this step's answer alone. `shared` is one schema for all steps of a task, under which the
    same answer is wrapped as `{"answer": …}`: providers that render the schema ahead of the prompt keep
    their prefix cache only if all requests carry the same one.
    """

    name: str
    own: dict[str, Any]
    shared: dict[str, Any]

    @property
    def lists(self) -> tuple[str, ...]:
        """The keys of the lists that the answer has to have; one, as a rule."""
        return tuple(self.own["properties"]["answer"]["properties"])


@dataclass(frozen=True, slots=True)
class Sampling:
    """Sampling parameters; None leaves the provider's default. `max_output_tokens` is always sent."""

    temperature: float | None = None
    top_p: float | None = None
    max_output_tokens: int = 2_000


class Keep(Protocol):
    """Stores a picture; see `Painting`."""

    def __call__(self, data: bytes, sent: Mapping[str, float], *, resampled: bool = False) -> str: ...


@dataclass(frozen=True, slots=True)
class Painting:
    """How a picture is painted over, for a request that asks for a picture and not for words.

    The request's images are the picture and its mask, two PNG files of one size; it is painted over where the
    mask is white, and the text that follows them says what the whole picture shows. `seed` makes a repeat the
    same, where the model takes one. `guidance` (0 or more) is how closely it follows the text, `strength`
    (0–1) how far it may leave what was there, `steps` how many it takes.

    `keep` takes the picture that came, as the bytes of an image file of any size, and those of these
    parameters that the model was really sent, by name; it stores both and returns the text of the response.
    `resampled` says that the model drew at another size, so that all pixels differ from those it was sent.
    `device` is where a model of this process paints, None for the fastest.
    """

    seed: int
    guidance: float
    strength: float
    steps: int
    keep: Keep = field(repr=False, compare=False)
    device: str | None = None

    @property
    def parameters(self) -> dict[str, float]:
        """All that a model may be sent, by name."""
        names = ("seed", "guidance", "strength", "steps")
        return {name: getattr(self, name) for name in names}


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One request to a model. `sample` tells repeats of the same request apart: three drafts stay three.

    `painting` asks a provider that `paints` for a picture. `agent`, `step` and `subject` (an object's name)
    say whose it is; they are for records, not for the model. So is `batch`, the names of the objects where it
    is about several.
    """

    messages: tuple[Message, ...]
    sampling: Sampling
    schema: AnswerSchema | None = None
    sample: int = 0
    agent: str = ""
    step: int = 1
    subject: str | None = None
    batch: tuple[str, ...] = ()
    painting: Painting | None = None

    def first_image(self) -> SentImage | None:
        return next(self.images(), None)

    def images(self) -> Iterator[SentImage]:
        """All of them, one that comes twice as well."""
        for message in self.messages:
            yield from (part for part in message.parts if not isinstance(part, str))

    def to_paint(self) -> tuple[SentImage, SentImage, str]:
        """The picture, its mask and the text of a request with a `painting`; a repair asks for the same."""
        picture, mask, text = self.messages[0].parts
        assert not isinstance(picture, str)
        assert not isinstance(mask, str)
        assert isinstance(text, str)
        return picture, mask, text


@dataclass(frozen=True, slots=True)
class Tokens:
    """Usage of one call, as the provider reports it; None where it does not.

    `input` includes `cached` (read from the provider's prefix cache), `cache_written`, and `images`, those of
    the pictures.
    """

    input: int | None = None
    output: int | None = None
    cached: int | None = None
    cache_written: int | None = None
    images: int | None = None


# Of one call, in files; `client.budget.credible` knows the request and is stricter.
MOST_TOKENS = 1_000_000_000


@dataclass(frozen=True, slots=True)
class ModelResponse:
    """What came back from one call. `text` is empty when the model refused without words.

    `model` is the one that answered, `request_id` the server's name of the call. `reason` is why the server
    refused in the model's place, in the server's words. `cost_usd` is what the server says the call cost, in
    US dollars; it comes before all prices. None is what it did not say. Lone surrogates in the text, which no
    file takes, become U+FFFD.
    """

    text: str
    finish: Finish = "stop"
    tokens: Tokens = field(default_factory=Tokens)
    model: str | None = None
    request_id: str | None = None
    reason: str | None = None
    cost_usd: float | None = None

    def __post_init__(self) -> None:
        for name in ("text", "model", "request_id", "reason"):
            value = getattr(self, name)
            if isinstance(value, str) and not value.isascii():
                object.__setattr__(self, name, writable(value))


def masked(response: ModelResponse, mask: Callable[[str], str]) -> ModelResponse:
    """The response with what `mask` leaves of its texts."""
    text = mask(response.text)
    model = response.model and mask(response.model)
    request_id = response.request_id and mask(response.request_id)
    reason = response.reason and mask(response.reason)
    before = (response.text, response.model, response.request_id, response.reason)
    if (text, model, request_id, reason) == before:
        return response  # as good as always, and a new one takes longer than all the rest here
    return replace(response, text=text, model=model, request_id=request_id, reason=reason)


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What a provider takes. Limits are None where there is none.

    `media_types` and the limits are of images. `schema_in_prefix`: the schema is rendered ahead of the
    messages. `prefix_cache`: repeated prefixes are cheaper once one call with them has come back.
    `fixed_concurrency`: the server queues instead of refusing, so concurrency is not adapted. `paints`: it
    answers requests with a `painting`.
    """

    media_types: frozenset[str] = COMMON_MEDIA_TYPES
    max_image_bytes: int | None = None
    max_image_side: int | None = None
    temperature: bool = True
    top_p: bool = True
    schema_in_prefix: bool = False
    prefix_cache: bool = False
    fixed_concurrency: bool = False
    paints: bool = False


class Provider(Protocol):
    """What a provider of one's own must have; `models.custom` adds the rest of `ModelProvider`.

    `name` is `provider/model`, as the user wrote it: answers are stored under this name.
    """

    @property
    def name(self) -> str: ...

    @property
    def capabilities(self) -> Capabilities: ...

    async def generate(self, request: ModelRequest) -> ModelResponse:
        """Make one call; see `ModelProvider.generate`."""


class ModelProvider(ABC):
    """A model behind some API, with all that a run needs of it.

    `endpoint` is the base URL the calls go to, None for models in this process; it is part of the answer
    cache's key. `secrets` must be repeated nowhere, such as the key. `notices` are sentences for the user
    about what turned out on the way.
    """

    name: str
    capabilities: Capabilities
    endpoint: str | None = None
    notices: Sequence[str] = ()

    @property
    def secrets(self) -> tuple[str, ...]:  # no attribute: those are shown by debuggers and tracebacks
        return ()

    @abstractmethod
    async def generate(self, request: ModelRequest) -> ModelResponse:
        """Make one call.

        Raises `TransientError`, `RequestRejectedError`, `ProviderDefectError` or `ModelUnusableError` (or a
        subclass), nothing else.
        A refusal or a cut-off answer is a `ModelResponse` with that `finish`, not an exception.
        """

    def sent(self, sampling: Sampling) -> dict[str, Any]:
        """The sampling parameters as they go over the wire; for `run.json`."""
        parameters = {
            "temperature": sampling.temperature if self.capabilities.temperature else None,
            "top_p": sampling.top_p if self.capabilities.top_p else None,
            "max_output_tokens": sampling.max_output_tokens,
        }
        return {name: value for name, value in parameters.items() if value is not None}

    def batches(self) -> BatchApi | None:
        """How requests are handed in as a batch; None where they cannot be."""
        return None

    def background(self, window: Window) -> BackgroundApi | None:  # noqa: ARG002
        """How requests are answered within so many hours; None where they cannot be."""
        return None

    async def is_up(self) -> bool:
        """Whether the server answers at all, asked without a call to the model."""
        return True

    def starting(self) -> str | None:
        """How far it is, in words, while it cannot answer yet; None when it can, or nobody knows."""
        return None

    async def close(self) -> None:  # noqa: B027 - most have nothing open
        """Close what the provider has open."""


def sent_image(image: PreparedImage) -> SentImage:
    """Encoded once, for all requests about it."""
    return encode_image(
        sha256=image.sent_sha256,
        media_type=image.media_type,
        width=image.sent_width,
        height=image.sent_height,
        data=image.sent,
    )


_PIECE = 3 << 17  # three bytes make four characters


def encode_image(*, sha256: str, media_type: str, width: int, height: int, data: bytes) -> SentImage:
    """Encode the bytes of an image file; `sha256` is their digest, `width` and `height` are in pixels."""
    # A piece at a time: encoding holds the interpreter's lock, and an event loop may be waiting for it.
    content = memoryview(data)
    pieces = (content[at : at + _PIECE] for at in range(0, len(data), _PIECE))
    encoded = b"".join([base64.b64encode(piece) for piece in pieces])
    # Base64 and media types need no JSON escapes, so the quotes are all that is missing.
    data_url = b"".join((b'"data:', media_type.encode("ascii"), b";base64,", encoded, b'"'))
    return SentImage(
        sha256=sha256,
        media_type=media_type,
        width=width,
        height=height,
        base64=encoded,
        data_url=orjson.Fragment(data_url),
    )
