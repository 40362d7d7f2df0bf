"""The demo model in the role of the multiple-choice protocol, asked one question at a time.

Source: SalArt-VQA, whose four questions these are: q1 yes or no, q2–q4 one letter, E for none of them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Final

from uncanny.demo.prompts import Question
from uncanny.demo.scenes import Scene, scenes
from uncanny.demo.views import View, mcq_mistakes_in
from uncanny.errors import RequestRejectedError

NO_IMAGE: Final = "q4_no_image"
"""Q4 asked as a control, with no image and F for saying so."""

OVERLAY_QUESTION: Final = "q3"
"""The question whose image has boxes drawn on it."""

_NAMES = ("q1", "q2", "q3", "q4", NO_IMAGE)
# Real models add a full stop or brackets now and then, and rarely a sentence: one in 16 each.
_LETTER_FORMS = (*["{}"] * 12, "{}.", "({})", "**{}**", "Probably {}, but it is hard to say.")
_WORD_FORMS = (*["{}"] * 14, "{}.", "Probably {}, but it is hard to say.")


def answer_choice(question: Question, views: Sequence[View]) -> str:
    """One word or letter; for a bundled scene the truth but for the listed mistakes.

    Raises `RequestRejectedError` for a question that is not of the protocol.
    """
    if question.name not in _NAMES:
        raise RequestRejectedError(
            f"The demo model was asked question {question.name!r}; it knows {', '.join(_NAMES)}",
            remedy="Say which in a line `Question: NAME`.",
        )
    if question.name == NO_IMAGE:
        return _without_image(question)
    view = views[0]
    scene = next((each for each in scenes() if each.id == view.scene), None)
    return made_up_choice(view.sha256, question.name) if scene is None else _of_scene(scene, question.name)


def made_up_choice(seed: str, name: str, letters: str = "ABCDE") -> str:
    """A choice drawn from the seed, the same each time, in the form that a model might give it.

    `yes` or `no` where the name is `q1`, else one of the letters.
    """
    drawn = hashlib.sha256(f"{name}:{seed}".encode()).digest()
    choices, forms = (("yes", "no"), _WORD_FORMS) if name == "q1" else (tuple(letters), _LETTER_FORMS)
    return forms[drawn[1] % 16].format(choices[drawn[0] % len(choices)])


def _of_scene(scene: Scene, name: str) -> str:
    right = {
        "q1": scene.mcq.q1.answer,
        "q2": scene.mcq.q2.answer,
        "q3": scene.mcq.q3.answer,
        "q4": scene.mcq.q4.answer,
    }
    return mcq_mistakes_in(scene.id).get(name, right[name])


def _without_image(question: Question) -> str:
    """F, but for the listed mistake; of options not of a bundled scene, one set in eight gets a guess."""
    options = {str(letter): str(text) for letter, text in question.data("options").items()}
    known = {letter: options[letter] for letter in "ABCD" if letter in options}
    shown = [scene for scene in scenes() if scene.mcq.q4.options == known]
    for scene in shown:
        if (guess := mcq_mistakes_in(scene.id).get(NO_IMAGE)) is not None:
            return guess
    seed = "\n".join(known.values())
    if not shown and hashlib.sha256(seed.encode()).digest()[0] < 32:
        return made_up_choice(seed, NO_IMAGE)
    return "F"


ROLES = {"ArtifactAnswerer": answer_choice}
