"""Packages that come with an extra: imported where they are used, and asked for in one sentence."""

from __future__ import annotations

import importlib
from typing import Any

from uncanny.errors import UsageError


def pyarrow(module: str) -> Any:
    """A module of pyarrow. Raises UsageError where it is not installed."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise UsageError(
            "Parquet needs pyarrow, which is not installed",
            remedy="Run `pip install 'uncanny[parquet]'`, or use JSON Lines or CSV.",
        ) from error
