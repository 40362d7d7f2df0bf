"""From what SDKs and servers report to the errors of `uncanny.errors`, for all providers alike."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime

import aiohttp
import anthropic
import httpx2
import openai

from uncanny.errors import (
    ModelUnusableError,
    ProviderError,
    QuotaError,
    RequestRejectedError,
    TransientError,
)
from uncanny.providers.server_words import ServerWords, one_line, read_words

LONGEST_WAIT_S = 120.0

_TRANSIENT = frozenset({408, 409, 425, 429})
_OVERLOADED = frozenset({408, 429, 503, 504, 524, 529})
# By code alone: ordinary rate-limit messages mention billing pages and quotas, too.
_QUOTA_CODES = frozenset(
    {"insufficient_quota", "billing_hard_limit_reached", "billing_not_active", "billing_error"}
)
_LOW_CREDIT = "credit balance is too low"

HTTP_ERRORS = (
    openai.OpenAIError,
    anthropic.AnthropicError,
    httpx2.HTTPError,
    httpx2.InvalidURL,
    aiohttp.ClientError,
    OSError,  # with TimeoutError
)


@dataclass(frozen=True, slots=True)
class Where:
    """Which model at which server an error is about, and where its key comes from."""

    name: str
    model: str
    endpoint: str
    key_variable: str
    secret: str = field(repr=False)


class Rejection(RequestRejectedError):
    """A rejected request with the server's words, for providers that can say the same in another way."""

    def __init__(self, message: str, *, words: ServerWords, remedy: str | None = None) -> None:
        super().__init__(message, remedy=remedy)
        self.words = words


def from_exception(error: BaseException, where: Where) -> ProviderError:
    """The error for anything in `HTTP_ERRORS`."""
    if isinstance(error, openai.APIStatusError | anthropic.APIStatusError):
        response = error.response
        return from_response(response.status_code, response.headers, response.content, where)
    if isinstance(error, anthropic.CredentialsError):
        return _no_key(where, one_line(str(error), where.secret))
    if isinstance(error, openai.APIResponseValidationError | anthropic.APIResponseValidationError):
        return bad_body(where, one_line(str(error), where.secret))
    chain = list(_causes(error))
    reason = one_line(str(chain[-1]) or type(chain[-1]).__name__, where.secret)
    if any(isinstance(cause, aiohttp.ClientPayloadError) for cause in chain):
        return bad_body(where, "the answer was cut off")
    if _timed_out(chain):
        return TransientError(
            f"{where.name}: no answer from {where.endpoint} in time",
            kind="timeout",
            overloaded=True,
            remedy="Raise the timeout if the model is slow.",
        )
    return TransientError(
        f"{where.name}: the connection to {where.endpoint} failed ({reason})",
        kind="connection",
        remedy="Check that the server runs and can be reached.",
    )


def from_response(status: int, headers: Mapping[str, str], body: bytes, where: Where) -> ProviderError:
    """The error for a response that is not a 2xx one."""
    words = read_words(body, where.secret)
    message = f"{where.name}: HTTP {status}: {words.message or 'no reason given'}"
    advice = headers.get("x-should-retry")
    if status == 402 or words.codes & _QUOTA_CODES or _LOW_CREDIT in words.message:
        return QuotaError(message, remedy=f"Add credit to the account behind {where.key_variable}.")
    if status in (401, 403):
        return ModelUnusableError(
            message, remedy=f"Set {where.key_variable} to a key that may use {where.model!r}."
        )
    if status == 404 or "model_not_found" in words.codes:
        return ModelUnusableError(
            message, remedy=f"Check the model name {where.model!r} and the address {where.endpoint}."
        )
    transient = status in _TRANSIENT or status >= 500
    if advice == "true" or (transient and advice != "false"):
        return TransientError(
            message,
            kind=f"http_{status}",
            retry_after=retry_after(headers),
            overloaded=status in _OVERLOADED,
        )
    return Rejection(message, words=words)


def bad_body(where: Where, reason: str) -> TransientError:
    """The error for a response that came through but cannot be read as an answer."""
    return TransientError(f"{where.name}: the response is not an answer: {reason}", kind="bad_body")


def missing_key(name: str, variable: str) -> ModelUnusableError:
    """The error for a hosted provider without its key."""
    return ModelUnusableError(
        f"{name} needs a key and {variable} is not set", remedy=f"Set the environment variable {variable}."
    )


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds to wait as the server asks, 0 to 120; None where it asks nothing readable."""
    seconds = _number(headers.get("retry-after-ms"))
    if seconds is not None:
        seconds /= 1000
    else:
        text = headers.get("retry-after")
        seconds = _number(text)
        if seconds is None and text is not None:
            try:
                seconds = parsedate_to_datetime(text).timestamp() - time.time()
            except ValueError:
                return None
    return None if seconds is None else min(max(seconds, 0.0), LONGEST_WAIT_S)


def _no_key(where: Where, reason: str) -> ModelUnusableError:
    return ModelUnusableError(f"{where.name}: {reason}", remedy=f"Set {where.key_variable}.")


def _number(text: str | None) -> float | None:
    try:
        value = float(text) if text is not None else math.nan
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def _causes(error: BaseException) -> Iterator[BaseException]:
    cause: BaseException | None = error
    while cause is not None:
        yield cause
        cause = cause.__cause__


def _timed_out(chain: list[BaseException]) -> bool:
    if any(isinstance(cause, TimeoutError) for cause in chain):
        return True
    # The SDKs' aiohttp transport reports refused and dropped connections as connect timeouts, so its own
    # word counts only where no aiohttp error lies beneath.
    return not any(isinstance(cause, aiohttp.ClientError) for cause in chain) and any(
        isinstance(cause, httpx2.TimeoutException | openai.APITimeoutError | anthropic.APITimeoutError)
        for cause in chain
    )
