"""Parameters of public functions: each is written once, as a field of a `Parameters` model.

A field has the parameter's name, type, bounds, default and help. The Python function, the command line, files
of options, the service and the documentation are made from it. A value that does not fit raises UsageError
before anything runs.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import wraps
from os import PathLike
from pathlib import Path
from types import MappingProxyType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    ClassVar,
    Concatenate,
    Literal,
    ParamSpec,
    Protocol,
    TypeVar,
    cast,
    get_args,
    overload,
)

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    TypeAdapter,
    ValidationError,
    ValidationInfo,
)
from pydantic_core import PydanticUndefined

from uncanny.errors import UsageError, writable
from uncanny.wording import Interface, either, option, shown

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo
    from pydantic_core import ErrorDetails

P = ParamSpec("P")
T = TypeVar("T")
I = TypeVar("I")  # noqa: E741
J = TypeVar("J")
M = TypeVar("M", bound="Parameters")
I_contra = TypeVar("I_contra", contravariant=True)
M_co = TypeVar("M_co", bound="Parameters", covariant=True)
T_co = TypeVar("T_co", covariant=True)


class Parameters(BaseModel):
    """Base of the parameters of a function. The docstring of a field is its help on every interface.

    `heading` is what `--help` puts above the options of a class.
    None stands for the default where a field does not take None. Scalars of NumPy count as numbers of Python.
    Raises UsageError for a value that does not fit, and for a name that is not a parameter.
    """

    heading: ClassVar[str] = ""
    model_config = ConfigDict(
        strict=True,
        frozen=True,
        extra="forbid",
        arbitrary_types_allowed=True,
        allow_inf_nan=False,
        use_attribute_docstrings=True,
        defer_build=True,
    )

    def __init__(self, **values: Any) -> None:
        try:
            super().__init__(**self._given(values))
        except ValidationError as error:
            raise explained(error, type(self)) from None

    @property
    def given(self) -> dict[str, Any]:
        """Those that were given, by name: what makes this object once more."""
        return {name: getattr(self, name) for name in self.model_fields_set}

    def part(self, kind: type[M], **more: Any) -> M:
        """The parameters of this object that another kind has, too, as that kind; `more` goes before them."""
        own = {name: value for name, value in self.given.items() if name in kind.model_fields}
        return kind(**own | more)

    @classmethod
    def _given(cls, values: Mapping[str, Any]) -> dict[str, Any]:
        known = cls.model_fields
        return {
            name: value.item() if _is_numpy_scalar(value) else value
            for name, value in values.items()
            if value is not None or name not in known or takes_none(known[name].annotation)
        }


def _is_numpy_scalar(value: object) -> bool:
    return type(value).__module__ == "numpy" and getattr(value, "ndim", None) == 0


@dataclass(frozen=True, slots=True)
class Shown:
    """How interfaces show a parameter, where its name and type do not say it.

    `on` are the interfaces that have it. On the command line `flag` is the option, `short` its one letter,
    `off` the option that says False, and `metavar` stands for the value; `named` ones are files, each of
    which may have a name, as NAME=FILE. `default` says in words what None means.

    On a service, `place` says what a text names: a file (as every `Place` and `Folder`), a file or `scenes`,
    a model, a model of a hub, or a folder of weights. In forms `label` and `names` name it and its choices.
    """

    on: tuple[Interface, ...] = ("python", "terminal", "service")
    flag: str = ""
    short: str = ""
    off: str = ""
    metavar: str = ""
    named: bool = False
    default: str = ""
    place: Literal["", "file", "source", "model", "hub", "weights"] = ""
    label: str = ""
    names: Mapping[str, str] = field(default_factory=dict, hash=False)
    first: bool = False


PYTHON = Shown(on=("python",))
HERE = Shown(on=("python", "terminal"))


def shown_as(field: FieldInfo) -> Shown:
    """How interfaces show a parameter."""
    return next((each for each in field.metadata if isinstance(each, Shown)), Shown())


def flags_of(name: str, field: FieldInfo | None) -> tuple[str, str]:
    """The option of a parameter on a command line, and the option that says False or an empty text."""
    look = Shown() if field is None else shown_as(field)
    flag = look.flag or f"--{name.replace('_', '-')}"
    default = None if field is None else field.default
    return flag, look.off or (f"--no-{flag.removeprefix('--')}" if default is True else "")


def default_words(field: FieldInfo) -> str:
    """The default of a parameter in words; empty for a switch, and where nothing is the default."""
    value = field.default
    if field.default_factory is not None and not field.default_factory_takes_validated_data:
        value = field.default_factory()  # type: ignore[call-arg]
    if value is PydanticUndefined or value is None or isinstance(value, bool | dict):
        return shown_as(field).default
    if isinstance(value, tuple | list):
        return shown_as(field).default or ",".join(map(str, value))
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:g}" if isinstance(value, float) else str(value)


def _named(value: Any) -> Any:
    """Refuses names that no file takes: the system would, or what is written could not be read again."""
    text = os.fspath(value)
    if isinstance(text, str) and "\0" in text:
        raise ValueError("must not contain a NUL character")
    return value


def _storable(value: Any) -> Any:
    text = os.fspath(value)
    if writable(text) != text:
        raise ValueError("must be valid Unicode, or it could not be written down")
    return value


def _not_empty(value: Any) -> Any:
    if not os.fspath(value):
        raise ValueError("must not be empty")
    return value


def _folder(value: Any) -> Any:
    if not Path(value).is_dir():
        raise ValueError("must be a folder that exists")
    return value


Text = Annotated[str, AfterValidator(_storable)]
Place = Annotated[str | PathLike[str], AfterValidator(_named), AfterValidator(_not_empty)]
Folder = Annotated[
    str | PathLike[str], AfterValidator(_named), AfterValidator(_storable), AfterValidator(_folder)
]


def callback(arguments: int = 1) -> BeforeValidator:
    """A parameter that is a plain function of so many arguments."""

    def check(value: object, info: ValidationInfo) -> object:
        check_callback(str(info.field_name), value, arguments)
        return value

    return BeforeValidator(check)


CALLBACK = callback()


def takes_none(annotation: Any) -> bool:
    """Whether None is a value of the type."""
    return annotation is None or annotation is Any or type(None) in get_args(annotation)


def explained(error: ValidationError, kind: type[Parameters]) -> UsageError:
    """The first thing that is wrong, in words for the person who wrote it."""
    wrong = [each for each in error.errors() if each["type"] != "default_factory_not_called"]
    # Of a value that is none of several types, what it should rather be stands last.
    first = [each for each in wrong if each["loc"][:1] == wrong[0]["loc"][:1]][-1]
    if not first["loc"]:
        return UsageError(in_words(first))
    name = str(first["loc"][0])
    if first["type"] == "extra_forbidden":
        near = get_close_matches(name, kind.model_fields, n=1)
        remedy = f"Did you mean {option(near[0])}?" if near else "Remove it."
        return UsageError(f"There is no option {option(name)}", remedy=remedy)
    if first["type"] == "missing":
        return UsageError(f"{option(name)} is missing")
    return UsageError(f"{option(name)} {in_words(first)}, not {shown(first['input'])}")


_INSTANCES = {"PathLike": "must be a path", "Sequence": "must be a list", "Mapping": "must be a mapping"}
_WORDS: Mapping[str, Callable[[Mapping[str, Any]], str]] = {
    "missing": lambda _: "is missing",
    "extra_forbidden": lambda _: "is not a parameter",
    "string_too_short": lambda _: "must not be empty",
    "string_too_long": lambda about: f"must have at most {about['max_length']:,} characters",
    "too_short": lambda about: f"must have at least {about['min_length']:,}",
    "too_long": lambda about: f"must have at most {about['max_length']:,}",
    "greater_than": lambda about: f"must be more than {_figure(about['gt'])}",
    "greater_than_equal": lambda about: f"must be at least {_figure(about['ge'])}",
    "less_than": lambda about: f"must be less than {_figure(about['lt'])}",
    "less_than_equal": lambda about: f"must be at most {_figure(about['le'])}",
    "finite_number": lambda _: "must be a finite number",
    "literal_error": lambda about: f"must be {about['expected']}",
    **dict.fromkeys(("int_type", "int_parsing", "int_from_float"), lambda _: "must be a whole number"),
    **dict.fromkeys(("float_type", "float_parsing"), lambda _: "must be a number"),
    "string_type": lambda _: "must be text",
    "bool_type": lambda _: either("must be True or False", service="must be true or false"),
    "path_type": lambda _: "must be a path",
    **dict.fromkeys(("mapping_type", "dict_type"), lambda _: "must be a mapping"),
    **dict.fromkeys(("list_type", "tuple_type", "sequence_str"), lambda _: "must be a list"),
    **dict.fromkeys(("model_type", "model_attributes_type"), lambda _: "must be an object"),
    "json_invalid": lambda about: f"must be JSON: {about['error']}",
    "is_instance_of": lambda about: _INSTANCES.get(about["class"], f"must be a {about['class']}"),
}


def in_words(error: ErrorDetails, patterns: Mapping[str, str] = MappingProxyType({})) -> str:
    """What is wrong with a value, to follow the name of its parameter; no full stop.

    `patterns` says of regular expressions what they take.
    """
    about = error.get("ctx", {})
    words = _WORDS.get(error["type"])
    if words is None:
        return patterns.get(about.get("pattern", ""), error["msg"].removeprefix("Value error, "))
    return words(about)


def _figure(value: float) -> str:
    return f"{int(value):,}" if value == int(value) else str(value)


class _WithOptionalInput(Protocol[I_contra, P, T_co]):
    """A function whose input may be left out."""

    @overload
    def __call__(self, inputs: I_contra, /, *args: P.args, **kwargs: P.kwargs) -> T_co: ...
    @overload
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> T_co: ...


class _Taking(Protocol[P, M_co]):
    """What `takes` makes of a function of none, one or two inputs and the parameters, for type checkers."""

    @overload
    def __call__(self, function: Callable[[M_co], T]) -> Callable[P, T]: ...
    @overload
    def __call__(self, function: Callable[[I, M_co], T]) -> Callable[Concatenate[I, P], T]: ...
    @overload
    def __call__(self, function: Callable[[I, J, M_co], T]) -> Callable[Concatenate[I, J, P], T]: ...


class _TakingOptional(Protocol[P, M_co]):
    """What `takes` makes of a function whose input may be left out."""

    def __call__(self, function: Callable[[I, M_co], T]) -> _WithOptionalInput[I, P, T]: ...


@overload
def takes(parameters: Callable[P, M], *needed: str) -> _Taking[P, M]: ...
@overload
def takes(parameters: Callable[P, M], *needed: str, optional: Literal[True]) -> _TakingOptional[P, M]: ...
def takes(parameters: Any, *needed: str, optional: bool = False) -> Any:
    """Make a function of its inputs and a model of its parameters one of keyword parameters.

    Its signature, and the list of parameters in its docstring, are those of the model. With `optional` the
    input may be left out, and is None then. A method of a result is such a function, too: its input is the
    result. `needed` are parameters that the model can do without and the function cannot.
    """
    fields: Mapping[str, FieldInfo] = parameters.model_fields

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        own = inspect.signature(function)
        inputs = list(own.parameters.values())[:-1]
        if optional:
            inputs = [each.replace(default=None) for each in inputs]
        keywords = [
            inspect.Parameter(
                each,
                inspect.Parameter.KEYWORD_ONLY,
                annotation=field.annotation,
                default=inspect.Parameter.empty
                if each in needed or field.is_required()
                else (None if field.default is PydanticUndefined else field.default),
            )
            for each, field in sorted(fields.items(), key=lambda item: not item[1].is_required())
        ]
        name = function.__qualname__.removesuffix(".__init__")

        def bound(args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
            check_call(call, args, kwargs, name)
            given = call.__signature__.bind(*args, **kwargs).arguments  # type: ignore[attr-defined]
            for each in needed:
                if given.get(each) is None:
                    raise UsageError(f"{option(each)} is missing")
            return [*(given.pop(each.name, None) for each in inputs), parameters(**given)]

        # LangChain and other frameworks await only what they see to be a coroutine function.
        if inspect.iscoroutinefunction(function):

            @wraps(function)
            async def call(*args: Any, **kwargs: Any) -> Any:
                return await function(*bound(args, kwargs))
        else:

            @wraps(function)
            def call(*args: Any, **kwargs: Any) -> Any:
                return function(*bound(args, kwargs))

        call.__signature__ = own.replace(parameters=[*inputs, *keywords])  # type: ignore[attr-defined]
        words = (
            f"    {each}: {' '.join((field.description or '').split())}" for each, field in fields.items()
        )
        call.__doc__ = "\n".join([inspect.cleandoc(function.__doc__ or ""), "", "Args:", *words])
        return call

    return decorate


def check_call(
    function: Callable[..., object], args: tuple[object, ...], kwargs: Mapping[str, object], name: str
) -> None:
    """Raises UsageError for a call that does not fit `function`, with the name that was probably meant.

    Options are the keys of the `TypedDict` that its last parameter unpacks, where that is loaded.
    """
    signature = inspect.signature(function)
    function = inspect.unwrap(function)
    own = [each for each in signature.parameters.values() if each.kind is not each.VAR_KEYWORD]
    try:
        bound = signature.bind_partial(*args, **kwargs).arguments
    except TypeError:  # too many, which is told below
        bound = dict(kwargs)
    missing = [each.name for each in own if each.default is each.empty and each.name not in bound]
    options = _option_names(function, signature)
    for keyword in kwargs.keys() - {each.name for each in own}:
        if options is None:
            near = get_close_matches(keyword, missing, n=1)
        elif keyword not in options:
            near = get_close_matches(keyword, [*missing, *(each.name for each in own), *options], n=1)
        else:
            continue
        if near or options is not None:
            remedy = f"Did you mean {option(near[0])}?" if near else "Remove it."
            raise UsageError(f"There is no option {option(keyword)}", remedy=remedy)
    try:
        signature.bind(*args, **kwargs)
    except TypeError as error:
        raise UsageError(f"{name}(): {error}", remedy=f"Write {_call(name, own)}.") from None


def _option_names(function: Callable[..., object], signature: inspect.Signature) -> frozenset[str] | None:
    """Of a function without further keywords none; None where they are not known."""
    last = [each for each in signature.parameters.values() if each.kind is each.VAR_KEYWORD]
    if not last:
        return frozenset()
    unpacked = str(last[0].annotation)
    if not unpacked.startswith("Unpack["):
        return None
    kind = getattr(function, "__globals__", {}).get(unpacked.removeprefix("Unpack[").removesuffix("]"))
    return None if kind is None else frozenset(kind.__annotations__)


def _call(name: str, parameters: Sequence[inspect.Parameter]) -> str:
    """How a function is called with what it cannot do without."""
    needed = [each for each in parameters if each.default is each.empty and each.name != "self"]
    positional = [each.name for each in needed if each.kind is each.POSITIONAL_OR_KEYWORD]
    by_name = [f"{each.name}=…" for each in needed if each.kind is each.KEYWORD_ONLY]
    return f"{name}({', '.join([*positional, *by_name])})"


_PLACE: TypeAdapter[str | PathLike[str]] = TypeAdapter(Place, config=ConfigDict(defer_build=True))


def path_of(name: str, value: object) -> Path:
    """`value` as a path. Raises UsageError that names the parameter, for what cannot be one."""
    try:
        return Path(_PLACE.validate_python(value, strict=True))
    except ValidationError as error:
        raise UsageError(f"{option(name)} {in_words(error.errors()[-1])}, not {shown(value)}") from None


def check_choices(name: str, value: object, known: Sequence[T]) -> tuple[T, ...]:
    """Those of `known` that are in `value`, a list of some of them, each once and in the order of `known`.

    Raises UsageError that names the parameter, for anything else and for none.
    """
    wrong: list[object] = [value]
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        wrong = [each for each in value if each not in known]
    if wrong or not value:
        what = f"must be a list of some of these, not {shown(value)}" if wrong else "must name at least one"
        raise UsageError(f"{option(name)} {what}", remedy=f"Choose from {', '.join(map(str, known))}.")
    return tuple(each for each in known if each in cast("Sequence[object]", value))


def check_callback(name: str, value: object, arguments: int = 1) -> None:
    """Raises UsageError where `value` is neither None nor a plain function that takes so many arguments."""
    if value is None:
        return
    if not callable(value):
        raise UsageError(f"{option(name)} must be a function, not {shown(value)}")
    if inspect.iscoroutinefunction(value) or inspect.iscoroutinefunction(type(value).__call__):
        raise UsageError(
            f"{option(name)} is an async function, and callbacks are called, not awaited",
            remedy="Give a plain function; it may start a task.",
        )
    try:
        inspect.signature(value).bind(*[None] * arguments)
    except ValueError:  # a few callables in C have no signature
        return
    except TypeError as error:
        number = "one argument" if arguments == 1 else f"{arguments} arguments"
        raise UsageError(
            f"{option(name)} is called with {number}, but {shown(value)} takes other arguments"
        ) from error


# What columns of paths are called.
_PATH_COLUMNS = frozenset(
    f"{what}{of}" for what in ("path", "file", "image") for of in ("", "s", "name", "_name", "path", "_path")
) | {"img_path"}


def refuse_table(values: object, what: str, *, paths: bool = True) -> None:
    """Raises UsageError for a table of pandas, Polars, Arrow or `datasets`, whose items are names of columns.

    `what` says what is wanted in words; `paths` could be in one of the columns.
    """
    names = getattr(values, "column_names", None)
    names = getattr(values, "columns", None) if names is None else names
    if not isinstance(names, Iterable) or isinstance(names, str):
        return
    remedy = "Save it as a file, or give the records."
    if paths:
        column = next((str(name) for name in names if str(name).casefold() in _PATH_COLUMNS), None)
        remedy = "Give its column of paths, as frame['path']" if column is None else f"Give frame[{column!r}]"
        remedy += "; save a table that holds the pictures as a Parquet file and give that."
    raise UsageError(f"{what}, not a {type(values).__name__}", remedy=remedy)


def check_records(values: Iterable[T], kinds: type | tuple[type, ...], *, what: str) -> tuple[T, ...]:
    """`values` as they are, all of `kinds`; `what` says it in words, as "Items are a file or `Item`s".

    Raises UsageError with these words and the first that is none, or `values` where they are no sequence.
    """
    if isinstance(values, Iterable) and not isinstance(values, str | bytes | Mapping):
        refuse_table(values, what, paths=isinstance(kinds, tuple) and PathLike in kinds)
        records = tuple(values)
        wrong = [record for record in records if not isinstance(record, kinds)]
        if not wrong:
            return records
        raise UsageError(f"{what}, not {shown(wrong[0])}")
    raise UsageError(f"{what}, not {shown(values)}")
