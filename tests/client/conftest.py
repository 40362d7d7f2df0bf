"""An answer cache on disk, closed after the test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from uncanny.records.answer_cache import AnswerCache


@pytest.fixture
def cache(tmp_path: Path) -> Iterator[AnswerCache]:
    cache = AnswerCache(tmp_path / "answers")
    yield cache
    cache.close()
