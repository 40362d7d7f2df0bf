"""The scores of one model, or of several raters, from their sheets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from uncanny.eval.mcq.items import QUESTIONS, Question
from uncanny.eval.mcq.result import Bias, ModelScore, Share
from uncanny.eval.mcq.sheet import CODES, Bools, Key, Sheet
from uncanny.eval.metrics.bootstrap import percentile_intervals, replicates
from uncanny.eval.metrics.mcq import (
    ARTIFACT,
    SPLITS,
    Ratio,
    detection_ratios,
    disagreement_ratios,
    hierarchy_ratios,
    pattern_counts,
    split_ratios,
    type_ratios,
    within,
)
from uncanny.eval.metrics.shares import share_intervals

Path = tuple[str, ...]


def tally(name: str, sheets: Sequence[Sheet], *, resamples: int, seed: int) -> ModelScore:
    """Score one sheet, or average several raters' sheets of one key; `resamples=0` leaves intervals out."""
    key = sheets[0].key
    tables = [ratios_of(sheet) for sheet in sheets]
    shares = _shares(tables, resamples, seed)
    return ModelScore(
        model=name,
        raters=len(sheets),
        n_images=_sizes(key),
        splits=_two_deep(shares, "splits"),
        q1_detection=_one_deep(shares, "q1_detection"),
        patterns=_patterns(sheets),
        hierarchy=_one_deep(shares, "hierarchy"),
        by_type=_one_deep(shares, "by_type"),
        disagreement=_two_deep(shares, "disagreement"),
        answer_bias={question: _bias(sheets, column) for column, question in enumerate(QUESTIONS)},
        invalid=_per_question(sheet.invalid for sheet in sheets),
        refused=_per_question(sheet.refused for sheet in sheets),
        missing=sum((sheet.reasons for sheet in sheets), Counter()),
        unused=sum(sheet.unused for sheet in sheets),
        asked=sum(int(sheet.key.asked.sum()) for sheet in sheets),
        changed=tuple(dict.fromkeys(one for sheet in sheets for one in sheet.changed)),
    )


def ratios_of(sheet: Sheet) -> dict[Path, Ratio]:
    """Every share of one sheet by its path in the report, as columns over the images."""
    key, right, answered = sheet.key, sheet.right, sheet.answered
    artifact, real = within(key.split, *ARTIFACT), within(key.split, "ref_real")
    said = sheet.given[:, 0]
    found: dict[Path, Ratio] = {}
    for split, shares in split_ratios(key.split, right, answered).items():
        found |= {("splits", split, name): share for name, share in shares.items()}
    one_deep = {
        "q1_detection": detection_ratios(
            artifact, real, said == CODES["yes"], said == CODES["no"], answered[:, 0]
        ),
        "hierarchy": hierarchy_ratios(artifact, right, answered),
        "by_type": type_ratios(artifact, key.type, right, answered),
    }
    for head, shares in one_deep.items():
        found |= {(head, name): share for name, share in shares.items()}
    for pair, shares in disagreement_ratios(artifact, right, answered).items():
        found |= {("disagreement", pair, name): share for name, share in shares.items()}
    return found


def _shares(tables: Sequence[Mapping[Path, Ratio]], resamples: int, seed: int) -> dict[Path, Share]:
    paths = list(tables[0])
    if len(tables) == 1:
        intervals = share_intervals(list(tables[0].values()), resamples=resamples, seed=seed)
    elif not resamples:
        intervals = [None] * len(paths)
    else:
        # Raters answer about the same images, so that one resample serves them all.
        drawn = replicates(
            [table[path] for table in tables for path in paths], resamples=resamples, seed=seed
        ).reshape(resamples, len(tables), len(paths))
        with np.errstate(invalid="ignore"):
            counted = ~np.isnan(drawn)
            mean = np.nansum(drawn, axis=1) / counted.sum(axis=1)
        intervals = percentile_intervals(mean)
    return {
        path: _share([table[path] for table in tables], interval)
        for path, interval in zip(paths, intervals, strict=True)
    }


def _share(ratios: Sequence[Ratio], interval: tuple[float, float] | None) -> Share:
    values = [value for ratio in ratios if (value := ratio.value) is not None]
    return Share(
        sum(values) / len(values) if values else None,
        sum(int(ratio.counts.sum(dtype=np.int64)) for ratio in ratios),
        sum(int(ratio.out_of.sum(dtype=np.int64)) for ratio in ratios),
        interval,
    )


def _sizes(key: Key) -> dict[str, int]:
    order = ("art_dg", "art_pg", "artifact", "ref_real", "ref_pg")
    sizes = {split: int(within(key.split, *SPLITS[split]).sum()) for split in order}
    return sizes | {"all": len(key.items)}


def _patterns(sheets: Sequence[Sheet]) -> dict[str, int]:
    artifact = within(sheets[0].key.split, *ARTIFACT)
    each = [pattern_counts(artifact, sheet.right, sheet.answered) for sheet in sheets]
    return {name: sum(counts[name] for counts in each) for name in each[0]}


def _bias(sheets: Sequence[Sheet], column: int) -> dict[str, Bias]:
    options = ("yes", "no") if column == 0 else ("A", "B", "C", "D", "E")
    answered = np.concatenate([sheet.answered[:, column] for sheet in sheets])
    given = np.concatenate([sheet.given[:, column] for sheet in sheets])[answered]
    right = np.concatenate([sheet.key.right[:, column] for sheet in sheets])[answered]
    if not len(given):
        return {option: Bias(None, None) for option in options}
    return {
        option: Bias(float(np.mean(given == CODES[option])), float(np.mean(right == CODES[option])))
        for option in options
    }


def _per_question(marks: Iterable[Bools]) -> dict[Question, int]:
    total = np.sum([mark.sum(axis=0) for mark in marks], axis=0)
    return {question: int(total[column]) for column, question in enumerate(QUESTIONS)}


def _one_deep(shares: Mapping[Path, Share], head: str) -> dict[str, Share]:
    return {path[1]: share for path, share in shares.items() if path[0] == head}


def _two_deep(shares: Mapping[Path, Share], head: str) -> dict[str, dict[str, Share]]:
    found: dict[str, dict[str, Share]] = {}
    for path, share in shares.items():
        if path[0] == head:
            found.setdefault(path[1], {})[path[2]] = share
    return found
