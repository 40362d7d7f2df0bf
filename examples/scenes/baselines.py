"""What the questions of the bundled scenes give away without a picture: `python baselines.py` prints it.

Each rule picks an option by its words, its letter or its box alone. Of four options one is right by chance in
0.25 of all pictures; where a rule finds several options equal, each counts for its part.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

TRUTH = Path(__file__).parents[2] / "src" / "uncanny" / "demo" / "data" / "truth"


def _longest(text: str) -> float:
    return len(text)


def _shortest(text: str) -> float:
    return -len(text)


def _most_words(text: str) -> float:
    return len(text.split())


def _longest_words(text: str) -> float:
    words = text.split()
    return sum(map(len, words)) / len(words)


def _area(box: Sequence[int]) -> float:
    x0, y0, x1, y1 = box
    return (x1 - x0) * (y1 - y0)


def _small(box: Sequence[int]) -> float:
    return -_area(box)


RULES: Mapping[str, Callable[[str], float]] = {
    "longest": _longest,
    "shortest": _shortest,
    "most words": _most_words,
    "longest words": _longest_words,
}
BOX_RULES: Mapping[str, Callable[[Sequence[int]], float]] = {"largest box": _area, "smallest box": _small}


def share(options: Mapping[str, Any], answer: str, rule: Callable[[Any], float]) -> float:
    """1 where the rule picks the answer, 0 where it picks another, in between where it is undecided."""
    values = {letter: rule(option) for letter, option in options.items()}
    best = [letter for letter, value in values.items() if value == max(values.values())]
    return (answer in best) / len(best)


def baselines(truths: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Question and rule → the share of right answers, 0–1, over the pictures with an anomaly."""
    questions = [truth["mcq"] for truth in truths if truth["role"] == "anomalous"]
    shares: dict[str, float] = {}
    for name in ("q2", "q4"):
        for label, rule in RULES.items():
            right = [share(q[name]["options"], q[name]["answer"], rule) for q in questions]
            shares[f"{name}, {label}"] = sum(right) / len(right)
    for label, box_rule in BOX_RULES.items():
        right = [share(q["q3"]["boxes"], q["q3"]["answer"], box_rule) for q in questions]
        shares[f"q3, {label}"] = sum(right) / len(right)
    letters = Counter(q["q2"]["answer"] for q in questions)
    shares["any, most frequent letter"] = max(letters.values()) / len(questions)
    return shares


def load() -> list[dict[str, Any]]:
    return [json.loads(path.read_text(encoding="utf-8")) for path in sorted(TRUTH.glob("*.json"))]


if __name__ == "__main__":
    for rule, right in baselines(load()).items():
        print(f"{rule:28}{right:.2f}")
