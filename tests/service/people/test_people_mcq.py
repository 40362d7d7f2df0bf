"""MCQ items asked of people: what is shown, what is kept, and that it is scored as a model's run is."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from urllib.request import urlopen

import orjson
import pytest
from starlette.testclient import TestClient

from tests.service.running import serving
from uncanny.errors import RunMismatchError, UsageError
from uncanny.eval.mcq.data.answers import read_answers
from uncanny.eval.mcq.data.items import Item, ItemSet
from uncanny.eval.mcq.data.load import copy_scenes, load
from uncanny.eval.mcq.data.texts import question_text, system_text
from uncanny.eval.mcq.run import run
from uncanny.eval.mcq.score.score import score
from uncanny.service.people.answers import PeopleAnswers
from uncanny.service.people.mcq_pages import mcq_people_app
from uncanny.service.people.session import apart
from uncanny.service.safety import Guard

ADDRESS = "http://127.0.0.1:8000"
OURS = {"Origin": ADDRESS}


@pytest.fixture
def items(tmp_path: Path) -> ItemSet:
    return load(copy_scenes(tmp_path / "set"))[:6]


@pytest.fixture
def answers(items: ItemSet, tmp_path: Path) -> PeopleAnswers:
    return PeopleAnswers(items, tmp_path / "run")


@pytest.fixture
def client(answers: PeopleAnswers) -> Iterator[TestClient]:
    app = Guard(mcq_people_app(answers, person="ann"))
    with TestClient(app, base_url=ADDRESS, raise_server_exceptions=False) as each:
        yield each


def answer_all(answers: PeopleAnswers, person: str, choices: dict[tuple[str, str], str]) -> None:
    """As `choices` say by item and question, else with no or E."""
    ids = {_key(item): item.id for item in answers.items}
    while (view := answers.current(person)) is not None:
        default = "no" if view.question == "q1" else "E"
        choice = choices.get((ids[view.key], view.question), default)
        answers.answer(person, view.key, view.question, choice, 1.5)


def _key(item: Item) -> str:
    return sha256(item.id.encode()).hexdigest()[:16]


def right(items: ItemSet) -> dict[tuple[str, str], str]:
    return {(item.id, q): item.right(q) or "" for item in items for q in item.questions()}


def test_a_person_is_asked_word_for_word_what_a_model_is(items: ItemSet, answers: PeopleAnswers) -> None:
    asked = []
    while (view := answers.current("ann")) is not None:
        item = next(item for item in items if _key(item) == view.key)
        asked.append((item.id, view.question))
        assert view.system == system_text(item)
        text = question_text(item, view.question).strip()
        assert "\n".join(line.text for line in view.lines) == text
        options = [line.choice for line in view.lines if line.choice]
        assert options == (list("ABCDE") if view.question in ("q2", "q4") else [])
        assert view.choices == (("yes", "no") if view.question == "q1" else tuple("ABCDE"))
        answers.answer("ann", view.key, view.question, view.choices[-1], None)
    assert asked == [(item.id, question) for item in items for question in item.questions()]


@pytest.mark.slow
def test_the_boxes_are_those_that_a_model_is_sent(
    items: ItemSet, answers: PeopleAnswers, tmp_path: Path
) -> None:
    run(items, model="demo", out=tmp_path / "model")
    answer_all(answers, "ann", {})
    sent, shown = (
        {file.name: file.read_bytes() for file in (folder / "overlays").iterdir()}
        for folder in (tmp_path / "model", answers.folder)
    )
    assert shown == sent
    by_model = {(a.id, a.question): a for a in read_answers([tmp_path / "model"])}
    for answer in read_answers([answers.folder]):
        theirs = by_model[answer.id, answer.question]
        assert (answer.sha256, answer.digest("asked")) == (theirs.sha256, theirs.digest("asked"))
        assert answer.digest("content") == theirs.digest("content")


@pytest.mark.slow
def test_people_are_scored_beside_models(items: ItemSet, answers: PeopleAnswers, tmp_path: Path) -> None:
    answer_all(answers, "ann", right(items))
    answer_all(answers, "ben", {})
    run(items, model="demo", out=tmp_path / "model")
    scores = score(items, [answers.folder, tmp_path / "model"], require_complete=True)
    assert list(scores) == ["human", "demo"]
    assert scores["human"].raters == 2
    artifact = scores["human"].splits["artifact"]
    # Ann has all of them right, Ben, who says no and E, none.
    assert (artifact.q1, artifact.all_q1_4) == (0.5, 0.5)
    assert scores["human"].splits["ref_pg"].all_q2_4 == 1.0
    alone = score(items, {"ann": [each for each in scores.answers if each.model == "human/ann"]})
    assert alone["ann"].splits["overall"].all_q1_4 == 1.0


def test_seconds_and_time_are_kept(answers: PeopleAnswers) -> None:
    view = answers.current("ann")
    assert view is not None
    answers.answer("ann", view.key, view.question, "yes", 2.3456)
    (line,) = (orjson.loads(each) for each in (answers.folder / "answers.jsonl").read_bytes().splitlines())
    assert (line["raw"], line["model"], line["seconds"], line["outcome"]) == (
        "yes",
        "human/ann",
        2.35,
        "answered",
    )
    assert line["at"].endswith("+00:00")


def test_a_set_that_wants_json_gets_json(items: ItemSet, tmp_path: Path) -> None:
    own = [
        item.model_copy(
            update={"answer_form": "json", "prompts": {q: f"{q}?\nA: a\nB: b" for q in item.questions()}}
        )
        for item in items[:1]
    ]
    answers = PeopleAnswers(ItemSet(tuple(own), items.file), tmp_path / "json")
    answer_all(answers, "ann", right(items[:1]))
    assert {a.raw for a in read_answers([answers.folder])} <= {
        f'{{"answer": "{c}"}}' for c in ("yes", "no", *"ABCDE")
    }
    assert score(own, answers.folder)["human"].splits["overall"].all_q1_4 == 1.0


def test_an_answer_is_taken_back_until_its_picture_is_left(answers: PeopleAnswers) -> None:
    for choice in ("yes", "A", "B", "C"):
        view = answers.current("ann")
        assert view is not None
        answers.answer("ann", view.key, view.question, choice, None)
    first = answers.current("ann")
    assert first is not None
    answers.undo("ann")  # Q4 of the first picture, on which nobody has gone on
    view = answers.current("ann")
    assert view is not None
    assert (view.question, view.key != first.key) == ("q4", True)
    answers.answer("ann", view.key, "q4", "D", None)
    answers.answer("ann", first.key, first.question, first.choices[0], None)
    answers.undo("ann")
    with pytest.raises(UsageError, match="has been left"):
        answers.undo("ann")
    raws = [a.raw for a in read_answers([answers.folder])]
    assert raws == ["yes", "A", "B", "D"]


def test_it_goes_on_after_a_restart_and_another_process(items: ItemSet, answers: PeopleAnswers) -> None:
    view = answers.current("ann")
    assert view is not None
    other = PeopleAnswers(items, answers.folder)
    other.answer("ann", view.key, view.question, "yes", None)
    with pytest.raises(UsageError, match="answered already"):
        answers.answer("ann", view.key, view.question, "no", None)
    assert answers.progress("ann") == (1, 23) == PeopleAnswers(items, answers.folder).progress("ann")
    assert other.current("ben") == view
    # A line that a kill left half-written is dropped by the next answer.
    with (answers.folder / "answers.jsonl").open("ab") as file:
        file.write(b'{"id": "c0')
    again = PeopleAnswers(items, answers.folder)
    answer_all(again, "ann", {})
    assert len(read_answers([answers.folder])) == 23


def test_a_changed_question_is_asked_again(items: ItemSet, answers: PeopleAnswers) -> None:
    answer_all(answers, "ann", {})
    first = items[0]
    assert first.q2 is not None
    changed = first.model_copy(
        update={"q2": first.q2.model_copy(update={"options": {**first.q2.options, "A": "another place"}})}
    )
    again = PeopleAnswers(ItemSet((changed, *items[1:]), items.file), answers.folder)
    view = again.current("ann")
    assert view is not None
    assert (view.key, view.question) == (_key(first), "q2")


def test_a_picture_that_cannot_be_read_costs_its_own_questions(items: ItemSet, tmp_path: Path) -> None:
    items.image_path(items[1]).write_bytes(b"no picture")
    answers = PeopleAnswers(items, tmp_path / "run")
    answer_all(answers, "ann", {})
    records = read_answers([answers.folder])
    failed = [a for a in records if a.outcome == "error"]
    assert {a.id for a in failed} == {items[1].id}
    assert all(a.error is not None and a.error.startswith("image: ") for a in failed)
    assert sum(score(items, answers.folder)["human"].missing.values()) == len(failed)
    # They are asked again where the picture is there again, and failures are not written twice.
    PeopleAnswers(items, tmp_path / "run").current("ann")
    assert len(read_answers([answers.folder])) == len(records)
    shutil.copy(items.image_path(items[0]), items.image_path(items[1]))
    again = PeopleAnswers(items, tmp_path / "run")
    answer_all(again, "ann", {})
    assert sum(score(items, answers.folder, require_complete=True)["human"].missing.values()) == 0


def test_folders_of_something_else_are_left_alone(items: ItemSet, tmp_path: Path) -> None:
    run(items[:1], model="demo", out=tmp_path / "model")
    with pytest.raises(RunMismatchError, match="cannot resume"):
        PeopleAnswers(items, tmp_path / "model")
    answer_all(PeopleAnswers(items[:1], tmp_path / "people"), "ann", {})
    with pytest.raises(RunMismatchError, match="cannot resume"):
        run(items[:1], model="demo", out=tmp_path / "people")
    (tmp_path / "odd").mkdir()
    (tmp_path / "odd" / "answers.jsonl").write_text("{}\n")
    with pytest.raises(UsageError, match="another kind"):
        PeopleAnswers(items, tmp_path / "odd")


def test_the_truth_is_nowhere_on_the_page(items: ItemSet, client: TestClient) -> None:
    while True:
        page = client.get("/").text
        for item in items:
            assert item.id not in page
            assert item.image not in page
            assert item.split not in page
        view = _fields(page)
        if view is None:
            break
        choice = "yes" if view["question"] == "q1" else "A"
        done = client.post("/answer", json={**view, "choice": choice, "seconds": 1}, headers=OURS)
        assert done.status_code == 200
    assert "That was the last one" in page


def _fields(page: str) -> dict[str, str] | None:
    match = re.search(r'data-key="(\w+)" data-question="(\w+)"', page)
    return None if match is None else {"key": match[1], "question": match[2]}


def test_requests_that_are_none_of_the_page_change_nothing(
    answers: PeopleAnswers, client: TestClient
) -> None:
    view = _fields(client.get("/").text)
    assert view is not None
    body = {**view, "choice": "yes"}
    assert client.post("/answer", json=body).status_code == 403
    assert client.post("/answer", json=body, headers={"Origin": "http://evil.example"}).status_code == 403
    for wrong in (
        {"choice": "F"},
        {"seconds": -1},
        {"more": 1},
        {"question": "q4_no_image"},
        {"seconds": 1e9},
    ):
        assert client.post("/answer", json=body | wrong, headers=OURS).status_code == 422
    assert client.post("/answer", json=body | {"choice": "A"}, headers=OURS).status_code == 400
    assert client.post("/answer", json=body | {"key": "0"}, headers=OURS).status_code == 409
    assert client.post("/undo", json={}, headers=OURS).status_code == 409
    assert client.get("/image/nothing/original").status_code == 404
    assert client.get("/image/../original").status_code == 404
    assert not (answers.folder / "answers.jsonl").exists()


def test_without_a_name_the_page_asks_and_shows_nothing(answers: PeopleAnswers) -> None:
    with TestClient(Guard(mcq_people_app(answers)), base_url=ADDRESS) as client:
        page = client.get("/").text
        assert "Who answers?" in page
        assert "data-stage" not in page
        view = answers.current("ann")
        assert view is not None
        assert client.get(f"/image/{view.key}/original").status_code == 401
        assert client.get("/panel").status_code == 401
        assert client.post("/person", json={"name": "Zoë 犬"}, headers=OURS).status_code == 200
        assert "Zoë 犬" in client.get("/").text
        body = {"key": view.key, "question": view.question, "choice": "yes"}
        assert client.post("/answer", json=body, headers=OURS).status_code == 200
    assert answers.progress("Zoë 犬")[0] == 1


def test_a_shuffled_order_is_a_persons_own_and_keeps_pairs_apart(tmp_path: Path) -> None:
    items = load(copy_scenes(tmp_path / "set"))
    answers = PeopleAnswers(items, tmp_path / "run", shuffle=True)
    orders = {}
    for person in ("ann", "ben"):
        order = [item.pair_id for item, question in answers._order(person) if question == "q2"]
        assert len(order) == len(items)
        assert all(a is None or a != b for a, b in pairwise(order))
        orders[person] = order
    assert orders["ann"] != orders["ben"]


@pytest.mark.parametrize("groups", ["aabb", "aab", "aaab", "abcabcabc" * 20, "aaaabbcd", "a", "", "aaa"])
def test_no_two_of_a_group_follow_each_other_where_that_can_be(groups: str) -> None:
    most = max((groups.count(group) for group in groups), default=0)
    for seed in range(50):
        order = [groups[place] for place in apart(groups, str(seed))]
        assert sorted(order) == sorted(groups)
        together = sum(a == b for a, b in pairwise(order))
        assert together == max(0, 2 * most - len(groups) - 1), "".join(order)


@pytest.mark.slow
def test_the_command_says_where_it_listens(tmp_path: Path) -> None:
    run_folder = str(tmp_path / "run")
    with serving("mcq", "people", "scenes", "-o", run_folder, "--person", "ann") as address:  # noqa: SIM117
        with urlopen(address) as page:
            assert b"You are" in page.read()
    assert orjson.loads((tmp_path / "run" / "run.json").read_bytes())["task"] == "mcq_people"
