"""From what was read to boards: figures, intervals, the order, and which neighbours are alike."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, pairwise

import numpy as np

from uncanny.errors import UsageError
from uncanny.eval.audit.aggregate import Interval, Pair, Resampled
from uncanny.eval.audit.data import Loaded
from uncanny.eval.audit.guard import check_alike, provenances, unchecked
from uncanny.eval.audit.report import published_table
from uncanny.eval.audit.result import RANKED, Agreement, AuditResult, Difference, GeneratorScore, Leaderboard
from uncanny.eval.common.estimates import Estimate
from uncanny.eval.metrics.audit import AuditFigures, audit_figures
from uncanny.eval.metrics.bootstrap import LEVEL, RESAMPLES
from uncanny.eval.metrics.significance import rank_agreement

ALL_PAIRS_UP_TO = 16


def audit(
    generators: Sequence[Loaded],
    against: Sequence[Loaded] = (),
    *,
    resamples: int = RESAMPLES,
    seed: int = 0,
    pair_by: str | None = None,
    allow_mixed: bool = False,
    published: bool = False,
) -> AuditResult:
    """Score all generators, and the same ones by a second assessor where `against` is given.

    Raises UsageError where the annotations were not made alike, unless `allow_mixed`, and where the second
    assessor has fewer than two of the generators.
    """
    leaderboard = _board(generators, resamples, seed, pair_by, allow_mixed)
    other = _board(against, resamples, seed, pair_by, allow_mixed) if against else None
    return AuditResult(
        leaderboard=leaderboard,
        resamples=resamples,
        seed=seed,
        level=LEVEL,
        pair_by=pair_by,
        allow_mixed=allow_mixed,
        against=other,
        agreement=() if other is None else agreement(leaderboard, other),
        published=published_table() if published else None,
    )


def agreement(leaderboard: Leaderboard, against: Leaderboard) -> tuple[Agreement, ...]:
    """Over the generators that both have. Raises UsageError where these are fewer than two."""
    shared = [name for name in leaderboard.order if name in against.generators]
    if len(shared) < 2:
        raise UsageError(
            f"The two assessors have {len(shared)} of the generators in common",
            remedy="Give --against the same names, at least two of them.",
        )
    found = []
    for figure in RANKED:
        pairs = [
            (one, other)
            for name in shared
            if (one := leaderboard.generators[name].figure(figure).value) is not None
            and (other := against.generators[name].figure(figure).value) is not None
        ]
        ranks = rank_agreement([one for one, _ in pairs], [other for _, other in pairs])
        found.append(Agreement(figure, len(pairs), ranks.spearman, ranks.kendall))
    return tuple(found)


def _board(
    generators: Sequence[Loaded], resamples: int, seed: int, pair_by: str | None, allow_mixed: bool
) -> Leaderboard:
    mixed = check_alike(provenances(generators), allow_mixed=allow_mixed)
    tallies = {one.source.name: one.tally for one in generators}
    figures = {
        name: audit_figures(
            np.asarray(tally.counts, dtype=np.int64), np.asarray(tally.severity_sums, dtype=np.int64)
        )
        for name, tally in tallies.items()
    }
    order = sorted(figures, key=lambda name: _rank(figures[name]))
    pairs = _pairs([name for name in order if figures[name].cap is not None])
    resampled = Resampled(tallies, pairs, paired=pair_by is not None, resamples=resamples, seed=seed)
    scores = {
        one.source.name: _score(one, figures[one.source.name], resampled.intervals(one.source.name))
        for one in generators
    }
    notices = [notice for one in generators for notice in one.notices]
    notices += [*unchecked(generators), *_left_out(scores), *_unpaired(generators, pair_by)]
    differences = tuple(_difference(pair, resampled) for pair in pairs)
    return Leaderboard(scores, tuple(order), differences, mixed, tuple(notices))


def _rank(found: AuditFigures) -> tuple[bool, float]:
    return (found.cap is None, found.cap or 0.0)


def _pairs(order: Sequence[str]) -> list[Pair]:
    if len(order) <= ALL_PAIRS_UP_TO:
        return list(combinations(order, 2))
    return list(pairwise(order))


def _score(one: Loaded, found: AuditFigures, intervals: Sequence[Interval | None]) -> GeneratorScore:
    tally = one.tally
    mai, af, cap, u_mean = (Estimate(*each) for each in zip(found, intervals, strict=True))
    return GeneratorScore(
        name=one.source.name,
        source=one.source.path,
        kind=one.source.kind,
        images=len(tally.counts),
        anomalies=sum(tally.counts),
        flawless=tally.counts.count(0),
        left_out=tally.left_out,
        mai=mai,
        af=af,
        cap=cap,
        u_mean=u_mean,
        severities=tuple(tally.severities),
        names=tally.names,
        worst=tally.worst,
        provenance=one.provenance,
        prompts=None if tally.key is None else len(set(tally.keys)),
        unfinished=one.unfinished,
    )


def _difference(pair: Pair, resampled: Resampled) -> Difference:
    found = resampled.compare(pair)
    mai, af, cap = (Estimate(*each) for each in zip(found.values, found.intervals, strict=True))
    apart = None if cap.interval is None else not cap.interval[0] <= 0 <= cap.interval[1]
    return Difference(*pair, found.shared, mai, af, cap, apart)


def _left_out(scores: Mapping[str, GeneratorScore]) -> Iterator[str]:
    for name, score in scores.items():
        if score.many_left_out:
            kinds = ("failed", "partial", "unreadable", "unclear")
            counts = [(kind, getattr(score.left_out, kind)) for kind in kinds]
            by_kind = ", ".join(f"{count:,} {kind}" for kind, count in counts if count)
            yield (
                f"{name}: {score.left_out.total:,} of {score.records:,} images are left out ({by_kind}); "
                "the figures are of the others."
            )


def _unpaired(generators: Sequence[Loaded], pair_by: str | None) -> Iterator[str]:
    if pair_by is None or len(generators) < 2:
        return
    keys = [set(one.tally.keys) for one in generators if one.tally.keys]
    if keys and sum(len(each) for each in keys) == len(set().union(*keys)):
        yield f"No two generators share a prompt by {pair_by!r}, so nothing is paired."
