"""Every way a call can fail, over real HTTP and over raw sockets, and what it becomes."""

from __future__ import annotations

import inspect
import traceback
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import anthropic
import httpx2
import openai
import pytest
from pytest_httpserver import HTTPServer
from werkzeug import Response

from uncanny.errors import (
    ModelUnusableError,
    ProviderError,
    QuotaError,
    RequestRejectedError,
    TransientError,
)
from uncanny.models.base import Message, ModelRequest, Sampling
from uncanny.models.http_errors import ErrorContext, from_exception, from_response, retry_after
from uncanny.models.openai import OpenAIProvider

KEY = "sk-proj-0123456789abcdefSECRET"
PATH = "/v1/chat/completions"
REQUEST = ModelRequest((Message("user", ("?",)),), Sampling())
WHERE = ErrorContext("openai/gpt-4o", "gpt-4o", "https://api.openai.com/v1/", "OPENAI_API_KEY", (KEY,))


async def failure(base_url: str, timeout_s: float = 5) -> ProviderError:
    provider = OpenAIProvider("gpt-4o", base_url=base_url, api_key=KEY, timeout_s=timeout_s)
    try:
        await provider.generate(REQUEST)
    except ProviderError as error:
        return error
    finally:
        await provider.close()
    raise AssertionError("the call did not fail")


async def answered(httpserver: HTTPServer, response: Response) -> ProviderError:
    httpserver.expect_request(PATH).respond_with_response(response)
    return await failure(httpserver.url_for("/v1"))


def transient(error: ProviderError) -> TransientError:
    assert isinstance(error, TransientError), error
    return error


@pytest.mark.parametrize(
    ("status", "overloaded"),
    [
        (408, True),
        (409, False),
        (425, False),
        (429, True),
        (500, False),
        (502, False),
        (503, True),
        (504, True),
        (529, True),
    ],
)
async def test_statuses_worth_another_try(httpserver: HTTPServer, status: int, overloaded: bool) -> None:
    page = "<html><head><title>Bad&nbsp;day</title></head><body><h1>x</h1></body></html>"
    error = transient(await answered(httpserver, Response(page, status, content_type="text/html")))
    assert (error.kind, error.overloaded, error.retry_after) == (f"http_{status}", overloaded, None)
    assert str(error) == f"openai/gpt-4o: HTTP {status}: Bad day"
    assert len(httpserver.log) == 1, "retries are not the provider's"


async def test_a_server_may_forbid_another_try(httpserver: HTTPServer) -> None:
    error = await answered(httpserver, Response("no", 503, headers={"x-should-retry": "false"}))
    assert isinstance(error, RequestRejectedError)


@pytest.mark.parametrize("status", [400, 413, 422, 410])
async def test_requests_that_can_never_succeed(httpserver: HTTPServer, status: int) -> None:
    body = '{"error": {"message": "the image is broken ' + "x" * 500 + '"}}'
    error = await answered(httpserver, Response(body, status, content_type="application/json"))
    assert isinstance(error, RequestRejectedError)
    assert "the image is broken" in error.message
    assert len(error.message) < 350


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (401, {"error": {"message": f"Incorrect API key provided: {KEY}."}}),
        (401, {"error": {"message": "Incorrect API key provided: sk-proj-********************CRET. See …"}}),
        (403, {"error": {"message": f"key {KEY[:12]}… has no access", "code": "access"}}),
        (403, {"error": {"message": f"header 'Bearer {KEY}' refused"}}),
        (400, {"error": {"message": f"…{KEY[-8:]} is no good"}}),
        (500, {"detail": f"crashed while handling {KEY}"}),
    ],
)
async def test_no_part_of_the_key_is_repeated(
    httpserver: HTTPServer, status: int, body: dict[str, Any]
) -> None:
    httpserver.expect_request(PATH).respond_with_json(body, status=status)
    error = await failure(httpserver.url_for("/v1"))
    seen = str(error) + repr(error) + repr(vars(error)) + "".join(traceback.format_exception(error))
    assert not any(KEY[start : start + 6] in seen for start in range(len(KEY) - 5))
    assert "CRET" not in seen
    assert error.__cause__ is error.__context__ is None
    if status in (401, 403):
        assert isinstance(error, ModelUnusableError)
        assert "Set OPENAI_API_KEY" in str(error)


@pytest.mark.parametrize(
    ("status", "content"),
    [
        (404, {"message": "The model `gpt-4o` does not exist", "code": "model_not_found"}),
        (404, {"message": "Not Found"}),
        (405, {"message": "Method Not Allowed"}),
        (400, {"message": "no such model", "code": "model_not_found"}),
    ],
)
async def test_an_unknown_model_is_named(
    httpserver: HTTPServer, status: int, content: dict[str, str]
) -> None:
    httpserver.expect_request(PATH).respond_with_json({"error": content}, status=status)
    error = await failure(httpserver.url_for("/v1"))
    assert isinstance(error, ModelUnusableError)
    assert "Check the model name 'gpt-4o'" in str(error)


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (429, {"message": "You exceeded your current quota", "type": "insufficient_quota"}),
        (429, {"message": "x", "code": "billing_hard_limit_reached"}),
        (402, {"message": "Payment required"}),
        (400, {"message": "Your credit balance is too low to access the API"}),
    ],
)
async def test_an_empty_account(httpserver: HTTPServer, status: int, error: dict[str, str]) -> None:
    httpserver.expect_request(PATH).respond_with_json({"error": error}, status=status)
    assert isinstance(await failure(httpserver.url_for("/v1")), QuotaError)


async def test_a_rate_limit_that_speaks_of_billing_is_only_a_rate_limit(httpserver: HTTPServer) -> None:
    words = "Rate limit reached. You can increase it at https://example.com/account/billing."
    httpserver.expect_request(PATH).respond_with_json({"error": {"message": words}}, status=429)
    assert transient(await failure(httpserver.url_for("/v1"))).kind == "http_429"


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after-ms": "1500", "retry-after": "9"}, 1.5),
        ({"retry-after": "7"}, 7),
        ({"retry-after": "0.25"}, 0.25),
        ({"retry-after": "3600"}, 120),
        ({"retry-after": "-3"}, None),
        ({"retry-after": "0"}, None),
        ({"retry-after-ms": "0"}, None),
        ({"retry-after-ms": "-1", "retry-after": "9"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": ""}, None),
        ({}, None),
    ],
)
async def test_how_long_to_wait(
    httpserver: HTTPServer, headers: dict[str, str], seconds: float | None
) -> None:
    error = transient(await answered(httpserver, Response("busy", 429, headers=headers)))
    assert error.retry_after == seconds


async def test_the_retry_delay_in_the_body_of_google_is_read(httpserver: HTTPServer) -> None:
    info = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34.5s"}
    error = {"code": 429, "status": "RESOURCE_EXHAUSTED", "message": "quota", "details": [{"a": 1}, info]}
    httpserver.expect_request(PATH).respond_with_json([{"error": error}], status=429)
    assert transient(await failure(httpserver.url_for("/v1"))).retry_after == 34.5


def test_how_long_to_wait_until_a_date() -> None:
    soon = datetime.now(UTC) + timedelta(seconds=60)
    waits = retry_after({"retry-after": format_datetime(soon, usegmt=True)})
    assert waits is not None
    assert 50 < waits <= 60
    assert retry_after({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}) is None


@pytest.mark.parametrize(
    ("body", "content_type"),
    [
        ('{"choices": [{"message": {"content": "a cu', "application/json"),
        ("<html><title>Sign in</title></html>", "text/html"),
        ("", "application/json"),
        ("[]", "application/json"),
        ('{"choices": []}', "application/json"),
        ('{"choices": [null]}', "application/json"),
        ('{"error": {"message": "upstream failed", "code": "oops"}}', "application/json"),
        ('{"choices": [{"message": {"content": "half"}, "finish_reason": "abort"}]}', "application/json"),
    ],
)
async def test_a_body_that_is_no_answer_is_not_an_empty_answer(
    httpserver: HTTPServer, body: str, content_type: str
) -> None:
    error = transient(await answered(httpserver, Response(body, 200, content_type=content_type)))
    assert error.kind == "bad_body"
    assert not error.overloaded


async def test_an_error_with_status_200_counts_as_the_error_it_names(httpserver: HTTPServer) -> None:
    body = '{"error": {"message": "upstream is busy", "code": 429}}'
    error = transient(await answered(httpserver, Response(body, 200)))
    assert (error.kind, error.overloaded) == ("http_429", True)
    assert "upstream is busy" in str(error)


async def test_an_answer_with_a_wrong_content_type_is_an_answer(httpserver: HTTPServer) -> None:
    body = '{"choices": [{"message": {"content": "a cup"}, "finish_reason": "stop"}]}'
    httpserver.expect_request(PATH).respond_with_data(body, content_type="text/plain")
    provider = OpenAIProvider("gpt-4o", base_url=httpserver.url_for("/v1"), api_key=KEY)
    assert (await provider.generate(REQUEST)).text == "a cup"
    await provider.close()


SDK_ERRORS = [
    (module, kind)
    for module, base in ((openai, openai.OpenAIError), (anthropic, anthropic.AnthropicError))
    for kind in vars(module._exceptions).values()
    if inspect.isclass(kind) and issubclass(kind, base)
]


@pytest.mark.parametrize(("module", "kind"), SDK_ERRORS, ids=lambda value: value.__name__)
def test_every_error_of_the_sdks_becomes_one_of_ours(module: Any, kind: type[Exception]) -> None:
    request = httpx2.Request("POST", "https://example.com")
    status = getattr(kind, "status_code", 418)
    response = httpx2.Response(status if isinstance(status, int) else 418, request=request, content=b"{}")
    error = kind.__new__(kind)
    error.__dict__ |= {"response": response, "request": request, "status_code": response.status_code}
    ours = from_exception(error, WHERE)
    assert type(ours) is not ProviderError
    if issubclass(kind, module.APIStatusError):
        assert type(ours) is type(from_response(response.status_code, {}, b"{}", WHERE))
    elif issubclass(kind, module.APITimeoutError):
        assert transient(ours).kind == "timeout"
    elif issubclass(kind, module.APIConnectionError):
        assert transient(ours).kind == "connection"
