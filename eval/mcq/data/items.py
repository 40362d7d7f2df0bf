"""Items, sets of items and answers: one image with up to four questions, and one answer to each.

Source: SalArt-VQA, sections 3 and 4.1; the file format is this project's own. Here is what a record holds.
What a question says to a model, word for word, is in `texts`; how sets are read and checked in `load` and
`checks`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Literal, get_args, overload

from pydantic import BaseModel, ConfigDict, Field

from uncanny.eval.mcq.parameters import Question as Question
from uncanny.schema import Number
from uncanny.wording import counted, harmless

Blind = Literal["q1_blind", "q2_blind", "q3_blind", "q4_blind"]
# Without the image: the control asks Q4 again with a further option F, no image was provided; blind questions
# are the four as they are, to be guessed.
AskedQuestion = Literal["q1", "q2", "q3", "q4", "q4_no_image", Blind]
Split = Literal["art_dg", "art_pg", "ref_real", "ref_pg"]
ArtifactType = Literal["count", "topology", "local_render", "anatomy", "plausibility", "other"]
Letter = Literal["A", "B", "C", "D", "E"]
Option = Literal["A", "B", "C", "D"]
AnswerForm = Literal["letter", "json"]
Box = tuple[Number, Number, Number, Number]

QUESTIONS: tuple[Question, ...] = get_args(Question)
CONTROL: AskedQuestion = "q4_no_image"
BLIND: Mapping[Question, Blind] = {
    "q1": "q1_blind",
    "q2": "q2_blind",
    "q3": "q3_blind",
    "q4": "q4_blind",
}
# By the question as it is recorded, the one of an item that it asks.
ASKS: Mapping[AskedQuestion, Question] = {
    **{question: question for question in QUESTIONS},
    CONTROL: "q4",
    **{blind: question for question, blind in BLIND.items()},
}
OPTIONS: tuple[Option, ...] = get_args(Option)
ARTIFACT_SPLITS: frozenset[Split] = frozenset({"art_dg", "art_pg"})


class _Record(BaseModel):
    model_config = ConfigDict(extra="allow", frozen=True, defer_build=True)


class Presence(_Record):
    """Q1: is anything wrong?"""

    answer: Literal["yes", "no"]


class TextChoice(_Record):
    """Q2 (where) or Q4 (what): texts A–D; E stands for none of them and is never stored."""

    options: dict[Option, str]
    answer: Letter


class BoxChoice(_Record):
    """Q3: boxes A–D as x0, y0, x1, y1 in pixels of the image; E is none of them."""

    boxes: dict[Option, Box]
    answer: Letter


class Item(_Record):
    """One image with its questions; a question that is not asked is None (Q1 on `ref_pg`).

    A letter means the same candidate region in Q2, Q3 and Q4. `image` and `overlay` are paths relative to
    the item file or to a root. `system`, `prompts` and `answer_form` come with sets that carry their own
    texts; `prompts_id` says that these are uncanny's, of the set with this id. `overlay` is a stored Q3
    image, used as it is.
    """

    id: Annotated[str, Field(min_length=1)]
    image: Annotated[str, Field(min_length=1)]
    split: Split
    pair_id: str | None = None
    artifact_type: ArtifactType | None = None
    q1: Presence | None = None
    q2: TextChoice | None = None
    q3: BoxChoice | None = None
    q4: TextChoice | None = None
    system: str | None = None
    prompts: dict[Question, str] | None = None
    prompts_id: str | None = None
    answer_form: AnswerForm = "letter"
    overlay: str | None = None

    def choice(self, question: Question) -> Presence | TextChoice | BoxChoice | None:
        """What the item holds for a question; None where it is not asked."""
        return {"q1": self.q1, "q2": self.q2, "q3": self.q3, "q4": self.q4}[question]

    def questions(self) -> tuple[Question, ...]:
        """The questions this item is asked."""
        return tuple(question for question in QUESTIONS if self.choice(question) is not None)

    def right(self, question: Question) -> str | None:
        """The right answer, `yes`/`no` or a letter; None where the question is not asked."""
        choice = self.choice(question)
        return None if choice is None else choice.answer


class Answer(_Record):
    """One model's raw answer to one question of one item, as a line of `answers.jsonl`.

    `raw` is None where there is no answer to read: the call failed, and `error` says why. A refusal is an
    answer: its words, possibly empty, stand in `raw` and `outcome` says so. `sha256` and `file_stamp` are of
    the image file that the question was asked about, a stored overlay or else the item's image; None where
    none was read, and in answers of other tools. A further key `models` has the calls by model where not all
    went to `model`: a fallback took over.
    """

    id: str
    question: AskedQuestion
    raw: str | None
    model: str
    outcome: Literal["answered", "refused", "error"] = "answered"
    error: str | None = None
    sha256: str | None = None
    file_stamp: str | None = None

    @property
    def status(self) -> str:
        """What a run counts it as."""
        return {"answered": "ok", "refused": "refused", "error": "failed"}[self.outcome]

    def digest(self, of: Literal["asked", "content"]) -> str | None:
        """What a run notes of the question it asked (see `texts`); None in answers of other tools."""
        value = (self.model_extra or {}).get(of)
        return value if isinstance(value, str) else None


@dataclass(frozen=True, slots=True, repr=False)
class ItemSet(Sequence[Item]):
    """Items with the file they are from, which is where their image paths start, unless a `root` is named.

    A sequence of `Item`; a slice is a set again. `bundled` marks the scenes that come with the package,
    `whole` a set that has all items of its file.
    """

    items: tuple[Item, ...]
    file: Path
    root: Path | None = None
    bundled: bool = False
    whole: bool = False

    @classmethod
    def of(cls, items: Sequence[Item]) -> ItemSet:
        """`items` as they are, if they are a set; others have paths that start in the current folder."""
        return items if isinstance(items, ItemSet) else cls(tuple(items), Path("items.jsonl"))

    def __repr__(self) -> str:
        origin = "the bundled scenes" if self.bundled else harmless(str(self.file))
        return f"<{counted(len(self), 'item')} of {origin}>"

    def __len__(self) -> int:
        return len(self.items)

    def __iter__(self) -> Iterator[Item]:
        return iter(self.items)

    @overload
    def __getitem__(self, index: int) -> Item: ...

    @overload
    def __getitem__(self, index: slice) -> ItemSet: ...

    def __getitem__(self, index: int | slice) -> Item | ItemSet:
        if isinstance(index, slice):
            return replace(self, items=self.items[index], whole=False)
        return self.items[index]

    def image_path(self, item: Item) -> Path:
        """Where the item's image is."""
        return self._base / item.image

    def overlay_path(self, item: Item) -> Path | None:
        """Where the stored Q3 image is; None where the item has none and it is to be drawn."""
        return None if item.overlay is None else self._base / item.overlay

    def image_files(self) -> Iterator[Path]:
        """All images and stored overlays."""
        for item in self.items:
            yield self.image_path(item)
            if (overlay := self.overlay_path(item)) is not None:
                yield overlay

    @property
    def _base(self) -> Path:
        return self.root if self.root is not None else self.file.parent
