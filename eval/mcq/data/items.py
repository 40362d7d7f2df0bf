"""MCQ items and answers as records: one image with up to four questions, one answer for each.

Source: SalArt-VQA; the file format is this project's own.

What each question of an item says, word for word."""

from __future__ import annotations

import hashlib
from typing import Annotated, Any, Literal

import orjson
from pydantic import BaseModel, ConfigDict, Field

from uncanny.agents.artifact_answerer import own_texts
from uncanny.prompts import PromptSet, earlier_set

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


NONE_OF_THEM = {"q2": "none of these places", "q4": "none of these descriptions"}
NO_PICTURE = "no picture was provided"
TEXTS_OF_0_1_0 = "mcq@b4fed076"


def carries_texts(item: Item) -> bool:
    """Whether the item is asked with its own texts; only then do figures compare with published ones."""
    return bool(item.prompts)


def system_text(item: Item, ours: PromptSet | None = None) -> str:
    """The system text; empty where an item's own texts have none.

    Here and below `ours` is the wording of items without texts of their own, the package's by default.
    """
    if carries_texts(item):
        return item.system or ""
    return (ours or own_texts())["system"].template.template


def question_text(item: Item, question: AskedQuestion, ours: PromptSet | None = None) -> str:
    """The user's turn, without the image. An item's own text is taken as it is.

    The control without the image always has our own wording: no set carries one for it.
    """
    if question != "q4_no_image" and item.prompts and question in item.prompts:
        return item.prompts[question]
    options = _own_options(item, question)
    return (ours or own_texts())[question].fill(**({} if options is None else {"options": _json(options)}))


def prompt_id(item: Item, question: AskedQuestion, ours: PromptSet | None = None) -> str:
    """For records: our prompt's id, or `own:` and the hash of the item's own text."""
    if question != "q4_no_image" and item.prompts and question in item.prompts:
        return f"own:{question}@{_digest(item.prompts[question])}"
    return (ours or own_texts())[question].id


def asked_digest(item: Item, question: AskedQuestion, ours: PromptSet | None = None) -> str:
    """Changes when an item's question does, so that an answer to another question is never taken for it."""
    content = [system_text(item, ours), question_text(item, question, ours), item.image, item.overlay]
    if question == "q3" and item.q3 is not None:
        content.append(_json({key: list(box) for key, box in item.q3.boxes.items()}))
    return _digest(_json(content))


def content_digest(item: Item, question: AskedQuestion) -> str:
    """Of what the item itself gives to the question: another wording of ours leaves it as it is.

    Of the image only the file's name counts, so that a set may be moved, or stored anew with drawn boxes.
    """
    asks: Question = "q4" if question == "q4_no_image" else question
    held = getattr(item, asks)
    texts: list[Any] = [item.system, (item.prompts or {}).get(asks)] if carries_texts(item) else []
    options: dict[str, Any] = {}
    if isinstance(held, TextChoice):
        options = dict(sorted(held.options.items()))
    elif isinstance(held, BoxChoice):
        options = {letter: list(box) for letter, box in sorted(held.boxes.items())}
    return _digest(_json([question, item.image.rpartition("/")[2], texts, options]))


def changed_since(answer: Answer, item: Item) -> bool:
    """Whether the answer was given to another question than the item asks now.

    False where the record does not tell: answers of other tools say nothing of what was asked.
    """
    known = answer.model_extra or {}
    if isinstance(known.get("content"), str):
        return bool(known["content"] != content_digest(item, answer.question))
    if isinstance(known.get("asked"), str):
        # Our own wording is part of this digest, and versions that wrote no other one had another.
        wordings = [own_texts(), *filter(None, [earlier_set(TEXTS_OF_0_1_0)])]
        return known["asked"] not in {asked_digest(item, answer.question, ours) for ours in wordings}
    return False


def _own_options(item: Item, question: AskedQuestion) -> dict[str, str] | None:
    """The options that stand in our wording of a question; None where none do."""
    if question == "q4_no_image":
        return _options(item, "q4") | {"F": NO_PICTURE}
    return _options(item, question) if question in ("q2", "q4") else None


def _options(item: Item, question: Question) -> dict[str, str]:
    choice = getattr(item, question)
    assert isinstance(choice, TextChoice)
    return {**dict(sorted(choice.options.items())), "E": NONE_OF_THEM[question]}


def _json(value: object) -> str:
    return orjson.dumps(value).decode()


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:8]
