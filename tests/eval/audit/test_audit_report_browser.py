"""The audit page in a real browser: it fits a phone, reads in the dark, asks nothing of the network.

Needs chromium and takes seconds. Without one it is skipped, unless UNCANNY_BROWSER=1 asks for it.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.eval.audit.annotation_sets import anomaly, record, written
from tests.eval.audit.made_leaderboards import made_audit, with_published, with_second_assessor
from tests.eval.audit.test_audit_report import FIFTEEN
from tests.eval.common.page_in_browser import browser, check_page, needs_browser
from uncanny.demo.scenes import scenes
from uncanny.eval.audit.report.page import write_audit_page
from uncanny.eval.audit.run import audit

pytestmark = needs_browser


@pytest.mark.parametrize("names", [FIFTEEN, ["a", "b"]], ids=["many", "few"])
async def test_page_fits_and_reads_in_both_schemes(names: list[str], tmp_path: Path) -> None:
    files = [scene.image_path for scene in scenes()[:3]]
    result = with_published(with_second_assessor(made_audit(names, pictures=files)))
    page = write_audit_page(result, tmp_path / "audit.html").resolve().as_uri()
    await check_page(page, tmp_path / "profile")


async def test_a_release_reads_on_a_phone_and_its_leaderboard_is_sorted(tmp_path: Path) -> None:
    def run(name: str, faults: int) -> Path:
        kinds = ("anatomy", "text", "light")
        records = [
            record(str(scenes()[n % 4].image_path), sha256=None, prompt=str(n))
            | {"image": f"{name}/{n}.png"}
            | {"anomalies": [anomaly(20, f"bad {kind}") | {"kind": kind} for kind in kinds[: n % faults]]}
            for n in range(24)
        ]
        return written(tmp_path / f"{name}.jsonl", records)

    names = ["ours/with-a-long-name-2.1-and-more-of-it", "theirs", "third", "fourth", "fifth"]
    sources = {name: run(f"g{n}", 2 + n % 3) for n, name in enumerate(names)}
    result = audit(
        sources, own=names[0], before={names[0]: run("before", 4)}, pair_by="prompt", resamples=200
    )
    page = result.report(tmp_path / "audit.html", title="Release 2").resolve().as_uri()
    await check_page(page, tmp_path / "profile")
    async with browser(tmp_path / "again") as tab:
        await tab.send("Page.navigate", url=page)
        await tab.until("document.querySelector('.board button.sort') !== null")
        heads = "[...document.querySelectorAll('.board thead button')]"
        press = f"{heads}.find(head => head.textContent.startsWith('Images')).click()"
        ties = (
            "[...document.querySelectorAll('.board .tie span')].map(tie => getComputedStyle(tie).visibility)"
        )
        assert set(await tab.js(ties)) == {"visible"}
        await tab.js(press)
        # What stands between neighbours of the ranking means nothing in another order.
        assert set(await tab.js(ties)) == {"hidden"}
        await tab.js(press)
        await tab.js(press)
        assert set(await tab.js(ties)) == {"visible"}
