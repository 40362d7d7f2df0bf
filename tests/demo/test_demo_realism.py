"""The demo model judges pairs: the truth about the bundled ones but for the listed mistakes."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from pathlib import Path

import pytest

from uncanny.answers.verdicts import read_position, read_realistic
from uncanny.demo.data.mistakes import REALISM_MISTAKES
from uncanny.demo.model import DemoRequest, answer
from uncanny.demo.recognition import Turn
from uncanny.demo.scenes import scenes
from uncanny.errors import AnswerError, RequestRejectedError
from uncanny.eval.realism.data import PairFiles, scene_pairs
from uncanny.eval.realism.verdicts import label_of
from uncanny.prompts import prompt_set

PROMPTS = prompt_set("realism")
DOCUMENT = Path(__file__).parents[2] / "docs" / "demo.md"
PAIRS = scene_pairs().pairs
RIGHT = {"first": "No", "original_first": "First", "edited_first": "Second"}


def digest(content: bytes | Path) -> str:
    return hashlib.sha256(content.read_bytes() if isinstance(content, Path) else content).hexdigest()


def generate(prompt: str, *images: str, objects: int | None = None) -> str:
    request = DemoRequest((Turn("user", PROMPTS[prompt].fill()),), images)
    return answer(request, synthetic_objects=objects).text


def verdicts_on(pair: PairFiles) -> dict[str, str | None]:
    original, edited = digest(pair.original), digest(pair.edited)
    verdicts: dict[str, str | None] = {"first": read_realistic(generate("first_check", edited))}
    for name, images in (("original_first", (original, edited)), ("edited_first", (edited, original))):
        try:
            verdicts[name] = read_position(generate("second_check", *images))
        except AnswerError:
            verdicts[name] = None
    return verdicts


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair.id)
def test_pairs_are_judged_right_but_for_the_listed_mistakes(pair: PairFiles) -> None:
    wanted = RIGHT | REALISM_MISTAKES.get(pair.edited.stem, {})
    expected = {name: None if word == "no verdict" else word.lower() for name, word in wanted.items()}
    assert verdicts_on(pair) == expected


def test_every_label_and_case_comes_up() -> None:
    labels = Counter(label_of(**verdicts_on(pair)) for pair in PAIRS)  # type: ignore[arg-type]
    assert {(label, case): count for (label, case), count in labels.items()} == {
        ("non_deceiving", None): 8,
        ("intermediate", None): 3,
        ("deceiving", 1): 1,
        ("deceiving", 2): 1,
        ("deceiving", 3): 1,
        ("deceiving", 4): 1,
        ("undetermined", None): 1,
    }


def test_every_mistake_is_one_and_documented() -> None:
    table = re.findall(
        r"^\| `([^`]+)` \| `(first|original_first|edited_first)` \| (\w+) \| (.+) \|$",
        DOCUMENT.read_text(encoding="utf-8"),
        re.MULTILINE,
    )
    rows = [
        (scene, name, RIGHT[name], wrong)
        for scene, mistakes in REALISM_MISTAKES.items()
        for name, wrong in mistakes.items()
    ]
    assert sorted(table) == sorted(rows)
    assert all(right != wrong for _, _, right, wrong in rows)
    assert set(REALISM_MISTAKES) <= {pair.edited.stem for pair in PAIRS}


def test_scenes_of_two_pairs_are_compared_by_their_anomalies() -> None:
    clean = [scene.sha256 for scene in scenes() if not scene.anomalies][:2]
    odd = [scene.sha256 for scene in scenes() if scene.anomalies][:2]
    assert read_position(generate("second_check", *clean)) == "both"
    assert read_position(generate("second_check", *odd)) == "both"
    assert read_position(generate("second_check", clean[1], odd[0])) == "first"
    assert read_position(generate("second_check", odd[0], clean[1])) == "second"


def test_unknown_images_are_rejected_in_process_and_made_up_by_the_server() -> None:
    first, second = digest(b"one"), digest(b"other")
    with pytest.raises(RequestRejectedError, match="knows only the bundled scenes"):
        generate("first_check", first)
    assert read_realistic(generate("first_check", first, objects=3)) in ("yes", "no")
    assert generate("second_check", first, second, objects=3) == generate(
        "second_check", first, second, objects=3
    )


def test_made_up_answers_give_every_label() -> None:
    labels: Counter[str] = Counter()
    for number in range(200):
        original, edited = digest(b"o%d" % number), digest(b"e%d" % number)
        first = read_realistic(generate("first_check", edited, objects=1))
        pairs = ((original, edited), (edited, original))
        orders = [read_position(generate("second_check", *images, objects=1)) for images in pairs]
        label, case = label_of(first, orders[0], orders[1])
        labels[f"{label} {case}"] += 1
    assert set(labels) >= {
        "non_deceiving None",
        "intermediate None",
        *(f"deceiving {n}" for n in (1, 2, 3, 4)),
    }
    assert max(labels.values()) < 150


@pytest.mark.parametrize("number", [0, 1, 3])
def test_the_second_check_needs_two_images(number: int) -> None:
    with pytest.raises(RequestRejectedError):
        generate("second_check", *[scenes()[n].sha256 for n in range(number)])
