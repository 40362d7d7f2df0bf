"""Reading the answer to "was this picture made by an image generator?": generated, real, or not clear."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from typing import Any, Final

from uncanny.answers.jsontext import json_values, opening, without_thinking
from uncanny.answers.verdict_words import (
    CLAIM,
    CONDITION,
    DOUBT,
    EITHER,
    FRAGMENT,
    GENERATED_KEYS,
    HEDGE,
    LABELLED,
    LEAD,
    NEGATION,
    NO,
    PHRASES,
    REAL_KEYS,
    REALITY,
    VERDICT_KEYS,
    WEAK,
    WHOLE_WORDS,
    YES,
)
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
