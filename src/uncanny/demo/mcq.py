"""The demo model's answers to multiple-choice prompts: uncanny's own, and any other that names its options.

Source: SalArt-VQA, whose four questions these are: q1 yes or no, q2–q4 one letter, E for none of them.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

import orjson

from uncanny.demo.character import Character
from uncanny.demo.data.mistakes import MCQ_MISTAKES
from uncanny.demo.recognition import RecognizedPrompt
from uncanny.demo.scenes import BoxChoice, Presence, Scene, TextChoice, scenes
from uncanny.demo.views import View

NO_IMAGE: Final = "q4_no_image"
"""Q4 asked as a control, with no image and F for saying so."""

BLIND: Final = "blind"
"""Any question asked without its image, to be guessed."""

OVERLAY: Final = "q3"
"""The prompt whose image has boxes drawn on it."""

# Real models add a full stop or brackets now and then, and rarely a sentence: one in 16 each.
_LETTER_FORMS: Final = (*["{}"] * 12, "{}.", "({})", "**{}**", "Probably {}, but it is hard to say.")
_WORD_FORMS: Final = (*["{}"] * 14, "{}.", "Probably {}, but it is hard to say.")

_LETTER = re.compile(r"\b[A-F]\b")
_RANGE = re.compile(r"\bA *(?:-|–|—|to) *([D-F])\b")
_OPTION = re.compile(r"([A-F])\. (.*)")
_YES, _NO = re.compile(r"\byes\b", re.IGNORECASE), re.compile(r"\bno\b", re.IGNORECASE)


def answer_choice(prompt: RecognizedPrompt, views: Sequence[View]) -> str:
    """One word or letter; for a bundled scene the truth but for the listed mistakes, else made up.

    A model with a character errs more often, each on questions of its own and on those that are hard for all.
    """
    scene, sha256, character = views[0].scene, views[0].sha256, prompt.character
    if not isinstance(scene, Scene):  # Large scenes have no questions.
        return made_up_choice(sha256, prompt.name, character=character)
    question: Presence | TextChoice | BoxChoice = getattr(scene.mcq, prompt.name)
    choice = MCQ_MISTAKES.get(scene.id, {}).get(prompt.name, question.answer)
    if character is None or not character.errs(scene.id, prompt.name):
        return choice
    return character.other(("yes", "no") if prompt.name == "q1" else "ABCDE", choice, scene.id, prompt.name)


def answer_without_image(prompt: RecognizedPrompt, _views: Sequence[View]) -> str:
    """F, but for the listed mistake; of options not of a bundled scene, one set in eight gets a guess.

    A model with a character guesses as often as that, or up to four times as often, whatever the options.
    """
    options = _options(prompt)
    choices = {letter: options[letter] for letter in "ABCD" if letter in options}
    pair = [scene for scene in scenes() if _written(scene.mcq.q4.options) == choices]
    for scene in pair:
        if (guess := MCQ_MISTAKES.get(scene.id, {}).get(NO_IMAGE)) is not None:
            return guess
    seed = "\n".join(choices.values())
    if (character := prompt.character) is not None:
        guesses = character.draw(NO_IMAGE, seed) < character.trait("guesses", 0.0, 0.5)
        return made_up_choice(seed, NO_IMAGE, character=character) if guesses else "F"
    if not pair and hashlib.sha256(seed.encode()).digest()[0] < 32:
        return made_up_choice(seed, NO_IMAGE)
    return "F"


def guess(prompt: RecognizedPrompt, _views: Sequence[View]) -> str:
    """A choice drawn from the question's words, in the form that it asks for."""
    question = prompt.text("question")
    character = prompt.character
    choice = choice_for_text(question, (), character) or made_up_choice(question, BLIND, character=character)
    return orjson.dumps({"answer": choice}).decode() if '"answer"' in question else choice


def _options(prompt: RecognizedPrompt) -> dict[str, str]:
    """By letter, from lines such as `A. …`."""
    lines = (_OPTION.fullmatch(line.strip()) for line in prompt.text("choices").splitlines())
    return {match[1]: match[2] for match in lines if match is not None}


def _written(options: Mapping[Any, str]) -> dict[str, str]:
    """As lines have them: with single spaces."""
    return {str(letter): " ".join(text.split()) for letter, text in options.items()}


def choice_for_text(text: str, images: Sequence[str], character: Character | None = None) -> str | None:
    """The answer to a prompt that is not uncanny's: a letter where its text names the options A–D or more.

    Else yes or no where the text names both, and None where it names neither. F is the answer without an
    image, where it is an option, and never with one. Drawn from the digests in `images` and the text.
    """
    seed = "\n".join((*images, text))
    letters = _letters_in(text)
    if letters:
        if "F" in letters and not images:
            return "F"
        return made_up_choice(seed, "letter", letters.replace("F", ""), character)
    return made_up_choice(seed, "q1", character=character) if _YES.search(text) and _NO.search(text) else None


def made_up_choice(seed: str, name: str, letters: str = "ABCDE", character: Character | None = None) -> str:
    """A choice drawn from the seed, the same each time, in the form that a model might give it.

    `yes` or `no` where the name is `q1`, else one of the letters; about half of the time the same one for all
    models.
    """
    digest = hashlib.sha256(f"{name}:{seed}".encode()).digest()
    choices, forms = (("yes", "no"), _WORD_FORMS) if name == "q1" else (tuple(letters), _LETTER_FORMS)
    if character is not None:
        form = forms[int(character.draw("form", name, seed) * len(forms))]
        return form.format(character.chooses(choices, name, seed))
    return forms[digest[1] % 16].format(choices[digest[0] % len(choices)])


def _letters_in(text: str) -> str:
    """The options the text names, such as `ABCDE`; empty where A–D are not all among them."""
    letters = set(_LETTER.findall(text))
    for last in _RANGE.findall(text):
        letters.update("ABCDEF"[: "ABCDEF".index(last) + 1])
    return "".join(sorted(letters)) if letters >= set("ABCD") else ""


ANSWERERS = {
    **dict.fromkeys(("q1", "q2", OVERLAY, "q4"), answer_choice),
    NO_IMAGE: answer_without_image,
    BLIND: guess,
}
"""Prompt → who answers it."""
WITHOUT_IMAGE = (NO_IMAGE, BLIND)
