"""Options of a command, made from the parameters of the function that it calls.

`parameter_options` turns each field of a `Parameters` model into a click option: its name, type, bounds,
default and help come from the field. `given_parameters` turns what click has parsed into keyword arguments of
the function: only what the user gave, so that the defaults stand in one place.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from os import PathLike
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar, Union, get_args, get_origin

import click

from uncanny.cli.common.files import all_at_rest
from uncanny.cli.common.options import MOST, PATH, Real, Several, Whole
from uncanny.cli.common.places import Place, complete_folder, complete_model, named_files
from uncanny.demo.sets import BUNDLED
from uncanny.parameters import Parameters, Shown, default_words, flags_of, shown_as

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo

F = TypeVar("F", bound=Callable[..., Any])
_COMPLETIONS = {
    "model": complete_model,
    "fallback": complete_model,
    "roles": complete_model,
    "out": complete_folder,
}


def parameter_options(
    kind: type[Parameters], *, without: Collection[str] = (), optional: Collection[str] = ()
) -> Callable[[F], F]:
    """Options for all parameters that the command line has, but for those `without`.

    Required ones come first, then those that are the function's own. A command may do without what is
    `optional` although the function may not.
    """
    own = inspect.get_annotations(kind)
    fields = [
        (name, field)
        for name, field in kind.model_fields.items()
        if name not in without and "terminal" in shown_as(field).on
    ]
    fields.sort(key=lambda each: (not each[1].is_required(), each[0] not in own))

    def decorate(command: F) -> F:
        for name, field in reversed(fields):
            needed = field.is_required() and name not in optional
            command = _option(name, field, required=needed, section=_section(kind, name, field))(command)
        return command

    return decorate


def given_parameters(kind: type[Parameters], values: Mapping[str, Any]) -> dict[str, Any]:
    """Those of the parsed values that are parameters and were given; files that may have names by these."""
    known = kind.model_fields
    given = {name: value for name, value in values.items() if name in known and value not in (None, ())}
    return {
        name: all_at_rest(named_files(value, what=name)) if shown_as(known[name]).named else value
        for name, value in given.items()
    }


class Option(click.Option):
    """An option that `--help` shows in a `section` of its own."""

    def __init__(self, *names: Any, section: str = "", **more: Any) -> None:
        super().__init__(*names, **more)
        self.section = section


def _section(kind: type[Parameters], name: str, field: FieldInfo) -> str:
    """The heading of the class that has the field; none for what most people look for."""
    if field.is_required() or shown_as(field).first:
        return ""
    classes = (each for each in reversed(kind.__mro__) if name in inspect.get_annotations(each))
    return next((each.__dict__["heading"] for each in classes if "heading" in each.__dict__), "")


def _option(name: str, field: FieldInfo, *, required: bool, section: str) -> Callable[[F], F]:
    shown = shown_as(field)
    flag, off = flags_of(name, field)
    names = [each for each in (shown.short, flag) if each]
    kind = _without_none(field.annotation)
    more: dict[str, Any] = {
        "help": _help(field, shown),
        "required": required,
        "cls": Option,
        "section": section,
    }
    if name in _COMPLETIONS:
        more["shell_complete"] = _COMPLETIONS[name]
    if kind is bool:
        if off:
            more["help"] += f" [default: {(flag if field.default else off).removeprefix('--')}]"
        return click.option("/".join([flag, off]) if off else flag, name, is_flag=True, default=None, **more)
    if shown.metavar:
        more["metavar"] = shown.metavar
    if shown.named:
        return click.option(*names, name, type=Place(named=True), multiple=True, **more)
    if _is_repeatable(kind):
        item = _type_of(_item(kind), field)
        if _has_commas(kind):
            return click.option(*names, name, type=Several(item), multiple=True, callback=_flat, **more)
        return click.option(*names, name, type=item, multiple=True, **more)
    return click.option(*names, name, type=_type_of(kind, field), **more)


def _help(field: FieldInfo, shown: Shown) -> str:
    text = " ".join((field.description or "").split())
    kind = _without_none(field.annotation)
    if shown.named:
        text = f"{text.removesuffix('.')}; repeatable."
    elif _is_repeatable(kind):
        names = get_args(_item(kind)) if shown.metavar and _has_commas(kind) else ()
        text = f"{text.removesuffix('.')}{': ' * bool(names)}{', '.join(names)}; repeatable"
        text += ", or with commas." if _has_commas(kind) else "."
    default = default_words(field)
    return f"{text} [default: {default}]" if default else text


def _without_none(annotation: Any) -> Any:
    """A type without None, without what is said of it, and of several types the one to be typed in."""
    while get_origin(annotation) is Annotated:
        annotation = get_args(annotation)[0]
    if get_origin(annotation) not in (Union, UnionType):
        return annotation
    types = [_without_none(each) for each in get_args(annotation) if each is not NoneType]
    richest = [each for each in types if _is_repeatable(each) or _is_path(each)]
    return richest[0] if richest else types[0]


def _is_path(kind: Any) -> bool:
    origin = get_origin(kind) or kind
    return isinstance(origin, type) and issubclass(origin, PathLike)


def _is_repeatable(kind: Any) -> bool:
    origin = get_origin(kind)
    return isinstance(origin, type) and issubclass(origin, Sequence | Mapping)


def _item(kind: Any) -> Any:
    return str if issubclass(get_origin(kind), Mapping) else _without_none(get_args(kind)[0])


def _has_commas(kind: Any) -> bool:
    """Whether the items of a list are such that a comma stands in none of them."""
    item = _item(kind)
    return item in (int, float) or get_origin(item) is Literal


def _flat(_ctx: click.Context, _option: click.Parameter, values: Sequence[list[Any]]) -> tuple[Any, ...]:
    return tuple(each for listed in values for each in listed)


def _type_of(kind: Any, field: FieldInfo) -> click.ParamType[Any]:
    if get_origin(kind) is Literal:
        return click.Choice([*map(str, get_args(kind))])
    if kind is int:
        return Whole(_bound(field, "ge", 0), _bound(field, "le", MOST))
    if kind is float:
        above = _bound(field, "gt", None)
        least = _bound(field, "ge", 0.0) if above is None else above
        return Real(least, _bound(field, "le", MOST), above=above is not None)
    if _is_path(kind):
        words = [
            str(word)
            for each in _parts(field.annotation)
            if get_origin(each) is Literal
            for word in get_args(each)
        ]
        return Place(*words) if words else PATH
    match shown_as(field).place:
        case "source":
            return Place(*BUNDLED)
        case "file":
            return PATH
        case "hub" | "weights":
            return Place(free=True)
    return click.STRING


def _bound(field: FieldInfo, name: str, otherwise: Any) -> Any:
    of_parts = (
        mark
        for each in _parts(field.annotation)
        if get_origin(each) is Annotated
        for said in get_args(each)[1:]
        for mark in getattr(said, "metadata", [said])
    )
    return next(
        (getattr(each, name) for each in (*field.metadata, *of_parts) if hasattr(each, name)), otherwise
    )


def _parts(annotation: Any) -> Iterator[Any]:
    """A type and all that it is made of."""
    yield annotation
    for each in get_args(annotation)[: 1 if get_origin(annotation) is Annotated else None]:
        yield from _parts(each)
