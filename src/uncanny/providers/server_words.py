"""What a server said about an error, out of the many shapes servers say it in."""

from __future__ import annotations

import html
import re
from dataclasses import dataclass
from typing import Any

import orjson

MESSAGE_LENGTH = 300

_TITLE = re.compile(r"<title[^>]*>(.*?)</title>", re.IGNORECASE | re.DOTALL)
_UNSEEN = re.compile(r"<(script|style)\b.*?</\1\s*>|<[^>]*>", re.IGNORECASE | re.DOTALL)
# Keys by their usual beginning, and keys a server already masked with asterisks.
_KEY_LIKE = re.compile(r"\b(?:sk|pk|rk)-[\w*.-]{4,}|\bBearer\s+\S+|[\w.-]*\*{3,}[\w.*-]*", re.IGNORECASE)
_HIDDEN = "[key]"
# Six characters of a shorter key could be any word.
_TELLING = 12


@dataclass(frozen=True, slots=True)
class ServerWords:
    """`message` is one line for people, without keys; `codes` are machine-readable names of the error.

    `parameter` is the request's field the server objects to, None where it names none.
    """

    message: str
    codes: frozenset[str]
    parameter: str | None


def read_words(body: bytes, secret: str) -> ServerWords:
    """Read an error body: JSON of OpenAI, Anthropic, FastAPI or Google shape, HTML of a proxy, or text.

    `secret` is the key in use; no part of it that could tell anything stays in the message.
    """
    try:
        content = orjson.loads(body)
    except orjson.JSONDecodeError:
        return ServerWords(one_line(_plain(body), secret), frozenset(), None)
    if isinstance(content, list) and content:
        content = content[0]
    error = content.get("error", content) if isinstance(content, dict) else content
    if not isinstance(error, dict):
        return ServerWords(one_line(_text(error), secret), frozenset(), None)
    details = error.get("details")
    codes = [error.get("code"), error.get("type"), error.get("status")]
    if isinstance(details, dict):
        codes.append(details.get("error_code"))
    message, parameter = error.get("message"), error.get("param")
    if message is None and isinstance(error.get("detail"), list):
        message, parameter = _validation(error["detail"])
    if message is None:
        message = error.get("detail", error)
    return ServerWords(
        one_line(_text(message), secret),
        frozenset(str(code) for code in codes if isinstance(code, str | int)),
        parameter if isinstance(parameter, str) else None,
    )


def one_line(text: str, secret: str) -> str:
    """`text` on one line of at most 300 characters, keys taken out."""
    if len(secret) > len("none"):
        text = text.replace(secret, _HIDDEN)
    if len(secret) >= _TELLING:
        pieces = (re.escape(secret[:6]), re.escape(secret[-6:]))
        text = re.sub(rf"\S*(?:{'|'.join(pieces)})\S*", _HIDDEN, text)
    text = " ".join(_KEY_LIKE.sub(_HIDDEN, text).split())
    return text if len(text) <= MESSAGE_LENGTH else text[: MESSAGE_LENGTH - 1] + "…"


def _plain(body: bytes) -> str:
    text = body[:20_000].decode("utf-8", "replace")
    title = _TITLE.search(text)
    if title is not None and title[1].strip():
        return html.unescape(title[1])
    return html.unescape(_UNSEEN.sub(" ", text)) if "<" in text else text


def _text(value: object) -> str:
    return value if isinstance(value, str) else orjson.dumps(value).decode()


def _validation(problems: list[Any]) -> tuple[str | None, str | None]:
    for problem in problems:
        if isinstance(problem, dict) and isinstance(problem.get("msg"), str):
            place = [part for part in problem.get("loc", ()) if isinstance(part, str) and part != "body"]
            where = ".".join(place)
            return (f"{where}: {problem['msg']}" if where else problem["msg"]), (place[0] if place else None)
    return None, None
