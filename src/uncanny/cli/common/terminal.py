"""Where everything the commands print goes through.

What models, servers and file names say reaches people here as text: characters that would move the cursor,
retitle the window, turn the direction of writing or begin a new line are shown and not obeyed. A stream
that takes no Unicode gets the nearest ASCII, one that is closed gets nothing.
"""

from __future__ import annotations

import codecs
import contextlib
import logging
import os
import re
import shutil
import sys
from collections.abc import Iterable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TextIO

import click

from uncanny.errors import UncannyError
from uncanny.wording import (
    Interface,
    Words,
    escaped,
    flag,
    harmless,
    layout,
    marked,
    rendered,
)

_WITHOUT_UNICODE = {
    **dict.fromkeys("–—−‒", "-"),
    **dict.fromkeys("“”„", '"'),
    **dict.fromkeys("‘’", "'"),
    **{"…": "...", "·": "|", "≈": "~", "≤": "<=", "≥": ">=", "→": "->", "×": "x", "─": "-", "━": "-"},
}
_ERRORS = "uncanny.nearest"
_FLAG = re.compile(r"(?<![\w-])--?[a-z][a-z-]*")


@dataclass(frozen=True, slots=True)
class Origin:
    """An option whose value is from a file: how it and its value stand in messages, and where in the file."""

    flags: tuple[str, ...]
    quoted: tuple[str, ...]
    where: str

    def is_meant(self, text: str) -> bool:
        named = _FLAG.findall(text)
        return any(flag in named for flag in self.flags) or any(value in text for value in self.quoted)


@dataclass(slots=True)
class Running:
    """A command line that runs: whom it speaks to, its command, and which options have values from a file."""

    interface: Interface = "terminal"
    command: click.Command | None = None
    origins: tuple[Origin, ...] = ()

    def flag(self, name: str, value: object = None) -> str:
        """A parameter as the command calls it: `--max-side 1024`, `IMAGES`; by its name if it has none."""
        known = self.command.params if self.command is not None else ()
        parameter = next((each for each in known if each.name == name), None)
        if parameter is None:
            return flag(name, value)
        if not isinstance(parameter, click.Option):
            return parameter.human_readable_name if value is None else str(value)
        if value is False and parameter.secondary_opts:
            return parameter.secondary_opts[0]
        # As the examples write it.
        own = next(
            (each for each in parameter.opts if each == "-o" or each.startswith("--")), parameter.opts[0]
        )
        return own if value is None or value is True else f"{own} {value}"


# Of each thread that runs a command line, and of those that it starts with its context.
_running: ContextVar[Running] = ContextVar("running")


@contextlib.contextmanager
def running(interface: Interface) -> Iterator[None]:
    """Within, this thread runs a command line, and what it prints is in the words of `interface`."""
    token = _running.set(Running(interface))
    try:
        yield
    finally:
        _running.reset(token)


def note_command(command: click.Command, origins: Iterable[Origin] = ()) -> None:
    """Which command runs now, and which of its options have their values from a file."""
    here = _running.get(None)
    if here is not None:
        here.command, here.origins = command, tuple(origins)


def told(error: Exception) -> str:
    """What an error says, to become part of what is printed."""
    return marked(error.text) if isinstance(error, UncannyError) else str(error)


def as_shown(text: str) -> str:
    """The text as the reader of this command's output knows what it names."""
    here = _running.get(None) or Running()
    return rendered(text, here.interface, here.flag)


def say(text: str) -> None:
    """Print to standard output, at once. Line breaks in `text` are the layout's: see `layout`."""
    _print(text, sys.stdout)


def complain(text: str) -> None:
    """Print to standard error, at once. One that takes nothing any more changes nothing else.

    Of options that are named in it, and whose values are from a file, it says so.
    """
    text, here = as_shown(text), _running.get(None) or Running()
    origins = [f"{each.flags[0]} is set in {each.where}." for each in here.origins if each.is_meant(text)]
    with contextlib.suppress(OSError):
        _print("\n".join([text, *map(harmless, origins)]), sys.stderr)


def say_json(content: object) -> None:
    """Print to standard output, indented; always UTF-8."""
    sys.stdout.flush()
    from uncanny.files import dump_json  # where there is JSON, this is loaded already

    sys.stdout.buffer.write(dump_json(content, indent=True) + b"\n")
    sys.stdout.buffer.flush()


def on_terminal() -> bool:
    """Whether somebody watches standard error."""
    return sys.stderr.isatty()


def width() -> int | None:
    """How many characters a line of standard output has; None where it is a file or a pipe."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def open_streams() -> None:
    """Make standard streams safe to use; to be called once, before anything is opened or printed.

    A closed one is opened on nothing, so that no record file gets its number. Text that the encoding does
    not have is written in the nearest ASCII. Warnings of the log are printed like all else.
    """
    lost = False
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            lost = lost or number == 1
            # The lowest free number is taken, and that is this one: those before it are open.
            os.open(os.devnull, os.O_RDONLY if number == 0 else os.O_WRONLY)
            os.set_inheritable(number, True)
    sys.stdin = sys.stdin or _on_nothing(0)
    sys.stdout = sys.stdout or _on_nothing(1)
    sys.stderr = sys.stderr or _on_nothing(2)
    codecs.register_error(_ERRORS, _nearest)
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors=_ERRORS)
    log = logging.getLogger("uncanny")
    if not log.handlers:
        log.addHandler(_Log())
    if lost:
        complain("Warning: standard output is closed; what would be printed there is lost.")


def close_output() -> None:
    """Let go of a standard output that takes nothing any more: Python would complain once more at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


class _Log(logging.Handler):
    """Warnings and errors, with what a defect left behind."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)

    def emit(self, record: logging.LogRecord) -> None:
        complain(record.msg if isinstance(record.msg, Words) else self.format(record))


def _print(text: str, stream: TextIO) -> None:
    print(layout(as_shown(text).split("\n")), file=stream, flush=True)


def _on_nothing(number: int) -> TextIO:
    return os.fdopen(number, "r" if number == 0 else "w", encoding="utf-8", closefd=False)


def _nearest(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    lost = error.object[error.start : error.end]
    return "".join(_WITHOUT_UNICODE.get(char) or escaped(char) for char in lost), error.end
