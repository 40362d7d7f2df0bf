"""Audits in which people judged samples: scores, differences and changes as they correct them.

Corrected figures stand in the place of the model's wherever people judged enough images of all that is
compared: all generators of a leaderboard, both releases of one. Else the model's figures are compared: a
corrected figure and an uncorrected one differ in who found the faults. The formulas are in
`eval.metrics.corrected` and `eval.metrics.corrected_difference`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import TypeVar

import numpy as np

from uncanny.eval.audit.data.aggregate import Aggregate
from uncanny.eval.audit.data.load import Generator
from uncanny.eval.audit.score.faults import ImageFaults
from uncanny.eval.audit.score.releases import Change, Release, linked_codes
from uncanny.eval.audit.score.resample import Compared
from uncanny.eval.audit.score.result import GeneratorScore
from uncanny.eval.common.estimates import Estimate, Share
from uncanny.eval.metrics.association import holm
from uncanny.eval.metrics.audit import RANKED
from uncanny.eval.metrics.corrected_difference import Difference, difference
from uncanny.eval.metrics.intervals import Codes, group_codes
from uncanny.eval.trust.data import skipped_words
from uncanny.eval.trust.figures import FIGURES, Trusted, verdict_words

Name = TypeVar("Name", bound=str)


def trusted_of(generators: Sequence[Generator], pair_by: str | None) -> dict[str, Trusted | None]:
    """What people judged of the generators with images, whose images of one prompt are numbered together."""
    groups: Mapping[str, Codes | None] = dict.fromkeys(each.name for each in generators)
    if pair_by is not None:
        keys = [each.aggregate.prompt_keys for each in generators]
        ends = np.cumsum([len(each) for each in keys])[:-1]
        groups = dict(zip(groups, np.split(group_codes(chain.from_iterable(keys)), ends), strict=True))
    return {
        each.name: each.trusted and Trusted(each.trusted.judged, groups[each.name])
        for each in generators
        if each.aggregate.images
    }


def ranks_corrected(trusted: Mapping[str, Trusted | None], *, allow_mixed: bool) -> bool:
    """Whether generators are compared by what people corrected."""
    enough = [each is not None and each.is_enough for each in trusted.values()]
    return any(enough) and (allow_mixed or all(enough))


def sample_notices(trusted: Mapping[str, Trusted | None], *, allow_mixed: bool) -> Iterator[str]:
    """What is missing for corrected figures, where people have begun to judge."""
    without = {name: each for name, each in trusted.items() if each is None or not each.is_enough}
    yield from (f"{name}: {too_few_words(each)}." for name, each in without.items() if each is not None)
    for name, each in trusted.items():
        if each is not None and each.is_enough and each.judged.skipped:
            yield f"{name}: {skipped_words(each.judged)}."
        if each is not None and each.is_enough:
            yield from (f"{name}: {words}" for words in verdict_words(each))
    if not without or len(without) == len(trusted):
        return
    names = ", ".join(without)
    if allow_mixed:
        yield f"Corrected figures are compared with those of the model: too few images of {names} are judged."
    else:
        yield f"What the model found is compared, uncorrected: too few images of {names} are judged."


def too_few_words(trusted: Trusted | None) -> str:
    """Why there are no corrected figures, without a full stop."""
    if trusted is None:
        return "people have not judged a sample of it; draw one with `uncanny sample`"
    return trusted.why_not


def corrected_score(score: GeneratorScore) -> GeneratorScore:
    """The score that shows corrected figures; unchanged without enough judged images."""
    trusted = score.corrected
    if trusted is None or score.shown_for is not None:
        return score
    figures = {name: each.estimate for name, each in trusted.figures.items()}
    kinds = {
        # What the model does not record people are not asked for.
        kind: each if kind is None or each.share.value is None else replace(each, share=_share(trusted, kind))
        for kind, each in score.faults.kinds.items()
    }
    af, mai = figures["af"].value, figures["mai"].value
    return replace(
        score,
        shown_for=score,
        mai=figures["mai"],
        af=figures["af"],
        cap=figures["cap"],
        u_mean=Estimate(mai / af if mai is not None and af else None),
        faults=ImageFaults(_share(trusted, "visible"), kinds),
    )


def _share(trusted: Trusted, name: str) -> Share:
    """A corrected share; `counts` is of how many images of the frame it speaks."""
    each, frame = trusted.figure(name).estimate, trusted.design.size
    return Share(each.value, round((each.value or 0.0) * frame), frame, each.interval)


def compare_corrected(first: GeneratorScore, second: GeneratorScore) -> Compared:
    """The first minus the second of a leaderboard of corrected figures.

    One that is not corrected has no interval beside one that is: nothing is told apart.
    """
    if first.corrected is None or second.corrected is None:
        gaps = (_gap(first.metric(name), second.metric(name)) for name in RANKED)
        mai, af, cap = map(Estimate, gaps)
        return Compared(None, (mai, af, cap), None)
    both = _differences(first.corrected, second.corrected, RANKED)
    mai, af, cap = map(_estimate, both.values())
    return Compared(both["cap"].pairs or None, (mai, af, cap), both["cap"].p_value)


def _gap(first: Estimate, second: Estimate) -> float | None:
    return None if first.value is None or second.value is None else first.value - second.value


def _differences(first: Trusted, second: Trusted, names: Sequence[Name]) -> dict[Name, Difference]:
    return {name: difference(first.fits[name], second.fits[name]) for name in names}


def _estimate(each: Difference) -> Estimate:
    return Estimate(each.value, each.interval)


def corrected_release(release: Release, now: Generator, before: Generator) -> Release:
    """Changes as people correct them, where they judged enough images of both releases.

    Images of one prompt, of either release, belong together. What changed in groups of names and in single
    prompts is what the model found.
    """
    then, today = before.trusted, now.trusted
    if then is None and today is None:
        return release
    codes = _prompts_of_both(before.aggregate, now.aggregate)
    first, second = (each and each.grouped(own) for each, own in zip((then, today), codes, strict=True))
    if first is None or second is None or not (first.is_enough and second.is_enough):
        whys = [
            f"{when}: {too_few_words(each)}"
            for when, each in (("before", first), ("now", second))
            if each is None or not each.is_enough
        ]
        return replace(release, untrusted="; ".join(whys))
    recorded = [
        kind
        for kind, change in release.kinds.items()
        if kind is not None and change.difference.value is not None
    ]
    changed = _changes(first, second, recorded)
    return replace(
        release,
        figures=_changes(first, second, FIGURES),
        kinds={
            kind: change if kind is None else changed.get(kind, change)
            for kind, change in release.kinds.items()
        },
        judged=(first.design.n, second.design.n),
        passed_over="; ".join(
            f"{when}: {skipped_words(each.judged)}"
            for when, each in (("before", first), ("now", second))
            if each.judged.skipped
        ),
    )


def _prompts_of_both(before: Aggregate, now: Aggregate) -> tuple[Codes, Codes]:
    """The prompt of each image of both releases, as numbers; prompts that a known group links are one."""
    rows = group_codes([*before.row_keys, *now.row_keys])
    if before.prompts is not None and now.prompts is not None:
        groups = group_codes([*before.prompt_keys, *now.prompt_keys])
        rows = linked_codes(rows.tolist(), groups, int(rows.max(initial=-1)) + 1)[rows]
    return rows[: before.images], rows[before.images :]


def _changes(before: Trusted, now: Trusted, names: Sequence[Name]) -> dict[Name, Change]:
    """Now minus before, with p-values corrected for the number of `names` that anybody found anything of."""
    gaps = _differences(now, before, names)
    found = {*FIGURES, *before.kinds, *now.kinds}
    adjusted = holm([each.p_value if name in found else None for name, each in gaps.items()])
    return {
        name: Change(before.fits[name].value, now.fits[name].value, _estimate(each), p)
        for (name, each), p in zip(gaps.items(), adjusted, strict=True)
    }
