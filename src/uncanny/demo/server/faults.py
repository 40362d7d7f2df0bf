"""The faults the fake server makes on purpose: when one strikes, and what it does to an answer."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import orjson

from uncanny.demo.prompts import BrainAnswer
from uncanny.demo.server.app import FakeServerOptions, FaultName
from uncanny.demo.server.call import Answered

STATUSES: Final[Mapping[FaultName, int]] = {"429": 429, "429-retry-after": 429, "500": 500, "529": 529}
MESSAGES: Final[Mapping[int, str]] = {
    429: "Rate limit reached (a fault of the fake server)",
    500: "The server had an error (a fault of the fake server)",
    529: "Overloaded (a fault of the fake server)",
}
REFUSAL: Final = "I'm sorry, but I can't help with this image. (A fault of the fake server.)"


@dataclass(frozen=True, slots=True)
class Plan:
    """What happens to one request. `delay` is in seconds; `retry_after_ms` is sent with `429-retry-after`."""

    delay: float
    fault: FaultName | None
    retry_after_ms: int
    dice: random.Random

    def spoil(self, said: Answered) -> Answered:
        """The answer with the fault in it, where the fault is in what the model says."""
        text = said.answer.text
        match self.fault:
            case "malformed":
                return replace(said, answer=BrainAnswer(_malformed(text, self.dice)))
            case "length":
                return replace(said, answer=BrainAnswer(text[: len(text) // 2], "length"))
            case "refusal":
                return replace(said, refusal=REFUSAL)
        return said


def plan(options: FakeServerOptions, number: int) -> Plan:
    """The plan for the request with this number, counted from 0: the same for the same seed."""
    dice = random.Random(f"{options.seed}:{number}")
    delay = options.latency_ms + dice.uniform(0.0, options.jitter_ms)
    drawn, wait = dice.random(), dice.randint(200, 1000)
    struck: FaultName | None = None
    for name, rate in options.faults.items():
        if drawn < rate:
            struck = name
            break
        drawn -= rate
    return Plan(delay / 1000, struck, wait, dice)


def _malformed(text: str, dice: random.Random) -> str:
    """A malformed answer: of a JSON answer one of several kinds, of free text an empty one."""
    try:
        answer = orjson.loads(text)
    except orjson.JSONDecodeError:
        return " \n"
    spoilt = dice.choice(KINDS)(answer)
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


KINDS: Final[tuple[Callable[[Any], Any], ...]] = (
    _prose,
    _wrong_keys,
    _severity_140,
    _missing_fields,
    _cut_json,
)
