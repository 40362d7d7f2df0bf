"""MCQ items and answers as records: one image with up to four questions, one answer for each.

Source: SalArt-VQA; the file format is this project's own.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

Question = Literal["q1", "q2", "q3", "q4"]
# The control asks Q4 again without the image, with a further option F: no image was provided.
AskedQuestion = Literal["q1", "q2", "q3", "q4", "q4_no_image"]
Split = Literal["art_dg", "art_pg", "ref_real", "ref_pg"]
ArtifactType = Literal["count", "topology", "local_render", "anatomy", "plausibility", "other"]
Letter = Literal["A", "B", "C", "D", "E"]
Option = Literal["A", "B", "C", "D"]
AnswerForm = Literal["letter", "json"]
Box = tuple[float, float, float, float]

QUESTIONS: tuple[Question, ...] = ("q1", "q2", "q3", "q4")
ARTIFACT_SPLITS: frozenset[Split] = frozenset({"art_dg", "art_pg"})


class _Record(BaseModel):
    model_config = ConfigDict(extra="allow", frozen=True)


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
    texts; `overlay` is a stored Q3 image, used as it is.
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
    answer_form: AnswerForm = "letter"
    overlay: str | None = None

    def asked(self) -> tuple[Question, ...]:
        """The questions this item has."""
        return tuple(question for question in QUESTIONS if getattr(self, question) is not None)

    def right(self, question: Question) -> str | None:
        """The right answer, `yes`/`no` or a letter; None where the question is not asked."""
        held = getattr(self, question)
        return None if held is None else held.answer


class Answer(_Record):
    """One model's raw answer to one question of one item, as a line of `answers.jsonl`.

    `raw` is None where there is no answer to read: the call failed, and `error` says why. A refusal is an
    answer: its words, possibly empty, stand in `raw` and `outcome` says so. `sha256` and `file_stamp` are of
    the image file that the question was asked about, a stored overlay or else the item's image; None where
    none was read, and in answers of other tools.
    """

    id: str
    question: AskedQuestion
    raw: str | None
    model: str
    outcome: Literal["answered", "refused", "error"] = "answered"
    error: str | None = None
    sha256: str | None = None
    file_stamp: str | None = None
