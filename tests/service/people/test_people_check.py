"""MCQ items checked by reviewers: what is shown, what is kept, resuming, and that agreed items come out."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from tests.runs.e2e import uncanny_here
from uncanny import mcq
from uncanny.errors import ReviewConflictError, RunMismatchError
from uncanny.eval.mcq.data.items import ItemSet
from uncanny.eval.mcq.data.load import copy_scenes
from uncanny.records.reviews import Decision
from uncanny.service.people.answers import PeopleAnswers
from uncanny.service.people.checking import PeopleChecks
from uncanny.service.people.mcq_pages import mcq_check_app
from uncanny.service.safety import Guard

ADDRESS = "http://127.0.0.1:8000"
OURS = {"Origin": ADDRESS}


@pytest.fixture
def items(tmp_path: Path) -> ItemSet:
    return mcq.load(copy_scenes(tmp_path / "set"))[:4]


@pytest.fixture
def checks(items: ItemSet, tmp_path: Path) -> PeopleChecks:
    return PeopleChecks(items, tmp_path / "run")


@pytest.fixture
def client(checks: PeopleChecks) -> Iterator[TestClient]:
    app = Guard(mcq_check_app(checks, person="ann"))
    with TestClient(app, base_url=ADDRESS, raise_server_exceptions=False) as each:
        yield each


def check_all(checks: PeopleChecks, person: str, *decisions: Decision) -> None:
    for decision in decisions:
        view = checks.current(person)
        assert view is not None
        checks.check(person, view.key, decision, "why" if decision == "reject" else None, 1.234)


def test_items_that_all_three_agree_on_are_kept(items: ItemSet, checks: PeopleChecks, tmp_path: Path) -> None:
    check_all(checks, "ann", "accept", "accept", "reject", "accept")
    check_all(checks, "ben", "accept", "unsure", "accept", "accept")
    # Another process goes on with the same folder.
    again = PeopleChecks(items, checks.folder)
    check_all(again, "cem", "accept", "accept", "accept")
    assert (again.progress("cem"), again.current("ann")) == ((3, 4), None)
    kept = mcq.keep(items, checks.folder, out=tmp_path / "kept.jsonl")
    assert list(kept.statuses.values()) == ["agreed", "unsure", "disputed", "open"]
    assert kept.notes[items[2].id] == {"ann": "why"}
    assert [item.id for item in mcq.load(tmp_path / "kept.jsonl")] == [items[0].id]


def test_the_last_verdict_is_taken_back(checks: PeopleChecks) -> None:
    check_all(checks, "ann", "accept", "reject")
    view = checks.current("ann")
    checks.undo("ann")
    assert checks.progress("ann") == (1, 4)
    with pytest.raises(ReviewConflictError, match="only your last"):
        checks.undo("ann")
    assert view is not None
    with pytest.raises(ReviewConflictError, match="already checked"):
        checks.check("ann", view.key, "accept", None, None)


def test_a_changed_item_and_a_replaced_image_are_checked_again(items: ItemSet, checks: PeopleChecks) -> None:
    check_all(checks, "ann", "accept", "accept", "accept", "accept")
    first, second, *others = items
    assert first.q2 is not None
    options = first.q2.options | {"A": "Somewhere else"}
    changed = first.model_copy(update={"q2": first.q2.model_copy(update={"options": options})})
    items.image_path(second).write_bytes(items.image_path(others[0]).read_bytes())
    again = PeopleChecks(ItemSet((changed, second, *others), items.file), checks.folder)
    assert again.progress("ann") == (2, 4)


def test_a_replaced_picture_with_boxes_is_checked_again(items: ItemSet, tmp_path: Path) -> None:
    drawn = mcq.overlay(items, out=tmp_path / "drawn")
    checks = PeopleChecks(drawn, tmp_path / "run")
    check_all(checks, "ann", "accept", "accept", "accept", "accept")
    assert mcq.keep(drawn, checks.folder, least_verdicts=1).counts["agreed"] == 4
    first, second = drawn.overlay_path(drawn[0]), drawn.overlay_path(drawn[1])
    assert first is not None
    assert second is not None
    first.write_bytes(second.read_bytes())
    kept = mcq.keep(drawn, checks.folder, least_verdicts=1)
    assert (kept.stale, kept.counts["agreed"]) == (1, 3)
    assert PeopleChecks(drawn, checks.folder).progress("ann") == (3, 4)


def test_an_item_that_cannot_be_shown_is_passed_over(items: ItemSet, tmp_path: Path) -> None:
    items.image_path(items[0]).write_bytes(b"no image")
    checks = PeopleChecks(items, tmp_path / "run")
    check_all(checks, "ann", "accept", "accept", "accept")
    assert (checks.current("ann"), checks.progress("ann"), checks.unshown("ann")) == (None, (3, 3), 1)
    assert mcq.keep(items, checks.folder, least_verdicts=1).unshown == 1


def test_the_page_shows_right_answers_and_boxes(client: TestClient, checks: PeopleChecks) -> None:
    view = checks.current("ann")
    assert view is not None
    page = client.get("/").text
    item = checks.items[0]
    assert item.q2 is not None
    assert item.q4 is not None
    for text in (*item.q2.options.values(), *item.q4.options.values()):
        assert text in page
    assert f"right: {item.right('q3')}" in page
    assert client.get(f"/image/{view.key}/original").content != client.get(f"/image/{view.key}/boxes").content
    body = {"key": view.key, "decision": "accept", "note": "fine", "seconds": 2}
    assert client.post("/check", json={**body, "decision": "maybe"}, headers=OURS).status_code == 422
    assert client.post("/check", json={**body, "note": "x" * 3_000}, headers=OURS).status_code == 422
    assert "1</b> of 4 items checked" in client.post("/check", json=body, headers=OURS).text
    assert client.post("/check", json=body, headers=OURS).status_code == 409
    assert "Undone" in client.post("/undo", json={}, headers=OURS).text


def test_a_folder_of_answers_is_not_one_of_checks(items: ItemSet, checks: PeopleChecks) -> None:
    with pytest.raises(RunMismatchError, match="Pass another folder"):
        PeopleAnswers(items, checks.folder)
    done = uncanny_here("mcq", "people", items.file, "-o", checks.folder)
    assert "a run of `mcq review`, which `mcq people` cannot resume" in done.told
    no_page = uncanny_here("report", checks.folder).told
    assert f"Its records are in {checks.folder / 'item_reviews.jsonl'}" in no_page
