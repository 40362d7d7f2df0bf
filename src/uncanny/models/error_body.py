"""The error in a server's response, out of the many shapes that servers have for it.

All of it is text from outside, at times with the image of the request in it: a text is cut before it is
searched, and every search takes time in proportion to its length.
"""

from __future__ import annotations

import base64
import html
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any
from urllib.parse import quote

import orjson

MESSAGE_LENGTH = 300

# As much of a text as is looked at, with its white space and without.
_LOOKED_AT = 20_000
_WINDOW = 4 * MESSAGE_LENGTH
_CODE_LENGTH = 100
_MOST_REASONS = 5

_TITLE = re.compile(r"<title\b[^<>]*>([^<]*)</title", re.IGNORECASE)
_TAG = re.compile(r"<(/?)([a-z]*)[^<>]*>", re.IGNORECASE)
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_NOT_SHOWN = frozenset({"script", "style"})
# Keys are looked for in runs of these characters: by their usual beginning, or masked with asterisks already.
_RUN = re.compile(r"[\w.*-]+")
_KEY_START = re.compile(r"\b(?:sk|pk|rk)-[\w*.-]{4}", re.IGNORECASE)
_MASK = "***"
_BEARER = re.compile(r"\bBearer \S+", re.IGNORECASE)
HIDDEN = "[key]"
# Six characters of a shorter key could be any word.
_DISTINCTIVE = 12
_SHORTEST = 5
SHORTEST_SECRET = 8
_SECONDS = re.compile(r"(\d{1,6}(?:\.\d{1,9})?)s")


@dataclass(frozen=True, slots=True)
class ErrorBody:
    """`message` is one line for people, without keys; `codes` are machine-readable names of the error.

    `parameter` is the request's field the server objects to, None where it names none. `reasons` are what a
    gateway's moderation has against the request, empty where it says nothing of that. `wait_s` is the wait in
    seconds that the body asks for, None where it asks for none.
    """

    message: str
    codes: frozenset[str]
    parameter: str | None
    reasons: tuple[str, ...] = ()
    wait_s: float | None = None


def read_error_body(body: bytes, secrets: Iterable[str]) -> ErrorBody:
    """Read an error body: JSON of OpenAI, Anthropic, FastAPI, Google or OpenRouter shape, HTML, or text.

    `secrets` are the key in use and what else must not be repeated; no part of them that could tell anything
    stays in the message.
    """
    return _read(body, tuple(secrets), within=True)


def _read(body: bytes, secrets: tuple[str, ...], *, within: bool) -> ErrorBody:
    try:
        content = orjson.loads(body)
    except orjson.JSONDecodeError:
        return ErrorBody(one_line(_plain(body), secrets), frozenset(), None)
    if isinstance(content, list) and content:
        content = content[0]
    outer = content if isinstance(content, dict) else {}
    error = outer.get("error", content)
    if not isinstance(error, dict):
        return ErrorBody(one_line(_text(error, body), secrets), _codes([outer.get("code")]), None)
    message, parameter = error.get("message"), error.get("param")
    if message is None and isinstance(error.get("detail"), list):
        message, parameter = _validation(error["detail"])
    if message is None:
        message = error.get("detail", error)
    text = one_line(_text(message, body), secrets)
    details = list(_dicts(error.get("details")))
    codes = _codes(
        [
            *(error.get(name) for name in ("code", "type", "status")),
            *(inner.get("code") for inner in _dicts(error.get("innererror"))),
            *(detail.get(name) for detail in details for name in ("error_code", "reason")),
        ]
    )
    reasons: list[str] = []
    for metadata in _dicts(error.get("metadata")):
        reasons += [one_line(each, secrets) for each in _strings(metadata.get("reasons"))]
        if within and isinstance(metadata.get("raw"), str):
            # A gateway says little itself and hands on the message of the server behind it.
            upstream = _read(metadata["raw"].encode("utf-8", "replace"), secrets, within=False)
            text = one_line(f"{text}: {upstream.message}", secrets)
            codes |= upstream.codes
    return ErrorBody(
        text,
        codes,
        parameter[:_CODE_LENGTH] if isinstance(parameter, str) else None,
        tuple(reasons[:_MOST_REASONS]),
        next((wait for detail in details if (wait := _seconds(detail.get("retryDelay"))) is not None), None),
    )


def one_line(text: str, secrets: Iterable[str]) -> str:
    """The beginning of `text` on one line of at most 300 characters, keys taken out."""
    mask = _mask_of(tuple(secrets))
    longest = mask.longest
    looked_at = text[:_LOOKED_AT]
    flat = " ".join(_CONTROL.sub(" ", looked_at).split())
    line = mask(flat[: _WINDOW + longest])
    if ends := tuple(mask.ends()):
        line = " ".join(HIDDEN if any(end in word for end in ends) else word for word in line.split(" "))
    line = _RUN.sub(
        lambda run: HIDDEN if _MASK in run[0] or _KEY_START.search(run[0]) else run[0],
        _BEARER.sub(HIDDEN, line),
    )
    if len(looked_at) < len(text) or len(flat) > _WINDOW + longest:
        # Of a key that was cut in half nothing is recognised: the end goes.
        line = line[: max(0, len(line) - max(longest, len(HIDDEN)))] + "…"
    return line if len(line) <= MESSAGE_LENGTH else line[: MESSAGE_LENGTH - 1] + "…"


class KeyMask:
    """Takes the keys in use out of what models say: a server may hand on the request's own headers.

    Only keys themselves are hidden, however they are written: as they are, in base64, also as a part of what
    is encoded, in hex, as in a URL, and all these also where JSON writes their characters as escapes. What
    merely looks like a key may be what the picture shows. Those of less than `shortest` characters stay:
    local servers take any word for a key, and no such word is a secret. `hidden` stands in their place.
    """

    def __init__(
        self, secrets: Iterable[str], *, shortest: int = SHORTEST_SECRET, hidden: str = HIDDEN
    ) -> None:
        kept = sorted({each for each in secrets if len(each) >= shortest}, key=len)[::-1]
        self._forms = [form for secret in kept for form in _forms(secret)]
        self._hidden = hidden
        self.longest = max((len(form.text) for form in self._forms), default=0) + 2 * _CUT

    # Compiling them takes longer than all else here, and most servers echo nothing.
    @cached_property
    def _written(self) -> re.Pattern[str]:
        return re.compile("|".join(form.pattern(re.escape) for form in self._forms))

    @cached_property
    def _escaped(self) -> re.Pattern[str]:
        return re.compile("|".join(form.pattern(_spellings) for form in self._forms))

    def __call__(self, text: str) -> str:
        if self._has(text):
            text = self._written.sub(self._mark, text)
        # Looking for every way to escape every character takes long.
        if "\\" in text and self._has(_ESCAPE.sub(_unescaped, text)):
            text = self._escaped.sub(self._mark, text)
        return text

    def ends(self) -> Iterator[str]:
        """By these a key is recognised that was cut off."""
        for form in self._forms:
            if len(form.text) >= _DISTINCTIVE:
                yield from (form.text[: form.telling], form.text[-form.telling :])

    def _has(self, text: str) -> bool:
        return any(form.text in text for form in self._forms)

    def _mark(self, _: re.Match[str]) -> str:
        return self._hidden


# Bytes before the key that do not fill three, which is what base64 writes together, and characters of base64
# that are theirs in part or in full.
_ALIGNMENTS = ((0, 0), (1, 2), (2, 3))
_BASE64 = "[A-Za-z0-9+/_-]"
_CUT = 3
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.?))", re.DOTALL)


@dataclass(frozen=True, slots=True)
class _Form:
    """One way to write a key. `telling` of its characters, first or last, are nobody else's.

    `before` and `after` are characters of base64 beside it that belong to the key in part.
    """

    text: str
    telling: int = 6
    before: int = 0
    after: int = 0
    padded: bool = False

    def pattern(self, write: Callable[[str], str]) -> str:
        first = f"{_BASE64}{{{self.before}}}" if self.before else ""
        last = f"{_BASE64}{{0,{self.after}}}" if self.after else ""
        return f"{first}{''.join(map(write, self.text))}{last}{'={0,2}' if self.padded else ''}"


def _forms(secret: str) -> Iterator[_Form]:
    yield _Form(secret)
    data = secret.encode("utf-8", "surrogatepass")
    if (quoted := quote(data, safe="")) != secret:
        yield _Form(quoted)
    if len(data) < SHORTEST_SECRET:
        return
    yield from (_Form(data.hex(), 12), _Form(data.hex().upper(), 12))
    for before, cut in _ALIGNMENTS:
        bits = 8 * (before + len(data))
        whole = base64.b64encode(bytes(before) + data).decode().rstrip("=")[cut : bits // 6]
        for text in dict.fromkeys((whole, whole.replace("+", "-").replace("/", "_"))):
            yield _Form(text, 8, int(cut > 0), int(bits % 6 > 0), padded=True)


def _unescaped(escape: re.Match[str]) -> str:
    return chr(int(escape[1], 16)) if escape[1] else escape[2]


def _spellings(character: str) -> str:
    escapes = "".join(f"[{digit}{digit.upper()}]" for digit in f"{ord(character):04x}")
    return rf"(?:\\?{re.escape(character)}|\\u{escapes})"


@lru_cache(maxsize=64)
def _mask_of(secrets: tuple[str, ...]) -> KeyMask:
    return KeyMask(secrets, shortest=_SHORTEST)


def _plain(body: bytes) -> str:
    text = body[:_LOOKED_AT].decode("utf-8", "replace")
    title = _TITLE.search(text)
    if title is not None and title[1].strip():
        return html.unescape(title[1])
    return html.unescape(" ".join(_shown(text))) if "<" in text else text


def _shown(text: str) -> Iterator[str]:
    """The pieces of an HTML page between its tags, without scripts and styles."""
    inside, end = "", 0
    for tag in _TAG.finditer(text):
        if not inside:
            yield text[end : tag.start()]
        name = tag[2].lower()
        if not inside and not tag[1] and name in _NOT_SHOWN:
            inside = name
        elif inside and tag[1] and name == inside:
            inside = ""
        end = tag.end()
    if not inside:
        yield text[end:]


def _text(value: object, body: bytes) -> str:
    if isinstance(value, str):
        return value
    try:
        return orjson.dumps(value).decode()
    except orjson.JSONEncodeError:  # nested more deeply than is ever written, though it could be read
        return body[:_LOOKED_AT].decode("utf-8", "replace")


def _dicts(value: object) -> Iterator[dict[str, Any]]:
    for each in value if isinstance(value, list) else [value]:
        if isinstance(each, dict):
            yield each


def _strings(value: object) -> list[str]:
    return [each for each in value if isinstance(each, str)] if isinstance(value, list) else []


def _codes(values: Iterable[object]) -> frozenset[str]:
    return frozenset(str(value)[:_CODE_LENGTH] for value in values if isinstance(value, str | int))


def _seconds(value: object) -> float | None:
    seconds = _SECONDS.fullmatch(value) if isinstance(value, str) else None
    return float(seconds[1]) if seconds else None


def _validation(problems: list[Any]) -> tuple[str | None, str | None]:
    for problem in _dicts(problems):
        if isinstance(problem.get("msg"), str):
            place = [part for part in _strings(problem.get("loc")) if part != "body"]
            context = ".".join(place)
            return (f"{context}: {problem['msg']}" if context else problem["msg"]), (
                place[0] if place else None
            )
    return None, None
