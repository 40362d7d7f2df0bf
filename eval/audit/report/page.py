"""The HTML page of an audit: one file that needs nothing else and asks nothing of the network.

It has a headline, the leaderboard, plots, differences of all pairs, faults by kind and by what they are
called, the worst images of each generator with what is wrong with them, and, where asked for, what changed
since earlier releases, a second assessor and the published rows.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any

from jinja2 import Environment

from uncanny.annotation.report.page import write_report
from uncanny.eval.audit.data.aggregate import AuditedImage
from uncanny.eval.audit.report.plots import plot_plane, plot_ranks, plot_severities, plot_trend
from uncanny.eval.audit.score.result import AuditResult, Difference, GeneratorScore, Leaderboard
from uncanny.eval.audit.score.tables import (
    FIGURE_FORMS,
    amount,
    change_words,
    ends,
    headline,
    level_words,
    percent_words,
    share_ends,
    signed,
    signed_ends,
    trend_words,
)
from uncanny.eval.common.estimates import Estimate
from uncanny.eval.common.groups import KNOWN
from uncanny.eval.common.pages.page import score_page, write_rendered
from uncanny.eval.common.pages.pictures import (
    Layer,
    PageViews,
    PicturesMode,
    Shot,
    View,
    anomaly_marks,
    relative_link,
)
from uncanny.eval.common.published import caveat
from uncanny.eval.metrics.audit import VISIBLE_BELOW
from uncanny.records.run_folder import RunFolder
from uncanny.schema import KINDS, Kind
from uncanny.wording import percent_right, percent_sure

# Groups of names that stand in the open; the rest is folded.
MOST_GROUPS_OPEN = 20
# So many images in the whole page, and so many of one generator.
MOST_SHOWN, MOST_EACH = 64, 8
LEAST_EACH = 3


def write_audit_page(
    result: AuditResult,
    path: Path,
    *,
    title: str | None = None,
    pictures: PicturesMode = "link",
    reports: bool = False,
) -> Path:
    """Write the page to `path` and return it; see `AuditResult.report`.

    The worst images are read from where the result says; one that cannot be read is left out. The file
    appears whole or not at all. Raises `OSError` where it cannot be written.
    """
    leaderboard, against = result.leaderboard, result.against
    pages = generator_pages(result, path, missing=reports, pictures=pictures)
    views = PageViews(path, pictures)
    return write_rendered(
        _environment(),
        "audit.html.j2",
        path,
        title=title or "Generator audit",
        result=result,
        leaderboard=leaderboard,
        rows=leaderboard_rows(leaderboard),
        scale=cap_scale(leaderboard),
        left_out=[
            score for name in leaderboard.ranked if (score := leaderboard.generators[name]).left_out.total
        ],
        matrix=difference_matrix(leaderboard),
        headline=headline(result),
        judged=[score for name in leaderboard.ranked if (score := leaderboard.generators[name]).corrected],
        pages=pages,
        kinds=kinds_seen(leaderboard),
        groups=leaderboard.faults.rows,
        groups_most=max(
            (
                share.value or 0
                for row in leaderboard.faults.rows
                for name, share in row.shares.items()
                if not leaderboard.generators[name].too_few
            ),
            default=0,
        ),
        groups_open=MOST_GROUPS_OPEN,
        releases=release_pictures(result, views),
        trends=[
            (trend, plot_trend(trend, str(number)), trend_words(trend))
            for number, trend in enumerate(result.trends.values())
        ],
        prompts=prompt_pictures(result, views),
        side_by_side=result.side_by_side,
        shots=worst_images(leaderboard, views),
        page_views=views,
        plots={
            "plane": plot_plane(leaderboard, result.own),
            "severities": plot_severities(leaderboard),
            "ranks": plot_ranks(leaderboard, against) if against else "",
        },
        second=leaderboard_rows(against) if against else None,
        second_scale=cap_scale(against) if against else None,
        published=published_rows(result),
        caveat=caveat("generator_audit", result.leaderboard.texts),
        about=_about(result),
    )


def _about(result: AuditResult) -> dict[str, Any]:
    scores = list(result.leaderboard.generators.values())
    return {
        "images": sum(score.images for score in scores),
        "anomalies": sum(score.anomalies for score in scores),
        "left_out": sum(score.left_out.total for score in scores),
        "models": result.leaderboard.models,
        "prompts": result.leaderboard.prompt_sets,
        "level": level_words(result.level),
        "pairing": _pairing(result.pair_by),
    }


def _pairing(pair_by: str | None) -> str:
    if pair_by is None:
        return "images resampled one by one"
    by = "file name" if pair_by == "stem" else f"column {pair_by}"
    what = "images that belong together" if pair_by in KNOWN else "images with the same prompt"
    return f"{what} (by {by}) resampled together"


@cache
def _environment() -> Environment:
    filters: dict[str, Callable[..., Any]] = {
        "amount": amount,
        "ends": ends,
        "signed": signed,
        "whole": percent_words,
        "share_ends": share_ends,
    }
    environment = score_page("uncanny.eval.audit", ("audit.css",), filters)
    environment.globals |= {
        "signed_ends": signed_ends,
        "change_words": change_words,
        "forms": FIGURE_FORMS,
        "percent_sure": percent_sure,
        "percent_right": percent_right,
        "visible_below": VISIBLE_BELOW,
    }
    return environment


@dataclass(frozen=True, slots=True)
class Strip:
    """A score and its interval drawn on a scale that all rows share, in percent of the width."""

    at: float
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True)
class Row:
    """A line of the leaderboard; `rank` is None without a CAP. `tie` says why it equals the next line."""

    rank: int | None
    score: GeneratorScore
    strip: Strip | None
    tie: str | None


def leaderboard_rows(leaderboard: Leaderboard) -> list[Row]:
    """All generators in the order of the leaderboard."""
    ties = {difference.first: str(difference) for difference in leaderboard.alike}
    low, high = cap_scale(leaderboard)
    rows = []
    for place, name in enumerate(leaderboard.ranked, 1):
        score = leaderboard.generators[name]
        strip = _strip(score.cap, low, high)
        rows.append(Row(None if strip is None else place, score, strip, ties.get(name)))
    return rows


def cap_scale(leaderboard: Leaderboard) -> tuple[float, float]:
    """The lowest and highest end of any interval of CAP; 0 to 1 without any score."""
    caps = [score.cap for score in leaderboard.generators.values()]
    marks = [cap.value for cap in caps if cap.value is not None]
    marks += [end for cap in caps if cap.value is not None and cap.interval for end in cap.interval]
    return (min(marks), max(marks)) if marks else (0.0, 1.0)


def _strip(cap: Estimate, low: float, high: float) -> Strip | None:
    def place(value: float) -> float:
        return round(3 + 94 * (value - low) / (high - low), 2) if high > low else 50.0

    if cap.value is None:
        return None
    return Strip(place(cap.value), *(map(place, cap.interval) if cap.interval else (None, None)))


def difference_matrix(leaderboard: Leaderboard) -> list[tuple[str, list[Difference | None]]] | None:
    """For each generator its differences to all others as row minus column, None on the diagonal.

    None where fewer than two were compared, or not every pair was.
    """
    names = leaderboard.measured
    pairs = {(each.first, each.second): each for each in leaderboard.differences}
    if len(names) < 2 or len(pairs) < len(names) * (len(names) - 1) // 2:
        return None
    pairs |= {(each.second, each.first): each.reversed() for each in leaderboard.differences}
    return [(row, [pairs.get((row, column)) for column in names]) for row in names]


def kinds_seen(leaderboard: Leaderboard) -> list[Kind]:
    """The kinds that any generator has an anomaly of, in the order of the schema."""
    scores = leaderboard.generators.values()
    return [
        kind
        for kind in KINDS
        if any(score.faults.kinds[kind].anomalies for score in scores if kind in score.faults.kinds)
    ]


def published_rows(result: AuditResult) -> list[tuple[str, list[tuple[str, float, float, float]]]]:
    """The published rows by assessor, lowest CAP first; empty where they were not asked for."""
    if result.published is None:
        return []
    tables: dict[str, list[tuple[str, float, float, float]]] = {}
    for row in sorted(result.published.rows, key=lambda row: row.cap):
        tables.setdefault(row.assessor, []).append((row.generator, row.cap, row.mai, row.af))
    return sorted(tables.items())


# An image, and what opens it; parts of the page as their templates name them.
Pictured = dict[str, Any]
Part = dict[str, Any]


def _pictured(views: PageViews, images: Iterable[tuple[AuditedImage, str]]) -> Iterator[Pictured]:
    """Images as they can be opened, each with the beginning of its title."""
    wanted = list(images)
    added = views.add([_view(image, title) for image, title in wanted])
    return ({"image": image, "shown": shown} for (image, _), shown in zip(wanted, added, strict=True))


def _view(image: AuditedImage, title: str) -> View:
    layer = Layer("image", Shot(image.path, image.sha256))
    size = (image.width, image.height) if image.width and image.height else None
    return View(f"{title}: {image.image}", (layer,), anomaly_marks(image.anomalies), size)


def worst_images(leaderboard: Leaderboard, views: PageViews) -> dict[str, list[Pictured]]:
    """For each generator with anomalies its worst images, in the order of the leaderboard."""
    most = max(LEAST_EACH, min(MOST_EACH, MOST_SHOWN // max(len(leaderboard.ranked), 1)))
    chosen = {
        name: [image for image in leaderboard.generators[name].worst if image.anomalies][:most]
        for name in leaderboard.ranked
    }
    made = _pictured(views, ((image, name) for name, images in chosen.items() for image in images))
    return {name: list(islice(made, len(images))) for name, images in chosen.items() if images}


def prompt_pictures(result: AuditResult, views: PageViews) -> list[Part]:
    """The prompts where generators differ most; next in the viewer leads to the next generator first."""
    rows = result.side_by_side.rows if result.side_by_side else ()
    order = [(row, [name for name in result.leaderboard.ranked if name in row.images]) for row in rows]
    made = _pictured(
        views, ((row.images[name], f"{row.prompt}, {name}") for row, names in order for name in names)
    )
    return [{"row": row, "images": {name: next(made) for name in names}} for row, names in order]


def release_pictures(result: AuditResult, views: PageViews) -> list[Part]:
    """What changed since earlier releases; next in the viewer leads from before to now."""
    parts = []
    for release in result.releases.values():
        part: Part = {"release": release}
        for verdict, changes in (("worse", release.worse), ("better", release.better)):
            pictured = [(change, change.images) for change in changes if change.images is not None]
            made = _pictured(
                views,
                (
                    (image, f"{change.prompt}, {release.name} {when}")
                    for change, images in pictured
                    for image, when in zip(images, ("before", "now"), strict=True)
                ),
            )
            part[verdict] = [
                {"change": change, "before": next(made), "now": next(made)} for change, _ in pictured
            ]
        parts.append(part)
    return parts


FOLDER = "reports"
_UNSAFE = re.compile(r"[^\w.+-]+")


def generator_pages(
    result: AuditResult, page: Path, *, missing: bool, pictures: PicturesMode = "link"
) -> dict[str, str]:
    """Addresses by generator, from `page`. With `missing`, pages that are not there are written.

    Pages of runs are without the calibration of an audit: where there is one, pages with it are written, too.
    What people corrected stands in `page` alone, and those that are written say so. A page with embedded
    pictures is made to travel, and leads to none but those that are written beside it. Annotations in memory
    have none. Raises OSError where one cannot be written, and RecordError for records that were damaged since
    they were scored.
    """
    addresses = {}
    for number, name in enumerate(result.leaderboard.ranked, 1):
        score = result[name]
        calibrated = missing and result.calibration is not None
        own = _own_page(score) if pictures == "link" and not calibrated else None
        if own is None and missing and score.source is not None:
            own = page.parent / FOLDER / f"{number:02}-{_UNSAFE.sub('-', name)[:60]}.html"
            write_report(
                score.source,
                out=own,
                pictures=pictures,
                min_confidence=result.least_confidence,
                calibration=result.calibration,
                note=f"Counts on this page are what the model found. {page.name}, the page of the audit, has "
                "the figures that people corrected."
                if score.corrected
                else "",
            )
        if own is not None:
            addresses[name] = relative_link(page, own, suffixes=(".html",)) or ""
    return {name: address for name, address in addresses.items() if address}


def _own_page(score: GeneratorScore) -> Path | None:
    if score.source is None or score.kind != "run":
        return None
    page = RunFolder(score.source).report
    return page if page.is_file() else None
