"""Pairs rated by people: order, attention checks, what is kept, what is refused, and that it is scored."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from uncanny.errors import ReviewConflictError, RunMismatchError, UsageError
from uncanny.eval.edits.data import EditPair, EditSet, load
from uncanny.eval.edits.people.data import CHANGES, Change, read_checks, read_ratings
from uncanny.eval.edits.people.ratings import score_ratings
from uncanny.service.people.page import edits_rate_app
from uncanny.service.people.rating import PeopleRating
from uncanny.service.people.trials import Trial
from uncanny.service.safety import Guard

ADDRESS = "http://127.0.0.1:8000"
OURS = {"Origin": ADDRESS}


@pytest.fixture
def pairs() -> EditSet:
    return load("scenes")


@pytest.fixture
def rating(pairs: EditSet, tmp_path: Path) -> PeopleRating:
    return PeopleRating(pairs, tmp_path / "run", check_every=5, break_every=3)


@pytest.fixture
def client(rating: PeopleRating) -> Iterator[TestClient]:
    app = Guard(edits_rate_app(rating, person="ann"))
    with TestClient(app, base_url=ADDRESS, raise_server_exceptions=False) as each:
        yield each


def trial_of(rating: PeopleRating, key: str) -> Trial:
    return next(trial for trial in (*rating.trials, *rating.checks) if trial.key == key)


def rate_all(rating: PeopleRating, person: str, *, always: Change | None = None) -> list[Trial]:
    trials = []
    while (view := rating.current(person)) is not None:
        trial = trial_of(rating, view.key)
        trials.append(trial)
        rating.rate(person, view.key, always or trial.check or "some", 1.0)
    return trials


def test_everybody_rates_every_pair_with_checks_among_them(rating: PeopleRating) -> None:
    seen = {person: rate_all(rating, person) for person in ("ann", "ben")}
    assert [each.key for each in seen["ann"]] != [each.key for each in seen["ben"]]
    for trials in seen.values():
        # 16 pairs in blocks of five, each with a check.
        assert len({each.key for each in trials}) == len(trials) == 20
        checks = [place for place, each in enumerate(trials) if each.check is not None]
        assert [place // 6 for place in checks] == [0, 1, 2, 3]
        # Half of them need another answer than the others, so that nobody passes with one.
        known = [trials[place] for place in checks]
        assert sorted(str(each.check) for each in known) == ["a lot", "a lot", "not much", "not much"]
        assert all((len(set(each.files.values())) == 1) == (each.check == "not much") for each in known)
        assert all(first.group != second.group for first, second in pairwise(trials))


def test_ratings_are_scored_and_the_inattentive_left_out(pairs: EditSet, rating: PeopleRating) -> None:
    rate_all(rating, "ann")
    for change in CHANGES:
        rate_all(rating, f"always {change}", always=change)
    scores = score_ratings(pairs, rating.folder, resamples=0)
    assert scores.inattentive == ("always a lot", "always not much", "always some")
    assert set(scores.changes.values()) == {"some"}
    line = read_ratings([rating.folder])[0]
    assert line.original_sha256 != line.edited_sha256
    assert line.seconds == 1.0


def test_checks_of_a_file_are_shown_once_each(pairs: EditSet, tmp_path: Path) -> None:
    known = [
        EditPair.model_validate(
            {"id": f"known {n}", "original": str(each.original), "edited": str(each.edited), "change": change}
        )
        for n, (each, change) in enumerate(zip(pairs, ("a lot", "some"), strict=False))
    ]
    rating = PeopleRating(pairs, tmp_path / "run", checks=read_checks(known), check_every=4)
    trials = rate_all(rating, "ann")
    assert sorted(str(each.check) for each in trials if each.check) == ["a lot", "some"]
    assert len(trials) == 18


def test_a_pair_leaves_the_queue_with_enough_ratings(pairs: EditSet, tmp_path: Path) -> None:
    rating = PeopleRating(pairs, tmp_path / "run", check_every=8, per_pair=2)
    for person in ("ann", "ben"):
        assert len(rate_all(rating, person)) == 18
    # Checks are about people who rate pairs: with none left they are not shown.
    assert rating.progress("cem") == (0, 0)
    assert rate_all(rating, "cem") == []
    rating.undo("ben")
    assert rating.progress("dan")[1] in (2, 3)


def test_undo_conflicts_and_resuming(pairs: EditSet, rating: PeopleRating) -> None:
    first = rating.current("ann")
    assert first is not None
    rating.rate("ann", first.key, "some", None)
    with pytest.raises(ReviewConflictError, match="already rated this pair"):
        rating.rate("ann", first.key, "a lot", None)
    again = PeopleRating(pairs, rating.folder, check_every=5)
    assert again.progress("ann") == (1, 20)
    again.undo("ann")
    view = again.current("ann")
    assert view is not None
    assert view.key == first.key
    with pytest.raises(RunMismatchError):
        PeopleRating(load([each.pair for each in pairs]), rating.folder)


def test_a_pair_that_cannot_be_shown_is_recorded_and_shown_again(pairs: EditSet, tmp_path: Path) -> None:
    (tmp_path / "torn.png").write_bytes(b"no image")
    good, other = list(pairs)[:2]
    records = [
        EditPair(id="torn", original=str(good.original), edited=str(tmp_path / "torn.png")),
        EditPair(id="good", original=str(other.original), edited=str(other.edited)),
    ]
    rating = PeopleRating(load(records), tmp_path / "run", check_every=0)
    assert [each.id for each in rate_all(rating, "ann")] == ["good"]
    assert (rating.progress("ann"), rating.unshown("ann")) == ((1, 1), 1)
    with TestClient(Guard(edits_rate_app(rating, person="ann")), base_url=ADDRESS) as client:
        page = client.get("/").text
    assert "1</b> of 1 pairs rated" in page
    assert "1 could not be shown" in page
    by_id = {each.id: each for each in read_ratings([rating.folder])}
    assert by_id["torn"].change is None
    assert by_id["torn"].error


def test_nobody_is_thanked_for_nothing(pairs: EditSet, tmp_path: Path) -> None:
    (tmp_path / "torn.png").write_bytes(b"no image")
    torn = EditPair(id="torn", original=str(next(iter(pairs)).original), edited=str(tmp_path / "torn.png"))
    rating = PeopleRating(load([torn]), tmp_path / "run", check_every=0)
    with TestClient(Guard(edits_rate_app(rating, person="ann")), base_url=ADDRESS) as client:
        page = client.get("/").text
    assert "There are no pairs to show" in page
    assert "Thank you" not in page


def test_one_original_has_only_checks_without_change(pairs: EditSet, tmp_path: Path) -> None:
    (first,) = list(pairs)[:1]
    rating = PeopleRating(load([first.pair]), tmp_path / "run", check_every=1)
    assert [each.check for each in rating.checks] == ["not much"]


def test_a_replaced_picture_is_asked_again(pairs: EditSet, tmp_path: Path) -> None:
    names = {side: tmp_path / f"{side}.png" for side in ("original", "edited")}
    first, second = list(pairs)[:2]
    for side, path in names.items():
        path.write_bytes(Path(getattr(first, side)).read_bytes())
    own = load([EditPair(id="own", original=str(names["original"]), edited=str(names["edited"]))])
    run = tmp_path / "run"
    rate_all(PeopleRating(own, run, check_every=0), "ann")
    names["edited"].write_bytes(second.edited.read_bytes())
    with pytest.raises(UsageError, match="None of the ratings is of one of these pairs"):
        score_ratings(own, run, resamples=0)
    again = PeopleRating(own, run, check_every=0)
    assert again.progress("ann") == (0, 1)
    rate_all(again, "ann", always="a lot")
    scores = score_ratings(own, run, resamples=0)
    assert (scores.changes, scores.left.stale, scores.left.repeated) == ({"own": "a lot"}, 1, 0)
    # One that is gone cannot be rated again: what was said of it stays.
    names["edited"].unlink()
    assert PeopleRating(own, run, check_every=0).progress("ann") == (1, 1)


def test_the_page_shows_both_sides_and_refuses_what_is_not_there(
    client: TestClient, rating: PeopleRating
) -> None:
    view = rating.current("ann")
    assert view is not None
    page = client.get("/").text
    assert "How much has changed?" in page
    # Nothing says which pair it is, or whether it is a check.
    trial = trial_of(rating, view.key)
    assert trial.id not in page
    assert trial.files["edited"].path.name not in page
    for side in ("original", "edited"):
        assert client.get(f"/preview/{view.key}/{side}").status_code == 200
    for path in (f"/preview/{view.key}/mask", "/preview/nothing/original"):
        assert client.get(path).status_code == 404
    body = {"key": view.key, "change": "some", "seconds": 2}
    assert client.post("/rate", json={**body, "change": "much"}, headers=OURS).status_code == 422
    done = client.post("/rate", json=body, headers=OURS)
    assert done.status_code == 200
    assert "1</b> of 20 pairs rated" in done.text
    assert client.post("/rate", json=body, headers=OURS).status_code == 409
    assert "Undone" in client.post("/undo", json={}, headers=OURS).text


def test_breaks(client: TestClient, rating: PeopleRating) -> None:
    for _ in range(3):
        view = rating.current("ann")
        assert view is not None
        rating.rate("ann", view.key, "some", 1.0)
    assert "Time for a break" in client.get("/panel").text
    assert "Time for a break" not in client.get("/panel?rested=1").text


def test_both_checks_of_one_original_count(pairs: EditSet, tmp_path: Path) -> None:
    """An original beside itself and beside another one are two checks of the same pair."""
    rating = PeopleRating(pairs, tmp_path / "run", check_every=1)
    trials = rate_all(rating, "ann")
    checks = [each for each in trials if each.check is not None]
    assert len({each.id for each in checks}) < len(checks)
    scores = score_ratings(pairs, tmp_path / "run", resamples=0)
    assert (scores.raters["ann"].passed, scores.raters["ann"].checks) == (len(checks), len(checks))
    assert scores.left.repeated == 0
