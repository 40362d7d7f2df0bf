"""Two people review one run of a running service at the same time, each in a Chromium of their own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import httpx
from playwright.sync_api import Browser

from tests.eval.common.page_in_browser import CHROMIUM, needs_browser
from tests.service.made_jobs import ended_job
from tests.service.made_review import anomaly, log_of
from tests.service.review.reviewer import Reviewer
from tests.service.running import serving
from uncanny.records.reviews import ReviewLog, review_image
from uncanny.schema import Annotation
from uncanny.service.service import Service

pytestmark = needs_browser

IMAGES: Final = 5
# What each says of the ten findings at first, in the order of the file.
ANN: Final = "aaraurauar"
BEN: Final = "arraaaruaa"
WORDS: Final = {"a": "accepted", "r": "rejected", "u": "unsure"}
DECISIONS: Final = {"a": "accept", "r": "reject", "u": "unsure"}


@contextmanager
def another_chromium(browser: Browser) -> Iterator[Browser]:
    """A process of its own, with nothing in common with the one of the fixture."""
    chromium = browser.browser_type.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
    try:
        yield chromium
    finally:
        chromium.close()


def votes_of(run: Path) -> dict[str, dict[str, str]]:
    """By the name of a finding who says what of it as it is called now."""
    reviews = ReviewLog.of_run(run).by_image()
    return {
        each.anomaly.name: dict(each.votes)
        for line in (run / "annotations.jsonl").read_bytes().splitlines()
        for record in [Annotation.model_validate_json(line)]
        for each in review_image(record, reviews.get(record.image, ())).anomalies
    }


def both(ann: Reviewer, ann_key: str, ben: Reviewer, ben_key: str) -> None:
    """A key of each, the second pressed before the first is answered, and the findings they lead to."""
    before = ann.finding, ben.finding
    ann.page.keyboard.press(ann_key)
    ben.page.keyboard.press(ben_key)
    ann.arrive(before[0])
    ben.arrive(before[1])


def write(who: Reviewer, name: str, **others: str) -> None:
    """Fill the editor, which is open or opens now."""
    who.page.wait_for_selector("#editor[open]")
    for field, text in {"name": name, **others}.items():
        who.page.locator(f"#editor [name={field}]").fill(text)


def open_missed(who: Reviewer, name: str) -> None:
    """Write a finding without a box, and leave it in the editor."""
    who.page.keyboard.press("m")
    who.page.wait_for_selector("#box-tools:not([hidden])")
    who.page.keyboard.press("Escape")
    write(who, name, phenomenon="seen by a person", reasoning="it cannot be", severity="10")


def test_two_people_judge_edit_and_undo_one_run_at_once(browser: Browser, tmp_path: Path) -> None:
    data = tmp_path / "data"
    findings = [[anomaly(f"fault {image}.{place}") for place in range(2)] for image in range(IMAGES)]
    with Service.open(data) as service:
        job = ended_job(service, images=findings)
        tokens = {name: service.tokens.add(name, "reviewer") for name in ("ann", "ben")}
        run = service.run_folder(job.id)
    names = [f"fault {number // 2}.{number % 2}" for number in range(2 * IMAGES)]
    with (
        serving("serve", "--port", "0", "--data", str(data)) as origin,
        another_chromium(browser) as other,
    ):
        queue = f"{origin}/jobs/{job.id}/review/?order=file"
        ann = Reviewer(browser, queue, token=tokens["ann"])
        ben = Reviewer(other, queue, token=tokens["ben"])

        # All of it at once. Nobody is told what the other says before they have said it themselves.
        for name, ann_key, ben_key in zip(names, ANN, BEN, strict=True):
            assert (ann.heading, ben.heading) == (name, name)
            assert "ben:" not in ann.votes
            assert "ann:" not in ben.votes
            both(ann, ann_key, ben, ben_key)
        assert ann.page.locator(".progress").inner_text().startswith("10 of 10 judged by me")
        assert ben.page.locator(".progress").inner_text().startswith("10 of 10 judged by me")
        said = {
            name: {"ann": DECISIONS[a], "ben": DECISIONS[b]}
            for name, a, b in zip(names, ANN, BEN, strict=True)
        }
        assert votes_of(run) == said

        # Each sees what both say, where all is looked at.
        for who in (ann, ben):
            who.page.goto(f"{queue}&show=all")
            who.page.wait_for_selector("body[data-shown]")
        for number, name in enumerate(names):
            assert (ann.heading, ben.heading) == (name, name)
            a, b = WORDS[ANN[number]], WORDS[BEN[number]]
            tie = " It is a tie: one more verdict decides." if a != b else ""
            assert ann.votes == f"You: {a}. ben: {b}.{tie}"
            assert ben.votes == f"You: {b}. ann: {a}.{tie}"
            both(ann, "j", ben, "j")

        # Undo takes back one's own last word, whoever spoke last of all.
        ben.press("j")
        ben.press("j")
        ann.page.keyboard.press("z")
        ben.page.keyboard.press("z")
        ann.told("Taken back.")
        ben.told("Taken back.")
        assert (ann.heading, ben.heading) == (names[9], names[9])
        both(ann, "z", ben, "z")
        assert votes_of(run) == said | {names[8]: {}, names[9]: {}}
        both(ann, "r", ben, "a")
        both(ann, "a", ben, "a")
        said |= {names[8]: {"ann": "reject", "ben": "accept"}, names[9]: {"ann": "accept", "ben": "accept"}}
        assert votes_of(run) == said
        assert (ann.heading, ben.heading) == (names[0], names[0])

        # A text that changes under somebody's eyes is not judged unread.
        ann.page.keyboard.press("e")
        write(ann, "hand has six fingers")
        ann.press("Control+Enter")
        ben.stays("r", "The text has been changed meanwhile")
        assert ben.heading == "hand has six fingers"
        assert ben.votes == "1 other verdict is shown after yours."
        assert votes_of(run)["hand has six fingers"] == {"ann": "accept"}
        ben.press("r")
        ann.stays("z", "Someone else has judged or edited this finding since, so you cannot take it back")
        del said[names[0]]
        said["hand has six fingers"] = {"ann": "accept", "ben": "reject"}
        assert votes_of(run) == said

        # Two write about the same text at once: one is first, the other keeps what they typed.
        assert ben.heading == names[1]
        ann.page.goto(f"{queue}&show=all&at={ben.finding}")
        ann.page.wait_for_selector(f'body[data-shown="{ben.finding}"]')
        for who, text in ((ann, "as ann sees it"), (ben, "as ben sees it")):
            who.page.keyboard.press("e")
            write(who, text)
        here = ann.finding
        ann.page.keyboard.press("Control+Enter")
        ben.page.keyboard.press("Control+Enter")
        for who in (ann, ben):
            who.page.wait_for_selector("body:not(.busy)")
            who.page.wait_for_selector(
                f'#editor .wrong:has-text("changed meanwhile"), #panel:not([data-finding="{here}"])',
                state="attached",
            )
        second = ann if ann.page.locator("#editor").is_visible() else ben
        first, first_name, second_name = (ben, "ben", "ann") if second is ann else (ann, "ann", "ben")
        assert not first.page.locator("#editor").is_visible()
        assert second.heading == f"as {first_name} sees it"
        assert second.page.locator("#editor [name=name]").input_value() == f"as {second_name} sees it"
        second.press("Control+Enter")
        first.press("k")
        assert first.heading == f"as {second_name} sees it"
        assert f"edited by {second_name}" in first.page.locator("#panel").inner_text()
        first.press("u")
        del said[names[1]]
        said[f"as {second_name} sees it"] = {first_name: "unsure", second_name: "accept"}
        assert votes_of(run) == said

        # Both add to the same image at once, and judge what the other has added.
        assert ann.finding == ben.finding
        open_missed(ann, "missed by ann")
        open_missed(ben, "missed by ben")
        both(ann, "Control+Enter", ben, "Control+Enter")
        assert (ann.heading, ben.heading) == ("missed by ann", "missed by ben")
        said |= {"missed by ann": {"ann": "accept"}, "missed by ben": {"ben": "accept"}}
        assert votes_of(run) == said
        ann_s, ben_s = ann.finding, ben.finding
        for who, at in ((ann, ben_s), (ben, ann_s)):
            who.page.goto(f"{queue}&show=all&at={at}")
            who.page.wait_for_selector(f'body[data-shown="{at}"]')
        ann.press("a")
        # What somebody is looking at is taken back.
        ann.page.goto(f"{queue}&show=all")
        ann.page.wait_for_selector("body[data-shown]")
        ann.press("z")
        assert ann.heading == "missed by ben"
        ann.press("z")
        assert ann.heading == names[2]
        ben.page.keyboard.press("r")
        ben.told("This finding has been taken back meanwhile")
        ann.page.goto(f"{queue}&show=all&at={ben_s}")
        ann.page.wait_for_selector(f'body[data-shown="{ben_s}"]')
        ann.press("a")
        del said["missed by ann"]
        said["missed by ben"]["ann"] = "accept"
        assert votes_of(run) == said

        # Counted by hand: of 11 findings with two verdicts each, 6 are disputed. With 12 accept, 6 reject and
        # 4 unsure, α = 1 − 21 · 12 / (22² − 12² − 6² − 4²) = 1/8.
        disputed = sorted(name for name, each in said.items() if len(set(each.values())) > 1)
        assert len(disputed) == 6
        assert Counter(vote for each in said.values() for vote in each.values()) == {
            "accept": 12,
            "reject": 6,
            "unsure": 4,
        }
        for who in (ann, ben):
            who.page.locator("#open-agreement").click()
            who.page.wait_for_selector("#agreement[open] .alpha:has-text('0.12')")
            told = who.page.locator("#agreement-content").inner_text()
            assert "Over 11 findings that two or more have judged, 22 verdicts." in told
            assert "Reviewers: ann, ben." in told
            totals = who.page.locator("#agreement .totals tbody tr").all_inner_texts()
            assert [row.split("\t")[:2] for row in totals] == [
                ["Accepted", "3"],
                ["Rejected", "1"],
                ["Unsure", "1"],
                ["Ties", "6"],
                ["Not judged", "0"],
                ["All", "11"],
            ]
        agreement = httpx.get(
            f"{origin}/api/v1/jobs/{job.id}/agreement", headers={"Authorization": f"Bearer {tokens['ann']}"}
        ).json()
        assert (agreement["alpha"], agreement["judged_twice"]) == (1 / 8, 11)
        assert (agreement["judged"], agreement["unsure"], agreement["ties"]) == (11, 1, 6)
        assert [text for text in ann.complaints + ben.complaints if "409" not in text] == []
    # Each step stands under the name of whoever took it, in the log of the run as in that of the service.
    lines = Counter(line.reviewer for line in log_of(run))
    with Service.open(data) as service:
        noted = Counter(each.who for each in service.audit.page().lines if each.action != "log_in")
    assert lines == noted
    assert lines.keys() == {"ann", "ben"}
