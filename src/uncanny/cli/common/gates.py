"""`--fail-if` and `--junit`: what is checked beforehand, what is written, and the exit code."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from uncanny.cli.common.files import Output
from uncanny.cli.common.terminal import complain, layout
from uncanny.errors import UsageError

if TYPE_CHECKING:
    from uncanny.eval.common.gates import GateResult

_HEAD_BYTES = 200


def gate_outputs(conditions: Sequence[str], junit: Path | None) -> list[Output]:
    """The JUnit file, to be checked with other outputs. Raises UsageError for one without a condition."""
    if junit is None:
        return []
    if not conditions:
        raise UsageError(
            "--junit writes the conditions of --fail-if, but --fail-if is not given", remedy="Add --fail-if."
        )
    return [Output(junit, "an uncanny JUnit file", _is_ours)]


def pass_gate(
    gate: Callable[[Sequence[str]], GateResult], conditions: Sequence[str], junit: Path | None, *, quiet: bool
) -> bool:
    """Judge, write and tell on standard error, `quiet` only of failures; for when all else is written."""
    from uncanny.eval.common.gates import summary

    if not conditions:
        return True
    result = gate(conditions)
    if junit is not None:
        result.write_junit(junit)
    if not (quiet and result.passed):
        complain(layout(list(summary(result))))
    return result.passed


def _is_ours(file: Path) -> bool:
    with file.open("rb") as content:
        return b'<testsuites name="uncanny.' in content.read(_HEAD_BYTES)
