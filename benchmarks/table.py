"""One table of all figures, as plain text and as Markdown."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from datetime import UTC, datetime

from benchmarks.common import SMALL, Figure

Stated = tuple[str, Figure]
"""A figure, after the name of its benchmark."""
HEAD = ("Benchmark", "Figure", "Value", "Peer or limit", "Ratio", "Met")


def machine() -> str:
    """Python, machine, and date in UTC."""
    at = f"{platform.machine()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}"
    small = ", small sizes" if os.environ.get(SMALL) else ""
    return f"Python {platform.python_version()}, {at}, {datetime.now(UTC):%Y-%m-%d}{small}"


def text(stated: Sequence[Stated]) -> str:
    """The table in columns as wide as what is in them."""
    rows = [HEAD, *((name, *each.cells()) for name, each in stated)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = (
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    )
    return "\n".join((machine(), *lines))


def markdown(stated: Sequence[Stated], failed: Sequence[str] = ()) -> str:
    """The table with its head, and the names of benchmarks that failed."""
    lines = (
        f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |"
        for row in (HEAD, ("---",) * len(HEAD), *((name, *each.cells()) for name, each in stated))
    )
    missing = f"\nFailed: {', '.join(failed)}.\n" if failed else ""
    return f"{machine()}\n\n" + "\n".join(lines) + "\n" + missing
