"""The demo model in the roles of the two realism checks.

Source: SAGI, supplementary, sections 1.5 and 1.6, whose two checks these are.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Final

from uncanny.demo.prompts import Question
from uncanny.demo.scenes import Scene, scenes
from uncanny.demo.views import SYNTHETIC_MARK, View, realism_mistakes_in
from uncanny.errors import RequestRejectedError

# Real models wrap the verdict one way or another; all of these are read alike.
_FORMS: Final = ("Verdict: {}", "**Verdict:** {}.", "### Verdict: {}", "Verdict: *{}*", "> verdict: {}")


def check_realism(question: Question, views: Sequence[View]) -> str:  # noqa: ARG001  one signature for all
    """An assessment and `Yes` or `No`; for a bundled scene the truth but for the listed mistakes."""
    view = views[0]
    scene = _scene(view)
    if scene is None:
        word = "Yes" if _drawn(view.sha256)[0] % 8 < 5 else "No"
        return _say(f"I looked at the whole picture ({SYNTHETIC_MARK}).", word, view.sha256)
    word = realism_mistakes_in(scene.id).get("first", "No" if scene.anomalies else "Yes")
    if word == "No":
        found = " ".join(anomaly.phenomenon for anomaly in view.anomalies) or "Something is wrong here."
        return _say(found, word, view.sha256)
    return _say(
        "Shapes, light and contacts hang together; I see nothing that could not be.", word, view.sha256
    )


def compare_realism(question: Question, views: Sequence[View]) -> str:  # noqa: ARG001  one signature for all
    """An assessment and `First`, `Second` or `Both`; of two bundled scenes the one without anomaly is chosen.

    Raises `RequestRejectedError` for any other number of images than two.
    """
    if len(views) != 2:
        raise RequestRejectedError(
            f"The demo model was asked to compare {len(views)} images",
            remedy="Send both images in the same request, one after the other.",
        )
    one, other = views
    seed = f"{one.sha256}{other.sha256}"
    known = _scene(one), _scene(other)
    if known[0] is None or known[1] is None:
        return _say(f"I compared both pictures ({SYNTHETIC_MARK}).", _made_up(one.sha256, other.sha256), seed)
    word = _of_scenes(known[0], known[1])
    if not word:
        return "Both pictures have much to say for themselves, and I would rather not decide between them."
    return _say("I compared shapes, light and contacts in both pictures.", word, seed)


def _of_scenes(one: Scene, other: Scene) -> str:
    """The word; empty for the listed pair that gets no verdict."""
    edited = next((scene for scene in (one, other) if scene.anomalies), None)
    if edited is not None and one.pair_id == other.pair_id:
        order = "edited_first" if one is edited else "original_first"
        if (mistake := realism_mistakes_in(edited.id).get(order)) is not None:
            return "" if mistake == "no verdict" else mistake
    if bool(one.anomalies) == bool(other.anomalies):
        return "Both"
    return "Second" if one.anomalies else "First"


def _made_up(one: str, other: str) -> str:
    """A choice for two unknown images: of one of them, of both, or now and then of a place."""
    drawn = _drawn(min(one, other) + max(one, other))
    match drawn[0] % 8:
        case 0 | 1 | 2:
            return "First" if one == min(one, other) else "Second"
        case 3 | 4:
            return "First" if one == max(one, other) else "Second"
        case 5:
            return "Both"
        case 6:
            return "Both" if one == min(one, other) else "First"
        case _:
            return "First" if drawn[1] % 4 else "Second"


def _say(assessment: str, word: str, seed: str) -> str:
    form = _FORMS[_drawn(seed)[2] % len(_FORMS)]
    return f"Assessment: {assessment}\n\n{form.format(word)}"


def _drawn(seed: str) -> bytes:
    return hashlib.sha256(f"realism:{seed}".encode()).digest()


def _scene(view: View) -> Scene | None:
    return next((scene for scene in scenes() if scene.id == view.scene), None)


ROLES = {"RealismJudge": check_realism, "OrderJudge": compare_realism}
