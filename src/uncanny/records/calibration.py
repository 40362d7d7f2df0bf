"""The file of a calibration: how likely people accept a finding, by how sure the model says it is.

`eval.trust.calibration` fits it to what people judged. Here it is read, written and applied.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from hashlib import sha256
from itertools import pairwise
from os import PathLike
from pathlib import Path
from typing import Annotated, Final, Literal

import orjson
from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

from uncanny.errors import RecordError, UsageError
from uncanny.files import open_file
from uncanny.records.jsonl import parse_line, write_named
from uncanny.schema import MOST_COUNTED, Anomaly, Confidence, Number, Record

# No calibration comes near it: a step a percent would be a hundred.
MOST_BYTES: Final = 2**20
DIGITS: Final = 6

Likely = Annotated[Number, Field(gt=0, lt=1)]
Error = Annotated[Number, Field(ge=0, le=1)]
Whole = Annotated[int, Field(ge=0, le=MOST_COUNTED, strict=True)]


class MadeWith(Record):
    """How findings came about, as far as their confidence depends on it.

    `models` and `prompts` have the distinct values, sorted; `schedule` is None where it is not known.
    """

    models: tuple[str, ...] = ()
    prompts: tuple[str, ...] = ()
    schedule: str | None = None


class CalibrationStep(Record):
    """Of the findings whose confidence is from `low` to `high`, 0-1, both included, so many are accepted.

    `probability` is above 0 and below 1: no number of judged findings makes certain.
    """

    low: Confidence
    high: Confidence
    probability: Likely


def _ascending(steps: tuple[CalibrationStep, ...]) -> tuple[CalibrationStep, ...]:
    if any(each.low > each.high for each in steps):
        raise PydanticCustomError("step", "a step must not end below where it begins")
    for one, other in pairwise(steps):
        if one.high >= other.low or one.probability > other.probability:
            raise PydanticCustomError("steps", "steps must ascend, in confidence and in probability")
    return steps


class Calibration(Record):
    """The probability that people accept a finding, by the confidence that the model states.

    It is made of `findings` with a confidence, in `images` that people judged whole; `without_confidence`
    more had none. `least_confidence`, 0-1, is what all of them had at least: nothing is known of findings
    below. `error_before` is the expected calibration error of the stated confidence, 0-1, lower is better,
    and `error_after` that of the probabilities, each of images in another one of `folds` parts than those
    that its map is made of.

    >>> made_with = {"models": ["m"], "prompts": ["p@1"]}
    >>> steps = [{"low": 0.5, "high": 0.6, "probability": 0.25}, {"low": 0.8, "high": 1, "probability": 0.75}]
    >>> about = {"findings": 60, "images": 40, "folds": 10, "error_before": 0.3, "error_after": 0.05}
    >>> calibration = uncanny.Calibration(steps=steps, made_with=made_with, **about)
    >>> calibration.probability(0.7)
    0.5
    """

    version: Literal[1] = 1
    steps: Annotated[tuple[CalibrationStep, ...], Field(min_length=1), AfterValidator(_ascending)]
    least_confidence: Confidence = 0.0
    findings: Whole
    without_confidence: Whole = 0
    images: Whole
    folds: Whole
    error_before: Error
    error_after: Error
    made_with: MadeWith

    @classmethod
    def read(cls, path: str | PathLike[str]) -> Calibration:
        """The calibration in a file. Raises RecordError with the field for one that is not, UsageError."""
        file, remedy = Path(path), "Pass a calibration that `uncanny trust` has written."
        try:
            with open_file(file) as content:
                data = content.read(MOST_BYTES + 1)
        except OSError as error:
            raise UsageError(f"{file} cannot be read: {error.strerror or error}", remedy=remedy) from error
        if len(data) > MOST_BYTES:
            raise RecordError("the file is larger than any calibration", path=file, line=1, remedy=remedy)
        return parse_line(data, cls, file, 1, remedy=remedy)

    def write(self, path: str | PathLike[str]) -> Path:
        """Write the file in one step, and return its path. Raises OSError."""
        file = Path(path)
        content = orjson.dumps(self.model_dump(mode="json"), option=orjson.OPT_INDENT_2)
        write_named(file, [content, b"\n"])
        return file

    @property
    def digest(self) -> str:
        """What tells it from others: the beginning of a hash of its content."""
        return sha256(self.model_dump_json().encode()).hexdigest()[:12]

    def probability(self, confidence: float | None) -> float | None:
        """How likely people accept a finding of this confidence, 0-1.

        It is linear between steps, and that of the first or last step outside of them. None where the
        confidence is not known, or below `least_confidence`.
        """
        if confidence is None or confidence < self.least_confidence:
            return None
        import numpy as np  # slow to import

        return round(float(np.interp(confidence, *self._line)), DIGITS)

    def finding(self, anomaly: Anomaly) -> Anomaly:
        """The same finding with its probability."""
        return anomaly.model_copy(update={"probability": self.probability(anomaly.confidence)})

    def unlike(self, other: MadeWith) -> str | None:
        """In a sentence how other findings were made than those it is fitted to; None where nothing differs.

        What is not known of one of them is not compared.
        """
        different = [
            f"{what} ({' and '.join(own)} there, {' and '.join(others)} here)"
            for what, own, others in (
                ("models" if len(other.models) > 1 else "model", self.made_with.models, other.models),
                ("prompts", self.made_with.prompts, other.prompts),
                ("schedule", _known(self.made_with.schedule), _known(other.schedule)),
            )
            if own and others and own != others
        ]
        if not different:
            return None
        return (
            f"The calibration was made with a different {' and '.join(different)}. Its probabilities may be "
            "wrong. Fit one on judged findings of this model, prompts and schedule."
        )

    @cached_property
    def _line(self) -> tuple[list[float], list[float]]:
        return line_of(self.steps)


def line_of(steps: Sequence[CalibrationStep]) -> tuple[list[float], list[float]]:
    """The ends of steps and their probabilities, which a map goes through; of a step with one end, that."""
    ends = dict[float, float]()
    for each in steps:
        ends |= {each.low: each.probability, each.high: each.probability}
    return [*ends], [*ends.values()]


def _known(value: str | None) -> Sequence[str]:
    return () if value is None else (value,)
