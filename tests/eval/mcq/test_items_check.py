"""Every check finds what it is for, names item and field, and leaves a good set alone."""

from __future__ import annotations

import json
import os
import random
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from tests.eval.mcq.made_sets import made_item
from uncanny.demo.scenes import scenes
from uncanny.errors import ItemsError, Problem
from uncanny.eval.mcq.data.checks import box_fault, check
from uncanny.eval.mcq.data.items import Item, ItemSet
from uncanny.eval.mcq.data.load import copy_scenes, load
from uncanny.eval.mcq.data.set_checks import check_letters

Line = dict[str, Any]
Change = Callable[[Line], object]

DG, REAL = "d01-six-fingers", "d01-five-fingers"
PG = next(scene.id for scene in scenes() if scene.split == "art_pg")
PAIR = next(scene.pair_id for scene in scenes() if scene.id == PG)
REF = next(scene.id for scene in scenes() if scene.split == "ref_pg" and scene.pair_id == PAIR)


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return copy_scenes(tmp_path_factory.mktemp("set"))


def changed(good: Path, tmp_path: Path, changes: dict[str, Change]) -> Path:
    """Two pairs of the good set with some lines changed; what can be wrong takes no more."""
    records = [json.loads(line) for line in good.read_text().splitlines()]
    records = [record for record in records if record["id"] in (DG, REAL, PG, REF)]
    for record in records:
        if record["id"] in changes:
            changes[record["id"]](record)
    path = tmp_path / "items.jsonl"
    path.write_text("".join(f"{json.dumps(record)}\n" for record in records))
    return path


def set_to(*keys: str, to: object) -> Change:
    def change(record: Line) -> None:
        for key in keys[:-1]:
            record = record[key]
        record[keys[-1]] = to

    return change


def drop(*keys: str) -> Change:
    def change(record: Line) -> None:
        for key in keys[:-1]:
            record = record[key]
        del record[keys[-1]]

    return change


def test_the_bundled_scenes_are_a_good_set(good: Path) -> None:
    assert check(good) == ()
    items = load(good)
    assert check(items) == ()
    assert len(items) == len(scenes())
    assert {item.split for item in items} == {"art_dg", "art_pg", "ref_real", "ref_pg"}
    assert all((item.q1 is None) == (item.split == "ref_pg") for item in items)


def test_the_bundled_set_is_the_same_bytes_again(good: Path, tmp_path: Path) -> None:
    again = copy_scenes(tmp_path / "a" / "b")
    assert again.read_bytes() == good.read_bytes()
    for scene in scenes():
        assert (again.parent / "images" / scene.image_path.name).read_bytes() == scene.image_path.read_bytes()


CASES: list[tuple[str, Change, str, str]] = [
    (DG, set_to("id", to=REAL), "id", "used before"),
    (DG, set_to("id", to="  "), "id", "blank"),
    (PG, drop("pair_id"), "pair_id", "needs a pair_id"),
    (PG, set_to("pair_id", to=""), "pair_id", "needs a pair_id"),
    (PG, set_to("pair_id", to="other"), "pair_id", "has no ref_pg image"),
    (DG, set_to("pair_id", to="other"), "pair_id", "has no ref_real image"),
    (DG, set_to("pair_id", to=PAIR), "pair_id", "has no ref_real image"),
    (DG, drop("q2"), "q2", "Q2 is missing"),
    (DG, set_to("q3", to=None), "q3", "Q3 is missing"),
    (DG, set_to("q1", to=None), "q1", "Q1 is missing"),
    (REF, set_to("q1", to={"answer": "no"}), "q1", "not asked of ref_pg"),
    (DG, set_to("q1", "answer", to="no"), "q1.answer", "the right answer on art_dg is 'yes'"),
    (REAL, set_to("q1", "answer", to="yes"), "q1.answer", "the right answer on ref_real is 'no'"),
    (DG, set_to("q4", "answer", to="E"), "q4.answer", "give its letter, A–D"),
    (REAL, set_to("q2", "answer", to="A"), "q2.answer", "is E, not A"),
    (REF, set_to("q3", "answer", to="D"), "q3.answer", "is E, not D"),
    (DG, drop("q2", "options", "C"), "q2.options", "no option C"),
    (DG, set_to("q4", "options", to={}), "q4.options", "no option A, B, C, D"),
    (DG, set_to("q4", "options", "B", to=" \n"), "q4.options.B", "the text is empty"),
    (DG, drop("q3", "boxes", "A"), "q3.boxes", "no box A"),
    (DG, set_to("q3", "boxes", to={}), "q3.boxes", "no box A, B, C, D"),
    (DG, set_to("q3", "boxes", "A", to=[5, 5, 5, 9]), "q3.boxes.A", "no area"),
    (DG, set_to("q3", "boxes", "A", to=[9, 5, 5, 9]), "q3.boxes.A", "reversed"),
    (DG, set_to("q3", "boxes", "A", to=[-1, 5, 5, 9]), "q3.boxes.A", "outside"),
    (DG, set_to("q3", "boxes", "A", to=[0, 0, 5, 577]), "q3.boxes.A", "outside the image of 768 × 576"),
    (DG, set_to("q3", "boxes", "A", to=[0, 0, float("inf"), 9]), "q3.boxes.A", "not a number"),
    (DG, set_to("q3", "boxes", "A", to=[0, 0, float("nan"), 9]), "q3.boxes.A", "not a number"),
    (DG, set_to("image", to="images/none.png"), "image", "does not exist"),
    (DG, set_to("image", to="images"), "image", "folder"),
    (DG, set_to("image", to="items.jsonl"), "image", "not an image"),
    (DG, set_to("image", to="a\0b"), "image", "not valid"),
    (DG, set_to("overlay", to="images/none.png"), "overlay", "does not exist"),
    (DG, set_to("prompts", to={"q1": "?", "q2": "?"}), "prompts.q3", "none for Q3"),
    (DG, set_to("prompts", to=dict.fromkeys(("q1", "q2", "q3", "q4"), " ")), "prompts.q1", "none for Q1"),
]


@pytest.mark.parametrize(("item", "change", "field", "words"), CASES)
def test_each_error_is_found(
    good: Path, tmp_path: Path, item: str, change: Change, field: str, words: str
) -> None:
    (tmp_path / "images").symlink_to(good.parent / "images")
    path = changed(good, tmp_path, {item: change})
    # A pair that lacks one is as sound as an item alone: so are those of drawn sets.
    severity = "warning" if words.startswith("has no ref_") else "error"
    problems = [problem for problem in check(path) if problem.severity == severity]
    fitting = [problem for problem in problems if problem.field == field and words in problem.message]
    assert fitting, problems
    assert fitting[0].item is not None
    assert fitting[0].line is not None
    assert fitting[0].item in str(fitting[0])


WARNINGS: list[tuple[Change, str, str]] = [
    (drop("artifact_type"), "artifact_type", "no artifact type"),
    (set_to("answer_form", to="json"), "answer_form", "no prompts"),
    (set_to("system", to="Look."), "system", "not sent"),
    (set_to("draft", to=True), "draft", "still a draft"),
    (set_to("prompts", to=dict.fromkeys(("q1", "q2", "q3", "q4"), "?")), "prompts", "two wordings"),
]


@pytest.mark.parametrize(("change", "field", "words"), WARNINGS)
def test_warnings_are_no_errors(good: Path, tmp_path: Path, change: Change, field: str, words: str) -> None:
    path = changed(good, tmp_path, {DG: change})
    problems = check(path, root=good.parent)
    assert all(problem.severity == "warning" for problem in problems)
    assert [(problem.field, words in problem.message) for problem in problems] == (
        [(field, True)] if field else []
    )


def test_two_options_with_one_text_are_a_warning(good: Path, tmp_path: Path) -> None:
    def repeat(record: Line) -> None:
        record["q2"]["options"]["D"] = f" {record['q2']['options']['A'].upper()}  "

    (problem,) = check(changed(good, tmp_path, {DG: repeat}), root=good.parent)
    assert (problem.item, problem.field, problem.severity) == (DG, "q2.options.D", "warning")
    assert "same text as option A" in problem.message


def test_letters_that_differ_between_questions_are_a_warning(good: Path, tmp_path: Path) -> None:
    letter = next(scene for scene in scenes() if scene.id == DG).mcq.q2.answer
    other = next(other_letter for other_letter in "ABCD" if other_letter != letter)
    path = changed(good, tmp_path, {DG: set_to("q3", "answer", to=other)})
    (problem,) = check(path, root=good.parent)
    assert (problem.item, problem.severity) == (DG, "warning")
    assert f"the right letters differ (Q2 {letter}, Q3 {other}, Q4 {letter})" in problem.message


@pytest.mark.parametrize(
    ("change", "field"),
    [
        (set_to("q2", "options", "A", to="Elsewhere"), "q2.options"),
        (set_to("q4", "options", "A", to="Else"), "q4.options"),
        (set_to("q3", "boxes", "A", to=[0, 0, 1, 1]), "q3.boxes"),
    ],
)
def test_both_images_of_a_pixel_aligned_pair_have_the_same_options(
    good: Path, tmp_path: Path, change: Change, field: str
) -> None:
    (problem,) = check(changed(good, tmp_path, {PG: change}), root=good.parent)
    assert (problem.item, problem.field, problem.severity) == (REF, field, "error")
    assert PG in problem.message
    # A photograph shows other things, so the options of its artifact image need not be its own.
    assert check(changed(good, tmp_path, {REAL: change}), root=good.parent) == ()


def test_a_pair_of_three_is_none(good: Path) -> None:
    items = list(load(good))
    third = next(item for item in items if item.id == REF).model_copy(update={"id": "third"})
    problems = check(ItemSet((*items, third), good))
    assert sorted(str(problem.item) for problem in problems) == sorted([PG, REF, "third"])
    assert all("has 3 images" in problem.message for problem in problems)


def test_a_stored_overlay_stands_for_boxes_and_has_the_images_size(good: Path, tmp_path: Path) -> None:
    (tmp_path / "images").symlink_to(good.parent / "images")
    Image.new("RGB", (768, 576)).save(tmp_path / "fits.png")
    Image.new("RGB", (576, 768)).save(tmp_path / "turned.png")
    (tmp_path / "cut.png").write_bytes((tmp_path / "fits.png").read_bytes()[:60])

    def with_overlay(name: str) -> Change:
        return lambda record: record.update(overlay=name, q3={"boxes": {}, "answer": record["q3"]["answer"]})

    assert check(changed(good, tmp_path, {DG: with_overlay("fits.png")})) == ()
    (problem,) = check(changed(good, tmp_path, {DG: with_overlay("turned.png")}))
    assert (problem.field, problem.severity) == ("overlay", "error")
    assert "576 × 768" in problem.message
    (problem,) = check(changed(good, tmp_path, {DG: with_overlay("cut.png")}))
    assert problem.field == "overlay"


def test_boxes_are_pixels_of_the_image_as_seen(tmp_path: Path) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    Image.new("RGB", (40, 20)).save(tmp_path / "turned.jpg", exif=exif)
    fields: Line = {
        "id": "one",
        "image": "turned.jpg",
        "split": "ref_real",
        "q1": {"answer": "no"},
        "q2": {"options": {"A": "a", "B": "b", "C": "c", "D": "d"}, "answer": "E"},
        "q3": {"boxes": {letter: [n, 0, 20, 40] for n, letter in enumerate("ABCD")}, "answer": "E"},
        "q4": {"options": {"A": "a", "B": "b", "C": "c", "D": "d"}, "answer": "E"},
    }
    item = Item.model_validate(fields)
    assert check(ItemSet((item,), tmp_path / "items.jsonl")) == ()
    fields["q3"]["boxes"]["C"] = [0, 0, 21, 20]
    wide = Item.model_validate(fields)
    (problem,) = check(ItemSet((wide,), tmp_path / "items.jsonl"))
    assert problem.field == "q3.boxes.C"
    assert check(ItemSet((wide,), tmp_path / "items.jsonl"), images=False) == ()


def test_format_and_content_are_reported_together_in_order_of_lines(good: Path, tmp_path: Path) -> None:
    path = changed(
        good,
        tmp_path,
        {DG: set_to("q2", "options", "E", to="none"), REAL: set_to("image", to="no.png")},
    )
    with path.open("a") as file:
        file.write("{broken\n")
    problems = check(path, root=good.parent)
    assert [problem.line for problem in problems] == sorted(problem.line or 0 for problem in problems)
    assert {(problem.item, problem.field) for problem in problems} == {
        (DG, "q2.options.E"),
        (REAL, "image"),
        (None, None),
    }


def test_an_empty_file_is_no_set(tmp_path: Path) -> None:
    (tmp_path / "items.jsonl").write_text("")
    (problem,) = check(tmp_path / "items.jsonl")
    assert problem.severity == "error"


@pytest.mark.parametrize("box", [(0, 0, 10, 10), (0.5, 0.25, 9.5, 10)])
def test_boxes_may_touch_the_edge(box: tuple[float, float, float, float]) -> None:
    assert box_fault(box, (10, 10)) is None


def test_a_repeated_id_hides_behind_no_other_error(good: Path, tmp_path: Path) -> None:
    """Nor does it hide one: a line is named for its id and for whatever else is wrong with it."""
    path = changed(good, tmp_path, {DG: set_to("split", to="art"), REAL: set_to("id", to=DG)})
    with path.open("ab") as file:
        file.write(json.dumps({"id": PG}).encode() + b"\n")
    lines = [json.loads(line)["id"] for line in path.read_text().splitlines()]
    first, second = (number for number, name in enumerate(lines, 1) if name == DG)
    repeated = (second, f"the id was used before, at line {first}; give every item its own")
    again = (len(lines), f"the id was used before, at line {lines.index(PG) + 1}; give every item its own")
    for problems in (check(path, root=good.parent), refused(path)):
        assert [(p.line, p.message) for p in problems if p.field == "id"] == [repeated, again]
        assert {(p.line, p.field) for p in problems} >= {(second, "split"), (len(lines), "image")}


def refused(path: Path) -> Sequence[Problem]:
    with pytest.raises(ItemsError) as caught:
        load(path)
    return caught.value.problems


def test_a_missing_partner_hides_behind_no_other_error(good: Path, tmp_path: Path) -> None:
    """One that does not validate is not missing; of any other pair it is said."""
    path = changed(good, tmp_path, {REF: set_to("split", to="wrong"), DG: set_to("pair_id", to="nobody's")})
    found = [(problem.item, problem.field) for problem in check(path, root=good.parent)]
    assert (DG, "pair_id") in found
    assert (PG, "pair_id") not in found


def lettered(letters: str) -> ItemSet:
    keys = [(letter, letter, letter) for letter in letters]
    items = [made_item(f"{n:03d}", "art_dg", key, "count") for n, key in enumerate(keys)]
    return ItemSet((*items, made_item("real", "ref_real")), Path("items.jsonl"))


@pytest.mark.parametrize(
    ("letters", "words"),
    [
        ("AAA", None),  # one in 16 such sets by chance
        ("CCCC", "the right letter is C on all 4 images with an artifact"),
        ("ABCD" * 10, None),
        ("A" * 8 + "BCD" * 6, None),
        ("A" * 25 + "BCD" * 5, "far from even on 40 images with an artifact (A 25, B 5, C 5, D 5; p = "),
        ("ABC" * 20, "(A 20, B 20, C 20, D 0; p = "),  # never D
    ],
)
def test_right_letters_that_are_no_chance_are_a_warning(letters: str, words: str | None) -> None:
    found = [problem for problem in check(lettered(letters), images=False) if problem.field == "answer"]
    if words is None:
        assert found == []
        return
    (problem,) = found
    assert (problem.item, problem.severity) == (None, "warning")
    assert problem.message.startswith("Q2, Q3, Q4: ")
    assert words in problem.message


def test_the_warning_of_letters_is_rare_where_letters_are_drawn() -> None:
    draws = random.Random(1)
    warned = 0
    for _ in range(300):
        counts = Counter(draws.choices("ABCD", k=30))
        warned += any(check_letters(lettered("".join(counts.elements()))))
    assert warned <= 0.05 * 300


def test_boxes_that_are_the_same_are_a_warning(good: Path, tmp_path: Path) -> None:
    path = changed(
        good, tmp_path, {REAL: set_to("q3", "boxes", to={letter: [0, 0, 9, 9] for letter in "ABCD"})}
    )
    problems = check(path, root=good.parent)
    assert [(problem.field, problem.severity) for problem in problems] == [
        (f"q3.boxes.{letter}", "warning") for letter in "BCD"
    ]
    assert "the same box as A" in problems[0].message


def test_one_picture_asked_about_twice_is_a_warning(good: Path, tmp_path: Path) -> None:
    items = {item.id: item for item in load(good)}
    both = changed(good, tmp_path, {REAL: set_to("image", to=items[DG].image)})
    found = {problem.item: problem for problem in check(both, root=good.parent)}
    later = max(DG, REAL)  # the file is in order of ids
    assert found[later].field == "image"
    assert "it cannot both show an artifact and none" in found[later].message
    twice = changed(good, tmp_path, {DG: set_to("image", to=items[PG].image)})
    (problem,) = [each for each in check(twice, root=good.parent) if each.message.startswith("the same")]
    assert problem.severity == "warning"
    assert "intervals take items as independent" in problem.message


def test_copies_of_a_picture_are_a_warning_and_pairs_are_not(good: Path, tmp_path: Path) -> None:
    source = next(item for item in load(good) if item.id == DG)
    with Image.open(good.parent / source.image) as image:
        size = (image.width // 2, image.height // 2)
        image.convert("RGB").resize(size).save(tmp_path / "copy.jpg", quality=50)
    copy = os.path.relpath(tmp_path / "copy.jpg", good.parent)
    boxes = {letter: [n, n, n + 9, n + 9] for n, letter in enumerate("ABCD")}

    def resaved(record: Line) -> None:
        record |= {"image": copy, "q3": {"boxes": boxes, "answer": record["q3"]["answer"]}}

    path = changed(good, tmp_path, {PG: resaved})
    (problem,) = [each for each in check(path, root=good.parent) if each.field == "image"]
    assert problem.message.startswith("nearly the same picture as item ")
    # Its own pair's other picture differs by less: that is what pairs are.
    assert check(good) == ()


def test_edits_of_one_image_are_no_copies(tmp_path: Path) -> None:
    """Two edits of one generated image look alike, and the image before is there once for each."""
    Image.new("RGB", (64, 64), (90, 120, 40)).save(tmp_path / "before.png")
    for name, spot in (("one", 10), ("two", 30)):
        edited = Image.new("RGB", (64, 64), (90, 120, 40))
        edited.paste((200, 0, 0), (spot, spot, spot + 6, spot + 6))
        edited.save(tmp_path / f"{name}.png")
    items = []
    for pair in ("one", "two"):
        for split, name in (("art_pg", pair), ("ref_pg", "before")):
            item = made_item(f"{pair}-{split}", split, kind="count")  # type: ignore[arg-type]
            items.append(item.model_copy(update={"image": f"{name}.png", "pair_id": pair}))
    assert [p for p in check(ItemSet(tuple(items), tmp_path / "items.jsonl")) if p.field == "image"] == []
