"""Answers of the packed schedule: parts with a bad item, accounts of numbers, every box convention."""

from __future__ import annotations

import json
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from uncanny.answers.boxes import BOX_FORMATS, BoxFormatName, GivenBox, in_format, overlap, pixels
from uncanny.answers.forms import own_schema
from uncanny.answers.lists import read_list, read_numbers
from uncanny.answers.packed import (
    FAULTS,
    FINAL_TEXTS,
    INVENTORY,
    JUDGEMENTS,
    PACKED_FORMS,
    PART_FAULTS,
    Judgement,
    Numbered,
    asked_in,
    read_look,
    read_parts,
)
from uncanny.errors import AnswerError


def answer(key: str, *items: object) -> str:
    return orjson.dumps({"answer": {key: items}}).decode()


def fault(part: object, **more: object) -> dict[str, object]:
    return {"part": part, "observed": f"fault of {part}", "explanation": "no", "box": [], **more}


PARTS = {1: (), 2: (7, 8), 3: (9,)}


def test_an_answer_about_parts_is_read_whole() -> None:
    text = answer("findings", fault(2), fault(3, box=[10, 20, 30, 40], doubt=9), fault(2))
    read = read_parts(text, PARTS, "mine/one")
    assert [(item.part, item.doubt) for item in read.items] == [(2, 0), (3, 9)]
    assert read.items[1].box == GivenBox((10, 20, 30, 40), "box", "mine/one")
    assert (read.invalid, read.set_aside, read.left_out) == ({}, {}, 0)
    assert read_parts(answer("findings"), PARTS).items == ()


@pytest.mark.parametrize(
    "bad",
    [
        fault(2, observed=""),
        fault(2, explanation=None),
        {"part": "2", "observed": "seen"},
        {"part": "part 2", "observed": ["seen"], "explanation": "x"},
        {"part_number": [2], "observed": "seen", "explanation": ""},
        {"doubt": 8, "observed": "seen", "explanation": ""},
        fault(2, observed=7),
        fault(2, doubt="the first"),
    ],
)
def test_one_bad_item_costs_no_other_part_its_answer(bad: dict[str, object]) -> None:
    text = answer("findings", fault(1), fault(2, doubt=7), bad, fault(3))
    read = read_parts(text, PARTS)
    # What was said of the part before is said again when it is asked about alone.
    assert [item.part for item in read.items] == [1, 3]
    assert list(read.invalid) == [2]
    assert read.invalid[2].startswith("item 3: ")
    # For when nothing comes of that.
    assert [(item.part, item.doubt) for item in read.set_aside[2]] == [(2, 7)]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (answer("findings", fault(9)), "item 1: part 9 is not one of the parts asked about: 1, 2, 3"),
        (answer("findings", {"observed": "x", "explanation": "y"}), "item 1: part 0 is not one of the parts"),
        (answer("findings", fault("the cup")), "item 1: part must be one whole number"),
        (
            answer("findings", *(fault(number, observed="") for number in PARTS)),
            "item 1: observed is empty; item 2",
        ),
        (answer("findings", "cup"), "item 1: is not an object with the fields part, doubt, objects"),
        ("I see nothing of the kind", "expected a JSON object"),
        ("", "the answer is empty"),
    ],
)
def test_an_answer_of_which_nothing_can_be_used_is_asked_again(text: str, message: str) -> None:
    with pytest.raises(AnswerError) as caught:
        read_parts(text, PARTS)
    assert message in caught.value.message


def test_of_an_answer_with_too_many_findings_the_first_are_read_and_the_others_counted() -> None:
    many = [fault(1 + number % 2, observed=f"odd {number}") for number in range(503)]
    read = read_parts(answer("findings", *many), PARTS)
    assert (len(read.items), read.items[-1].observed, read.left_out, dict(read.invalid)) == (
        500,
        "odd 499",
        3,
        {},
    )


def test_a_doubt_is_answered_in_its_part_and_is_a_finding_of_its_own_elsewhere() -> None:
    text = answer("findings", fault(2, doubt=8), fault(1, doubt=8), fault(1, doubt=77), fault(3, doubt=0))
    read = read_parts(text, PARTS)
    assert [(item.part, item.doubt) for item in read.items] == [(2, 8), (1, 0), (3, 0)]


@pytest.mark.parametrize("number", [2, "2", "#2", "Part 2", 2.0, [2]])
def test_a_part_may_be_named_in_many_ways(number: object) -> None:
    (item,) = read_parts(answer("findings", fault(number)), PARTS).items
    assert item.part == 2


def test_where_the_whole_image_is_asked_about_it_is_what_an_item_without_a_part_is_about() -> None:
    text = answer("findings", {"observed": "x", "explanation": "y"}, fault(4))
    assert [item.part for item in read_parts(text, {0: (), 4: ()}).items] == [0, 4]
    assert [item.part for item in read_parts(text.replace('"part":4', '"part":0'), {4: ()}).items] == [4, 4]


def look(findings: list[object], inventory: list[object]) -> str:
    return orjson.dumps({"findings": findings, "inventory": inventory}).decode()


THING = {"name": "cup", "description": "there", "sort": "thing", "bbox_2d": [1, 2, 3, 4]}


def test_a_look_has_both_lists() -> None:
    read = read_look(look([fault(0, box=[1, 2, 3, 4], confidence=85)], [THING]), "mine/one")
    (item,), (thing,) = read.faults, read.inventory
    assert (item.observed, item.confidence) == ("fault of 0", 0.85)
    assert (thing.name, thing.sort) == ("cup", "thing")
    assert item.box is not None
    assert thing.box is not None
    assert (item.box.model, thing.box.model, thing.box.key) == ("mine/one", "mine/one", "bbox_2d")
    wrapped = f'```json\n{{"answer": {look([], [])}}}\n```'
    assert (read_look(wrapped).faults, read_look(wrapped).inventory) == ((), ())
    assert read_look(look([], [{**THING, "sort": "tool"}])).inventory[0].sort is None


def test_the_two_lists_of_a_look_may_come_apart() -> None:
    text = f"First: {answer('findings', fault(0))}\nThen: {answer('inventory', THING)}"
    read = read_look(text)
    assert (len(read.faults), len(read.inventory)) == (1, 1)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (answer("findings"), 'no list under the key "inventory"'),
        (answer("inventory", THING), 'no list under the key "findings"'),
        (look([fault(0, observed="")], [THING]), "item 1: observed is empty"),
        (look([], [{"name": "cup"}]), "item 1: description is missing"),
        ("", "the answer is empty"),
    ],
)
def test_a_look_without_one_of_its_lists_is_no_answer(text: str, message: str) -> None:
    with pytest.raises(AnswerError) as caught:
        read_look(text)
    assert message in caught.value.message


def test_of_a_look_with_lists_that_are_too_long_the_beginnings_are_read() -> None:
    things = [{**THING, "name": f"cup {number}"} for number in range(502)]
    faults = [fault(0, observed=f"odd {number}") for number in range(501)]
    read = read_look(look([*faults], [*things]))
    assert (len(read.faults), len(read.inventory)) == (500, 500)
    assert read.left_out == {"findings": 1, "inventory": 2}


@pytest.mark.parametrize(
    ("value", "numbers"),
    [
        ([1, 2], (1, 2)),
        ([3, 3, "1", 2.0], (3, 1, 2)),
        (4, (4,)),
        ("5", (5,)),
        ("#6, 7 and 8", (6, 7, 8)),
        ("finding 9", (9,)),
        ("[1, 2]", (1, 2)),
        (["No. 3", "findings 4"], (3, 4)),
    ],
)
def test_numbers_come_in_many_forms(value: object, numbers: tuple[int, ...]) -> None:
    assert read_numbers(value) == numbers


@pytest.mark.parametrize("value", [[], "", None, True, [True], [1.5], "all", ["one"], {"id": 1}, [[1]]])
def test_what_is_no_number_is_none(value: object) -> None:
    with pytest.raises(AnswerError):
        read_numbers(value)


def entry(*ids: int, decision: str = "keep", **more: object) -> dict[str, object]:
    dropped = decision == "drop"
    return {
        "ids": list(ids),
        "why": "seen",
        "decision": decision,
        "name": "" if dropped else "n",
        "phenomenon": "" if dropped else "p",
        "reasoning": "" if dropped else "r",
        "realism": 0 if dropped else 20,
        "box": [],
        **more,
    }


def test_every_number_is_accounted_for() -> None:
    reader = Numbered(JUDGEMENTS, 4)
    entries = reader.read(
        answer("entries", entry(2, 1), entry(3, decision="dropped"), entry(4, decision="Correct"))
    )
    assert [(each.ids, each.decision) for each in entries] == [
        ((2, 1), "keep"),
        ((3,), "drop"),
        ((4,), "correct"),
    ]


def test_missing_numbers_are_named_and_the_best_answer_is_kept() -> None:
    reader = Numbered(JUDGEMENTS, 4)
    with pytest.raises(AnswerError, match="these numbers stand in no entry: 3, 4"):
        reader.read(answer("entries", entry(1), entry(2)))
    with pytest.raises(AnswerError, match="in no entry: 1, 2, 4"):
        reader.read(answer("entries", entry(3)))
    with pytest.raises(AnswerError, match="empty"):
        reader.read("")
    assert reader.best is not None
    assert ([each.ids for each in reader.best], reader.missing) == ([(1,), (2,)], (3, 4))


def test_a_number_stands_in_one_entry_and_keeping_goes_before_dropping() -> None:
    reader = Numbered(JUDGEMENTS, 3)
    text = answer("entries", entry(1, 2, decision="drop"), entry(2, 9), entry(2, 3), entry(77))
    assert [(each.ids, each.decision) for each in reader.read(text)] == [
        ((1,), "drop"),
        ((2,), "keep"),
        ((3,), "keep"),
    ]


@pytest.mark.parametrize(
    "bad",
    [
        entry(2, decision="drop", why=""),
        entry(2, decision="correct", phenomenon=" "),
        entry(2, name=""),
        entry(2, reasoning=""),
        entry(2, realism=None),
        entry(2, realism=101),
        entry(2, decision="perhaps"),
        {"ids": [2], "phenomenon": "p", "reasoning": "r"},
    ],
)
def test_an_entry_that_says_too_little_leaves_its_numbers_missing(bad: dict[str, object]) -> None:
    reader = Numbered(JUDGEMENTS, 2)
    with pytest.raises(AnswerError, match=r"item 2: .*; these numbers stand in no entry: 2"):
        reader.read(answer("entries", entry(1), bad))
    assert reader.missing == (2,)


def test_what_is_added_is_of_no_finding() -> None:
    reader = Numbered(JUDGEMENTS, 1)
    added = [entry(0, decision="add"), entry(1, decision="added", name="another"), entry(1)]
    assert [(each.ids, each.decision) for each in reader.read(answer("entries", *added))] == [
        ((0,), "add"),
        ((0,), "add"),
        ((1,), "keep"),
    ]


numbers = st.lists(st.integers(-2, 14), max_size=5)


@given(
    st.integers(1, 12),
    st.lists(
        st.builds(lambda ids, kept: entry(*ids, decision="keep" if kept else "drop"), numbers, st.booleans()),
        max_size=8,
    ),
)
def test_no_number_is_lost_or_doubled(count: int, entries: list[dict[str, Any]]) -> None:
    reader = Numbered(JUDGEMENTS, count)
    try:
        read: tuple[Judgement, ...] = reader.read(answer("entries", *entries))
        missing: tuple[int, ...] = ()
    except AnswerError:
        read, missing = reader.best or (), reader.missing if reader.best else tuple(range(1, count + 1))
    accounted = [number for each in read for number in each.ids]
    assert sorted([*accounted, *missing]) == list(range(1, count + 1))


TEXT = {"ids": [1], "name": "n", "phenomenon": "p", "reasoning": "r", "realism": 20, "objects": ["cup"]}


@pytest.mark.parametrize(
    ("kind", "known"),
    [("anatomy", "anatomy"), ("Light", "light"), ("other", None), ("colour", None), (None, None)],
)
def test_a_kind_that_is_none_of_ours_is_unknown(kind: str | None, known: str | None) -> None:
    (text,) = Numbered(FINAL_TEXTS, 1).read(answer("anomalies", {**TEXT, "kind": kind}))
    assert (text.kind, text.realism, text.objects) == (known, 20, ("cup",))


def test_realism_is_never_made_up() -> None:
    for wrong in (None, 101, "high", 0.5):
        with pytest.raises(AnswerError, match="realism"):
            Numbered(FINAL_TEXTS, 1).read(answer("anomalies", {**TEXT, "realism": wrong}))
    (text,) = Numbered(FINAL_TEXTS, 1).read(answer("anomalies", {**TEXT, "realism": "15/100"}))
    assert text.realism == 15


def test_labelled_text_is_read_where_a_model_takes_no_schema() -> None:
    text = """@1. Part: 2
Objects: hand
Observed: six fingers
Explanation: hands have five
Box: [1, 2, 3, 4]"""
    (item,) = read_parts(text, PARTS).items
    assert (item.part, item.objects, item.observed) == (2, ("hand",), "six fingers")
    assert item.box is not None
    assert item.box.numbers == (1, 2, 3, 4)


WHOLE = (200, 100)
SAME: dict[BoxFormatName, list[float]] = {
    "xyxy-1000": [250, 200, 500, 800],
    "yxyx-1000": [200, 250, 800, 500],
    "xyxy-999": [249.75, 199.8, 499.5, 799.2],
    "xyxy-1": [0.25, 0.2, 0.5, 0.8],
    "pixels": [50, 20, 100, 80],
}


@pytest.mark.parametrize("name", sorted(SAME))
def test_a_box_is_the_same_place_in_every_convention(name: BoxFormatName) -> None:
    form = BOX_FORMATS[name]
    inventory = asked_in(INVENTORY, name)
    text = answer("inventory", {"name": "cup", "description": "d", form.key: SAME[name]})
    (item,) = read_list(text, inventory)
    assert item.box is not None
    assert pixels(item.box, form, sent=WHOLE, original=WHOLE) == (50, 20, 100, 80)
    assert pixels(item.box, form, sent=WHOLE, original=(400, 200)) == (100, 40, 200, 160)


@pytest.mark.parametrize("name", sorted(BOX_FORMATS))
def test_the_schema_asks_for_the_key_of_the_convention(name: BoxFormatName) -> None:
    for form in (INVENTORY, FAULTS, JUDGEMENTS):
        item = own_schema(asked_in(form, name))["properties"]["answer"]["properties"][form.key]["items"]
        assert item["properties"][BOX_FORMATS[name].key]["type"] == "array"
        assert sum("box" in key for key in item["properties"]) == 1


def test_a_schema_has_all_lists_of_an_answer() -> None:
    schema = own_schema(FAULTS, INVENTORY)["properties"]["answer"]
    assert [*schema["properties"]] == schema["required"] == ["findings", "inventory"]
    for form in (FAULTS, INVENTORY):
        (alone,) = own_schema(form)["properties"]["answer"]["properties"].values()
        assert schema["properties"][form.key] == alone


def test_every_form_has_a_key_of_its_own_but_for_findings_of_the_whole_and_of_parts() -> None:
    assert [form.key for form in PACKED_FORMS if form is not PART_FAULTS] == [
        "inventory", "findings", "entries", "anomalies",
    ]  # fmt: skip
    assert PART_FAULTS.key == FAULTS.key


@pytest.mark.parametrize(
    "box",
    [
        None,
        [],
        "unknown",
        [1, 2, 3],
        [1, 2, 3, "x"],
        {"x": 1},
        [[1, 2]],
        True,
        7,
        [10**400, 1, 2, 3],
        [0, 0, float("inf"), 1],
        {"x0": [], "y0": 1, "x1": 2, "y1": 3},
        {"x": [1, 2], "y": [], "w": 2, "h": 10**400},
        {"x0": [1, 2], "y0": [3, 4], "x1": [], "y1": []},
    ],
)
def test_what_is_no_box_costs_no_finding(box: object) -> None:
    # The library's own JSON: numbers of any length, and `Infinity`.
    text = json.dumps({"answer": {"findings": [fault(1, box=box)]}})
    (item,) = read_parts(text, {1: ()}).items
    assert item.box is None


sides = st.integers(8, 3000)


@given(sides, sides, st.data())
def test_a_box_comes_back_from_every_convention(width: int, height: int, data: st.DataObject) -> None:
    x0, y0 = data.draw(st.integers(0, width - 4)), data.draw(st.integers(0, height - 4))
    x1, y1 = data.draw(st.integers(x0 + 4, width)), data.draw(st.integers(y0 + 4, height))
    for form in BOX_FORMATS.values():
        numbers = in_format((x0, y0, x1, y1), form, sent=(width, height), original=(width, height))
        a, b, c, d = map(float, numbers)
        back = pixels(GivenBox((a, b, c, d), form.key), form, sent=(width, height), original=(width, height))
        if back is None:  # narrower than a thousandth of the side
            assert min((x1 - x0) / width, (y1 - y0) / height) < 0.005
            continue
        far = max(abs(p - q) for p, q in zip(back, (x0, y0, x1, y1), strict=True))
        assert far <= max(width, height) / 1000 + 1
        assert form.side is not None or overlap(back, (x0, y0, x1, y1)) == 1
