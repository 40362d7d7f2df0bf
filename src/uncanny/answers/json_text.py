"""The text of an answer: without its thoughts, and the JSON in it, bare, in code fences or in prose.

Small slips that leave no doubt are forgiven: raw line breaks in strings, trailing commas, `//` comments,
single or typographic quotes around strings, Python's `None` and `True`, stray backslashes. What is never
forgiven is a missing end. Libraries that repair JSON close open brackets themselves, and so read an answer
that was cut off as a whole one; hence this scanner, whose time is linear in the text's length.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

from uncanny.errors import AnswerError


def excerpt(text: str, limit: int = 60) -> str:
    """The beginning of `text` on one line and in quotes, at most `limit` characters with them."""
    quoted = repr(text.strip()[:limit])
    return quoted if len(quoted) <= limit else quoted[: limit - 2] + "…" + quoted[0]


MAX_DEPTH = 64
# Several times what the highest output limit lets through; whoever writes more answers nothing.
MAX_CHARACTERS = 500_000

# Brackets are common in prose. These openings are not: from here on it is JSON or an error.
_OPENING = re.compile(r"""\{\s*(?:["“}]|'\w|[A-Za-z_]\w{0,40}\s{0,4}:)|\[\s*(?:\{|\])""")
_TOKEN = re.compile(
    r"""(?P<space>[\s\u200b\u2060\ufeff]+|//[^\n]*)
      | (?P<double>"[^"\\]*(?:\\.[^"\\]*)*")
      | (?P<single>'[^'\\]*(?:\\.[^'\\]*)*')
      | (?P<curly>“[^”\\]*(?:\\.[^”\\]*)*”)
      | (?P<open>[{\[])
      | (?P<close>[}\]])
      | (?P<mark>[,:])
      | (?P<atom>[-+.\w]+)""",
    re.VERBOSE | re.DOTALL,
)
_QUOTES = "\"'“"
_ESCAPE = re.compile(r'\\(.)|"', re.DOTALL)
_PYTHON = {"True": "true", "False": "false", "None": "null"}
_THINK_OPEN = re.compile(r"\s*<(think|thinking|reasoning)>", re.IGNORECASE)


def opening(text: str) -> int | None:
    """Where the first JSON object, or list of objects, begins; None where there is none."""
    match = _OPENING.search(text)
    return match.start() if match else None


def json_values(text: str) -> Iterator[tuple[Any, int, int]]:
    """Every JSON object, and every list of objects, in `text`: value, start, end; in order.

    Values are neither searched for inside others nor behind a broken one. Raises `AnswerError` at the first
    that is cut off, is not valid, or is nested deeper than `MAX_DEPTH`.
    """
    at = 0
    while match := _OPENING.search(text, at):
        valid = _valid(text, match.start())
        if valid is not None:
            value, at = valid
            yield value, match.start(), at
            continue
        strict, at = _strict(text, match.start())
        try:
            value = json.loads(strict, strict=False, object_pairs_hook=_object)
        except (ValueError, RecursionError) as error:
            raise AnswerError(f"the JSON is not valid: {_reason(error, strict)}") from None
        yield value, match.start(), at


def _valid(text: str, start: int) -> tuple[Any, int] | None:
    """The value that begins at `start`, and where it ends, where it needs no forgiving: the usual case.

    None where anything is wrong with it, of which the scanner says what. It stops where the scanner would
    have to forgive something, so that no text is gone through more than twice.
    """
    try:
        value, end = _DECODER.raw_decode(text, start)
    except (ValueError, RecursionError, AnswerError):
        return None
    brackets = text.count("{", start, end) + text.count("[", start, end)
    return None if brackets > MAX_DEPTH and _is_deeper(value, MAX_DEPTH) else (value, end)


def _is_deeper(value: object, levels: int) -> bool:
    """Whether lists and objects are nested in more than so many levels."""
    if not isinstance(value, dict | list):
        return False
    if not levels:
        return True
    inner = value.values() if isinstance(value, dict) else value
    return any(_is_deeper(each, levels - 1) for each in inner if isinstance(each, dict | list))


def check_length(text: str) -> None:
    """Raises `AnswerError` for a text of more than `MAX_CHARACTERS`."""
    if len(text) > MAX_CHARACTERS:
        raise AnswerError(f"the answer is longer than {MAX_CHARACTERS:,} characters; give a short one")


def without_thinking(text: str) -> str:
    """`text` without the block of thoughts that some models put first.

    Raises `AnswerError` where the thoughts never end, since then there is no answer, and for a text of more
    than `MAX_CHARACTERS`.
    """
    check_length(text)
    opened = _THINK_OPEN.match(text)
    if opened is None:
        # Some chat templates open the block in the prompt, so that only its end is in the answer.
        end = text.find("</think>")
        first = opening(text)
        return text[end + len("</think>") :] if end >= 0 and (first is None or end < first) else text
    close = re.compile(f"</{opened[1]}>", re.IGNORECASE).search(text, opened.end())
    if close is None:
        raise AnswerError("the answer has thoughts only; give the result itself")
    return text[close.end() :]


def _strict(text: str, start: int) -> tuple[str, int]:
    """The value that begins at `start`, rewritten as strict JSON, and where it ends."""
    out: list[str] = []
    closers: list[str] = []
    at = start
    while at < len(text):
        token = _TOKEN.match(text, at)
        if token is None:
            break
        at = token.end()
        kind, word = token.lastgroup, token[0]
        if kind == "open":
            closers.append("}" if word == "{" else "]")
            if len(closers) > MAX_DEPTH:
                raise AnswerError(f"the JSON is nested deeper than {MAX_DEPTH} levels")
        elif kind == "close":
            if closers.pop() != word:
                raise AnswerError(f"the JSON is not valid: {word} closes a bracket that is not open")
            if len(out) > 1 and out[-1] == "," and out[-2] not in ("{", "[", ","):
                out.pop()
        if kind != "space":
            out.append(_rewritten(kind or "", word))
        if not closers:
            return "".join(out), at
    if at < len(text) and text[at] not in _QUOTES and not text.startswith("```", at):
        raise AnswerError(f"the JSON is not valid near {excerpt(text[at : at + 40], 40)}")
    raise AnswerError("the JSON is cut off before its end; answer again, in full")


def _rewritten(kind: str, word: str) -> str:
    if kind == "atom":
        # A space keeps two words from running together into a valid third one.
        return _PYTHON.get(word, word) + " "
    if kind in ("single", "curly") or "\\" in word:
        return '"' + _ESCAPE.sub(_escape, word[1:-1]) + '"'
    return word


def _escape(match: re.Match[str]) -> str:
    if match[0] == '"':
        return '\\"'
    if match[1] in '"\\/bfnrtu':
        return match[0]
    return match[1] if match[1] in "'“”" else "\\\\" + match[1]


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) < len(pairs):
        twice = Counter(name for name, _ in pairs).most_common(1)[0][0]
        raise AnswerError(f"the JSON has the key {excerpt(twice)} twice in one object")
    return value


_DECODER = json.JSONDecoder(strict=False, object_pairs_hook=_object)


def _reason(error: Exception, strict: str) -> str:
    if not isinstance(error, json.JSONDecodeError):
        return "a number or a nesting is too large"
    return f"{error.msg} near {excerpt(strict[error.pos : error.pos + 40], 40)}"


def read_text(answer: str) -> str:
    """The answer without a leading block of reasoning. Raises AnswerError when nothing is left."""
    text = without_thinking(answer).strip()
    if not text:
        raise AnswerError("the answer is empty")
    return text
