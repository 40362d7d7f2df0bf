"""The end of a queue: totals, agreement, the way back, what comes next."""

from __future__ import annotations

import re
import shlex
from html import unescape
from pathlib import Path

import orjson
import pytest
from starlette.testclient import TestClient

from tests.runs.e2e import uncanny_here
from tests.service.made_review import anomaly, make_run
from uncanny.records.reviews import Decision, Rule
from uncanny.service.review.findings import FindingId
from uncanny.service.review.pages import ReviewSite, review_app
from uncanny.service.review.queue import Filters
from uncanny.service.review.run import ReviewRun
from uncanny.service.safety import Guard

ADDRESS = "http://127.0.0.1:8000"


def judge_as(run: ReviewRun, said: dict[str, str]) -> None:
    """By reviewer their verdicts on the findings in the order of the file, a letter each; - is none."""
    decisions: dict[str, Decision] = {"a": "accept", "r": "reject", "u": "unsure"}
    for at, place in zip(run.page(None, Filters("all", "file"), None, 100), range(100), strict=False):
        for name, letters in said.items():
            if letters[place] in decisions:
                run.judge(at, run.view(at, None, None).text, decisions[letters[place]], name)


@pytest.fixture
def four(tmp_path: Path) -> ReviewRun:
    """A run of four findings."""
    return ReviewRun.open(
        make_run(
            tmp_path / "four", [[*(anomaly(f"fault {n}") for n in range(3)), anomaly("fault 3", kind="text")]]
        )
    )


def totals(page: str) -> list[list[str]]:
    """The rows of the table of totals: what, of all reviewers, and one's own."""
    rows = re.findall(r"<tr[^>]*><th[^>]*>([^<]+)</th><td>([^<]+)</td><td>([^<]+)</td>", page)
    return [list(row) for row in rows]


def test_a_tie_is_not_counted_as_unsure(four: ReviewRun) -> None:
    judge_as(four, {"ann": "aaur", "ben": "aruu"})
    progress = four.progress(Filters("unsure"), "ann")
    assert (progress.accepted, progress.rejected, progress.unsure, progress.ties) == (1, 0, 1, 2)
    assert progress.judged == 4
    assert progress.left == len(four.page(None, Filters("unsure"), "ann", 9)) == 1
    assert progress.said == (2, 1, 1)
    with TestClient(Guard(review_app(ReviewSite(four, reviewer="ann"))), base_url=ADDRESS) as client:
        for page in (client.get("/agreement").text, client.get("/finding?show=rejected").text):
            assert totals(page) == [
                ["Accepted", "1", "2"],
                ["Rejected", "0", "1"],
                ["Unsure", "1", "1"],
                ["Ties", "2", "–"],
                ["Not judged", "0", "0"],
                ["All", "4", "4"],
            ]


def test_reviewers_who_have_to_agree_are_shown_what_they_disagree_on(four: ReviewRun) -> None:
    """Three verdicts a finding, as in SalArt-VQA; a fourth one would not decide anything."""
    strict = ReviewRun.open(four.folder, per_finding=3, rule=Rule("all", 3))
    judge_as(strict, {"ann": "aaua", "ben": "arua", "cem": "aau-"})
    progress = strict.progress(Filters("all"), "ann")
    assert (progress.accepted, progress.unsure, progress.ties, progress.judged) == (1, 1, 1, 3)
    assert [strict.progress(Filters(), name).left for name in ("ann", "dan")] == [0, 1]
    # By majority the disagreement is settled, and so is the fourth.
    assert four.progress(Filters("all"), "ann").accepted == 3
    with TestClient(Guard(review_app(ReviewSite(strict, reviewer="ann"))), base_url=ADDRESS) as client:
        page = client.get("/agreement").text
        assert ["Disagreed", "1", "–"] in totals(page)
        ratings = re.findall(r"<th scope=\"row\">([^<]+)</th><td>(\d+)</td></tr>", page)
        assert ratings == [
            *(("0", "0"), ("0 to 0.5", "0"), ("0.5", "1"), ("0.5 to 1", "1"), ("1", "2")),
            ("Mean of all: 0.79", "4"),
        ]
        assert "Look at 1 disagreement" in client.get("/finding?show=rejected").text
        assert "All have to agree" in client.get("/finding?show=ties").text
    command = f"uncanny export {shlex.quote(str(four.folder))} --agree all --least-verdicts 3 --to jsonl"
    with TestClient(Guard(review_app(ReviewSite(strict, reviewer="ann"))), base_url=ADDRESS) as client:
        assert command in unescape(client.get("/finding?show=rejected").text)


def test_the_way_back_leads_out_of_the_end(four: ReviewRun) -> None:
    ids = [str(at) for at in four.page(None, Filters("all", "file"), None, 9)]
    judge_as(four, {"ann": "a-ar"})
    four.judge(FindingId.read(ids[1]), four.view(FindingId.read(ids[1]), None, None).text, "unsure", "ann")
    with TestClient(Guard(review_app(ReviewSite(four, reviewer="ann"))), base_url=ADDRESS) as client:
        assert "data-finding" not in client.get("/finding?order=file").text
        for move in ("previous", "previous-image"):  # to what was judged last, not to the last of the file
            assert f'data-finding="{ids[1]}"' in client.get(f"/finding?order=file&at=&move={move}").text
        # Of what the queue leaves out, nothing comes back.
        text = f'data-finding="{ids[3]}"'
        assert text in client.get("/finding?order=file&kind=text&move=previous").text
        # And ahead again from there, to the end; but what a queue has is not left for it.
        assert "data-finding" not in client.get(f"/finding?order=file&at={ids[1]}&move=next").text
        only = client.get(f"/finding?show=all&kind=text&at={ids[3]}&move=next").text
        assert "There is nothing further that way." in only
    with TestClient(Guard(review_app(ReviewSite(four, reviewer="ben"))), base_url=ADDRESS) as client:
        assert f'data-finding="{ids[3]}"' in client.get("/finding?order=file&move=previous").text
        assert "data-finding" not in client.get("/finding?show=added&move=previous").text


def test_the_end_says_what_was_judged_what_next_and_how_to_export(four: ReviewRun) -> None:
    judge_as(four, {"ann": "aaur", "ben": "aruu"})
    with TestClient(Guard(review_app(ReviewSite(four, reviewer="ann"))), base_url=ADDRESS) as client:
        end = client.get("/").text
    assert "Nothing left here" in end
    assert "Krippendorff's α" in end
    assert "Reviewers: <bdi>ann</bdi>, <bdi>ben</bdi>." in end
    assert "Decide 2 ties" in end
    assert "Look at 1 unsure" in end
    command = re.search(r'<pre id="export"><code>uncanny ([^<]+)</code>', end)
    assert command is not None
    words = shlex.split(command[1])
    out = four.folder / "data"
    assert uncanny_here(*words[:-1], out).code == 0
    (record,) = [orjson.loads(line) for line in (out / "annotations.jsonl").open("rb")]
    assert [each["name"] for each in record["anomalies"]] == ["fault 0"]
