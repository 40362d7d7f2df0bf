"""What each question of an item says to a model, word for word, and digests that tell when that changes.

Items without texts of their own are asked with the package's, `prompts/mcq`; those that carry texts, as the
release of SalArt-VQA does, are asked with them as they are.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from uncanny.eval.mcq.data.items import (
    ASKS,
    BLIND,
    CONTROL,
    QUESTIONS,
    Answer,
    AskedQuestion,
    BoxChoice,
    Item,
    Question,
    TextChoice,
)
from uncanny.files import dump_json
from uncanny.prompts import PromptSet, prompt_set

NONE_OF_THEM = {"q2": "none of these places", "q4": "none of these descriptions"}
NO_PICTURE = "no picture was provided"


def carries_texts(item: Item) -> bool:
    """Whether the item is asked with texts that stand in it, whosever they are."""
    return bool(item.prompts)


def carried_set(item: Item) -> PromptSet | None:
    """Uncanny's prompts if the item carries them filled in, as exported items do; None for its own.

    Prompts with another id, or changed since they were exported, count as the item's own.
    """
    ours = prompt_set("mcq")
    if not item.prompts or item.prompts_id != ours.id:
        return None
    bare = item.model_copy(update={"prompts": None, "system": None})
    same = (item.system or "") == system_text(bare, ours) and all(
        question in item.prompts and item.prompts[question] == question_text(bare, question, ours)
        for question in item.questions()
    )
    return ours if same else None


def own_texts(item: Item) -> bool:
    """Whether the item is asked with texts of its own; only then do figures compare with published ones."""
    return carries_texts(item) and carried_set(item) is None


def whose_texts(items: Sequence[Item]) -> Literal["set", "ours", "mixed"]:
    """Whether the items are asked with their own texts, with ours, or some with these and some with those."""
    own = sum(own_texts(item) for item in items)
    return "set" if own == len(items) else "ours" if not own else "mixed"


def system_text(item: Item, ours: PromptSet | None = None) -> str:
    """The system text; empty where an item's own texts have none.

    Here and below `ours` is the wording of items without texts of their own, the package's by default.
    """
    if carries_texts(item):
        return item.system or ""
    return (ours or prompt_set("mcq"))["system"].fill()


def question_text(item: Item, question: AskedQuestion, ours: PromptSet | None = None) -> str:
    """The user's turn, without the image. An item's own text is taken as it is.

    The control without the image always has our own wording: no set carries one for it. A blind question has
    the same words as the one with the image, whosever they are, between words of ours.
    """
    if question in BLIND.values():
        return (ours or prompt_set("mcq"))["blind"].fill(question=question_text(item, ASKS[question], ours))
    if question != CONTROL and item.prompts and question in item.prompts:
        return item.prompts[question]
    text = (ours or prompt_set("mcq"))[question]
    if question == CONTROL:
        return text.fill(choices=_lines(_options(item, "q4") | {"F": NO_PICTURE}))
    return text.fill(choices=_lines(_options(item, question))) if question in ("q2", "q4") else text.fill()


def prompt_id(item: Item, question: AskedQuestion, ours: PromptSet | None = None) -> str:
    """For records: our prompt's id, or `own:` and the hash of the item's own text."""
    if question != CONTROL and item.prompts and question in item.prompts:
        carried = carried_set(item)
        own = f"own:{question}@{_digest(item.prompts[question])}"
        return own if carried is None else carried[question].id
    return (ours or prompt_set("mcq"))["blind" if question in BLIND.values() else question].id


def texts_id(item: Item, question: AskedQuestion, ours: PromptSet | None = None) -> str:
    """For answers: the id of the whole set that is asked with, or `prompt_id` of an item's own text."""
    text = prompt_id(item, question, ours)
    asked = ours if question not in QUESTIONS else carried_set(item) or ours
    return text if text.startswith("own:") else (asked or prompt_set("mcq")).id


def question_digest(item: Item, question: AskedQuestion, ours: PromptSet | None = None) -> str:
    """Changes when an item's question does, so that an answer to another question is never taken for it."""
    content = [system_text(item, ours), question_text(item, question, ours), item.image, item.overlay]
    if question == "q3" and item.q3 is not None:
        content.append(_json({key: list(box) for key, box in item.q3.boxes.items()}))
    return _digest(_json(content))


def content_digest(item: Item, question: AskedQuestion) -> str:
    """Of what the item itself gives to the question: another wording of ours leaves it as it is.

    Of the image only the file's name counts, so that a set may be moved, or stored anew with drawn boxes.
    """
    source = ASKS[question]
    choice = item.choice(source)
    texts: list[Any] = [item.system, (item.prompts or {}).get(source)] if own_texts(item) else []
    options: dict[str, Any] = {}
    if isinstance(choice, TextChoice):
        options = dict(sorted(choice.options.items()))
    elif isinstance(choice, BoxChoice):
        options = {letter: list(box) for letter, box in sorted(choice.boxes.items())}
    # What a blind question asks is the same as with the image.
    asked = question if question == CONTROL else source
    return _digest(_json([asked, item.image.rpartition("/")[2], texts, options]))


def changed_since(answer: Answer, item: Item) -> bool:
    """Whether the answer was given to another question than the item asks now.

    False where the record does not tell: answers of other tools say nothing of what was asked.
    """
    content = answer.digest("content")
    return content is not None and content != content_digest(item, answer.question)


def _options(item: Item, question: Question) -> dict[str, str]:
    choice = item.choice(question)
    assert isinstance(choice, TextChoice)
    return {**dict(sorted(choice.options.items())), "E": NONE_OF_THEM[question]}


def _lines(options: Mapping[str, str]) -> str:
    """One option a line, whatever white space is in it."""
    return "\n".join(f"{letter}. {' '.join(text.split())}" for letter, text in options.items())


def _json(value: object) -> str:
    return dump_json(value).decode()


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:8]
