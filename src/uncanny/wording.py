"""Text and figures as people read them: on one line, nothing a terminal would obey, never a false 0, and in
the words of the interface they use."""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Callable, Iterable
from pathlib import Path, PurePath
from typing import Literal, Self

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


# Around what is named: noncharacters, which Unicode keeps for a program's own use.
_BEGIN, _END = "\ufdd0", "\ufdd1"
_MARK = re.compile(f"{_BEGIN}([^{_BEGIN}{_END}]*){_END}")
Interface = Literal["python", "terminal", "service"]


def option(name: str, value: object = None) -> str:
    """The parameter `name`, with a value where one is advised: a mark in the text of an error.

    Each interface shows it in its own way (`rendered`). True is the value of a switch.
    """
    return _mark([name, value])


def either(python: str, *, terminal: str | None = None, service: str | None = None) -> str:
    """What interfaces call differently, as a mark. Without words of its own a service says it as a terminal
    does, and that as Python."""
    own = {"terminal": terminal, "service": terminal if service is None else service}
    return _mark({"python": python, **{name: text for name, text in own.items() if text is not None}})


def environment(variables: str) -> str:
    """Variables to be set. Who reads a service's pages is told whose environment they belong to."""
    return either(variables, service=f"{variables} in the environment of the service")


def server_address(variable: str = "…_BASE_URL") -> str:
    """What a model's address is given by; `variable` is the one of its provider in the environment."""
    return either(option("base_url"), service=environment(variable))


def another_run() -> str:
    """What to do where a folder is of no use. A job has its own, which nobody names."""
    return either(f"pass another run folder with {option('out')}", service="start a new job")


def _mark(content: object) -> str:
    # Marks within are written as escapes.
    return f"{_BEGIN}{json.dumps(content, default=str)}{_END}"


def flag(name: str, value: object = None) -> str:
    """A parameter on a command line whose options are not known: `--max-side`, `--limit 5`."""
    words = f"--{name.replace('_', '-')}"
    return words if value is None or value is True else f"{words} {value}"


def rendered(text: str, interface: Interface, flag: Callable[[str, object], str] = flag) -> str:
    """The text with each mark in the words of an interface; `flag` names an option of a command line.

    A parameter is `` `limit` `` or `` `limit=5` `` in Python, `--limit` or `--limit 5` at a command line, and
    the field `` `limit` `` or `` `limit: 5` `` of a service.
    """
    text = marked(text)
    if _BEGIN not in text:
        return text

    def words(mark: re.Match[str]) -> str:
        try:
            content = json.loads(mark[1])
        except (ValueError, RecursionError):  # not one of ours
            return mark[0]
        match content:
            case [str(name), value]:
                if interface == "terminal":
                    return flag(name, value)
                if value is None:
                    return f"`{name}`"
                if interface == "python":
                    return f"`{name}={value!r}`"
                return f"`{name}: {json.dumps(value, ensure_ascii=False)}`"
            case {"python": str(python)}:
                return rendered(str(content.get(interface, python)), interface, flag)
        return mark[0]

    return _MARK.sub(words, text)


class Words(str):
    """A text in the words of Python that other interfaces can show in theirs: it remembers its marks.

    Whatever is made of it, such as a part or an f-string, is a plain text in the words of Python. To make a
    text that keeps the marks, put `marked(…)` of it into a new one.
    """

    _marked: str

    def __new__(cls, text: str) -> Self:
        text = marked(text)
        words = super().__new__(cls, rendered(text, "python"))
        words._marked = text
        return words


def marked(text: str) -> str:
    """The text with its marks, to become part of another."""
    return text._marked if isinstance(text, Words) else text


def waiting_words(calls: int) -> Words:
    """What is said at once to whoever interrupts a run, as calls in flight can take half a minute."""
    again = either(" Interrupt again to leave now.", terminal=" Ctrl-C again to leave now.", service="")
    return Words(f"Stopping: waiting for {counted(calls, 'call')}.{again}")


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


_LONGEST_SHOWN = 200
_LIKE_A_BYTE = re.compile(r"\\(?=x[0-9a-f]{2})")


def display_path(path: Path) -> str:
    """The path as posix text that can always be encoded, another one for every path.

    Bytes that are not UTF-8 appear as `\\xff`, these four characters themselves as `\\x5cxff`.
    """
    text = path.as_posix()
    if "\\x" in text:
        text = _LIKE_A_BYTE.sub(r"\\x5c", text)
    return os.fsencode(text).decode("utf-8", "backslashreplace")


def short_path(path: Path) -> str:
    """`display_path` for a message: on one line, and its middle left out where it is very long."""
    shown = "".join(char if char.isprintable() else repr(char)[1:-1] for char in display_path(path))
    if len(shown) <= _LONGEST_SHOWN:
        return shown
    half = _LONGEST_SHOWN // 2
    return f"{shown[:half]}…{shown[-half:]}"


def percent_sure(confidence: float) -> str:
    """A confidence, 0-1, in plain words; rounded down, so that 99.9 % is not called certain."""
    return f"{int(100 * confidence + 1e-9)} % sure"


def percent_right(probability: float) -> str:
    """A calibrated probability, above 0 and below 1, in plain words, which never say 0 or 100 %."""
    return f"{min(max(round(100 * probability), 1), 99)} % likely right (calibrated)"
