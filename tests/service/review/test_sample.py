"""Images of a sample that people judge whole: the way through them, completions, and what the page says."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import orjson
import pytest
from starlette.testclient import TestClient

from tests.runs.e2e import uncanny_here
from tests.service.made_jobs import client_of as signed_in
from tests.service.made_jobs import ended_job
from tests.service.made_review import anomaly, log_of, make_run
from uncanny.errors import RecordError, ReviewConflictError, UsageError
from uncanny.records.sample import SAMPLE, Sample, SampledImage, write_sample
from uncanny.schema import Annotation, Anomaly
from uncanny.service.review.findings import FindingId, ImageEnd, Place
from uncanny.service.review.pages import ReviewSite, review_app
from uncanny.service.review.queue import Filters
from uncanny.service.review.run import ReviewRun
from uncanny.service.safety import Guard
from uncanny.service.service import Service

ADDRESS = "http://127.0.0.1:8000"
OURS = {"Origin": ADDRESS}
WHOLE = Filters(sample=True)


def draw(folder: Path, images: Sequence[int], **changes: object) -> None:
    """A sample of some images of a made run, by their places there."""
    lines = (folder / "annotations.jsonl").read_bytes().splitlines()
    records = [Annotation.model_validate_json(line) for line in lines]
    drawn = tuple(
        SampledImage(image=records[each].image, sha256=records[each].sha256, probability=0.5)
        for each in images
    )
    known: dict[str, Any] = {"design": "random", "seed": 0, "frame": len(lines), "images": drawn}
    write_sample(folder, Sample.model_validate(known | {"size": max(1, len(drawn))} | changes))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Four images: two findings, none, none that is sure, one that is not in the sample."""
    images = [[anomaly("one"), anomaly("two")], [], [anomaly("doubtful", confidence=0.2)], [anomaly("other")]]
    folder = make_run(tmp_path / "run", images)
    draw(folder, [1, 0, 2])
    return folder


@pytest.fixture
def run(folder: Path) -> ReviewRun:
    return ReviewRun.open(folder)


def client_of(run: ReviewRun, who: str = "ann", **site: Any) -> TestClient:
    app = Guard(review_app(ReviewSite(run, reviewer=who, **{"sample": True, **site})))
    return TestClient(app, base_url=ADDRESS, headers=OURS)


def place_of(page: str) -> str:
    found = re.search(r'data-finding="([^"]*)" data-(?:text|state)|data-finding="([0-9a-f]+-end)"', page)
    return (found[1] or found[2]) if found else ""


def mark(page: str, name: str) -> str:
    found = re.search(f'data-{name}="([^"]+)"', page)
    assert found is not None, page
    return found[1]


def press(client: TestClient, page: str, key: str) -> str:
    """What the page does on a key."""
    body = {"finding": place_of(page), "sample": "yes"}
    if key == "c":
        return client.post("/complete", json=body | {"state": mark(page, "state")}).text
    if key == "z":
        return client.post("/undo", json=body).text
    if key in "nkjp":
        move = {"n": "next-image", "p": "previous-image", "j": "next", "k": "previous"}[key]
        return client.get(f"/finding?sample=yes&at={body['finding']}&move={move}").text
    decision = {"a": "accept", "r": "reject", "u": "unsure"}[key]
    return client.post("/verdict", json=body | {"text": mark(page, "text"), "decision": decision}).text


def heading(page: str) -> str:
    found = re.search(r'<h2 id="name"[^>]*>(?:<bdi>)?([^<]*)', page)
    assert found is not None, page
    return found[1]


def judged(page: str) -> str:
    found = re.search(r"<b>(\d+)</b> of (\d+) images? judged", page)
    assert found is not None, page
    return f"{found[1]} of {found[2]}"


def walk(run: ReviewRun, keys: str, who: str = "ann") -> Place | None:
    """Judge and complete by keys; where that leads to."""
    at = run.walk(None, "next", WHOLE, who)
    for key in keys:
        if isinstance(at, ImageEnd):
            assert key == "c"
            run.complete(at, run.image_view(at, WHOLE, who).state, WHOLE, who)
            at = run.walk(at, "next-image", WHOLE, who)
        else:
            assert at is not None
            text = run.view(at, WHOLE, who).text
            run.judge(at, text, {"a": "accept", "r": "reject"}[key], who)  # type: ignore[arg-type]
            at = run.walk(at, "on", WHOLE, who)
    return at


def test_it_goes_image_by_image_in_the_order_of_the_sample(run: ReviewRun) -> None:
    with client_of(run) as client:
        page = client.get("/").text
        assert (heading(page), judged(page)) == ("Anything missed?", "0 of 3")
        assert "The model found nothing." in page
        page = press(client, page, "c")  # one key for an image without findings
        assert (heading(page), judged(page)) == ("one", "1 of 3")
        page = press(client, page, "a")
        assert heading(page) == "two"
        page = press(client, page, "r")
        assert (heading(page), judged(page)) == ("Anything missed?", "1 of 3")
        page = press(client, page, "c")  # three for two
        assert (heading(page), judged(page)) == ("Anything missed?", "2 of 3")
        assert "1 finding below confidence 0.5 is hidden and needs no verdict" in page
        page = press(client, page, "c")
        assert (heading(page), judged(page)) == ("All 3 images are judged", "3 of 3")
        assert "3 of 3 images are judged: 1 with a fault, 2 without one. You completed 3." in page
        assert "uncanny export" in page
    assert [line.type for line in log_of(run.folder)] == ["complete", None, None, "complete", "complete"]
    assert "other" not in page


def test_findings_that_are_shown_on_request_need_a_verdict_too(run: ReviewRun) -> None:
    assert walk(run, "caacc") is None
    shown = Filters(sample=True, doubtful=True)
    assert run.sample_progress(WHOLE, "ann").judged == 3
    assert run.sample_progress(shown, "ann").judged == 2
    at = run.walk(None, "next", shown, "ann")
    assert isinstance(at, FindingId)
    run.judge(at, run.view(at, shown, "ann").text, "reject", "ann")
    assert run.walk(at, "on", shown, "ann") is None  # it was completed before
    assert run.sample_progress(shown, "ann").judged == 3


def test_a_new_finding_or_text_opens_an_image_again_and_undo_closes_it(run: ReviewRun) -> None:
    walk(run, "caa")
    with client_of(run) as client:
        end = client.get("/").text
        page = press(client, end, "c")
        assert judged(page) == "2 of 3"
        added = {"finding": place_of(end), "name": "six fingers", "severity": 10, "sample": "yes"}
        page = client.post("/add", json=added | {"box": "1,1,9,9", "kind_of": "anatomy"}).text
        assert "Added, and accepted by you." in page
        assert (heading(page), judged(page)) == ("Anything missed?", "1 of 3")
        assert "six fingers" in page
        page = press(client, page, "z")
        assert (heading(page), judged(page)) == ("Anything missed?", "2 of 3")
        assert "six fingers" not in page
        assert "You have completed this image" in page
        first = FindingId(place_of(end).removesuffix("-end"), 0)
        texts = {"name": "better", "phenomenon": "p", "reasoning": "r", "severity": 3, "decision": "accept"}
        body = {"finding": str(first), "text": run.view(first, WHOLE, "ann").text, "sample": "yes"}
        page = client.post("/edit", json=body | texts).text
        assert (heading(page), judged(page)) == ("Anything missed?", "1 of 3")
        page = press(client, page, "c")
        assert judged(page) == "2 of 3"
        page = press(client, page, "z")
        assert (heading(page), judged(page), place_of(page)) == ("Anything missed?", "1 of 3", place_of(end))
    added_line = next(line for line in log_of(run.folder) if line.version is not None)
    assert added_line.version is not None
    assert (added_line.version.phenomenon, added_line.version.reasoning) == ("six fingers", "Cannot be.")


def test_a_missed_finding_needs_a_name_and_a_step_of_the_scale(run: ReviewRun) -> None:
    with client_of(run) as client:
        page = client.get("/").text
        for words in ("cannot be (10)", "hardly ever is (35)", "odd but possible (65)"):
            assert words in page
        added = {"finding": place_of(page), "name": "x", "sample": "yes"}
        for wrong in ({}, {"severity": 12}, {"severity": 10, "name": " "}):
            assert client.post("/add", json=added | wrong).status_code == 422
        assert client.post("/add", json=added | {"severity": 12, "reasoning": "r"}).status_code == 200


def test_a_completion_is_of_the_image_that_was_seen(run: ReviewRun) -> None:
    """Somebody adds a finding meanwhile, in another tab or by another name."""
    with client_of(run) as ann, client_of(run, "ben") as ben:
        page = ann.get("/").text
        added = {"finding": place_of(page), "name": "x", "severity": 35, "sample": "yes"}
        ben.post("/add", json=added)
        body = {"finding": place_of(page), "state": mark(page, "state"), "sample": "yes"}
        answer = ann.post("/complete", json=body)
        assert answer.status_code == 409
        assert "This image has changed meanwhile" in answer.text
        assert heading(answer.text) == "x"  # which ann has not judged
        page = press(ann, answer.text, "a")
        assert judged(press(ann, page, "c")) == "1 of 3"
        # The other tab of ann says so again: once is enough.
        assert judged(press(ann, page, "c")) == "1 of 3"
    assert sum(line.type == "complete" for line in log_of(run.folder)) == 1


def test_no_image_is_complete_before_its_findings_are_judged(run: ReviewRun) -> None:
    walk(run, "ca")
    end = ImageEnd(run.walk(None, "next", WHOLE, "ann").image)  # type: ignore[union-attr]
    view = run.image_view(end, WHOLE, "ann")
    assert view.left == 1
    with pytest.raises(ReviewConflictError, match="not judged all"):
        run.complete(end, view.state, WHOLE, "ann")
    with client_of(run) as client:
        page = client.get(f"/?at={end}").text
        assert heading(page) == "1 finding left to judge"
        assert 'data-do="complete"' not in page


def test_another_person_resumes_where_images_are_left(folder: Path) -> None:
    at = walk(ReviewRun.open(folder), "ca")
    assert isinstance(at, FindingId)
    run = ReviewRun.open(folder)
    assert run.walk(None, "next", WHOLE, "ann") == at
    ben = run.walk(None, "next", WHOLE, "ben")
    assert ben == FindingId(at.image, 0)  # of that image ben judges all findings
    assert walk(run, "aa", "ben") == ImageEnd(at.image)
    assert walk(run, "acc", "ann") is None
    assert run.sample_progress(WHOLE, "ben").left == 0
    # Ben is still at that image, and may say so, too.
    end = ImageEnd(at.image)
    assert run.walk(FindingId(at.image, 1), "on", WHOLE, "ben") == end
    run.complete(end, run.image_view(end, WHOLE, "ben").state, WHOLE, "ben")
    assert run.image_view(end, WHOLE, "ben").completed_by == ("ann", "ben")


def test_with_so_many_verdicts_per_finding_as_many_complete_an_image(folder: Path) -> None:
    run = ReviewRun.open(folder, per_finding=2)
    walk(run, "caacc")
    assert run.sample_progress(WHOLE, "ann").left == 0
    assert run.sample_progress(WHOLE, "ben").left == 3
    walk(run, "crrcc", "ben")
    assert run.sample_progress(WHOLE, "cid").left == 0


def test_images_that_are_not_what_was_drawn_are_named_and_passed_over(folder: Path) -> None:
    draw(folder, [1, 0])
    sample = orjson.loads((folder / SAMPLE).read_bytes())
    sample["images"][1]["sha256"] = "0" * 64
    sample["images"].append({"image": "images/gone.png", "probability": 0.5})
    (folder / SAMPLE).write_bytes(orjson.dumps(sample))
    with client_of(ReviewRun.open(folder)) as client:
        page = client.get("/").text
        assert judged(page) == "0 of 1"
        assert "2 images of the sample passed over" in page
        plain = page.replace("<wbr>", "")
        assert "<bdi>images/gone.png</bdi> is not in the run" in plain
        assert "<bdi>images/000.png</bdi> is another picture than the one that was drawn" in plain
        assert heading(press(client, page, "c")) == "The image of the sample is judged"


def test_a_larger_sample_is_taken_up(folder: Path) -> None:
    run = ReviewRun.open(folder)
    with client_of(run) as client:
        assert judged(client.get("/").text) == "0 of 3"
        draw(folder, [1, 0, 2, 3])
        assert judged(client.get("/").text) == "0 of 4"


def test_the_page_of_a_run_offers_its_sample(folder: Path) -> None:
    run = ReviewRun.open(folder)
    with client_of(run, sample=False) as client:
        page = client.get("/").text
        assert heading(page) in ("one", "two", "other")
        assert 'href="/?sample=yes">Judge the sample' in page
        sample = client.get("/?sample=yes")
        assert heading(sample.text) == "Anything missed?"
        moved = client.get("/finding?sample=yes&show=todo").headers["HX-Replace-Url"]
        assert moved.startswith("/?show=todo&sample=yes&at=")
        (folder / SAMPLE).unlink()
        assert "Judge the sample" not in client.get("/").text
        refused = client.get("/?sample=yes")
        assert (refused.status_code, "uncanny sample RUN" in refused.text) == (400, True)


def test_readers_see_the_sample_and_change_nothing(run: ReviewRun) -> None:
    walk(run, "c")
    with client_of(run, "rea", may_judge=lambda _: False) as client:
        page = client.get("/").text
        assert (heading(page), judged(page)) == ("Completed", "1 of 3")
        assert "Complete according to <bdi>ann</bdi>" in page
        assert "data-do=" not in page.partition('id="panel"')[2].partition("<dialog")[0]
        seen = []
        for _ in range(6):
            seen.append(heading(page))
            page = client.get(f"/finding?sample=yes&show=all&at={place_of(page)}&move=next").text
        assert seen[:5] == ["Completed", "one", "two", "Not completed yet", "Not completed yet"]
        assert "nothing further that way" in page


def test_the_way_back_leads_through_all_images(run: ReviewRun) -> None:
    walk(run, "caac")
    with client_of(run) as client:
        page = client.get("/").text
        headings = []
        for _ in range(5):
            page = press(client, page, "k")
            headings.append(heading(page))
        assert headings == ["Anything missed?", "two", "one", "Anything missed?", "Anything missed?"]
        assert "nothing further that way" in page
        assert heading(press(client, client.get("/").text, "p")) == "one"
        # A verdict given anew leads on to what is left.
        page = client.get(f"/?at={FindingId(run.walk(None, 'previous', WHOLE, 'ann').image, 1)}").text  # type: ignore[union-attr]
        assert judged(press(client, page, "r")) == "2 of 3"


def test_undo_of_a_completion_is_told_outside_the_sample_too(run: ReviewRun) -> None:
    walk(run, "c")
    with client_of(run, sample=False) as client:
        answer = client.post("/undo", json={"finding": ""})
        assert (answer.status_code, "Taken back." in answer.text) == (200, True)
    assert run.sample_progress(WHOLE, "ann").judged == 0


def test_only_images_of_the_sample_are_completed(run: ReviewRun) -> None:
    other = next(
        at for at in run.page(None, Filters("all"), None, 9) if "003" in run.view(at, None, None).record.image
    )
    end = ImageEnd(other.image)
    with pytest.raises(UsageError, match="not in the sample"):
        run.complete(end, run.image_view(end, Filters(), "ann").state, WHOLE, "ann")
    texts = Anomaly(name="n", phenomenon="p", reasoning="r", severity=10)
    run.add(other.image, texts, "ann")
    assert run.undo("ann") == end
    assert log_of(run.folder)[-1].undoes is not None


def test_an_invalid_sample_is_told_by_its_field_and_harms_no_other_review(folder: Path) -> None:
    (folder / SAMPLE).write_text('{"version": 1}')
    run = ReviewRun.open(folder)
    with pytest.raises(RecordError, match="design"):
        run.sample_progress(WHOLE, "ann")
    with client_of(run, sample=False) as client:
        assert client.get("/").status_code == 200


@pytest.mark.slow
def test_the_service_offers_the_sample_and_notes_who_completed_an_image(service: Service) -> None:
    job = ended_job(service, images=[[], [anomaly("one")]])
    address = f"/jobs/{job.id}/review"
    with signed_in(service, "reviewer") as client:
        assert "?sample=yes" not in client.get(f"{address}/").text
        draw(service.run_folder(job.id), [0])
        assert f'href="{address}/?sample=yes">Judge the sample' in client.get(f"{address}/").text
        page = client.get(f"{address}/?sample=yes").text
        assert (heading(page), judged(page)) == ("Anything missed?", "0 of 1")
        body = {"finding": place_of(page), "state": mark(page, "state"), "sample": "yes"}
        page = client.post(f"{address}/complete", json=body).text
        assert (heading(page), judged(page)) == ("The image of the sample is judged", "1 of 1")
        assert f"{job.id}/export" not in page  # which a reviewer may not
    with signed_in(service, "reader") as client:
        assert client.post(f"{address}/complete", json=body).status_code == 403
        assert heading(client.get(f"{address}/?sample=yes").text) == "Completed"
    noted = [(each.action, each.who) for each in service.audit.page().lines]
    assert noted.count(("complete_image", "reviewer")) == 1


def test_the_command_wants_a_sample(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", [[anomaly()]])
    done = uncanny_here("review", str(run), "--sample")
    assert (done.code, done.out) == (2, "")
    assert "has no sample of images to judge" in done.err
    assert "uncanny sample RUN" in done.err
