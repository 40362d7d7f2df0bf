"""An audit as tables for a terminal and a notebook, and how its numbers and differences read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple

from uncanny.eval.audit.score.faults import NO_KIND
from uncanny.eval.common.estimates import Estimate, Share, p_words
from uncanny.eval.common.groups import KNOWN
from uncanny.eval.common.headline import Claim, Versus, ranking, rate_effect, share_effect
from uncanny.eval.common.headline import headline as proven_first
from uncanny.eval.common.published import caveat
from uncanny.eval.common.tables.table import MISSING, Cell, Column, Figure, Table
from uncanny.eval.metrics.audit import RANKED, VISIBLE_BELOW, Metric
from uncanny.wording import counted

if TYPE_CHECKING:
    from uncanny.eval.audit.score.releases import Change, Release
    from uncanny.eval.audit.score.result import (
        Agreement,
        AuditResult,
        Leaderboard,
        PublishedTable,
    )
    from uncanny.eval.audit.score.trend import Trend
    from uncanny.eval.metrics.corrected import Kind as FigureKind
    from uncanny.eval.trust.figures import FigureName

LIKE = "≈"
_MOST_ALIKE = 4
_MOST_WITH_KINDS = 6
_SHARE = Column("", unit="%", better="lower")
_POINTS = Column("", unit="points", signed=True)
_SCORE = Column("", digits=2, better="lower")
_GAP = Column("", digits=2, signed=True)
_WHOLE = Column("", unit="%", digits=0)
# Scores to two decimals, the ends of their intervals, and differences of scores.
amount, ends, signed = _SCORE.words, _SCORE.ends, _GAP.words


def signed_ends(estimate: Estimate) -> str:
    """The interval of a difference in words; empty where there is none."""
    return _GAP.ends(estimate, " to ")


def level_words(level: float) -> str:
    return f"{100 * level:.10g} %"


def percent_words(value: float | None) -> str:
    """A share in whole percent; never 0 or 100 for what is only nearly so, a dash for none."""
    return MISSING if value is None else f"{_WHOLE.words(value)} %"


class FigureForm(NamedTuple):
    """How a figure of an audit reads, in words and as a head, and of what `kind` it is."""

    words: str
    head: str
    kind: FigureKind
    column: Column = _SCORE
    write: Callable[[float | None], str] = amount


FIGURE_FORMS: Final[Mapping[FigureName, FigureForm]] = {
    "visible": FigureForm("images with a visible fault", "Visible faults", "share", _SHARE, percent_words),
    "af": FigureForm("AF, anomalies an image", "AF", "mean"),
    "mai": FigureForm("MAI, implausibility an image", "MAI", "mean"),
    "cap": FigureForm("CAP = MAI · AF", "CAP", "product"),
}


def share_ends(share: Share) -> str:
    """Its interval in whole percent, without the sign: `38–46`; empty where there is none.

    An end that is only nearly 0 or 100 has the digits that say so: `0–0.4`, `99.6–100`.
    """
    return "" if share.interval is None else "–".join(map(_end_words, share.interval))


def _end_words(end: float) -> str:
    whole = f"{100 * end:.0f}"
    if whole == "0" and end > 0:
        return f"{100 * end:.1g}"
    if whole == "100" and end < 1:
        return f"{100 - float(f'{100 - 100 * end:.1g}'):.10g}"
    return whole


def change_words(change: Change, *, of_shares: bool) -> tuple[str, str, str, str]:
    """Before, now, the difference and its interval; of shares in percent and points."""
    write, gap = (percent_words, _POINTS) if of_shares else (amount, _GAP)
    figure = change.difference
    return write(change.before), write(change.now), gap.words(figure.value), gap.ends(figure, " to ")


def headline(result: AuditResult) -> str:
    """The audit for whoever has time for three sentences: visible faults, who leads by CAP, what changed.

    Only what the tests of the tables prove is claimed; see `common/headline.py`. Generators of fewer than ten
    images, or prompts, are not compared.
    """
    board = result.leaderboard
    shares = {name: board.generators[name].faults.visible for name in board.ranked}
    measured = board.measured
    if not measured:
        return "No generator has an image that counts."
    enough = [name for name in measured if not board.generators[name].too_few]
    own = next((name for name in result.own if name in measured), None)
    subject = own or min(enough or measured, key=lambda name: shares[name].value or 0)
    ends_of = share_ends(shares[subject])
    of_images = f"{percent_words(shares[subject].value)} of images{f' [{ends_of}]' if ends_of else ''}"
    few = ", too few images to compare" if len(measured) > 1 and subject not in enough else ""
    spoken = board.generators[subject]
    trusted = spoken.corrected if spoken.shown_for is not None else None
    by = f", corrected by {counted(trusted.design.n, 'judged image')}" if trusted else ""
    said = [f"{own_words(subject, result)} shows a visible fault in {of_images}{by}{few}."]
    if shares[subject].value is None:
        said = []
    if len(enough) > 1:
        said.append(leading(result, board))
    said += [
        _since(result.releases[name], None if name == subject else name)
        for name in sorted(result.releases, key=lambda name: name != subject)
    ]
    return " ".join(said)


def leading(result: AuditResult, board: Leaderboard) -> str:
    """Who leads by CAP, of those with enough images, by the tests of the leaderboard."""
    scores = {name: board.generators[name].cap for name in board.measured}
    tests = [
        Versus(
            own_words(each.first, result),
            own_words(each.second, result),
            -each.cap,
            each.adjusted_p,
        )
        for each in board.differences
    ]
    words = {
        own_words(name, result): amount(cap.value)
        for name, cap in scores.items()
        if not board.generators[name].too_few
    }
    return ranking(words, tests, what="CAP (lower is better)", things="generators")


def own_words(name: str, result: AuditResult) -> str:
    """A generator's name, marked where it is one's own and the name does not say so."""
    return f"{name} (ours)" if name in result.own and name.casefold() != "ours" else name


def _since(release: Release, name: str | None) -> str:
    """What became of a generator since its earlier release, `name` unless it is the one spoken of before."""
    whose = "Before it" if name is None else f"Before {name}"
    if release.too_few:
        visible = percent_words(release.figures["visible"].before)
        return f"{whose} had visible faults in {visible} of images: too few to compare."
    over = "" if release.paired is None else f" on the {release.paired:,} prompts of both releases"
    of_whom = f"{name}, since" if name else "Since"
    if release.untrusted:
        over += ", by what the model found"
    if release.judged is not None:
        over = f", by {release.judged[0]:,} and {release.judged[1]:,} judged images"
    change = release.figures["visible"]
    before, now, *_ = change_words(change, of_shares=True)
    visible = f"visible faults {before} → {now} of images"
    said = proven_first(
        release_claims(release),
        nothing=f"no significant change ({visible})",
        untested=f"{visible}; whether that is a change is not tested",
    )
    return f"{of_whom} the earlier release{over}: {said}."


def release_claims(release: Release) -> Iterator[Claim]:
    """Every tested change, worded; a group of names is about its kind, and AF, MAI and CAP are one topic."""
    for name, figure in release.figures.items():
        form = FIGURE_FORMS[name]
        if form.kind == "share":
            yield _share_claim(form.words, figure, name)
        else:
            effect = rate_effect(figure.before, figure.now, factors=2 if form.kind == "product" else 1)
            yield _claim(form.head, figure, "penalty", effect, of_shares=False)
    for kind, change in release.kinds.items():
        yield _share_claim(f"images with {kind or NO_KIND} faults", change, f"kind {kind}")
    # People correct figures and kinds; of groups of names only the model tells.
    for group, change in release.groups if release.judged is None else ():
        yield _share_claim(f"images with “{group.name}”", change, f"kind {group.kind}")


def _share_claim(what: str, change: Change, topic: str) -> Claim:
    return _claim(what, change, topic, share_effect(change.before, change.now), of_shares=True)


def _claim(what: str, change: Change, topic: str, effect: float, *, of_shares: bool) -> Claim:
    before, now, gap, _ = change_words(change, of_shares=of_shares)
    unit = " points" if of_shares else ""
    words = f"{what} {before} → {now}, {gap}{unit}, {change.verdict}"
    return Claim(words, effect, change.adjusted_p, change.difference.excludes_zero, topic)


def audit_tables(result: AuditResult) -> tuple[Table, ...]:
    """A leaderboard an assessor, how many images show a fault, what changed since earlier releases, how ranks
    agree, the published rows where they were asked for."""
    tables = []
    for leaderboard in result.leaderboards:
        several = len(result.leaderboards) > 1
        title = f"Assessor: {', '.join(leaderboard.models) or 'none'}" if several else None
        last = leaderboard is result.leaderboards[-1]
        notes = [*_differences(leaderboard), *_notes(leaderboard), *(_legend(result) if last else ())]
        tables.append(_leaderboard_table(result, leaderboard, title, notes))
    tables.append(_faults_table(result))
    if any(score.corrected for score in result.leaderboard.generators.values()):
        tables.append(corrected_table(result))
    tables += [_release_table(release, level_words(result.level)) for release in result.releases.values()]
    tables += map(trend_table, result.trends.values())
    if result.agreement:
        what = "Rank agreement of the two (1 the same order, 0 none in common, −1 the reverse)"
        tables.append(_agreement_table(result.agreement, what))
    if result.published is not None:
        tables.append(_published_table(result.published, result.leaderboard))
        tables.append(_agreement_table(result.published.agreement, "Rank agreement of the two published"))
    return tuple(tables)


def _leaderboard_table(
    result: AuditResult, leaderboard: Leaderboard, title: str | None, notes: Sequence[str]
) -> Table:
    alike = {each.second for each in leaderboard.alike}
    rows: list[tuple[Cell, ...]] = []
    for rank, name in enumerate(leaderboard.ranked, 1):
        score = leaderboard.generators[name]
        mark = LIKE if name in alike else " "
        rows.append((f"{rank:>2}{mark} {own_words(name, result)}", score.images, *map(score.metric, RANKED)))
    columns: tuple[str | Column, ...] = ("    generator", "images", *map(_column, RANKED))
    enough = sum(not leaderboard.generators[name].too_few for name in leaderboard.measured)
    return Table(columns, tuple(rows), title, tuple(notes), compared=enough or None)


def _column(metric: Metric) -> Column:
    return Column(metric.upper(), digits=2, better="lower")


def _faults_table(result: AuditResult) -> Table:
    board = result.leaderboard
    measured = [name for name in board.ranked if board.generators[name].images]

    def place(name: str) -> tuple[bool, float]:
        score = board.generators[name]
        return score.too_few, score.faults.visible.value or 0.0

    shares = [
        (own_words(name, result), board.generators[name].faults.visible)
        for name in sorted(measured, key=place)
    ]
    notes = [
        headline(result),
        f"Visible: a fault of realism below {VISIBLE_BELOW} of 100, 100 being realistic.",
    ]
    for name in measured[:_MOST_WITH_KINDS]:
        kinds = board.generators[name].faults.kinds.items()
        known = [(kind, each.share) for kind, each in kinds if kind is not None and each.anomalies]
        known.sort(key=lambda item: -(item[1].value or 0))
        if known:
            shares_of = ", ".join(f"{kind} {percent_words(share.value)}" for kind, share in known[:4])
            notes.append(f"{name}, images with a fault by kind: {shares_of}.")
    columns = ("generator", Column("percent", "%", better="lower"))
    enough = sum(not board.generators[name].too_few for name in measured)
    return Table(columns, tuple(shares), "Images with a visible fault", tuple(notes), compared=enough or None)


def corrected_table(result: AuditResult) -> Table:
    """What people who judged images of a sample make of the model's figures: four rows a generator."""
    rows: list[tuple[Cell, ...]] = []
    for score in result.leaderboard.generators.values():
        if score.corrected is None:
            continue
        name = f"{own_words(score.name, result)} ({score.corrected.design.n:,} judged)"
        for figure, about in FIGURE_FORMS.items():
            each = score.corrected.figures[figure]
            # People and the model do not compete: neither is marked as the better one.
            form = replace(about.column, better=None)
            known = each.corrected
            cells = (
                Figure(each.estimate, form),
                Figure(known.people_only, form),
                Figure(known.model_only, form),
            )
            what = f"% of {about.words}" if about.kind == "share" else about.head
            rows.append((name, what, *cells, known.effective))
            name = ""
    notes = (
        "Corrected: of all images, from what the model found in all and people in those they judged. Worth: "
        "as if people alone had judged so many images.",
    )
    columns = ("generator", "", "corrected", "people only", "model only", Column("worth", digits=0))
    return Table(columns, tuple(rows), "Corrected by people", notes)


def _release_table(release: Release, level: str) -> Table:
    over = "" if release.paired is None else f", over {release.paired:,} shared prompts"
    if release.judged is not None:
        over = f", corrected by {release.judged[0]:,} and {release.judged[1]:,} judged images"
    rows = [
        _release_row(FIGURE_FORMS[name].words, change, of_shares=FIGURE_FORMS[name].kind == "share")
        for name, change in release.figures.items()
    ]
    for kind, change in release.kinds.items():
        if kind is not None and change.verdict in ("better", "worse"):
            rows.append(_release_row(f"images with {kind}", change, of_shares=True))
    notes = [f"In brackets {level} intervals; shares of images are percent, their change is in points."]
    if release.untrusted:
        notes.append(f"These are the model's figures ({release.untrusted}).")
    if release.passed_over:
        notes.append(f"Judged in part ({release.passed_over}).")
    for verdict in ("worse", "better"):
        groups = [group.name for group, _ in release.changed_groups(verdict)[:_MOST_ALIKE]]
        if groups:
            by_model = "" if release.judged is None else ", as the model found it"
            notes.append(f"{verdict.capitalize()}{by_model}: {', '.join(groups)}.")
    if release.shared:
        by_model = "" if release.judged is None else ", as the model found it"
        notes.append(
            f"Of {release.shared:,} shared prompts {release.n_worse:,} got worse and {release.n_better:,} "
            f"better{by_model}."
        )
    if release.too_few:
        notes.append("Fewer than ten prompts or images say nothing: without intervals and verdicts.")
    notes.append(
        "Negative is better. Each interval is for one figure: one in twenty leaves 0 out by chance. What "
        "is better or worse is also significant after Holm correction, for the number of figures, of kinds, "
        "or of groups of names."
    )
    columns = ("", "before", "now", "change", "")
    return Table(columns, tuple(rows), f"{release.name}, now and before{over}", tuple(notes))


def trend_table(trend: Trend) -> Table:
    """A row a release, the oldest first, and which figures changed where."""
    rows: list[tuple[Cell, ...]] = [
        (
            *(label, score.images),
            *(Figure(trend.figure(label, what), form.column) for what, form in FIGURE_FORMS.items()),
        )
        for label, score in trend.releases.items()
    ]
    by = ", corrected by people" if trend.is_corrected else ""
    columns = ("release", "images", *(form.head for form in FIGURE_FORMS.values()))
    notes = (
        trend_words(trend),
        *trend.notices,
        "A change is the largest difference of the mean before and after a release, significant after "
        "correction for the number of releases and figures.",
    )
    return Table(columns, tuple(rows), f"{trend.name}, over {len(rows):,} releases{by}", notes)


def trend_words(trend: Trend) -> str:
    """Which figures changed at which release, as sentences."""
    said = [
        f"{form.head} changed at {trend.labels[each.place]}: "
        f"{form.write(each.before)} → {form.write(each.after)} ({p_words(trend.p_value(what))})."
        for what, each in trend.proven().items()
        for form in [FIGURE_FORMS[what]]
    ]
    if said:
        return " ".join(said)
    if not any(trend.changes.values()):
        return "Whether a figure changed is not tested: too few releases have an interval."
    return f"No figure changed significantly over {len(trend.releases):,} releases."


def _release_row(name: str, change: Change, *, of_shares: bool) -> tuple[Cell, ...]:
    form = _SHARE if of_shares else _SCORE
    gap = Figure(change.difference, _POINTS if of_shares else _GAP)
    return (name, Figure(change.before, form), Figure(change.now, form), gap, change.verdict)


def _differences(leaderboard: Leaderboard) -> Iterator[str]:
    """Neighbours that are alike, in few words where they are many, and who is behind for sure."""
    alike = leaderboard.alike
    if len(alike) > _MOST_ALIKE:
        yield f"{LIKE} does not differ significantly from the one before."
    else:
        yield from (f"{LIKE} {difference}." for difference in alike)
    measured = leaderboard.measured
    compared = [leaderboard.difference(measured[0], name) for name in measured[1:]]
    if len(measured) > 2 and None not in compared:
        behind = [each.second for each in compared if each and each.apart and (each.cap.value or 0) < 0]
        yield f"Significantly worse than the first: {', '.join(behind) or 'none'}."


def _notes(leaderboard: Leaderboard) -> Iterator[str]:
    for name in leaderboard.ranked:
        score = leaderboard.generators[name]
        if score.left_out.total and not score.many_left_out:
            yield f"{name}: {score.left_out.total:,} of {score.records:,} images are left out."
    yield from (f"{note}." for note in leaderboard.texts_notes())
    yield from (f"Note: {notice}" for notice in leaderboard.notices)
    yield from (f"Not made alike: {mismatch}" for mismatch in leaderboard.mixed)


def _legend(result: AuditResult) -> Iterator[str]:
    yield (
        "Lower is better, 0 is flawless. AF: anomalies an image. MAI: their summed implausibility an image. "
        "CAP = MAI · AF."
    )
    drawn = "images"
    if result.pair_by in KNOWN:
        drawn = f"groups of images (by {result.pair_by})"
    elif result.pair_by is not None:
        drawn = f"prompts (by {result.pair_by})"
    if result.leaderboard.is_corrected:
        yield (
            f"{level_words(result.level)} intervals of figures that people corrected in a sample of images. "
            "Two differ significantly if the test of their CAP difference, corrected for the number of pairs "
            "(Holm), is significant."
        )
    elif result.resamples:
        yield f"{level_words(result.level)} intervals by {result.resamples:,} resamples of {drawn}."
        pairs = len(result.leaderboard.differences)
        if pairs:
            corrected = f", corrected for the number of pairs, {pairs:,} (Holm)" if pairs > 1 else ""
            yield (
                "Two differ significantly if the interval of their CAP difference excludes 0 and a t test is "
                f"significant{corrected}."
            )


def _agreement_table(agreements: Sequence[Agreement], title: str) -> Table:
    rows = tuple((each.metric.upper(), each.spearman, each.kendall, each.generators) for each in agreements)
    columns = ("", Column("Spearman", digits=2), Column("Kendall", digits=2), "generators")
    return Table(columns, rows, title)


def _published_table(table: PublishedTable, ours: Leaderboard) -> Table:
    by_generator: dict[str, dict[str, tuple[float, ...]]] = {}
    for row in table.rows:
        scores: tuple[float, ...] = tuple(getattr(row, metric) for metric in RANKED)
        by_generator.setdefault(row.generator, {})[row.assessor] = scores
    blank = (None,) * len(RANKED)
    rows = tuple(
        (name, *(cell for assessor in table.assessors for cell in scores.get(assessor, blank)))
        for name, scores in by_generator.items()
    )
    columns: tuple[str | Column, ...] = ("generator", *map(_column, RANKED * len(table.assessors)))
    whose = f"Assessors, from left to right: {', '.join(table.assessors)}."
    notes = (whose, *filter(None, [table.names_note]), caveat("generator_audit", ours.texts))
    return Table(columns, rows, f"Published: {table.source}", notes)
