"""Parameters of jobs, made from those of the functions that the jobs run.

`job_parameters` turns the parameters of a protocol into a model for requests: its inputs and files become
references, and what only a program or a terminal can use is left out. Bounds, choices and help stay those of
the function.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping, Sequence
from os import PathLike
from types import NoneType, UnionType
from typing import Annotated, Any, Final, Literal, TypeVar, Union, get_args, get_origin

from annotated_types import BaseMetadata
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    create_model,
    model_validator,
)
from pydantic.config import JsonDict
from pydantic.fields import FieldInfo

from uncanny.parameters import Parameters, Shown, default_words, shown_as
from uncanny.protocol import Protocol
from uncanny.service.jobs.references import Reference, Source, Weights

T = TypeVar("T")


def _listed(value: object) -> object:
    return [value] if isinstance(value, str) else value


def _unique(values: list[T]) -> list[T]:
    if len(values) != len(set(map(str, values))):
        raise ValueError("names one of them twice")
    return values


def _printable(text: str) -> str:
    if not text.isprintable():
        raise ValueError("has characters that no name has")
    return text


def _stays(model: str) -> str:
    if ".." in model.split("/"):
        raise ValueError("leads to a folder above")
    return model


# A name behind the provider that cannot be taken for an option or a path by a server that is started for it.
_MODEL: Final = r"^[A-Za-z0-9._-]+(/\w[\w.:@/+-]*)?$"
# It may become the name of a folder.
_NAME: Final = r"^\w[\w .()+-]{0,59}$"
_HUB: Final = r"^\w[\w.-]*(/\w[\w.-]*)?$"
PATTERNS: Final = {
    _MODEL: "must be a provider and the name of its model, such as openai/gpt-4o, without blanks",
    _NAME: "needs a name before each, as NAME=…: letters, digits, blanks and . ( ) + - _, at most 60, a "
    "letter or digit first",
    _HUB: "must be the name of a model on the hub, such as roberta-large",
}
"""What each form of text takes, in words; a parameter's name stands before them."""

Word = Annotated[str, StringConstraints(min_length=1, max_length=200), AfterValidator(_printable)]
Name = Annotated[str, StringConstraints(pattern=_NAME)]
Hub = Annotated[str, StringConstraints(max_length=200, pattern=_HUB)]
References = Annotated[
    list[Reference],
    BeforeValidator(_listed),
    AfterValidator(_unique),
    Field(min_length=1, max_length=1000),
]
Sources = Annotated[
    list[Source], BeforeValidator(_listed), AfterValidator(_unique), Field(min_length=1, max_length=1000)
]
_PLACES: Final[Mapping[str, Any]] = {
    "file": Reference,
    "source": Source,
    "weights": Weights,
    "model": Annotated[
        str, StringConstraints(min_length=1, max_length=200, pattern=_MODEL), AfterValidator(_stays)
    ],
    "hub": Hub,
}


class Params(BaseModel):
    """Base of the parameters of every kind: no further keys, no text for a number.

    What is None is left to the function.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class PairParams(Params):
    """Base of those that take pairs: a file of them, or two folders."""

    @model_validator(mode="after")
    def _one_source(self) -> PairParams:
        pairs, original, edited = (getattr(self, name) for name in ("pairs", "original", "edited"))
        if (original is None) != (edited is None):
            raise ValueError("original and edited go together")
        if (pairs is None) == (original is None):
            raise ValueError("give either pairs, or original and edited")
        if getattr(self, "masks", None) is not None and original is None:
            raise ValueError("masks go with original and edited")
        return self


def job_parameters(protocol: Protocol) -> type[Params]:
    given = protocol.input
    taken: dict[str, Any] = {given.name: _input(protocol)}
    for kind in (protocol.parameters, protocol.more):
        for name, field in kind.model_fields.items():
            shown = shown_as(field)
            if "service" in shown.on:
                taken[name] = _field(field, shown, _group_of(kind, name))
    base = PairParams if given.kind == "pairs" else Params
    model = create_model(f"{protocol.name.title().replace('_', '')}Params", __base__=base, **taken)
    model.__doc__ = protocol.summary
    return model


def _input(protocol: Protocol) -> tuple[Any, Any]:
    given = protocol.input
    reference = Source if given.bundled else Reference
    kind: Any = reference
    if given.kind == "images":
        kind = Sources if given.bundled else References
    elif given.kind in ("generators", "named"):
        kind = Annotated[dict[Name, reference], Field(min_length=given.least, max_length=100)]  # type: ignore[valid-type]
    extra: JsonDict = {"x-first": True}
    if given.kind == "pairs":
        return kind | None, Field(None, description=given.help, json_schema_extra=extra)
    return kind, Field(description=given.help, json_schema_extra=extra)


def _group_of(kind: type[Parameters], name: str) -> str:
    """What forms fold a parameter under: the heading of the class that declares it."""
    declares = [each for each in kind.__mro__ if name in inspect.get_annotations(each)]
    return str(declares[-1].__dict__.get("heading") or "More options")


def _field(field: FieldInfo, shown: Shown, group: str) -> tuple[Any, Any]:
    """A parameter as a field of a job: of its type, bounds and help; None leaves it to the function."""
    extra = {
        "x-label": shown.label,
        "x-names": dict(shown.names),
        "x-first": shown.first,
        "x-group": group,
        "x-default": default_words(field),
    }
    if field.default is True:
        extra["x-on"] = True
    kind = _taken(field.annotation, shown)
    for bound in _bounds(field.metadata):
        kind = Annotated[kind, bound]
    about: dict[str, Any] = {
        "description": " ".join((field.description or "").split()),
        "json_schema_extra": {key: value for key, value in extra.items() if value},
    }
    if not field.is_required():
        return kind | None, Field(None, **about)
    if get_origin(_bare(kind)) is list:
        kind = Annotated[kind, Field(min_length=1)]
    return kind, Field(**about)


def _taken(annotation: Any, shown: Shown) -> Any:
    """What a request has in the place of a value of this type."""
    if get_origin(annotation) is Annotated:
        inner, *marks = get_args(annotation)
        kind = _taken(inner, shown)
        for bound in _bounds(marks):
            kind = Annotated[kind, bound]
        return kind
    origin = get_origin(annotation) or annotation
    if origin in (Union, UnionType):
        kinds = [*_alternatives(annotation)]
        plain = {get_origin(_bare(each)) or _bare(each) for each in kinds}
        if PathLike in plain or (shown.place and Mapping not in plain):
            words = [each for each in kinds if get_origin(each) is Literal]
            place = _PLACES[shown.place or "file"]
            return Annotated[words[0] | place, Field(union_mode="left_to_right")] if words else place
        # Of one or several the list, which takes one too.
        lists = [each for each in kinds if get_origin(_bare(each)) is Sequence]
        return _taken((lists or kinds)[0], shown)
    if origin is Literal or origin in (bool, int, float):
        return annotation
    if origin is Mapping:
        named: Any = _item(get_args(annotation)[1], shown)
        return dict[Name, named]
    if origin is Sequence:
        item: Any = _item(get_args(annotation)[0], shown)
        return Annotated[list[item], BeforeValidator(_listed), Field(max_length=200)]
    return _PLACES[shown.place] if shown.place else Word


def _alternatives(annotation: Any) -> Iterator[Any]:
    """The types of a union but None, those of unions in it too."""
    for each in get_args(annotation):
        if get_origin(_bare(each)) in (Union, UnionType):
            yield from _alternatives(_bare(each))
        elif each is not NoneType:
            yield each


def _bounds(marks: Sequence[Any]) -> Iterator[BaseMetadata]:
    for mark in marks:
        inner = mark.metadata if isinstance(mark, FieldInfo) else [mark]
        yield from (each for each in inner if isinstance(each, BaseMetadata))


def _bare(annotation: Any) -> Any:
    while get_origin(annotation) is Annotated:
        annotation = get_args(annotation)[0]
    return annotation


def _item(annotation: Any, shown: Shown) -> Any:
    return _PLACES[shown.place] if shown.place else _taken(annotation, shown)
