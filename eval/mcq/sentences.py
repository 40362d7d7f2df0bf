"""The one choice of an unambiguous sentence: the opt-in lenient reading, never part of the exact score.

A choice counts only where the sentence marks it as one, and only where no other option is named. A sentence
that negates, weighs or hedges is left unread: a missed answer is counted as invalid, a wrong reading is not
counted at all.
"""

from __future__ import annotations

import re

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
_PRESENCE = re.compile(rf"\b({_YES_NO})\b")
_PRESENCE_LEADING = re.compile(rf"[(*\"'“`\[]{{0,3}}({_YES_NO})[)*\"'”`\]]{{0,3}}(?:[.,:;!)—–-]|$)")
_PRESENCE_MARKED = re.compile(
    rf"\b[Aa]nswer\s*+(?:is\s*+)?[:=]?\s*+[(*\"'“`]{{0,3}}({_YES_NO})\b(?!\s+\w)"
    rf"|\\(?:boxed|text)\{{\s*(?:\\text\{{)?({_YES_NO})\}}+|\*\*({_YES_NO})[.]?\*\*"
)


def letter_of(text: str, letters: str) -> str | None:
    """The capital letter that `text` marks as its choice, or None."""
    named = {
        found[1]
        for found in _NAMED.finditer(text)
        if not _ARTICLE.match(text, found.start()) and found[1] != "I"
    }
    if len(named) != 1 or not named <= set(letters):
        return None
    (letter,) = named
    leading = _LEADING.match(text)
    if leading and leading[1] == letter:
        return letter
    if _ASIDE.search(text):
        return None
    return letter if any(letter in found.groups() for found in _MARKED.finditer(text)) else None


def presence_of(text: str) -> str | None:
    """`yes` or `no` where `text` marks one of them as its answer and does not use the other word at all."""
    said = {found[1].lower() for found in _PRESENCE.finditer(text)}
    if len(said) != 1:
        return None
    (word,) = said
    if _PRESENCE_LEADING.match(text) or _PRESENCE_MARKED.search(text):
        return word
    return None
