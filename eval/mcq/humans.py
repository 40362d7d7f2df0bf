"""Human raters: each is one `model` named `human/NAME`, and together they are scored as `human`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from uncanny.eval.mcq.items import Answer
from uncanny.eval.mcq.sheet import Sheet

PREFIX = "human/"
HUMAN = "human"


def is_rater(model: str) -> bool:
    """Whether these answers are one person's."""
    return model == HUMAN or model.startswith(PREFIX)


def as_rater(answers: Iterable[Answer], name: str) -> list[Answer]:
    """The same answers as given by the person `name`, whatever `model` the file says."""
    return [answer.model_copy(update={"model": PREFIX + name}) for answer in answers]


def grouped(sheets: Mapping[str, Sheet]) -> dict[str, list[Sheet]]:
    """Sheets by the name they are reported under: all raters under `human`, any other model alone."""
    groups: dict[str, list[Sheet]] = {}
    for model, sheet in sheets.items():
        groups.setdefault(HUMAN if is_rater(model) else model, []).append(sheet)
    return groups
