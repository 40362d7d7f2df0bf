"""What the fake server lets itself be told."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from uncanny.demo.server.faults import FAULT_NAMES, FakeServerOptions, parse_faults
from uncanny.errors import UsageError


def test_reads_faults() -> None:
    assert parse_faults(" 429=0.1, hang = 0.02 ,") == {"429": 0.1, "hang": 0.02}
    assert parse_faults("") == {}


def test_unknown_fault_names_the_valid_ones() -> None:
    with pytest.raises(UsageError) as caught:
        parse_faults("503=0.1")
    assert "'503'" in str(caught.value)
    assert all(name in str(caught.value) for name in FAULT_NAMES)


@pytest.mark.parametrize(
    "text", ["429", "429=", "429=often", "429=1.5", "429=-0.1", "429=nan", "429=0.6,cut=0.6"]
)
def test_refuses_rates_that_are_none(text: str) -> None:
    with pytest.raises(UsageError):
        parse_faults(text)


@pytest.mark.parametrize(
    "wrong",
    [
        {"port": -1},
        {"port": 65536},
        {"latency_ms": -1},
        {"jitter_ms": -1},
        {"objects": 0},
        {"max_seconds": 0},
    ],
)
def test_refuses_values_out_of_range(wrong: Mapping[str, Any]) -> None:
    with pytest.raises(UsageError):
        FakeServerOptions(**wrong)
