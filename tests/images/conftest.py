from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest


@pytest.fixture(scope="session")
def odd_files() -> ModuleType:
    spec = importlib.util.spec_from_file_location("odd_files", Path(__file__).with_name("odd_files.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
