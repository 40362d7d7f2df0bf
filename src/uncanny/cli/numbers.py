"""Numbers on the command line, each with the range that makes sense: nothing absurd gets further."""

from __future__ import annotations

import math
from typing import Any

import click

from uncanny.errors import UsageError

MOST_SHOWN = 40


class Whole(click.ParamType[int]):
    """A whole number from `least` to `most`, both included."""

    name = "integer"

    def __init__(self, least: int, most: int) -> None:
        self.least, self.most = least, most

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        try:
            number = int(value)
        except ValueError:
            raise _wrong(param, value, "is no whole number") from None
        if not self.least <= number <= self.most:
            raise _wrong(param, value, f"is not from {self.least:,} to {self.most:,}")
        return number


class Real(click.ParamType[float]):
    """A finite number up to `most`, from `least`, or above it with `above`."""

    name = "float"

    def __init__(self, least: float, most: float, *, above: bool = False) -> None:
        self.least, self.most, self.above = least, most, above

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        try:
            number = float(value)
        except ValueError:
            raise _wrong(param, value, "is no number") from None
        low = number > self.least if self.above else number >= self.least
        if not (low and number <= self.most) or math.isnan(number):
            start = "above" if self.above else "from"
            raise _wrong(param, value, f"is not {start} {self.least:g} to {self.most:,.0f}")
        return number


def _wrong(param: click.Parameter | None, value: object, why: str) -> UsageError:
    name = "A number" if param is None else param.opts[0]
    text = str(value)
    return UsageError(f"{name} {text if len(text) <= MOST_SHOWN else text[: MOST_SHOWN - 1] + '…'} {why}")


OUTPUT_TOKENS = Whole(1, 1_000_000)
TEMPERATURE = Real(0, 2)
TOP_P = Real(0, 1, above=True)
SECONDS = Real(0, 7 * 24 * 3600.0, above=True)
RESAMPLES = Whole(0, 1_000_000)
SEED = Whole(0, 2**63 - 1)
