"""The service of `docs/embed.md`, as its blocks make it: what it answers, and who goes away ends alone."""

from __future__ import annotations

import asyncio
import gc
import re
import shutil
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
import uvicorn

from tests.docs.test_python_blocks import DOCS, PHOTOS, run_blocks
from tests.runs.e2e import serving
from uncanny.demo.scenes import scenes
from uncanny.models import registry


@pytest.fixture
def page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Any]]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(registry, "_REGISTERED", {})
    (tmp_path / "photos").mkdir()
    images = {scene.image_path.stem: scene.image_path for scene in scenes()}
    for name, stem in PHOTOS.items():
        shutil.copy(images[stem], tmp_path / "photos" / name)
    yield run_blocks("embed.md")
    gc.unfreeze()


@asynccontextmanager
async def served(app: Any) -> AsyncIterator[str]:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        server = uvicorn.Server(uvicorn.Config(app, log_level="error", access_log=False))
        serving = asyncio.create_task(server.serve([listening]))
        while not server.started:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        server.should_exit = True
        await serving


@pytest.mark.slow
async def test_the_pages_service_answers_and_who_goes_away_ends_alone(
    page: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    first, *others = [Path("photos", name).read_bytes() for name in PHOTOS]  # noqa: ASYNC240
    with serving(latency_ms=300.0) as server:
        monkeypatch.setenv("OPENAI_API_KEY", "any")
        monkeypatch.setenv("OPENAI_BASE_URL", server.v1)
        page["MODEL"] = "openai/gpt-4o"
        async with served(page["app"]) as address, httpx2.AsyncClient(base_url=address, timeout=60) as client:
            with pytest.raises(httpx2.ReadTimeout):
                await client.post("/verdicts", content=first, timeout=0.2)
            replies = await asyncio.gather(*(client.post("/annotations", content=each) for each in others))
            assert [reply.status_code for reply in replies] == [200, 200]
            # The call in flight was cancelled, and no second one followed.
            assert server.requests() == 1 + page["app"].state.annotator.usage.calls
            assert (await client.post("/annotations", content=b"no image")).status_code == 422


def test_the_figure_on_the_page_is_the_measured_one() -> None:
    page = (DOCS / "embed.md").read_text(encoding="utf-8")
    measured = (DOCS.parent / "benchmarks" / "README.md").read_text(encoding="utf-8")
    (figure,) = re.findall(r"never held up for more than (\d+) ms", page)
    assert re.search(rf"^\| 50 requests[^|]*\| {figure} ms \|", measured, re.MULTILINE)
