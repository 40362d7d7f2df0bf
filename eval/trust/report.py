"""The HTML page of trust: one file that needs nothing else and asks nothing of the network.

What holds for all images comes first, then which findings are right, what was missed, and whether the
confidence means what it says.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import cache, partial
from math import sqrt
from pathlib import Path
from typing import TYPE_CHECKING

from jinja2 import Environment
from markupsafe import Markup

from uncanny.eval.common.estimates import interval_words
from uncanny.eval.common.pages.page import figure_words, score_page, write_rendered
from uncanny.eval.common.pages.plots import NARROW, WIDE, bare_axes, colour, pixel_axes, plot_twice
from uncanny.eval.common.tables.table import Table
from uncanny.eval.trust.score import ConfidenceBin, TrustResult

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Heading, x-axis, colour and bins of a panel of the plot.
Panel = tuple[str, str, str, Sequence[ConfidenceBin]]
_LEFT, _TOP, _BELOW = 62.0, 30.0, 48.0
_SIDE, _NARROW_SIDE = 380.0, 262.0


def write_trust_page(
    result: TrustResult, path: Path, *, title: str | None = None, made: datetime | None = None
) -> Path:
    """Write the page to `path` and return it; the same result and `made`, by default now, give the same
    bytes. Raises OSError; the file appears whole or not at all."""
    shares, means, findings = result.tables()
    people = result.figures["visible"].corrected.people_only
    return write_rendered(
        _environment(),
        "trust.html.j2",
        path,
        title=title or "Trust",
        made=made,
        result=result,
        judged=result.judged,
        visible=result.figures["visible"],
        people=people,
        agreement=result.agreement,
        calibration=result.calibration,
        tables=[
            replace(shares, title="Images with a fault, in %", notes=()),
            replace(means, title="Anomalies"),
        ],
        groups=_by_group(result, findings),
        notes=list(result.notes()),
        steps=list(result.next_steps()),
        plot=plot_reliability(result),
        too_few=result.too_few_to_calibrate,
    )


@cache
def _environment() -> Environment:
    return score_page("uncanny.eval.trust", (), {"ends": interval_words})


def _by_group(result: TrustResult, findings: Table) -> list[Table]:
    """The findings in a table a group."""
    groups: dict[str, list[int]] = {}
    for place, row in enumerate(result.finding_rows()):
        groups.setdefault(str(row["group"]), []).append(place)
    del groups["all"]
    return [
        replace(
            findings,
            title=f"By {group}, in %",
            rows=tuple(findings.rows[place] for place in places),
            notes=(),
        )
        for group, places in groups.items()
    ]


def plot_reliability(result: TrustResult) -> Markup:
    """The share that is right against what is said, as stated and calibrated; empty without findings."""
    if result.calibration_error is None:
        return Markup("")
    panels: list[Panel] = [
        (f"As stated: error {result.calibration_error:.2f}", "confidence of the model", "a1", result.bins)
    ]
    if result.calibration is not None:
        head = f"Calibrated: error {result.calibration.error_after:.2f}"
        panels.append((head, "calibrated probability", "a0", result.calibrated_bins))
    words = "; ".join(
        f"{head}: " + ", ".join(_bin_words(each) for each in bins if each.mean is not None)
        for head, _, _, bins in panels
    )
    many = len(panels)
    return plot_twice(
        partial(_draw_reliability, panels),
        (min(WIDE, many * (_SIDE + _LEFT + 16)), _TOP + _SIDE + _BELOW),
        (NARROW, many * (_TOP + _NARROW_SIDE + _BELOW)),
        key="reliability",
        title="Share of findings that people accepted, by confidence and by calibrated probability",
        words=words,
    )


def _bin_words(each: ConfidenceBin) -> str:
    return f"{each.mean or 0:.2f} is right in {figure_words(each.right)}"


def _draw_reliability(panels: Sequence[Panel], figure: Figure) -> Mapping[str, str]:
    stacked = figure.get_size_inches()[0] * figure.dpi <= NARROW
    side = _NARROW_SIDE if stacked else _SIDE
    tips: dict[str, str] = {}
    for number, (head, across, ink, bins) in enumerate(panels):
        left = _LEFT if stacked else _LEFT + number * (side + _LEFT + 16)
        top = _TOP + number * (_TOP + side + _BELOW) if stacked else _TOP
        axes = bare_axes(pixel_axes(figure, left, top, side, side), grid="both")
        axes.set_xlim(0, 1)
        axes.set_ylim(0, 1)
        axes.set_xlabel(across)
        axes.set_ylabel("share that is right")
        axes.set_title(head, loc="left")
        axes.plot([0, 1], [0, 1], color=colour("edge"), linewidth=1.2, zorder=2)
        most = max(each.right.out_of for each in bins)
        for place, each in enumerate(bins):
            if each.mean is None or each.right.value is None:
                continue
            if each.right.interval:
                ends = each.right.interval
                axes.plot([each.mean] * 2, ends, color=colour(ink), linewidth=1.6, alpha=0.5, zorder=3)
            gid = f"bin-{number}-{place}"
            axes.plot(
                [each.mean],
                [each.right.value],
                "o",
                markersize=4 + 6 * sqrt(each.right.out_of / most),
                color=colour(ink),
                markeredgecolor=colour("panel"),
                zorder=4,
                clip_on=False,
                gid=gid,
            )
            tips[gid] = _bin_words(each)
    return tips
