"""An OTLP endpoint, and what commands send to it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response


@dataclass(frozen=True)
class Collector:
    """An OTLP endpoint, and what was sent to it."""

    url: str
    traces: list[ExportTraceServiceRequest] = field(default_factory=list)
    metrics: list[ExportMetricsServiceRequest] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)

    def take(self, request: Request) -> Response:
        sent = request.get_data()
        if request.path == "/v1/traces":
            self.traces.append(ExportTraceServiceRequest.FromString(sent))
        else:
            self.metrics.append(ExportMetricsServiceRequest.FromString(sent))
        self.headers.append(dict(request.headers))
        return Response(b"", 200, content_type="application/x-protobuf")

    def spans(self) -> list[Any]:
        parts = [part for each in self.traces for part in each.resource_spans]
        return [span for part in parts for scope in part.scope_spans for span in scope.spans]

    def resources(self) -> list[dict[str, str]]:
        parts = [part for each in self.traces for part in each.resource_spans]
        return [{each.key: each.value.string_value for each in part.resource.attributes} for part in parts]

    def metric_names(self) -> set[str]:
        parts = [part for each in self.metrics for part in each.resource_metrics]
        return {metric.name for part in parts for scope in part.scope_metrics for metric in scope.metrics}

    def variables(self) -> dict[str, str | None]:
        """What sends a command's spans and metrics here."""
        return {"OTEL_EXPORTER_OTLP_ENDPOINT": self.url}


def collecting(httpserver: HTTPServer) -> Collector:
    made = Collector(httpserver.url_for("").rstrip("/"))
    for path in ("/v1/traces", "/v1/metrics"):
        httpserver.expect_request(path, method="POST").respond_with_handler(made.take)
    return made
