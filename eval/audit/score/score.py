"""From annotations to leaderboards: scores, intervals, the order, and which neighbours cannot be told apart.

*Semantic Visual Anomaly Detection and Reasoning* (the AnomReason paper), section 4.3;
the formulas, and in what they are a reading of the paper, are in `eval.metrics.audit`. Ours beside it: the
mean implausibility of an anomaly, intervals, differences of pairs, and that failed annotations are left out
and counted instead of passing for flawless images.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from itertools import combinations, pairwise

import numpy as np

from uncanny.errors import UsageError
from uncanny.eval.audit.data.aggregate import Aggregate
from uncanny.eval.audit.data.load import Generator, provenances
from uncanny.eval.audit.data.names import NameGroups, group_names
from uncanny.eval.audit.data.prompts import prompt_rows
from uncanny.eval.audit.parameters import AuditParameters
from uncanny.eval.audit.score.corrected import (
    compare_corrected,
    corrected_release,
    corrected_score,
    ranks_corrected,
    sample_notices,
    trusted_of,
)
from uncanny.eval.audit.score.faults import ImageFaults, find_faults
from uncanny.eval.audit.score.releases import before_name, compare_releases
from uncanny.eval.audit.score.resample import FEWEST_SHARED, Resamples
from uncanny.eval.audit.score.result import (
    ALL_PAIRS_UP_TO,
    Agreement,
    AuditResult,
    Difference,
    GeneratorScore,
    Leaderboard,
    PublishedRow,
    PublishedTable,
)
from uncanny.eval.audit.score.trend import Trend, labels_of
from uncanny.eval.common.alike import check_alike, unchecked
from uncanny.eval.common.estimates import Estimate, Interval
from uncanny.eval.common.groups import KNOWN, ImageGroups
from uncanny.eval.common.published import published as published_figures
from uncanny.eval.common.similarity.base import Similarity, open_measure
from uncanny.eval.metrics.association import holm
from uncanny.eval.metrics.audit import RANKED, AuditMetrics, Metric, audit_metrics
from uncanny.eval.metrics.intervals import LEVEL
from uncanny.eval.metrics.significance import rank_agreement
from uncanny.records.calibration import Calibration
from uncanny.wording import counted, option

PAPER = "the AnomReason paper, table 3: 246 prompts a generator"
ASSESSORS = ("AnomReasonor", "AnomAgent")
# So many pairs of generators with the same images are named.
MOST_SAME = 5
# So many releases, with that of now, are a series.
LEAST_RELEASES = 3


def score_audit(
    generators: Sequence[Generator],
    against: Sequence[Generator] = (),
    before: Sequence[Generator] = (),
    parameters: AuditParameters | None = None,
    *,
    measure: Similarity | None = None,
    pair_by: str | None = None,
    notices: Sequence[str] = (),
    calibration: Calibration | None = None,
) -> AuditResult:
    """Score all generators, and the same ones by a second assessor where `against` is given.

    `before` are earlier releases of some of the generators, under their names; of several of one the oldest
    comes first, and the newest is compared with now. `pair_by` is what records are paired by, whether or not
    that was asked for. `notices` are told before those of the leaderboard. `calibration` is the one
    that the findings have their probabilities from.

    Raises UsageError where the annotations were not made alike, unless mixing is allowed, and where the
    second assessor has fewer than two of the generators.
    """
    chosen = parameters or AuditParameters()
    resamples, seed = chosen.resamples, chosen.seed
    measure = measure or open_measure(chosen.group_names_by)

    def board(of: Sequence[Generator], before: Sequence[Generator] = ()) -> tuple[Leaderboard, NameGroups]:
        aggregates = {each.name: each.aggregate for each in of}
        aggregates |= {before_name(each.name): each.aggregate for each in before}
        groups = group_names(aggregates, measure, chosen.group_threshold)
        return _leaderboard(of, chosen, pair_by, groups, before), groups

    earlier = {each.name: each for each in before}
    leaderboard, groups = board(generators, [*earlier.values()])
    second = board(against)[0] if against else None
    series = {each.name: [*(one for one in before if one.name == each.name), each] for each in generators}
    older = [f"Before: {what}" for each in before if each is not earlier[each.name] for what in each.notices]
    return AuditResult(
        leaderboard=replace(leaderboard, notices=(*notices, *leaderboard.notices, *older)),
        resamples=resamples,
        seed=seed,
        level=LEVEL,
        pair_by=pair_by,
        allow_mixed=chosen.allow_mixed,
        against=second,
        agreement=() if second is None else agreement(leaderboard, second),
        published=published_table() if chosen.published else None,
        side_by_side=prompt_rows(generators),
        own=chosen.own_names,
        least_confidence=chosen.min_confidence,
        calibration=calibration,
        groups=None
        if pair_by is None
        else ImageGroups.of(pair_by, [key for each in generators for key in each.aggregate.prompt_keys]),
        releases={
            each.name: corrected_release(
                compare_releases(each, earlier[each.name], groups, resamples=resamples, seed=seed),
                each,
                earlier[each.name],
            )
            for each in generators
            if each.name in earlier
        },
        trends={
            name: _trend(leaderboard.generators[name], each, chosen, pair_by)
            for name, each in series.items()
            if len(each) >= LEAST_RELEASES
        },
    )


def _trend(
    now: GeneratorScore, releases: Sequence[Generator], chosen: AuditParameters, pair_by: str | None
) -> Trend:
    """The figures of `now` are those of the leaderboard wherever both are corrected, or both are not.

    Raises NotAlikeError where not all releases were annotated alike, unless mixing is allowed.
    """
    labels = labels_of([each.source.place for each in releases])
    named = [
        replace(each, source=replace(each.source, name=label))
        for label, each in zip(labels, releases, strict=True)
    ]
    unnamed = {each.name: np.full(sum(each.aggregate.counts), -1, np.int32) for each in named}
    groups = NameGroups((), unnamed, 0, 0, "", 0.0)
    board = _leaderboard(named, chosen, pair_by, groups, (), compared=False)
    scores = dict(board.generators)
    if (now.shown_for is not None) == board.is_corrected:
        scores[labels[-1]] = now
    judged = {label: score.trusted for label, score in scores.items() if score.images}
    notices = (
        *(f"Not made alike: {mismatch}" for mismatch in board.mixed),
        *sample_notices(judged, allow_mixed=False),
    )
    return Trend.of(
        now.name,
        scores,
        is_corrected=board.is_corrected,
        independent=not any(_same_images({each.name: each.aggregate for each in named})),
        notices=notices,
    )


def agreement(leaderboard: Leaderboard, against: Leaderboard) -> tuple[Agreement, ...]:
    """Over the generators that both have. Raises UsageError where these are fewer than two."""
    shared = [name for name in leaderboard.order if name in against.generators]
    if len(shared) < 2:
        raise UsageError(
            f"The two assessors share {counted(len(shared), 'generator')}",
            remedy=f"Give {option('against')} the same names, at least two of them.",
        )
    pairs = {
        metric: [
            (first, second)
            for name in shared
            if (first := leaderboard.generators[name].metric(metric).value) is not None
            and (second := against.generators[name].metric(metric).value) is not None
        ]
        for metric in RANKED
    }
    return _agreement(pairs)


def _agreement(pairs: Mapping[Metric, Sequence[tuple[float, float]]]) -> tuple[Agreement, ...]:
    """Of pairs of figures, a pair a generator."""
    return tuple(
        Agreement(metric, len(both), *rank_agreement([a for a, _ in both], [b for _, b in both]))
        for metric, both in pairs.items()
    )


def published_table() -> PublishedTable:
    """Table 3 of the AnomReason paper, in its order, and how its assessors agree on the ranks."""
    figures = published_figures("generator_audit")
    table = figures["rows"]
    rows = tuple(
        PublishedRow(row["generator"], assessor, **row[assessor]) for row in table for assessor in ASSESSORS
    )
    first, second = ASSESSORS
    pairs = {metric: [(row[first][metric], row[second][metric]) for row in table] for metric in RANKED}
    return PublishedTable(PAPER, rows, _agreement(pairs), figures["as_printed"])


def _leaderboard(
    generators: Sequence[Generator],
    parameters: AuditParameters,
    pair_by: str | None,
    groups: NameGroups,
    before: Sequence[Generator],
    *,
    compared: bool = True,
) -> Leaderboard:
    resamples, seed = parameters.resamples, parameters.seed
    made = {before_name(name): provenance for name, provenance in provenances(before).items()}
    mixed = check_alike(provenances(generators) | made, allow_mixed=parameters.allow_mixed)
    aggregates = {generator.name: generator.aggregate for generator in generators}
    metrics = {
        name: audit_metrics(
            np.asarray(aggregate.counts, dtype=np.int64), np.asarray(aggregate.severity_sums, dtype=np.int64)
        )
        for name, aggregate in aggregates.items()
    }
    trusted = trusted_of(generators, pair_by)
    allow_mixed = parameters.allow_mixed and compared
    is_corrected = ranks_corrected(trusted, allow_mixed=allow_mixed)
    caps = {
        name: each.figures["cap"].corrected.value
        if is_corrected and (each := trusted.get(name)) is not None and each.is_enough
        else metrics[name].cap
        for name in metrics
    }
    order = sorted(caps, key=lambda name: (caps[name] is None, caps[name] or 0.0))
    measured = [name for name in order if caps[name] is not None]
    measured.sort(key=lambda name: aggregates[name].drawn_from < FEWEST_SHARED)
    pairs = list(combinations(measured, 2) if len(measured) <= ALL_PAIRS_UP_TO else pairwise(measured))
    pairs = pairs if compared else []
    drawn = Resamples(aggregates, pairs, paired=pair_by is not None, resamples=resamples, seed=seed)
    image_faults, faults = find_faults(aggregates, groups, resamples=resamples, seed=seed)
    scores = {
        each.name: replace(
            _score(each, metrics[each.name], drawn.intervals(each.name), image_faults[each.name]),
            trusted=trusted.get(each.name),
        )
        for each in generators
    }
    if is_corrected:
        scores = {name: corrected_score(score) for name, score in scores.items()}
    same = [*_same_images(aggregates)] if compared else []
    for earlier in before:
        now = {name: each for name, each in aggregates.items() if name == earlier.name}
        same += _same_images({**now, before_name(earlier.name): earlier.aggregate})
    more = len(same) - MOST_SAME
    notices = [*same[:MOST_SAME], *([f"{counted(more, 'more pair')} share images."] if more > 0 else [])]
    notices += [notice for generator in generators for notice in generator.notices]
    notices += [f"Before: {notice}" for generator in before for notice in generator.notices]
    notices += [
        *unchecked({generator.name: generator.provenance for generator in generators}),
        *_left_out(scores),
        *(_without_intervals(scores) if resamples else ()),
        *_unpaired(generators, pair_by),
        *_unlike(scores),
        *sample_notices(trusted, allow_mixed=allow_mixed),
    ]
    gaps = [
        compare_corrected(scores[first], scores[second]) if is_corrected else drawn.compare((first, second))
        for first, second in pairs
    ]
    adjusted = holm([each.p_value for each in gaps])
    differences = tuple(
        Difference(*pair, each.shared, *each.estimates, p)
        for pair, each, p in zip(pairs, gaps, adjusted, strict=True)
    )
    return Leaderboard(scores, tuple(order), differences, mixed, tuple(notices), faults, is_corrected)


def _same_images(aggregates: Mapping[str, Aggregate]) -> Iterator[str]:
    """What to know where generators, or two releases of one, have images of the same content."""
    pictures = {name: np.unique(np.asarray(each.pictures)) for name, each in aggregates.items()}
    every, times = np.unique(np.concatenate([*pictures.values(), np.empty(0, np.int64)]), return_counts=True)
    repeated = every[times > 1]
    sharing = [name for name, each in pictures.items() if np.isin(each, repeated).any()]
    for first, second in combinations(sharing, 2):
        shared = len(np.intersect1d(pictures[first], pictures[second], assume_unique=True))
        if shared and shared == len(pictures[first]) == len(pictures[second]):
            yield (
                f"{first} and {second} are the same {counted(shared, 'image')}: they differ in how they were "
                "annotated, not in what generated them. Compare two runs of one set with `uncanny compare`."
            )
        elif shared:
            yield (
                f"{first} and {second} have {counted(shared, 'image')} in common, which tell how they were "
                "annotated apart, not what generated them."
            )


def _score(
    generator: Generator,
    metrics: AuditMetrics,
    intervals: Sequence[Interval | None],
    faults: ImageFaults,
) -> GeneratorScore:
    aggregate = generator.aggregate
    mai, af, cap, u_mean = (Estimate(*each) for each in zip(metrics, intervals, strict=True))
    return GeneratorScore(
        name=generator.name,
        source=generator.source.path,
        kind=generator.source.kind,
        images=aggregate.images,
        anomalies=sum(aggregate.counts),
        flawless=aggregate.counts.count(0),
        left_out=aggregate.left_out,
        mai=mai,
        af=af,
        cap=cap,
        u_mean=u_mean,
        severities=tuple(aggregate.severities),
        names=aggregate.names,
        worst=aggregate.worst,
        provenance=generator.provenance,
        prompts=aggregate.prompts,
        digest=aggregate.digest,
        unfinished=generator.unfinished,
        faults=faults,
        sure=aggregate.sure,
    )


def _left_out(scores: Mapping[str, GeneratorScore]) -> Iterator[str]:
    for name, score in scores.items():
        if score.many_left_out:
            counts = asdict(score.left_out).items()
            by_kind = ", ".join(f"{count:,} {kind}" for kind, count in counts if count)
            yield (
                f"{name}: {score.left_out.total:,} of {score.records:,} images are left out ({by_kind}); "
                "the figures are of the others."
            )


def _without_intervals(scores: Mapping[str, GeneratorScore]) -> Iterator[str]:
    """Who has figures and no interval of CAP, and why."""
    measured = [score for score in scores.values() if score.images]
    few = [score for score in measured if score.too_few]
    if few:
        names = ", ".join(f"{score.name} ({score.drawn_from})" for score in few)
        what = "images" if few[0].prompts is None else "prompts"
        behind = "" if len(few) == len(measured) else ", and stand behind the others"
        yield f"Fewer than ten {what} have no intervals{behind}: {names}."
    for score in measured:
        if score not in few and score.cap.interval is None:
            yield (
                f"{score.name}: MAI and AF are alike in all {score.images:,} images. That gives no interval; "
                "more images may still differ."
            )


def _unlike(scores: Mapping[str, GeneratorScore]) -> Iterator[str]:
    """Who has no confidences where others leave findings out for theirs."""
    sure = {name: score.sure for name, score in scores.items()}
    for name, each in sure.items():
        if (unlike := each.beside(name, sure)) is not None:
            yield unlike


def _unpaired(generators: Sequence[Generator], pair_by: str | None) -> Iterator[str]:
    if pair_by in (None, *KNOWN) or len(generators) < 2:
        return
    prompts = [set(keys) for generator in generators if (keys := generator.aggregate.prompt_keys)]
    if prompts and sum(len(keys) for keys in prompts) == len(set().union(*prompts)):
        yield f"No two generators share a prompt by {pair_by!r}, so nothing is paired."
