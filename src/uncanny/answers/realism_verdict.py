"""The verdict of a realism check: the last line that starts with `Verdict:`, in any case, Markdown allowed.

What stands behind the colon must begin with the word that was asked for, and nothing after it may take that
back: "No, it is realistic", "No, nothing gives a change away" and "First and second are alike" are no
verdicts. Where the line ends with the colon, the next line that is not empty is taken for the rest of it.
Anything else is no verdict, and nothing is guessed. A leading block of reasoning does not count.
Source: SAGI, supplementary, section 1.5.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal

from uncanny.answers.json_text import excerpt, without_thinking
from uncanny.errors import AnswerError

Realistic = Literal["yes", "no"]
Position = Literal["first", "second", "both"]

# Possessive, so that a line of nothing but white space or marks is gone over once.
_DECOR = r"[\s>#*_`~+•\u200b\ufeff-]*+(?:\d{1,3}[.)]\s)?+[\s*_`]*+"
_LINE = re.compile(rf"{_DECOR}verdict[*_`\s]*+[:：](?P<rest>.*)", re.IGNORECASE)
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
_REAL = (
    r"(?:photo)?realistic\w*|realism|real|genuine\w*|authentic\w*|natural\w*|plausibl[ey]|believabl[ey]"
    r"|convincing\w*|consistent\w*|coherent\w*|un(?:altered|changed|edited|touched|modified|manipulated)"
)
_FAKED = (
    r"un(?:realistic\w*|natural\w*|real)|fakes?|faked|artificial\w*|synthetic\w*|implausibl[ey]|impossibl[ey]"
    r"|unconvincing\w*|inconsisten\w+|incoheren\w+|abnormal\w*|wrong\w*|suspicious\w*"
    r"|giv(?:e|es|ing)\s(?:\w+\s){0,4}away|giveaways?|art[ei]facts?|anomal\w+|flaws?|flawed|faults?|faulty"
    r"|errors?|distort\w+|defects?|signs?|traces?|hints?|clues?|evidence|indications?"
    r"|alter(?:ed|ations?)|chang(?:es?|ed)|edit(?:s|ed|ing)?|modif(?:ied|ications?)|manipulat(?:ed|ions?)"
    r"|retouch(?:ed|ing)|tamper(?:ed|ing)|inpaint(?:ed|ing)|generated"
)
_DENIES = (
    r"not|no|nothing|none|nobody|neither|nor|without|hardly|barely|never|cannot|lacks?|lacking"
    r"|free (?:of|from)|far from|fails?|instead of"
)
_CLAIM = re.compile(
    r"(?P<clause>[.,:;!?()–—]|\b(?:but|although|though|however|yet|while|because|since)\b)"
    rf"|\b(?P<real>{_REAL})\b|\b(?P<faked>{_FAKED})\b"
    rf"|(?P<denies>\b(?:{_DENIES})\b|n[’']t\b)|\b(?P<hardly>too|less)\b|\b(?P<unsaid>would)\b",
    re.IGNORECASE,
)
_RATHER = re.compile(rf"\b(first|second)((?:\s+\w+){{0,4}}?)\s+more\s+(?:{_REAL})\b", re.IGNORECASE)
# A verdict is a line; what is longer is none.
_LONGEST = 2_000


def read_realistic(answer: str) -> Realistic:
    """The verdict of the first check. Raises AnswerError where there is none."""
    said = _verdict(answer)
    found = _REALISTIC.match(said)
    if found is None or not _SENTENCE.match(found["rest"]):
        raise _unreadable(said)
    word: Realistic = "yes" if found[1].lower() == "yes" else "no"
    if re.fullmatch(r"\W*(?:yes|no)\W*", found["rest"], re.IGNORECASE):
        raise _unreadable(said)
    claims = set(_claims(found["rest"]))
    if claims and word not in claims:
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
    if _DENIAL.search(clause) or _prefers_another(rest, word):
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
        if len(said) > _LONGEST:
            raise AnswerError("the verdict is too long; give one word")
        return said
    raise AnswerError("no line starts with `Verdict:`" if answer.strip() else "the answer is empty")


def _claims(text: str) -> Iterator[Realistic]:
    """What stands behind the word, taken by itself: one for each claim about the picture, clause by clause.

    What is denied counts as its opposite: "nothing gives a change away" says yes. A clause with "would" says
    what is not, and nothing of what is.
    """
    claims: list[Realistic] = []
    denials, hardly, unsaid = 0, False, False
    for found in _CLAIM.finditer(text + "."):
        match found.lastgroup:
            case "clause":
                if not unsaid:
                    yield from claims
                claims, denials, hardly, unsaid = [], 0, False, False
            case "denies":
                denials += 1
            case "hardly":
                hardly = True  # "too smooth to be real", though not "too artificial"
            case "unsaid":
                unsaid = True
            case "real":
                claims.append("no" if (denials + hardly) % 2 else "yes")
            case "faked":
                claims.append("yes" if denials % 2 else "no")


def _prefers_another(text: str, word: str) -> bool:
    """Whether a clause behind the word calls another picture the more real one."""
    return any(
        found[1].lower() != word
        and not re.search(rf"\b(?:{_DENIES}|than)\b|n[’']t\b", found[2], re.IGNORECASE)
        for found in _RATHER.finditer(text)
    )


def _unreadable(said: str) -> AnswerError:
    return AnswerError(f"the verdict is none of those asked for: {excerpt(said)}")
