"""Reading the answer to "was this picture made by an image generator?": generated, real, or not clear.

The words in which models say that a picture is generated, is real, or that they do not know."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from typing import Any, Final, Literal

from uncanny.answers.json_text import json_values, opening, without_thinking
from uncanny.errors import AnswerError
from uncanny.schema import Source

_LONGEST: Final = 20_000
_CONDITION_LENGTH: Final = 200
_OPPOSITE: Final[dict[Source, Source]] = {"generated": "real", "real": "generated"}
_BOOLEANS: Final[dict[str, Source]] = {"true": "generated", "false": "real"}
_MARKUP = re.compile(r"[*_`\"“”„«»#>]+")
# Models that were trained to reason put the result into a tag or a box.
_FRAME = re.compile(r"</?(?:answer|verdict)>|\\boxed\{(?:\\text\{)?(\w+)\}{1,2}", re.IGNORECASE)
_SENTENCES = re.compile(r"(?<=[.!?。！？])\s+|\n+")
_TRIM = " \t\r\n.!,;:。！，'’()[]"


def read_source(answer: str) -> Source | None:
    """What `answer` says of the picture; None where it does not clearly say one of the two.

    A leading block of reasoning, Markdown and quotes are left out. Then the rule is:

    1. Where the answer holds JSON, that alone counts: `answer`, `verdict`, `label`, `source` and the like
       with a verdict in words or as a Boolean, `generated`, `ai_generated` or `fake` with yes or no, `real`
       or `authentic` with yes or no. All of these keys that are there must agree.
    2. Else four kinds of statement count: yes or no at the very beginning, set apart by punctuation; a line
       of nothing but a verdict; a verdict behind "answer", "verdict" or "conclusion", in `<answer>` or in
       `\\boxed{}`; an English sentence that says of this picture that it is, or is not, generated or real.
       All must agree.
    3. Words of certain doubt anywhere ("I am not sure", "cannot tell whether", "yes or no") make it unclear.
       So do "maybe", "likely" or "could" in a sentence of kind four without a yes or no at the beginning;
       with one, only "maybe", "perhaps" and "possibly" beside it do. "Appears", "seems" and "I think" count
       as saying so.
    4. A yes or no that is followed, in its sentence, by a word for reality ("no, this is not a real photo")
       counts only if a sentence of kind four bears it out.
    5. Of other languages, yes and no of some twenty count like the English ones.
    6. More than 20,000 characters are no clear answer.

    Never raises. What is unclear is never guessed: a doubled negation, a refusal, an empty answer is None.
    """
    try:
        text = without_thinking(answer).strip()
        if len(text) > _LONGEST:
            return None
        if opening(text) is not None:
            return _agreed(_json_votes(text))
    except AnswerError:
        return None
    return _of_text(text)


def _json_votes(text: str) -> Iterator[Source | None]:
    for value, _, _ in json_values(text):
        if isinstance(value, dict):
            yield from _of_object(value)
        else:
            yield None


def _of_object(value: dict[Any, Any]) -> Iterator[Source | None]:
    for key, said in value.items():
        name = re.sub(r"[\W_]+", "", str(key)).casefold().removeprefix("is")
        word = _whole(str(said)) if isinstance(said, str | bool) else ""
        found = _BOOLEANS.get(word) or (_of_text(said) if isinstance(said, str) else None)
        if name in VERDICT_KEYS or name in GENERATED_KEYS:
            yield found
        elif name in REAL_KEYS:
            plain = word in _BOOLEANS or word in YES or word in NO
            yield _OPPOSITE[found] if found is not None and plain else None


def _of_text(raw: str) -> Source | None:
    framed = _FRAME.sub(lambda found: f"\n{found[1] or ''}\n", raw)
    text = unicodedata.normalize("NFKC", _MARKUP.sub(" ", framed)).replace("’", "'").strip()
    whole = _phrase(text)
    if whole is not None:
        return whole
    if DOUBT.search(text) or EITHER.search(text):
        return None
    return _agreed(_votes(text))


def _whole(text: str) -> str:
    return " ".join(text.strip(_TRIM).casefold().replace("-", " ").split())


def _phrase(text: str) -> Source | None:
    """A verdict and nothing else."""
    plain = _whole(text)
    found = WHOLE_WORDS.get(plain)
    if found is None and (known := PHRASES.fullmatch(plain)):
        found = "generated" if known["generated"] or known["yes"] else "real"
        return _OPPOSITE[found] if known["not"] else found
    return found


def _votes(text: str) -> Iterator[Source | None]:
    lead = LEAD.match(text)
    sentences = [each for each in _SENTENCES.split(text) if each.strip()]
    claims = [vote for each in sentences for vote in _claims(each, led=lead is not None)]
    yield from claims
    for line in text.splitlines():
        if (found := _phrase(line)) is not None:
            yield found
    for labelled in LABELLED.finditer(text):
        yield _phrase(labelled["said"])
    if lead is not None:
        first = sentences[0]
        rest = first[len(lead["word"]) :]
        borne_out = any(vote is not None for vote in claims)
        if WEAK.search(rest) or (REALITY.search(rest) and not borne_out):
            yield None
        yield "generated" if lead["word"].casefold() in YES else "real"


def _claims(sentence: str, *, led: bool) -> Iterator[Source | None]:
    """What one sentence says of the picture; None for one that says it with doubt."""
    sentence = sentence.lstrip()
    for pattern in (CLAIM, FRAGMENT):
        denied: dict[int, int] = {}
        for found in pattern.finditer(sentence):
            start = found.start()
            if CONDITION.search(sentence, max(0, start - _CONDITION_LENGTH), start):
                continue
            begun = LEAD.match(sentence, 0, start)
            after = begun.end("word") if begun else 0
            if after not in denied:
                # Looked for once: a sentence of a thousand claims is gone over once, too.
                denial = NEGATION.search(sentence, after)
                denied[after] = denial.end() if denial else len(sentence) + 1
            if denied[after] <= start:
                if not led:
                    yield None
                continue
            if HEDGE.search(found["between"]) and not led:
                yield None
                continue
            said: Source = "generated" if found["generated"] else "real"
            yield _OPPOSITE[said] if NEGATION.search(found["between"]) else said


def _agreed(votes: Iterator[Source | None]) -> Source | None:
    found = set(votes)
    return found.pop() if len(found) == 1 else None


YES: Final = frozenset(
    [
        "yes",
        "yeah",
        "yep",
        "oui",
        "ja",
        "sí",
        "si",
        "sim",
        "sì",
        "да",
        "так",
        "はい",
        "ええ",
        "是",
        "是的",
        "네",
        "예",
        "evet",
        "tak",
        "ano",
        "हाँ",
        "हां",
        "نعم",
        "כן",
        "có",
    ]
)
NO: Final = frozenset(
    [
        "no",
        "nope",
        "non",
        "nein",
        "não",
        "nao",
        "nee",
        "nej",
        "нет",
        "ні",
        "いいえ",
        "不",
        "否",
        "不是",
        "아니요",
        "아니오",
        "hayır",
        "nie",
        "नहीं",
        "لا",
        "לא",
        "không",
    ]
)
# Words of one language that mean the opposite, or nothing, in another are not among them: "ne", "ni", "na".

WHOLE_WORDS: Final[dict[str, Literal["generated", "real"]]] = {
    **dict.fromkeys(YES, "generated"),
    **dict.fromkeys(NO, "real"),
    **dict.fromkeys(("生成", "ai生成", "ai 生成", "généré", "générée", "generiert", "generada"), "generated"),
    **dict.fromkeys(("真实", "真實", "réelle", "echt", "réel"), "real"),
}

VERDICT_KEYS: Final = frozenset(
    [
        "answer",
        "verdict",
        "label",
        "source",
        "result",
        "prediction",
        "classification",
        "class",
        "conclusion",
        "decision",
        "finalanswer",
    ]
)
GENERATED_KEYS: Final = frozenset(
    ["generated", "aigenerated", "fake", "synthetic", "artificial", "ai", "imagegenerated", "generatedbyai"]
)
REAL_KEYS: Final = frozenset(["real", "authentic", "genuine", "realphoto", "realphotograph", "realimage"])

_PICTURE = r"(?:image|picture|photo(?:graph)?)"
_ENDS = (
    r"(?=\s*(?:$|[.,;:!?)\]–—-]"
    r"|(?:and|but|or|of|from|taken|captured|made|rather|not|with|showing|by|using)\b))"
)
_MAKER = (
    r"(?:an? |some )?(?:ai\b|artificial intelligence|(?:ai |image |generative )?(?:generator|model)|"
    r"generative|diffusion|midjourney|dall|stable diffusion|computer|machine)"
)
_GENERATED = (
    rf"(?P<generated>(?:(?:ai|computer|machine|artificially|digitally|synthetically)[ -]?)?generated\b"
    rf"|ai[ -](?:made|created|produced|art|{_PICTURE})\b"
    rf"|(?:made|created|produced|rendered) (?:by|with|using|through) {_MAKER}"
    rf"|(?:ai|synthetic|fake|a deepfake|deepfake|artificial(?:ly (?:made|created|produced))?)"
    rf"(?:\s+{_PICTURE})?{_ENDS})"
)
_REAL_WORD = r"(?:real(?:[ -]life)?|genuine|authentic|actual)"
_REAL = (
    rf"(?:{_REAL_WORD}(?:\s+(?:digital |camera )?{_PICTURE})?{_ENDS}"
    r"|(?:taken|captured|made|shot) (?:by|with|on) (?:an? )?(?:real |actual |digital )?camera\b)"
)
_HEDGE = r"(?:likely|probably|presumably|possibly|perhaps|maybe|potentially|may|might|could|can)"
_FILLER = (
    r"(?:to be|to have been|been|being|be|like|clearly|definitely|certainly|indeed|obviously|almost|very|"
    r"most|highly|strongly|fully|entirely|completely|in fact|actually|as|as if it (?:is|was|were)|an?|the|"
    r"both|either|not)"
)
_SUBJECT = (
    rf"(?:(?:this|the|that)(?:\s+(?:given|provided|whole|entire|above))?(?:\s+{_PICTURE})?|it|{_PICTURE})"
)
_COPULA = (
    r"(?:'s|\s+is(?:n't)?|\s+was(?:n't)?|\s+has(?:n't)?|\s+(?:must|would) (?:be|have been)"
    r"|\s+(?:appears?|seems?|looks?)|\s+(?:does|did)(?:n't| not) (?:appear|seem|look)"
    r"|\s+(?:may|might|could|can)(?: not)? (?:be|have been))"
)

CLAIM: Final = re.compile(
    rf"(?<!\w){_SUBJECT}(?P<between>{_COPULA}(?:\s+(?:{_FILLER}|{_HEDGE}))*)\s+(?:{_GENERATED}|{_REAL})",
    re.IGNORECASE,
)
"""A sentence about this picture: subject, verb, perhaps "not", and a word for generated or for real."""

FRAGMENT: Final = re.compile(
    rf"(?:^|[,;:–—]|\s-\s)\s*(?P<between>(?:(?:not|{_HEDGE}|an?|it's|clearly|definitely)\s+)*)"
    rf"(?:{_GENERATED}(?:\s+{_PICTURE})?|{_REAL_WORD}\s+{_PICTURE})(?=\s*(?:[.,;!)]|$))",
    re.IGNORECASE,
)
"""The same without a verb: "Yes, AI-generated.", "No: a real photograph"."""

HEDGE: Final = re.compile(rf"\b{_HEDGE}\b", re.IGNORECASE)
CONDITION: Final = re.compile(
    r"\b(?:whether|if|unless|when|suppose|suggests?|suggesting|evidence|signs?|indicate|say|claim)"
    r"(?:\s+(?:that|or not|the|this|given|provided))*\s*$",
    re.IGNORECASE,
)
"""What makes the following words no statement: "whether the image is generated"."""

PHRASES: Final = re.compile(
    r"(?:(?:final )?(?:answer|verdict|conclusion|result|classification|label)(?: is)? ?[:=]? ?)?"
    r"(?:(?P<yes>yes)|(?P<no>no)|(?:(?:it|this) is |it's )?(?P<not>(?:not|non) )?(?:an? |the )?"
    r"(?:(?P<generated>(?:(?:ai|computer|machine) ?)?generated|ai|ai (?:made|created)"
    r"|synthetic|fake|artificial)"
    r"|(?P<real>real|genuine|authentic))"
    r"(?: (?:image|picture|photo|photograph))?)"
)
"""A line of nothing but a verdict, case folded, hyphens taken as spaces."""

LABELLED: Final = re.compile(
    r"\b(?:final )?(?:answer|verdict|conclusion|classification)\b(?: (?:is|would be))?\s*+[:=]?\s*+"
    r"(?P<said>(?:yes|no|real|fake|synthetic|(?:ai[ -])?generated|not generated|authentic|genuine))"
    r"(?=\s*(?:[.,;:!)]|$))",
    re.IGNORECASE | re.MULTILINE,
)

LEAD: Final = re.compile(
    r"\s*(?P<word>"
    + "|".join(sorted((re.escape(each) for each in YES | NO), key=len, reverse=True))
    + r")(?=\s*(?:[.,;:!?(\n–—。，、！：]|-\s|$)"
    + r"|\s+(?:it|this|that|the|i|absolutely|definitely|indeed|clearly)\b)",
    re.IGNORECASE,
)
"""Yes or no at the beginning, set apart from what follows."""

EITHER: Final = re.compile(r"\b(?:yes\W+(?:(?:and|or)\W+)?no|no\W+(?:(?:and|or)\W+)?yes)\b", re.IGNORECASE)

_ABOUT = r"(?=\s*(?:$|[.,;!?—–-]|whether\b|if\b|for (?:sure|certain)\b|with\b|either\b|which\b))"
DOUBT: Final = re.compile(
    r"(?:\bnot|n't)\s+(?:\w+\s+)?(?:sure|certain)\b|\b(?:unsure|uncertain|undetermined|inconclusive|indeterminate"
    rf"|(?:hard|difficult|impossible) to (?:say|tell|know|determine|judge|decide){_ABOUT}"
    rf"|(?:can(?:no|')t|can not|cannot|unable to|not able to|could ?n[o']t|impossible to)\s+(?:\w+ly\s+)?"
    rf"(?:say|tell|know|determine|judge|decide|verify|confirm|identify){_ABOUT}"
    r"|(?:do not|don't) know|no way (?:to|of)|unclear (?:whether|if)|could be either)",
    re.IGNORECASE,
)

WEAK: Final = re.compile(r"\b(?:maybe|perhaps|possibly)\b", re.IGNORECASE)
REALITY: Final = re.compile(
    r"\b(?:real(?!ist|ity|iz|is)\w*|genuine\w*|authenti\w*|actual|réel\w*|vraie?s?|echt\w*|ver[oa]|vere|"
    r"verdader\w*|autenti\w*|auténti\w*|reales|realna\w*|prawdziw\w*)\b|настоящ|реальн|真实|真實|本物|진짜",
    re.IGNORECASE,
)
NEGATION: Final = re.compile(
    r"\b(?:not|no|nothing|never|neither|nor|none|without|hardly|cannot|doubt|deny|unlikely)\b|n't\b",
    re.IGNORECASE,
)
