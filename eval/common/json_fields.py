"""The JSON of results, derived from their fields.

A result names its keys once, in the order of the file; what a value becomes depends only on its type.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from operator import attrgetter
from pathlib import PurePath
from typing import Any, ClassVar

from pydantic import BaseModel

from uncanny.eval.common.estimates import Estimate, Share


class JsonFields:
    """A dataclass whose JSON is its fields in their order, or those that `json_keys` names (`json_of`)."""

    __slots__ = ()
    json_keys: ClassVar[str] = ""

    def to_json(self) -> dict[str, Any]:
        """The fields as JSON has them; None is what was not measured."""
        return json_of(self, self.json_keys)


def json_of(result: object, keys: str = "") -> dict[str, Any]:
    """The JSON of `result`: its attributes in the order of `keys`, or without keys all fields of a dataclass.

    `keys` are divided by spaces. `name` is a key and an attribute, `key=name.part` a key with another
    attribute, and `**name` the entries of a mapping. An `Estimate` or `Share` becomes its value, followed
    by its interval under `ci`; under the key `ci` stand only intervals. Raises AttributeError.
    """
    names = keys.split() or [each.name for each in fields(result)]  # type: ignore[arg-type]
    return dict(entry for name in names for entry in _entries(result, name))


def _entries(result: object, name: str) -> Iterator[tuple[str, Any]]:
    key, _, attribute = name.partition("=")
    value = attrgetter((attribute or key).removeprefix("**"))(result)
    if name.startswith("**"):
        yield from as_json(value).items()
    elif key == "ci":
        yield key, intervals_json(value)
    else:
        yield key, as_json(value)
        if isinstance(value, Estimate | Share):
            yield "ci", intervals_json(value)


def as_json(value: Any) -> Any:
    """A value as JSON has it: figures without their intervals, dataclasses by field, paths as text."""
    if isinstance(value, Estimate | Share):
        return value.value
    if hasattr(value, "to_json"):
        return value.to_json()
    if isinstance(value, Mapping):
        return {key: as_json(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [as_json(each) for each in value]
    if isinstance(value, BaseModel):
        return value.model_dump()
    if is_dataclass(value):
        return json_of(value)
    return str(value) if isinstance(value, PurePath) else value


def intervals_json(value: Any) -> Any:
    """The two ends of a figure or interval, or those of each in a mapping; None where there is none."""
    if isinstance(value, Mapping):
        return {key: intervals_json(each) for key, each in value.items()}
    ends = value.interval if isinstance(value, Estimate | Share) else value
    return None if ends is None else list(ends)


def with_ends(figures: Mapping[Any, Estimate | Share]) -> dict[str, float | None]:
    """The cells of a row: each figure with the ends of its interval under names of their own."""
    row: dict[str, float | None] = {}
    for name, figure in figures.items():
        low, high = figure.interval or (None, None)
        row |= {name: figure.value, f"{name}_low": low, f"{name}_high": high}
    return row
