"""Coroutines about one input, side by side: results in order, what ends the input, and defects."""

from __future__ import annotations

import asyncio

import pytest

from uncanny.client.calls import CallScope
from uncanny.errors import ModelUnusableError


async def after(*, seconds: float, result: int) -> int:
    await asyncio.sleep(seconds)
    return result


async def failing(error: Exception) -> int:
    await asyncio.sleep(0)
    raise error


async def test_results_come_in_the_order_of_the_coroutines() -> None:
    asked = (after(seconds=0.01 / (number + 1), result=number) for number in range(3))
    assert await CallScope("a.png").side_by_side(asked) == [0, 1, 2]


async def test_what_ends_the_input_is_raised_when_all_are_back() -> None:
    back = []

    async def other() -> int:
        back.append(await after(seconds=0.01, result=1))
        return 1

    with pytest.raises(ModelUnusableError, match="wrong key"):
        await CallScope("a.png").side_by_side([failing(ModelUnusableError("wrong key")), other()])
    assert back == [1]


async def test_a_defect_is_raised_as_it_is_and_stops_the_others() -> None:
    other = asyncio.Event()

    async def waiting() -> int:
        try:
            await asyncio.Event().wait()
        finally:
            other.set()
        return 1

    with pytest.raises(ZeroDivisionError):
        await CallScope("a.png").side_by_side([waiting(), failing(ZeroDivisionError())])
    assert other.is_set()
