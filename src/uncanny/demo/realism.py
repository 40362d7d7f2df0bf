"""The demo model's answers to the prompts of the two realism checks.

Source: SAGI, supplementary, sections 1.5 and 1.6, whose two checks these are.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Final

from uncanny.demo.character import Character, seed_of
from uncanny.demo.data.mistakes import REALISM_MISTAKES
from uncanny.demo.recognition import RecognizedPrompt
from uncanny.demo.scenes import Picture
from uncanny.demo.views import SYNTHETIC_MARK, View
from uncanny.errors import RequestRejectedError

# Real models wrap the verdict one way or another; all of these are read alike.
_FORMS: Final = ("Verdict: {}", "**Verdict:** {}.", "### Verdict: {}", "Verdict: *{}*", "> verdict: {}")


def check_realism(prompt: RecognizedPrompt, views: Sequence[View]) -> str:
    """An assessment and `Yes` or `No`; for a bundled scene the truth but for the listed mistakes.

    A model with a character errs more often.
    """
    scene, sha256, character = views[0].scene, views[0].sha256, prompt.character
    if scene is None:
        word = "Yes" if _drawn(seed_of(character, sha256))[0] % 8 < 5 else "No"
        return _assessment(f"I looked at the whole picture ({SYNTHETIC_MARK}).", word, sha256)
    word = REALISM_MISTAKES.get(scene.id, {}).get("first", "No" if scene.anomalies else "Yes")
    if character is not None and character.errs(scene.id, "realism"):
        word = "Yes" if word == "No" else "No"
    if word == "No":
        faults = " ".join(anomaly.phenomenon for anomaly in views[0].anomalies) or "Something is wrong here."
        return _assessment(faults, word, sha256)
    return _assessment(
        "Shapes, light and contacts hang together; I see nothing that could not be.", word, sha256
    )


def compare_realism(prompt: RecognizedPrompt, views: Sequence[View]) -> str:
    """An assessment and `First`, `Second` or `Both`; of two bundled scenes the one without anomaly is chosen.

    Raises `RequestRejectedError` for any other number of images than two.
    """
    if len(views) != 2:
        raise RequestRejectedError(
            f"The demo model was asked to compare {len(views)} images",
            remedy="Send both images in the same request, one after the other.",
        )
    first, second = views
    seed = f"{first.sha256}{second.sha256}"
    if first.scene is None or second.scene is None:
        word = _made_up(first.sha256, second.sha256, prompt.character)
        return _assessment(f"I compared both pictures ({SYNTHETIC_MARK}).", word, seed)
    verdict = _compare_scenes(first.scene, second.scene)
    about = (first.scene.id, second.scene.id)
    if verdict is not None and prompt.character is not None and prompt.character.errs(*about):
        verdict = prompt.character.other(("First", "Second", "Both"), verdict, *about)
    if verdict is None:
        return "Both pictures have much to say for themselves, and I would rather not decide between them."
    return _assessment("I compared shapes, light and contacts in both pictures.", verdict, seed)


def _compare_scenes(first: Picture, second: Picture) -> str | None:
    """The word; None for the listed pair that gets no verdict."""
    edited = next((scene for scene in (first, second) if scene.anomalies), None)
    if edited is not None and first.pair_id == second.pair_id:
        order = "edited_first" if first is edited else "original_first"
        if (mistake := REALISM_MISTAKES.get(edited.id, {}).get(order)) is not None:
            return None if mistake == "no verdict" else mistake
    if bool(first.anomalies) == bool(second.anomalies):
        return "Both"
    return "Second" if first.anomalies else "First"


def _made_up(first: str, second: str, character: Character | None) -> str:
    """A choice for two unknown images: of one of them in either order, of both, or rarely of a place."""
    low, high = sorted((first, second))
    digest = _drawn(seed_of(character, low + high))
    match digest[0] % 8:
        case 0 | 1 | 2:
            return "First" if first == low else "Second"
        case 3 | 4:
            return "First" if first == high else "Second"
        case 5:
            return "Both"
        case 6:
            return "Both" if first == low else "First"
        case _:
            return "First" if digest[1] % 4 else "Second"


def _assessment(text: str, word: str, seed: str) -> str:
    form = _FORMS[_drawn(seed)[2] % len(_FORMS)]
    return f"Assessment: {text}\n\n{form.format(word)}"


def _drawn(seed: str) -> bytes:
    return hashlib.sha256(f"realism:{seed}".encode()).digest()


ANSWERERS = {"first_check": check_realism, "second_check": compare_realism}
"""Prompt → who answers it."""
