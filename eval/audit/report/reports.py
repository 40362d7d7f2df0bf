"""A page for each generator: that of its run, or one that is written beside the page of the audit."""

from __future__ import annotations

import re
from pathlib import Path

from uncanny.annotation.report.page import write_report
from uncanny.eval.audit.score.result import GeneratorScore, Leaderboard
from uncanny.eval.common.pages.pictures import PicturesMode, relative_link
from uncanny.records.run_folder import RunFolder

FOLDER = "reports"
_UNSAFE = re.compile(r"[^\w.+-]+")


def generator_pages(
    leaderboard: Leaderboard, page: Path, *, missing: bool, pictures: PicturesMode = "link"
) -> dict[str, str]:
    """Addresses by generator, from `page`. With `missing`, pages that are not there are written.

    A page with embedded pictures is made to travel, and leads to none but those that are written beside it.
    Annotations in memory have none. Raises OSError where one cannot be written, and RecordError for records
    that were damaged since they were scored.
    """
    addresses = {}
    for number, name in enumerate(leaderboard.ranked, 1):
        score = leaderboard.generators[name]
        own = _own_page(score) if pictures == "link" else None
        if own is None and missing and score.source is not None:
            own = page.parent / FOLDER / f"{number:02}-{_UNSAFE.sub('-', name)[:60]}.html"
            write_report(score.source, out=own, pictures=pictures)
        if own is not None:
            addresses[name] = relative_link(page, own, suffixes=(".html",)) or ""
    return {name: address for name, address in addresses.items() if address}


def _own_page(score: GeneratorScore) -> Path | None:
    if score.source is None or score.kind != "run":
        return None
    page = RunFolder(score.source).report
    return page if page.is_file() else None
