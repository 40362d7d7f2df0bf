"""Optional packages: each comes with an extra of uncanny, and every hint to install one is worded here.

The package index has another package of this name, so no hint names `uncanny` to pip: it installs from the
clone.
"""

from __future__ import annotations

import importlib
from typing import Any, Literal

from uncanny.errors import UsageError

# Those of pyproject.toml.
Extra = Literal[
    "datasets",
    "detectors",
    "docs",
    "formats",
    "frames",
    "learn",
    "merge",
    "mediapipe",
    "otel",
    "pairs",
    "parquet",
    "perceptual",
    "ray",
    "remote",
    "review",
    "semantic",
    "service",
    "studio",
    "vllm",
]


def install_hint(extra: Extra, *, instead: str | None = None) -> str:
    """What to do where a package of `extra` is missing; `instead` is what to do otherwise.

    >>> install_hint("parquet", instead="use CSV")
    "Run `pip install -e '.[parquet]'` in your clone of uncanny, or use CSV."
    """
    otherwise = "" if instead is None else f", or {instead}"
    return f"Run `pip install -e '.[{extra}]'` in your clone of uncanny{otherwise}."


def optional(module: str, extra: Extra, what: str, *, instead: str | None = None) -> Any:
    """A module of a package that comes with `extra`. Raises UsageError where it is not installed or broken.

    `what` cannot be done without it, for the message; `instead` as for `install_hint`.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        why = "is not installed" if (error.name or "").partition(".")[0] == package else _broken(error)
        raise UsageError(
            f"{what} needs {package}, which {why}", remedy=install_hint(extra, instead=instead)
        ) from error


def _broken(error: BaseException) -> str:
    """Why a package that is there is of no use: what went wrong first, as a library built for another one."""
    while error.__cause__ is not None:
        error = error.__cause__
    return f"cannot be imported: {(str(error) or type(error).__name__).splitlines()[0]}"


def pyarrow(module: str) -> Any:
    """A module of pyarrow. Raises UsageError where it is not installed."""
    return optional(module, "parquet", "Parquet", instead="use JSON Lines or CSV")
