"""The pages of the service over HTTP: who sees what, what is escaped, what a role is offered."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import pytest
from PIL import Image
from starlette.testclient import TestClient

from tests.service.made_jobs import ADDRESS, client_of, ended_job, running_job
from tests.service.made_review import anomaly, log_of
from uncanny.models.presets import ALL
from uncanny.records.reviews import DECISIONS
from uncanny.service import service as service_module
from uncanny.service.api.app import guarded, service_app
from uncanny.service.api.auth import Rates
from uncanny.service.review.queue import Filters
from uncanny.service.review.run import ReviewRun
from uncanny.service.service import Service
from uncanny.service.web.pages import add_pages
from uncanny.service.web.views import STATES

SCRIPT = "<script>document.title='owned'</script><img src=x onerror=alert(1)>"


@pytest.fixture
def address() -> None:
    """On SQLite: what differs between databases has its tests in the store's."""
    return


@pytest.fixture
def local(service: Service) -> Iterator[TestClient]:
    with client_of(service) as client:
        yield client


class Elements(HTMLParser):
    """Every start tag of a page, with its attributes."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


IMAGES = {"images": ["scenes"], "model": "demo"}


def test_an_empty_list_says_what_to_do_next(local: TestClient) -> None:
    page = local.get("/")
    assert page.status_code == 200
    assert "Nothing has been run yet" in page.text
    assert 'href="/new"' in page.text
    assert "No such job" in local.get("/?state=running").text


def test_the_list_is_filtered_and_paged(service: Service, local: TestClient) -> None:
    for number in range(60):
        service.jobs.submit("annotate", {}, name=f"number {number}", by="ann")
    ended_job(service, name="done")  # takes the oldest one
    page = local.get("/")
    assert page.text.count('class="open"') == 50
    older = re.search(r'href="/(\?before=[^"]+)" id="older"', page.text)
    assert older is not None
    rest = local.get(f"/{older[1]}")
    assert rest.text.count('class="open"') == 11
    assert 'id="older"' not in rest.text
    assert local.get("/?state=finished").text.count('class="open"') == 1
    assert local.get("/?kind=mcq").text.count('class="open"') == 0
    assert local.get("/?state=nonsense&kind=nonsense").text.count('class="open"') == 50
    assert local.get("/?before=job_gone").status_code == 404
    rows = local.get("/?state=queued", headers={"X-Part": "rows"}).text
    assert rows.lstrip().startswith('<section id="rows"')


def test_a_job_shows_its_figures_findings_failures_and_files(service: Service, local: TestClient) -> None:
    images = [[anomaly("mild", severity=70), anomaly("worst", severity=4)], []]
    job = ended_job(
        service,
        state="incomplete",
        name="Batch 7",
        images=images,
        total=3,
        done=3,
        failed=1,
        calls=40,
        cost_usd=0.5,
    )
    records = service.job_folder(job.id) / "run" / "annotations.jsonl"
    failed = b'{"image":"c.png","status":"failed","errors":[{"kind":"timeout","message":"Took too long."}]}\n'
    records.write_bytes(records.read_bytes() + failed)
    (service.job_folder(job.id) / "stderr.log").write_text("3 images · demo\n")
    page = local.get(f"/jobs/{job.id}").text
    for words in (
        "Batch 7",
        "incomplete",
        "worst",
        "and 1 more",
        "nothing found",
        "$0.5000",
        "Took too long.",
    ):
        assert words in page
    assert "uncanny annotate scenes -o RUN --model=demo" in page
    assert 'id="a-review"' in page
    assert "Ask failed again" in page
    key = re.search(rf"/jobs/{job.id}/thumb/(\w+)", page)
    assert key is not None
    thumb = local.get(f"/jobs/{job.id}/thumb/{key[1]}")
    assert (thumb.status_code, thumb.headers["content-type"]) == (200, "image/webp")
    assert local.get(f"/jobs/{job.id}/picture/{key[1]}").headers["content-type"] == "image/png"
    assert "run/annotations.jsonl" in local.get(f"/jobs/{job.id}/files").text
    assert "3 images" in local.get(f"/jobs/{job.id}/log").text


def test_where_records_do_not_say_what_failed_the_page_says_where_to_look(
    service: Service, local: TestClient
) -> None:
    job = ended_job(service, "edits_measure", "incomplete", params={"pairs": "scenes"})
    page = local.get(f"/jobs/{job.id}").text
    assert "Its report, its files and its log say what." in page
    assert "Try again" in page
    job = ended_job(service, "compare", "incomplete", params={"runs": {"a": "scenes", "b": "scenes"}})
    page = local.get(f"/jobs/{job.id}").text
    assert "Some of the records it scores failed, and are in none of its figures." in page
    assert "Try again" in page


def test_an_answer_that_says_nothing_is_no_failure(service: Service, local: TestClient) -> None:
    job = ended_job(
        service, "realism", params={"pairs": "scenes", "model": "demo"}, total=1, done=1, failed=0
    )
    run = service.job_folder(job.id) / "run"
    run.mkdir(parents=True)
    (run / "verdicts.jsonl").write_text(
        '{"id":"r05","label":"undetermined","outcome":"undetermined",'
        '"errors":[{"kind":"unparseable","message":"no line starts with `Verdict:`"}]}\n'
    )
    page = local.get(f"/jobs/{job.id}").text
    assert "What failed" not in page
    assert "undetermined" in page


def test_nothing_can_be_reviewed_where_nothing_was_done(service: Service, local: TestClient) -> None:
    job = ended_job(service, state="over_budget", images=[], params=IMAGES | {"max_cost_usd": 0.5})
    page = local.get(f"/jobs/{job.id}").text
    assert "a-review" not in page
    assert "a-export" not in page
    assert '<form id="limits"' in page
    assert 'value="0.5"' in page


def test_new_records_are_given_as_a_piece_and_all_again_in_another_file(
    service: Service, local: TestClient
) -> None:
    job = ended_job(service, images=[[anomaly("one")], [anomaly("two")]])
    page = local.get(f"/jobs/{job.id}").text
    of = re.search(r'data-of="(\d+)"', page)
    assert of is not None
    assert 'data-next="2"' in page
    address = f"/jobs/{job.id}/cards"
    records = service.job_folder(job.id) / "run" / "annotations.jsonl"
    with records.open("ab") as file:
        file.write(b'{"image":"c.png","status":"ok","anomalies":[]}\n{"image":"half')
    piece = local.get(f"{address}?after=2&of={of[1]}").text
    assert piece.count("<li") == 1
    assert 'data-next="3"' in piece
    assert "data-anew" not in piece
    other = records.with_name("other")
    other.write_bytes(records.read_bytes())
    other.replace(records)
    piece = local.get(f"{address}?after=3&of={of[1]}").text
    assert piece.count("<li") == 3
    assert "data-anew" in piece
    assert local.get(f"{address}?before=1").text.count("<li") == 1


def test_a_picture_that_is_not_the_one_examined_is_not_shown(service: Service, local: TestClient) -> None:
    job = ended_job(service, images=[[anomaly()]])
    page = local.get(f"/jobs/{job.id}").text
    key = re.search(rf"/jobs/{job.id}/thumb/(\w+)", page)
    assert key is not None
    (service.job_folder(job.id) / "run" / "images" / "000.png").write_bytes(b"something else")
    assert local.get(f"/jobs/{job.id}/thumb/{key[1]}").headers["content-type"] == "image/svg+xml"
    assert local.get(f"/jobs/{job.id}/picture/{key[1]}").status_code == 404
    assert local.get(f"/jobs/{job.id}/picture/0000").status_code == 404


def test_what_people_and_models_wrote_is_never_markup(service: Service, local: TestClient) -> None:
    hostile = anomaly(f"x{SCRIPT}"[:200], phenomenon=SCRIPT)
    job = ended_job(
        service,
        state="failed",
        name=f"job {SCRIPT}",
        images=[[hostile]],
        names=["<img src=x onerror=alert(1)>.png"],
        error=SCRIPT,
        params={"images": [f"/{SCRIPT}"], "model": "demo"},
    )
    (service.job_folder(job.id) / "stderr.log").write_text(SCRIPT)
    (service.job_folder(job.id) / "run" / "<b>x.txt").write_text("")
    for path in (
        "/",
        f"/jobs/{job.id}",
        f"/jobs/{job.id}/log",
        f"/jobs/{job.id}/files",
        f"/new?from={job.id}",
    ):
        page = local.get(path)
        assert page.status_code == 200, path
        elements = Elements(page.text).found
        scripts = [attributes for tag, attributes in elements if tag == "script"]
        assert all((each.get("src") or "").startswith("/static/") for each in scripts), path
        assert not any(name.startswith("on") for _, attributes in elements for name in attributes), path
        assert not any("style" in attributes for _, attributes in elements), path
        assert not any(attributes.get("src") == "x" for _, attributes in elements), path
        assert not any(tag == "b" and path.endswith("files") for tag, _ in elements), path


@pytest.mark.parametrize("role", ["reader", "reviewer"])
def test_a_role_sees_nothing_that_would_be_refused(service: Service, role: str) -> None:
    job = ended_job(service, images=[[anomaly()]], page="<p>report</p>")
    running = running_job(service)
    with client_of(service, role) as client:  # type: ignore[arg-type]
        pages = [client.get(path).text for path in ("/", f"/jobs/{job.id}", f"/jobs/{running.id}")]
        for page in pages:
            assert 'href="/new' not in page
            assert "data-do=" not in page
            assert 'id="a-export"' not in page
        assert 'id="a-review"' in pages[1]
        assert 'id="a-report"' in pages[1]
        for path in ("/new", "/new/annotate", "/new/folder", f"/jobs/{job.id}/export"):
            answer = client.get(path, headers={"Accept": "text/html"})
            assert answer.status_code == 403
            assert "You may not do that" in answer.text
        assert client.post("/new/annotate/check", json={"values": []}).status_code == 403
        assert client.post("/new/annotate/forecast", json={"values": []}).status_code == 403
        review = client.get(f"/jobs/{job.id}/review/")
        assert review.status_code == 200
        for what in ("data-decision=", 'data-do="edit"', 'data-do="undo"', 'data-tool="box"', 'id="editor"'):
            assert (what in review.text) == (role == "reviewer"), what
        verdict = client.post(f"/jobs/{job.id}/review/verdict", json={})
        assert verdict.status_code == (422 if role == "reviewer" else 403)


def test_whoever_is_not_signed_in_gets_to_the_login_page_and_back(service: Service) -> None:
    job = ended_job(service, images=[[anomaly()]], page="<p>report</p>")
    secret = service.tokens.add("ann", "reviewer")
    html = {"Accept": "text/html"}
    with client_of(service) as client:
        for path in (
            "/",
            "/?state=running",
            f"/jobs/{job.id}",
            f"/jobs/{job.id}/report",
            f"/jobs/{job.id}/review/",
        ):
            answer = client.get(path, headers=html, follow_redirects=False)
            assert answer.status_code == 303, path
            assert answer.headers["location"].startswith("/login?next=")
        for path in (f"/jobs/{job.id}/live", f"/jobs/{job.id}/cards", f"/jobs/{job.id}/log"):
            assert client.get(path).status_code == 401
        login = client.get("/login")
        assert login.status_code == 200
        assert 'name="token"' in login.text
        assert client.post("/login", json={"token": "unc_wrong"}).status_code == 401
        assert client.post("/login", json={"token": secret}).status_code == 204
        assert "Batch" in client.get("/").text or job.id in client.get("/").text
        assert 'id="log-out"' in client.get("/").text
        assert client.post("/logout").status_code == 204
        assert client.get("/", headers=html, follow_redirects=False).status_code == 303


def test_pages_count_as_requests(service: Service) -> None:
    app = service_app(service, rates=Rates(reads=2))
    add_pages(app, service)
    secret = service.tokens.add("ann", "reader")
    headers = {"Authorization": f"Bearer {secret}"}
    with TestClient(guarded(app), ADDRESS, headers=headers) as client:
        assert [client.get("/").status_code for _ in range(3)] == [200, 200, 429]
        assert client.get("/api/v1/me").status_code == 429


def test_what_is_not_there_is_said_on_a_page(service: Service, local: TestClient) -> None:
    job = ended_job(service, "compare", params={"runs": {}})
    html = {"Accept": "text/html"}
    for path in (
        "/nothing",
        "/jobs/job_x",
        f"/jobs/{job.id}/report",
        f"/jobs/{job.id}/review/",
        f"/jobs/{job.id}/export",
        "/new/nothing",
        "/static/nothing",
    ):
        answer = local.get(path, headers=html)
        assert answer.status_code == 404, path
        assert "There is nothing here" in answer.text, path
        assert "<header" in answer.text
    assert local.get("/api/v1/nothing", headers=html).headers["content-type"] == "application/json"


def test_pages_may_load_only_what_is_here(local: TestClient) -> None:
    policy = local.get("/").headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    for found in re.findall(r'(?:src|href)="(/static/[^"]+)"', local.get("/").text):
        file = local.get(found)
        assert file.status_code == 200
        assert "immutable" in file.headers["cache-control"]


def test_a_review_is_the_run_s_own_under_the_name_of_whoever_is_signed_in(service: Service) -> None:
    job = ended_job(service, name="Batch 7", images=[[anomaly("one")]])
    with client_of(service, "reviewer") as client:
        page = client.get(f"/jobs/{job.id}/review/").text
        assert "Batch 7" in page
        assert f'id="home" href="../../{job.id}"' in page
        finding = re.search(r'data-finding="([^"]+)" data-text="([^"]+)"', page)
        assert finding is not None
        verdict = {"finding": finding[1], "text": finding[2], "decision": "reject"}
        assert client.post(f"/jobs/{job.id}/review/verdict", json=verdict).status_code == 200
        assert (
            client.post(f"/jobs/{job.id}/review/verdict", json=verdict | {"text": "0" * 64}).status_code
            == 409
        )
        assert client.post(f"/jobs/{job.id}/review/undo", json={"finding": finding[1]}).status_code == 200
        assert client.post(f"/jobs/{job.id}/review/reviewer", json={"name": "eve"}).status_code == 422
    line, _ = (service.job_folder(job.id) / "run" / "reviews.jsonl").read_text().splitlines()
    assert '"reviewer":"reviewer"' in line
    noted = [(each.action, each.who, each.subject) for each in service.audit.page().lines]
    assert noted[:2] == [("undo_verdict", "reviewer", job.id), ("judge", "reviewer", job.id)]
    assert [action for action, *_ in noted].count("judge") == 1


def test_pages_say_that_the_disk_is_full(local: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    words = "The disk of the service is full."
    assert words not in local.get("/").text
    monkeypatch.setattr(service_module, "LEAST_FREE", 2**62)
    assert words in local.get("/").text
    assert words in local.get("/new/detect").text


@pytest.mark.slow
def test_a_forecast_reads_no_image_outside_the_folders_that_are_allowed(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    for file in (root / "a.png", tmp_path / "secret.png"):
        Image.new("RGB", (64, 64)).save(file)
    (root / "link.png").symlink_to(tmp_path / "secret.png")
    with Service.open(tmp_path / "data", roots=[root]) as service, client_of(service) as client:
        values = [["images", str(root)], ["model", "openai/gpt-4o"]]
        answer = client.post("/new/annotate/forecast", json={"values": values})
    assert "2 to do, 1 unreadable" in answer.json()["text"]


def test_what_help_has_between_backticks_is_code(local: TestClient) -> None:
    page = local.get("/new/mcq").text
    assert "or <code>scenes</code>" in page
    assert "`" not in page


def test_a_review_names_images_as_they_were_sent(service: Service) -> None:
    sent = f"../../../images/set_{'a' * 20}/cats/one.png"
    job = ended_job(service, images=[[anomaly("one")]], names=["a.png"])
    records = service.job_folder(job.id) / "run" / "annotations.jsonl"
    records.write_bytes(records.read_bytes().replace(b'"images/a.png"', f'"{sent}"'.encode()))
    with client_of(service, "reviewer") as client:
        page = client.get(f"/jobs/{job.id}/review/").text
    assert re.sub("<wbr>", "", page).count("cats/one.png") >= 1
    assert sent not in re.sub("<wbr>", "", page)


def test_folders_are_looked_through_below_the_roots_only(tmp_path: Path) -> None:
    root, secret = tmp_path / "root", tmp_path / "secret"
    (root / "photos").mkdir(parents=True)
    secret.mkdir()
    (root / "photos" / "a.png").write_bytes(b"")
    (root / "items.jsonl").write_bytes(b"")
    (root / ".hidden").mkdir()
    (root / "out").symlink_to(secret)
    (root / "in").symlink_to(root / "photos")
    (root / "self").symlink_to(root / "self")
    with Service.open(tmp_path / "data", roots=[root]) as service, client_of(service) as client:
        page = client.get("/new/folder").text
        assert 'data-look="root/photos"' in page
        assert 'data-look="root/in"' in page
        assert 'data-take="root/items.jsonl"' in page
        assert str(tmp_path) not in page
        assert "out" not in re.findall(r'data-look="[^"]*/(\w+)"', page)
        assert ".hidden" not in page
        for path in ("root/photos", "root/in", f"{root}/photos"):
            inner = client.get("/new/folder", params={"path": path}).text
            assert "1 image here" in inner
            assert 'data-look="root"' in inner  # up, also from what a link leads to
        outside = (
            str(secret),
            f"{root}/../secret",
            f"{root}/out",
            "/etc",
            "root/../secret",
            "root/out",
            "\0",
            "root/items.jsonl",
        )
        for path in outside:
            assert client.get("/new/folder", params={"path": path}).status_code == 404, path


def test_a_reader_sees_all_findings_and_what_everybody_says(service: Service) -> None:
    job = ended_job(service, images=[[anomaly("one")], [anomaly("two")]])
    run = ReviewRun.open(service.run_folder(job.id))
    for at, decision in zip(run.page(None, Filters("all"), None, 9), DECISIONS, strict=False):
        run.judge(at, run.view(at, None, None).text, decision, "ann")
    with client_of(service, "reader") as client:
        page = client.get(f"/jobs/{job.id}/review/").text
        assert "<b>2</b> of 2 judged" in page
        assert '<bdi>ann</bdi>: <b class="d-accept">accepted</b>' in page
        assert "not judged by me" not in page
        end = client.get(f"/jobs/{job.id}/review/finding?show=ties").text
        assert "Nothing has been judged by two reviewers yet." in end
        assert 'data-do="undo"' not in end
        assert "An operator can export" in end
        assert [client.post(f"/jobs/{job.id}/review/{step}", json={}).status_code for step in (
            "verdict", "edit", "box", "add", "undo", "reviewer"
        )] == [403] * 6  # fmt: skip
    assert len(log_of(service.run_folder(job.id))) == 2


def test_the_list_says_why_a_job_failed_and_fills_no_bar_of_one_that_is_incomplete(
    service: Service, local: TestClient
) -> None:
    ended_job(service, state="failed", error="Error: OPENAI_API_KEY is not set\nSet it.")
    ended_job(service, state="incomplete", total=9, done=9, failed=2)
    ended_job(service, state="incomplete", total=7, done=7)
    ended_job(service, total=5, done=5, failed=0)
    page = local.get("/").text
    assert 'class="reason bad" dir="auto">OPENAI_API_KEY is not set<' in page
    assert re.findall(r'<progress max="(\d)" value="(\d)"', page) == [("5", "5"), ("9", "7")]


def test_a_form_proposes_the_models_that_can_be_asked_here(
    service: Service, local: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    for preset in ALL.values():
        for name in (preset.url_variable, *preset.key_variables):
            monkeypatch.delenv(name, raising=False)

    def proposed() -> list[str]:
        page = local.get("/new/annotate").text
        listed = re.search(r'<datalist id="l-model">(.*?)</datalist>', page)
        assert listed is not None
        return re.findall('value="([^"]+)"', listed[1])

    for model in ("openai/gpt-4o", "anthropic/claude", "demo"):
        ended_job(service, params={"images": ["scenes"], "model": model})
    assert proposed() == ["demo"]
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    monkeypatch.setenv("OPENAI_COMPATIBLE_BASE_URL", "http://127.0.0.1:1/v1")
    assert proposed() == ["demo", "openai/gpt-4o", "openai/", "openai-compatible/"]
    assert "sk-secret" not in local.get("/new/annotate").text


def test_each_state_has_a_shape_a_word_and_a_color(local: TestClient) -> None:
    page = local.get("/").text
    marks = re.findall(r'<svg class="mark"[^>]*aria-hidden="true"><path d="([^"]+)"/></svg>([a-z ]+)<', page)
    assert len({path for path, _ in marks}) == len(marks) == len(STATES)
    assert [word for _, word in marks] == list(STATES.values())


def test_a_form_has_its_options_folded_by_group_and_open_where_they_are_set(local: TestClient) -> None:
    page = local.get("/new/annotate", params={"max_side": "800"}).text
    folded = re.findall(r'<details( open|)><summary>([^<]+)</summary>\s*<div class="two">', page)
    groups = [group for _, group in folded]
    assert {"Agents", "Images as they are sent", "Limits", "Models", "Sampling"} <= set(groups)
    assert len(groups) == len(set(groups))
    assert [group for is_open, group in folded if is_open] == ["Images as they are sent"]
