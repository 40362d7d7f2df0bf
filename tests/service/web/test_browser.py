"""The pages of a running `uncanny serve` in a real browser, from an upload to an exported data set."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, Literal

import orjson
import pytest
from playwright.sync_api import Browser, FilePayload, Route, ViewportSize, expect

from tests.eval.common.page_in_browser import LEAST_CONTRAST, needs_browser
from tests.runs.e2e import serving_process
from tests.service.made_jobs import ended_job, running_job, served_pages
from tests.service.made_review import anomaly
from tests.service.running import make_token, serving
from tests.service.running import running as running_service
from tests.service.visitor import AXE, HOSTILE, PHONE, WIDE, Visitor
from uncanny.demo.scenes import DATA
from uncanny.service.service import Service

pytestmark = needs_browser
IMAGES = DATA / "images"
WAIT_MS = 60_000
expect.set_options(timeout=WAIT_MS)


class Person(Visitor):
    """Somebody who works with the service."""

    def __init__(self, browser: Browser, address: str, **context: Any) -> None:
        super().__init__(browser, wait_ms=WAIT_MS, **context)
        self.address = address

    def sign_in(self, secret: str) -> None:
        self.page.goto(f"{self.address}/login")
        self.page.get_by_label("Token").fill(secret)
        self.page.keyboard.press("Enter")
        self.page.wait_for_url(f"{self.address}/")

    def new(self, title: str) -> None:
        self.page.goto(f"{self.address}/")
        self.page.keyboard.press("n")
        self.page.get_by_role("link", name=title).click()

    def start(self) -> str:
        """The address of the job that is started."""
        before = self.page.url
        self.page.keyboard.press("Control+Enter")
        self.page.wait_for_url(re.compile("/jobs/job_[a-z2-7]{20}$"))
        assert self.page.url != before
        return self.page.url

    def drop(self, place: str, *files: Path) -> None:
        """Drag files and folders to a place of the page, and let them go there."""
        box = self.page.locator(place).bounding_box()
        assert box is not None
        session = self.page.context.new_cdp_session(self.page)
        for kind in ("dragEnter", "dragOver", "drop"):
            event = {
                "type": kind,
                "x": box["x"] + box["width"] / 2,
                "y": box["y"] + 8,
                "data": {"items": [], "files": [str(file) for file in files], "dragOperationsMask": 1},
            }
            session.send("Input.dispatchDragEvent", event)
        session.detach()

    def ends(self, state: str) -> None:
        expect(self.page.locator("#live")).to_have_attribute("data-state", state, timeout=WAIT_MS)


def running(folder: Path, *options: str, **environment: str) -> AbstractContextManager[str]:
    """`uncanny serve` as a user starts it; its address."""
    return serving("serve", "--port", "0", "--data", str(folder), *options, environment=environment)


@contextmanager
def made_up_model(latency_ms: int = 0) -> Iterator[str]:
    """A server of made-up answers, each of which takes so long; its address."""
    with serving_process("--latency-ms", str(latency_ms)) as server:
        yield server.url


def pictures(folder: Path, count: int) -> list[Path]:
    return sorted(folder.glob("*.*"))[:count]


def test_from_images_to_a_reviewed_and_exported_data_set(browser: Browser, tmp_path: Path) -> None:
    data = tmp_path / "data"
    no_image = tmp_path / "notes.png"
    no_image.write_text("not an image")
    with running(data) as address:
        ann = Person(browser, address)
        page = ann.page
        page.goto(f"{address}/")
        expect(page.get_by_role("heading", name="Nothing has been run yet")).to_be_visible()
        ann.new("Find anomalies")
        page.locator("#f-images [data-files]").set_input_files([*pictures(IMAGES, 6), no_image])
        expect(page.locator("#f-images [data-uploaded]")).to_contain_text("6 uploaded, 1 not taken")
        expect(page.locator(".refused")).to_contain_text("notes.png not an image")
        page.get_by_label("Model").fill("demo")
        page.get_by_label("Name of the job").fill("First look")
        expect(page.locator("#command")).to_have_text("uncanny annotate images/ -o RUN --model=demo")
        page.get_by_role("button", name="What will it cost?").click()
        expect(page.locator("#forecast-result")).to_contain_text("6, 6 to do")
        page.get_by_label("Name of the job").focus()
        job = ann.start()
        ann.ends("finished")
        expect(page.locator(".shot-card")).to_have_count(6)
        expect(page.locator("#cards")).to_contain_text("Waiter has three arms")
        expect(page.locator("#live")).to_contain_text("of 6")
        expect(page).to_have_title("finished · First look – uncanny")
        assert page.locator(".shot-card img").first.evaluate(
            "image => image.decode().then(() => image.naturalWidth)"
        )

        page.keyboard.press("o")
        report = page.frame_locator("#page")
        report.locator("button.shot").first.click()
        expect(report.locator("#viewer")).to_be_visible()
        full = report.locator("#viewer img").first
        assert "/" not in (full.get_attribute("src") or "").removeprefix("picture/")
        assert full.evaluate("image => image.decode().then(() => image.naturalWidth)") == 768
        page.keyboard.press("Escape")
        report.get_by_label("Sort by").select_option("most severe")
        expect(report.locator(".card h3").first).to_contain_text("d02-three-arms")
        page.get_by_role("link", name="First look").click()
        page.wait_for_url(job)

        page.keyboard.press("r")
        page.wait_for_selector("body[data-shown]")
        expect(page.locator("#bar h1")).to_contain_text("First look")
        for key in "aar":
            before = page.locator("#panel").get_attribute("data-finding")
            page.keyboard.press(key)
            page.wait_for_selector(f'#panel:not([data-finding="{before}"])')
            page.wait_for_selector("body:not(.busy)")
        expect(page.get_by_role("heading", name="Nothing left here")).to_be_visible()
        page.get_by_role("link", name="Back").click()
        page.wait_for_url(job)

        page.keyboard.press("e")
        page.locator("label.tick", has_text="coco").click()
        page.get_by_label("Name of the job").focus()
        ann.start()
        ann.ends("finished")
        with page.expect_download() as download:
            page.get_by_role("link", name="out/annotations.jsonl").click()
        records = [orjson.loads(line) for line in download.value.path().read_bytes().splitlines()]
        assert sum(len(record["anomalies"]) for record in records) == 2
        expect(page.get_by_role("link", name="First look")).to_be_visible()
        page.goto(f"{job}/export")
        expect(page.get_by_role("link", name="export jsonl, coco")).to_be_visible()

        page.goto(f"{address}/")
        page.keyboard.press("j")
        page.keyboard.press("j")
        expect(page.locator(".open").last).to_be_focused()
        page.keyboard.press("k")
        page.keyboard.press("Enter")
        page.wait_for_selector("#live")
        page.goto(job)
        page.get_by_role("button", name="Delete").click()
        page.get_by_role("button", name="Leave it").click()
        page.get_by_role("button", name="Delete").click()
        page.get_by_role("button", name="Delete it").click()
        page.wait_for_url(f"{address}/")
        expect(page.locator(".open")).to_have_count(1)
        assert ann.complaints == []
    lines = [path.read_text() for path in data.glob("jobs/*/run/reviews.jsonl")]
    assert lines == []


def test_one_is_cancelled_one_fails_and_both_say_what_to_do(browser: Browser, tmp_path: Path) -> None:
    with (
        made_up_model(60_000) as model,
        running(
            tmp_path / "data",
            *("--root", str(IMAGES)),
            OPENAI_COMPATIBLE_BASE_URL=f"{model}/v1",
            ANTHROPIC_API_KEY="",
        ) as address,
    ):
        ann = Person(browser, address)
        page = ann.page
        ann.new("Find anomalies")
        page.get_by_role("button", name="A folder of the server").click()
        page.get_by_role("button", name="Take this folder").click()
        page.get_by_label("Model").fill("openai-compatible/any")
        ann.start()
        ann.ends("running")
        page.get_by_role("button", name="Cancel").click()
        expect(page.locator("#confirm")).to_contain_text("what is done stays")
        page.get_by_role("button", name="Cancel the job").click()
        ann.ends("cancelled")
        expect(page.locator("#live")).to_contain_text("takes it up where it stopped")
        page.get_by_role("button", name="Go on").click()
        ann.ends("running")
        page.get_by_role("button", name="Cancel").click()
        page.get_by_role("button", name="Cancel the job").click()
        ann.ends("cancelled")

        page.get_by_role("link", name="New like this").click()
        expect(page.locator("#command")).to_contain_text("--model=openai-compatible/any")
        page.get_by_label("Model").fill("anthropic/claude")
        ann.start()
        ann.ends("failed")
        expect(page.locator("#live pre")).to_contain_text("ANTHROPIC_API_KEY")
        page.get_by_role("link", name="Jobs").first.click()
        page.get_by_label("cancelled").check(force=True)
        expect(page.locator(".open")).to_have_count(1)
        assert ann.complaints == []


def test_what_is_wrong_in_a_form_is_said_where_it_is(browser: Browser, tmp_path: Path) -> None:
    with running(tmp_path / "data") as address:
        ann = Person(browser, address)
        page = ann.page
        ann.new("Find anomalies")
        page.wait_for_load_state()
        page.keyboard.press("Control+Enter")  # with the focus nowhere
        expect(page.locator("#w-model")).to_have_text("This is needed.")
        expect(page.locator("#w-images")).to_have_text("This is needed.")
        expect(page.locator("#v-images")).to_be_focused()
        page.get_by_label("Model").fill("nobody/nothing")
        page.locator("#v-images").fill("/etc")
        page.get_by_label("Only the first inputs").fill("-1")
        expect(page.locator("#w-limit")).to_have_text("Must be 1 or more.")
        page.get_by_label("Only the first inputs").fill("")
        expect(page.locator("#w-limit")).to_be_empty()
        expect(page.locator("#w-images")).to_contain_text("No folder is allowed")
        expect(page.locator("#w-model")).to_contain_text("nobody")
        page.keyboard.press("Control+Enter")
        expect(page).to_have_url(f"{address}/new/annotate")
        # What the browser cannot read as a number has no value, and must not pass for no limit.
        ann.new("Locate artifacts")
        page.locator("#v-images").fill("scenes")
        page.get_by_label("Most it may cost").press_sequentially("1e")
        page.keyboard.press("Control+Enter")
        expect(page.locator("#w-max_cost_usd")).to_have_text("This is no number. Write it as 10 or 0.5.")
        expect(page.locator("#w-model")).to_have_text("This is needed.")
        page.get_by_label("Model").fill("demo")
        expect(page.locator("#w-model")).to_be_empty()
        page.keyboard.press("Control+Enter")
        expect(page.locator("#w-max_cost_usd")).not_to_be_empty()
        expect(page).to_have_url(f"{address}/new/artifacts")
        assert ann.complaints == []


def test_a_job_at_its_budget_goes_on_with_a_higher_one(browser: Browser, tmp_path: Path) -> None:
    with (
        made_up_model() as model,
        running(tmp_path / "data", OPENAI_BASE_URL=f"{model}/v1", OPENAI_API_KEY="any") as address,
    ):
        ann = Person(browser, address)
        page = ann.page
        ann.new("Would it fool a viewer")
        page.locator("#v-pairs").fill("scenes")
        page.get_by_label("Model").fill("openai/gpt-4o")
        page.get_by_label("Only the first inputs").fill("3")
        page.get_by_label("Most it may cost").fill("0.001")
        ann.start()
        ann.ends("over_budget")
        expect(page.locator("#limits input")).to_have_value("0.001")
        page.locator("#limits input").fill("0")
        page.get_by_role("button", name="Go on").click()
        expect(page.locator("#w-limits")).to_have_text("max_cost_usd: must be more than 0.")
        page.locator("#limits input").fill("5")
        page.get_by_role("button", name="Go on").click()
        ann.ends("finished")
        expect(page.locator("#live")).to_contain_text("of 3")
        expect(page.locator("#command")).to_contain_text("--max-cost-usd=5.0")
        assert [each for each in ann.complaints if "422" not in each] == []


def test_images_are_dropped_added_to_and_sent_again_where_the_server_was_away(
    browser: Browser, tmp_path: Path
) -> None:
    for name, images in (("one", pictures(IMAGES, 4)), ("two", pictures(IMAGES, 6)[2:])):
        (tmp_path / name).mkdir()
        for image in images:
            (tmp_path / name / image.name).write_bytes(image.read_bytes())
    (tmp_path / "one" / "again.png").write_bytes(pictures(IMAGES, 1)[0].read_bytes())
    (tmp_path / "one" / "notes.txt").write_text("not an image")
    with running_service(tmp_path / "data") as service:
        ann = Person(browser, service.address)
        page = ann.page
        ann.new("Find anomalies")
        status = page.locator("#f-images [data-uploaded]")
        ann.drop("#f-images [data-drop]", tmp_path / "one")
        expect(status).to_contain_text("4 uploaded, 1 more the same as others, 1 not taken")
        # Beside its place nothing is opened instead of the page.
        ann.drop("main h1", tmp_path / "one" / "again.png")
        service.kill()
        ann.drop("#f-images [data-drop]", tmp_path / "two")
        expect(status).to_contain_text("The server does not answer. Trying again…")
        service.start()
        expect(status).to_contain_text("6 uploaded, 2 more the same as others")
        expect(page.locator("#v-images")).to_have_value(re.compile("^upload:set_[a-z2-7]{20}$"))
        assert len(page.context.pages) == 1

        page.goto(f"{service.address}/new/mcq")
        items = tmp_path / "items.jsonl"
        items.write_text("{}\n")
        ann.drop("#f-items", items)
        expect(page.locator("#v-items")).to_have_value(re.compile("^upload:file_[a-z2-7]{20}$"))
        assert [each for each in ann.complaints if "ERR_" not in each] == []


def test_signing_in_gives_what_the_role_may(browser: Browser, tmp_path: Path) -> None:
    data = tmp_path / "data"
    secrets = {role: make_token(data, role, role) for role in ("reader", "operator")}
    with running(data) as address:
        reader = Person(browser, address)
        reader.page.goto(f"{address}/?state=running")
        expect(reader.page.get_by_role("heading", name="Sign in")).to_be_visible()
        reader.page.get_by_label("Token").fill("unc_wrong")
        reader.page.keyboard.press("Enter")
        expect(reader.page.locator("#login-wrong")).to_contain_text("no token")
        reader.page.get_by_label("Token").fill(secrets["reader"])
        reader.page.keyboard.press("Enter")
        reader.page.wait_for_url(f"{address}/?state=running")
        assert reader.page.get_by_role("link", name="New job").count() == 0
        reader.page.keyboard.press("n")
        reader.page.get_by_role("button", name="Sign out").click()
        reader.page.wait_for_url(f"{address}/login")
        # The refused token is the one complaint: browsers log each answer of that kind.
        assert [text for text in reader.complaints if "401" not in text] == []
        # Elsewhere than here nobody is sent after signing in.
        operator = Person(browser, address)
        operator.page.goto(f"{address}/login?next=//evil.example/")
        operator.page.get_by_label("Token").fill(secrets["operator"])
        operator.page.keyboard.press("Enter")
        operator.page.wait_for_url(f"{address}/")
        assert operator.page.get_by_role("link", name="New job").count() == 2


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

        def check(state: str) -> None:
            if not page.evaluate("() => 'axe' in window"):
                page.add_script_tag(path=AXE)
            found = page.evaluate("() => axe.run(document, {iframes: false})")["violations"]
            serious = [each for each in found if each["impact"] in ("serious", "critical")]
            assert [(each["id"], each["nodes"][0]["html"]) for each in serious] == [], state
            sideways = "() => document.documentElement.scrollWidth > document.documentElement.clientWidth"
            assert not page.evaluate(sideways), state
            least, words = page.evaluate(f"() => {LEAST_CONTRAST}")
            assert least >= 4.5, (state, words, least)

        page.goto(f"{address}/login")
        check("login")
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
            check(path)
        page.goto(f"{address}/new/annotate")
        page.get_by_role("button", name="A folder of the server").click()
        page.wait_for_selector(".browser-list")
        check("folders")
        page.goto(f"{address}/jobs/{busy.id}")
        page.get_by_role("button", name="Cancel").click()
        page.wait_for_selector("#confirm[open]")
        check("a question")
        page.keyboard.press("Escape")
        if not phone:
            page.keyboard.press("?")
            page.wait_for_selector("#keys[open]")
            check("keys")
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
