"""A comparison in words and as tables, for a terminal and a notebook.

What is said to differ does so by a test corrected for the figures of its family, and has no zero in its
interval; every other difference is called one that may be chance.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from uncanny.eval.common.estimates import Estimate
from uncanny.eval.common.headline import Claim, rate_effect, share_effect
from uncanny.eval.common.headline import headline as proven_first
from uncanny.eval.common.tables.table import MISSING, Cell, Column, Figure, Table, explain_intervals
from uncanny.eval.metrics.intervals import LEVEL
from uncanny.wording import counted

if TYPE_CHECKING:
    from uncanny.eval.compare.score.figures import Measured, Paired
    from uncanny.eval.compare.score.result import (
        Change,
        Comparison,
        DescriptionName,
        FigureName,
        Group,
        ImageChange,
        Settings,
    )
    from uncanny.eval.compare.score.truth import TruthFigures

# Behind a difference whose interval holds zero.
MAY_BE_CHANCE = "≈"
_MOST_IMAGES = 5
# Equal figures that were summed in another order differ by less.
_ROUNDING = 1e-9

CHANGE_WORDS: Mapping[Change, str] = {
    "found_to_none": "found → none",
    "none_to_found": "none → found",
    "fewer": "fewer",
    "more": "more",
    "same": "same number",
}
FIGURE_WORDS: Mapping[FigureName, str] = {
    "af": "AF, anomalies an image",
    "mai": "MAI, implausibility an image",
    "cap": "CAP = MAI · AF",
    "images_with_anomaly": "share of images with any",
}
DESCRIPTION_WORDS: Mapping[DescriptionName, str] = {
    "words": "words of a phenomenon, mean",
    "reasoning_words": "words of a reasoning, mean",
    "with_box": "share with a box",
}
COUNT_WORDS: Mapping[Measured, str] = {
    "calls": "calls",
    "input_tokens": "input tokens",
    "cached_tokens": "  of them cached",
    "output_tokens": "output tokens",
}
# What is counted twice: two decimals; shares in 0–1 and scores: three.
_NUMBER = Column("", digits=2)
_SHARE = Column("", digits=3)
_RIGHT = Column("", digits=3, better="higher")
_FALSE_ALARMS = Column("", digits=3, better="lower")
_DOLLARS = Column("", digits=4, better="lower")
_SECONDS = Column("", digits=2, better="lower")
number = _NUMBER.words


def headline(comparison: Comparison) -> str:
    """One sentence: how many more or fewer, for how much, what only one has, and what differs for certain."""
    a, b = comparison.names
    parts = [_how_many(comparison)]
    if comparison.in_common and not comparison.only_a and not comparison.only_b:
        parts.append(f"all {comparison.in_common:,} are in common")
    elif comparison.in_common or comparison.only_a or comparison.only_b:
        parts.append(
            f"{comparison.in_common:,} are in common, {comparison.only_a:,} only {a} has, "
            f"{comparison.only_b:,} only {b}"
        )
    parts.append(
        proven_first(
            claims(comparison),
            nothing="no figure, kind or band of realism differs significantly",
            untested="whether the two differ is not tested",
        )
    )
    return "; ".join(parts) + "."


def claims(comparison: Comparison) -> Iterator[Claim]:
    """Every tested difference, worded; AF, MAI and CAP are one topic, SemAP and SemF1 another."""
    for name, figure in comparison.figures.items():
        is_share = name == "images_with_anomaly"
        effect = (
            share_effect(figure.a, figure.b)
            if is_share
            else rate_effect(figure.a, figure.b, factors=2 if name == "cap" else 1)
        )
        write = share if is_share else number
        words = f"{FIGURE_WORDS[name] if is_share else name.upper()} {write(figure.a)} → {write(figure.b)}"
        yield _claim(words, effect, figure, name if is_share else "penalty")
    images = max(len(comparison.images), 1)
    bands = {f"realism {name}": group for name, group in comparison.by_severity.items()}
    for name_of_group, group in (*comparison.by_kind.items(), *bands.items()):
        effect = rate_effect(group.a / images, group.b / images)
        yield _claim(f"{name_of_group} {group.a:,} → {group.b:,} anomalies", effect, group, name_of_group)
    for name_of_truth, of_truth in truth_figures(comparison.truth):
        if name_of_truth == "recall_unknown":
            continue
        words = f"{truth_words(name_of_truth).strip()} {share(of_truth.a)} → {share(of_truth.b)}"
        topic = "semantic" if name_of_truth.startswith("sem") else name_of_truth
        yield _claim(words, share_effect(of_truth.a, of_truth.b), of_truth, topic)


def _claim(words: str, effect: float, figure: Paired | Group, topic: str) -> Claim:
    return Claim(words, effect, figure.adjusted_p, figure.difference.excludes_zero, topic)


def _how_many(comparison: Comparison) -> str:
    a, b = comparison.names
    af = comparison.figures["af"]
    verb = "finds" if comparison.settings.by == "image" else "has"
    price = _price(comparison)
    if not comparison.images:
        return f"{a} and {b} have no image in common that counts"
    if af.a == 0 and af.b == 0:
        return f"neither {a} nor {b} {verb} an anomaly{price}"
    if af.a == af.b:
        return f"{b} {verb} as many anomalies as {a}{price}"
    if not af.differs:
        why = "no test tells if by chance" if af.adjusted_p is None else "which may be chance"
        return f"{b} {verb} {_percent(af)}anomalies than {a} ({why}){price}"
    return f"{b} {verb} {_percent(af)}anomalies than {a}{price}"


def _percent(af: Paired) -> str:
    """`12 % more `, `12 % fewer `; more than none is no share."""
    assert af.a is not None
    assert af.b is not None
    word = "more" if af.b > af.a else "fewer"
    if not af.a:
        return f"{word} "
    percent = 100 * abs(af.b - af.a) / af.a
    return f"{percent:.0f} % {word} " if percent >= 10 else f"{percent:.1f} % {word} "


def _price(comparison: Comparison) -> str:
    """What B cost by what A cost: money, where that is not known tokens, else nothing."""
    names: tuple[tuple[Measured, str], ...] = (("cost_usd", "cost"), ("input_tokens", "input tokens"))
    for name, word in names:
        ratio = comparison.cost.ratio(name)
        if ratio is not None:
            if 0.995 <= ratio <= 1.005:
                return f" for the same {word}"
            return f" for {ratio:.2g} of the {word}" if ratio < 1 else f" for {ratio:.3g} times the {word}"
    return ""


def share(value: float | None) -> str:
    """A share in 0–1 to three decimals."""
    return MISSING if value is None else f"{value:.3f}"


def signed(value: float | None, digits: int = 2) -> str:
    """A difference with its sign; none for what rounds to nothing."""
    return Column("", digits=digits, signed=True).words(value)


def signed_ends(estimate: Estimate, digits: int = 2) -> str:
    """The interval of a difference; empty where there is none."""
    return Column("", digits=digits, signed=True).show(estimate).interval or ""


def mark(figure: Paired | Group) -> str:
    """Says of a difference that it may be chance; nothing of one that is none, or is not tested."""
    gap = figure.difference.value
    differs = gap is not None and abs(gap) > _ROUNDING
    return MAY_BE_CHANCE if differs and figure.adjusted_p is not None and not figure.differs else ""


def truth_figures(truth: TruthFigures | None) -> Iterator[tuple[str, Paired]]:
    """All figures that rest on a truth, by their names in the JSON."""
    if truth is None:
        return
    for protocol in truth.semap:
        yield f"semap_{protocol}", truth.semap[protocol]
        yield f"semf1_{protocol}", truth.semf1[protocol]
    yield "detection", truth.detection
    yield "recall", truth.recall
    yield "precision", truth.precision
    yield "false_alarms", truth.false_alarms
    if truth.source is not None:
        yield "source", truth.source
    for kind, (_, figure) in truth.by_kind.items():
        yield f"recall_{kind}", figure


def truth_words(name: str) -> str:
    """A figure of truth as people read it."""
    known = {
        "detection": "detection: any or none, right",
        "recall": "recall: true ones found",
        "precision": "precision: found ones true",
        "false_alarms": "false alarms on clean images",
        "source": "source recognised",
    }
    if name in known:
        return known[name]
    what, _, which = name.partition("_")
    words = {"semap": "SemAP", "semf1": "SemF1", "recall": "  recall of"}[what]
    return f"{words} ({which})" if what != "recall" else f"{words} {which}"


def comparison_tables(comparison: Comparison) -> tuple[Table, ...]:
    """All of them, the headline above the first."""
    changed = tuple((words, comparison.images_changed[change]) for change, words in CHANGE_WORDS.items())
    tables = [_headed(comparison), Table(("images", "number"), changed)]
    if comparison.by_kind:
        tables.append(_groups(comparison, "kind", comparison.by_kind))
    tables += [_groups(comparison, "realism, 0 unreal", comparison.by_severity), *more_tables(comparison)]
    # With a truth an image got worse only where something true was lost, or a false alarm is new.
    has_truth = comparison.truth is not None
    worst = [image for image in comparison.images if (image.lost if has_truth else image.regression)]
    if worst:
        tables.append(_worst(worst[:_MOST_IMAGES]))
    return explain_intervals(tables, wanted=comparison.settings.resamples, groups=comparison.groups)


def _columns(comparison: Comparison, first: str) -> tuple[str | Column, ...]:
    return (first, *comparison.names, Column("B − A", digits=0, signed=True), "")


def more_tables(comparison: Comparison) -> Iterator[Table]:
    """How anomalies are described; against the truth, where there is one; and cost."""
    if any(
        described.a is not None or described.b is not None for described in comparison.descriptions.values()
    ):
        yield _descriptions(comparison)
    if comparison.truth is not None:
        yield _truth(comparison, comparison.truth)
    yield _cost(comparison)


def figures_table(comparison: Comparison) -> Table:
    """MAI, AF, CAP and the share of images, with what to know about them."""
    rows = tuple(
        _row(words, comparison.figures[name], _SHARE if name == "images_with_anomaly" else _NUMBER)
        for name, words in FIGURE_WORDS.items()
    )
    return Table(_columns(comparison, ""), rows, notes=(_images(comparison), *_repeatability(comparison)))


def _headed(comparison: Comparison) -> Table:
    """The figures with the headline, and everything to know before believing them."""
    a, b = comparison.names
    figures, rules = figures_table(comparison), comparison.match_rules
    by = f"{rules['text']:,} by text, {rules['box']:,} by box, {rules['both']:,} by both"
    notes = (
        f"Anomalies: {comparison.in_common:,} in common ({by}), {comparison.only_a:,} only "
        f"{a}, {comparison.only_b:,} only {b}.",
        *figures.notes,
        *(f"Note: {notice}" for notice in comparison.notices),
        *(f"Not made alike: {mismatch}" for mismatch in comparison.mismatches),
        *_legend(comparison),
    )
    return replace(figures, title=comparison.headline, notes=notes)


def _row(name: str, figure: Paired, form: Column) -> tuple[Cell, ...]:
    gap = Figure(figure.difference, Column("", digits=form.digits, signed=True))
    return (name, Figure(figure.a, form), Figure(figure.b, form), gap, mark(figure))


def _images(comparison: Comparison) -> str:
    a, b = comparison.names
    only = f"{len(comparison.only_a_images):,} only in {a}, {len(comparison.only_b_images):,} only in {b}"
    pairing = ", ".join(f"{number:,} by {rule}" for rule, number in comparison.pairing.items())
    return f"Images: {len(comparison.images):,} compared (paired: {pairing}), {only}."


def _repeatability(comparison: Comparison) -> Iterator[str]:
    again = comparison.repeatability
    if again is None or again.found_again.value is None:
        return
    ends = ""
    if again.found_again.interval is not None:
        low, high = again.found_again.interval
        ends = f" ({share(low)} to {share(high)})"
    yield f"Same settings twice: {share(again.found_again.value)} of the anomalies are found again{ends}."


def _legend(comparison: Comparison) -> Iterator[str]:
    settings = comparison.settings
    yield f"In common: {matching_words(settings)}."
    if settings.resamples:
        drawn = "images" if settings.by == "image" else "prompts"
        yield (
            f"{100 * LEVEL:.10g} % intervals of B − A by {settings.resamples:,} resamples of {drawn}. "
            f"{MAY_BE_CHANCE} may be chance: the interval includes 0, or a t test is not significant, "
            "corrected by Holm for the figures, the kinds, or the bands of realism."
        )


def matching_words(settings: Settings) -> str:
    """When two anomalies are taken for the same one."""
    text = f"similarity ({settings.similarity['measure']}) from {settings.match.similarity:g} on"
    if settings.by == "prompt":
        return text
    return f"{text}, or the same kind and boxes that overlap from IoU {settings.match.iou:g} on"


def _groups(comparison: Comparison, first: str, groups: Mapping[str, Group]) -> Table:
    rows = tuple(
        (
            *(name, group.a, group.b, group.difference, mark(group)),
            *(group.only_a, group.only_b),
        )
        for name, group in groups.items()
    )
    return Table((*_columns(comparison, first), "only A", "only B"), rows)


def _descriptions(comparison: Comparison) -> Table:
    rows = [
        _row(words, comparison.descriptions[name], _SHARE if name == "with_box" else _NUMBER)
        for name, words in DESCRIPTION_WORDS.items()
    ]
    a, b = comparison.distinct_names
    names: tuple[Cell, ...] = (
        "distinct names",
        a,
        b,
        Figure(float(b - a), Column("", digits=0, signed=True)),
        "",
    )
    return Table(_columns(comparison, "how anomalies are described"), (*rows, names))


def _truth(comparison: Comparison, truth: TruthFigures) -> Table:
    rows = tuple(
        _row(truth_words(name), figure, _FALSE_ALARMS if name == "false_alarms" else _RIGHT)
        for name, figure in truth_figures(truth)
        # The recall of all once more, where the truth names no kind.
        if name != "recall_unknown" or len(truth.by_kind) > 1
    )
    note = (
        f"Truth: {truth.origin}, {counted(truth.images, 'image')}, {truth.with_anomaly:,} with an anomaly. "
        "Lower is better for false alarms, higher for the others."
    )
    return Table(_columns(comparison, "against the truth"), rows, notes=(note,))


def _cost(comparison: Comparison) -> Table:
    cost = comparison.cost
    rows: list[tuple[Cell, ...]] = [
        (words, *cost.sums[name], cost.ratio(name)) for name, words in COUNT_WORDS.items()
    ]
    spent = (Figure(each, _DOLLARS) for each in cost.sums["cost_usd"])
    seconds = (Figure(each, _SECONDS) for each in cost.seconds_an_image)
    rows.append(("cost, US dollars", *spent, cost.ratio("cost_usd")))
    rows.append(("seconds an image", *seconds, cost.ratio("seconds_an_image")))
    note = f"Of {counted(cost.images, 'image')} that both have. {MISSING} is not measured in all records."
    return Table(("cost", *comparison.names, Column("B / A", digits=2)), tuple(rows), notes=(note,))


def _worst(images: Sequence[ImageChange]) -> Table:
    rows = tuple(
        (
            image.pair.a.image,
            CHANGE_WORDS[image.change],
            *(len(image.matches), len(image.only_a), len(image.only_b)),
        )
        for image in images
    )
    return Table(("worst regressions", "change", "in common", "only A", "only B"), rows)
