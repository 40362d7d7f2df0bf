"""The whole path: made, screened, judged by people, asked, scored, and tested between the sides."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
from PIL import Image

import uncanny
from tests.eval.pairs.made_candidates import made, pictures
from uncanny.demo.server.app import FakeServerOptions, running
from uncanny.errors import UsageError
from uncanny.eval.common.groups import Groups
from uncanny.eval.pairs.data import Screened, load_made, load_screened
from uncanny.eval.pairs.parameters import ScreenConfig
from uncanny.eval.pairs.screen.checks import Measured, measure, rejection_of
from uncanny.mcq import Answer, Item
from uncanny.pairs import PairsResult
from uncanny.records.reviews import ReviewLog, new_review, quadruple_sha256
from uncanny.service.review.queue import Filters
from uncanny.service.review.run import ReviewRun

pytest.importorskip("cv2")


def judge(folder: Path, decide: dict[str, str]) -> None:
    """What a reviewer says on the review page, by candidate."""
    run = folder / "screened"
    lines = [
        new_review(record, 0, record.anomalies[0], "ann", decide[record.candidate])  # type: ignore[arg-type]
        for record in load_screened(run).values()
        if record.candidate in decide
    ]
    log = ReviewLog.of_run(run)
    with log.locked():
        log.append(lines)


def passed(folder: Path) -> list[Screened]:
    return [each for each in load_screened(folder / "screened").values() if each.rejected is None]


def test_screening_counts_add_up(tmp_path: Path) -> None:
    run = made(tmp_path, 3, attempts=4)
    uncanny.pairs.screen(run, model="demo")
    left = passed(run.path)
    decisions = {
        each.candidate: word for each, word in zip(left, ["accept", "reject", "unsure"], strict=False)
    }
    judge(run.path, decisions)
    result = uncanny.pairs.items(run)
    assert result.candidates == 12
    assert result.kept + sum(result.open.values()) + sum(result.rejected.values()) == 12
    assert result.kept == result.judged == 1
    assert result.rejected["people"] == 2
    assert result.open == {"not judged": len(left) - 3}
    assert {step: sum(why.values()) for step, why in result.reasons.items()} == {
        step: number for step, number in result.rejected.items() if number
    }
    (table,) = result.tables()
    assert "Candidates" in table.to_markdown()
    content = result.to_json()
    assert content["kept"] == 1
    assert content["rejected"]["people"] == 2


def test_drafts_pass_the_check_and_give_a_paired_test(tmp_path: Path) -> None:
    run = made(tmp_path, 3, attempts=3)
    uncanny.pairs.screen(run, model="demo")
    judge(run.path, {each.candidate: "accept" for each in passed(run.path)})
    result = uncanny.pairs.items(run)
    assert len(result.drafts) == 2 * result.kept > 4
    problems = uncanny.mcq.check(result.items)
    assert [each for each in problems if each.severity == "error"] == []
    by_pair: dict[str | None, list[Item]] = {}
    for item in uncanny.mcq.load(result.items):
        by_pair.setdefault(item.pair_id, []).append(item)
    for edited, before in by_pair.values():
        assert (edited.split, before.split) == ("art_pg", "ref_pg")
        assert edited.q2 and edited.q3 and edited.q4  # noqa: PT018
        assert before.q2 and before.q3 and before.q4  # noqa: PT018
        assert edited.q2.options == before.q2.options
        assert edited.q3.boxes == before.q3.boxes
        assert edited.q4.options == before.q4.options
        assert {before.q2.answer, before.q3.answer, before.q4.answer} == {"E"}
        assert edited.q2.answer == edited.q3.answer == edited.q4.answer != "E"
    items = uncanny.mcq.load(result.items)
    # Whoever names the region on both sides is right on the edited image alone.
    named = {item.pair_id: item for item in items if item.split == "art_pg"}
    answers = [
        Answer(id=item.id, question=question, raw=named[item.pair_id].right(question), model="blind-eye")
        for item in items
        for question in item.questions()
    ]
    scores = uncanny.mcq.score(items, answers, resamples=0)
    test = next(each for each in scores.sides if each.question == "all_q2_4")
    assert (test.n, test.first_only, test.second_only) == (result.kept, result.kept, 0)
    assert test.difference.value == 1
    assert scores.to_json()["sides"]["blind-eye"]["all_q2_4"]["first_only"] == result.kept


def asked_about(result: PairsResult, out: Path) -> uncanny.mcq.McqRun:
    """A server that answers each question, with the letters that it likes."""

    async def ask() -> uncanny.mcq.McqRun:
        async with running(FakeServerOptions()) as url:
            options: Any = {"model": "openai-compatible/any", "base_url": f"{url}/v1"}
            return await uncanny.mcq.run_async(result.items, out=out, **options)

    run = asyncio.run(ask())
    assert run.summary.statuses["failed"] == 0
    return run


def test_drafts_are_asked_and_scored(tmp_path: Path) -> None:
    run = made(tmp_path, 2, attempts=3)
    uncanny.pairs.screen(run, model="demo")
    result = uncanny.pairs.items(run, unreviewed=True)

    asked = asked_about(result, tmp_path / "asked")
    scores = uncanny.mcq.score(result.items, asked.path, resamples=0)
    test = next(each for each in scores.sides if each.question == "all_q2_4")
    assert test.n == result.kept > 0


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("kind", ["demo", "diffusers"])
def test_ten_images_go_the_whole_way(tmp_path: Path, kind: str) -> None:
    inpainter = "demo"
    if kind == "diffusers":
        pytest.importorskip("diffusers")
        from tests.eval.pairs.tiny_models import tiny_pipeline

        inpainter = f"diffusers/{tiny_pipeline(tmp_path / 'model')}"
    run = uncanny.pairs.make(
        "scenes", inpainter=inpainter, out=tmp_path / "run", limit=10, attempts=2, steps=2, inpaint_side=64
    )
    pairs = load_made(run.path)
    assert len({pair.original.image for pair in pairs}) == 10
    assert len(pairs) == run.made() == 20
    for pair in pairs:
        original, edited, mask = (
            np.asarray(Image.open(each or Path()))
            for each in (pair.original_file, pair.edited_file, pair.mask_file)
        )
        assert np.array_equal(original[mask == 0], edited[mask == 0])
        candidate = pair.candidate
        assert candidate.model.startswith(kind)
        assert candidate.sent.keys() <= {"seed", "guidance", "strength", "steps"}
        assert None not in (candidate.mask, candidate.mask_source, candidate.sha256, candidate.painted)
    uncanny.pairs.screen(run, model="demo")
    result = uncanny.pairs.items(run, unreviewed=True)
    assert result.candidates == 20 == result.kept + sum(result.open.values()) + sum(result.rejected.values())
    assert result.kept > 0
    assert [each for each in uncanny.mcq.check(result.items) if each.severity == "error"] == []
    asked = asked_about(result, tmp_path / "asked")
    scores = uncanny.mcq.score(result.items, asked.path, resamples=0)
    test = next(each for each in scores.sides if each.question == "all_q2_4")
    assert test.n == len(result.drafts) / 2


def test_people_judge_candidates_on_the_review_page(tmp_path: Path) -> None:
    run = made(tmp_path, attempts=2)
    uncanny.pairs.screen(run)
    opened = ReviewRun.open(run.path / "screened")
    first = opened.first(Filters(), "ann")
    assert first is not None
    shown = opened.view(first, None, "ann")
    assert "To be judged" in repr(shown)


def test_a_severity_counts_once_a_person_sets_it(tmp_path: Path) -> None:
    run = made(tmp_path, attempts=2)
    uncanny.pairs.screen(run)
    opened = ReviewRun.open(run.path / "screened")
    first = opened.first(Filters(), "ann")
    assert first is not None
    found = opened.view(first, None, "ann").finding.anomaly
    assert not found.severity_rated
    renamed = found.model_copy(update={"name": "The bent edge"})
    opened.edit(first, quadruple_sha256(found), renamed, "ann", "accept")
    (line,) = written(uncanny.pairs.items(run))
    assert (line["finding"]["name"], "severity" in line["finding"]) == ("The bent edge", False)
    opened.edit(
        first, quadruple_sha256(renamed), renamed.model_copy(update={"severity": 35}), "ann", "accept"
    )
    (line,) = written(uncanny.pairs.items(run))
    assert line["finding"]["severity"] == 35


def written(result: PairsResult) -> list[Any]:
    return [json.loads(line) for line in result.pairs.read_text().splitlines()]


def test_no_group_is_on_both_sides_of_a_split(tmp_path: Path) -> None:
    run = made(tmp_path, 2, attempts=3)
    uncanny.pairs.screen(run, model="demo")
    result = uncanny.pairs.items(run, unreviewed=True)
    groups = Groups()
    for item in result.drafts:
        groups.add(item)
    of_original: dict[str, set[str]] = {}
    for item in result.drafts:
        name = str((item.model_extra or {})["candidate"]).rpartition("-")[0]
        of_original.setdefault(name, set()).add(groups.of(item))
    assert all(len(each) == 1 for each in of_original.values())
    assert len(set.union(*of_original.values())) == len(of_original)
    exported = uncanny.export(run.path / "screened", to="csv", out=tmp_path / "out", all=True)
    assert exported.grouping.groups == 2


def test_pairs_are_edits_with_their_provenance(tmp_path: Path) -> None:
    run = made(tmp_path, attempts=3)
    uncanny.pairs.screen(run, model="demo")
    result = uncanny.pairs.items(run, unreviewed=True)
    edits = uncanny.edits.load(result.pairs)
    assert len(edits) == result.kept
    line = json.loads(result.pairs.read_text().splitlines()[0])
    assert {"model", "revision", "prompt", "seed", "guidance", "strength", "steps", "mask_source"} <= set(
        line["candidate"]
    )
    assert "severity" not in line["finding"]  # nobody rated it
    measured = uncanny.edits.measure(result.pairs)
    assert all(each.status == "ok" for each in measured)


def test_drafts_follow_verdicts_until_people_work_on_them(tmp_path: Path) -> None:
    run = made(tmp_path, attempts=3)
    uncanny.pairs.screen(run)
    first, *others = passed(run.path)
    judge(run.path, {first.candidate: "accept"})
    assert uncanny.pairs.items(run).kept == 1
    assert uncanny.pairs.items(run).kept == 1
    judge(run.path, {each.candidate: "accept" for each in others})
    result = uncanny.pairs.items(run)
    assert result.kept == 1 + len(others) > 1
    result.items.write_text(result.items.read_text().replace('"draft":true', '"draft":false'))
    with pytest.raises(UsageError, match="has changed since its drafts were written"):
        uncanny.pairs.items(run)
    elsewhere = uncanny.pairs.items(run, out=tmp_path / "other")
    assert elsewhere.items == tmp_path / "other" / "items.jsonl"
    assert len(uncanny.mcq.load(tmp_path / "other")) == 2 * result.kept
    assert len(uncanny.edits.load(tmp_path / "other")) == result.kept
    assert len(uncanny.realism.load(tmp_path / "other")) == result.kept
    assert all(each.status == "ok" for each in uncanny.edits.measure(tmp_path / "other"))
    uncanny.pairs.items(run, force=True)


def test_every_letter_is_right_once_in_four_candidates(tmp_path: Path) -> None:
    run = made(tmp_path, 2, attempts=4)
    uncanny.pairs.screen(run)
    judge(run.path, {each.candidate: "accept" for each in passed(run.path)})
    items = uncanny.pairs.items(run, seed=3).drafts
    right = [item.q4.answer for item in items if item.split == "art_pg" and item.q4 is not None]
    assert [sorted(right[:4]), sorted(right[4:])] == [list("ABCD")] * 2


def test_without_a_model_people_see_every_candidate(tmp_path: Path) -> None:
    run = made(tmp_path, attempts=4)
    screened = uncanny.pairs.screen(run)
    assert screened.passed() == 4
    assert screened.summary.calls == 0
    assert uncanny.pairs.items(run, unreviewed=True).kept == 0


def test_a_picture_that_was_changed_is_rejected_or_waits(tmp_path: Path) -> None:
    run = made(tmp_path, attempts=2)
    first, second = load_made(run.path)
    spoilt = np.asarray(Image.open(first.edited_file or Path())).copy()
    spoilt[0, 0] ^= 1
    Image.fromarray(spoilt).save(first.edited_file or Path())
    screened = uncanny.pairs.screen(run)
    assert screened.rejected() == {"outside": 1}
    rejected = next(each.rejected for each in screened.screened if each.rejected is not None)
    assert rejected.why == "1 pixels outside the mask differ from the original"
    assert second.edited_file is not None


def test_copies_fall_once(tmp_path: Path) -> None:
    run = made(tmp_path, attempts=2)
    record = json.loads((run.path / "candidates.jsonl").read_text())
    first, second = record["candidates"]
    second |= {"edited": first["edited"], "sha256": first["sha256"]}
    (run.path / "candidates.jsonl").write_text(json.dumps(record) + "\n")
    uncanny.pairs.screen(run)
    result = uncanny.pairs.items(run)
    assert result.rejected["duplicate"] == 1
    assert result.open == {"not judged": 1}


def test_the_checks_by_hand() -> None:
    before = np.full((10, 10, 3), 100, dtype=np.uint8)
    mask = np.zeros((10, 10), dtype=np.bool_)
    mask[2:6, 2:7] = True  # 20 pixels
    after = before.copy()
    after[2:4, 2:7, 0] = 130  # 10 of them, by 30
    figures = measure(before, after, mask, change=12)
    assert (figures.changed_of_mask, figures.changed_of_image) == (0.5, 0.1)
    assert figures.brightness_spread == pytest.approx(0.299 * 30 / 2)
    assert measure(before, after, mask, change=31).changed_of_mask == 0
    config = ScreenConfig()
    assert rejection_of(before, after, mask, figures, config) is None
    black = before.copy()
    black[mask] = 0
    rejected = rejection_of(before, black, mask, measure(before, black, mask, 12), config)
    assert rejected is not None
    assert (rejected.step, rejected.why) == ("quality", "the region is black")
    same = rejection_of(before, before, mask, measure(before, before, mask, 12), config)
    assert same is not None
    assert (same.step, same.why) == ("quality", "the region is one flat color")
    large = rejection_of(before, after, mask, Measured(0.9, 0.5, 20.0), config)
    assert large is not None
    assert (large.step, large.why) == ("size", "50% of the image changed")


def test_pages_and_commands(tmp_path: Path) -> None:
    run = made(tmp_path, attempts=2)
    uncanny.pairs.screen(run, model="demo")
    result: PairsResult = uncanny.pairs.items(run, unreviewed=True)
    page = result.report(tmp_path / "page.html")
    text = page.read_text()
    assert text.count("<article") == 2
    assert "Candidates by step" in text
    assert Counter(row["verdict"] for row in result.rows()).total() == 2


def test_images_that_cannot_be_read_cost_themselves_alone(tmp_path: Path) -> None:
    images = pictures(tmp_path / "pictures")
    (images / "broken.png").write_bytes(b"\x89PNG not really")
    run = uncanny.pairs.make(images, inpainter="demo", out=tmp_path / "pairs", attempts=1)
    assert run.summary.statuses["unreadable"] == 1
    uncanny.pairs.screen(run)
    assert uncanny.pairs.items(run).failed == 1


def test_a_fault_that_is_everywhere_has_no_drafts_and_is_named(tmp_path: Path) -> None:
    run = made(tmp_path, attempts=2)
    uncanny.pairs.screen(run)
    opened = ReviewRun.open(run.path / "screened")
    first = opened.first(Filters(), "ann")
    assert first is not None
    text = quadruple_sha256(opened.view(first, None, "ann").finding.anomaly)
    opened.move_box(first, text, (0, 0, 96, 60), "ann")
    opened.judge(first, text, "accept", "ann")
    for _ in range(2):  # the second finds nothing that people have changed
        result = uncanny.pairs.items(run)
        assert (result.kept, len(result.drafts)) == (1, 0)
        assert result.undrafted == [written(result)[0]["id"]]
        assert "No questions about 1 kept pair, as fewer than three places" in str(result)


def test_candidates_from_elsewhere_are_checked(tmp_path: Path) -> None:
    run = made(tmp_path, attempts=2)
    file = run.path / "candidates.jsonl"
    record = json.loads(file.read_text())
    first, second = record["candidates"]
    for change, told in (
        ({"id": first["id"]}, "is there twice"),
        ({"mask": None}, "has no mask or original"),
        ({"edited": "../../secret.png"}, "is not in"),
        ({"edited": "edited/\0.png"}, "is not in"),
    ):
        file.write_text(json.dumps(record | {"candidates": [first, second | change]}) + "\n")
        with pytest.raises(UsageError, match=told):
            load_made(run.path)


def test_a_kill_between_both_files_is_not_taken_for_an_edit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = made(tmp_path, attempts=2)
    uncanny.pairs.screen(run)
    first, second = passed(run.path)
    judge(run.path, {first.candidate: "accept"})
    uncanny.pairs.items(run)
    judge(run.path, {second.candidate: "accept"})
    with monkeypatch.context() as patched:
        patched.setattr("uncanny.eval.pairs.items.write_items", Mock(side_effect=KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            uncanny.pairs.items(run)
    assert uncanny.pairs.items(run).kept == 2
