"""Texts that image models are prompted with, labels of masks and captions, and the gates they must pass.

They are checked where a model writes one, so that it is asked again, and where a set of edits is sorted out
(`uncanny edits gate`). Source: Semi-Truths, appendix B.1, which counts words and drops "special characters"
without saying which; see `SPOKEN`.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from typing import Final, Literal, get_args

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
