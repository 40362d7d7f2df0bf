"""A model that is known to be wrong, and a reviewer at the real page: what then holds of all images."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from playwright.sync_api import Browser

import uncanny
from tests.eval.common.page_in_browser import needs_browser
from tests.eval.trust.judged_runs import biased, judge, true_figures
from tests.service.made_review import make_run, served
from tests.service.review.reviewer import Reviewer
from uncanny.eval.trust.score import TrustResult
from uncanny.records.reviews import ReviewLog
from uncanny.schema import Annotation, Anomaly

pytestmark = needs_browser

Truth = Mapping[str, Sequence[Anomaly]]


def judge_image(ann: Reviewer, truth: Truth) -> None:
    """From the first finding of an image to the next image: one key a finding, one at its end."""
    seen = set()
    while ann.heading != "Anything missed?":
        name = ann.heading
        seen.add(name)
        ann.press("a" if name.startswith("true") else "r")
    image = ann.page.locator("#panel .where").inner_text()
    for missed in next(found for name, found in truth.items() if name in image):
        if missed.name in seen:
            continue
        ann.page.keyboard.press("m")
        ann.page.wait_for_selector("#box-tools:visible")
        ann.page.keyboard.press("Escape")  # without a box
        editor = ann.page.locator("#editor[open]")
        editor.get_by_label("Name").fill(missed.name)
        editor.get_by_label("Kind").select_option(missed.kind)
        editor.get_by_label(f"({missed.severity})").check()
        ann.page.keyboard.press("Control+Enter")
        ann.told("Added, and accepted by you.")
    ann.press("c")


def ends(result: TrustResult, name: str) -> tuple[float, float]:
    figure = result.figures[name].corrected
    assert figure.low is not None
    assert figure.high is not None
    return figure.low, figure.high


@pytest.mark.timeout(600)
def test_what_150_images_judged_at_the_page_say_holds_of_2000(browser: Browser, tmp_path: Path) -> None:
    """The model finds seven of ten faults, and makes one up in every second image."""
    records, truth = biased(2_000, seed=7)
    findings = [[each.model_dump() for each in record.anomalies] for record in records.values()]
    run = make_run(tmp_path / "run", findings, [*records], size=(32, 32))
    uncanny.sample(run, size=150)
    with served(run, "--sample") as address:
        ann = Reviewer(browser, address, "Ann")
        while not ann.heading.startswith("All 150 images"):
            judge_image(ann, truth)
        assert ann.complaints == []
    before = uncanny.trust(run)
    assert before.judged.design.n == 150
    model = uncanny.audit({"a": run}, uncorrected=True)["a"]
    for name, true in true_figures(truth).items():
        low, high = ends(before, name)
        assert low <= true <= high, name
        own = model.faults.visible if name == "visible" else getattr(model, name)
        assert own.interval is not None
        assert not own.interval[0] <= true <= own.interval[1], name
    # Another day the sample is extended; what was judged stays judged.
    lines = len([*ReviewLog.of_run(run).read()])
    uncanny.sample(run, size=300)
    assert uncanny.trust(run).judged.design.n == 150
    written = [
        Annotation.model_validate_json(line) for line in (run / "annotations.jsonl").read_bytes().splitlines()
    ]
    judge(
        run, {each.image: each for each in written}, {f"images/{name}": each for name, each in truth.items()}
    )
    assert len([*ReviewLog.of_run(run).read()]) > lines
    after = uncanny.trust(run)
    assert after.judged.design.n == 300
    for name, true in true_figures(truth).items():
        low, high = ends(after, name)
        assert low <= true <= high, name
        assert high - low < ends(before, name)[1] - ends(before, name)[0]
