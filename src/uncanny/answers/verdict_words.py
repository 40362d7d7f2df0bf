"""The words in which models say that a picture is generated, is real, or that they do not know."""

from __future__ import annotations

import re
from typing import Final, Literal

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
