"""Every error uncanny raises on purpose.

::

    UncannyError
    ├── UsageError                 the user asked for something that cannot be done; nothing was started
    │   ├── RecordError            a record file has an invalid line: file, line, field
    │   ├── ItemsError             a file or set of records is wrong in places: all that is wrong, at once
    │   ├── NotAlikeError          annotations that are to be compared were not made alike
    │   ├── RunLockedError         another process, or call, works on the same run folder
    │   ├── ReviewConflictError    what a reviewer judged has changed meanwhile
    │   ├── NotFoundError          the service has nothing of that id
    │   ├── ConflictError          it is not in a state in which this can be done
    │   ├── AccessError            the service does not know the token, or its role is too low
    │   ├── ParamsError            parameters of a job do not fit: each field, with what is wrong
    │   ├── RunMismatchError       the run folder was made with other settings
    │   └── ExtensionError         a node, agent or protocol of the user's own would fail with every input
    ├── ImageError                 one image cannot be used; becomes a record `unreadable`
    ├── AnswerError                one answer could not be read as what was asked for
    ├── ProviderError              one call failed
    │   ├── TransientError         the same call may succeed later: 429, 5xx, timeouts, cut connections
    │   ├── RequestRejectedError   this request can never succeed (400, 413, 422); other requests may
    │   ├── ProviderDefectError    the code of a provider has a mistake; nothing is known of the server
    │   ├── RefusedError           the model declined to answer
    │   ├── TruncatedError         the answer was cut off at the output limit
    │   └── ModelUnusableError     no request to this model can succeed: wrong key, unknown model
    │       ├── QuotaError         the account has no credit left
    │       └── ModelDownError     the breaker gave up on a model that only fails
    ├── StepFailedError            one step of an agent failed for good; becomes an error in the record
    ├── BudgetError                the user's own limit on cost or tokens is reached
    ├── StoppedError               the caller ended the work before there was a result
    ├── ServiceError               a service on another machine cannot be reached, or fails
    ├── StorageError               a run under way can write no more, or open no more files
    └── DeferredError              a question waits for a batch; never leaves a run

Each message says what happened, where, and, as `remedy`, what to do about it. It names parameters as such
(`wording.option`): as text it is in the words of Python, and other interfaces show `text` in theirs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from uncanny.wording import Words, either, marked, option, shown

if TYPE_CHECKING:
    from uncanny.schema import StepError

_MOST_LISTED = 20
# Of findings that are alike, how many are named.
_MOST_PLACES = 3
ImageFault = Literal[
    "missing",
    "permission",
    "not_a_file",
    "symlink_loop",
    "name_too_long",
    "empty",
    "too_large",
    "not_an_image",
    "unsupported",
    "truncated",
    "damaged",
    "bomb",
    "io_error",
    "memory",
]


@dataclass(frozen=True, slots=True)
class Problem:
    """One finding. `item` is None where the line has no readable id, `field` where all of it is meant.

    `line` counts from 1 and is None where the items did not come from a file. A warning does not keep a
    set from being used.
    """

    item: str | None
    field: str | None
    message: str
    severity: Literal["error", "warning"] = "error"
    line: int | None = None

    def __str__(self) -> str:
        """One line: where, then what and what to do."""
        where = [f"line {self.line}"] if self.line is not None else []
        where += [f"item {shown(self.item)}"] if self.item is not None else []
        where += [f"field {self.field}"] if self.field else []
        message = f"warning: {self.message}" if self.severity == "warning" else self.message
        return f"{', '.join(where)}: {message}" if where else message


def writable(text: str) -> str:
    """The text with U+FFFD for lone surrogates, which no file takes; names of files may have some."""
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def text_of(error: BaseException) -> str:
    """What an error says, with its type; whatever becomes of its own `str()`."""
    try:
        return writable(f"{type(error).__name__}: {error}")
    except Exception:
        return f"{type(error).__name__} (its text cannot be shown)"


def first_line(error: Exception) -> str:
    """What an error of somebody else's library says, as far as it fits into a message."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


class UncannyError(Exception):
    """Base of the tree. `str()` is one line for people: what happened, and the remedy where there is one."""

    def __init__(self, message: str, *, remedy: str | None = None) -> None:
        self.message = Words(writable(marked(message)))
        self.remedy = None if remedy is None else Words(writable(marked(remedy)))
        super().__init__(self.message)

    def __str__(self) -> str:
        return str(self.text)

    @property
    def text(self) -> Words:
        """`str()` with what other interfaces need to show it in their words."""
        return Words("\n".join(map(marked, self.lines())))

    def lines(self) -> tuple[Words, ...]:
        """`text` as lines: one, but for an error that lists several. What a line quotes may have breaks."""
        message = marked(self.message)
        # What a server says, and a message may end with, often has a full stop.
        return (Words(f"{message.removesuffix('.')}. {marked(self.remedy)}" if self.remedy else message),)

    def __reduce__(self) -> tuple[Any, ...]:
        """For process pools: all of it goes to another process, its cause and notes too.

        `Exception` would call the class with the message alone, which those that take more cannot be made
        from; and it would leave out the cause.
        """
        causes: list[BaseException] = []
        cause = self.__cause__
        while cause is not None and cause not in causes:
            causes.append(cause)
            cause = None if isinstance(cause, UncannyError) else cause.__cause__
        state = self.__dict__, tuple(map(_picklable, causes)), self.__suppress_context__
        return _restored, (type(self), self.args, *state)


def _restored(
    cls: type[UncannyError],
    args: tuple[Any, ...],
    attributes: dict[str, Any],
    causes: tuple[BaseException, ...],
    suppressed: bool,
) -> UncannyError:
    error = cls.__new__(cls, *args)
    error.__dict__.update(attributes)
    for above, below in pairwise((error, *causes)):
        above.__cause__ = below
    error.__suppress_context__ = suppressed
    return error


def _picklable(error: BaseException) -> BaseException:
    """The error, or one that says the same where it cannot be pickled, as those of SDKs.

    Whoever comes here has loaded `pickle`; nobody else needs it.
    """
    import pickle

    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return RuntimeError(text_of(error))
    return error


class UsageError(UncannyError):
    """Wrong use or bad input: the command ends with exit code 2 before anything was started."""

    @staticmethod
    def unwritten(place: Path, error: OSError) -> UsageError:
        """For a file or folder that a user named, and that cannot be written."""
        return UsageError(
            f"{place} cannot be written: {error.strerror or error}",
            remedy="Pass a path that you can write to, or free some disk space.",
        )


class RecordError(UsageError):
    """An invalid line in a record file."""

    def __init__(
        self, message: str, *, path: Path, line: int, field: str | None = None, remedy: str | None = None
    ) -> None:
        where = f"{path}:{line}" + (f", field {field!r}" if field else "")
        super().__init__(f"{where}: {message}", remedy=remedy)
        self.path, self.line, self.field = path, line, field


class RunLockedError(UsageError):
    """Another live process, or another call in this one, holds the lock of the run folder."""


class ReviewConflictError(UsageError):
    """A reviewer's step is about a text that is another one by now; nothing was written."""


class NotFoundError(UsageError):
    """The service has no job, image set, file or token of that id."""


class ConflictError(UsageError):
    """A job, or what else the service keeps, is not in a state in which this can be done."""


class AccessError(UsageError):
    """The service wants a token, does not know this one, or its role is too low for what was asked."""


class ParamsError(UsageError):
    """Parameters of a job that do not fit. `fields` has the place of each, such as `images.0`, and why."""

    def __init__(self, fields: Sequence[tuple[str, str]], *, remedy: str | None = None) -> None:
        self.fields: tuple[tuple[str, str], ...] = tuple((field, Words(why)) for field, why in fields)
        super().__init__("; ".join(f"{_field(field)}: {marked(why)}" for field, why in fields), remedy=remedy)


def _field(place: str) -> str:
    """A place as the interface that asked for the job calls it; `params` are all of them."""
    own = place if place == "params" else option(place.partition(".")[0])
    return either(place, terminal=own, service=place)


class RunMismatchError(UsageError):
    """The run folder belongs to a run with other settings; going on would mix two protocols."""


class ExtensionError(UsageError):
    """What a user has added cannot work with any input, such as a prompt that cannot be filled in.

    A run under way ends in good order and raises it: the next input would only pay for it again.
    """


class ItemsError(UsageError):
    """All that is wrong with a set, at once.

    `problems` has every finding. The message has the first 20 lines: what is wrong in the same way in many
    places, as a column that is missing, is one of them.
    """

    def __init__(self, what: str, problems: Sequence[Problem], *, remedy: str | None = None) -> None:
        self.problems = tuple(problems)
        count = len(self.problems)
        lines = [f"{what}: {count} problem{'' if count == 1 else 's'}"]
        findings = alike(self.problems)
        lines += [f"  {text}" for text, _ in findings[:_MOST_LISTED]]
        if left := sum(number for _, number in findings[_MOST_LISTED:]):
            lines.append(f"  and {left} more")
        self._lines = tuple(map(Words, (*lines, *([remedy] if remedy else []))))
        super().__init__("\n".join(lines), remedy=remedy)

    def lines(self) -> tuple[Words, ...]:
        return self._lines


def alike(problems: Sequence[Problem]) -> list[tuple[str, int]]:
    """Lines, in the order of what comes first in them, and how many findings each stands for.

    More than three of one message and field are one line, with the first places.
    """
    groups: dict[tuple[str, str, str], list[Problem]] = {}
    for problem in problems:
        # Places in a list are not another finding.
        field = ".".join("*" if part.isdigit() else part for part in (problem.field or "").split("."))
        groups.setdefault((field, problem.message, problem.severity), []).append(problem)
    lines: dict[int, tuple[str, int]] = {}
    for (field, _, _), same in groups.items():
        if len(same) <= _MOST_PLACES:
            lines |= {id(each): (str(each), 1) for each in same}
            continue
        whole = replace(same[0], item=None, line=None, field=field or None)
        first = "; ".join(_place(each, with_field="*" in field) for each in same[:_MOST_PLACES])
        lines[id(same[0])] = f"{whole} ({len(same):,} times: {first}; …)", len(same)
    return [lines[id(problem)] for problem in problems if id(problem) in lines]


def _place(problem: Problem, *, with_field: bool) -> str:
    where = [f"line {problem.line}"] if problem.line is not None else []
    where += [f"item {shown(problem.item)}"] if problem.item is not None else []
    where += [f"field {problem.field}"] if with_field else []
    return ", ".join(where) or "no place"


class NotAlikeError(UsageError):
    """The annotations of an audit were not made alike; `mismatches` are lines that say what differs."""

    def __init__(self, message: str, mismatches: Sequence[str], *, remedy: str | None = None) -> None:
        self.mismatches = tuple(mismatches)
        lines = [f"{message}:", *(f"  {mismatch}" for mismatch in mismatches)]
        self._lines = tuple(map(Words, (*lines, *([remedy] if remedy else []))))
        super().__init__("\n".join(lines), remedy=remedy)

    def lines(self) -> tuple[Words, ...]:
        return self._lines


class ImageError(UncannyError):
    """One image cannot be read or sent; the run goes on and records the reason.

    `kind` is stable and fit for counting; `message` is for people.
    """

    def __init__(self, message: str, *, kind: ImageFault, remedy: str | None = None) -> None:
        super().__init__(message, remedy=remedy)
        self.kind: ImageFault = kind


class AnswerError(UncannyError):
    """One model answer does not validate. `message` is fit to be shown to the model in a repair question."""


class ProviderError(UncannyError):
    """One call to a model failed."""

    def message_without(self, name: str) -> str:
        """The message with its marks, for a sentence that has said which model, `name`, it is about."""
        return marked(self.message).removeprefix(f"{name}: ")


class TransientError(ProviderError):
    """The same call may succeed later.

    `retry_after` is in seconds above 0, as the server asked, or None. `overloaded` says that the server wants
    fewer calls at once (429, 503, 529, timeouts), as against a broken connection or a plain 500.
    """

    def __init__(
        self,
        message: str,
        *,
        kind: str,
        retry_after: float | None = None,
        overloaded: bool = False,
        remedy: str | None = None,
    ) -> None:
        super().__init__(message, remedy=remedy)
        self.kind, self.retry_after, self.overloaded = kind, retry_after, overloaded

    @property
    def refused(self) -> bool:
        """The server refuses to do more at once, and does what it has."""
        return self.kind == "http_429"


class RequestRejectedError(ProviderError):
    """The server says that this very request is wrong; it is never sent again."""


class ProviderDefectError(ProviderError):
    """The code of a provider, one that a user brought, failed: `KeyError`, `TypeError` and their like."""


class RefusedError(ProviderError):
    """The model declined to answer. `words` is all it said, empty where it said nothing."""

    def __init__(self, message: str, *, words: str = "", remedy: str | None = None) -> None:
        super().__init__(message, remedy=remedy)
        self.words = words


class TruncatedError(ProviderError):
    """The answer stayed cut off even at the highest output limit."""


class ModelUnusableError(ProviderError):
    """No request to this model can succeed; ends the run, or hands over to the fallback model."""


class QuotaError(ModelUnusableError):
    """The account behind the key has no credit left."""


class ModelDownError(ModelUnusableError):
    """The model failed so often in a row that asking further is pointless."""


class StepFailedError(UncannyError):
    """One step of one agent failed for good; other steps and inputs go on.

    `error` is why, `record` the same as annotations have it.
    """

    def __init__(self, error: UncannyError, record: StepError) -> None:
        super().__init__(error.message, remedy=error.remedy)
        self.error, self.record = error, record


class BudgetError(UncannyError):
    """The limit on cost or tokens the user set is reached; the run can be continued with a higher one."""


class StoppedError(UncannyError):
    """The caller's `stop` ended the work before there was a result; the same call goes on."""


class ServiceError(UncannyError):
    """A service on another machine cannot be reached, breaks off, or fails; its jobs go on there."""


class StorageError(UncannyError):
    """A run under way cannot keep results or open files any more; it stops, and can go on another time."""


class DeferredError(UncannyError):
    """A question goes into a batch: the work on its input goes on when the batch has been answered."""


def may_pass(status: int) -> bool:
    """Whether the same request may succeed later where a web server has answered with this status."""
    return status in {408, 409, 425, 429} or status >= 500


# What no input can do anything about: it ends the run, which can be continued.
ENDS_RUN: Final = (BudgetError, ModelUnusableError, StorageError)
RunError = BudgetError | ModelUnusableError | StorageError
# What ends the work on an input for now.
ENDS_INPUT: Final = (*ENDS_RUN, DeferredError)
InputError = RunError | DeferredError
