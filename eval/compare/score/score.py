"""From two runs to a comparison: anomalies matched, changes counted, figures with paired intervals.

MAI, AF and CAP are those of *Semantic Visual Anomaly Detection and Reasoning* (the AnomReason paper), section
4.3, SemAP and SemF1 those of its section 3.3 and appendix B; see `eval.metrics.audit` and
`eval.metrics.semap`. Its appendix E compares people with agents by how many anomalies they find, and in words
by how they describe them; `descriptions` are figures of our own for the latter. What is ours, too: which
anomaly of one run is which of the other (`match`), and intervals of all differences, from one bootstrap over
images or prompts.
"""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import wraps
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, Protocol, cast

import numpy as np

from uncanny.errors import UsageError
from uncanny.eval.common.alike import find_mismatches
from uncanny.eval.common.anomalies.load import load
from uncanny.eval.common.anomalies.read import AnomalySet, ScoredAnomaly
from uncanny.eval.common.groups import ImageGroups, image_groups
from uncanny.eval.common.inputs.sources import AnnotationSource
from uncanny.eval.common.parameters import MeasureParameters
from uncanny.eval.common.similarity.base import Similarity, open_measure
from uncanny.eval.compare.data import ComparedRun, ImagePair, PairedRuns, RunImage, pair_runs, read_runs
from uncanny.eval.compare.parameters import By, CompareParameters
from uncanny.eval.compare.score.figures import (
    Figure,
    ImageColumns,
    Resampled,
    corrected,
    cost_of,
    ratio,
    share,
    total,
)
from uncanny.eval.compare.score.match import (
    MATCH_RULES,
    Match,
    match_pairs,
    match_settings,
)
from uncanny.eval.compare.score.result import (
    BANDS,
    CHANGES,
    Change,
    CompareResult,
    Comparison,
    Group,
    ImageChange,
    RepeatFigures,
    Settings,
)
from uncanny.eval.compare.score.truth import UNKNOWN, FoundTruth, TrueImages, pair_truth
from uncanny.eval.metrics.audit import implausibility
from uncanny.parameters import takes
from uncanny.schema import KINDS
from uncanny.wording import option

# Fewer pairs than this say little, whatever their interval.
FEW_IMAGES = 10


Compared = AnnotationSource | Mapping[str, AnnotationSource]
P = ParamSpec("P")


class _Compare(Protocol[P]):
    """Type checkers know no further arguments before keywords that they take from elsewhere."""

    def __call__(
        self,
        run: Compared,
        second: AnnotationSource = ...,
        third: AnnotationSource = ...,
        fourth: AnnotationSource = ...,
        /,
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> CompareResult: ...


def _one_by_one(function: Callable[Concatenate[Sequence[Compared], P], CompareResult]) -> _Compare[P]:
    @wraps(function)
    def call(*runs: Any, **options: Any) -> CompareResult:
        return function(runs, **options)  # type: ignore[call-arg]  # `P` is not known here

    _, *keywords = inspect.signature(function).parameters.values()
    runs = inspect.Parameter("runs", inspect.Parameter.VAR_POSITIONAL)
    call.__signature__ = inspect.Signature([runs, *keywords])  # type: ignore[attr-defined]
    return cast("_Compare[P]", call)


@_one_by_one
@takes(CompareParameters)
def compare(runs: Sequence[Compared], parameters: CompareParameters) -> CompareResult:
    """Compare runs over the same images, and test which differences could be chance.

    Each further run is compared with the first: anomalies that both or only one have, images that changed,
    counts by kind and severity, MAI, AF, CAP and cost. Each difference is the other run minus the first, with
    a 95 % interval from a paired bootstrap. A figure without a measurement is None. Records that failed in
    either run are counted, and only the cost includes them.

    `runs` are two or more run folders, files of annotations, or lists of `Annotation`; or one mapping from
    names to these, which type checkers require for five or more. With `by="prompt"`, two releases of a
    generator are compared on the same prompts; several images of a prompt are paired in the order of their
    names. `match_by` can be a `Similarity` of your own.

    Raises UsageError for fewer than two runs, options out of range, runs without a common image, and names
    that fit several images; ItemsError, which is one, with everything that is wrong with the records.

    >>> run = uncanny.annotate(images, model="demo", out=out)
    >>> result = uncanny.compare({"first": run, "again": run.annotations}, resamples=0)
    >>> result.comparisons[0].images_changed["same"]
    1
    """
    by, truth = parameters.by, parameters.truth
    if truth is not None and by == "prompt":
        raise UsageError(
            f"{option('truth')} belongs to one set of images, but a comparison by prompt has two",
            remedy=f"Remove {option('truth')} or {option('by')}.",
        )
    measure = open_measure(parameters.match_by, parameters.part(MeasureParameters))
    settings = Settings(
        by=by,
        similarity=measure.described,
        match=match_settings(parameters),
        resamples=parameters.resamples,
        seed=parameters.seed,
        least_confidence=parameters.min_confidence,
    )
    root = None if parameters.root is None else Path(parameters.root)
    first, *others = read_runs(runs, root, parameters.min_confidence)
    true = None if truth is None else load(truth, role="truth")
    paired = [pair_runs(first, other, by) for other in others]
    return CompareResult(tuple(_compared(each, true, measure, settings) for each in paired), settings)


def _compared(
    paired: PairedRuns, truth: AnomalySet | None, measure: Similarity, settings: Settings
) -> Comparison:
    pairs = [pair for pair in paired.pairs if pair.counts]
    matches = list(match_pairs(pairs, measure, settings.match))
    true = None if truth is None else pair_truth(paired.a.name, pairs, truth)
    groups = (
        image_groups(pair.a for pair in pairs)
        if settings.by == "image"
        else ImageGroups.of(next(iter(paired.rules)), [pair.prompt for pair in pairs], "pairs of images")
    )
    columns = ImageColumns(range(len(pairs)) if groups is None else groups.codes.tolist())
    _add_counts(columns, pairs, matches)
    if true is not None:
        true.score(pairs, columns, measure, settings.match)
    figures = columns.resampled(settings.resamples, settings.seed)
    images = [
        _image(pair, own, None if true is None else true.images[place], settings.by)
        for place, (pair, own) in enumerate(zip(pairs, matches, strict=True))
    ]
    images.sort(key=lambda image: (-image.lost, -image.regression, image.pair.a.image))
    mismatches = tuple(find_mismatches({run.name: run.provenance for run in (paired.a, paired.b)}))
    rules = Counter(match.rule for own in matches for match in own)
    changes = Counter(image.change for image in images)
    return Comparison(
        a=paired.a,
        b=paired.b,
        pairing=paired.rules,
        only_a_images=paired.only_a,
        only_b_images=paired.only_b,
        pairs_left_out=tuple(pair for pair in paired.pairs if not pair.counts),
        in_common=int(figures.totals["common"]),
        only_a=int(figures.totals["only a"]),
        only_b=int(figures.totals["only b"]),
        match_rules={rule: rules[rule] for rule in MATCH_RULES},
        images_changed={change: changes[change] for change in CHANGES},
        by_kind={}
        if any(_without_kinds(paired))
        else {name: group for name, group in _groups(figures, [*KINDS, UNKNOWN]) if group.a or group.b},
        by_severity=dict(_groups(figures, BANDS)),
        figures=corrected(
            {
                "mai": figures.paired(ratio("unreal {}", "images")),
                "af": figures.paired(ratio("found {}", "images")),
                "cap": figures.paired(_cap),
                "images_with_anomaly": figures.paired(share("any {}", "images")),
            }
        ),
        descriptions=corrected(
            {
                "words": figures.paired(ratio("words {}", "found {}")),
                "reasoning_words": figures.paired(ratio("why {}", "found {}")),
                "with_box": figures.paired(share("boxed {}", "found {}")),
            }
        ),
        distinct_names=(_distinct_names(pair.a for pair in pairs), _distinct_names(pair.b for pair in pairs)),
        cost=cost_of(paired),
        truth=None if true is None else true.figures(figures),
        repeatability=_repeatability(paired, figures, settings) if not mismatches else None,
        mismatches=mismatches,
        images=tuple(images),
        settings=settings,
        groups=groups,
        notices=tuple(_notices(paired, len(pairs), true)),
    )


def _add_counts(
    columns: ImageColumns, pairs: Sequence[ImagePair], matches: Sequence[Sequence[Match]]
) -> None:
    """Of each side: anomalies, their implausibility, and both by kind and by band of severity."""
    common = np.array([len(own) for own in matches], np.float64)
    columns.add("common", common)
    for side in ("a", "b"):
        sets = [(pair.a if side == "a" else pair.b).anomalies for pair in pairs]
        found = np.array([len(anomalies) for anomalies in sets], np.float64)
        columns.add(f"found {side}", found)
        columns.add(f"any {side}", found > 0)
        columns.add(f"only {side}", found - common)
        columns.add(f"unreal {side}", [sum(map(_unreal, anomalies)) / 100 for anomalies in sets])
        columns.add(f"words {side}", [sum(len(each.phenomenon.split()) for each in own) for own in sets])
        columns.add(f"why {side}", [sum(len(each.reasoning.split()) for each in own) for own in sets])
        columns.add(f"boxed {side}", [sum(each.box is not None for each in own) for own in sets])
        taken = [{getattr(match, side) for match in own} for own in matches]
        tables = {name: np.zeros((2, len(pairs))) for name in (*KINDS, UNKNOWN, *BANDS)}
        for place, anomalies in enumerate(sets):
            for number, anomaly in enumerate(anomalies):
                for group in (anomaly.kind or UNKNOWN, band(anomaly.severity)):
                    tables[group][0, place] += 1
                    tables[group][1, place] += number not in taken[place]
        for group, (of_group, alone) in tables.items():
            columns.add(f"{group} {side}", of_group)
            columns.add(f"{group} only {side}", alone)


def _distinct_names(images: Iterable[RunImage]) -> int:
    """However names are capitalized: annotators with a fixed vocabulary have few."""
    return len({anomaly.name.strip().casefold() for image in images for anomaly in image.anomalies})


def _unreal(anomaly: ScoredAnomaly) -> int:
    """In hundredths, so that sums do not depend on the order of anomalies."""
    assert anomaly.severity is not None  # of an annotation it never is
    return round(100 * implausibility(anomaly.severity))


def band(severity: int | None) -> str:
    """The band of a severity, 0 unreal to 100 real; anomalies of annotations always have one."""
    return BANDS[min((severity or 0) // 20, len(BANDS) - 1)]


def _cap(side: str) -> Figure:
    mai, af = ratio("unreal {}", "images")(side), ratio("found {}", "images")(side)
    return Figure(lambda sums: mai.of(sums) * af.of(sums), ("images",))


def _groups(figures: Resampled, names: Sequence[str]) -> Iterator[tuple[str, Group]]:
    for name, counts in corrected({name: figures.paired(total(f"{name} {{}}")) for name in names}).items():
        only_a, only_b = (int(figures.totals[f"{name} only {side}"]) for side in ("a", "b"))
        a, b = int(counts.a or 0), int(counts.b or 0)
        yield name, Group(a, b, only_a, only_b, counts.difference, counts.adjusted_p)


def _image(pair: ImagePair, matches: tuple[Match, ...], true: FoundTruth | None, by: By) -> ImageChange:
    ours, theirs = pair.a.anomalies, pair.b.anomalies
    only_a = tuple(sorted(set(range(len(ours))) - {match.a for match in matches}))
    only_b = tuple(sorted(set(range(len(theirs))) - {match.b for match in matches}))
    # Of two annotators the second is worse for what it misses, of two generators for what is new.
    worse = [ours[number] for number in only_a] if by == "image" else [theirs[number] for number in only_b]
    return ImageChange(
        pair,
        change_of(len(ours), len(theirs)),
        matches,
        only_a,
        only_b,
        sum(map(_unreal, worse)) / 100,
        true,
    )


def change_of(a: int, b: int) -> Change:
    """What became of an image with `a` anomalies in the first run and `b` in the second."""
    if a == b:
        return "same"
    if not b:
        return "found_to_none"
    if not a:
        return "none_to_found"
    return "more" if b > a else "fewer"


def _repeatability(paired: PairedRuns, figures: Resampled, settings: Settings) -> RepeatFigures | None:
    """How far two runs with the same settings agree; None where settings of one are not known."""
    if settings.by != "image" or not (paired.a.is_run and paired.b.is_run):
        return None
    of_both = Figure(
        lambda sums: 2 * sums["common"] / (sums["found a"] + sums["found b"]),
        ("found a", "found b"),
        is_share=True,
    )
    return RepeatFigures(
        figures.estimate(of_both),
        figures.estimate(share("common", "found {}")("a")),
        figures.estimate(share("common", "found {}")("b")),
        (paired.a.replayed, paired.b.replayed),
    )


def _notices(paired: PairedRuns, images: int, true: TrueImages | None) -> Iterator[str]:
    runs: tuple[ComparedRun, ComparedRun] = (paired.a, paired.b)
    for run, other in (runs, runs[::-1]):
        yield from run.notices
        if (unlike := run.sure.beside(run.name, {other.name: other.sure})) is not None:
            yield unlike
    left_out = sum(1 for pair in paired.pairs if not pair.counts)
    if left_out:
        yield (
            f"{left_out:,} of {len(paired.pairs):,} images are left out: their record in one of the two is "
            "failed, partial, unreadable or without a verdict."
        )
    if images < FEW_IMAGES:
        yield f"{images:,} images are few: intervals of so little are narrower than they should be."
    if len(paired.rules) == 1 and "stem" in paired.rules and paired.pairs[0].prompt is not None:
        yield "Prompts are identified by file stems: not all records have prompt_id or prompt."
    for run in runs:
        if run.replayed:
            yield f"{run.name}: {run.replayed:,} of its answers came from the answer cache."
    yield from _without_kinds(paired)
    if true is not None:
        yield from true.notices()


def _without_kinds(paired: PairedRuns) -> Iterator[str]:
    """Says of a run that has no kinds, beside one that has, that there are no counts by kind to compare."""
    pairs = [pair for pair in paired.pairs if pair.counts]
    kinds_a = [each.kind is not None for pair in pairs for each in pair.a.anomalies]
    kinds_b = [each.kind is not None for pair in pairs for each in pair.b.anomalies]
    for run, own, other in ((paired.a, kinds_a, kinds_b), (paired.b, kinds_b, kinds_a)):
        if own and not any(own) and any(other):
            yield (
                f"{run.name} has no kinds, which its schedule or its tool does not ask for: nothing is "
                "compared by kind."
            )
