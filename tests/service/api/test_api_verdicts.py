"""Verdicts over HTTP: the review page's work for programs, in the name of the token."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from tests.service.api.conftest import API, Site
from tests.service.made_review import anomaly, log_of, make_run
from uncanny.service.answers import Job
from uncanny.service.review.runs import ReviewRuns

SCRIPT = "<script>alert(1)</script>"


@pytest.fixture
def job(site: Site) -> Job:
    return site.ended_job([[anomaly("one"), anomaly(SCRIPT)], [anomaly("three")]])


def findings(client: TestClient, job: Job, **query: Any) -> Any:
    return client.get(f"{API}/jobs/{job.id}/findings", params=query).json()


def judge(client: TestClient, job: Job, at: Any, **content: Any) -> Any:
    body = {"finding": at["id"], "text": at["text"]} | content
    return client.post(f"{API}/jobs/{job.id}/verdicts", json=body)


def test_three_people_judge_and_the_majority_stands(site: Site, job: Job) -> None:
    clients = [site.client(site.service.tokens.add(name, "reviewer")) for name in ("ann", "bob", "cid")]
    first = findings(clients[0], job)["findings"][0]
    for client, decision in zip(clients, ("accept", "reject", "accept"), strict=True):
        answer = judge(client, job, first, decision=decision)
        assert answer.status_code == 201, answer.text
    assert answer.json()["votes"] == {"ann": "accept", "bob": "reject", "cid": "accept"}
    assert (answer.json()["decision"], answer.json()["tied"]) == ("accept", False)
    figures = clients[0].get(f"{API}/jobs/{job.id}/agreement").json()
    assert (figures["judged_twice"], figures["accepted"], figures["reviewers"]) == (
        1,
        1,
        ["ann", "bob", "cid"],
    )
    log = clients[0].get(f"{API}/jobs/{job.id}/reviews?limit=2").json()
    assert [line["reviewer"] for line in log["records"]] == ["ann", "bob"]
    rest = clients[0].get(f"{API}/jobs/{job.id}/reviews", params={"after": log["next"]}).json()
    assert [line["reviewer"] for line in rest["records"]] == ["cid"]
    run = site.service.job_folder(job.id) / "run"
    assert [line.decision for line in log_of(run)] == ["accept", "reject", "accept"]


def test_findings_page_by_page_and_by_filter(client: TestClient, job: Job) -> None:
    page = findings(client, job, limit=2)
    assert [each["anomaly"]["name"] for each in page["findings"]] == ["one", SCRIPT]
    rest = findings(client, job, after=page["next"])
    assert ([each["anomaly"]["name"] for each in rest["findings"]], rest["next"]) == (["three"], None)
    judge(client, job, page["findings"][0], decision="reject")
    assert [each["anomaly"]["name"] for each in findings(client, job, show="todo")["findings"]] == [
        SCRIPT,
        "three",
    ]
    assert [each["anomaly"]["name"] for each in findings(client, job, show="rejected")["findings"]] == ["one"]
    # What was passed by a verdict is still a place to go on from.
    behind = findings(client, job, show="todo", after=page["findings"][0]["id"])
    assert [each["anomaly"]["name"] for each in behind["findings"]] == [SCRIPT, "three"]
    assert findings(client, job, kind="none")["findings"] == []


def test_a_text_is_rewritten_and_an_old_one_is_not_judged(client: TestClient, job: Job) -> None:
    first = findings(client, job)["findings"][0]
    version = {"name": "new", "phenomenon": "p", "reasoning": "r", "severity": 3}
    answer = judge(client, job, first, version=version, decision="accept").json()
    assert (answer["anomaly"]["name"], answer["edited_by"], answer["decision"]) == ("new", "local", "accept")
    stale = judge(client, job, first, decision="accept")
    assert (stale.status_code, stale.json()["error"]["code"]) == (409, "conflict")
    moved = judge(client, job, answer, box=[0, 0, 5, 5]).json()
    assert (moved["anomaly"]["box"], moved["decision"]) == ([0, 0, 5, 5], "accept")
    assert judge(client, job, answer, box=[0, 0, 5000, 5]).status_code == 422
    assert judge(client, job, answer, box=None).json()["anomaly"]["box"] is None


@pytest.mark.parametrize(
    "content",
    [
        {},
        {"decision": "maybe"},
        {"decision": "accept", "reviewer": "somebody else"},
        {"version": {"name": " ", "phenomenon": "p", "reasoning": "r", "severity": 3}},
        {"version": {"name": "a\0", "phenomenon": "p", "reasoning": "r", "severity": 3}},
        {"version": {"name": "a", "phenomenon": "p", "reasoning": "r", "severity": 10**30}},
        {"box": [5, 5, 1, 1]},
        {"box": [0, 0, 1e30, 5]},
        {"version": {"name": "a", "phenomenon": "p", "reasoning": "r", "severity": 3, "found_by": ["x"]}},
        {"decision": "accept", "finding": "../../x-0"},
        {"decision": "accept", "text": "0"},
    ],
)
def test_odd_verdicts_are_refused(site: Site, client: TestClient, job: Job, content: dict[str, Any]) -> None:
    first = findings(client, job)["findings"][0]
    assert judge(client, job, first, **content).status_code == 422
    assert log_of(site.service.job_folder(job.id) / "run") == []


def test_what_a_run_adds_is_seen_and_what_is_no_run_is_said(site: Site, client: TestClient, job: Job) -> None:
    assert len(findings(client, job)["findings"]) == 3
    make_run(
        site.service.job_folder(job.id) / "run", [[anomaly("one")], [anomaly("two")], [anomaly("three")], []]
    )
    assert [each["anomaly"]["name"] for each in findings(client, job)["findings"]] == ["one", "two", "three"]
    other = site.ended_job(kind="mcq")
    assert findings(client, other)["error"]["code"] == "no_findings"


def test_the_last_few_runs_are_kept(tmp_path: Path) -> None:
    runs = ReviewRuns(2)
    folders = [make_run(tmp_path / str(number), [[anomaly()]]) for number in range(3)]
    first = runs.get(folders[0])
    assert runs.get(folders[0]) is first
    for folder in folders:
        runs.get(folder)
    assert runs.get(folders[0]) is not first
