"""The control without an image: Q4 asked again with nothing to see and a sixth option F, which is right."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from uncanny.errors import UsageError
from uncanny.eval.mcq.data.items import Answer, AskedQuestion, Item, changed_since
from uncanny.eval.mcq.score.answers import Parser, Reading, read_choice
from uncanny.eval.mcq.score.matrix import failed

ABSTAIN = "F"
ABSTAIN_TEXT = "no image was provided"


def score_no_image(
    items: Iterable[Item],
    without_image: Iterable[Answer],
    with_image: Iterable[Answer] = (),
    *,
    parser: Parser = "exact",
) -> dict[str, Any]:
    """One model's answers to Q4 without the image (SalArt-VQA, section 4.2), as shares of `n` images.

    `n` counts the images whose Q4 is answered, `missing` the others, those among them whose question was
    changed since. `f_rate`, `a_to_e_rate` and the share of
    `invalid` answers add up to 1. `key_match` is how often the answer is Q4's right answer for the image not
    shown, and `key_match_e` the part of it that is E. `same_non_e` is how often the model gives the same
    letter, other than E, with the image: a share of the `n_both` images answered both ways. None for no
    images.

    Both may be a run's answers as they are: Q4 is Q4 with the image, or, in `without_image`, `q4_no_image`.
    Raises `UsageError` where an answer comes twice.
    """
    asked = {item.id: item for item in items if item.q4 is not None}
    blind = _read(asked, without_image, ("q4", "q4_no_image"), "ABCDEF", parser)
    seen = _read(asked, with_image, ("q4",), "ABCDE", parser)
    choices = {item: reading.choice for item, reading in blind.items()}
    letters = {item: choice for item, choice in choices.items() if choice not in (None, ABSTAIN)}
    match = [choice for item, choice in letters.items() if choice == asked[item].right("q4")]
    both = blind.keys() & seen.keys()
    same = sum(letters.get(item) == seen[item].choice not in (None, "E") for item in both)
    return {
        "n": len(blind),
        "missing": len(asked) - len(blind),
        "invalid": sum(choice is None for choice in choices.values()),
        "f_rate": _share(sum(choice == ABSTAIN for choice in choices.values()), len(blind)),
        "a_to_e_rate": _share(len(letters), len(blind)),
        "key_match": _share(len(match), len(blind)),
        "key_match_e": _share(match.count("E"), len(blind)),
        "same_non_e": _share(same, len(both)),
        "n_both": len(both),
    }


def _read(
    asked: dict[str, Item],
    answers: Iterable[Answer],
    questions: tuple[AskedQuestion, ...],
    letters: str,
    parser: Parser,
) -> dict[str, Reading]:
    found: dict[str, Reading] = {}
    for answer in answers:
        if answer.question not in questions or answer.id not in asked or failed(answer):
            continue
        if changed_since(answer, asked[answer.id]):
            continue
        if answer.id in found:
            raise UsageError(
                f"q4 of item {answer.id!r} is answered twice",
                remedy="Give the answers of one run of one model.",
            )
        raw = None if answer.outcome == "refused" else answer.raw
        reading = read_choice(raw, "q4", asked[answer.id].answer_form, parser=parser, letters=letters)
        if reading.choice is None and answer.question == "q4_no_image":
            # The control asks for a letter whatever the set's own texts ask for; either form obeys one text.
            reading = read_choice(raw, "q4", "letter", parser=parser, letters=letters)
        found[answer.id] = reading
    return found


def _share(count: int, total: int) -> float | None:
    return count / total if total else None


def control_scores(
    items: Iterable[Item], answers: Iterable[Answer], *, parser: Parser = "exact"
) -> dict[str, dict[str, Any]]:
    """`score_no_image` of every model that was asked the control; empty where none was."""
    items = list(items)
    blind: dict[str, list[Answer]] = {}
    seen: dict[str, list[Answer]] = {}
    for answer in answers:
        held = blind if answer.question == "q4_no_image" else seen
        held.setdefault(answer.model, []).append(answer)
    return {
        model: score_no_image(items, given, seen.get(model, ()), parser=parser)
        for model, given in blind.items()
    }
