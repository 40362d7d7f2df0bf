"""What each question of an item says, word for word."""

from __future__ import annotations

import hashlib

import orjson

from uncanny.agents.artifact_answerer import own_texts
from uncanny.eval.mcq.items import AskedQuestion, Item, Question, TextChoice

NONE_OF_THEM = {"q2": "none of these places", "q4": "none of these descriptions"}
NO_PICTURE = "no picture was provided"


def carries_texts(item: Item) -> bool:
    """Whether the item is asked with its own texts; only then do figures compare with published ones."""
    return bool(item.prompts)


def system_text(item: Item) -> str:
    """The system text; empty where an item's own texts have none."""
    if carries_texts(item):
        return item.system or ""
    return own_texts()["system"].template.template


def question_text(item: Item, question: AskedQuestion) -> str:
    """The user's turn, without the image. An item's own text is taken as it is.

    The control without the image always has our own wording: no set carries one for it.
    """
    if question == "q4_no_image":
        options = _options(item, "q4") | {"F": NO_PICTURE}
        return own_texts()[question].fill(options=_json(options))
    if item.prompts and question in item.prompts:
        return item.prompts[question]
    if question in ("q2", "q4"):
        return own_texts()[question].fill(options=_json(_options(item, question)))
    return own_texts()[question].fill()


def prompt_id(item: Item, question: AskedQuestion) -> str:
    """For records: our prompt's id, or `own:` and the hash of the item's own text."""
    if question != "q4_no_image" and item.prompts and question in item.prompts:
        return f"own:{question}@{_digest(item.prompts[question])}"
    return own_texts()[question].id


def asked_digest(item: Item, question: AskedQuestion) -> str:
    """Changes when an item's question does, so that an answer to another question is never taken for it."""
    content = [system_text(item), question_text(item, question), item.image, item.overlay]
    if question == "q3" and item.q3 is not None:
        content.append(_json({key: list(box) for key, box in item.q3.boxes.items()}))
    return _digest(orjson.dumps(content).decode())


def _options(item: Item, question: Question) -> dict[str, str]:
    choice = getattr(item, question)
    assert isinstance(choice, TextChoice)
    return {**dict(sorted(choice.options.items())), "E": NONE_OF_THEM[question]}


def _json(value: object) -> str:
    return orjson.dumps(value).decode()


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:8]
