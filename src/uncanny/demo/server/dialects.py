"""Providers' own ways of the chat completions API, for `uncanny fake-server --as PROVIDER`.

Written from what providers document and users report, and not from `models.presets`, which tests hold against
this. A dialect is strict where its provider is, and in doubt: a field that it does not name is an error.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

import orjson

from uncanny.demo.server.api import ApiAnswer, ApiRequest, BadRequestError, ImageDigests, Reply
from uncanny.demo.server.openai import OpenAIApi

_COMMON: Final = frozenset({"model", "messages", "temperature", "top_p", "response_format", "stream"})
_BOTH: Final = _COMMON | {"max_tokens", "max_completion_tokens"}
_MAX: Final = _COMMON | {"max_tokens"}
_COMPLETION: Final = _COMMON | {"max_completion_tokens"}
_FOUR: Final = frozenset({"png", "jpeg", "webp", "gif"})
_DATA_URL: Final = re.compile(r"data:image/([a-z]+);base64,")
Usage = dict[str, Any]
ErrorContent = dict[str, Any] | list[dict[str, Any]]


def _openai_error(_status: int, code: str, message: str) -> ErrorContent:
    return {"error": {"message": message, "type": "invalid_request_error", "param": None, "code": code}}


def _google_error(status: int, code: str, message: str) -> ErrorContent:
    return [{"error": {"code": status, "message": message, "status": code.upper()}}]


def _openrouter_error(status: int, _code: str, message: str) -> ErrorContent:
    return {"error": {"code": status, "message": message}, "user_id": "user_fake"}


def _xai_error(_status: int, code: str, message: str) -> ErrorContent:
    return {"code": code, "error": message}


def _mistral_error(status: int, code: str, message: str) -> ErrorContent:
    if status != 422:
        return {"object": "error", "message": message, "type": code, "param": None, "code": "3000"}
    field = message.rpartition(" ")[2]
    problem = {"type": "extra_forbidden", "loc": ["body", field], "msg": "Extra inputs are not permitted"}
    return {"detail": [problem]}


def _llamacpp_error(status: int, code: str, message: str) -> ErrorContent:
    return {"error": {"code": status, "message": message, "type": code}}


def _vllm_error(status: int, code: str, message: str) -> ErrorContent:
    return {"object": "error", "message": message, "type": code, "param": None, "code": status}


def _filtered(status: int, code: str, message: str) -> Reply:
    return Reply(status, orjson.dumps(_openai_error(status, code, message)))


def _busy(status: int, message: str = "Overloaded (a fault of the fake server)") -> Reply:
    return Reply(status, orjson.dumps(_openai_error(status, "overloaded", message)), {"Retry-After": "1"})


_UNSAFE = "The response was filtered due to the prompt triggering a content management policy."
_USUALLY_BLOCKED: Final = _filtered(400, "content_filter", _UNSAFE)
_USUALLY_BUSY: Final = _busy(503)


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """How one provider differs.

    `path` comes before `/chat/completions`. `key` is the header that must carry a key, None where none is
    asked for. `fields` and `part_fields` are those of a request and of one part of a message that it takes;
    any other is an error of `unknown_status`. `detail`: an image may say how closely it is looked at.
    `strict`: a schema may be marked so. `usage` changes the usage that is reported. `wrong_key` is status and
    message for a wrong key, None for those of most. `error` is the body of an
    error, by status, code and message. `blocked` and `overloaded` are its answers to a question that its
    moderation turns down, and when there is too much to do.
    """

    path: str = "/v1"
    key: Literal["authorization", "api-key"] | None = "authorization"
    fields: frozenset[str] = _MAX
    part_fields: frozenset[str] = frozenset({"type", "text", "image_url"})
    detail: bool = False
    strict: bool = True
    formats: frozenset[str] = _FOUR
    most_images: int | None = None
    most_bytes: int | None = None
    one_system: bool = False
    fixed_sampling: str | None = None
    unknown_status: int = 400
    usage: Callable[[Usage], Usage] = dict
    wrong_key: tuple[int, str] | None = None
    error: Callable[[int, str, str], ErrorContent] = _openai_error
    blocked: Reply = _USUALLY_BLOCKED
    overloaded: Reply = _USUALLY_BUSY


def _with_cost(usage: Usage) -> Usage:
    return usage | {"cost": 0.0125, "cost_details": {"upstream_inference_cost": None}}


def _beside(usage: Usage) -> Usage:
    """Cached tokens beside the others, as Moonshot has them."""
    cached = usage["prompt_tokens_details"]["cached_tokens"]
    return {name: value for name, value in usage.items() if name != "prompt_tokens_details"} | {
        "cached_tokens": cached
    }


REASONING: Final = 40


def _with_reasoning(usage: Usage) -> Usage:
    """Tokens of reasoning in the total only, as Gemini and xAI have them."""
    details = {"completion_tokens_details": {"reasoning_tokens": REASONING}}
    return usage | details | {"total_tokens": usage["total_tokens"] + REASONING}


def _unreported(usage: Usage) -> Usage:
    return usage | {"prompt_tokens_details": None}


_RETRY = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "1s"}
_QUOTA = {"code": 429, "message": "Resource has been exhausted", "status": "RESOURCE_EXHAUSTED"}
_NOT_ANSWERED = {
    "object": "chat.completion",
    "model": "gemini-fake",
    "usage": {"prompt_tokens": 1034, "completion_tokens": 0, "total_tokens": 1034},
}

DIALECTS: Final[Mapping[str, Dialect]] = {
    "gemini": Dialect(
        path="/v1beta/openai",
        fields=_BOTH,
        formats=_FOUR - {"gif"},
        most_bytes=20_000_000,
        usage=_with_reasoning,
        wrong_key=(400, "API key not valid. Please pass a valid API key."),
        error=_google_error,
        blocked=Reply(200, orjson.dumps(_NOT_ANSWERED)),
        overloaded=Reply(429, orjson.dumps([{"error": _QUOTA | {"details": [_RETRY]}}])),
    ),
    "openrouter": Dialect(
        path="/api/v1",
        fields=_MAX | {"provider", "cache_control", "session_id", "usage"},
        part_fields=frozenset({"type", "text", "image_url", "cache_control"}),
        detail=True,
        one_system=True,
        usage=_with_cost,
        error=_openrouter_error,
        blocked=Reply(
            403,
            orjson.dumps(
                {
                    "error": {
                        "code": 403,
                        "message": "Your chosen model requires moderation and your input was flagged",
                        "metadata": {"reasons": ["violence/graphic"], "flagged_input": "…"},
                    }
                }
            ),
        ),
        overloaded=Reply(200, orjson.dumps({"error": {"code": 503, "message": "No instances available"}})),
    ),
    "azure": Dialect(
        path="/openai/v1",
        key="api-key",
        fields=_COMPLETION | {"prompt_cache_key"},
        detail=True,
        fixed_sampling=r"^(o\d|gpt-5)",
        overloaded=_busy(429),
    ),
    "bedrock": Dialect(fields=_COMPLETION),
    "mistral": Dialect(
        fields=_MAX | {"prompt_cache_key", "random_seed", "safe_prompt"},
        most_images=8,
        unknown_status=422,
        error=_mistral_error,
        blocked=_filtered(400, "content_moderation", "The prompt was flagged by moderation"),
        overloaded=_busy(429),
    ),
    "xai": Dialect(
        fields=_BOTH,
        detail=True,
        formats=frozenset({"png", "jpeg"}),
        wrong_key=(
            400,
            "Incorrect API key provided: wr***ey. You can obtain a key from https://console.x.ai.",
        ),
        usage=_with_reasoning,
        error=_xai_error,
        blocked=Reply(
            403,
            orjson.dumps(
                {
                    "code": "The caller does not have permission to execute the specified operation",
                    "error": "Content violates usage guidelines. Failed check: SAFETY_CHECK_TYPE_BIO",
                }
            ),
        ),
    ),
    "together": Dialect(
        blocked=_filtered(422, "content_policy_violation", "The prompt was flagged as unsafe content"),
    ),
    "fireworks": Dialect(
        path="/inference/v1",
        formats=frozenset({"png", "jpeg", "gif"}),
        most_images=30,
        most_bytes=10_000_000,
        blocked=_filtered(400, "content_policy_violation", "The prompt was flagged as unsafe content"),
    ),
    "groq": Dialect(
        path="/openai/v1",
        fields=_BOTH,
        most_images=5,
        most_bytes=4_000_000,
        blocked=_filtered(400, "content_policy_violation", "The prompt was flagged as unsafe content"),
        overloaded=Reply(498, orjson.dumps(_openai_error(498, "capacity_exceeded", "Flex tier is full"))),
    ),
    "dashscope": Dialect(
        path="/compatible-mode/v1",
        formats=_FOUR - {"gif"},
        blocked=_filtered(400, "data_inspection_failed", "Input data may contain inappropriate content."),
        overloaded=_busy(429),
    ),
    "moonshot": Dialect(
        fields=_BOTH,
        fixed_sampling=r"kimi-k2\.[5-9]",
        usage=_beside,
        blocked=Reply(
            400,
            orjson.dumps(
                {
                    "error": {
                        "message": "The request was rejected because it was considered high risk",
                        "type": "content_filter",
                    }
                }
            ),
        ),
        overloaded=_busy(503, "The engine is currently overloaded, please try again later"),
    ),
    "ollama": Dialect(
        key=None,
        strict=False,
        formats=frozenset({"png", "jpeg"}),
        usage=_unreported,
        overloaded=_busy(503, "server busy, please try again. maximum pending requests exceeded"),
    ),
    "lmstudio": Dialect(
        key=None,
        strict=False,
        formats=frozenset({"png", "jpeg"}),
        usage=_unreported,
    ),
    "llamacpp": Dialect(
        key=None,
        strict=False,
        formats=frozenset({"png", "jpeg"}),
        usage=_unreported,
        error=_llamacpp_error,
        overloaded=Reply(503, orjson.dumps(_llamacpp_error(503, "unavailable_error", "Loading model"))),
    ),
    "sglang": Dialect(
        key=None,
        strict=False,
        one_system=True,
        usage=_unreported,
        error=_vllm_error,
    ),
}


class DialectApi(OpenAIApi):
    """The chat completions API as one provider has it."""

    def __init__(self, digests: ImageDigests, dialect: Dialect) -> None:
        super().__init__(digests)
        self._dialect = dialect

    def read(self, body: Mapping[str, Any]) -> ApiRequest:
        dialect = self._dialect
        for field in sorted(body.keys() - dialect.fields):
            raise BadRequestError(f"Unknown parameter: {field}", status=dialect.unknown_status)
        request = super().read(body)
        self._check_messages(body["messages"])
        self._check_schema(body.get("response_format"))
        model = str(body.get("model"))
        if dialect.fixed_sampling and re.search(dialect.fixed_sampling, model):
            for field in ("temperature", "top_p"):
                if field in body:
                    raise BadRequestError(f"invalid {field}: only 1 is allowed for this model")
        if dialect.most_bytes is not None and len(orjson.dumps(body)) > dialect.most_bytes:
            raise BadRequestError(f"Request Entity Too Large: {dialect.most_bytes}", status=413)
        return request

    def error(self, status: int, message: str, number: int) -> bytes:
        code = {401: "invalid_api_key", 404: "model_not_found"}.get(status, "invalid_argument")
        del number
        return orjson.dumps(self._dialect.error(status, code, message))

    def wrong_key(self) -> tuple[int, str]:
        return self._dialect.wrong_key or super().wrong_key()

    def blocked(self) -> Reply:
        return self._dialect.blocked

    def overloaded(self) -> Reply:
        return self._dialect.overloaded

    def key(self, headers: Mapping[str, str]) -> str | None:
        if self._dialect.key is None:
            return ""
        value = headers.get(self._dialect.key)
        if self._dialect.key == "authorization":
            return value.removeprefix("Bearer ") if value and value.startswith("Bearer ") else None
        return value

    def _usage(self, request: ApiRequest, answer: ApiAnswer) -> dict[str, Any]:
        return self._dialect.usage(super()._usage(request, answer))

    def _check_messages(self, messages: list[Any]) -> None:
        dialect, images = self._dialect, 0
        system = sum(message["role"] == "system" for message in messages)
        if dialect.one_system and (system > 1 or (system and messages[0]["role"] != "system")):
            raise BadRequestError("System message must be at the beginning, and there may be one only")
        for message in messages:
            for part in message["content"] if isinstance(message["content"], list) else []:
                for field in sorted(part.keys() - dialect.part_fields):
                    raise BadRequestError(f"Unknown name {field!r} in a part", status=dialect.unknown_status)
                if part["type"] == "image_url":
                    images += 1
                    self._check_image(part["image_url"])
        if dialect.most_images is not None and images > dialect.most_images:
            raise BadRequestError(f"Too many images provided: the most is {dialect.most_images}")

    def _check_image(self, image: Mapping[str, Any]) -> None:
        for field in sorted(image.keys() - ({"url", "detail"} if self._dialect.detail else {"url"})):
            raise BadRequestError(f"Unknown name {field!r} in image_url", status=self._dialect.unknown_status)
        match = _DATA_URL.match(image["url"])
        if match is None or match[1] not in self._dialect.formats:
            raise BadRequestError(f"Unsupported image format: {match[1] if match else 'none'}")

    def _check_schema(self, response_format: Any) -> None:
        schema = response_format.get("json_schema") if isinstance(response_format, dict) else None
        if isinstance(schema, dict) and "strict" in schema and not self._dialect.strict:
            raise BadRequestError("Unknown field json_schema.strict")
