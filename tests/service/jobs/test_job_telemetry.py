"""The process of a job tells of its run as a part of what the service tells of the job."""

from __future__ import annotations

from pathlib import Path

import pytest
from pytest_httpserver import HTTPServer

from tests.collector import collecting
from tests.runs.e2e import serving
from tests.service.jobs.working import ask, ended, some_pictures, submit, working
from tests.watched import watched
from uncanny.service.service import Service


@pytest.mark.slow
def test_a_run_is_a_part_of_its_job(
    tmp_path: Path, httpserver: HTTPServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    collector = collecting(httpserver)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url)
    images = some_pictures(tmp_path / "root", 1)
    with (
        watched() as host,
        serving() as server,
        Service.open(tmp_path / "data", roots=[tmp_path / "root"]) as service,
    ):
        ask(monkeypatch, server)
        with working(service):
            job = ended(service, submit(service, images))
    assert (job.state, job.error) == ("finished", None)
    (span,) = host.spans("uncanny.job")
    assert span.name == "uncanny.job annotate"
    assert (span.attributes or {})["uncanny.status"] == "finished"
    (run,) = [each for each in collector.spans() if each.name == "invoke_workflow annotate"]
    assert int.from_bytes(run.trace_id) == span.context.trace_id
    assert int.from_bytes(run.parent_span_id) == span.context.span_id
