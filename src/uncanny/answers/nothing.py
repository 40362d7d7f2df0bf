"""Telling whether an answer says, and says only, that there is nothing to list."""

from __future__ import annotations

import re
from typing import Any

from uncanny.answers.listform import ListForm

_LONGEST = 120
_EMPTY_LIST = re.compile(r"\[\s*\]|(?P<key>\w+)\s*[:=]\s*\[\s*\]")
_FENCE = re.compile(r"^[`~]{3,}(?:json|text|plaintext|markdown|yaml)?\s|[`~]{3,}$")
_NOT_WORD = re.compile(r"[\W_]+")
_KIND = r"(?:visible |semantic |visual |obvious |clear |significant |content level |apparent )?"
_FOUND = r"(?:found|detected|observed|identified|present|visible|reported)"
_WHERE = r"(?: (?:in|within) (?:the|this) (?:given |provided )?(?:image|picture|photo|scene))?"


def says_nothing(text: str, form: ListForm[Any]) -> bool:
    """Whether the whole of `text` is `[]`, "None", "No anomalies found." or the like.

    The forms are few and must fill the answer: "no anomalies, except …" and "the image looks fine" are not
    among them, since an empty list is a result and a doubtful one is worth another question.
    """
    if len(text) > _LONGEST:
        return False
    text = _FENCE.sub("", text.strip()).strip()
    if found := _EMPTY_LIST.fullmatch(text):
        return found["key"] is None or found["key"].casefold() == form.key
    if any(bracket in text for bracket in "{}[]"):
        return False
    plain = _NOT_WORD.sub(" ", text).strip().casefold()
    nouns = "(?:" + "|".join(re.escape(noun) for noun in form.nouns) + ")"
    nothing = f"no {_KIND}{nouns}"
    return any(
        re.fullmatch(pattern, plain)
        for pattern in (
            r"none(?: found)?",
            r"nothing (?:was )?found",
            f"{nouns} none(?: {_FOUND})?",
            f"{nothing}(?: (?:is |are |were |was |have been )?{_FOUND})?{_WHERE}",
            f"there (?:is|are) {nothing}(?: {_FOUND})?{_WHERE}",
            f"(?:i|we) (?:found|find|see|detect|detected|observe|observed) {nothing}{_WHERE}",
        )
    )
