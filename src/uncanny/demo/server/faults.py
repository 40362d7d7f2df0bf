"""The fake server's options, and its faults on purpose: when one strikes, and what it does to an answer."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal, TypeVar, get_args

import orjson

from uncanny.demo.model import DemoAnswer
from uncanny.demo.server.api import ApiAnswer
from uncanny.demo.server.dialects import DIALECTS
from uncanny.errors import UsageError

FaultName = Literal[
    "429",
    "429-retry-after",
    "500",
    "529",
    "overloaded",
    "blocked",
    "hang",
    "cut",
    "truncated-json",
    "malformed",
    "refusal",
    "length",
]

BatchFault = Literal["rejected", "expired", "missing", "500", "malformed", "refusal", "length"]
"""What goes wrong with one line of a batch: a 400, no answer in time, no line of results at all, or, as with
a single request, a status or the answer."""

FAULT_NAMES: Final[tuple[FaultName, ...]] = get_args(FaultName)
BATCH_FAULTS: Final[tuple[BatchFault, ...]] = get_args(BatchFault)

MAX_OBJECTS: Final = 200


@dataclass(frozen=True, slots=True)
class FakeServerOptions:
    """Settings of one fake server; raises `UsageError` for values out of range.

    `port` 0 takes a free one. `latency_ms` (≥ 0) is waited before each answer, and up to `jitter_ms` more.
    `faults` maps a fault's name to the share of requests it strikes, 0–1, together at most 1; at most one
    fault strikes a request. `objects` (1–200) is the number of objects made up in an unknown image,
    `anomalies` how many of their two each are shown at most, None for all. The same `seed` gives the n-th
    request the same fault and latency, and each model name the same answers. `max_seconds` ends the server
    by itself.
    `provider` is whose ways of the chat completions API are taken, at its own path; None is nobody's.

    A batch ends after `batch_seconds`, with `batch_faults` in the shares of its lines. OpenAI's batches that
    together have more than `batch_tokens` input tokens fail after they were created; None is no limit. The
    connection is dropped after each of the first `lost_batches` was created.

    Requests beyond as many open ones as `at_once` says get a 429 at once. It has pairs of seconds since the
    first request, rising, and the number from then on; there is no limit before the first, or where it is
    empty.
    """

    port: int = 0
    latency_ms: float = 0.0
    jitter_ms: float = 0.0
    faults: Mapping[FaultName, float] = field(default_factory=dict)
    objects: int = 8
    anomalies: int | None = None
    seed: int = 0
    max_seconds: float | None = None
    provider: str | None = None
    batch_seconds: float = 0.0
    batch_faults: Mapping[BatchFault, float] = field(default_factory=dict)
    batch_tokens: int | None = None
    lost_batches: int = 0
    at_once: Sequence[tuple[float, int]] = ()

    def __post_init__(self) -> None:
        for what, value, valid in (
            ("port", self.port, 0 <= self.port <= 65535),
            ("latency", self.latency_ms, self.latency_ms >= 0),
            ("jitter", self.jitter_ms, self.jitter_ms >= 0),
            ("number of objects", self.objects, 1 <= self.objects <= MAX_OBJECTS),
            ("number of anomalies", self.anomalies, self.anomalies is None or self.anomalies >= 0),
            ("number of seconds", self.max_seconds, self.max_seconds is None or self.max_seconds > 0),
            ("time of a batch", self.batch_seconds, self.batch_seconds >= 0),
            ("number of tokens", self.batch_tokens, self.batch_tokens is None or self.batch_tokens > 0),
            ("limit", self.at_once, all(seconds >= 0 and number >= 0 for seconds, number in self.at_once)),
        ):
            if not valid:
                raise UsageError(f"The fake server cannot work with a {what} of {value!r}")
        if self.provider is not None and self.provider not in DIALECTS:
            raise UsageError(
                f"The fake server cannot imitate {self.provider!r}",
                remedy=f"Choose one of {', '.join(DIALECTS)}.",
            )
        _check_rates(self.faults)
        _check_rates(self.batch_faults)


def parse_faults(text: str) -> dict[FaultName, float]:
    """Read `NAME=RATE,…`; an empty text gives no faults. Raises `UsageError` that names the valid faults."""
    return _parse(text, FAULT_NAMES)


def parse_batch_faults(text: str) -> dict[BatchFault, float]:
    """As `parse_faults`, for the lines of batches."""
    return _parse(text, BATCH_FAULTS)


def parse_limits(text: str) -> tuple[tuple[float, int], ...]:
    """Read `N@SECONDS,…`, where `@0` may be left out; an empty text gives no limits. Raises `UsageError`."""
    limits: list[tuple[float, int]] = []
    for item in filter(None, (item.strip() for item in text.split(","))):
        number, _, seconds = item.partition("@")
        try:
            limits.append((float(seconds or 0), int(number)))
        except ValueError:
            raise UsageError(f"{item!r} is not a limit", remedy="Write N@SECONDS, as in 40,20@10.") from None
    return tuple(sorted(limits))


N = TypeVar("N", bound=str)


def _parse(text: str, names: Sequence[N]) -> dict[N, float]:
    faults: dict[N, float] = {}
    for item in filter(None, (item.strip() for item in text.split(","))):
        given, _, rate = (part.strip() for part in item.partition("="))
        name = next((each for each in names if each == given), None)
        if name is None:
            raise UsageError(f"Unknown fault {given!r}", remedy=f"The faults are: {', '.join(names)}.")
        try:
            faults[name] = float(rate)
        except ValueError:
            raise UsageError(
                f"No rate in {item!r}", remedy="Write NAME=RATE, as in 429=0.1,hang=0.02."
            ) from None
    _check_rates(faults)
    return faults


def _check_rates(faults: Mapping[N, float]) -> None:
    for name, rate in faults.items():
        if not 0 <= rate <= 1:
            raise UsageError(f"The rate of fault {name!r} is {rate!r}", remedy="Rates go from 0 to 1.")
    if sum(faults.values()) > 1 + 1e-9:
        raise UsageError(
            f"The rates of the faults add up to {sum(faults.values()):g}",
            remedy="Their sum must be at most 1.",
        )


STATUSES: Final[Mapping[FaultName, int]] = {"429": 429, "429-retry-after": 429, "500": 500, "529": 529}
MESSAGES: Final[Mapping[int, str]] = {
    429: "Rate limit reached (a fault of the fake server)",
    500: "The server had an error (a fault of the fake server)",
    529: "Overloaded (a fault of the fake server)",
}
REFUSAL: Final = "I'm sorry, but I can't help with this image. (A fault of the fake server.)"


@dataclass(frozen=True, slots=True)
class RequestPlan:
    """What happens to one request. `delay` is in seconds; `retry_after_ms` is sent with `429-retry-after`."""

    delay: float
    fault: FaultName | None
    retry_after_ms: int
    dice: random.Random

    def spoil(self, answer: ApiAnswer) -> ApiAnswer:
        """The answer with the fault in it, where the fault is in what the model says."""
        text = answer.demo.text
        match self.fault:
            case "malformed":
                return replace(answer, demo=DemoAnswer(_malformed(text, self.dice)))
            case "length":
                return replace(answer, demo=DemoAnswer(text[: len(text) // 2], "length"))
            case "refusal":
                return replace(answer, refusal=REFUSAL)
        return answer


def plan_request(options: FakeServerOptions, number: int) -> RequestPlan:
    """The plan for the request with this number, counted from 0: the same for the same seed."""
    dice = random.Random(f"{options.seed}:{number}")
    delay = options.latency_ms + dice.uniform(0.0, options.jitter_ms)
    share, retry_after_ms = dice.random(), dice.randint(200, 1000)
    return RequestPlan(delay / 1000, _struck(options.faults, share), retry_after_ms, dice)


def batch_fault(options: FakeServerOptions, number: int) -> BatchFault | None:
    """The fault of the line with this number, counted from 0 over all batches: the same for the same seed."""
    return _struck(options.batch_faults, random.Random(f"{options.seed}:batch:{number}").random())


def _struck(faults: Mapping[N, float], share: float) -> N | None:
    for name, rate in faults.items():
        if share < rate:
            return name
        share -= rate
    return None


def _malformed(text: str, dice: random.Random) -> str:
    """A malformed answer: of a JSON answer one of several kinds, of free text an empty one."""
    try:
        answer = orjson.loads(text)
    except orjson.JSONDecodeError:
        return " \n"
    spoilt = dice.choice(MALFORMATIONS)(answer)
    return spoilt if isinstance(spoilt, str) else orjson.dumps(spoilt).decode()


def _prose(_answer: Any) -> str:
    return "I looked at the picture with care, and on the whole I would say that it could well be real."


def _wrong_keys(answer: Any) -> Any:
    if isinstance(answer, dict):
        return {f"my_{key}": _wrong_keys(value) for key, value in answer.items()}
    return [_wrong_keys(item) for item in answer] if isinstance(answer, list) else answer


def _severity_140(answer: Any) -> Any:
    rows = _rows(answer)
    if not any("severity" in row for row in rows):
        return _prose(answer)
    for row in rows:
        row["severity"] = 140
    return answer


def _missing_fields(answer: Any) -> Any:
    rows = _rows(answer)
    if not rows:
        return {}
    for row in rows:
        row.pop(next(iter(row)), None)
    return answer


def _cut_json(answer: Any) -> str:
    text = orjson.dumps(answer).decode()
    return text[: len(text) // 2]


def _rows(answer: Any) -> list[dict[str, Any]]:
    """The records in the answer's first list, wherever that is."""
    while isinstance(answer, dict) and answer:
        answer = next(iter(answer.values()))
    return [row for row in answer if isinstance(row, dict) and row] if isinstance(answer, list) else []


MALFORMATIONS: Final[tuple[Callable[[Any], Any], ...]] = (
    _prose,
    _wrong_keys,
    _severity_140,
    _missing_fields,
    _cut_json,
)
