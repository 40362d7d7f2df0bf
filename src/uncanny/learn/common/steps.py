"""`steps.jsonl`: one line per optimizer step, which a resumed run continues as if it had never stopped."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, Final

from pydantic import Field

from uncanny.errors import RecordError
from uncanny.files import dump_json
from uncanny.records.jsonl import open_to_read, parse_line, write_atomically
from uncanny.schema import Record

STEPS: Final = "steps.jsonl"


class StepRecord(Record):
    """A line of `steps.jsonl`.

    `step` counts optimizer steps from 1, `epoch` is the share of the data that was seen. `loss` is the mean
    over the step, None where it is not a finite number. `seconds` is the time of the step, `memory_bytes`
    the peak so far: of the GPU's allocator, or else of the process. Kinds of training add keys of their own.
    """

    step: Annotated[int, Field(ge=1)]
    epoch: float | None = None
    loss: float | None = None
    learning_rate: float | None = None
    grad_norm: float | None = None
    seconds: float | None = None
    memory_bytes: int | None = None


class StepLog:
    """Writes `steps.jsonl`, a whole line at a time."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def cut(self, step: int) -> None:
        """Remove what comes after `step`, to which the run went back. Raises RecordError, OSError."""
        kept = [each for each in read_steps(self.path) if each.step <= step]
        if self.path.exists():
            write_atomically(self.path, [_line(each.model_dump(exclude_unset=True)) for each in kept])

    def append(self, values: Mapping[str, Any]) -> None:
        """Write the line of a step. Figures that are not finite become None."""
        with self.path.open("ab") as file:
            file.write(_line({name: _finite(value) for name, value in values.items()}))


def read_steps(path: Path) -> Sequence[StepRecord]:
    """All steps in their order, none where there is no file; a last line that was cut off is left out.

    Raises RecordError for an invalid line.
    """
    reader = open_to_read(path)
    if reader is None:
        return []
    with reader:
        lines = list(reader)
    steps = []
    for number, line in enumerate(lines, 1):
        if line.endswith(b"\n"):
            steps.append(parse_line(line, StepRecord, path, number))
        else:
            with suppress(RecordError):
                steps.append(parse_line(line, StepRecord, path, number))
    return steps


def _line(values: Mapping[str, Any]) -> bytes:
    return dump_json(values) + b"\n"


def _finite(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value
