"""The verdict of a realism check: the last line that starts with `Verdict:`, in any case, Markdown allowed.

What stands behind the colon must begin with the word that was asked for, and nothing after it may take that
back: "No, it is realistic" and "First and second are alike" are no verdicts. Where the line ends with the
colon, the next line that is not empty is taken for the rest of it. Anything else is no verdict, and nothing
is guessed. A leading block of reasoning does not count. Source: SAGI, supplementary, section 1.5.
"""

from __future__ import annotations

import re
from typing import Literal

from uncanny.answers.excerpt import excerpt
from uncanny.answers.jsontext import without_thinking
from uncanny.errors import AnswerError

Realistic = Literal["yes", "no"]
Position = Literal["first", "second", "both"]

_DECOR = r"[\s>#*_`~+•\u200b\ufeff-]*(?:\d{1,3}[.)]\s)?[\s*_`]*"
_LINE = re.compile(rf"{_DECOR}verdict[*_`\s]*[:：](?P<rest>.*)", re.IGNORECASE)
_LINES = re.compile(r"\r\n|[\r\n\u2028\u2029]")
_AROUND = " \t*_`~\"'“”‘’()[]<>{}#\u200b\ufeff"
_REALISTIC = re.compile(r"(yes|no)\b(?P<rest>.*)", re.IGNORECASE)
# After the word: nothing, a stop, or a sentence about the picture: "no doubt" and "no idea" are no "no".
_SENTENCE = re.compile(
    r"""[*_`"”’')\]]*\s*
    (?:$ | [.,;:!–—(-] | (?:it|this|that|the)\b)""",
    re.VERBOSE | re.IGNORECASE,
)
_POSITION = re.compile(r"(?:the\s+)?(first|second|both)\b(?P<rest>.*)", re.IGNORECASE)
_JOINED = re.compile(
    r"""\W*(?:image|picture|photo|photograph|one|option)?\W*
    (?:and|or|[/,&+])?\W*(?:the\s+)?(?:first|second|both|neither)\b""",
    re.VERBOSE | re.IGNORECASE,
)
_DENIAL = re.compile(
    r"\b(?:not|less|least|neither|never|hardly|cannot|worse|worst|fake|un\w+|\w+n[’']t)\b", re.IGNORECASE
)
_TIE = re.compile(r"\b(?:equal\w*|same|alike|identical\w*|tied?)\b", re.IGNORECASE)
_LEANING = re.compile(r"\b(?:first|second)\b.*\bmore\b|\bmore\b.*\b(?:first|second)\b", re.IGNORECASE)
_NEGATION = re.compile(r"\b(?:not|no|nothing|none|without|hardly|never)\b|n[’']t\b", re.IGNORECASE)
_CLAIM = re.compile(r"(?P<before>.*?)\b(?P<word>(?:un|photo)?realistic)\b", re.IGNORECASE)


def read_realistic(answer: str) -> Realistic:
    """The verdict of the first check. Raises AnswerError where there is none."""
    said = _verdict(answer)
    found = _REALISTIC.match(said)
    if found is None or not _SENTENCE.match(found["rest"]):
        raise _unreadable(said)
    word: Realistic = "yes" if found[1].lower() == "yes" else "no"
    if re.fullmatch(r"\W*(?:yes|no)\W*", found["rest"], re.IGNORECASE):
        raise _unreadable(said)
    claim = _claim(found["rest"])
    if claim is not None and claim != word:
        raise AnswerError(f"the verdict contradicts itself: {excerpt(said)}")
    return word


def read_position(answer: str) -> Position:
    """The verdict of the second check. Raises AnswerError where there is none."""
    said = _verdict(answer)
    found = _POSITION.match(said)
    if found is None:
        raise _unreadable(said)
    word, rest = found[1].lower(), found["rest"]
    clause = re.split(r"[.,;:!(]", rest, maxsplit=1)[0]
    if _DENIAL.search(clause):
        raise _unreadable(said)
    if word == "both":
        if _LEANING.search(rest):
            raise _unreadable(said)
        return "both"
    if _JOINED.match(rest) or _TIE.search(clause):
        raise _unreadable(said)
    return "first" if word == "first" else "second"


def _verdict(answer: str) -> str:
    """What the last verdict line says, without Markdown around it. Raises AnswerError where there is none."""
    lines = _LINES.split(without_thinking(answer))
    for number in range(len(lines) - 1, -1, -1):
        found = _LINE.match(lines[number])
        if found is None:
            continue
        said = found["rest"].strip(_AROUND)
        if not said:
            said = next(
                (line.strip(_AROUND + ">-+•") for line in lines[number + 1 :] if line.strip(_AROUND)), ""
            )
        if not said:
            raise AnswerError("the line `Verdict:` is empty")
        return said
    raise AnswerError("no line starts with `Verdict:`" if answer.strip() else "the answer is empty")


def _claim(text: str) -> Realistic | None:
    """What a sentence behind the word says by itself; None where it says neither."""
    found = _CLAIM.match(re.split(r"[.;!]", text, maxsplit=1)[0])
    if found is None:
        return None
    denied = found["word"].lower().startswith("un")
    if _NEGATION.search(found["before"]):
        denied = not denied
    return "no" if denied else "yes"


def _unreadable(said: str) -> AnswerError:
    return AnswerError(f"the verdict is none of those asked for: {excerpt(said)}")
