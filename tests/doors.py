"""The modules of the public interface beside `uncanny` itself."""

from __future__ import annotations

from types import ModuleType

import uncanny

# `errors` does not load its names one by one, as the others do.
MODULES = tuple(
    name for name in uncanny.__all__ if isinstance(getattr(uncanny, name), ModuleType) and name != "errors"
)
# `extend` is for those who write extensions; `tests/outside_package` and docs/extend.md are its examples.
PROTOCOLS = tuple(name for name in MODULES if name != "extend")
