"""Items that reviewers agree on: a case worked by hand, what is stale, what is written, and the command."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.runs.e2e import uncanny_here
from uncanny import mcq
from uncanny.errors import ItemsError, UsageError
from uncanny.eval.mcq.data.items import ItemSet
from uncanny.eval.mcq.data.kept import ITEM_REVIEWS, item_digest
from uncanny.eval.mcq.data.load import copy_scenes

# By item what Ann, Ben and Cem say: correct, wrong, unsure, or nothing.
SAID = ("ccc", "ccw", "ccu", "www", "wwu", "uuu", "cc-", "cwu")
DECISIONS = {"c": "accept", "w": "reject", "u": "unsure"}
BY_ALL = ["agreed", "disputed", "unsure", "rejected", "unsure", "unsure", "open", "disputed"]
BY_MOST = ["agreed", "agreed", "agreed", "rejected", "rejected", "unsure", "open", "disputed"]


@pytest.fixture
def items(tmp_path: Path) -> ItemSet:
    return mcq.load(copy_scenes(tmp_path / "set"))[: len(SAID)]


def review(item: str, person: str, decision: str | None, **more: Any) -> dict[str, Any]:
    return {"id": item, "person": person, "decision": decision, **more}


def write(folder: Path, lines: Sequence[Mapping[str, Any]]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / ITEM_REVIEWS).write_bytes(b"".join(orjson.dumps(each) + b"\n" for each in lines))
    return folder


def case(items: ItemSet, folder: Path) -> Path:
    """Ann takes back what she said of the first one; Ben says why the second one is wrong."""
    lines = [review(items[0].id, "ann", "reject")]
    for item, said in zip(items, SAID, strict=True):
        for person, letter in zip(("ann", "ben", "cem"), said, strict=True):
            if letter in DECISIONS:
                note = "box too large" if letter == "w" and person == "cem" else None
                lines.append(review(item.id, person, DECISIONS[letter], note=note))
    lines += [review("nothing", "ann", "accept"), review(items[6].id, "cem", None, error="it is gone")]
    return write(folder, lines)


def test_by_hand(items: ItemSet, tmp_path: Path) -> None:
    run = case(items, tmp_path / "run")
    kept = mcq.keep(items, run)
    assert list(kept.statuses.values()) == BY_ALL
    assert kept.counts == {"agreed": 1, "disputed": 2, "unsure": 3, "rejected": 1, "open": 1}
    assert [item.id for item in kept.items] == [items[0].id]
    assert (kept.stale, kept.unknown, kept.unshown) == (0, 1, 1)
    assert kept.notes[items[1].id] == {"cem": "box too large"}
    by_most = mcq.keep(items, run, agree="majority")
    assert list(by_most.statuses.values()) == BY_MOST
    assert mcq.keep(items, run, least_verdicts=2).statuses[items[6].id] == "agreed"
    # 23 verdicts: 10 correct, 7 wrong, 6 unsure. Pairs that differ, by item: 0, 4/2, 4/2, 0, 4/2, 0, 0, 6/2.
    assert (kept.agreement.units, kept.agreement.judgements) == (8, 23)
    assert kept.agreement.alpha == pytest.approx(1 - 22 * 9 / (23 * 23 - 10 * 10 - 7 * 7 - 6 * 6))


def test_kept_items_are_written_without_the_mark_of_a_draft(items: ItemSet, tmp_path: Path) -> None:
    drafts = ItemSet(tuple(item.model_copy(update={"draft": True}) for item in items), items.file)
    out = tmp_path / "elsewhere" / "kept.jsonl"
    out.parent.mkdir()
    kept = mcq.keep(drafts, case(items, tmp_path / "run"), out=out)
    (item,) = mcq.load(out)
    assert item == kept.items[0]
    assert "draft" not in (item.model_extra or {})
    assert mcq.load(out).image_path(item).read_bytes() == items.image_path(items[0]).read_bytes()
    with pytest.raises(
        UsageError, match="none of 8 items is found correct by all of its reviewers, with 4 verdicts"
    ):
        mcq.keep(items, tmp_path / "run", out=tmp_path / "none.jsonl", least_verdicts=4)
    assert not (tmp_path / "none.jsonl").exists()


def test_what_changed_since_is_stale(items: ItemSet, tmp_path: Path) -> None:
    first, second, third = items[:3]
    lines = [
        review(
            item.id, "ann", "accept", content=item_digest(item), sha256="0" * 64 if item == second else None
        )
        for item in (first, second, third)
    ]
    assert third.q3 is not None
    other = third.q3.model_copy(update={"answer": "B" if third.q3.answer != "B" else "C"})
    changed = ItemSet((first, second, third.model_copy(update={"q3": other})), items.file)
    kept = mcq.keep(changed, write(tmp_path / "run", lines), least_verdicts=1)
    assert (kept.stale, kept.counts["agreed"], kept.counts["open"]) == (2, 1, 2)


def test_reviewers_of_the_same_name_and_what_cannot_be_read(items: ItemSet, tmp_path: Path) -> None:
    runs = [write(tmp_path / name, [review(items[0].id, "ann", "accept")]) for name in ("a", "b")]
    assert mcq.keep(items, runs, least_verdicts=2).verdicts[items[0].id].keys() == {"ann (a)", "ann (b)"}
    # Two spellings of one folder are not two people.
    same = [runs[0], runs[0] / "item_reviews.jsonl", runs[1] / ".." / "a"]
    assert mcq.keep(items, same, least_verdicts=1).verdicts[items[0].id].keys() == {"ann"}
    with pytest.raises(UsageError, match="does not exist"):
        mcq.keep(items, tmp_path / "nowhere")
    with pytest.raises(UsageError, match=r"contains no item_reviews\.jsonl"):
        mcq.keep(items, tmp_path)
    with pytest.raises(UsageError, match="no reviews of items yet"):
        mcq.keep(items, write(tmp_path / "none", []))
    with pytest.raises(UsageError, match="about one of these items"):
        mcq.keep(items, write(tmp_path / "other", [review("nothing", "ann", "accept")]))
    with pytest.raises(ItemsError, match="decision"):
        mcq.keep(items, write(tmp_path / "wrong", [review(items[0].id, "ann", "maybe")]))


def test_the_command(items: ItemSet, tmp_path: Path) -> None:
    run, out, scores = case(items, tmp_path / "run"), tmp_path / "kept.jsonl", tmp_path / "s.json"
    command = ("mcq", "check", items.file, "--no-images", "--reviews", run)
    done = uncanny_here(*command, "-o", out, "--json", scores, "--csv", tmp_path / "s.csv")
    assert done.code == 0, done.err
    for words in ("disputed", "correct by all of its reviewers", "cem: wrong (box too large)", str(out)):
        assert words in done.out
    written = orjson.loads(scores.read_bytes())
    assert written["rule"] == {"agree": "all", "least_verdicts": 3}
    # 26 items of the file were not given to reviewers.
    assert written["items"] == {
        "n": 34,
        **{"agreed": 1, "disputed": 2, "unsure": 3, "rejected": 1, "open": 27},
    }
    assert written["reviewers"]["ben"] == {"correct": 4, "wrong": 3, "unsure": 1}
    assert len(mcq.load(out)) == 1
    # The same again is fine; another file is not replaced.
    assert uncanny_here(*command, "-o", out).code == 0
    out.write_text('{"id": "x"}\n')
    assert uncanny_here(*command, "-o", out).code == 2
    none = uncanny_here(*command, "-o", tmp_path / "none.jsonl", "--least-verdicts", "50")
    assert (none.code, "pass a smaller number with --least-verdicts" in none.told) == (2, True)
    for unused in (("-o", out), ("--csv", "-"), ("--json", "-"), ("--agree", "majority")):
        assert "need --reviews" in uncanny_here("mcq", "check", items.file, *unused).told, unused
