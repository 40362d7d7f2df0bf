"""What the fake server can be told, checked before it starts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, get_args

from uncanny.errors import UsageError

FaultName = Literal[
    "429", "429-retry-after", "500", "529", "hang", "cut", "truncated-json", "malformed", "refusal", "length"
]
FAULT_NAMES: Final[tuple[FaultName, ...]] = get_args(FaultName)
MAX_OBJECTS: Final = 200


@dataclass(frozen=True, slots=True)
class FakeServerOptions:
    """Settings of one fake server; raises `UsageError` for values out of range.

    `port` 0 takes a free one. `latency_ms` (≥ 0) is waited before each answer, and up to `jitter_ms` more.
    `faults` maps a fault's name to the share of requests it strikes, 0–1, together at most 1; at most one
    fault strikes a request. `objects` (1–200) is the number of objects made up in an unknown image. The same
    `seed` gives the n-th request the same fault and latency. `max_seconds` ends the server by itself.
    """

    port: int = 0
    latency_ms: float = 0.0
    jitter_ms: float = 0.0
    faults: Mapping[FaultName, float] = field(default_factory=dict)
    objects: int = 8
    seed: int = 0
    max_seconds: float | None = None

    def __post_init__(self) -> None:
        for what, value, good in (
            ("port", self.port, 0 <= self.port <= 65535),
            ("latency", self.latency_ms, self.latency_ms >= 0),
            ("jitter", self.jitter_ms, self.jitter_ms >= 0),
            ("number of objects", self.objects, 1 <= self.objects <= MAX_OBJECTS),
            ("number of seconds", self.max_seconds, self.max_seconds is None or self.max_seconds > 0),
        ):
            if not good:
                raise UsageError(f"The fake server cannot work with a {what} of {value!r}")
        _check_rates(self.faults)


def parse_faults(text: str) -> dict[FaultName, float]:
    """Read `NAME=RATE,…`; an empty text gives no faults. Raises `UsageError` that names the valid faults."""
    faults: dict[FaultName, float] = {}
    for item in filter(None, (item.strip() for item in text.split(","))):
        name, _, rate = (part.strip() for part in item.partition("="))
        try:
            faults[_fault_name(name)] = float(rate)
        except ValueError:
            raise UsageError(
                f"No rate in {item!r}", remedy="Write NAME=RATE, as in 429=0.1,hang=0.02."
            ) from None
    _check_rates(faults)
    return faults


def _fault_name(name: str) -> FaultName:
    for known in FAULT_NAMES:
        if name == known:
            return known
    raise UsageError(f"Unknown fault {name!r}", remedy=f"The faults are: {', '.join(FAULT_NAMES)}.")


def _check_rates(faults: Mapping[FaultName, float]) -> None:
    for name, rate in faults.items():
        _fault_name(name)
        if not 0 <= rate <= 1:
            raise UsageError(f"The rate of fault {name!r} is {rate!r}", remedy="Rates go from 0 to 1.")
    if sum(faults.values()) > 1 + 1e-9:
        raise UsageError(
            f"The rates of the faults add up to {sum(faults.values()):g}", remedy="Keep them within 1."
        )
