"""Sends spans and metrics of a command by OpenTelemetry, where its variables say where to.

The command line is a program, so it sets the providers up, by what the `OTEL_…` variables say, and sends what
is left when the command ends, however it does. `uncanny.client.telemetry` says what they are told.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from threading import Thread
from time import monotonic, sleep
from typing import Any, Final

from uncanny.cli.common.terminal import complain
from uncanny.errors import UsageError, text_of
from uncanny.wording import layout

_SIGNALS: Final = ("TRACES", "METRICS")
_ENDPOINT: Final = "OTEL_EXPORTER_OTLP_ENDPOINT"
_TIMEOUTS: Final = (
    "OTEL_EXPORTER_OTLP_TIMEOUT",
    *(f"OTEL_EXPORTER_OTLP_{each}_TIMEOUT" for each in _SIGNALS),
)
_IN_VAIN_S: Final = 2.0
_LOOK_S: Final = 0.02
_RETRYING: Final = re.compile(r",? retrying in \S+$")
# The fields of a span's context, as the environment of a process has them.
_CARRIED: Final = ("TRACEPARENT", "TRACESTATE", "BAGGAGE")


@contextmanager
def exporting() -> Iterator[None]:
    """Around a command. Raises UsageError for variables that do not fit."""
    if not (_wanted() and _installed()):
        yield
        return
    from uncanny.client.telemetry import has_providers

    if has_providers():  # as below `opentelemetry-instrument`, which ends them itself
        yield
        return
    problems = _Problems()
    log = logging.getLogger("opentelemetry")
    log.addHandler(problems)
    log.propagate = False
    _set_up()
    problems.lasting = problems.first is not None
    try:
        yield
    finally:
        _shut_down(problems)
        if problems.lasting:
            first = _RETRYING.sub("", problems.first or "")
            complain(layout([f"Warning: OpenTelemetry did not send everything: {first}"]))


def _exporter(signal: str) -> str:
    """Which exporters a signal goes to: the usual one where there is an address for it."""
    addressed = os.environ.get(_ENDPOINT) or os.environ.get(f"OTEL_EXPORTER_OTLP_{signal}_ENDPOINT")
    return os.environ.get(f"OTEL_{signal}_EXPORTER") or ("otlp" if addressed else "none")


def _wanted() -> bool:
    if os.environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return False
    return any(_exporter(signal).strip().lower() != "none" for signal in _SIGNALS)


def _installed() -> bool:
    try:
        return find_spec("opentelemetry.distro") is not None
    except ModuleNotFoundError:
        return False


def _set_up() -> None:
    from opentelemetry import context, propagate

    distro: Any = import_module("opentelemetry.distro")  # without types

    for signal in _SIGNALS:
        os.environ[f"OTEL_{signal}_EXPORTER"] = _exporter(signal)
    os.environ.setdefault("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf")
    if "service.name=" not in os.environ.get("OTEL_RESOURCE_ATTRIBUTES", ""):
        os.environ.setdefault("OTEL_SERVICE_NAME", "uncanny")
    try:
        distro.OpenTelemetryConfigurator().configure()
    except Exception as error:
        raise UsageError(
            f"OpenTelemetry cannot be set up: {text_of(error)}",
            remedy="Correct the OTEL_… variables, or set OTEL_SDK_DISABLED=true.",
        ) from error
    carried = {name.lower(): os.environ[name] for name in _CARRIED if name in os.environ}
    context.attach(propagate.extract(carried))


def _shut_down(problems: _Problems) -> None:
    """Send what is left, both signals at once: each takes as long as its exporter's timeout at most.

    Where nothing can be sent, the command ends after `_IN_VAIN_S` seconds, unless a variable says how long
    exports may take.
    """
    from opentelemetry import metrics, trace

    ends = (trace.get_tracer_provider(), metrics.get_meter_provider())
    threads = [Thread(target=end.shutdown, daemon=True) for end in ends if hasattr(end, "shutdown")]
    for thread in threads:
        thread.start()
    began, before, patient = monotonic(), problems.number, any(os.environ.get(name) for name in _TIMEOUTS)
    while any(thread.is_alive() for thread in threads):
        if problems.number > before and not patient and monotonic() - began > _IN_VAIN_S:
            problems.lasting = True
            return
        sleep(_LOOK_S)


class _Problems(logging.Handler):
    """Keeps the first thing that goes wrong, instead of a line for each batch that cannot be sent.

    `lasting` says whether something stayed so: what is sent at a second attempt is nobody's concern.
    """

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.first: str | None = None
        self.lasting, self.number = False, 0

    def emit(self, record: logging.LogRecord) -> None:
        self.number += 1
        self.first = self.first or record.getMessage()
        self.lasting = self.lasting or record.levelno >= logging.ERROR
