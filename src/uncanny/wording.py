"""Text and figures as people read them: on one line, nothing a terminal would obey, never a false 0, and in
the words of the interface they use."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import PurePath

# Controls, separators of lines, directions, invisible and tag characters, lone surrogates. What joins letters
# and emoji (U+200C, U+200D) stays.
_HARMFUL = re.compile(
    "[\\x00-\\x1f\\x7f-\\x9f\\xad\\u061c\\u180e\\u200b\\u200e\\u200f\\u2028-\\u202e\\u2060-\\u206f\\ufeff"
    "\\ufff9-\\ufffb\\U000e0000-\\U000e007f\\ud800-\\udfff]"
)


def harmless(line: str) -> str:
    """The same text on one line, with characters that a terminal would obey written as escapes."""
    return _HARMFUL.sub(lambda match: escaped(match[0]), line)


def layout(lines: Iterable[str]) -> str:
    """Lines as one text. Each stays one line, whatever is in it."""
    return "\n".join(map(harmless, lines))


def escaped(char: str) -> str:
    """One character as an escape."""
    code = ord(char)
    if 0xDC80 <= code <= 0xDCFF:  # a byte of a file name that is no UTF-8
        return f"\\x{code - 0xDC00:02x}"
    return char.encode("unicode_escape").decode()


# Of the whole process and all its threads: the command line owns its process, programs never set it.
_command_line = False
_in_service = False
_FLAGS = {
    "conditions": "--fail-if",
    "out": "-o",
    "roles": "--role",
    "timeout_s": "--timeout",
    "patience_s": "--patience",
    # Given once for each.
    "categories": "--category",
    "columns": "--column",
    "kinds": "--kind",
    "magnitudes": "--magnitude",
    "show_images": "--images",
}


@contextmanager
def on_command_line() -> Iterator[None]:
    """What is said within is for people at a command line; else it is for those who call from Python."""
    global _command_line
    before, _command_line = _command_line, True
    try:
        yield
    finally:
        _command_line = before


def in_service() -> None:
    """From now on this process is a command that a service runs: what is said is read on its pages.

    Whoever reads it has the options of the service's forms, which are called as at a command line, but not
    the environment that the service runs in.
    """
    global _in_service
    _in_service = True


def is_in_service() -> bool:
    """Whether a service runs this process as a command: what it writes is read on other machines."""
    return _in_service


def server_address(variable: str = "…_BASE_URL") -> str:
    """What a model's address is given by; `variable` is the one of its provider in the environment."""
    return environment(variable) if _in_service else option("base_url")


def environment(variables: str) -> str:
    """Variables as whoever is told to set them has to know of them: with whose they are, if not their own."""
    return f"{variables} in the environment of the service" if _in_service else variables


def option(name: str, value: object = None) -> str:
    """The parameter `name` as whoever is told of it writes it, with a value where one is advised.

    `--max-cost-usd`, `--limit 5` at a command line; `` `max_cost_usd` ``, `` `limit=5` `` in Python. True is
    the value of a switch.
    """
    if not _command_line:
        return f"`{name}`" if value is None else f"`{name}={value!r}`"
    flag = _FLAGS.get(name) or f"--{name.replace('_', '-')}"
    return flag if value is None or value is True else f"{flag} {value}"


def either(*, python: str, command_line: str, service: str | None = None) -> str:
    """What is called differently by interface; in a service, unless that is given, as at a command line."""
    if _in_service and service is not None:
        return service
    return command_line if _command_line else python


def waiting_words(calls: int) -> str:
    """What is said at once to whoever interrupts a run, as calls in flight can take half a minute."""
    again = either(
        python=" Interrupt again to leave now.", command_line=" Ctrl-C again to leave now.", service=""
    )
    return f"Stopping: waiting for {counted(calls, 'call')}.{again}"


NOT_PRICED = "not priced"
_SHOWN = 80


def count(value: float | None) -> str:
    """`1.2M`, `34k`, `560`; `?` where unmeasured."""
    if value is None:
        return "?"
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= 10 * size or (unit != "k" and value >= size):
            return f"{value / size:.1f}{unit}" if value < 100 * size else f"{value / size:.0f}{unit}"
    return f"{value:,.0f}"


def side(pixels: int) -> str:
    """A length in pixels for a message, however absurd: `1,024`, `10^300`."""
    return f"{pixels:,}" if abs(pixels) < 10**12 else f"{'-' * (pixels < 0)}10^{math.log10(abs(pixels)):.0f}"


def counted(number: int, noun: str) -> str:
    """`1 item`, `2,000 items`; for nouns whose plural has an s."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def some_of(names: Iterable[str], most: int = 3) -> str:
    """The first `most` different ones of `names`, with an ellipsis for the others."""
    different = list(dict.fromkeys(names))
    return ", ".join(different[:most]) + (", …" if len(different) > most else "")


def cost(value: float | None) -> str:
    """US dollars: `$12.50`, `$0.0440`, `$0.00042`; `$0` is nothing at all."""
    if value is None:
        return NOT_PRICED
    if value == 0:
        return "$0"
    if 0 < value < 0.001:
        return f"${value:.{1 - math.floor(math.log10(value))}f}"
    return f"${value:.4f}" if value < 1 else f"${value:,.2f}"


def at_least(words: str, known: bool) -> str:
    """A figure of which only a part is known, where it is not `known` in full."""
    return words if known else f"at least {words}"


def share(part: float | None, whole: float | None) -> str:
    """Percent; `?` where unmeasured, `–` of nothing."""
    if part is None or whole is None:
        return "?"
    return f"{100 * part / whole:.0f} %" if whole else "–"


def duration(seconds: float) -> str:
    """`42 s`, `3 min 20 s`, `5 h 12 min`, `3 d 4 h`."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    hours, minutes = divmod(minutes, 60)
    if hours < 48:
        return f"{hours} h {minutes} min"
    return f"{hours // 24} d {hours % 24} h"


def shown(value: object) -> str:
    """A value for a message: on one line and never long."""
    if isinstance(value, PurePath):
        value = str(value)
    text = repr(value[: _SHOWN * 2] if isinstance(value, str | bytes) else value)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"
