"""The application over HTTP: what it answers to pages, and to everybody else."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient

from tests.service.made_review import anomaly, log_of, make_run
from uncanny.schema import Anomaly
from uncanny.service.review.findings import FindingId
from uncanny.service.review.pages import ReviewSite, review_app
from uncanny.service.review.queue import Filters
from uncanny.service.review.run import ReviewRun
from uncanny.service.safety import BODY_BYTES, Guard

ADDRESS = "http://127.0.0.1:8000"
OURS = {"Origin": ADDRESS}
SCRIPT = "<script>document.title='owned'</script><img src=x onerror=alert(1)>"


@pytest.fixture
def run(tmp_path: Path) -> ReviewRun:
    images = [[anomaly("one"), anomaly(f"two {SCRIPT}", phenomenon=SCRIPT)], [anomaly("three")]]
    return ReviewRun.open(make_run(tmp_path / "run", images))


@pytest.fixture
def client(run: ReviewRun) -> Iterator[TestClient]:
    app = Guard(review_app(ReviewSite(run, reviewer="ann")))
    with TestClient(app, base_url=ADDRESS, raise_server_exceptions=False) as each:
        yield each


def first(run: ReviewRun) -> FindingId:
    at = run.first(Filters("all", "file"), None)
    assert at is not None
    return at


def verdict(run: ReviewRun, **changes: object) -> dict[str, object]:
    at = first(run)
    text = run.view(at, Filters(), None).text
    return {
        "finding": str(at),
        "text": text,
        "decision": "accept",
        "show": "todo",
        "order": "file",
        **changes,
    }


def test_a_verdict_is_written_and_answered_with_the_next_finding(run: ReviewRun, client: TestClient) -> None:
    answer = client.post("/verdict", json=verdict(run), headers=OURS)
    assert answer.status_code == 200
    assert f"{first(run).image}-1" in answer.text
    assert answer.headers["HX-Replace-Url"].startswith("/?show=todo&order=file&at=")
    assert [line.decision for line in log_of(run.folder)] == ["accept"]


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:9999"},
        {"Sec-Fetch-Site": "cross-site", **OURS},
        {"Sec-Fetch-Site": "same-site", **OURS},
        {"Sec-Fetch-Site": "none", **OURS},
    ],
)
def test_another_site_changes_nothing(run: ReviewRun, client: TestClient, headers: dict[str, str]) -> None:
    for path in ("/verdict", "/edit", "/box", "/add", "/undo", "/reviewer"):
        assert client.post(path, json=verdict(run), headers=headers).status_code == 403
    assert log_of(run.folder) == []


def test_a_name_that_was_bound_to_this_machine_gets_nothing(client: TestClient) -> None:
    for host in ("evil.example", "evil.example:8000", "127.0.0.1.evil.example", "", "[::1].x"):
        assert client.get("/", headers={"Host": host}).status_code == 400
    for host in ("localhost:8000", "LOCALHOST", "127.0.0.1", "[::1]:8000"):
        assert client.get("/", headers={"Host": host}).status_code == 200


def test_every_answer_says_what_a_browser_may_do(run: ReviewRun, client: TestClient) -> None:
    image = first(run).image
    answers = [client.get(path) for path in ("/", "/nothing", "/static/review.js", f"/image/{image}")]
    answers.append(client.post("/verdict", json={}))
    for answer in answers:
        policy = answer.headers["Content-Security-Policy"]
        assert "script-src 'self'; style-src 'self';" in policy
        assert "unsafe" not in policy
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert answer.headers["X-Frame-Options"] == "DENY"
    assert answers[0].headers["Cache-Control"] == "no-store"
    assert "immutable" in answers[2].headers["Cache-Control"]


def test_what_a_model_wrote_is_text(run: ReviewRun, client: TestClient) -> None:
    at = FindingId(first(run).image, 1)
    page = client.get(f"/?show=all&at={at}").text
    assert "<script>document" not in page
    assert "<img src=x" not in page
    assert "&lt;script&gt;document" in page
    assert client.get(f'/?kind="><script>&agent={SCRIPT}&show={SCRIPT}').text.count("<script") == 3


ODD_BODIES = {
    "no JSON": (b"{", 400),
    "NaN": (b'{"finding": NaN}', 400),
    "infinity": (b'{"severity": Infinity}', 400),
    "a lone surrogate": (b'{"finding": "\\ud800"}', 400),
    "no UTF-8": (b'{"finding": "\xff"}', 400),
    "deep nesting": (b"[" * 20_000, 400),
    "a list": (b"[]", 422),
    "null": (b"null", 422),
    "nothing": (b"", 400),
    "unknown keys": (b'{"finding": "a-0", "more": 1}', 422),
    "a large body": (b'"' + b"a" * BODY_BYTES + b'"', 413),
}


@pytest.mark.parametrize("name", ODD_BODIES)
def test_odd_bodies_are_refused_in_words(run: ReviewRun, client: TestClient, name: str) -> None:
    body, status = ODD_BODIES[name]
    headers = OURS | {"Content-Type": "application/json"}
    for path in ("/verdict", "/edit", "/box", "/add", "/undo", "/reviewer"):
        answer = client.post(path, content=body, headers=headers)
        assert answer.status_code == status, (path, answer.text)
        assert answer.text.endswith(".")
        assert len(answer.text) < 600
    assert client.post("/verdict", data={"finding": "a-0"}, headers=OURS).status_code == 415
    assert log_of(run.folder) == []


@pytest.mark.parametrize(
    "changes",
    [
        {"name": ""},
        {"name": "a" * 201},
        {"name": "a\0b"},
        {"phenomenon": " "},
        {"reasoning": "a\0"},
        {"severity": 101},
        {"severity": 1e30},
        {"severity": 10**30},
        {"severity": "many"},
        {"kind_of": "nonsense"},
        {"box": "1,2,3"},
        {"box": "9,9,1,1"},
        {"box": "nan,0,1,1"},
        {"box": "inf,0,1,1"},
        {"box": "0,0,1e400,1"},
        {"box": "0,0,4001,1"},
        {"box": {"x": 1}},
        {"finding": "../../etc/passwd"},
        {"finding": "a-99999999999999999999"},
        {"finding": "0000000000000000-0"},
        {"text": "x"},
    ],
)
def test_what_no_finding_may_be_is_not_written(
    run: ReviewRun, client: TestClient, changes: dict[str, object]
) -> None:
    words = {"name": "n", "phenomenon": "p", "reasoning": "r", "severity": "20", "kind_of": "", "box": ""}
    known = {key: value for key, value in verdict(run).items() if key != "decision"}
    answer = client.post("/edit", json=known | words | changes, headers=OURS)
    assert answer.status_code in (400, 422), answer.text
    assert "Traceback" not in answer.text
    assert log_of(run.folder) == []


def test_an_edit_a_box_and_an_addition(run: ReviewRun, client: TestClient) -> None:
    words = {
        "name": "better",
        "phenomenon": "p",
        "reasoning": "r",
        "severity": "7",
        "kind_of": "count",
    }
    known = {key: value for key, value in verdict(run).items() if key != "decision"}
    answer = client.post("/edit", json=known | words | {"decision": ""}, headers=OURS)
    assert "Kept as a new version." in answer.text
    assert "edited by <bdi>ann</bdi>" in answer.text
    stale = client.post("/box", json=known | {"box": "1,2,30.6,40"}, headers=OURS)
    assert stale.status_code == 409
    assert "changed meanwhile" in stale.text
    assert 'id="panel"' in stale.text  # the finding as it is now
    fresh = known | {"text": run.view(first(run), Filters(), None).text}
    assert "Box kept." in client.post("/box", json=fresh | {"box": "1,2,30.6,40"}, headers=OURS).text
    assert run.view(first(run), Filters(), None).finding.anomaly.box == (1, 2, 31, 40)
    added = (
        {key: value for key, value in fresh.items() if key != "text"} | words | {"name": "missed", "box": ""}
    )
    assert "added by <bdi>ann</bdi>" in client.post("/add", json=added, headers=OURS).text
    undone = client.post("/undo", json={"finding": fresh["finding"], "show": "all"}, headers=OURS)
    assert "Taken back." in undone.text
    assert len(log_of(run.folder)) == 4


def test_a_picture_is_shown_only_if_it_is_the_one_that_was_judged(run: ReviewRun, client: TestClient) -> None:
    image = first(run).image
    for size in ("image", "preview"):
        answer = client.get(f"/{size}/{image}")
        assert (answer.status_code, answer.headers["Content-Type"]) == (200, "image/png")
        for key in (
            "nothing",
            "..%2f..%2frun.json",
            "%2e%2e/run.json",
            "images%2f000.png",
            "a%00b",
        ):
            assert client.get(f"/{size}/{key}").status_code == 404
    file = run.folder / "images" / "000.png"
    file.write_bytes((run.folder / "images" / "001.png").read_bytes())
    assert client.get(f"/image/{image}").status_code == 404


def test_static_files_are_those_of_the_page(client: TestClient) -> None:
    assert client.get("/static/vendor/htmx.min.js").status_code == 200
    for name in (
        "../pages.py",
        "vendor/../../pages.py",
        "vendor/LICENSES.txt",
        "%2e%2e/pages.py",
        "",
        "/etc/passwd",
    ):
        assert client.get(f"/static/{name}").status_code == 404


def test_a_run_of_somebody_else_brings_no_file_of_this_machine(tmp_path: Path) -> None:
    folder = make_run(tmp_path / "run", [[anomaly()]])
    secret = tmp_path / "secret.png"
    secret.write_bytes((folder / "images" / "000.png").read_bytes() + b"secret")
    record = (folder / "annotations.jsonl").read_text().replace("images/000.png", "../secret.png")
    (folder / "annotations.jsonl").write_text(record)
    run = ReviewRun.open(folder)
    with TestClient(Guard(review_app(ReviewSite(run, reviewer="ann"))), base_url=ADDRESS) as client:
        assert client.get(f"/image/{first(run).image}").status_code == 404


def test_who_judges_is_asked_and_remembered(run: ReviewRun) -> None:
    with TestClient(Guard(review_app(ReviewSite(run))), base_url=ADDRESS) as client:
        assert "Who judges?" in client.get("/").text
        assert client.post("/verdict", json=verdict(run), headers=OURS).status_code == 401
        for wrong in ("", "  ", "a" * 201, "a\0"):
            assert client.post("/reviewer", json={"name": wrong}, headers=OURS).status_code == 422
        answer = client.post("/reviewer", json={"name": "  Zoë \n Ünal "}, headers=OURS)
        assert "HttpOnly" in answer.headers["Set-Cookie"]
        assert "SameSite=strict" in answer.headers["Set-Cookie"]
        client.post("/verdict", json=verdict(run), headers=OURS)
        assert log_of(run.folder)[0].reviewer == "Zoë Ünal"
    with TestClient(Guard(review_app(ReviewSite(run, reviewer="ann"))), base_url=ADDRESS) as client:
        assert client.post("/reviewer", json={"name": "ben"}, headers=OURS).status_code == 422


def test_verdicts_of_others_are_shown_after_ones_own(run: ReviewRun, client: TestClient) -> None:
    at = first(run)
    run.judge(at, run.view(at, Filters(), None).text, "reject", "ben")
    before = client.get(f"/finding?show=all&at={at}").text
    assert "1 other verdict is shown after yours" in before
    assert "<bdi>ben</bdi>" not in before
    client.post("/verdict", json=verdict(run), headers=OURS)
    after = client.get(f"/finding?show=all&at={at}").text
    assert '<bdi>ben</bdi>: <b class="d-reject">rejected</b>' in after
    assert "It is a tie" in after
    assert "α <b>" in client.get("/agreement").text


def test_it_can_be_mounted_in_another_application(run: ReviewRun) -> None:
    service = FastAPI()
    service.mount(
        "/runs/a", review_app(ReviewSite(run, reviewer=lambda request: request.headers.get("x-user")))
    )
    with TestClient(Guard(service), base_url=ADDRESS, headers={"x-user": "cid"}) as client:
        page = client.get("/runs/a/").text
        assert 'src="/runs/a/static/review.js?v=' in page
        answer = client.post("/runs/a/verdict", json=verdict(run), headers=OURS)
        assert answer.headers["HX-Replace-Url"].startswith("/runs/a/?")
    assert log_of(run.folder)[0].reviewer == "cid"


def test_a_slow_body_is_given_up(run: ReviewRun, monkeypatch: pytest.MonkeyPatch) -> None:
    from tests.service.running import served_here
    from uncanny.service import safety

    monkeypatch.setattr(safety, "BODY_SECONDS", 0.2)
    with served_here(Guard(review_app(ReviewSite(run, reviewer="ann")))) as address:
        host = address.removeprefix("http://")
        head = f"POST /verdict HTTP/1.1\r\nHost: {host}\r\nOrigin: {address}\r\n"
        head += "Content-Type: application/json\r\nContent-Length: 50\r\n\r\n{"
        with socket.create_connection(("127.0.0.1", int(host.split(":")[1]))) as slow:
            slow.sendall(head.encode())
            assert slow.recv(100).startswith(b"HTTP/1.1 408")


def test_a_finding_that_was_taken_back_meanwhile_leads_on(run: ReviewRun, client: TestClient) -> None:
    """A colleague has added it, it is on my screen, and they undo it: the page goes on with what is there."""
    texts = {"name": "new", "phenomenon": "p", "reasoning": "r", "severity": 3}
    at = run.add(first(run).image, Anomaly.model_validate(texts), "ben")
    view = run.view(at, Filters(), "ann")
    assert run.undo("ben") is not None
    known = {"finding": str(at), "text": view.text}
    for path, body in (
        ("/verdict", known | {"decision": "accept"}),
        ("/box", known | {"box": "1,1,5,5"}),
        ("/edit", known | texts),
    ):
        answer = client.post(path, json=body, headers=OURS)
        assert answer.status_code == 409
        assert 'id="panel"' in answer.text
        assert "taken back" in answer.text
        assert str(at) not in answer.text
    for path in (f"/?at={at}", f"/finding?at={at}", f"/finding?at={at}&move=previous"):
        answer = client.get(path)
        assert (answer.status_code, 'id="panel"' in answer.text) == (200, True)
        assert f'data-finding="{at}"' not in answer.text
    assert client.post("/undo", json={"finding": str(at)}, headers=OURS).status_code == 200


def test_an_edited_text_leaves_the_box_where_others_have_moved_it(run: ReviewRun, client: TestClient) -> None:
    at = first(run)
    text = run.view(at, Filters(), "ann").text
    run.move_box(at, text, (1, 2, 30, 40), "ben")
    body = {"finding": str(at), "text": text, "phenomenon": "p", "reasoning": "r", "severity": 3}
    assert client.post("/edit", json=body | {"name": "better"}, headers=OURS).is_success
    anomaly = run.view(at, Filters(), "ann").finding.anomaly
    assert (anomaly.name, anomaly.box) == ("better", (1, 2, 30, 40))


def test_a_text_is_edited_also_where_the_model_has_drawn_beyond_the_picture(tmp_path: Path) -> None:
    run = ReviewRun.open(make_run(tmp_path / "run", [[anomaly(box=[300, 200, 500, 400])]]))
    with TestClient(
        Guard(review_app(ReviewSite(run, reviewer="ann"))), base_url=ADDRESS, headers=OURS
    ) as client:
        at = first(run)
        body = {"finding": str(at), "text": run.view(at, Filters(), "ann").text, "name": "better"}
        assert client.post(
            "/edit", json=body | {"phenomenon": "p", "reasoning": "r", "severity": 3}
        ).is_success


def test_files_that_go_meanwhile_are_told_in_words(run: ReviewRun, client: TestClient) -> None:
    file = run.folder / "annotations.jsonl"
    away = file.rename(run.folder / "away")
    answer = client.get("/")
    assert (answer.status_code, "annotations.jsonl cannot be read" in answer.text) == (400, True)
    away.rename(file)
    assert client.get("/").status_code == 200


def test_an_invalid_line_is_named_by_its_place_in_the_log_and_harms_no_other(
    run: ReviewRun, client: TestClient
) -> None:
    client.post("/verdict", json=verdict(run), headers=OURS)
    log = run.folder / "reviews.jsonl"
    good = log.read_bytes()
    log.write_bytes(good + b"\n" + good.replace(b'"ann"', b'"ben"') + b"no JSON\n")
    answer = client.get("/")
    assert (answer.status_code, "reviews.jsonl:4:" in answer.text) == (400, True)
    log.write_bytes(log.read_bytes().replace(b"no JSON\n", b"      \n"))
    assert client.get("/").status_code == 200
    assert run.view(first(run), Filters("all"), "ann").finding.votes == {"ann": "accept", "ben": "accept"}
