"""The demo model's part in making pairs: it paints, by OpenCV and a rule, and says what it made up of it.

What it answers to the question about a candidate does not depend on what there is to see: the digests of the
pictures decide, three times in five for an artifact.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, Final

from uncanny.demo.character import seed_of
from uncanny.demo.recognition import RecognizedPrompt
from uncanny.demo.views import View

_LABELS: Final = ("artifact", "artifact", "artifact", "clean", "unclear")
_KINDS: Final = ("structure", "count", "anatomy", "contact", "other")


def screen(prompt: RecognizedPrompt, _views: Sequence[View]) -> Mapping[str, Any]:
    """A label, and texts that name what the region held."""
    draw = hashlib.sha256(seed_of(prompt.character, prompt.text("pictures")).encode()).digest()
    label = _LABELS[draw[0] % len(_LABELS)]
    held = prompt.text("object").rstrip(".") or "the region"
    return {
        "label": label,
        "kind": _KINDS[draw[1] % len(_KINDS)] if label != "clean" else "other",
        "where": held,
        "evidence": f"The shape of {held} is broken" if label != "clean" else "",
        "reason": {
            "artifact": "One part of it is out of shape.",
            "clean": "It could look like this.",
            "unclear": "More than one thing is out of place.",
        }[label],
    }


ANSWERERS: Final = {"screen": screen}
ANY_PICTURE: Final = ("screen",)
"""Prompts that are answered about pictures which are not bundled; `pictures` are their digests."""
