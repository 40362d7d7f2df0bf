"""The pages of a running `uncanny serve` in a real browser, from an upload to an exported data set."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import orjson
from playwright.sync_api import Browser, expect

from tests.eval.common.page_in_browser import needs_browser
from tests.runs.e2e import serving_process
from tests.service.running import make_token, serving
from tests.service.running import running as running_service
from tests.service.web.person import Person
from uncanny.demo.scenes import DATA

pytestmark = needs_browser
IMAGES = DATA / "images"


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
        expect(page.locator("#f-images .thumbs img")).to_have_count(6)
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
        with page.expect_popup() as opened:
            page.locator(".shot-card").first.locator("a").click()
        opened.value.wait_for_load_state()
        assert opened.value.evaluate("() => document.images[0].naturalWidth") == 768
        opened.value.close()

        page.keyboard.press("o")
        report = page.frame_locator("#page")
        report.locator("button.shot").first.click()
        expect(report.locator("#viewer")).to_be_visible()
        full = report.locator("#viewer img").first
        # The small picture of the page stands in its place until the full one is there.
        expect(full).to_have_attribute("src", re.compile(r"^picture/[^/]+$"))
        assert full.evaluate("image => image.decode().then(() => image.naturalWidth)") == 768
        page.keyboard.press("Escape")
        report.get_by_label("Sort by").select_option("worst first")
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
        page.locator("label.tick", has_text="COCO").click()
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
        expect(page.locator("#w-limit")).to_have_text("Must be at least 1.")
        page.get_by_label("Only the first inputs").fill("")
        expect(page.locator("#w-limit")).to_be_empty()
        expect(page.locator("#w-images")).to_contain_text("no folder is allowed")
        expect(page.locator("#w-model")).to_contain_text("nobody")
        page.keyboard.press("Control+Enter")
        expect(page).to_have_url(f"{address}/new/annotate")
        # What the browser cannot read as a number has no value, and must not pass for no limit.
        ann.new("Locate artifacts")
        page.locator("#v-images").fill("scenes")
        page.get_by_label("Maximum cost, in US dollars").press_sequentially("1e")
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
        page.get_by_label("Maximum cost, in US dollars").fill("0.001")
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
        expect(reader.page.locator("#login-wrong")).to_contain_text("not valid")
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
