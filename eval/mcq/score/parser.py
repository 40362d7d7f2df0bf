"""What a raw answer to a multiple-choice question says: the exact rule, and the opt-in lenient reading.

The exact rule is SalArt-VQA's exact match (appendix E.3). White space around the answer goes, so does one
leading `<think>…</think>` block. What is left must be, for Q1, `yes` or `no` in any case with at most one
full stop; for Q2–Q4 one Latin letter in either case, with at most one full stop or one pair of enclosing
`( )`, `*`, `**`, straight quotes or backticks, not both. Everything else is invalid.

In the form `json` the rule is applied to the value of `answer` in the last JSON object that has it, where
the last is the one that ends last. Broken JSON is not repaired.

The lenient reading also takes the one choice of an unambiguous sentence, and is never part of the exact
score. A choice counts only where the sentence marks it as one, and only where no other option is named. A
sentence that negates, weighs or hedges is left unread: a missed answer is counted as invalid, a wrong reading
is not counted at all.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from uncanny.eval.mcq.data.items import AnswerForm, Question
from uncanny.eval.mcq.parameters import Parser as Parser

PARSER_VERSION = "1"

# A longer text is no answer; released sets have none of a hundredth of it.
_LONGEST = 100_000
_THOUGHTS = re.compile(r"<think>.*?</think>", re.DOTALL)
_PRESENCE = re.compile(r"(yes|no)\.?", re.IGNORECASE | re.ASCII)
_OPENING = re.compile(r"\{\s*[\"}]")
_LETTER = re.compile(r"([A-Za-z])\.?|\(([A-Za-z])\)|(\*\*|\*|\"|'|`)([A-Za-z])\3")


@dataclass(frozen=True, slots=True)
class Reading:
    """What an answer says: `yes`, `no` or a capital letter, and by which rule; both None where invalid."""

    choice: str | None
    rule: Parser | None


INVALID = Reading(None, None)


@lru_cache(maxsize=1024)
def read_choice(
    raw: str | None, question: Question, form: AnswerForm, *, parser: Parser = "exact", letters: str = "ABCDE"
) -> Reading:
    """Read one raw answer; never raises.

    `letters` are the options in capitals. `parser="lenient"` also takes the one letter, or the yes or no, of
    an unambiguous sentence, and marks it as such. None, which is no answer, reads as invalid: whoever counts
    must tell it apart.
    """
    if raw is None:
        return INVALID
    text = raw.strip()
    if thoughts := _THOUGHTS.match(text):
        text = text[thoughts.end() :].strip()
    if len(text) > _LONGEST:
        return INVALID
    if form == "json":
        value = _last_answer(text)
        # A sentence without any object may still be read leniently; an object's value stands for itself.
        choice, text = (None, text) if value is None else (_exact(value[0], question, letters), value[0])
    else:
        choice = _exact(text, question, letters)
    if choice is not None:
        return Reading(choice, "exact")
    if parser == "lenient":
        choice = _exact(text, question, letters) or _lenient(text, question, letters)
        return Reading(choice, "lenient") if choice else INVALID
    return INVALID


def _exact(text: str, question: Question, letters: str) -> str | None:
    text = text.strip()
    if question == "q1":
        presence = _PRESENCE.fullmatch(text)
        return presence[1].lower() if presence else None
    match = _LETTER.fullmatch(text)
    if match is None:
        return None
    letter = (match[1] or match[2] or match[4]).upper()
    return letter if letter in letters else None


def _lenient(text: str, question: Question, letters: str) -> str | None:
    if text.startswith("<think>"):
        return None
    return presence_of(text) if question == "q1" else letter_of(text, letters)


def _last_answer(text: str) -> tuple[str] | None:
    """The `answer` of the last JSON object that has one; a value that is no string reads as empty text."""
    last: tuple[str] | None = None
    at, final = 0, text.rfind("}")
    while opening := _OPENING.search(text, at, final + 1):
        inside: list[tuple[str]] = []

        def keep(content: dict[str, Any], inside: list[tuple[str]] = inside) -> dict[str, Any]:
            if "answer" in content:
                value = content["answer"]
                inside.append((value if isinstance(value, str) else "",))
            return content

        try:
            _, at = json.JSONDecoder(object_hook=keep).raw_decode(text, opening.start())
        except (ValueError, RecursionError):
            at = opening.start() + 1
            continue
        last = inside[-1] if inside else last
    return last


_WORDS_BEFORE = r"(?:answer|option|choice|letter|choose|pick|select|say|is|be|with)"
_ASIDE = re.compile(
    r"\b(?:not|never|neither|nor|no|cannot|either|or|unless|except|unsure|wrong|incorrect|eliminated?|excluded?)\b"
    r"|n['’]t\b",
    re.IGNORECASE,
)
_NAMED = re.compile(r"(?<![\w'’])([A-Z])(?![\w'’])")
# "A hand" is an article before a noun; "A is", "A and B" and "A because" are not.
_ARTICLE = re.compile(r"A\s+(?!(?:and|or|is|was|because|since|as|but|with|to|vs|than|fits|matches)\b)[a-z]")
_LEADING = re.compile(r"[(*\"'“`\[]{0,3}([A-Z])[)*\"'”`\]]{0,3}[.):]")
_MARKED = re.compile(
    rf"\b{_WORDS_BEFORE}(?:\s++(?:is|be))?\s*+[:=]?\s*+[(*\"'“`\[{{$]{{0,3}}([A-Z])(?![\w'’])"
    r"|[(\[“\"`]([A-Z])[)\]”\"`]|\*\*([A-Z])[.)]?\*\*|\\(?:boxed|text|mathrm)\{\s*(?:\\text\{)?([A-Z])\}+"
    r"|[:=]\s*\$?([A-Z])\$?[.!]?\s*$|[“‘«]([A-Z])[”’»]",
    re.IGNORECASE,
)
_YES_NO = "[Yy][Ee][Ss]|[Nn][Oo]"  # ignoring case would take the long s for an s
_PRESENCE_WORD = re.compile(rf"\b({_YES_NO})\b")
_PRESENCE_LEADING = re.compile(rf"[(*\"'“`\[]{{0,3}}({_YES_NO})[)*\"'”`\]]{{0,3}}(?:[.,:;!)—–-]|$)")
_PRESENCE_MARKED = re.compile(
    rf"\b[Aa]nswer\s*+(?:is\s*+)?[:=]?\s*+[(*\"'“`]{{0,3}}({_YES_NO})\b(?!\s+\w)"
    rf"|\\(?:boxed|text)\{{\s*(?:\\text\{{)?({_YES_NO})\}}+|\*\*({_YES_NO})[.]?\*\*"
)


def letter_of(text: str, letters: str) -> str | None:
    """The capital letter that `text` marks as its choice, or None."""
    named = {
        match[1]
        for match in _NAMED.finditer(text)
        if not _ARTICLE.match(text, match.start()) and match[1] != "I"
    }
    if len(named) != 1 or not named <= set(letters):
        return None
    (letter,) = named
    leading = _LEADING.match(text)
    if leading and leading[1] == letter:
        return letter
    if _ASIDE.search(text):
        return None
    return letter if any(letter in match.groups() for match in _MARKED.finditer(text)) else None


def presence_of(text: str) -> str | None:
    """`yes` or `no` where `text` marks one of them as its answer and does not use the other word at all."""
    words = {match[1].lower() for match in _PRESENCE_WORD.finditer(text)}
    if len(words) != 1:
        return None
    (word,) = words
    if _PRESENCE_LEADING.match(text) or _PRESENCE_MARKED.search(text):
        return word
    return None
