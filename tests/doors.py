"""The modules of the public interface beside `uncanny` itself."""

from __future__ import annotations

import pkgutil
from collections.abc import Iterator
from importlib import import_module
from types import ModuleType

import uncanny

# `errors` does not load its names one by one, as the others do.
MODULES = tuple(
    name for name in uncanny.__all__ if isinstance(getattr(uncanny, name), ModuleType) and name != "errors"
)
# `extend` is for those who write extensions; `tests/outside_package` and docs/extend.md are its examples.
PROTOCOLS = tuple(name for name in MODULES if name != "extend")


def every_module() -> Iterator[ModuleType]:
    """All modules of uncanny, but those that training needs packages for which are not installed."""
    for found in pkgutil.walk_packages(uncanny.__path__, "uncanny."):
        if "migrations" in found.name or found.name.endswith("__main__"):
            continue
        try:
            yield import_module(found.name)
        except ModuleNotFoundError as missing:
            if not found.name.startswith("uncanny.learn.") or (missing.name or "").startswith("uncanny"):
                raise
