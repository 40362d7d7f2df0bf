"""Where everything the commands print goes through.

What models, servers and file names say reaches people here as text: characters that would move the cursor,
retitle the window, turn the direction of writing or begin a new line are shown and not obeyed. A stream
that takes no Unicode gets the nearest ASCII, one that is closed gets nothing.

Figures as people read them; what was not measured is said to be so."""

from __future__ import annotations

import codecs
import contextlib
import logging
import os
import re
import sys
from collections.abc import Iterable
from typing import TextIO

import orjson

# Controls, separators of lines, directions, invisible and tag characters, lone surrogates. What joins letters
# and emoji (U+200C, U+200D) stays.
_HARMFUL = re.compile(
    "[\\x00-\\x1f\\x7f-\\x9f\\xad\\u061c\\u180e\\u200b\\u200e\\u200f\\u2028-\\u202e\\u2060-\\u206f\\ufeff"
    "\\ufff9-\\ufffb\\U000e0000-\\U000e007f\\ud800-\\udfff]"
)
_WITHOUT_UNICODE = {
    **dict.fromkeys("–—−‒", "-"),
    **dict.fromkeys("“”„", '"'),
    **dict.fromkeys("‘’", "'"),
    **{"…": "...", "·": "|", "≈": "~", "≤": "<=", "≥": ">=", "→": "->", "×": "x", "─": "-", "━": "-"},
}
_ERRORS = "uncanny.nearest"


def harmless(line: str) -> str:
    """The same text on one line, with characters that a terminal would obey written as escapes."""
    return _HARMFUL.sub(lambda found: _escaped(found[0]), line)


def layout(lines: Iterable[str]) -> str:
    """Lines as one text. Each stays one line, whatever is in it."""
    return "\n".join(map(harmless, lines))


def say(text: str) -> None:
    """Print to standard output, at once. Line breaks in `text` are the layout's: see `layout`."""
    _print(text, sys.stdout)


def complain(text: str) -> None:
    """Print to standard error, at once. One that takes nothing any more changes nothing else."""
    with contextlib.suppress(OSError):
        _print(text, sys.stderr)


def say_json(content: object) -> None:
    """Print to standard output, indented; always UTF-8."""
    sys.stdout.flush()
    sys.stdout.buffer.write(orjson.dumps(content, option=orjson.OPT_INDENT_2) + b"\n")
    sys.stdout.buffer.flush()


def on_terminal() -> bool:
    """Whether somebody watches standard error."""
    return sys.stderr.isatty()


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
        complain(self.format(record))


def _print(text: str, stream: TextIO) -> None:
    print(layout(text.split("\n")), file=stream, flush=True)


def _on_nothing(number: int) -> TextIO:
    return os.fdopen(number, "r" if number == 0 else "w", encoding="utf-8", closefd=False)


def _escaped(char: str) -> str:
    code = ord(char)
    if 0xDC80 <= code <= 0xDCFF:  # a byte of a file name that is no UTF-8
        return f"\\x{code - 0xDC00:02x}"
    return char.encode("unicode_escape").decode()


def _nearest(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    lost = error.object[error.start : error.end]
    return "".join(_WITHOUT_UNICODE.get(char) or _escaped(char) for char in lost), error.end


NOT_PRICED = "not priced"


def count(value: float | None) -> str:
    """`1.2M`, `34k`, `560`; `?` where unmeasured."""
    if value is None:
        return "?"
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= 10 * size or (unit != "k" and value >= size):
            return f"{value / size:.1f}{unit}" if value < 100 * size else f"{value / size:.0f}{unit}"
    return f"{value:,.0f}"


def cost(value: float | None) -> str:
    if value is None:
        return NOT_PRICED
    return f"${value:.4f}" if value < 1 else f"${value:,.2f}"


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
