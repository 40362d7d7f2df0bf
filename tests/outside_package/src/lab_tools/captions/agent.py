"""CaptionChecker: does this caption describe the image, yes or no, and why?"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from uncanny.errors import AnswerError
from uncanny.extend import ImageContext, Step, read_text

CHECK = Step("CaptionChecker", 1, "check")
ROLES = {"checker": CHECK.agent}

_FIRST_LINE = re.compile(r"\W*(yes|no)\W*", re.IGNORECASE)


class Fit(NamedTuple):
    """One answer: whether the caption describes the image, and why."""

    fits: bool
    why: str


async def check_caption(caption: str, image: ImageContext[Any]) -> Fit:
    """One call. Raises StepFailedError where there is no answer that can be read."""
    text = image.prompts["check"].fill(caption=caption)
    return await image.generate(
        CHECK, image.opening([image.image], text), read_fit, repair=image.repair("repair")
    )


def read_fit(answer: str) -> Fit:
    """Raises AnswerError, worded for the model that wrote the answer."""
    first, _, why = read_text(answer).partition("\n")
    verdict = _FIRST_LINE.fullmatch(first)
    if verdict is None:
        raise AnswerError("the first line is neither `yes` nor `no`")
    return Fit(verdict[1].lower() == "yes", why.strip())
