"""Whether the service is well, and its figures for monitoring; outside the version of the interface."""

from __future__ import annotations

import time
from asyncio import get_running_loop
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Annotated, Any, Final, Literal

from fastapi import Request, Response
from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy import text
from sqlalchemy.exc import SQLAlchemyError
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from uncanny import __version__
from uncanny.service.api.auth import for_readers
from uncanny.service.api.routes import Kept, answer_of, routes
from uncanny.service.service import Service

TEXT: Final = "text/plain; version=0.0.4; charset=utf-8"
_OTHER: Final = "other"
# Threads of its own: those that other requests share may all be busy.
_LOOKING: Final = ThreadPoolExecutor(2, "health")
ROUTER: Final = routes("service", "")
# Whether this process works on jobs; None where it was started without.
WorkerAlive = Callable[[], bool | None]


class HealthAnswer(BaseModel):
    """`worker` is whether this process works on jobs: null where it was started without.

    `degraded`: the database answers now, but some request or job could not use it within the last seconds, as
    when it has no connection to spare.
    """

    model_config = ConfigDict(frozen=True)

    status: Literal["ok", "degraded", "failing"]
    version: Annotated[str, Field(examples=[__version__])]
    database: bool
    worker: bool | None


class Metrics:
    """Counts requests as they are answered; the rest is read when it is asked for."""

    def __init__(self, service: Service, worker_alive: WorkerAlive) -> None:
        self.registry = CollectorRegistry()
        labels = ("method", "route", "status")
        self._requests = Counter("uncanny_requests", "Requests answered.", labels, registry=self.registry)
        self._seconds = Histogram(
            "uncanny_request_seconds",
            "Seconds until an answer was complete.",
            ("method", "route"),
            registry=self.registry,
            buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10, 60),
        )
        self.registry.register(_Jobs(service, worker_alive))

    def answered(self, method: str, route: str, status: int, seconds: float) -> None:
        self._requests.labels(method, route, str(status)).inc()
        self._seconds.labels(method, route).observe(seconds)


class _Jobs(Collector):
    def __init__(self, service: Service, worker_alive: WorkerAlive) -> None:
        self._service, self._worker_alive = service, worker_alive

    def collect(self) -> Iterable[Metric]:
        jobs = GaugeMetricFamily("uncanny_jobs", "Jobs in each state.", labels=("state",))
        for state, number in self._service.jobs.counts().items():
            jobs.add_metric((state,), number)
        yield jobs
        worker = GaugeMetricFamily("uncanny_worker_up", "Whether this process works on jobs.")
        worker.add_metric((), 1 if self._worker_alive() else 0)
        yield worker


class Measured:
    """ASGI middleware that counts what is answered, by the route's pattern and never by an address."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self._app, self._metrics = app, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        start, status = time.perf_counter(), 500

        async def send_noted(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, send_noted)
        finally:
            route = getattr(scope.get("route"), "path", _OTHER)
            method = scope["method"] if scope["method"] in _METHODS else _OTHER
            self._metrics.answered(method, route, status, time.perf_counter() - start)


_METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


def _is_there(service: Service) -> bool:
    try:
        with service.database.read() as connection:
            connection.execute(text("SELECT 1"))
    except SQLAlchemyError:
        return False
    return True


@ROUTER.get(
    "/healthz",
    summary="Whether it is well",
    response_model=HealthAnswer,
    responses={
        503: {
            "model": HealthAnswer,
            "description": "The database cannot be reached, or not always, or no work is done.",
        },
    },
)
async def healthz(request: Request, service: Kept) -> Any:
    """For supervisors; needs no token."""
    alive: WorkerAlive = request.app.state.worker_alive
    ailing = service.database.is_ailing
    database = await get_running_loop().run_in_executor(_LOOKING, _is_there, service)
    worker = alive()
    status: Literal["ok", "degraded", "failing"] = "ok"
    if not database or worker is False:
        status = "failing"
    elif ailing:
        status = "degraded"
    answer = HealthAnswer(status=status, version=__version__, database=database, worker=worker)
    return Response(answer.model_dump_json(), 200 if status == "ok" else 503, media_type="application/json")


@ROUTER.get(
    "/metrics",
    summary="Figures for Prometheus",
    dependencies=for_readers,
    responses=answer_of(
        "text/plain",
        "Jobs by state, requests and their seconds.",
        schema={"type": "string"},
        example='uncanny_jobs{state="running"} 2.0\n',
    ),
)
def metrics(request: Request) -> Response:
    """In the text format of Prometheus."""
    kept: Metrics = request.app.state.metrics
    return Response(generate_latest(kept.registry), media_type=TEXT)
