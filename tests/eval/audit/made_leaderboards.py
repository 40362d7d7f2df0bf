"""Results of audits, made up: any number of generators, with figures that fit each other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from uncanny.eval.audit.data.aggregate import AuditedImage, NameCount
from uncanny.eval.audit.score.result import (
    Agreement,
    AuditResult,
    Difference,
    GeneratorScore,
    Leaderboard,
    PublishedRow,
    PublishedTable,
)
from uncanny.eval.common.alike import Provenance
from uncanny.eval.common.estimates import Estimate
from uncanny.eval.common.inputs.sources import LeftOut
from uncanny.eval.common.published import published
from uncanny.eval.metrics.audit import RANKED
from uncanny.schema import Anomaly

HOSTILE = "</style><script>alert(1)</script><img src=x onerror=alert(1)>\"'&"
FLAWS = (
    ("six fingers", "The left hand has six fingers.", "A hand has five.", ("hand",)),
    ("leg ends in the air", "A chair leg stops above the floor.", "Nothing would carry it.", ("chair",)),
    (
        "shadow against the light",
        "The shadow falls towards the lamp.",
        "It falls away from light.",
        ("lamp",),
    ),
    ("text that is none", "Signs hold shapes like letters.", "No script looks so.", ("sign",)),
    ("merged limbs", "Two arms share one forearm.", "Each arm has its own.", ("man", "woman")),
    ("reflection of another thing", "The mirror shows a vase.", "A candle stands before it.", ("mirror",)),
    ("handle without hinge", "The door has no hinge.", "It could not turn.", ("door",)),
    ("floating cup", "The cup hangs over its saucer.", "Nothing holds it.", ("cup", "saucer")),
)
Samples = dict[str, list[list[tuple[int, int]]]]
RESAMPLES = 400


def made_audit(
    names: Sequence[str],
    *,
    images: int = 60,
    rate: float = 3.0,
    pictures: Sequence[Path] = (),
    pair_by: str | None = "stem",
    seed: int = 0,
) -> AuditResult:
    """Later names are a little worse; `rate` is the anomalies an image of the first one.

    `pictures` are the files of the worst images, in turn.
    """
    dice = np.random.default_rng(seed)
    samples: Samples = {
        name: [
            [
                (int(dice.integers(len(FLAWS))), int(100 * dice.beta(1.2, 2.4)))
                for _ in range(dice.poisson(rate * (1 + 0.05 * place)))
            ]
            for _ in range(images)
        ]
        for place, name in enumerate(names)
    }
    return AuditResult(
        leaderboard=_leaderboard(samples, pictures, pair_by),
        resamples=RESAMPLES,
        seed=seed,
        level=0.95,
        pair_by=pair_by,
    )


def with_published(result: AuditResult) -> AuditResult:
    table = published("generator_audit")
    rows = [
        PublishedRow(row["generator"], assessor, **row[assessor])
        for row in table["rows"]
        for assessor in ("AnomReasonor", "AnomAgent")
    ]
    agreement = (Agreement("cap", 15, 0.9, 0.8),)
    return replace(result, published=PublishedTable(table["source"], tuple(rows), agreement))


def with_second_assessor(result: AuditResult) -> AuditResult:
    """The same generators, in another order by others."""
    other = made_audit(sorted(result.leaderboard.generators), seed=9).leaderboard
    agreement = (Agreement("mai", len(other.order), 0.31, 0.2), Agreement("cap", len(other.order), 0.5, None))
    return replace(result, against=other, agreement=agreement)


def generator(name: str, records: list[list[tuple[int, int]]], pictures: Sequence[Path]) -> GeneratorScore:
    u = np.array([sum(1 - severity / 100 for _, severity in record) for record in records])
    count = np.array([len(record) for record in records])
    flat = [flaw for record in records for flaw in record]
    severities = Counter(severity for _, severity in flat)
    named = Counter(FLAWS[kind][0] for kind, _ in flat)
    mai, af, cap = _metrics(u, count, np.arange(len(records))[None])
    draws = np.random.default_rng(1).integers(len(records), size=(RESAMPLES, len(records)))
    spread = _metrics(u, count, draws)
    estimates = [
        Estimate(float(value[0]), _ends(values)) for value, values in zip((mai, af, cap), spread, strict=True)
    ]
    worst = sorted(range(len(records)), key=lambda place: -u[place])[:4]
    return GeneratorScore(
        name=name,
        source=Path("runs") / "a",
        kind="run",
        images=len(records),
        anomalies=len(flat),
        flawless=int((count == 0).sum()),
        left_out=LeftOut(),
        mai=estimates[0],
        af=estimates[1],
        cap=estimates[2],
        u_mean=Estimate(float(u.sum() / count.sum()), (0.6, 0.8)) if flat else Estimate(None),
        severities=tuple(severities[severity] for severity in range(101)),
        names=tuple(NameCount(text, times, times, 0.7) for text, times in named.most_common()),
        worst=tuple(_worst(place, records[place], float(u[place]), pictures) for place in worst),
        provenance=Provenance(("openai/gpt-4o",), ("annotate@1a2b3c4d",), ("at most 2048",)),
        prompts=len(records),
    )


def _worst(place: int, record: list[tuple[int, int]], u: float, pictures: Sequence[Path]) -> AuditedImage:
    path = pictures[place % len(pictures)] if pictures else Path("gone.png")
    anomalies = [
        Anomaly(
            name=FLAWS[kind][0],
            phenomenon=FLAWS[kind][1],
            reasoning=FLAWS[kind][2],
            severity=severity,
            objects=FLAWS[kind][3],
        )
        for kind, severity in sorted(record, key=lambda flaw: flaw[1])
    ]
    return AuditedImage(f"street/{place:04}.png", path, None, 640, 480, u, tuple(anomalies), f"{place:04}")


def _metrics(
    u: NDArray[np.float64], count: NDArray[np.int64], rows: NDArray[np.int64]
) -> tuple[NDArray[np.float64], ...]:
    mai, af = u[rows].mean(axis=1), count[rows].mean(axis=1)
    return mai, af, mai * af


def _ends(values: NDArray[np.float64]) -> tuple[float, float]:
    low, high = np.quantile(values, [0.025, 0.975])
    return float(low), float(high)


def _leaderboard(samples: Samples, pictures: Sequence[Path], pair_by: str | None) -> Leaderboard:
    scores = {name: generator(name, records, pictures) for name, records in samples.items()}
    order = sorted(scores, key=lambda name: scores[name].cap.value or 0.0)
    return Leaderboard(
        generators=scores,
        order=tuple(order),
        differences=tuple(
            difference(scores[first], scores[second], pair_by) for first, second in combinations(order, 2)
        ),
    )


def difference(first: GeneratorScore, second: GeneratorScore, pair_by: str | None) -> Difference:
    """With a made interval, a fifth of both CAPs wide."""
    gaps = {}
    for metric in RANKED:
        ahead, behind = first.metric(metric).value or 0.0, second.metric(metric).value or 0.0
        gap, half = ahead - behind, 0.1 * (ahead + behind)
        gaps[metric] = Estimate(gap, (gap - half, gap + half))
    return Difference(
        first.name,
        second.name,
        first.images if pair_by else None,
        mai=gaps["mai"],
        af=gaps["af"],
        cap=gaps["cap"],
        adjusted_p=0.01 if gaps["cap"].excludes_zero else 0.5,
    )
