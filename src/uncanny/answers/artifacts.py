"""Answers that locate artifacts: a box and a note for each, and its category where all are asked for at once.

An artifact without a box is none: what could be is asked for again, and an answer is read whole where it
cannot be had, so that one impossible box does not cost the others.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Annotated, Any, Final, TypeVar

from pydantic import BeforeValidator, Field

from uncanny.answers.boxes import BOX_FORMATS, BoxFormatName, GivenBox, given_box
from uncanny.answers.forms import BOX_FIELD, AnswerItem, ItemField, ListForm, make_form, with_box_key
from uncanny.answers.json_text import excerpt, without_thinking
from uncanny.answers.lists import InvalidItem, read_each, short_errors
from uncanny.errors import AnswerError
from uncanny.schema import ARTIFACT_CATEGORIES, ArtifactCategory, Box

Note = Annotated[str, Field(max_length=2_000)]


class GivenArtifact(AnswerItem):
    """An artifact as a model gave it, of the one category that was asked about."""

    note: Note = ""
    box: Annotated[GivenBox | None, BeforeValidator(given_box)] = None


class GivenArtifactOfAny(GivenArtifact):
    """The same where the model says of which category it is."""

    category: ArtifactCategory


# How categories are written elsewhere, by people and by models: in small letters, and with a space for every
# other character.
CATEGORY_SPELLINGS: Final[Mapping[str, ArtifactCategory]] = {
    **{category.replace("_", " "): category for category in ARTIFACT_CATEGORIES},
    "texture": "textures",
    "edge": "edges_shapes",
    "edges": "edges_shapes",
    "shapes": "edges_shapes",
    "edge shape": "edges_shapes",
    "edges and shapes": "edges_shapes",
    "edge and shape": "edges_shapes",
    "symbol": "symbols",
    "colors": "color",
    "colour": "color",
    "colours": "color",
    "semantic": "semantics",
    "common sense": "commonsense",
    "physic": "physics",
    "physical": "physics",
}
# Models, which have read what belongs to a category, name symbols by what they mostly are; a label of a data
# set that says so may mean something else.
_SPOKEN: Final[Mapping[str, ArtifactCategory]] = {
    **{
        spelling.replace(" ", between): category
        for spelling, category in CATEGORY_SPELLINGS.items()
        for between in (" ", "_", "-", "/", " / ", "&", " & ")
    },
    "text": "symbols",
}
_NOTE = ItemField(
    "note",
    labels=("description", "what", "observed", "observation", "reason", "explanation", "label", "phenomenon"),
    required=False,
)
_CATEGORY = ItemField(
    "category",
    kind="choice",
    labels=("type", "kind", "class", "artifact category", "artifact type"),
    offered=ARTIFACT_CATEGORIES,
    choices=_SPOKEN,
)
_NOUNS = ("artifacts", "artefacts", "regions", "boxes", "instances")

ARTIFACTS: Final[ListForm[GivenArtifact]] = make_form(
    "artifacts", GivenArtifact, (_NOTE, BOX_FIELD), nouns=_NOUNS, title="note"
)
ALL_ARTIFACTS: Final[ListForm[GivenArtifactOfAny]] = make_form(
    "artifacts", GivenArtifactOfAny, (_CATEGORY, _NOTE, BOX_FIELD), nouns=_NOUNS
)

G = TypeVar("G", bound=GivenArtifact)


@cache
def asked_form(box: BoxFormatName, *, joint: bool) -> ListForm[Any]:
    """The form with boxes asked for as a format has them; `joint` with a category for each."""
    form: ListForm[Any] = ALL_ARTIFACTS if joint else ARTIFACTS
    return with_box_key(form, BOX_FORMATS[box].key)


@dataclass(frozen=True, slots=True)
class Located:
    """An artifact in pixels of the image."""

    category: ArtifactCategory
    box: Box
    note: str | None


@dataclass(slots=True)
class ArtifactReader:
    """Reads answers, and keeps what is valid of the best for when none is valid as a whole.

    `categories` were asked about; with `joint` each artifact says which of them is its own. `key` is what
    boxes were asked for as. `to_pixels` makes of a given box one of the image, None of what cannot be one.
    """

    categories: tuple[ArtifactCategory, ...]
    joint: bool
    key: str
    to_pixels: Callable[[GivenBox], Box | None]
    best: tuple[Located, ...] | None = field(default=None, init=False)

    def read(self, text: str) -> tuple[Located, ...]:
        """The artifacts in order, each once. Raises `AnswerError` that names what is wrong with some."""
        form: ListForm[Any] = ALL_ARTIFACTS if self.joint else ARTIFACTS
        artifacts: dict[Located, None] = {}
        problems: list[str] = []
        answer = read_each(text, form)
        for number, item in enumerate(answer.items, start=1):
            if isinstance(item, InvalidItem):
                problems.append(item.problem)
                continue
            category = item.category if isinstance(item, GivenArtifactOfAny) else self.categories[0]
            box = None if item.box is None else self.to_pixels(item.box)
            if category not in self.categories:
                problems.append(f"item {number}: {category} is none of the sorts asked about")
            elif box is None:
                problems.append(f"item {number}: {self._no_box(item.box)}")
            else:
                artifacts[Located(category, box, item.note or None)] = None
        if artifacts and (self.best is None or len(artifacts) >= len(self.best)):
            self.best = tuple(artifacts)
        if answer.left_out:
            problems.append(f"there are more than {len(answer.items)} items; list each once")
        if problems:
            with short_errors():
                raise AnswerError("; ".join(problems[:3]))
        return tuple(artifacts)

    def _no_box(self, given: GivenBox | None) -> str:
        if given is None:
            return f"{self.key} is not a list of four numbers"
        numbers = ", ".join(f"{number:g}" for number in given.numbers)
        return f"{self.key} [{numbers}] is no box within the picture"


_LIKELIHOOD = re.compile(
    r"""(?:^|[\s*_`>#-])(?:likelihood|probability|score|generated|answer)[*_`\s]*+[:：=][*_`\s]*+
    (?P<number>\d{1,3})(?:\.0*)?(?:[ ]?(?:%|/[ ]?100|out\ of\ 100))?(?![\d.,/-])""",
    re.VERBOSE | re.IGNORECASE,
)
_BARE = re.compile(r"[\s*_`]*(?P<number>\d{1,3})(?:\.0*)?\s*(?:%|/\s*100)?[.\s*_`]*")


def read_likelihood(answer: str) -> float:
    """How likely the image is generated, 0–1: the last line `Likelihood: N` of an answer, or a number alone.

    N is from 0 to 100. Raises AnswerError for anything else.
    """
    text = without_thinking(answer)
    labelled = list(_LIKELIHOOD.finditer(text[-20_000:]))
    match = labelled[-1] if labelled else _BARE.fullmatch(text.strip()[:100])
    if match is None:
        raise AnswerError(
            f"no line says `Likelihood:` with a whole number; the answer starts with {excerpt(text)}"
        )
    number = int(match["number"])
    if number > 100:
        raise AnswerError(f"the likelihood {number} is outside 0 to 100")
    return number / 100
