"""Pages of the service in a real browser, over jobs as they may be: hostile texts, states, themes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import orjson
import pytest
from playwright.sync_api import Browser, FilePayload, Route, ViewportSize, expect

from tests.eval.common.page_in_browser import needs_browser
from tests.service.made_jobs import ended_job, running_job, served_pages
from tests.service.made_review import anomaly
from tests.service.visitor import HOSTILE, PHONE, WIDE
from tests.service.web.person import Person
from uncanny.service.service import Service

pytestmark = needs_browser
EVIL_PAGE = """<!doctype html><title>evil</title><p id="said"></p>
<form action="/api/v1/jobs" method="post"></form>
<script>
const tried = {}, said = document.getElementById("said");
const show = () => { said.textContent = JSON.stringify(tried); };
const note = (what, outcome) => { tried[what] = outcome; show(); };
const attempt = (what, act) => {
  try { note(what, String(act())); } catch (error) { note(what, "refused"); }
};
attempt("cookie", () => document.cookie);
attempt("storage", () => localStorage.length);
attempt("parent", () => parent.document.title);
attempt("top", () => { top.location = "/login"; return "asked"; });
attempt("popup", () => String(open("/")));
fetch("/api/v1/jobs").then(() => note("fetch", "done"), () => note("fetch", "refused"));
const picture = new Image();
picture.onload = () => note("image", "done");
picture.onerror = () => note("image", "refused");
picture.src = "/static/icon.svg";
document.forms[0].submit();
</script>"""


@pytest.fixture
def made(tmp_path: Path) -> Iterator[Service]:
    with Service.open(tmp_path / "data") as service:
        yield service


def test_what_people_and_models_wrote_stays_text(browser: Browser, made: Service) -> None:
    hostile = anomaly(f"x{HOSTILE}"[:200], phenomenon=HOSTILE, reasoning=HOSTILE)
    job = ended_job(
        made,
        state="incomplete",
        name=f"job {HOSTILE}",
        images=[[hostile]],
        names=["<img src=x onerror=alert(1)>.png"],
    )
    (made.job_folder(job.id) / "stderr.log").write_text(HOSTILE)
    (made.job_folder(job.id) / "run" / "<img src=x onerror=alert(1)>.txt").write_text("")
    with served_pages(made) as address:
        ann = Person(browser, address)
        page = ann.page
        for path in ("/", f"/jobs/{job.id}", f"/new?from={job.id}", f"/jobs/{job.id}/export"):
            page.goto(address + path)
            expect(page.locator("body")).to_contain_text("job <script>") if "from" not in path else None
            assert "owned" not in page.title().replace(HOSTILE, "")
            assert page.locator("img[src=x]").count() == 0
        page.goto(f"{address}/jobs/{job.id}")
        page.locator("#files summary").click()
        expect(page.locator("#file-list")).to_contain_text("<img src=x onerror=alert(1)>.txt")
        page.locator("#log summary").click()
        expect(page.locator("#log-text")).to_contain_text("<script>document.title")
        page.keyboard.press("?")
        page.keyboard.press("Escape")
        page.goto(f"{address}/new/annotate")
        picture = FilePayload(name="<img src=x onerror=alert(1)>.png", mimeType="image/png", buffer=b"none")
        page.locator("#f-images [data-files]").set_input_files([picture])
        expect(page.locator(".refused")).to_contain_text("<img src=x")
        assert page.locator("img[src=x]").count() == 0
        assert ann.complaints == []


def test_a_report_can_do_nothing_to_the_service(browser: Browser, made: Service) -> None:
    job = ended_job(made, page=EVIL_PAGE)
    secret = made.tokens.add("ann", "operator")
    with served_pages(made) as address:
        ann = Person(browser, address)
        ann.sign_in(secret)
        page = ann.page
        posted: list[str] = []
        page.on("request", lambda request: posted.append(request.url) if request.method == "POST" else None)
        page.goto(f"{address}/jobs/{job.id}/report")
        said = page.frame_locator("#page").locator("#said")
        expect(said).to_contain_text("image")
        expect(said).to_contain_text("fetch")
        tried = orjson.loads(said.inner_text())
        refused = dict.fromkeys(("cookie", "storage", "parent", "fetch", "image"), "refused")
        assert tried | {"top": "", "popup": ""} == refused | {"top": "", "popup": ""}
        assert tried["top"] == "refused" or page.url.endswith("/report")
        assert tried["popup"] in ("null", "refused")
        assert posted == []
        # Opened by itself it can do no more: what keeps it in comes with it.
        source = page.locator("#page").get_attribute("src")
        policy = page.request.get(f"{address}{source}").headers["content-security-policy"]
        assert policy.startswith("sandbox allow-scripts; default-src 'none'; ")
        # Its ticket is for this job alone.
        other = ended_job(made, page="<p>other</p>")
        assert page.request.get(f"{address}{source}".replace(job.id, other.id)).status == 403


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [WIDE, PHONE], ids=["wide", "phone"])
def test_nothing_keeps_people_out(
    browser: Browser, made: Service, size: ViewportSize, scheme: Literal["light", "dark"]
) -> None:
    """axe-core finds nothing serious on any page, nothing scrolls sideways, every text has contrast."""
    images = [
        [anomaly("one"), anomaly("two " + "long " * 30, severity=50)],
        [],
        [anomaly("three", severity=90)],
    ]
    done = ended_job(
        made,
        name="A long name " * 8,
        images=images,
        page="<!doctype html><title>r</title><p>r</p>",
        total=3,
        done=3,
    )
    failed = ended_job(made, state="failed", error="Error: no key\nSet it.")
    incomplete = ended_job(
        made, "mcq", "incomplete", params={"items": "scenes", "model": "demo"}, total=9, done=9, failed=2
    )
    answers = made.job_folder(incomplete.id) / "run"
    answers.mkdir(parents=True)
    (answers / "answers.jsonl").write_bytes(
        b'{"id":"0001","question":"q2","raw":"B"}\n'
        b'{"id":"0001","question":"q3","raw":null,"error":"timed out"}\n'
    )
    busy = running_job(made, total=30, done=12, cost_usd=1.5, eta_s=80.0, rate=2.0, calls=70)
    made.jobs.submit("annotate", {"images": ["scenes"], "model": "demo"}, name=None, by="ann")
    secret = made.tokens.add("ann", "operator")
    with served_pages(made) as address:
        phone = size is PHONE
        ann = Person(
            browser,
            address,
            viewport=size,
            color_scheme=scheme,
            has_touch=phone,
            is_mobile=phone,
            bypass_csp=True,
        )
        page = ann.page
        page.goto(f"{address}/login")
        ann.check("login")
        ann.sign_in(secret)
        for path in (
            "/",
            "/?state=finished",
            "/?kind=realism",
            "/new",
            "/new/annotate",
            "/new/audit",
            "/new/export",
            f"/jobs/{done.id}",
            f"/jobs/{failed.id}",
            f"/jobs/{incomplete.id}",
            f"/jobs/{busy.id}",
            f"/jobs/{done.id}/report",
            f"/jobs/{done.id}/review/",
            f"/jobs/{done.id}/export",
            "/nothing",
        ):
            page.goto(address + path)
            for details in page.locator("main > section > details, .form details").all():
                details.locator("summary").first.click()
            page.wait_for_timeout(100)
            ann.check(path)
        page.goto(f"{address}/new/annotate")
        page.get_by_role("button", name="A folder of the server").click()
        page.wait_for_selector(".browser-list")
        ann.check("folders")
        page.goto(f"{address}/jobs/{busy.id}")
        page.get_by_role("button", name="Cancel").click()
        page.wait_for_selector("#confirm[open]")
        ann.check("a question")
        page.keyboard.press("Escape")
        if not phone:
            page.keyboard.press("?")
            page.wait_for_selector("#keys[open]")
            ann.check("keys")
        assert [text for text in ann.complaints if "404" not in text] == []


def test_a_list_is_kept_up_and_a_page_says_when_the_server_is_gone(browser: Browser, made: Service) -> None:
    job = running_job(made, name="Batch", total=4, done=1)
    with served_pages(made) as address:
        ann = Person(browser, address)
        page = ann.page
        page.goto(f"{address}/")
        page.keyboard.press("j")
        expect(page.locator("#rows")).to_contain_text("1 of 4")
        made.jobs.end(job, "finished", exit_code=0)
        expect(page.locator("#rows")).to_contain_text("finished")
        expect(page.locator(".open")).to_be_focused()
        page.goto(f"{address}/jobs/{job.id}")

        def gone(route: Route) -> None:
            route.abort()

        page.route("**/api/v1/**", gone)
        page.get_by_role("button", name="Delete").click()
        page.get_by_role("button", name="Delete it").click()
        expect(page.locator("#message")).to_contain_text("The server does not answer")
