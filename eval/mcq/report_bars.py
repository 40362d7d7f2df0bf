"""The bars of the MCQ report: patterns, outcomes, answer bias, placed for the page."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from uncanny.eval.mcq.result import ModelScore, Share

HIERARCHY = {
    "q1_miss": "artifact missed (Q1 wrong)",
    "evidence_failure": "seen, wrong evidence (Q4 wrong)",
    "localization_failure": "wrong place (Q2 or Q3 wrong)",
    "full_success": "all four right",
}
PATTERN_WIDTH, PATTERN_ROW, PATTERN_LEFT, PATTERN_RIGHT = 300.0, 15.0, 62.0, 66.0
BIAS_WIDTH, BIAS_TALL, BIAS_TOP = 372.0, 84.0, 12.0
_SLOT, _GAP = 18.0, 16.0


@dataclass(frozen=True, slots=True)
class PatternBar:
    """How many artifact images have one right/wrong pattern; `share` is 0-1, None of no images."""

    pattern: str
    count: int
    share: float | None
    y: float
    width: float


@dataclass(frozen=True, slots=True)
class Segment:
    """One part of a stacked bar, in percent of its width."""

    key: str
    x: float
    width: float
    value: float


@dataclass(frozen=True, slots=True)
class BiasBar:
    """How often one option is given, as a bar, and how often it is right, as a mark; both 0-1."""

    option: str
    given: float
    right: float
    x: float
    y: float
    height: float
    right_y: float


@dataclass(frozen=True, slots=True)
class BiasGroup:
    """The options of one question; no bars where none of its answers is there."""

    question: str
    x: float
    width: float
    bars: tuple[BiasBar, ...]


def pattern_bars(score: ModelScore) -> list[PatternBar]:
    """All sixteen, from all right to all wrong, scaled to the most frequent."""
    total, most = sum(score.patterns.values()), max(score.patterns.values(), default=0)
    room = PATTERN_WIDTH - PATTERN_LEFT - PATTERN_RIGHT
    return [
        PatternBar(
            pattern,
            score.patterns[pattern],
            score.patterns[pattern] / total if total else None,
            place * PATTERN_ROW,
            round(room * score.patterns[pattern] / most, 2) if most else 0.0,
        )
        for place, pattern in enumerate(sorted(score.patterns, reverse=True))
    ]


def hierarchy_bar(shares: Mapping[str, Share]) -> list[Segment]:
    """The four outcomes side by side; empty where no artifact image has all its answers."""
    return _stacked({name: share.value if (share := shares.get(name)) else None for name in HIERARCHY})


def published_hierarchy(row: Mapping[str, Any]) -> list[Segment]:
    """The same of a published model, given as percentages."""
    return _stacked({name: row[name] / 100 if row.get(name) is not None else None for name in HIERARCHY})


def bias_groups(score: ModelScore) -> list[BiasGroup]:
    """Given against right for each option of each question, on one scale from 0 to 100 %."""
    groups, x = [], 4.0
    for question, options in score.answer_bias.items():
        bars = []
        for place, (option, bias) in enumerate(options.items()):
            if bias.given is None or bias.right is None:
                continue
            bars.append(
                BiasBar(
                    option,
                    bias.given,
                    bias.right,
                    x + place * _SLOT,
                    round(BIAS_TOP + BIAS_TALL * (1 - bias.given), 2),
                    round(BIAS_TALL * bias.given, 2),
                    round(BIAS_TOP + BIAS_TALL * (1 - bias.right), 2),
                )
            )
        width = len(options) * _SLOT
        groups.append(BiasGroup(question.upper(), x, width, tuple(bars)))
        x += width + _GAP
    return groups


def types_of(models: Iterable[ModelScore]) -> list[str]:
    """The artifact types in the order in which the scores name them, each once."""
    return list(dict.fromkeys(name for score in models for name in score.by_type))


def _stacked(values: Mapping[str, float | None]) -> list[Segment]:
    segments, x = [], 0.0
    for name, value in values.items():
        if value is None:
            return []
        segments.append(Segment(name, round(100 * x, 3), round(100 * value, 3), value))
        x += value
    return segments
