"""Which names are one object, and what becomes of several descriptions of it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.agents.specialists import scene_object
from uncanny.agents.object_perceiver import merge_objects, object_key


@pytest.mark.parametrize(
    ("name", "other"),
    [
        ("The Cat", "cat"),
        ("ＣＡＴ", "cat"),
        ("a cat", "Cat"),
        ("an  apple", "apple"),
        ("tea pot", "teapot"),
        ("tea\tpot\n", "Tea Pot"),
        ("\u00a0the\u3000cat", "cat"),
        ("STRASSE", "straße"),
        ("ﬁsh", "fish"),
        ("caf\u00e9", "cafe\u0301"),
        ("cup²", "cup2"),
    ],
)
def test_one_object_under_two_names(name: str, other: str) -> None:
    assert object_key(name) == object_key(other)


@pytest.mark.parametrize(
    ("name", "other"),
    [
        ("person on the left", "person on the right"),
        ("cup 1", "cup 2"),
        ("cat", "cats"),
        ("a", "a cat"),
        ("the", "a"),
        ("ant", "t"),
        ("theatre", "atre"),
        ("another cup", "other cup"),
        ("left hand", "right hand"),
        ("hand (left)", "hand"),
        ("café", "cafe"),
    ],
)
def test_two_objects(name: str, other: str) -> None:
    assert object_key(name) != object_key(other)


@given(st.text(min_size=1).filter(str.strip))
def test_space_around_a_name_never_matters(name: str) -> None:
    assert object_key(name) == object_key(f"  {name}\n")


def test_objects_stand_in_order_of_first_mention_under_their_first_name() -> None:
    drafts = [["a dog", "The Cat"], ["cat", "tree", "Dog"]]
    merged = merge_objects([scene_object(name) for name in draft] for draft in drafts)
    assert [item.name for item in merged] == ["a dog", "The Cat", "tree"]


def test_the_longest_description_comes_first_and_none_twice() -> None:
    drafts = [
        [scene_object("cat", "Grey."), scene_object("cat", "A grey cat on the mat.")],
        [scene_object("Cat", "Grey."), scene_object("the cat", "It sleeps.")],
    ]
    (cat,) = merge_objects(drafts)
    assert cat.description.split("\n") == ["A grey cat on the mat.", "It sleeps.", "Grey."]


def test_no_drafts_and_empty_drafts_are_no_objects() -> None:
    assert merge_objects([]) == merge_objects([[], []]) == ()
