"""The OpenTelemetry providers of a host program, with exporters in memory."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from unittest.mock import patch

from opentelemetry import metrics, trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from uncanny.client import telemetry


@dataclass(frozen=True)
class Host:
    """A program that watches itself."""

    exporter: InMemorySpanExporter = field(default_factory=InMemorySpanExporter)
    reader: InMemoryMetricReader = field(default_factory=InMemoryMetricReader)

    def spans(self, name: str = "") -> list[ReadableSpan]:
        """Those whose names start so, in order of their starts."""
        ended = [span for span in self.exporter.get_finished_spans() if span.name.startswith(name)]
        return sorted(ended, key=lambda span: span.start_time or 0)

    def points(self) -> dict[str, list[Any]]:
        """The data points of each metric by now."""
        data = self.reader.get_metrics_data()
        scopes = (
            [] if data is None else [each for part in data.resource_metrics for each in part.scope_metrics]
        )
        return {metric.name: list(metric.data.data_points) for scope in scopes for metric in scope.metrics}


@contextmanager
def watched() -> Iterator[Host]:
    """Within, the providers of this process are those of a host program; a process can set some only once."""
    made = Host()
    tracing, metering = TracerProvider(), MeterProvider([made.reader])
    tracing.add_span_processor(SimpleSpanProcessor(made.exporter))
    telemetry._to_providers.cache_clear()
    with (
        patch.object(trace, "_TRACER_PROVIDER", tracing),
        patch.object(metrics._internal, "_METER_PROVIDER", metering),
    ):
        yield made
    telemetry._to_providers.cache_clear()
    tracing.shutdown()
    metering.shutdown()
