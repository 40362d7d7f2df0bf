"""Which records belong together, and that no group is on two sides of a split."""

from __future__ import annotations

from collections import defaultdict
from itertools import combinations
from math import nan
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from uncanny.errors import UsageError
from uncanny.eval.common.groups import KNOWN, Groups, ImageGroups, group_of
from uncanny.eval.common.matching import find_originals, stem_parts
from uncanny.exports.data import split_of
from uncanny.schema import Annotation


def record(image: str, sha256: str | None = None, **columns: Any) -> Annotation:
    content = {"image": image, "sha256": sha256 or image, "width": 1, "height": 1, "status": "ok"}
    content |= {"model": "m", "prompts": "p"} | ({"columns": columns} if columns else {})
    return Annotation.model_validate(content)


def grouped(records: list[Annotation], by: str | None = None) -> list[set[str]]:
    groups, members = Groups(by), defaultdict[str, set[str]](set)
    for each in records:
        groups.add(each)
    groups.check()
    for each in records:
        members[groups.of(each)].add(each.image)
    assert groups.number == len(members)
    assert groups.total == len(records)
    return sorted(members.values(), key=min)


def test_sides_of_a_pair_are_together_and_others_by_themselves() -> None:
    records = [record("a", pair="1"), record("b", pair="1"), record("c", pair=2), record("d")]
    assert grouped(records) == [{"a", "b"}, {"c"}, {"d"}]
    assert grouped(records, "image") == [{"a"}, {"b"}, {"c"}, {"d"}]


@pytest.mark.parametrize("order", [1, -1])
def test_an_original_is_with_its_edits_wherever_it_lies(order: int) -> None:
    records = [
        record("photos/street.png"),
        record("edits/1.png", original="street.png"),
        record("edits/2.png", original="../photos/street.jpg"),
        record("edits/street.2.png", original="other"),
    ]
    assert grouped(records[::order]) == [
        {"edits/1.png", "edits/2.png", "photos/street.png"},
        {"edits/street.2.png"},
    ]


def test_images_of_one_name_are_not_one_group_unless_somebody_names_them() -> None:
    assert grouped([record("a/1.png"), record("b/1.png"), record("c.png", original="2")]) == [
        {"a/1.png"},
        {"b/1.png"},
        {"c.png"},
    ]
    assert grouped([record("a/1.png"), record("b/1.jpg")], "stem") == [{"a/1.png", "b/1.jpg"}]


@pytest.mark.parametrize("folder", ["", "data/", "../../data/"])
@pytest.mark.parametrize("beside", [False, True])
def test_originals_of_one_file_name_are_told_apart_by_their_folders(folder: str, beside: bool) -> None:
    """Twenty scenes of four images; a table calls originals by their path, or from the folder of the edit."""
    records, scenes = [], []
    for scene in range(20):
        original = f"{scene:02}/original.png"
        edits = [f"{folder}{scene:02}/{name}.png" for name in ("edited", "b", "c")]
        scenes.append({f"{folder}{original}", *edits})
        records += [
            record(f"{folder}{original}"),
            *(record(edit, original="original.png" if beside else original) for edit in edits),
        ]
    assert grouped(records) == scenes


def test_an_image_of_the_same_file_name_is_not_an_original_that_lies_elsewhere() -> None:
    edits = [record("e/1.png", original="photos/001.png"), record("e/2.png", original="001.jpg")]
    unrelated, itself = record("gen3/001.png"), record("../data/photos/001.png")
    assert grouped([edits[0], unrelated]) == [{"e/1.png"}, {"gen3/001.png"}]
    together = {"e/1.png", itself.image}
    # The bare name may be that of either image.
    for records in ([*edits, unrelated, itself], [itself, unrelated, *edits]):
        assert grouped(records) == [together, {"e/2.png"}, {"gen3/001.png"}]
    assert grouped([*edits, itself]) == [together | {"e/2.png"}]
    assert grouped([*edits, record("e/3.png", original="drawings/001.png")]) == [
        {"e/1.png"},
        {"e/2.png"},
        {"e/3.png"},
    ]


@pytest.mark.parametrize(
    ("named", "images", "image"),
    [
        (["a/1", "x/a/1"], ["1"], "1"),
        (["a/1", "b/1"], ["1"], None),
        (["1"], ["a/1", "x/a/1"], None),
        (["1"], ["1", "a/1"], "1"),
        (["photos/1"], ["photos/1", "1"], "photos/1"),
        (["x/a/1"], ["1", "a/1"], "a/1"),
        (["1", "photos/1"], ["a/1"], None),
        (["2"], ["12", "2/1"], None),
    ],
)
def test_an_original_is_the_one_image_that_fits(
    named: list[str], images: list[str], image: str | None
) -> None:
    found = find_originals([stem_parts(each) for each in named], [stem_parts(each) for each in images])
    assert {each.image for each in found.values()} == {None if image is None else stem_parts(image)}


def test_what_two_columns_say_adds_up() -> None:
    records = [record("a", pair="1"), record("b", pair="1", original="x"), record("c", original="x.png")]
    assert grouped(records) == [{"a", "b", "c"}]


def test_the_same_picture_is_in_one_group_whatever_the_columns_say() -> None:
    records = [record("a", "s", pair="1"), record("b", "s", pair="2"), record("c", pair="2")]
    assert grouped(records) == [{"a", "b", "c"}]
    assert grouped(records, "image") == [{"a", "b"}, {"c"}]


def test_prompts_group_only_where_that_is_asked_for() -> None:
    records = [record("a", prompt="a cat"), record("b", prompt="a cat")]
    assert grouped(records) == [{"a"}, {"b"}]
    assert grouped(records, "prompt") == [{"a", "b"}]


def test_further_keys_of_records_group_as_columns_do() -> None:
    other = Annotation.model_validate(record("a").model_dump() | {"prompt_id": 7})
    assert group_of(other, "prompt_id") == group_of(record("b", prompt_id="7"), "prompt_id") == "7"


def test_a_column_that_nobody_has_is_named_with_those_there_are() -> None:
    with pytest.raises(UsageError, match="no image has the column 'promt'") as refusal:
        grouped([record("a", prompt="x"), record("b")], "promt")
    assert "'prompt'" in str(refusal.value.remedy)
    with pytest.raises(UsageError, match="no image has the column"):
        grouped([record("a")], "prompt")
    assert grouped([record("a", prompt="x"), record("b")], "prompt") == [{"a"}, {"b"}]


VALUES = st.sampled_from(["1", "2", "3", "a", "b.png"])
RECORDS = st.lists(
    st.tuples(
        st.sampled_from(["x/a.png", "y/a.png", "b.png", "1", "c.jpg", "d.webp"]),
        st.sampled_from(["p", "q", "r", "s", "t"]),
        st.dictionaries(st.sampled_from([*KNOWN, "prompt"]), VALUES, max_size=3),
    ),
    unique_by=lambda each: each[0],
    max_size=6,
)


@given(RECORDS, st.sampled_from([None, "stem", "image", "prompt"]), st.floats(0, 1))
def test_no_group_is_on_two_sides(made: list[tuple[str, str, Any]], by: str | None, fraction: float) -> None:
    records = [record(image, digest, **columns) for image, digest, columns in made]
    groups = Groups(by)
    for each in records:
        groups.add(each)
    sides = [split_of(groups.of(each), fraction) for each in records]
    columns = KNOWN if by is None else () if by == "image" else (by,)
    for (one, side), (other, other_side) in combinations(zip(records, sides, strict=True), 2):
        named = [name for name in columns if group_of(one, name) is not None]
        if one.sha256 == other.sha256 or any(group_of(one, n) == group_of(other, n) for n in named):
            assert side == other_side


def test_sides_do_not_depend_on_what_else_is_there() -> None:
    first = [record("a", pair="1"), record("b", pair="1"), record("c")]
    sides = []
    for records in (first, [record("z", pair="9"), *first[::-1], record("y")]):
        groups = Groups()
        for each in records:
            groups.add(each)
        sides.append({each.image: split_of(groups.of(each), 0.5) for each in first})
    assert sides[0] == sides[1]


def test_an_image_by_itself_is_where_it_was_before_there_were_groups() -> None:
    alone = record("c", "0" * 64)
    groups = Groups()
    groups.add(alone)
    assert groups.of(alone) == "0" * 64
    assert groups.name(alone) is None


@pytest.mark.parametrize(
    ("values", "groups"),
    [
        ([nan, nan, 1.0, np.float64("nan")], [["a"], ["b"], ["c"], ["d"]]),
        (["", "   ", "7", "\t"], [["a"], ["b"], ["c"], ["d"]]),
        ([7, 7.0, "7", " 7 "], [["a", "b", "c", "d"]]),
        ([np.int64(7), np.float32(7), np.float64(7.5), 7.5], [["a", "b"], ["c", "d"]]),
        ([10**25, 10**25 + 1, "7", "07"], [["a"], ["b"], ["c"], ["d"]]),
        ([np.bool_(True), "True", [1], {"a": 1}], [["a", "b"], ["c"], ["d"]]),
    ],
    ids=["nan", "blank", "seven", "numpy", "large", "odd"],
)
def test_gaps_of_tables_hold_nothing_together(values: list[object], groups: list[list[str]]) -> None:
    records = [record(image, scene=value) for image, value in zip("abcd", values, strict=True)]
    assert grouped(records, "scene") == [set(each) for each in groups]


# Python writes no whole number of more than 4,300 digits, and records in memory may have one.
@pytest.mark.parametrize("digits", [308, 309, 400, 4300, 4301, 4700])
def test_numbers_of_any_length_are_values(digits: int) -> None:
    low, high = 10**digits - 2, 10**digits - 1
    records = [record(name, pair=value) for name, value in zip("abc", [low, low, high], strict=True)]
    assert grouped(records) == [{"a", "b"}, {"c"}]
    assert len(group_of(records[0], "pair") or "") > 0.8 * digits


@pytest.mark.parametrize("value", ["", " ", nan, [1]])
def test_a_column_without_any_value_is_said_to_be_empty(value: object) -> None:
    with pytest.raises(UsageError, match="the column 'scene' is empty for all images"):
        grouped([record("a", scene=value), record("b", scene=value)], "scene")


def test_one_group_is_not_called_groups() -> None:
    one = ImageGroups("pair", np.zeros(4, dtype=int))
    assert one.words().startswith("4 images come in 1 group (by pair)")
    assert one.short.startswith("4 images in 1 group by pair")
