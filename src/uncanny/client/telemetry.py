"""What OpenTelemetry is told of a run: spans and metrics, named as in the GenAI conventions v1.41.0.

Spans lie within each other: run, input, agent, call. A retry or a repair is one more call of its agent, and
so is an answer from the cache. Metrics have no attribute that grows with the inputs.

They go to the tracer and meter providers of the process, which its program has set: nothing here sets one. In
a process without any, `telemetry` gives a `Telemetry` that does nothing, and nothing of OpenTelemetry is
imported.
"""

from __future__ import annotations

import os
import sys
from asyncio import CancelledError
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import cache, lru_cache
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self
from urllib.parse import urlsplit

import orjson

from uncanny import __version__
from uncanny.errors import DeferredError
from uncanny.models.presets import ALL

if TYPE_CHECKING:
    from opentelemetry.trace import Span

    from uncanny.client.calls import CallRecord
    from uncanny.client.endpoint import Endpoint
    from uncanny.models.base import Finish, ModelRequest, Part

MOST_IN_ONE_TRACE: Final = 100
SCHEMA_URL: Final = "https://opentelemetry.io/schemas/1.41.0"
CAPTURE: Final = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
_CAPTURES: Final = frozenset({"span_only", "span_and_event", "true"})
# Those that the conventions give, in seconds and tokens; waits may be long.
DURATION_BUCKETS: Final = tuple(0.01 * 2**power for power in range(14))
TOKEN_BUCKETS: Final = tuple(4**power for power in range(14))
WAIT_BUCKETS: Final = (0.0, 0.01, 0.1, 1.0, 10.0, 100.0, 1000.0)
# As the conventions call it that a server refuses.
_FINISHES: Final[Mapping[Finish, str]] = {
    "stop": "stop",
    "length": "length",
    "refusal": "content_filter",
}

Attributes = dict[str, Any]


class Watch:
    """Around what is watched, as a context; this one watches nothing."""

    __slots__ = ()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass

    def finished(self, finish: Finish) -> None:
        """How the model ended its answer, of a call."""

    def recorded(self, statuses: Iterable[tuple[str, str, bool]]) -> None:
        """The records of an input: key, status, and whether that is an answer."""

    def ended(self, status: str, *, well: bool) -> None:
        """How a job ended."""


_NOTHING: Final = Watch()


class Telemetry:
    """What is watched; this one watches nothing."""

    def run(self, protocol: str) -> Watch:  # noqa: ARG002
        """One session of a run."""
        return _NOTHING

    def input(self, *, of: int = 1) -> Watch:  # noqa: ARG002
        """One input, from its file to its records; one of so many of a run.

        More than `MOST_IN_ONE_TRACE` have traces of their own, linked to the run's: backends refuse traces of
        many thousand spans, and a sampler takes or leaves a trace as a whole.
        """
        return _NOTHING

    def agent(self, request: ModelRequest, endpoint: Endpoint) -> Watch:  # noqa: ARG002
        """One generation; `endpoint` is the agent's first choice."""
        return _NOTHING

    def call(
        self,
        record: CallRecord,  # noqa: ARG002
        request: ModelRequest,  # noqa: ARG002
        endpoint: Endpoint,  # noqa: ARG002
        waited_s: float,  # noqa: ARG002
    ) -> Watch:
        """One call, after `waited_s` seconds of waiting; `record` is complete when it is left."""
        return _NOTHING

    def replayed(self, record: CallRecord, request: ModelRequest, endpoint: Endpoint) -> None:
        """A call whose answer comes from the cache."""

    def job(self, kind: str) -> Watch:  # noqa: ARG002
        """One job of a service."""
        return _NOTHING

    def carrier(self) -> dict[str, str]:
        """The environment variables that make a process's spans part of the span here."""
        return {}


def telemetry() -> Telemetry:
    """What tells the providers of this process; where it has none, what does nothing."""
    return _to_providers() if has_providers() else _SILENT


def has_providers() -> bool:
    """Whether the program has set providers, for which it must have imported them."""
    trace = sys.modules.get("opentelemetry.trace")
    if trace is None:
        return False
    traced = not isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider)
    return traced or "opentelemetry.sdk.metrics" in sys.modules


_SILENT: Final = Telemetry()


@cache
def _to_providers() -> Telemetry:
    return _Providers()


class _Providers(Telemetry):
    def __init__(self) -> None:
        from opentelemetry import metrics, trace

        self._tracer = trace.get_tracer("uncanny", __version__, schema_url=SCHEMA_URL)
        meter = metrics.get_meter("uncanny", __version__, schema_url=SCHEMA_URL)
        self._captures = os.environ.get(CAPTURE, "").strip().lower() in _CAPTURES
        self.duration = meter.create_histogram(
            "gen_ai.client.operation.duration",
            "s",
            "GenAI operation duration.",
            explicit_bucket_boundaries_advisory=DURATION_BUCKETS,
        )
        self.tokens = meter.create_histogram(
            "gen_ai.client.token.usage",
            "{token}",
            "Number of input and output tokens used.",
            explicit_bucket_boundaries_advisory=TOKEN_BUCKETS,
        )
        self.wait = meter.create_histogram(
            "uncanny.call.wait",
            "s",
            "Time a call waited for its prefix, the budget and a slot.",
            explicit_bucket_boundaries_advisory=WAIT_BUCKETS,
        )
        self.active = meter.create_up_down_counter("uncanny.call.active", "{call}", "Calls in flight.")
        self.calls = meter.create_counter(
            "uncanny.call.count", "{call}", "Calls by agent, outcome, and whether the cache answered."
        )
        self.cost = meter.create_counter("uncanny.call.cost", "{USD}", "US dollars, of calls with a price.")
        self.cached = meter.create_counter(
            "uncanny.call.cached_tokens", "{token}", "Input tokens that providers read from their cache."
        )
        self.inputs = meter.create_counter("uncanny.input.count", "{record}", "Records by status.")

    def run(self, protocol: str) -> Watch:
        about = {"gen_ai.operation.name": "invoke_workflow", "gen_ai.workflow.name": protocol}
        return self._watch(f"invoke_workflow {protocol}", about)

    def input(self, *, of: int = 1) -> Watch:
        from opentelemetry.context import Context
        from opentelemetry.trace import Link, get_current_span

        if of <= MOST_IN_ONE_TRACE:
            return _InputWatch(self, self._span("uncanny.input", {}))
        links = [Link(get_current_span().get_span_context())]
        return _InputWatch(self, self._tracer.start_span("uncanny.input", Context(), links=links))

    def agent(self, request: ModelRequest, endpoint: Endpoint) -> Watch:
        about = {
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.agent.name": request.agent,
            "gen_ai.provider.name": _model(endpoint)["gen_ai.provider.name"],
            "uncanny.step": request.step,
            "uncanny.sample": request.sample,
        }
        return self._watch(f"invoke_agent {request.agent}", about)

    def call(self, record: CallRecord, request: ModelRequest, endpoint: Endpoint, waited_s: float) -> Watch:
        return _CallWatch(self, self._chat(record, request, endpoint), record, request, endpoint, waited_s)

    def replayed(self, record: CallRecord, request: ModelRequest, endpoint: Endpoint) -> None:
        span = self._chat(record, request, endpoint)
        self.count(record, _model(endpoint))
        self.describe(span, record, request, "stop")
        span.end()

    def job(self, kind: str) -> Watch:
        return self._watch(f"uncanny.job {kind}", {"uncanny.job.kind": kind})

    def carrier(self) -> dict[str, str]:
        from opentelemetry.propagate import inject

        fields: dict[str, str] = {}
        inject(fields)
        return {name.upper(): value for name, value in fields.items()}

    def _watch(self, name: str, attributes: Attributes) -> Watch:
        return _SpanWatch(self, self._span(name, attributes))

    def _span(self, name: str, attributes: Attributes) -> Span:
        return self._tracer.start_span(name, attributes=attributes)

    def _chat(self, record: CallRecord, request: ModelRequest, endpoint: Endpoint) -> Span:
        from opentelemetry.trace import SpanKind

        about = {
            "gen_ai.operation.name": "chat",
            **_model(endpoint),
            "gen_ai.output.type": "text" if request.schema is None else "json",
            "gen_ai.request.max_tokens": request.sampling.max_output_tokens,
            "uncanny.attempt": record.attempt,
            "uncanny.repair": record.repair,
            "uncanny.replayed": record.replayed,
        }
        sent = endpoint.provider.sent(request.sampling)
        about |= {f"gen_ai.request.{name}": sent[name] for name in ("temperature", "top_p") if name in sent}
        return self._tracer.start_span(
            f"chat {about['gen_ai.request.model']}", kind=SpanKind.CLIENT, attributes=about
        )

    def count(self, record: CallRecord, model: Attributes) -> None:
        """The call as our own counter has it."""
        about = {
            "gen_ai.provider.name": model["gen_ai.provider.name"],
            "gen_ai.request.model": model["gen_ai.request.model"],
            "gen_ai.agent.name": record.agent,
            "uncanny.outcome": record.outcome,
            "uncanny.replayed": record.replayed,
        }
        self.calls.add(1, about)

    def measure(
        self, record: CallRecord, endpoint: Endpoint, error_type: str | None, waited_s: float
    ) -> None:
        """All metrics of a call that was made."""
        model = _model(endpoint)
        self.count(record, model)
        if record.replayed:  # measured when it was given for the first time
            return
        about = {"gen_ai.operation.name": "chat", **model}
        if record.served_model is not None:
            about["gen_ai.response.model"] = record.served_model
        self.wait.record(waited_s, model)
        failed = {} if error_type is None else {"error.type": error_type}
        self.duration.record(record.latency_s, about | failed)
        for kind, tokens in (("input", record.input_tokens), ("output", record.output_tokens)):
            if tokens is not None:
                self.tokens.record(tokens, {**about, "gen_ai.token.type": kind})
        if record.cached_tokens is not None:
            self.cached.add(record.cached_tokens, model)
        if record.cost_usd is not None:
            self.cost.add(record.cost_usd, model)

    def describe(self, span: Span, record: CallRecord, request: ModelRequest, finish: Finish | None) -> None:
        """What came back. What a replayed answer used was paid for earlier, and is in the span of then."""
        if not span.is_recording():
            return
        found: Attributes = {"uncanny.outcome": record.outcome, "gen_ai.response.model": record.served_model}
        reason = None if finish is None else _FINISHES[finish]
        if reason is not None:
            found["gen_ai.response.finish_reasons"] = [reason]
        if not record.replayed:
            found |= {
                "gen_ai.response.id": record.request_id,
                "gen_ai.usage.input_tokens": record.input_tokens,
                "gen_ai.usage.output_tokens": record.output_tokens,
                "gen_ai.usage.cache_read.input_tokens": record.cached_tokens,
                "uncanny.usage.image_tokens": record.image_tokens,
                "uncanny.cost_usd": record.cost_usd,
            }
        if self._captures:
            found |= _content(record, request, reason)
        span.set_attributes({name: value for name, value in found.items() if value is not None})


class _SpanWatch(Watch):
    """A span that is current within; it ends with what is watched. Errors are named, and not quoted."""

    __slots__ = ("_owner", "_span", "_token")

    def __init__(self, owner: _Providers, span: Span) -> None:
        self._owner, self._span = owner, span

    def __enter__(self) -> Self:
        from opentelemetry import context, trace

        self._token = context.attach(trace.set_span_in_context(self._span))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        from opentelemetry import context

        context.detach(self._token)
        if isinstance(error, DeferredError):
            self._span.set_attribute("uncanny.status", "deferred")
        elif error is not None:
            self._failed(error_type(error))
        self._span.end()

    def ended(self, status: str, *, well: bool) -> None:
        self._span.set_attribute("uncanny.status", status)
        if not well:
            self._failed(status)

    def _failed(self, why: str) -> None:
        from opentelemetry.trace import StatusCode

        self._span.set_attribute("error.type", why)
        self._span.set_status(StatusCode.ERROR)


class _InputWatch(_SpanWatch):
    __slots__ = ()

    def recorded(self, statuses: Iterable[tuple[str, str, bool]]) -> None:
        for key, status, answered in statuses:
            self._span.set_attribute("uncanny.input", key)
            self._owner.inputs.add(1, {"uncanny.status": status})
            self.ended(status, well=answered)


class _CallWatch(_SpanWatch):
    """The call's own span: an answer that came back and does not validate is no error of the call."""

    __slots__ = ("_about", "_finish", "_waited_s")

    def __init__(
        self,
        owner: _Providers,
        span: Span,
        record: CallRecord,
        request: ModelRequest,
        endpoint: Endpoint,
        waited_s: float,
    ) -> None:
        super().__init__(owner, span)
        self._about, self._waited_s = (record, request, endpoint), waited_s
        self._finish: Finish | None = None

    def __enter__(self) -> Self:
        self._owner.active.add(1, _model(self._about[2]))
        return super().__enter__()

    def finished(self, finish: Finish) -> None:
        self._finish = finish

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        record, request, endpoint = self._about
        self._owner.active.add(-1, _model(endpoint))
        self._owner.describe(self._span, record, request, self._finish)
        if record.outcome != "error":
            kind = error = trace = None
        if not isinstance(error, CancelledError):  # it has no end to measure
            why = None if error is None else error_type(error)
            self._owner.measure(record, endpoint, why, self._waited_s)
        super().__exit__(kind, error, trace)


def error_type(error: BaseException) -> str:
    """The kind of an error, such as `429`, `timeout` or `RefusedError`: never its words."""
    kind = getattr(error, "kind", None)
    return kind.removeprefix("http_") if isinstance(kind, str) else type(error).__qualname__


def _model(endpoint: Endpoint) -> Attributes:
    return _named(endpoint.name, endpoint.provider.endpoint)


@lru_cache(maxsize=256)
def _named(name: str, address: str | None) -> Attributes:
    """Provider, model and server. Of the address host and port alone: it may hold a password."""
    provider, _, model = name.partition("/")
    preset = ALL.get(provider)
    about: Attributes = {
        "gen_ai.provider.name": (preset and preset.telemetry) or provider,
        "gen_ai.request.model": model or provider,
    }
    with suppress(ValueError):  # providers of one's own may have anything there
        server = urlsplit(address or "")
        if server.hostname is not None:
            port = server.port or (443 if server.scheme == "https" else 80)
            about |= {"server.address": server.hostname, "server.port": port}
    return about


def _content(record: CallRecord, request: ModelRequest, reason: str | None) -> Attributes:
    """Prompt and answer as JSON; of an image its digest."""
    turns = [{"role": each.role, "parts": [_part(part) for part in each.parts]} for each in request.messages]
    answer = {"role": "assistant", "parts": [_part(record.answer)], "finish_reason": reason}
    return {
        "gen_ai.input.messages": orjson.dumps(turns).decode(),
        "gen_ai.output.messages": orjson.dumps([answer]).decode() if record.answer else None,
    }


def _part(part: Part) -> Attributes:
    if isinstance(part, str):
        return {"type": "text", "content": part}
    return {
        "type": "file",
        "modality": "image",
        "mime_type": part.media_type,
        "file_id": f"sha256:{part.sha256}",
    }
