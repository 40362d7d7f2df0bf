"""Models behind the chat completions API, which OpenAI defines and many servers have.

Request bodies out, responses in, and what is learned on the way about the server's variant of it. Hosted
OpenAI, vLLM and others differ in an `ApiVariant` only.
"""

from __future__ import annotations

import re
from collections.abc import Container, Sequence, Set
from dataclasses import dataclass, replace
from typing import Any

import httpx2
import orjson
from openai import AsyncOpenAI, Omit

from uncanny.errors import ProviderError, RequestRejectedError, TransientError
from uncanny.models.addresses import OWN_PATH, Address
from uncanny.models.base import (
    AnswerSchema,
    Capabilities,
    Detail,
    Finish,
    Message,
    ModelProvider,
    ModelRequest,
    ModelResponse,
    Sampling,
    SentImage,
    Tokens,
)
from uncanny.models.error_body import ErrorBody, one_line
from uncanny.models.http import Exchange
from uncanny.models.http_errors import ErrorContext, Flagged, NothingThereError, Rejection, bad_body
from uncanny.models.presets import OPENAI, ApiVariant, LimitName
from uncanny.schema import as_dollars
from uncanny.wording import Words, marked, option, server_address

# One name for all steps: it is rendered ahead of the prompt, too.
SHARED_NAME = "answer"
# Reasons to finish that mean that a filter, not the model, ended an answer; some servers add which one.
_FILTERED = frozenset(
    {
        "content_filter",
        "safety",
        "sensitive",
        "prohibited_content",
        "blocklist",
        "recitation",
        "spii",
        "image_safety",
    }
)


def chat_body(
    request: ModelRequest,
    model: str,
    variant: ApiVariant,
    parameters: dict[str, Any],
    left_out: frozenset[str],
) -> bytes:
    """The JSON body. What differs between requests about one image comes last, in the messages and after.

    `left_out` names fields the server does not take.
    """
    body: dict[str, Any] = {"model": model}
    if request.schema is not None and "response_format" not in left_out:
        body["response_format"] = response_format(request.schema, variant)
    detail = None if "detail" in left_out else variant.detail
    uuid = variant.image_uuid and "uuid" not in left_out
    turns = _one_system(request.messages) if variant.one_system else request.messages
    marked: Set[tuple[int, int]] = frozenset()
    if variant.cache_control is not None and re.search(variant.cache_control, model):
        marked = breakpoints(turns)
    body["messages"] = [
        _message(turn, detail, uuid, {at for number, at in marked if number == index})
        for index, turn in enumerate(turns)
    ]
    return orjson.dumps(body | parameters | cache_key(request, variant, left_out))


def cache_key(request: ModelRequest, variant: ApiVariant, left_out: Container[str]) -> dict[str, str]:
    """The field that sends requests about one image to where its prefix is cached."""
    image = request.first_image()
    if not variant.cache_key or image is None or "prompt_cache_key" in left_out:
        return {}
    # Half of the digest: keys of more than 64 characters are refused, this leaves room on all sides.
    return {"prompt_cache_key": image.sha256[:32]}


def response_format(schema: AnswerSchema, variant: ApiVariant) -> dict[str, Any]:
    name, content = (SHARED_NAME, schema.shared) if variant.shared_schema else (schema.name, schema.own)
    strict = {"strict": True} if variant.strict else {}
    return {"type": "json_schema", "json_schema": {"name": name, **strict, "schema": content}}


def _one_system(messages: Sequence[Message]) -> list[Message]:
    """The messages with all system texts in the first of them."""
    system = [part for message in messages if message.role == "system" for part in message.parts]
    rest = [message for message in messages if message.role != "system"]
    return [Message("system", tuple(system)), *rest] if system else rest


_BREAKPOINT = {"cache_control": {"type": "ephemeral"}}


def breakpoints(turns: Sequence[Message]) -> set[tuple[int, int]]:
    """Turn and part of the ends of prefixes that other requests begin with, for servers that keep only marked
    ones: the last shared image, and what the first turn with anything shared shares."""
    images = [
        (i, j)
        for i, turn in enumerate(turns)
        for j, part in enumerate(turn.parts)
        # Writing to the cache costs extra: not for an image that no other request begins with.
        if isinstance(part, SentImage) and j < turn.shared
    ]
    shared = [(i, min(turn.shared, len(turn.parts)) - 1) for i, turn in enumerate(turns) if turn.shared > 0]
    return {*images[-1:], *shared[:1]}


def _message(message: Message, detail: Detail | None, uuid: bool, marked: Set[int]) -> dict[str, Any]:
    texts = [part for part in message.parts if isinstance(part, str)]
    if len(texts) == len(message.parts):
        # A plain string is what every server takes.
        return {"role": message.role, "content": "\n\n".join(texts)}
    parts = [_part(part, detail, uuid) for part in message.parts]
    for at in marked:
        parts[at] |= _BREAKPOINT
    return {"role": message.role, "content": parts}


def _part(part: str | SentImage, detail: Detail | None, uuid: bool) -> dict[str, Any]:
    if isinstance(part, str):
        return {"type": "text", "text": part}
    image_url: dict[str, Any] = {"url": part.data_url}
    if detail is not None:
        image_url["detail"] = detail
    content: dict[str, Any] = {"type": "image_url", "image_url": image_url}
    return content | {"uuid": part.sha256} if uuid else content


def read_chat(
    content: dict[str, Any],
    request_id: str | None,
    context: ErrorContext,
    variant: ApiVariant = OPENAI.variant,
) -> ModelResponse:
    """The response in a chat completion; raises `TransientError` where there is none.

    A completion without a choice that was billed or that says why is a refusal: Gemini answers a blocked
    request so.
    """
    usage = content.get("usage")
    tokens = _tokens(usage, variant)
    cost_usd = _cost(usage) if variant.reports_cost and isinstance(usage, dict) else None
    model = _string(content.get("model"))
    request_id = request_id or _string(content.get("id"))
    choices = content.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    if not isinstance(choice, dict):
        blocked = _blocked(content, tokens, context) if choices in (None, []) else None
        if blocked is not None:
            return ModelResponse("", "refusal", tokens, model, request_id, blocked, cost_usd)
        raise bad_body(context, f"no choices in it (fields: {_fields(content, context)})")
    reason = _string(choice.get("finish_reason")) or ""
    message = choice.get("message")
    filtered = reason.lower().partition(":")[0] in _FILTERED
    if not isinstance(message, dict):
        if not filtered:
            raise bad_body(context, f"no message in it (fields: {_fields(choice, context)})")
        message = {}
    if reason in ("error", "abort"):
        raise bad_body(context, f"generation ended with {reason!r}")
    finish: Finish = "length" if reason == "length" else "stop"
    text = _text(message.get("content"))
    refusal = message.get("refusal")
    if refusal or filtered:
        finish, text = "refusal", refusal if isinstance(refusal, str) else text
    return ModelResponse(
        text=text,
        finish=finish,
        tokens=tokens,
        model=model,
        request_id=request_id,
        reason=one_line(f"the server stopped it: {reason}", context.secrets) if filtered else None,
        cost_usd=cost_usd,
    )


def _blocked(content: dict[str, Any], tokens: Tokens, context: ErrorContext) -> str | None:
    """Why a completion without choices is a refusal; None where it is just broken."""
    feedback = content.get("promptFeedback", content.get("prompt_feedback"))
    if isinstance(feedback, dict):
        block = (
            _string(feedback.get("blockReason")) or _string(feedback.get("block_reason")) or "no reason given"
        )
        return one_line(f"the server blocked the question: {block}", context.secrets)
    if tokens.input:
        return "the server took the question and gave no answer"
    return None


def _fields(content: dict[str, Any], context: ErrorContext) -> str:
    return one_line(", ".join(sorted(content)[:8]), context.secrets)


def _text(content: object) -> str:
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    return "".join(part["text"] for part in content if isinstance(part, dict) and _string(part.get("text")))


def _cost(usage: dict[str, Any]) -> float | None:
    """What a call cost in dollars; None where the server knows only a part of it.

    With a key of the user's own at the model's provider (`is_byok`), `cost` is the router's fee alone, often
    0, and the provider bills the rest.
    """
    cost = as_dollars(usage.get("cost"))
    if cost is None or usage.get("is_byok") is not True:
        return cost
    details = usage.get("cost_details")
    upstream = as_dollars(details.get("upstream_inference_cost")) if isinstance(details, dict) else None
    return None if upstream is None else cost + upstream


def _tokens(usage: object, variant: ApiVariant) -> Tokens:
    if not isinstance(usage, dict):
        return Tokens()
    details = usage.get("prompt_tokens_details")
    if not isinstance(details, dict):
        details = {}
    read: object = usage
    for name in variant.cached.split("."):
        read = read.get(name) if isinstance(read, dict) else None
    prompt, output = count(usage.get("prompt_tokens")), count(usage.get("completion_tokens"))
    total = count(usage.get("total_tokens"))
    if variant.reasoning_beside and None not in (prompt, output, total):
        output = max(output or 0, (total or 0) - (prompt or 0))
    return Tokens(
        input=prompt,
        output=output,
        cached=count(read),
        cache_written=count(details.get("cache_write_tokens")),
        images=_image_tokens(details),
    )


def _image_tokens(details: dict[str, Any]) -> int | None:
    """As SGLang, gateways to Gemini and vLLM report them, the latter by modality."""
    by_modality = details.get("multimodal_tokens")
    if isinstance(by_modality, dict):
        return count(by_modality.get("image"))
    return count(details.get("image_tokens"))


def count(value: object) -> int | None:
    """`value` if it is a number of tokens, None otherwise."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _string(value: object) -> str | None:
    return value if isinstance(value, str) else None


# In the order in which they are given up when a message names several.
_ADAPTABLE = (
    "max_completion_tokens",
    "max_tokens",
    "prompt_cache_key",
    "detail",
    "uuid",
    "top_p",
    "temperature",
)
_OPTIONAL = frozenset({"response_format", "prompt_cache_key", "detail", "uuid"})

_NOT_TAKEN = re.compile(
    r"unsupported|not support|n't support|unknown|unrecogni[sz]ed|unexpected|extra inputs|not permitted"
    r"|not allowed|only the default|only [\d.]+ is allowed|cannot both",
    re.IGNORECASE,
)
_SCHEMA_WORDS = re.compile(r"response_format|json_schema|structured output|guided|grammar", re.IGNORECASE)


def _may_be_the_path(error: ProviderError) -> bool:
    """Whether an error may be about the path: also some servers' status 200 without an answer."""
    if isinstance(error, NothingThereError):
        return not error.unknown_model
    return isinstance(error, TransientError) and error.kind == "bad_body"


@dataclass(frozen=True, slots=True)
class Place:
    """Where requests go: an address, the client that posts there, and how errors name it.

    `left_out` are headers of the client's that are not sent: it takes no other word for it than a call's.
    """

    address: Address
    client: AsyncOpenAI
    context: ErrorContext
    left_out: tuple[str, ...] = ()

    def below_version(self) -> Place:
        """The same server with `/v1` in the path."""
        address = self.address.with_version()
        client = self.client.with_options(base_url=address.url)
        context = replace(self.context, endpoint=address.shown)
        return replace(self, address=address, client=client, context=context)

    @property
    def options(self) -> Any:  # a type that the SDK does not export
        return {"headers": dict.fromkeys(self.left_out, Omit())} if self.left_out else {}


class ChatModel(ModelProvider):
    """A provider over an SDK client; one HTTP call per request.

    Where a server answers 400 naming a parameter it does not take, the call is made again without it, once
    for each, and it is not sent any more: `sent` says what goes out. Where there is nothing at an address
    whose path names no version, `/v1` is tried once, and kept if something answers there; `notices` says so.
    `capabilities` and `endpoint` stay as they are, because answers are kept under them.
    """

    def __init__(
        self,
        place: Place,
        *,
        capabilities: Capabilities,
        variant: ApiVariant,
        timeout_s: float,
    ) -> None:
        self.name, self.endpoint = place.context.name, place.address.identity
        self.capabilities = replace(capabilities, paints=True)
        self._place, self._variant, self._timeout_s = place, variant, timeout_s
        self._left_out: frozenset[str] = frozenset()
        self._not_painted_with = set[str]()
        self._in_doubt = not place.address.has_version
        self.notices: list[str] = []

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r} at {self._place.context.endpoint})"

    @property
    def secrets(self) -> tuple[str, ...]:
        return self._place.context.secrets

    @property
    def left_out(self) -> frozenset[str]:
        """Fields of a request the server turned out not to take."""
        return self._left_out

    def sent(self, sampling: Sampling) -> dict[str, Any]:
        """The sampling parameters as they go over the wire."""
        wanted = {
            "temperature": sampling.temperature if self.capabilities.temperature else None,
            "top_p": sampling.top_p if self.capabilities.top_p else None,
            self._limit(): sampling.max_output_tokens,
        }
        left_out = self._left_out - {self._limit()}
        return {name: value for name, value in wanted.items() if value is not None and name not in left_out}

    async def generate(self, request: ModelRequest) -> ModelResponse:
        """Make one call; see `ModelProvider.generate`."""
        if request.painting is not None:
            from uncanny.models.painting.image_edits import edit_image

            return await edit_image(request, self._place, self._timeout_s, self._not_painted_with)
        self._check_images(request)
        place = self._place
        lost: ProviderError | None = None
        while True:
            left_out, parameters = self._left_out, self.sent(request.sampling)
            body = chat_body(request, place.context.model, self._variant, parameters, left_out)
            self._check_size(body)
            try:
                async with Exchange(place.context, self._timeout_s) as exchange:
                    exchange.response = await place.client.post(
                        OWN_PATH, cast_to=httpx2.Response, content=body, options=place.options
                    )
                content, headers = exchange.result()
            except Flagged as flagged:
                self._someone_at(place)
                return ModelResponse("", "refusal", Tokens(), reason=flagged.reason)
            except Rejection as rejection:
                self._someone_at(place)
                carried = (_OPTIONAL | parameters.keys()) - left_out
                if request.schema is None:
                    carried -= {"response_format"}
                refused = self._not_taken(rejection.body, carried)
                if refused is None:
                    raise
                self._left_out |= {refused}
            except ProviderError as error:
                place, lost = self._elsewhere(place, lost, error), error
            else:
                self._someone_at(place)
                self._in_doubt = False
                return read_chat(content, headers.get("x-request-id"), place.context, self._variant)

    def _check_images(self, request: ModelRequest) -> None:
        most = self._variant.max_images
        if most is not None:
            images = sum(1 for _ in request.images())
            if images > most:
                raise RequestRejectedError(
                    f"{self.name} takes at most {most} images per request, and this one has {images}",
                    remedy="Ask about fewer at once.",
                )

    def _check_size(self, body: bytes) -> None:
        most = self._variant.max_request_bytes
        if most is not None and len(body) > most:
            raise RequestRejectedError(
                f"{self.name} takes at most {most:,} bytes per request, and this one has {len(body):,}",
                remedy=f"Send smaller images: {option('max_side', 1024)}.",
            )

    def _elsewhere(self, place: Place, before: ProviderError | None, error: ProviderError) -> Place:
        """Where to post again after `error` at `place`, which came after `before` elsewhere.

        Raises `error` where it is not about the path, and `before` where the path was no better.
        """
        if before is None:
            if place.address.has_version or not _may_be_the_path(error):
                raise error
            if self._place is not place:  # another call has seen meanwhile that it is below the version
                return self._place
            if not self._in_doubt:
                raise error
            return place.below_version()
        if place is not self._place:
            if _may_be_the_path(error):
                also = f" ({place.address}, tried as well, fails too)"
                before.message = Words(marked(before.message) + also)
                raise before from None
            if not isinstance(error, TransientError):
                self._someone_at(place)
        raise error

    def _someone_at(self, place: Place) -> None:
        """There is a server at `place`: where that is below the version, it is used from now on."""
        if self._in_doubt and place.address.has_version:
            self._in_doubt = False
            words = (
                f"{self.name}: nothing is at {self._place.address}; {place.address} was used: "
                f"give that as {server_address()}"
            )
            self.notices.append(Words(words))
            self._place = place

    async def close(self) -> None:
        await self._place.client.close()

    def _limit(self) -> LimitName:
        first = self._variant.limit
        if first not in self._left_out:
            return first
        return "max_tokens" if first == "max_completion_tokens" else "max_completion_tokens"

    def _not_taken(self, error: ErrorBody, carried: Set[str]) -> str | None:
        """Which of the fields `carried` the server does not take; None where it objects to something else."""
        unsupported = _NOT_TAKEN.search(error.message) is not None
        # Servers without constrained decoding say so in many ways; what OpenAI has against a schema is to be
        # seen.
        about_schema = error.parameter == "response_format" or _SCHEMA_WORDS.search(error.message)
        if about_schema and "response_format" in carried and (unsupported or not self._variant.shared_schema):
            return "response_format"
        if not unsupported:
            return None
        for field in _ADAPTABLE:
            named = re.search(rf"\b{field}\b", error.parameter or error.message)
            if named and field in carried:
                return field
        return None
