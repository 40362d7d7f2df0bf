"""Answers of agents that write for image models: one line behind a label, `Caption: …`, and what it must be.

Lines are read whatever Markdown or quotes are around them, in any case and order; of a label that is there
twice the last line counts. A JSON object with the same names serves as well.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, get_args

from uncanny.answers.json_text import excerpt, json_values, without_thinking
from uncanny.errors import AnswerError

_LINES = re.compile(r"\r\n|[\r\n\u2028\u2029]")
_AROUND: Final = " \t*_`~\"'“”‘’#>\u200b\ufeff"
# An answer is a line or two; what is longer holds something else.
_LONGEST: Final = 20_000
_PREFIX = re.compile(r"in-?paint (?:the )?(?:masked )?(?:area|region)(?: with)?\s*[:,.…-]*\s*", re.IGNORECASE)
# A bare line is taken for the text that was asked for, unless it speaks of the task instead.
_ASIDE = re.compile(
    r"\s*(?:sorry|unfortunately|sure|certainly|of course|okay|here|i\b|i['’]|as an?\b|this\b|we\b)",
    re.IGNORECASE,
)
_ARTICLE = re.compile(r"^(?:an?|the)\s+")


# Paint over one object, a second one after it, or choose one to remove.
EditMode = Literal["inpaint", "double", "remove"]


@dataclass(frozen=True, slots=True)
class InpaintingPrompt:
    """What is to be painted over, as the list of objects has it, and what is to be seen there instead.

    `prompt` is None where the object is to be removed.
    """

    object: str
    prompt: str | None


def read_rewritten(answer: str, kind: TextKind, original: str) -> str:
    """The label or caption that a model made of `original`.

    Raises AnswerError where there is none, where it fails a gate (`failed_caption_gates`), and where nothing
    but case, articles or punctuation is different.
    """
    text = _values(answer, (kind,))[kind]
    _check(text, kind)
    if _plain(text) == _plain(original):
        raise AnswerError(f"the {kind} is the same as before; make the change that was asked for")
    return text


def read_inpainting(answer: str, objects: Sequence[str], *, removal: bool = False) -> InpaintingPrompt:
    """The object that a model chose among `objects`, and with `removal` False its prompt.

    The object may differ from the list in case, article and spaces; it comes back as the list has it. A
    prompt passes the gates of a caption, and is more than the object's name. "Inpaint the masked area with"
    before it is taken off. Raises AnswerError.
    """
    values = _values(answer, ("object",) if removal else ("object", "prompt"))
    known = {_plain(each): each for each in reversed(objects)}
    chosen = known.get(_plain(values["object"]))
    if chosen is None:
        listed = ", ".join(objects)
        raise AnswerError(f"the object {excerpt(values['object'])} is none of the list: {listed}"[:600])
    if removal:
        return InpaintingPrompt(chosen, None)
    prompt = _PREFIX.sub("", values["prompt"], count=1).strip(_AROUND)
    _check(prompt, "caption", "prompt")
    if _plain(prompt) == _plain(chosen):
        raise AnswerError("the prompt is what is there already; write what is to be seen instead")
    return InpaintingPrompt(chosen, prompt)


def _check(text: str, kind: TextKind, name: str | None = None) -> None:
    for gate in failed_caption_gates(text, kind):
        match gate:
            case "empty":
                raise AnswerError(f"the {name or kind} is empty")
            case "length":
                words = len(text.split())
                raise AnswerError(f"the {name or kind} has {words} words; {MOST_WORDS[kind]} are the most")
            case "special_characters":
                characters = " ".join(special_characters(text)[:10])
                raise AnswerError(
                    f"the {name or kind} has the characters {characters}; write letters, digits, spaces, "
                    "commas, full stops, apostrophes and hyphens only"
                )


def _values(answer: str, names: Sequence[str]) -> dict[str, str]:
    """The text behind each of the labels `names`. Raises AnswerError that names what is missing."""
    text = without_thinking(answer)
    if len(text) > _LONGEST:
        raise AnswerError("the answer is far too long")
    lines = [line for line in _LINES.split(text) if line.strip(_AROUND)]
    if not lines:
        raise AnswerError("the answer is empty")
    found = _of_json(text, names)
    for number, line in enumerate(lines):
        label, colon, rest = line.replace("：", ":").partition(":")
        name = label.strip(_AROUND + "-•").casefold()
        if colon and name in names:
            value = rest.strip(_AROUND)
            # The text may stand on the next line.
            if not value and number + 1 < len(lines):
                value = lines[number + 1].strip(_AROUND)
            found[name] = unicodedata.normalize("NFC", value)
    if not found and len(names) == 1 and len(lines) == 1 and not _ASIDE.match(lines[0].strip(_AROUND)):
        found[names[0]] = unicodedata.normalize("NFC", lines[0].strip(_AROUND))
    missing = [f"`{name.capitalize()}:`" for name in names if not found.get(name)]
    if missing:
        raise AnswerError(f"no line says {' nor '.join(missing)}; the answer starts with {excerpt(text)}")
    return found


def _of_json(text: str, names: Sequence[str]) -> dict[str, str]:
    try:
        values = [value for value, _, _ in json_values(text)]
    except AnswerError:
        return {}
    found: dict[str, str] = {}
    for value in values:
        inner = value.get("answer", value) if isinstance(value, Mapping) else value
        if isinstance(inner, Mapping):
            named = {str(key).casefold(): each for key, each in inner.items()}
            found |= {name: named[name].strip() for name in names if isinstance(named.get(name), str)}
    return found


def _plain(text: str) -> str:
    """A text reduced for comparison: case, articles, punctuation and spaces make no difference."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    words = re.sub(r"[^\w\s]|_", " ", folded).split()
    return _ARTICLE.sub("", " ".join(words))


TextKind = Literal["label", "caption"]
# How much an edit changes the meaning of a picture: Semi-Truths, table 2.
Magnitude = Literal["small", "medium", "large"]
MAGNITUDES: Final[tuple[Magnitude, ...]] = get_args(Magnitude)
CaptionGate = Literal["empty", "length", "special_characters"]

# Semi-Truths, appendix B.1: labels of masks, for inpainting, and captions, for prompt-based editing.
MOST_WORDS: Final[Mapping[TextKind, int]] = {"label": 5, "caption": 30}
# Punctuation of a plain sentence. Anything else that is no letter, digit or space is special: the interfaces
# of image models take brackets, colons and bars for weights and separators.
SPOKEN: Final = ".,'’-"


def failed_caption_gates(
    text: str, kind: TextKind, *, most_words: int | None = None
) -> tuple[CaptionGate, ...]:
    """The gates that a label or caption fails, in a fixed order; empty where it passes all.

    `empty`: it has no letter or digit. `length`: it has more than `most_words` words, by default 5 of a label
    and 30 of a caption, parted by white space. `special_characters`: one that `special_characters` names.
    """
    most = MOST_WORDS[kind] if most_words is None else most_words
    failed: list[CaptionGate] = []
    if not any(character.isalnum() for character in text):
        failed.append("empty")
    if len(text.split()) > most:
        failed.append("length")
    if special_characters(text):
        failed.append("special_characters")
    return tuple(failed)


def special_characters(text: str) -> tuple[str, ...]:
    """The characters of `text` that are no letter, digit, space or one of `SPOKEN`, each once, in order.

    Letters are those of any script, with their marks; a line break is special.
    """
    special = (
        character
        for character in text
        if character not in SPOKEN and character != " " and unicodedata.category(character)[0] not in "LMN"
    )
    return tuple(dict.fromkeys(special))
