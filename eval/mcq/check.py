"""Checks of a set of items beyond what their format says: the same for authors and for imports."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import get_args

from uncanny.eval.mcq.check_images import check_boxes, check_images
from uncanny.eval.mcq.check_pairs import check_pairs
from uncanny.eval.mcq.items import ARTIFACT_SPLITS, Item, Option, Question, TextChoice
from uncanny.eval.mcq.load import parse_items
from uncanny.eval.mcq.problems import Problem, shown

OPTIONS: tuple[Option, ...] = get_args(Option)
_LATER: tuple[Question, ...] = ("q2", "q3", "q4")


def check_file(
    items_file: Path, *, root: Path | None = None, open_images: bool = True
) -> tuple[Problem, ...]:
    """Everything that is wrong with an item file, in order of its lines: format and `check_items` in one.

    Empty where the set is good. Raises UsageError for a file that cannot be read.
    """
    items, problems = parse_items(items_file)
    lines = {id(item): number for number, item in items}
    whole = [item for _, item in items]
    broken = {problem.item for problem in problems}
    for found, item in _check(whole, items_file, root, open_images):
        # A partner that does not validate is no missing partner: the line itself is named already.
        if not (broken and found.field == "pair_id"):
            problems.append(replace(found, line=lines[id(item)]) if item is not None else found)
    if not items and not problems:
        problems.append(Problem(None, None, "the file holds no items; give one item a line"))
    return tuple(sorted(problems, key=lambda problem: problem.line or 0))


def check_items(
    items: Sequence[Item], *, items_file: Path, root: Path | None = None, open_images: bool = True
) -> tuple[Problem, ...]:
    """Everything that is wrong with these items, item by item; empty where the set is good.

    `items_file` and `root` say where relative image paths start. With `open_images`, every image and
    stored overlay is decoded whole, one at a time; without, boxes are not compared with the image's size.

    Letters that differ between Q2, Q3 and Q4 are no finding: reviewed sets have a few such items
    (SalArt-VQA, appendix E.2).
    """
    return tuple(found for found, _ in _check(items, items_file, root, open_images))


def _check(
    items: Sequence[Item], items_file: Path, root: Path | None, open_images: bool
) -> Iterator[tuple[Problem, Item | None]]:
    pairs = check_pairs(items)
    seen: set[str] = set()
    for item in items:
        if item.id in seen:
            yield Problem(item.id, "id", "the id was used before; give every item its own"), item
        seen.add(item.id)
        size = None
        if open_images:
            size, findings = check_images(item, items_file, root)
            yield from ((found, item) for found in findings)
        for found in (*_check_item(item), *check_boxes(item, size), *pairs.get(id(item), ())):
            yield found, item
    own = Counter(item.prompts is not None for item in items)
    if len(own) > 1:
        message = f"{own[True]} items carry their own prompts, {own[False]} do not; scores mix two wordings"
        yield Problem(None, "prompts", message, "warning"), None


def _check_item(item: Item) -> Iterator[Problem]:
    if not item.id.strip():
        yield Problem(item.id, "id", "the id is blank; give one that can be read")
    yield from _check_asked(item)
    for question in ("q2", "q4"):
        choice: TextChoice | None = getattr(item, question)
        if choice is not None:
            yield from _check_options(item, f"{question}.options", choice)
    if item.split in ARTIFACT_SPLITS and item.artifact_type is None:
        message = "no artifact type; scores by type leave this item out"
        yield Problem(item.id, "artifact_type", message, "warning")
    yield from _check_texts(item)
    if (item.model_extra or {}).get("draft"):
        message = "still a draft; check its options and boxes, then take the key away"
        yield Problem(item.id, "draft", message, "warning")


def _check_asked(item: Item) -> Iterator[Problem]:
    artifact = item.split in ARTIFACT_SPLITS
    if item.split == "ref_pg":
        if item.q1 is not None:
            yield Problem(item.id, "q1", "Q1 is not asked of ref_pg; set it to null")
    elif item.q1 is None:
        yield Problem(item.id, "q1", f"Q1 is missing; {item.split} is asked all four questions")
    elif item.q1.answer != ("yes" if artifact else "no"):
        right = "yes" if artifact else "no"
        message = (
            f"the right answer on {item.split} is {right!r}, not {item.q1.answer!r}; correct it or the split"
        )
        yield Problem(item.id, "q1.answer", message)
    for question in _LATER:
        answer = item.right(question)
        if answer is None:
            yield Problem(item.id, question, f"{question.upper()} is missing; every split is asked Q2–Q4")
        elif artifact and answer == "E":
            message = f"an {item.split} item shows one of the regions; give its letter, A–D, not E"
            yield Problem(item.id, f"{question}.answer", message)
        elif not artifact and answer != "E":
            message = f"the right answer on {item.split} is E, not {answer}; correct it or the split"
            yield Problem(item.id, f"{question}.answer", message)


def _check_options(item: Item, field: str, choice: TextChoice) -> Iterator[Problem]:
    missing = [letter for letter in OPTIONS if letter not in choice.options]
    if missing:
        yield Problem(item.id, field, f"no option {', '.join(missing)}; give four texts, A–D")
    first: dict[str, str] = {}
    for letter, text in choice.options.items():
        plain = " ".join(text.split()).casefold()
        if not plain:
            yield Problem(item.id, f"{field}.{letter}", "the text is empty; write what this option says")
        elif plain in first:
            message = f"the same text as option {first[plain]}; nobody can tell the two apart"
            yield Problem(item.id, f"{field}.{letter}", message, "warning")
        first.setdefault(plain, letter)


def _check_texts(item: Item) -> Iterator[Problem]:
    if item.prompts is None:
        if item.answer_form == "json":
            message = "answers are read as JSON, but no prompts of the item's own ask for it"
            yield Problem(item.id, "answer_form", message, "warning")
        if item.system is not None:
            message = "a system text without prompts of the item's own; it is not sent"
            yield Problem(item.id, "system", message, "warning")
        return
    for question in item.asked():
        if not item.prompts.get(question, "").strip():
            message = f"the item carries its own prompts, but none for {question.upper()}; give all or none"
            yield Problem(item.id, f"prompts.{question}", message)
    for question in sorted(set(item.prompts) - set(item.asked())):
        message = f"a prompt for a question that is not asked of this item ({shown(item.split)})"
        yield Problem(item.id, f"prompts.{question}", message, "warning")
