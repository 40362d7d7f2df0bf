"""Checks of a set of items beyond what their format says: the same for authors and for imports.

An item alone (what is asked, options, texts), its files (image, stored overlay, boxes), and what belongs
together: an artifact image and its reference.
"""

from __future__ import annotations

import hashlib
import math
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from uncanny.errors import ImageError, Problem, StorageError
from uncanny.eval.common.inputs.problems import by_line, repeated_ids
from uncanny.eval.mcq.data.items import (
    ARTIFACT_SPLITS,
    OPTIONS,
    Box,
    Item,
    ItemSet,
    Question,
    Split,
    TextChoice,
)
from uncanny.eval.mcq.data.load import (
    OWN_ID,
    ItemSource,
    broken_pairs,
    is_bundled,
    load,
    parse_items,
)
from uncanny.eval.mcq.data.set_checks import Picture, check_letters, check_pictures, tiny_copy
from uncanny.eval.mcq.data.texts import carried_set
from uncanny.eval.mcq.parameters import CheckParameters
from uncanny.images.decode import PIXELS, decode, explain, read_header, without_warnings
from uncanny.images.encode import PixelPolicy
from uncanny.images.file_bytes import read_image_file
from uncanny.parameters import takes
from uncanny.prompts import is_ours
from uncanny.wording import shown

_LATER: tuple[Question, ...] = ("q2", "q3", "q4")
_TEXT_QUESTIONS: tuple[Question, ...] = ("q2", "q4")


@takes(CheckParameters)
def check(source: ItemSource, parameters: CheckParameters) -> tuple[Problem, ...]:
    """All problems of a set of items; empty if there are none.

    `source` is an item file, whose format is checked too and whose problems come in order of its lines, the
    word `scenes`, or items. With `images`, every image and stored overlay is decoded whole, one at a time;
    without, boxes are not compared with the image's size. A problem of severity `warning` does not keep a set
    from being used.

    Right letters that differ between Q2, Q3 and Q4 are a warning: most often a slip, though reviewed sets
    have a few such items (SalArt-VQA, appendix E.2). Raises UsageError for a file that cannot be read.

    >>> uncanny.mcq.check("scenes")
    ()
    """
    root, images = parameters.root, parameters.images
    if not isinstance(source, str | os.PathLike) or is_bundled(source):
        items = load(source)
        repeated = repeated_ids([(None, item) for item in items], OWN_ID)
        return (*repeated, *(problem for problem, _ in _check(items, images)))
    file = Path(source)
    numbered, problems = parse_items(file)
    lines = {id(item): number for number, item in numbered}
    valid = ItemSet(tuple(item for _, item in numbered), file, None if root is None else Path(root))
    # A partner that does not validate is no missing partner: the line itself is named already.
    pairs = broken_pairs(file, {problem.line for problem in problems} - {*lines.values()})
    for problem, item in _check(valid, images):
        if item is None or not (problem.field == "pair_id" and item.pair_id in pairs):
            problems.append(replace(problem, line=lines[id(item)]) if item is not None else problem)
    if not valid and not problems:
        problems.append(Problem(None, None, "the file contains no items; give one item a line"))
    return tuple(sorted(problems, key=by_line))


def _check(items: ItemSet, open_images: bool) -> Iterator[tuple[Problem, Item | None]]:
    pairs = check_pairs(items)
    pictures: list[tuple[Item, Picture]] = []
    for item in items:
        size = None
        if open_images:
            image, unreadable = _look(item, items)
            yield from ((problem, item) for problem in unreadable)
            if image is not None:
                size = image.size
                pictures.append((item, image.picture))
        for problem in (*_check_item(item), *check_boxes(item, size), *pairs.get(id(item), ())):
            yield problem, item
    own = Counter(item.prompts is not None for item in items)
    if len(own) > 1:
        message = f"{own[True]} items carry their own prompts, {own[False]} do not; scores mix two wordings"
        yield Problem(None, "prompts", message, "warning"), None
    yield from ((problem, None) for problem in check_letters(items))
    yield from check_pictures(pictures)


def check_item(item: Item, items: ItemSet, *, images: bool = True) -> tuple[Problem, ...]:
    """Everything that is wrong with one of `items`, as `check` says it of the whole set.

    Of the other items only ids and pairs are looked at. With `images` its own are decoded whole.
    """
    problems: list[Problem] = []
    if sum(other.id == item.id for other in items) > 1:
        problems.append(Problem(item.id, "id", f"the id is used twice; {OWN_ID}"))
    size = None
    if images:
        size, unreadable = check_images(item, items)
        problems += unreadable
    pairs = check_pairs(items).get(id(item), ())
    return (*problems, *_check_item(item), *check_boxes(item, size), *pairs)


def _check_item(item: Item) -> Iterator[Problem]:
    if not item.id.strip():
        yield Problem(item.id, "id", "the id is blank; give one that can be read")
    yield from _check_questions(item)
    for question in _TEXT_QUESTIONS:
        if isinstance(choice := item.choice(question), TextChoice):
            yield from _check_options(item, f"{question}.options", choice)
    if item.split in ARTIFACT_SPLITS and item.artifact_type is None:
        message = "no artifact type; scores by type leave this item out"
        yield Problem(item.id, "artifact_type", message, "warning")
    yield from _check_texts(item)
    if (item.model_extra or {}).get("draft"):
        message = "still a draft; check its options and boxes, then take the key away"
        yield Problem(item.id, "draft", message, "warning")


def _check_questions(item: Item) -> Iterator[Problem]:
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
    letters = {question: letter for question in _LATER if (letter := item.right(question)) not in (None, "E")}
    if artifact and len(set(letters.values())) > 1:
        named = ", ".join(f"{question.upper()} {letter}" for question, letter in letters.items())
        message = f"the right letters differ ({named}); a letter is the same place in Q2, Q3 and Q4"
        yield Problem(item.id, "answer", message, "warning")


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
            message = f"the same text as option {first[plain]}; the two cannot be told apart"
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
    if item.prompts_id is not None and is_ours(item.prompts_id) and carried_set(item) is None:
        message = (
            f"the prompts are not those of {item.prompts_id} any more, and are asked as the set's own; take "
            "the key away, or the prompts too, to have uncanny's"
        )
        yield Problem(item.id, "prompts_id", message, "warning")
    for question in item.questions():
        if not item.prompts.get(question, "").strip():
            message = f"the item carries its own prompts, but none for {question.upper()}; give all or none"
            yield Problem(item.id, f"prompts.{question}", message)
    for question in sorted(set(item.prompts) - set(item.questions())):
        message = f"a prompt for a question that is not asked of this item ({shown(item.split)})"
        yield Problem(item.id, f"prompts.{question}", message, "warning")


Size = tuple[int, int]

_TURNED = range(5, 9)  # EXIF orientations with width and height exchanged


def check_images(item: Item, items: ItemSet) -> tuple[Size | None, tuple[Problem, ...]]:
    """The image's width and height as seen, None where it does not open; and what is wrong with the files."""
    image, problems = _look(item, items)
    return None if image is None else image.size, problems


@dataclass(frozen=True, slots=True)
class _Image:
    """A file that opens: width and height as seen, and what it is found again by."""

    size: Size
    picture: Picture


def _look(item: Item, items: ItemSet) -> tuple[_Image | None, tuple[Problem, ...]]:
    image, problem = _opened(item, "image", items.image_path(item))
    problems = [problem] if problem else []
    stored = items.overlay_path(item)
    if stored is not None:
        overlay, problem = _opened(item, "overlay", stored)
        problems += [problem] if problem else []
        if image and overlay and image.size != overlay.size:
            drawn, size = overlay.size, image.size
            message = (
                f"the overlay is {drawn[0]} × {drawn[1]} pixels, the image {size[0]} × {size[1]}; "
                "draw the boxes on the image itself"
            )
            problems.append(Problem(item.id, "overlay", message))
    return image, tuple(problems)


def check_boxes(item: Item, size: Size | None = None) -> Iterator[Problem]:
    """What is wrong with the boxes of Q3; without `size`, only what shows without the image.

    Boxes may be absent altogether where an overlay is stored, because it shows them.
    """
    if item.q3 is None:
        return
    boxes = item.q3.boxes
    missing = [letter for letter in OPTIONS if letter not in boxes]
    if missing and (boxes or item.overlay is None):
        yield Problem(item.id, "q3.boxes", f"no box {', '.join(missing)}; give four boxes, A–D")
    first: dict[Box, str] = {}
    for letter, box in boxes.items():
        fault = box_fault(box, size)
        if fault:
            yield Problem(item.id, f"q3.boxes.{letter}", fault)
        elif box in first:
            message = f"the same box as {first[box]}; the two cannot be told apart"
            yield Problem(item.id, f"q3.boxes.{letter}", message, "warning")
        first.setdefault(box, letter)


def box_fault(box: Box, size: Size | None = None) -> str | None:
    """What is wrong with a box, x0, y0, x1, y1 in pixels; None where nothing is."""
    x0, y0, x1, y1 = box
    text = f"[{x0:g}, {y0:g}, {x1:g}, {y1:g}]"
    if not all(math.isfinite(value) for value in box):
        return f"{text} has a side that is not a number; give x0, y0, x1, y1 in pixels"
    if x1 < x0 or y1 < y0:
        return f"{text} is reversed; give x0, y0, x1, y1 with x0 < x1 and y0 < y1"
    if x0 == x1 or y0 == y1:
        return f"{text} has no area; give x0, y0, x1, y1 with x0 < x1 and y0 < y1"
    if x0 < 0 or y0 < 0:
        return f"{text} starts outside the image; no side may be below 0"
    if size is not None and (x1 > size[0] or y1 > size[1]):
        return f"{text} reaches outside the image of {size[0]} × {size[1]} pixels; cut it at the edge"
    return None


@without_warnings()
def _opened(item: Item, field: str, path: Path) -> tuple[_Image | None, Problem | None]:
    policy = PixelPolicy()
    data = b""
    try:
        data = read_image_file(path, policy.max_file_bytes)
        header = read_header(data, policy.max_pixels)
        with PIXELS.hold(header.pixels):
            decoded = decode(data, header)
            (width, height), orientation = decoded.image.size, decoded.orientation
            picture = Picture(hashlib.sha256(data).hexdigest(), tiny_copy(decoded.image))
            del decoded
    except StorageError:
        raise
    except Exception as error:  # decoders raise all kinds of errors on hostile files
        reason: ImageError = explain(error, data)
        advice = f". {reason.remedy}" if reason.remedy else ""
        return None, Problem(item.id, field, f"{path}: {reason.message}{advice}")
    return _Image((height, width) if orientation in _TURNED else (width, height), picture), None


_PARTNER: dict[Split, Split] = {
    "art_pg": "ref_pg",
    "ref_pg": "art_pg",
    "art_dg": "ref_real",
    "ref_real": "art_dg",
}
_PIXEL_ALIGNED = ("art_pg", "ref_pg")


def check_pairs(items: Sequence[Item]) -> dict[int, list[Problem]]:
    """Problems by `id()` of the item they belong to; items without any are left out.

    art_pg and ref_pg come in pairs with one `pair_id` and the same options and boxes. art_dg and ref_real
    are pairs only where they have a `pair_id`, and their options are their own.
    """
    problems: dict[int, list[Problem]] = {}
    members: dict[str, list[Item]] = {}
    for item in items:
        if item.pair_id is not None and item.pair_id.strip():
            members.setdefault(item.pair_id, []).append(item)
        elif item.split in _PIXEL_ALIGNED:
            message = f"{item.split} needs a pair_id that its {_PARTNER[item.split]} image has too"
            problems[id(item)] = [Problem(item.id, "pair_id", message)]
    for pair_id, pair in members.items():
        for item in pair:
            if of_item := _check_member(item, pair_id, pair):
                problems[id(item)] = of_item
    return problems


def _check_member(item: Item, pair_id: str, pair: Sequence[Item]) -> list[Problem]:
    wanted = _PARTNER[item.split]
    others = [other for other in pair if other is not item]
    partners = [other for other in others if other.split == wanted]
    if not partners:
        # As in a set that was drawn from another: its figures are sound, those over pairs lack this one.
        message = f"pair {shown(pair_id)} has no {wanted} image; add it, or take the item out"
        return [Problem(item.id, "pair_id", message, severity="warning")]
    if len(others) > 1:
        message = f"pair {shown(pair_id)} has {len(pair)} images; a pair is one {item.split} and one {wanted}"
        return [Problem(item.id, "pair_id", message)]
    # Named once, at the reference: it is the artifact item that the options were written for.
    return _other_options(item, partners[0]) if item.split == "ref_pg" else []


def _other_options(item: Item, partner: Item) -> list[Problem]:
    advice = f"give it those of {shown(partner.id)}"
    problems = [
        Problem(item.id, f"{question}.options", f"other options than the pair's artifact image; {advice}")
        for question, mine, theirs in (("q2", item.q2, partner.q2), ("q4", item.q4, partner.q4))
        if mine is not None and theirs is not None and _texts(mine) != _texts(theirs)
    ]
    if item.q3 is not None and partner.q3 is not None and item.q3.boxes != partner.q3.boxes:
        message = f"other boxes than the pair's artifact image; {advice}"
        problems.append(Problem(item.id, "q3.boxes", message))
    return problems


def _texts(choice: TextChoice) -> dict[str, str]:
    return {letter: " ".join(text.split()) for letter, text in choice.options.items()}
