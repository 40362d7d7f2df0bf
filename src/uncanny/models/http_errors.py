"""From what SDKs and servers report to the errors of `uncanny.errors`, for all providers alike."""

from __future__ import annotations

import math
import os
import re
import ssl
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from pathlib import Path

import aiohttp
import httpx2
import openai  # `uncanny.models.http` needs it anyway

from uncanny.errors import (
    ModelUnusableError,
    ProviderError,
    QuotaError,
    RequestRejectedError,
    TransientError,
    may_pass,
)
from uncanny.models.addresses import Address, redacted
from uncanny.models.error_body import ErrorBody, one_line, read_error_body
from uncanny.models.presets import Hint, Preset
from uncanny.wording import either, environment, server_address

LONGEST_WAIT_S = 120.0
_MOST_OF_DOTENV = 1 << 20

_OVERLOADED = frozenset({408, 429, 503, 504, 524, 529})
# What a proxy in between says itself, too.
_PROXIES_SAY = frozenset({403, 502, 503, 504})
# By code alone: ordinary rate-limit messages mention billing pages and quotas, too.
_QUOTA_CODES = frozenset(
    {"insufficient_quota", "billing_hard_limit_reached", "billing_not_active", "billing_error"}
)
# OpenSSL's words, of earlier and later versions, for an answer that is no TLS.
_NO_TLS = frozenset({"WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE"})
_LOW_CREDIT = "credit balance is too low"

# Statuses with which servers turn down a request whose content their moderation objects to.
_MODERATING = frozenset({400, 403, 422, 451})
# Compared without case, hyphens and underscores. 1301 is Zhipu's.
_MODERATION_CODES = frozenset(
    {
        "1301",
        "contentblocked",
        "contentfilter",
        "contentmoderation",
        "contentpolicyviolation",
        "datainspectionfailed",
        "invalidprompt",
        "moderationblocked",
        "prohibitedcontent",
        "responsibleaipolicyviolation",
        "sensitivecontent",
    }
)
# How servers speak of a prompt's content. Not of a "request": firewalls block requests for other reasons.
_ABOUT_CONTENT = re.compile(
    r"\b(?:content|input|prompt|image|message|output|text|data)s?\b[^.!?]{0,60}"
    r"\b(?:flagged|inappropriate|filtered|moderat|unsafe|harmful|sensitive (?:content|information|words?)"
    r"|violat\w*[^.!?]{0,60}\b(?:polic|guideline|terms|safety|standards))"
    r"|\bcontent[ _-](?:filter|moderation|(?:management |safety |usage )?polic)|\bprohibited[ _]content\b"
    r"|\bdata inspection|\bsafety (?:system|filter|check|polic|reasons)|\bresponsible ai\b"
    r"|\bmoderation\b|\bconsidered high risk\b|\busage guidelines\b",
    re.IGNORECASE,
)
# How they speak of the account, or of the request's form; it holds for all requests alike.
_ABOUT_ACCESS = re.compile(
    r"\b(?:your|this|the) (?:api[ -]?)?(?:account|organi[sz]ation|project|team|workspace|user|key|access"
    r"|subscription|region|country)\b|\bpermission|\bauthori[sz]|\bnot have access\b|\bnot supported\b"
    r"|\bunsupported\b|\bunknown\b|\bunrecogni[sz]ed\b|\bparameter\b|\bextra inputs\b",
    re.IGNORECASE,
)


class UnreadableResponseError(Exception):
    """A body of which no more is read; its text says why."""


HTTP_ERRORS = (
    UnreadableResponseError,
    openai.OpenAIError,
    httpx2.HTTPError,
    httpx2.InvalidURL,
    aiohttp.ClientError,
    OSError,  # with TimeoutError
    ValueError,  # what sockets and their libraries say of names and numbers
)


@dataclass(frozen=True, slots=True)
class ErrorContext:
    """Which model at which server an error is about, and where its key comes from.

    `endpoint` is the address as it may be shown. `secrets` are the key and whatever else must not be repeated
    from a server's message. `proxy` is that between, None without one. `overloaded` are statuses of this
    server's own for an overload, `hints` what to do about messages of it that will come again.
    """

    name: str
    model: str
    endpoint: str
    key_variable: str
    secrets: tuple[str, ...] = field(repr=False)
    proxy: str | None = None
    overloaded: frozenset[int] = frozenset()
    hints: tuple[Hint, ...] = ()

    @classmethod
    def at(
        cls,
        address: Address,
        name: str,
        model: str,
        key_variable: str,
        key: str,
        preset: Preset | None = None,
    ) -> ErrorContext:
        """For calls to `address` with `key`; `preset` is the server's, if it has one."""
        proxy = address.proxy
        secrets = (key, *address.secrets, *(proxy.secrets if proxy else ()))
        return cls(
            name,
            model,
            address.shown,
            key_variable,
            secrets,
            proxy.shown if proxy else None,
            preset.overloaded if preset else frozenset(),
            preset.hints if preset else (),
        )


class Rejection(RequestRejectedError):
    """A rejected request with the server's error body, for providers that can put it in another form."""

    def __init__(self, message: str, *, body: ErrorBody, remedy: str | None = None) -> None:
        super().__init__(message, remedy=remedy)
        self.body = body


class NothingThereError(ModelUnusableError):
    """The server has nothing at this path, or no such model, which is certain where `unknown_model`."""

    def __init__(self, message: str, *, unknown_model: bool, remedy: str | None = None) -> None:
        super().__init__(message, remedy=remedy)
        self.unknown_model = unknown_model


class Flagged(RequestRejectedError):
    """The server's moderation turned this one request down. Providers make a refusal of it.

    `reason` is the server's message, with what it flagged where it says so.
    """

    def __init__(self, message: str, *, reason: str) -> None:
        super().__init__(message)
        self.reason = reason


def of_sdks(name: str) -> tuple[type[Exception], ...]:
    """The errors of this name of the SDKs that are loaded: no other can raise one.

    Anthropic's is 3,000 modules: a second to import, and a third of what the garbage collector goes through.
    """
    anthropic = sys.modules.get("anthropic")
    return tuple(kind for sdk in (openai, anthropic) if (kind := getattr(sdk, name, None)) is not None)


def is_http_error(error: BaseException) -> bool:
    """Whether an exchange raised it: one of `HTTP_ERRORS`, or of another SDK."""
    return isinstance(error, (*HTTP_ERRORS, *of_sdks("AnthropicError")))


def from_exception(error: BaseException, context: ErrorContext) -> ProviderError:
    """The error for anything that `is_http_error`."""
    if isinstance(error, of_sdks("APIStatusError")):
        response: httpx2.Response = error.response  # type: ignore[attr-defined]
        return from_response(response.status_code, response.headers, response.content, context)
    if isinstance(error, of_sdks("CredentialsError")):
        reason = one_line(str(error), context.secrets)
        return ModelUnusableError(
            f"{context.name}: {reason}", remedy=f"Set {environment(context.key_variable)}."
        )
    if isinstance(error, of_sdks("APIResponseValidationError")):
        return bad_body(context, one_line(str(error), context.secrets))
    chain = list(_causes(error))
    for cause in chain:
        if isinstance(cause, UnreadableResponseError):
            return bad_body(context, str(cause))
    through = f" through the proxy {context.proxy}" if context.proxy else ""
    check_proxy = (
        f" If {context.proxy} is not meant to be between, list the host in NO_PROXY." if context.proxy else ""
    )
    if any(isinstance(cause, aiohttp.ClientHttpProxyError) and cause.status == 407 for cause in chain):
        return _proxy_key(context)
    reason = one_line(str(chain[-1]) or type(chain[-1]).__name__, context.secrets)
    if any(isinstance(cause, aiohttp.ClientPayloadError) for cause in chain):
        return bad_body(context, "the answer was cut off")
    # aiohttp's own are SSL errors, too, without a reason: the last is what they came from.
    if (
        isinstance(chain[-1], ssl.SSLError)
        and not context.proxy
        and (wrong := _not_secure(chain[-1], context))
    ):
        return wrong
    if _timed_out(chain):
        return TransientError(
            f"{context.name}: no answer from {context.endpoint}{through} in time",
            kind="timeout",
            overloaded=True,
            remedy="Raise the timeout if the model is slow." + check_proxy,
        )
    return TransientError(
        f"{context.name}: the connection to {context.endpoint}{through} failed ({reason})",
        kind="connection",
        remedy="Check that the server runs and can be reached." + check_proxy,
    )


def from_response(
    status: int, headers: Mapping[str, str], body: bytes, context: ErrorContext
) -> ProviderError:
    """The error for a response that is not a 2xx one."""
    error_body = read_error_body(body, context.secrets)
    message = f"{context.name}: HTTP {status}: {error_body.message or 'no reason given'}"
    if context.proxy and status in _PROXIES_SAY:
        message += f" (through the proxy {context.proxy})"
    for hint in context.hints:
        if re.search(hint.pattern, error_body.message):
            return ModelUnusableError(message, remedy=hint.remedy)
    advice = headers.get("x-should-retry")
    if status == 402 or error_body.codes & _QUOTA_CODES or _LOW_CREDIT in error_body.message:
        return QuotaError(message, remedy=f"Add credit to the account behind {context.key_variable}.")
    if _moderated(status, error_body):
        flagged = f" (flagged: {', '.join(error_body.reasons)})" if error_body.reasons else ""
        return Flagged(message + flagged, reason=f"HTTP {status}: {error_body.message}{flagged}")
    if 300 <= status < 400:
        return _redirected(status, headers.get("location"), context)
    if status == 407:
        return _proxy_key(context)
    if status in (401, 403):
        unset = not os.environ.get(context.key_variable, "").strip()
        return ModelUnusableError(
            message,
            remedy=(_load_dotenv(context.key_variable) if unset else None)
            or f"Set {environment(context.key_variable)} to a key that may use {context.model!r}.",
        )
    unknown_model = "model_not_found" in error_body.codes
    if status in (404, 405) or unknown_model:
        # Of a path that is not there, servers do not say so with a model's name.
        unknown_model |= bool(context.model) and context.model in error_body.message
        return NothingThereError(
            message,
            unknown_model=unknown_model,
            remedy=f"Check the model name {context.model!r} and the address {context.endpoint}.",
        )
    overloaded = status in _OVERLOADED or status in context.overloaded
    transient = overloaded or may_pass(status)
    if advice == "true" or (transient and advice != "false"):
        return TransientError(
            message,
            kind=f"http_{status}",
            retry_after=retry_after(headers) or within_reason(error_body.wait_s),
            overloaded=overloaded,
        )
    return Rejection(message, body=error_body)


def _redirected(status: int, location: str | None, context: ErrorContext) -> ModelUnusableError:
    """Image, prompt and key go where the user sent them, or nowhere, be it the same host."""
    target = one_line(redacted(location or "").partition("?")[0], context.secrets)
    return ModelUnusableError(
        f"{context.name}: {context.endpoint} redirects to {target or 'nowhere'} (HTTP {status}), and "
        "redirects are not followed: image and key would go there",
        remedy=f"If that is the right server, give its address as {server_address()}.",
    )


def _proxy_key(context: ErrorContext) -> ModelUnusableError:
    return ModelUnusableError(
        f"{context.name}: the proxy {context.proxy or 'before ' + context.endpoint} wants a user and "
        "a password",
        remedy="Write them into the proxy's variable, or list the host in NO_PROXY.",
    )


def bad_body(context: ErrorContext, reason: str) -> TransientError:
    """The error for a response that came through but cannot be read as an answer."""
    return TransientError(f"{context.name}: the response is not an answer: {reason}", kind="bad_body")


def missing_key(name: str, *variables: str, keys_from: str | None = None) -> ModelUnusableError:
    """The error for a hosted provider without its key, in any of `variables`; `keys_from` is who has some."""
    words = " or ".join(variables)
    source = f" Keys come from {keys_from}." if keys_from else ""
    return ModelUnusableError(
        f"{name} needs a key and {words} is not set",
        remedy=next(filter(None, map(_load_dotenv, variables)), None)
        or either(
            f"Set the environment variable {words}.{source}",
            service=f"Set {environment(words)}.{source}",
        ),
    )


def _load_dotenv(variable: str) -> str | None:
    """How to load the key from `.env` here, if it is in there: the file is never read for its values."""
    file = Path(".env")
    try:
        lines = file.read_bytes()[:_MOST_OF_DOTENV].splitlines() if file.is_file() else []
    except OSError:
        return None
    names = {
        line.partition(b"=")[0].strip().removeprefix(b"export ").strip() for line in lines if b"=" in line
    }
    if variable.encode() not in names:
        return None
    return "It stands in .env here, which is not read by itself: load it with `set -a; . ./.env; set +a`."


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds to wait as the server asks, above 0 and at most 120; None where it asks nothing readable.

    A time that is no wait at all, zero, negative or past, is None as well: then the usual wait holds.
    """
    seconds = _number(headers.get("retry-after-ms"))
    if seconds is not None:
        seconds /= 1000
    else:
        text = headers.get("retry-after")
        seconds = _number(text)
        if seconds is None and text is not None:
            try:
                seconds = parsedate_to_datetime(text).timestamp() - time.time()
            except (ValueError, TypeError, OverflowError, IndexError):
                return None
    return within_reason(seconds)


def within_reason(seconds: float | None) -> float | None:
    """A wait above 0 and at most 120 s; None for one that is none."""
    return min(seconds, LONGEST_WAIT_S) if seconds is not None and seconds > 0 else None


def _moderated(status: int, error_body: ErrorBody) -> bool:
    """Whether a response is about the content of one request, not about the key nor the request's form."""
    if status not in _MODERATING:
        return False
    if error_body.reasons or any(
        re.sub(r"[^a-z0-9]", "", code.lower()) in _MODERATION_CODES for code in error_body.codes
    ):
        return True
    return bool(_ABOUT_CONTENT.search(error_body.message)) and not _ABOUT_ACCESS.search(error_body.message)


def _number(text: str | None) -> float | None:
    try:
        value = float(text) if text is not None else math.nan
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def _not_secure(error: ssl.SSLError, context: ErrorContext) -> ModelUnusableError | None:
    """What no later try mends: a certificate, or https where something else is spoken."""
    if isinstance(error, ssl.SSLCertVerificationError):
        why = one_line(error.verify_message, context.secrets)
        return ModelUnusableError(
            f"{context.name}: the certificate of {context.endpoint} does not hold ({why})",
            remedy="Is the host name the one in the certificate? One that an authority of your own signed "
            f"takes {environment('SSL_CERT_FILE')}.",
        )
    if error.reason not in _NO_TLS:
        return None
    return ModelUnusableError(
        f"{context.name}: {context.endpoint} does not speak https", remedy="Is it an http:// address?"
    )


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
        isinstance(cause, (httpx2.TimeoutException, *of_sdks("APITimeoutError"))) for cause in chain
    )
