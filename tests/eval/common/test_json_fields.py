"""The JSON of results: what fields become, and that no key of any score moves."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pytest

from tests.eval.common.test_score_json import ALL
from uncanny.eval.common.estimates import Estimate, Share
from uncanny.eval.common.json_fields import JsonFields, as_json, intervals_json, json_of

KEYS = Path(__file__).with_name("score_json_keys.json")


@dataclass(frozen=True)
class Inner(JsonFields):
    name: str
    places: tuple[int, ...] = (1, 2)


@dataclass(frozen=True)
class Outer(JsonFields):
    json_keys: ClassVar = "file=path difference inner=inners first=first.name **counts ci=shares"

    path: Path
    difference: Estimate
    first: Inner
    inners: dict[str, Inner]
    counts: dict[str, int]
    shares: dict[str, Share]


OUTER = Outer(
    Path("a/b"),
    Estimate(0.5, (0.25, 0.75)),
    Inner("x"),
    {"y": Inner("y", ())},
    {"n": 3, "m": 4},
    {"s": Share(0.5, 1, 2, (0.0, 1.0)), "t": Share(None, 0, 0)},
)


def test_the_keys_of_a_class_are_its_json_in_their_order() -> None:
    content = OUTER.to_json()
    assert list(content) == ["file", "difference", "ci", "inner", "first", "n", "m"]
    assert content | {"ci": None} == {
        "file": "a/b",
        "difference": 0.5,
        "ci": None,
        "inner": {"y": {"name": "y", "places": []}},
        "first": "x",
        "n": 3,
        "m": 4,
    }


def test_a_class_without_keys_has_all_its_fields() -> None:
    assert Inner("x").to_json() == json_of(Inner("x")) == {"name": "x", "places": [1, 2]}


def test_a_figure_is_its_value_followed_by_its_interval() -> None:
    assert json_of(OUTER, "difference") == {"difference": 0.5, "ci": [0.25, 0.75]}
    assert json_of(OUTER, "ci=shares") == {"ci": {"s": [0.0, 1.0], "t": None}}
    assert as_json(OUTER.shares) == {"s": 0.5, "t": None}
    assert intervals_json((0.0, 1.0)) == [0.0, 1.0]
    assert intervals_json(None) is None


def test_a_name_that_is_not_an_attribute_is_an_error() -> None:
    with pytest.raises(AttributeError, match="gone"):
        json_of(OUTER, "gone")


def keys_of(content: Any) -> Any:
    """The keys at all depths in their order, with the kinds of values; of a list those of its first entry."""
    if isinstance(content, dict):
        return {key: keys_of(value) for key, value in content.items()}
    if isinstance(content, list):
        return [keys_of(each) for each in content[:1]]
    return type(content).__name__


@pytest.mark.parametrize("score", [each[0] for each in ALL], ids=[each[0].__name__ for each in ALL])
def test_no_key_of_a_score_moves(score: Any, tmp_path: Path) -> None:
    """Other programs read these files; after a change that is meant, write the file anew."""
    known = json.loads(KEYS.read_text())[score.__name__]
    keys = keys_of(json.loads(json.dumps(score(tmp_path))))
    assert json.dumps(keys) == json.dumps(known)
