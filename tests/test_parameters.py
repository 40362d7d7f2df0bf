"""Functions and methods made of a model of their parameters."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import pytest

from uncanny.errors import UsageError
from uncanny.parameters import Parameters, path_of, takes


class Sizes(Parameters):
    """Parameters for tests."""

    width: int
    """Width in pixels."""
    depth: int = 8
    """Bits of a sample."""


@takes(Sizes)
def without_input(parameters: Sizes) -> tuple[int, int]:
    """Nothing but parameters."""
    return parameters.width, parameters.depth


@takes(Sizes, optional=True)
def of_one(name: str | None, parameters: Sizes) -> tuple[str | None, int]:
    """One input, which may be left out."""
    return name, parameters.width


@takes(Sizes)
def of_two(first: str, second: str, parameters: Sizes) -> tuple[str, str, int]:
    """Two inputs."""
    return first, second, parameters.depth


class Result:
    @takes(Sizes)
    def score(self, parameters: Sizes) -> dict[str, Any]:
        """What was given."""
        return parameters.given


def test_inputs_come_before_the_parameters() -> None:
    assert without_input(width=3) == (3, 8)
    assert of_one(width=3) == (None, 3)
    assert of_one("a", width=3) == ("a", 3)
    assert of_two("a", "b", width=3, depth=1) == ("a", "b", 1)
    assert str(inspect.signature(of_two)).startswith("(first: 'str', second: 'str', *, width: ")
    assert "depth: Bits of a sample." in str(without_input.__doc__)


def test_a_method_takes_parameters_too_and_passes_on_what_was_given() -> None:
    assert Result().score(width=3) == {"width": 3}
    with pytest.raises(UsageError, match=r"no option `depht`\. Did you mean `depth`?"):
        Result().score(width=3, depht=1)  # type: ignore[call-arg]


@pytest.mark.parametrize(
    ("function", "inputs", "keywords", "message"),
    [
        (of_two, ("a",), {"width": 3}, r"missing .*'second'\. Write of_two\(first, second, width=…\)"),
        (of_one, ("a",), {}, r"missing .*'width'"),
        (without_input, (3,), {}, r"too many .* Write without_input\(width=…\)"),
        (of_one, (), {"width": "3"}, "`width` must be a whole number, not '3'"),
    ],
)
def test_a_call_that_does_not_fit_says_what_does(
    function: Any, inputs: tuple[Any, ...], keywords: dict[str, Any], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        function(*inputs, **keywords)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (None, "must be a path, not None"),
        (b"a", "must be a path, not b'a'"),
        ("", "must not be empty"),
        ("a\0b", "must not contain a NUL character"),
    ],
)
def test_what_is_no_path_is_named(value: object, message: str) -> None:
    assert path_of("out", Path("a")) == path_of("out", "a") == Path("a")
    with pytest.raises(UsageError, match=f"`out` {message}"):
        path_of("out", value)
