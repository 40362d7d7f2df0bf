"""Item sets and answers made for the tests, without pictures."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from uncanny.eval.mcq.data.items import QUESTIONS, Answer, ArtifactType, Item, Question, Split
from uncanny.eval.mcq.score.score import score

RELEASE: Mapping[Split, int] = {"art_dg": 356, "art_pg": 119, "ref_real": 356, "ref_pg": 119}
TYPES: tuple[ArtifactType, ...] = ("count", "topology", "local_render", "anatomy", "plausibility", "other")


def made_item(
    name: str, split: Split, key: tuple[str, str, str] = ("A", "A", "A"), kind: ArtifactType | None = None
) -> Item:
    """An item of `split`; on references the right letters are E and the right word is no."""
    artifact = split.startswith("art")
    q2, q3, q4 = key if artifact else ("E", "E", "E")
    texts = dict.fromkeys("ABCD", "a part")
    boxes = {letter: (10 * n, 0, 10 * n + 10, 10) for n, letter in enumerate("ABCD")}
    return Item.model_validate(
        {
            "id": name,
            "image": f"{name}.png",
            "split": split,
            "artifact_type": kind,
            "q1": None if split == "ref_pg" else {"answer": "yes" if artifact else "no"},
            "q2": {"options": texts, "answer": q2},
            "q3": {"boxes": boxes, "answer": q3},
            "q4": {"options": texts, "answer": q4},
        }
    )


def made_set(sizes: Mapping[Split, int] = RELEASE) -> list[Item]:
    """Items of the given numbers; the right letters and the types go round."""
    return [
        made_item(
            f"{split}-{n:03d}",
            split,
            ("ABCD"[n % 4], "ABCD"[n % 4], "ABCD"[n // 4 % 4]),
            TYPES[n % len(TYPES)],
        )
        for split, size in sizes.items()
        for n in range(size)
    ]


def answers_to(item: Item, pattern: str, model: str = "m") -> list[Answer]:
    """Answers that are right where `pattern` has a 1, wrong where it has a 0, absent where it has a dash."""
    answers = []
    for question, mark in zip(QUESTIONS, pattern, strict=True):
        right = item.right(question)
        if right is not None and mark != "-":
            raw = right if mark == "1" else _another(question, right)
            answers.append(Answer(id=item.id, question=question, raw=raw, model=model))
    return answers


def answered(items: Iterable[Item], patterns: Iterable[str], model: str = "m") -> list[Answer]:
    """One pattern an item, in order."""
    return [
        answer
        for item, pattern in zip(items, patterns, strict=True)
        for answer in answers_to(item, pattern, model)
    ]


def scored(items: Sequence[Item], answers: Sequence[Answer], **options: Any) -> dict[str, Any]:
    """The scores as JSON."""
    return score(items, answers, **options).to_json()


def _another(question: Question, right: str) -> str:
    if question == "q1":
        return "no" if right == "yes" else "yes"
    return "B" if right == "E" else "ABCDE"[("ABCDE".index(right) + 1) % 5]


def to_payload(item: Item) -> dict[str, Any]:
    """The payload of an item, as an annotator's tool stores it; questions that are not asked are null."""
    candidates = {letter: list(box) for letter, box in item.q3.boxes.items()} if item.q3 else {}
    return {
        "artifact_type": item.artifact_type,
        "q1_ref": item.q1.answer if item.q1 else None,
        "semantic_loc": {"ref": item.q2.answer, "options": dict(item.q2.options)} if item.q2 else None,
        "box": {"ref": item.q3.answer, "candidates": candidates} if item.q3 else None,
        "evidence": {"ref": item.q4.answer, "options": dict(item.q4.options)} if item.q4 else None,
    }
