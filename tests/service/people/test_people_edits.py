"""Edited images judged by people: order, what is kept, what is refused, and that it is scored."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from urllib.request import urlopen

import orjson
import pytest
from starlette.testclient import TestClient

from tests.service.running import serving
from uncanny.errors import RunMismatchError, UsageError
from uncanny.eval.edits.data import EditPair, EditSet, load
from uncanny.eval.edits.people.data import default_form, read_judgements
from uncanny.eval.edits.people.score import score_people
from uncanny.service.people.judging import PeopleJudging
from uncanny.service.people.page import edits_people_app
from uncanny.service.people.trials import Trial
from uncanny.service.safety import Guard

ADDRESS = "http://127.0.0.1:8000"
OURS = {"Origin": ADDRESS}


@pytest.fixture
def pairs() -> EditSet:
    return load("scenes")


@pytest.fixture
def judging(pairs: EditSet, tmp_path: Path) -> PeopleJudging:
    return PeopleJudging(pairs, tmp_path / "run", form=default_form(), break_every=3)


@pytest.fixture
def client(judging: PeopleJudging) -> Iterator[TestClient]:
    app = Guard(edits_people_app(judging, person="ann"))
    with TestClient(app, base_url=ADDRESS, raise_server_exceptions=False) as each:
        yield each


def trial_of(judging: PeopleJudging, key: str) -> Trial:
    return next(trial for trial in judging.trials if trial.key == key)


def judge_all(judging: PeopleJudging, person: str, *, right: bool = True) -> list[Trial]:
    trials = []
    while (view := judging.current(person)) is not None:
        trial = trial_of(judging, view.key)
        trials.append(trial)
        ((shown, size),) = view.sizes.items()
        edited = (shown == "edited") == right
        box = (0, 0, *size)
        judging.judge(person, view.key, "edited" if edited else "real", [box] if edited else [], 1.0)
    return trials


def test_everybody_sees_every_image_once_and_pairs_apart(judging: PeopleJudging) -> None:
    seen = {person: judge_all(judging, person) for person in ("ann", "ben")}
    assert [trial.key for trial in seen["ann"]] != [trial.key for trial in seen["ben"]]
    for trials in seen.values():
        assert len({trial.key for trial in trials}) == len(trials) == 32
        assert all(first.id != second.id for first, second in pairwise(trials))


def test_judgements_are_scored(pairs: EditSet, judging: PeopleJudging) -> None:
    judge_all(judging, "ann")
    judge_all(judging, "ben", right=False)
    judging.keep_profile("ann", {"photography": "Much", "age": None})
    judging.keep_profile("ben", {"photography": "Nothing"})
    scores = score_people(pairs, judging.folder, resamples=0)
    assert [scores.people[name].accuracy.value for name in ("ann", "ben")] == [1.0, 0.0]
    column = scores.questionnaire["photography"]
    assert column.levels == {"Much": (32, 32), "Nothing": (0, 32)}
    assert column.association.cramers_v == 1.0
    assert scores.questionnaire["gender"].association.cramers_v is None
    # A box over all of the picture has the mask's share as its IoU.
    first = next(each for each in read_judgements([judging.folder])[0] if each.boxes)
    assert first.boxes == ((0, 0, first.width, first.height),)
    assert 0 < (scores.people["ann"].iou.value or 0) < 0.5
    assert scores.agreement.alpha == pytest.approx(-63 / 64 + 0.0, abs=0.02)


def test_an_original_that_pairs_share_is_shown_once(pairs: EditSet, tmp_path: Path) -> None:
    first, second = list(pairs)[:2]
    shared = [
        EditPair(id="a", original=str(first.original), edited=str(first.edited)),
        EditPair(id="b", original=str(first.original), edited=str(second.edited)),
        EditPair(id="c", original=str(second.original), edited=str(second.original)),
    ]
    judging = PeopleJudging(load(shared), tmp_path / "run")
    assert [(trial.id, *trial.files) for trial in judging.trials] == [
        ("a", "original"),
        ("a", "edited"),
        ("b", "edited"),
        ("c", "original"),
        ("c", "edited"),
    ]


def test_the_last_judgement_is_taken_back_and_no_other(judging: PeopleJudging) -> None:
    with pytest.raises(UsageError, match="nothing to undo"):
        judging.undo("ann")
    views = []
    for _ in range(3):
        view = judging.current("ann")
        assert view is not None
        views.append(view)
        judging.judge("ann", view.key, "real", [], None)
    judging.undo("ann")
    again = judging.current("ann")
    assert again is not None
    assert again.key == views[-1].key
    with pytest.raises(UsageError, match="only your last"):
        judging.undo("ann")
    assert judging.progress("ann") == (2, 32)


def test_it_goes_on_after_a_restart_and_another_process(pairs: EditSet, judging: PeopleJudging) -> None:
    view = judging.current("ann")
    assert view is not None
    other = PeopleJudging(pairs, judging.folder)
    other.judge("ann", view.key, "edited", [], 1.0)
    with pytest.raises(UsageError, match="judged already"):
        judging.judge("ann", view.key, "real", [], None)
    assert judging.progress("ann") == (1, 32)
    assert judging.wants_profile("ann")
    PeopleJudging(pairs, judging.folder, form=default_form()).keep_profile("ann", {})
    assert not judging.wants_profile("ann")
    with pytest.raises(RunMismatchError, match="file of pairs"):
        PeopleJudging(load([each.pair for each in pairs]), judging.folder)


def test_an_image_that_cannot_be_read_is_a_record_and_no_judgement(pairs: EditSet, tmp_path: Path) -> None:
    (tmp_path / "bad.png").write_bytes(b"no picture")
    bad = EditPair(id="bad", original=str(next(iter(pairs)).original), edited=str(tmp_path / "bad.png"))
    judging = PeopleJudging(load([bad]), tmp_path / "run")
    judge_all(judging, "ann")
    PeopleJudging(load([bad]), tmp_path / "run").current("ann")
    lines = read_judgements([judging.folder])[0]
    assert sorted((each.shown, each.judged, each.error is None) for each in lines) == [
        ("edited", None, False),
        ("original", "real", True),
    ]
    scores = score_people([bad], judging.folder, resamples=0)
    assert (scores.together.judged, scores.left.unjudged) == (1, 1)


def test_a_replaced_image_is_judged_again(pairs: EditSet, tmp_path: Path) -> None:
    first, second = list(pairs)[:2]
    edited = tmp_path / "edited.png"
    edited.write_bytes(first.edited.read_bytes())
    own = load([EditPair(id="own", original=str(first.original), edited=str(edited))])
    run = tmp_path / "run"
    judge_all(PeopleJudging(own, run), "ann")
    edited.write_bytes(second.edited.read_bytes())
    scores = score_people(own, run, resamples=0)
    assert (scores.together.judged, scores.left.stale, scores.left.unseen) == (1, 1, 1)
    assert PeopleJudging(own, run).progress("ann") == (1, 2)


def test_nobody_misses_an_image_that_could_not_be_decoded_for_a_while(
    judging: PeopleJudging, client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(_: threading.Timer) -> None:
        raise RuntimeError("can't start new thread")

    judging.keep_profile("ann", {})
    with monkeypatch.context() as patched:
        patched.setattr(threading.Timer, "start", refused, raising=False)
        answer = client.get("/")
        assert (answer.status_code, "no thread could be started" in answer.text) == (507, True)
        assert "Load the page again" in answer.text
    assert client.get("/").status_code == 200
    assert len(judge_all(judging, "ann")) == 32
    lines = (judging.folder / "judgements.jsonl").read_bytes().splitlines()
    assert [orjson.loads(line).get("error") for line in lines] == [None] * 32


def fields(page: str) -> str:
    match = re.search(r'data-key="(\w+)"', page)
    assert match is not None
    return match[1]


def test_the_questionnaire_comes_first_then_pictures_with_breaks(
    judging: PeopleJudging, client: TestClient
) -> None:
    page = client.get("/").text
    assert "What is your gender?" in page
    assert "data-stage" not in page
    said = {"answers": {"age": "18–24", "gender": None}}
    assert client.post("/profile", json=said, headers=OURS).status_code == 200
    page = client.get("/").text
    for _ in range(3):
        body = {"key": fields(page), "judged": "real", "seconds": 0.5}
        page = client.post("/judge", json=body, headers=OURS).text
    assert "Time for a break" in page
    assert "data-stage" not in page
    assert "Time for a break" in client.get("/").text
    assert "data-stage" in client.get("/panel?rested=1").text
    profile = orjson.loads((judging.folder / "profiles.jsonl").read_bytes())
    assert profile["answers"]["age"] == "18–24"
    assert profile["answers"]["photography"] is None


def test_the_truth_is_nowhere_on_the_page(judging: PeopleJudging, client: TestClient) -> None:
    judging.keep_profile("ann", {})
    for _ in range(32):
        page = client.get("/").text + client.get("/panel?rested=1").text
        key = fields(page)
        trial = trial_of(judging, key)
        assert not any(file.path.name in page for file in trial.files.values())
        assert f'"{trial.id}"' not in page
        assert "original" not in page
        assert client.get(f"/preview/{key}").status_code == 200
        assert client.post("/judge", json={"key": key, "judged": "real"}, headers=OURS).status_code == 200


def test_requests_that_are_not_the_pages_change_nothing(judging: PeopleJudging, client: TestClient) -> None:
    judging.keep_profile("ann", {})
    view = judging.current("ann")
    assert view is not None
    body = {"key": view.key, "judged": "edited", "boxes": [[0, 0, 5, 5]]}
    assert client.post("/judge", json=body).status_code == 403
    for wrong, status in (
        ({"boxes": [[0, 0, 5, 100_000]]}, 400),
        ({"boxes": [[5, 5, 5, 5]]}, 422),
        ({"boxes": [[0, 0, 5, 5]] * 51}, 422),
        ({"boxes": [[0.5, 0, 5, 5]]}, 422),
        ({"judged": "real"}, 400),
        ({"judged": "fake"}, 422),
        ({"seconds": -1}, 422),
        ({"more": 1}, 422),
        ({"key": "0"}, 409),
    ):
        assert client.post("/judge", json=body | wrong, headers=OURS).status_code == status, wrong
    for answers in ({"age": "200"}, {"nothing": "x"}, {"age": "x" * 30_000}):
        answer = client.post("/profile", json={"answers": answers}, headers=OURS)
        assert answer.status_code in (400, 422)
    assert client.get("/image/../../etc/passwd").status_code == 404
    assert not (judging.folder / "judgements.jsonl").exists()


@pytest.mark.slow
def test_the_command_says_where_it_listens(tmp_path: Path) -> None:
    run = tmp_path / "run"
    with serving("edits", "people", "scenes", "-o", str(run), "--person", "ann") as address:  # noqa: SIM117
        with urlopen(address) as page:
            assert b"real, or was a part of it edited" in page.read()
    assert orjson.loads((run / "run.json").read_bytes())["pairs"] == "scenes"
