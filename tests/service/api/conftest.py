"""A service on SQLite with its application, and a job whose run is there."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import orjson
import pytest
from fastapi import FastAPI
from PIL import Image
from starlette.testclient import TestClient

from tests.service.made_jobs import ended_job
from tests.service.made_review import anomaly
from uncanny.service import Ended
from uncanny.service.answers import Job
from uncanny.service.api.app import guarded, service_app
from uncanny.service.service import Service

ADDRESS = "http://127.0.0.1:8765"
API = "/api/v1"
Open = Callable[..., TestClient]


def png(colour: str = "red", size: tuple[int, int] = (40, 30)) -> bytes:
    file = BytesIO()
    Image.new("RGB", size, colour).save(file, "PNG")
    return file.getvalue()


@dataclass(frozen=True, slots=True)
class Site:
    """A service and its application; `client` asks as whoever has a token, or as anybody."""

    service: Service
    app: FastAPI

    def client(self, token: str | None = None, **options: Any) -> TestClient:
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        return TestClient(
            guarded(self.app, **options), ADDRESS, headers=headers, raise_server_exceptions=False
        )

    def ended_job(
        self,
        images: Sequence[Sequence[dict[str, Any]]] = (),
        *,
        kind: str = "annotate",
        state: Ended = "finished",
        names: Sequence[str] = (),
    ) -> Job:
        """A job that has ended, with a run over made-up pictures, as a worker leaves it."""
        images = images or [[anomaly("one")], [anomaly("two"), anomaly("three")]]
        job = ended_job(
            self.service, kind, state, name="made", by="maker", images=images, names=names, total=2, done=2
        )
        folder = self.service.job_folder(job.id)
        (folder / "result.json").write_bytes(orjson.dumps({"images": 2}))
        (folder / "stderr.log").write_text("2 images\n")
        return job


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tmp_path / "data"


@pytest.fixture
def site(data: Path) -> Iterator[Site]:
    with Service.open(data) as service:
        yield Site(service, service_app(service))


@pytest.fixture(scope="module")
def shared_site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """One for all requests of a test file that are refused: to open a service takes longer than to ask it."""
    with Service.open(tmp_path_factory.mktemp("shared") / "data") as service:
        yield Site(service, service_app(service))


@pytest.fixture(scope="module")
def shared_client(shared_site: Site) -> Iterator[TestClient]:
    """Somebody on this machine who asks `shared_site`, and changes nothing there."""
    with shared_site.client() as each:
        yield each


@pytest.fixture
def client(site: Site) -> Iterator[TestClient]:
    """Somebody on this machine, while there is no token."""
    with site.client() as each:
        yield each
