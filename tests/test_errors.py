"""The tree of errors as documented, and a kind for each that a step may end with."""

from __future__ import annotations

import copy
import inspect
import pickle
import re
import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.doors import every_module
from uncanny import errors
from uncanny.agents.common.context import STEP_ERRORS, FailureKind, failure_kind, step_failed
from uncanny.errors import (
    ImageError,
    ImageFault,
    ItemsError,
    ModelUnusableError,
    NotAlikeError,
    ParamsError,
    Problem,
    ProviderError,
    RecordError,
    StepFailedError,
    TransientError,
    UncannyError,
)
from uncanny.models.error_body import ErrorBody
from uncanny.schema import StepError

CLASSES = {
    value for value in vars(errors).values() if inspect.isclass(value) and issubclass(value, UncannyError)
}


def documented() -> dict[str, str | None]:
    """Each class in the tree of the module's docstring, and the class above it."""
    above: dict[str, str | None] = {}
    path: list[str] = []
    for line in (errors.__doc__ or "").splitlines():
        found = re.match(r"^ {4}([│ ]*(?:[├└]── )?)(\w+Error)\b", line)
        if found:
            depth = len(found[1]) // 4
            path[depth:] = [found[2]]
            above[found[2]] = path[depth - 1] if depth else None
    return above


def subclasses(error: type[UncannyError]) -> set[type[UncannyError]]:
    """The class itself and all below it, wherever they are defined."""
    assert len(list(every_module())) > 500
    classes, every = [error], set[type[UncannyError]]()
    while classes:
        each = classes.pop()
        every.add(each)
        classes += each.__subclasses__()
    return {each for each in every if each.__module__.startswith("uncanny.")}


def test_the_documented_tree_is_the_real_one() -> None:
    real = {each.__name__: each.__mro__[1].__name__ if each is not UncannyError else None for each in CLASSES}
    assert documented() == real


def test_all_that_is_raised_is_there_or_of_a_class_that_is() -> None:
    ours = subclasses(UncannyError)
    # How a server words an error; whoever catches them catches what they are.
    details = {each for each in ours if each.__module__ == "uncanny.models.http_errors"}
    assert ours - details == CLASSES
    assert all(each.__mro__[1] in CLASSES for each in details)


# A step's error says what its cause says, and others list all that is wrong.
@pytest.mark.parametrize(
    "error", sorted(CLASSES - {StepFailedError, ItemsError, NotAlikeError, ParamsError}, key=str)
)
def test_each_says_what_happened_and_then_the_remedy_in_one_line(error: type[UncannyError]) -> None:
    own: dict[type[UncannyError], dict[str, Any]] = {
        TransientError: {"kind": "server"},
        ImageError: {"kind": "empty"},
        RecordError: {"path": Path("a.jsonl"), "line": 3},
    }
    made = error("it broke", remedy="Mend it.", **own.get(error, {}))
    assert str(made).endswith("it broke. Mend it.")
    assert "\n" not in str(made)
    assert made.remedy == "Mend it."
    assert error.__doc__
    assert str(error("it broke", **own.get(error, {}))).endswith("it broke")


def test_a_message_that_has_its_full_stop_gets_no_second_one() -> None:
    assert str(errors.UsageError("it broke.", remedy="Mend it.")) == "it broke. Mend it."


def test_errors_that_list_say_what_then_each_then_the_remedy() -> None:
    items = ItemsError("a.jsonl", [Problem("a", "q1", "is missing", line=2)], remedy="Mend it.")
    alike = NotAlikeError("Not alike", ["models: a; b"], remedy="Mend it.")
    assert items.lines() == ("a.jsonl: 1 problem", "  line 2, item 'a', field q1: is missing", "Mend it.")
    assert alike.lines() == ("Not alike:", "  models: a; b", "Mend it.")
    params = ParamsError([("model", "is missing"), ("images.0", "is no image set")], remedy="Mend it.")
    assert params.lines() == ("model: is missing; images.0: is no image set. Mend it.",)
    assert (str(items), str(alike)) == ("\n".join(items.lines()), "\n".join(alike.lines()))


def test_what_is_wrong_in_the_same_way_in_many_places_is_one_line() -> None:
    """With the first few places; every finding is still there."""
    rows = [Problem(str(row), "original", "is missing", line=row) for row in range(2, 1002)]
    other = Problem("x", "edited", "is empty", line=3)
    shapes = [Problem("a", f"shapes.{n}.label", "'hand' is no category") for n in range(4)]
    three = [Problem(None, None, "not valid JSON", line=line) for line in (7, 8, 9)]
    items = ItemsError("a.jsonl", [rows[0], other, *rows[1:], *shapes, *three])
    assert len(items.problems) == 1008
    assert items.lines() == (
        "a.jsonl: 1008 problems",
        "  field original: is missing (1,000 times: line 2, item '2'; line 3, item '3'; line 4, item '4'; …)",
        "  line 3, item 'x', field edited: is empty",
        "  field shapes.*.label: 'hand' is no category (4 times: item 'a', field shapes.0.label; "
        "item 'a', field shapes.1.label; item 'a', field shapes.2.label; …)",
        *(f"  line {line}: not valid JSON" for line in (7, 8, 9)),
    )
    many = ItemsError("a", [Problem(None, None, f"wrong {n % 30}", line=n) for n in range(300)])
    assert many.lines()[-1] == "  and 100 more"
    assert len(many.lines()) == 22


def test_a_record_error_says_where() -> None:
    error = RecordError("no number", path=Path("a.jsonl"), line=3, field="size")
    assert str(error) == f"{Path('a.jsonl')}:3, field 'size': no number"


def test_every_provider_error_either_fails_a_step_with_a_kind_or_ends_the_model() -> None:
    for error in CLASSES:
        if issubclass(error, ProviderError) and error is not ProviderError:
            assert issubclass(error, STEP_ERRORS) != issubclass(error, ModelUnusableError), error


def test_each_kind_belongs_to_one_problem() -> None:
    kinds = [
        failure_kind(error("x", kind="server") if error is TransientError else error("x"))
        for error in STEP_ERRORS
    ]
    assert sorted(kinds) == sorted(typing.get_args(FailureKind))


def test_a_subclass_of_a_problem_has_its_kind() -> None:
    class Special(errors.RefusedError):
        pass

    record = step_failed("ObjectPerceiver", 1, None, Special("x", remedy="y")).record
    assert (record.kind, record.message) == ("refused", "x. y")


def test_every_fault_of_an_image_can_be_told() -> None:
    for kind in typing.get_args(ImageFault):
        assert ImageError("x", kind=kind).kind == kind


# What a class takes beside its message and remedy, or instead of them.
ARGUMENTS: dict[str, tuple[tuple[Any, ...], dict[str, Any]]] = {
    "RecordError": (("no number",), {"path": Path("a.jsonl"), "line": 3, "field": "size"}),
    "ItemsError": (("a.jsonl", [Problem("a", "q1", "is missing", line=2)]), {"remedy": "Mend it."}),
    "NotAlikeError": (("Not alike", ["models: a; b"]), {"remedy": "Mend it."}),
    "ParamsError": (([("model", "is missing")],), {"remedy": "Mend it."}),
    "ImageError": (("broken",), {"kind": "damaged", "remedy": "Replace it."}),
    "TransientError": (("later",), {"kind": "server", "retry_after": 2.5, "overloaded": True}),
    "RefusedError": (("no",), {"words": "I will not."}),
    "StepFailedError": (
        (ImageError("broken", kind="bomb"), StepError(agent="a", step=1, kind="defect", message="broken")),
        {},
    ),
    "Rejection": (("no",), {"body": ErrorBody("no", frozenset({"400"}), "top_p")}),
    "NothingThereError": (("nothing",), {"unknown_model": True}),
    "Flagged": (("no",), {"reason": "violence"}),
}


def chain(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__


def facts(error: BaseException) -> dict[str, Any]:
    """All that one can ask an error."""
    attributes = {
        name: facts(value) if isinstance(value, BaseException) else value
        for name, value in vars(error).items()
    }
    causes = [(type(each), each.args) for each in chain(error.__cause__)]
    suppressed = error.__suppress_context__
    return {"type": type(error), "text": str(error), **attributes, "causes": causes, "none": suppressed}


@pytest.mark.parametrize("protocol", [0, pickle.HIGHEST_PROTOCOL])
@pytest.mark.parametrize("error", sorted(subclasses(UncannyError), key=str))
def test_each_goes_from_one_process_to_another_as_it_is(error: type[UncannyError], protocol: int) -> None:
    arguments, named = ARGUMENTS.get(error.__name__, (("it broke",), {"remedy": "Mend it."}))
    made = error(*arguments, **named)
    made.__cause__ = RecordError("wrong", path=Path("b.jsonl"), line=1)
    made.__cause__.__cause__ = FileNotFoundError(2, "No such file", "b.jsonl")
    made.add_note("while reading b.jsonl")
    came = pickle.loads(pickle.dumps(made, protocol))
    assert facts(came) == facts(made)
    assert (came.lines(), came.__notes__) == (made.lines(), ["while reading b.jsonl"])
    assert facts(copy.copy(made)) == facts(made)


class UnpicklableError(Exception):
    """As those of SDKs: what it takes is not what it hands to `Exception`."""

    def __init__(self, message: str, *, response: object) -> None:
        super().__init__(message)
        self.response = response


def test_a_cause_that_cannot_be_pickled_is_told_in_words() -> None:
    made = ImageError("broken", kind="damaged")
    made.__cause__ = UnpicklableError("status 500", response=lambda: None)
    made.__cause__.__cause__ = OSError(5, "Input/output error")
    came = pickle.loads(pickle.dumps(made))
    assert [str(each) for each in chain(came)] == [
        "broken",
        "UnpicklableError: status 500",
        "[Errno 5] Input/output error",
    ]


def test_no_cause_stays_none() -> None:
    try:
        try:
            raise KeyError("x")
        except KeyError:
            raise ImageError("broken", kind="damaged") from None
    except ImageError as error:
        came = pickle.loads(pickle.dumps(error))
    assert (came.__cause__, came.__suppress_context__) == (None, True)
