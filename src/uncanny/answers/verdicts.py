"""Verdicts: the word that an answer ends with, on a line of its own that starts with `Verdict:`.

The last such line counts, in any case, Markdown allowed. What stands behind the colon must begin with a word
that was asked for, and nothing after it may take that back: "No, it is realistic", "No, nothing gives a
change away" and "First and second are alike" are no verdicts. Where the line ends with the colon, the next
line that is not empty is taken for the rest of it. Whether a picture is generated may also be said by a
plain yes or no, as many models do whatever form they are asked for.

Anything else is an `AnswerError`: nothing is guessed, since asking again costs little. A leading block of
reasoning does not count. Source of the line: SAGI, supplementary, section 1.5.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final, Literal

from uncanny.answers.json_text import excerpt, without_thinking
from uncanny.errors import AnswerError
from uncanny.schema import Source

YesNo = Literal["yes", "no"]
Realistic = YesNo
Position = Literal["first", "second", "both"]

# What yes and no say of the picture, by the question.
_REALISTIC: Final[Mapping[YesNo, Source]] = {"yes": "real", "no": "generated"}
_GENERATED: Final[Mapping[YesNo, Source]] = {"yes": "generated", "no": "real"}

# The verdict line. Possessive, so that a line of nothing but white space or marks is gone over once.
_DECOR = r"[\s>#*_`~+•\u200b\ufeff-]*+(?:\d{1,3}[.)]\s)?+[\s*_`]*+"
_LINE = re.compile(rf"{_DECOR}verdict[*_`\s]*+[:：](?P<rest>.*)", re.IGNORECASE)
_LINES = re.compile(r"\r\n|[\r\n\u2028\u2029]")
_AROUND = " \t*_`~\"'“”‘’()[]<>{}#\u200b\ufeff"

_YES_NO = re.compile(r"(yes|no)\b(?P<rest>.*)", re.IGNORECASE | re.DOTALL)
# After the word: nothing, a stop, or a sentence about the picture: "no doubt" and "no idea" are no "no".
_SENTENCE = re.compile(
    r"""[*_`"”’')\]]*+[^\S\n]*+
    (?:$ | [\n.,，。;:!–—(-] | (?:it|this|that|the)\b)""",
    re.VERBOSE | re.IGNORECASE,
)
_LAST_LINE = re.compile(
    r"(?:[^\w{}]|_)*+(?:(?:the )?(?:final )?(?:answer|verdict)(?: is)?[^\w{}]++)?+(yes|no)(?:[^\w{}]|_)*+",
    re.IGNORECASE,
)
_UNSURE = re.compile(
    r"\b(?:maybe|perhaps|possibly|probably|(?:un)?sure|(?:un)?certain"
    r"|(?:can ?not|can[’']t|unable to|(?:hard|difficult|impossible) to)"
    r" (?:say|tell|know|judge|decide|determine))\b",
    re.IGNORECASE,
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

# Claims about the picture behind a verdict's first word.
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
_LONGEST_ANSWER = 20_000
_NO_SOURCE = "it does not end with a line `Verdict: Yes` or `Verdict: No`"


def read_realistic(answer: str) -> Realistic:
    """Whether the picture is realistic. Raises AnswerError where there is no verdict."""
    return _yes_no(_behind_colon(answer), _REALISTIC)


def read_source(answer: str) -> Source:
    """Whether the picture is generated, yes or no: the verdict line, else a yes or no of another form.

    That is one that the answer begins with, or its last line, `Answer:` before it or not. It counts only
    where the whole answer bears it out: no doubt, no other yes or no, and nothing that calls the picture the
    opposite. Raises AnswerError where there is neither.
    """
    lines = _lines(answer)
    if any(_LINE.match(line) for line in lines):
        return _GENERATED[_yes_no(_behind_colon(answer), _GENERATED)]
    text = "\n".join(lines).strip(_AROUND + "\n")
    if not text:
        raise AnswerError("the answer is empty")
    if len(text) > _LONGEST_ANSWER:
        raise AnswerError(_NO_SOURCE)
    first = _YES_NO.match(text)
    last = _LAST_LINE.fullmatch(next(line for line in reversed(lines) if line.strip(_AROUND)))
    if first is not None and _SENTENCE.match(first["rest"]):
        word = _word(first[1])
    elif last is not None:
        word = _word(last[1])
    else:
        raise AnswerError(_NO_SOURCE)
    other = "no" if word == "yes" else "yes"
    if _UNSURE.search(text) or re.search(rf"\b{other}\b", text, re.IGNORECASE):
        raise AnswerError(_NO_SOURCE)
    if not {_GENERATED[word]}.issuperset(_claims(text if first is None else first["rest"])):
        raise AnswerError(f"the answer contradicts itself: {excerpt(text)}")
    return _GENERATED[word]


def read_position(answer: str) -> Position:
    """Which of two pictures is the more realistic. Raises AnswerError where there is no verdict."""
    verdict = _behind_colon(answer)
    match = _POSITION.match(verdict)
    if match is None:
        raise _unreadable(verdict)
    word, rest = match[1].lower(), match["rest"]
    clause = re.split(r"[.,;:!(]", rest, maxsplit=1)[0]
    if _DENIAL.search(clause) or _prefers_another(rest, word):
        raise _unreadable(verdict)
    if word == "both":
        if _LEANING.search(rest):
            raise _unreadable(verdict)
        return "both"
    if _JOINED.match(rest) or _TIE.search(clause):
        raise _unreadable(verdict)
    return "first" if word == "first" else "second"


def _yes_no(verdict: str, meaning: Mapping[YesNo, Source]) -> YesNo:
    """The word that a verdict begins with. Raises AnswerError where what follows takes it back."""
    match = _YES_NO.match(verdict)
    if match is None or not _SENTENCE.match(match["rest"]):
        raise _unreadable(verdict)
    word = _word(match[1])
    if re.fullmatch(r"\W*(?:yes|no)\W*", match["rest"], re.IGNORECASE) or _UNSURE.search(match["rest"]):
        raise _unreadable(verdict)
    claims = set(_claims(match["rest"]))
    if claims and meaning[word] not in claims:
        raise AnswerError(f"the verdict contradicts itself: {excerpt(verdict)}")
    return word


def _word(text: str) -> YesNo:
    return "yes" if text.lower() == "yes" else "no"


def _lines(answer: str) -> list[str]:
    return _LINES.split(without_thinking(answer))


def _behind_colon(answer: str) -> str:
    """What the last verdict line says, without Markdown around it. Raises AnswerError where there is none."""
    lines = _lines(answer)
    for number in range(len(lines) - 1, -1, -1):
        match = _LINE.match(lines[number])
        if match is None:
            continue
        verdict = match["rest"].strip(_AROUND)
        if not verdict:
            verdict = next(
                (line.strip(_AROUND + ">-+•") for line in lines[number + 1 :] if line.strip(_AROUND)), ""
            )
        if not verdict:
            raise AnswerError("the line `Verdict:` is empty")
        if len(verdict) > _LONGEST:
            raise AnswerError("the verdict is too long; give one word")
        return verdict
    raise AnswerError("no line starts with `Verdict:`" if answer.strip() else "the answer is empty")


def _claims(text: str) -> Iterator[Source]:
    """What stands behind the word, taken by itself: one for each claim about the picture, clause by clause.

    What is denied counts as its opposite: "nothing gives a change away" says real. A clause with "would" says
    what is not, and nothing of what is.
    """
    claims: list[Source] = []
    denials, hardly, unsaid = 0, False, False
    for match in _CLAIM.finditer(text + "."):
        match match.lastgroup:
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
                claims.append("generated" if (denials + hardly) % 2 else "real")
            case "faked":
                claims.append("real" if denials % 2 else "generated")


def _prefers_another(text: str, word: str) -> bool:
    """Whether a clause behind the word calls another picture the more real one."""
    return any(
        match[1].lower() != word
        and not re.search(rf"\b(?:{_DENIES}|than)\b|n[’']t\b", match[2], re.IGNORECASE)
        for match in _RATHER.finditer(text)
    )


def _unreadable(verdict: str) -> AnswerError:
    return AnswerError(f"the verdict is none of those asked for: {excerpt(verdict)}")
