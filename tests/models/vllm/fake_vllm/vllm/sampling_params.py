from __future__ import annotations

from types import SimpleNamespace
from typing import Any


def StructuredOutputsParams(**fields: Any) -> SimpleNamespace:
    return SimpleNamespace(**fields)
