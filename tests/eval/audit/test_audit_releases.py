"""Release over release: differences on shared prompts, what got better or worse, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.eval.audit.annotation_sets import anomaly, record, written
from uncanny.errors import NotAlikeError, UsageError
from uncanny.eval.audit.run import audit
from uncanny.eval.audit.score.tables import headline
from uncanny.eval.metrics.paired import paired_interval, unpaired_interval


def release(path: Path, faults: list[list[str]], **other: Any) -> Path:
    """An image a prompt; each fault is a kind."""
    records = [
        record(f"{path.stem}/{number:03}.png", **other)
        | {"anomalies": [{**anomaly(20, f"bad {kind}"), "kind": kind} for kind in kinds]}
        for number, kinds in enumerate(faults)
    ]
    return written(path, records)


def test_differences_are_paired_and_by_kind(tmp_path: Path) -> None:
    before = [["anatomy", "text"]] * 30 + [["anatomy"]] * 10 + [[]] * 20
    now = [["text"]] * 30 + [[]] * 10 + [["text"]] * 2 + [[]] * 18
    places = {
        "v2": release(tmp_path / "now.jsonl", now),
        "other": release(tmp_path / "other.jsonl", now),
    }
    result = audit(places, before={"v2": release(tmp_path / "old.jsonl", before)}, resamples=1000)
    (changed,) = result.releases.values()
    assert (changed.name, changed.images, changed.paired, changed.shared) == ("v2", (60, 60), 60, 60)
    visible = changed.figures["visible"]
    assert (visible.before, visible.now) == (40 / 60, 32 / 60)
    assert visible.difference.value == pytest.approx(-8 / 60)
    assert visible.verdict == "better"
    # Of 60 prompts 10 changed from 1 to 0 and 2 from 0 to 1: the normal interval of paired shares.
    half = 1.96 * float(np.std([-1] * 10 + [1] * 2 + [0] * 48)) / 60**0.5
    assert visible.difference.interval == pytest.approx((-8 / 60 - half, -8 / 60 + half), abs=0.02)
    assert changed.kinds["anatomy"].verdict == "better"
    assert changed.kinds["anatomy"].difference.value == pytest.approx(-40 / 60)
    assert changed.kinds["text"].verdict == "no clear change"
    assert changed.kinds["light"].difference.value == 0
    assert [group.name for group, _ in changed.changed_groups("better")] == ["bad anatomy"]
    assert (changed.n_worse, changed.n_better) == (2, 40)
    assert [each.prompt for each in changed.worse] == ["040", "041"]
    assert changed.worse[0].change == pytest.approx(0.8)
    assert changed.worse[0].images is not None
    assert changed.worse[0].images[1].image == "now/040.png"
    kept = result.to_json()["before"]["v2"]
    assert kept["figures"]["visible"]["verdict"] == "better"
    assert kept["prompts"]["n_better"] == 40
    assert "v2, now and before, over 60 shared prompts" in str(result)


def test_other_prompts_are_compared_unpaired(tmp_path: Path) -> None:
    before = written(tmp_path / "old.jsonl", [record(f"old{number}.png", [10]) for number in range(20)])
    now = written(tmp_path / "now.jsonl", [record(f"{number}.png") for number in range(20)])
    changed = audit({"a": now}, before={"a": before}, resamples=200).releases["a"]
    assert changed.paired is None
    assert (changed.shared, changed.worse, changed.better) == (0, (), ())
    assert changed.figures["af"].difference.value == -1
    unmeasured = audit({"a": now}, before={"a": before}, resamples=0).releases["a"]
    assert unmeasured.figures["af"].verdict == "not measured"


def test_few_prompts_have_no_verdict(tmp_path: Path) -> None:
    """However alike their changes are, paired or not."""
    for number in (2, 9):
        now = release(tmp_path / "now.jsonl", [[]] * number)
        old = release(tmp_path / "old.jsonl", [["text"]] * number)
        elsewhere = written(tmp_path / "x.jsonl", [record(f"x{place}.png", [10]) for place in range(20)])
        same = audit({"a": now}, before={"a": old}, resamples=200)
        for result, paired in ((same, number), (audit({"a": now}, before={"a": elsewhere}), None)):
            changed = result.releases["a"]
            assert (changed.paired, changed.too_few) == (paired, True)
            assert changed.figures["visible"].difference.value == -1
            everything = [*changed.figures.values(), *changed.kinds.values(), *dict(changed.groups).values()]
            assert {change.verdict for change in everything} == {"not measured"}
            assert "Fewer than ten" in str(result)
            page = result.report(tmp_path / "audit.html").read_text()
            assert "fewer than ten say nothing" in page
            assert "changed clearly" not in page
        assert str(same).count("not measured") > 1
    enough = [
        release(tmp_path / f"{name}.jsonl", [kinds] * 10) for name, kinds in (("n", []), ("o", ["text"]))
    ]
    changed = audit({"a": enough[0]}, before={"a": enough[1]}, resamples=200).releases["a"]
    assert changed.figures["visible"].verdict == "better"
    # Ten of ten changed, and the interval knows that they are ten.
    assert changed.figures["visible"].difference.interval == paired_interval(0, 0, 10, 0)
    assert changed.kinds["text"].adjusted_p == 2 * 0.5**10
    assert changed.kinds["light"].difference.interval == paired_interval(0, 0, 0, 10)
    assert changed.kinds["light"].adjusted_p is None


def test_one_among_many_groups_has_to_be_clearer(tmp_path: Path) -> None:
    """Seven prompts of forty lost a fault: alone that is p = 0.016, among five kinds it is not enough."""
    kinds = ["anatomy", "text", "light", "count", "perspective"]
    before = [["anatomy"]] * 7 + [[kind] for kind in kinds[1:]] * 2 + [[]] * 25
    now: list[list[str]] = [[]] * 7 + [[kind] for kind in kinds[1:]] * 2 + [[]] * 25
    files = release(tmp_path / "now.jsonl", now), release(tmp_path / "old.jsonl", before)
    changed = audit({"a": files[0]}, before={"a": files[1]}, resamples=500).releases["a"]
    anatomy = changed.kinds["anatomy"]
    assert anatomy.difference.excludes_zero
    assert anatomy.adjusted_p == pytest.approx(5 * 2 * 0.5**7)
    assert anatomy.verdict == "no clear change"
    assert changed.changed_groups("better") == []
    alone = [
        release(tmp_path / f"{name}.jsonl", [k] * 7 + [[]] * 33) for name, k in (("n", []), ("o", kinds[:1]))
    ]
    changed = audit({"a": alone[0]}, before={"a": alone[1]}, resamples=500).releases["a"]
    assert changed.kinds["anatomy"].verdict == "better"
    assert [group.name for group, _ in changed.changed_groups("better")] == ["bad anatomy"]


def test_shares_of_several_images_a_prompt_keep_a_width(tmp_path: Path) -> None:
    places = []
    for name, number in (("now", 2), ("old", 3)):
        images = [record(f"{name}{place}.png", seed=str(place % 12)) for place in range(12 * number)]
        places.append(written(tmp_path / f"{name}.jsonl", images))
    changed = audit({"a": places[0]}, before={"a": places[1]}, pair_by="seed", resamples=200).releases["a"]
    assert changed.paired == 12
    ends = changed.figures["visible"].difference.interval
    assert ends == unpaired_interval(0, 12, 0, 12)
    assert ends is not None
    assert ends[0] < 0 < ends[1]


def test_kinds_that_one_release_did_not_record_are_not_compared(tmp_path: Path) -> None:
    old = written(tmp_path / "old.jsonl", [record(f"{number}.png", [20]) for number in range(20)])
    now = release(tmp_path / "now.jsonl", [["text"]] * 20)
    now.write_bytes(now.read_bytes().replace(b"now/0", b"").replace(b'"0', b'"'))
    result = audit({"a": now}, before={"a": old}, resamples=200)
    changed = result.releases["a"]
    assert changed.paired
    text = changed.kinds["text"]
    assert (text.before, text.now, text.difference.value, text.verdict) == (None, 1, None, "not measured")
    assert {change.verdict for _, change in changed.groups} == {"not measured"}
    assert changed.figures["visible"].difference.value == 0
    earlier = audit({"a": old}, resamples=200).to_json()["generators"]["a"]["kinds"]
    assert earlier["text"] == {"share": None, "images": 0, "ci": None, "anomalies": 0}
    assert earlier["not recorded"]["share"] == 1
    both = audit({"old": old, "now": now}, resamples=0).leaderboard.faults
    shares = {row.group.kind: {name: share.value for name, share in row.shares.items()} for row in both.rows}
    assert shares == {"text": {"old": None, "now": 1}, None: {"old": 1, "now": 0}}


def test_the_earlier_release_has_to_be_made_alike_and_be_of_a_generator(tmp_path: Path) -> None:
    now, old = release(tmp_path / "now.jsonl", [[]]), release(tmp_path / "old.jsonl", [[]], model="vllm/x")
    with pytest.raises(NotAlikeError, match="a, before: vllm/x"):
        audit({"a": now}, before={"a": old})
    assert audit({"a": now}, before={"a": old}, allow_mixed=True).leaderboard.mixed
    with pytest.raises(UsageError, match="`before` names 'b', which is not a generator here"):
        audit({"a": now}, before={"b": now})
    with pytest.raises(UsageError, match="Annotate them first, as those of now"):
        audit({"a": now}, before={"a": "scenes:drawn"})


def test_the_headline_says_what_the_change_is_taken_over(tmp_path: Path) -> None:
    """All prompts, those of both releases, or too few."""

    def sentence(before: list[list[str]]) -> str:
        now = release(tmp_path / "now.jsonl", [["text"]] * 10 + [[]] * 30)
        old = release(tmp_path / "old.jsonl", before)
        return headline(audit({"a": now}, before={"a": old}, own="a", resamples=200))

    assert (
        "images [14–40]. Since the earlier release on the 40 prompts of both releases: images with a visible "
        "fault 50 % → 25 %, −25.0 points, better (p = 0.0062); images with text faults 50 % → 25 %, "
    ) in sentence([["text"]] * 20 + [[]] * 20)
    assert "on the 20 prompts of both releases: images with a visible fault 100 % → 50 %" in sentence(
        [["text"]] * 20
    )
    same = sentence([["text"]] * 10 + [[]] * 30)
    assert same.endswith("releases: no significant change (visible faults 25 % → 25 % of images).")
    few = audit(
        {"a": release(tmp_path / "now.jsonl", [["text"]] * 40)},
        before={"a": release(tmp_path / "few.jsonl", [[]] * 5)},
        resamples=200,
    )
    assert headline(few).endswith("Before it had visible faults in 0 % of images: too few to compare.")


def test_the_headline_names_the_kind_that_doubled_where_visible_faults_did_not_change(tmp_path: Path) -> None:
    before = [["text"]] * 10 + [["light"]] * 20 + [[]] * 90
    now = [["text"]] * 24 + [["light"]] * 6 + [[]] * 90
    places = release(tmp_path / "now.jsonl", now), release(tmp_path / "old.jsonl", before)
    result = audit({"a": places[0]}, before={"a": places[1]}, resamples=500)
    assert result.releases["a"].figures["visible"].verdict == "no clear change"
    said = headline(result)
    assert said.endswith(
        "prompts of both releases: images with light faults 17 % → 5 %, −11.7 points, better (p = 0.00024); "
        "images with text faults 8 % → 20 %, +11.7 points, worse (p = 0.00024)."
    )
    assert said in result.report(tmp_path / "audit.html").read_text()
    assert said in str(result).replace("\n  ", " ")
    assert result.to_json()["headline"] == said


def test_what_changed_alike_on_every_prompt_is_judged_without_an_interval(tmp_path: Path) -> None:
    once = release(tmp_path / "once.jsonl", [["text"]] * 12)
    never = release(tmp_path / "never.jsonl", [[]] * 12)
    changed = audit({"a": never}, before={"a": once}, resamples=200).releases["a"].figures
    assert {name: change.difference.interval for name, change in changed.items() if name != "visible"} == {
        "af": None,
        "mai": None,
        "cap": None,
    }
    assert {change.verdict for change in changed.values()} == {"better"}
    assert {change.adjusted_p for change in changed.values()} == {4 * 2 * 0.5**12}
    same = audit({"a": never}, before={"a": never}, resamples=200).releases["a"].figures
    assert {change.verdict for change in same.values()} == {"no clear change"}


def grouped(path: Path, severities: list[list[int]], **groups: str) -> Path:
    """An image a prompt, new bytes in each file; the images named in `groups` have the column `pair`."""
    records = [record(f"{number}.png", each) for number, each in enumerate(severities)]
    for number, group in groups.items():
        records[int(number.removeprefix("n"))]["columns"] = {"pair": group}
    return written(path, records)


def test_two_images_that_belong_together_leave_releases_paired_by_file_name(tmp_path: Path) -> None:
    severities = [[5]] * 20 + [[]] * 20
    old = grouped(tmp_path / "old.jsonl", [[5]] * 40)
    alone = grouped(tmp_path / "now.jsonl", severities)
    of_two = grouped(tmp_path / "two.jsonl", severities, n0="x", n30="x")
    without = audit({"g": alone}, before={"g": old}, resamples=200).releases["g"]
    together = audit({"g": of_two}, before={"g": old}, resamples=200).releases["g"]
    for changed in (without, together):
        assert (changed.paired, changed.shared, changed.n_better) == (40, 40, 20)
    # Two prompts of forty are drawn as one.
    assert (without.drawn_from, together.drawn_from) == (40, 39)
    both = audit({"g": of_two, "h": old}, resamples=200)
    assert both.side_by_side is not None
    assert (both.side_by_side.by, both.side_by_side.shared, both.side_by_side.differing) == ("stem", 40, 20)
    assert both.pair_by == "pair"


def test_releases_of_pairs_are_drawn_pair_by_pair(tmp_path: Path) -> None:
    """Twelve prompts in two pairs of six are two cases: nothing is said of them."""
    pairs = {f"n{number}": str(number % 2) for number in range(12)}
    old = grouped(tmp_path / "old.jsonl", [[5]] * 12, **pairs)
    now = grouped(tmp_path / "now.jsonl", [[]] * 12, **pairs)
    changed = audit({"g": now}, before={"g": old}, resamples=200).releases["g"]
    assert (changed.paired, changed.drawn_from, changed.too_few) == (12, 2, True)
    assert {change.verdict for change in changed.figures.values()} == {"not measured"}
    other = written(tmp_path / "other.jsonl", [record(f"other{number}.png", [5]) for number in range(12)])
    unpaired = audit({"g": now}, before={"g": other}, resamples=200).releases["g"]
    assert (unpaired.paired, unpaired.drawn_from, unpaired.too_few) == (None, 2, True)
    one_by_one = audit({"g": now}, before={"g": old}, pair_by="image", resamples=200).releases["g"]
    assert (one_by_one.paired, one_by_one.drawn_from) == (12, 12)
    assert one_by_one.figures["visible"].verdict == "better"


def test_differences_are_of_all_images_where_no_column_was_asked_for(tmp_path: Path) -> None:
    pairs = {f"n{number}": str(number // 2) for number in range(20)}
    files = {
        "g": grouped(tmp_path / "g.jsonl", [[5]] * 30, **pairs),
        "h": grouped(tmp_path / "h.jsonl", [[5]] * 20 + [[]] * 10, **pairs),
    }
    board = audit(files, resamples=200).leaderboard
    difference = board.difference("h", "g")
    assert difference is not None
    assert difference.paired is None
    assert difference.af.value == pytest.approx(20 / 30 - 1)
