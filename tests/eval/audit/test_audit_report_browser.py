"""The audit page in a real browser: it fits a phone, reads in the dark, asks nothing of the network.

Needs chromium and takes seconds. Without one it is skipped, unless UNCANNY_BROWSER=1 asks for it.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.eval.audit.made_leaderboards import made_audit, with_published, with_second_assessor
from tests.eval.audit.test_audit_report import FIFTEEN
from tests.eval.common.page_in_browser import check_page, needs_browser
from uncanny.demo.scenes import scenes
from uncanny.eval.audit.report.page import write_audit_page

pytestmark = needs_browser


@pytest.mark.parametrize("names", [FIFTEEN, ["a", "b"]], ids=["many", "few"])
async def test_page_fits_and_reads_in_both_schemes(names: list[str], tmp_path: Path) -> None:
    files = [scene.image_path for scene in scenes()[:3]]
    result = with_published(with_second_assessor(made_audit(names, pictures=files)))
    page = write_audit_page(result, tmp_path / "audit.html").resolve().as_uri()
    await check_page(page, tmp_path / "profile")
