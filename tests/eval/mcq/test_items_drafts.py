"""Items drafted from annotations: right option true, wrong ones not, the same again for a seed."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from uncanny.demo.scenes import DATA, scenes
from uncanny.eval.mcq.data.checks import check
from uncanny.eval.mcq.data.drafts import Boxes, draft_items
from uncanny.eval.mcq.data.items import Item, ItemSet
from uncanny.schema import Annotation, Anomaly, SceneObject


def anomaly(name: str, objects: tuple[str, ...] = ("cat",), severity: int = 20) -> Anomaly:
    phenomenon = f"The {' and the '.join(objects) or 'scene'} shows {name}."
    return Anomaly(name=name, phenomenon=phenomenon, reasoning="why", severity=severity, objects=objects)


def annotation(
    image: str = "a.png",
    anomalies: tuple[Anomaly, ...] = (),
    objects: tuple[str, ...] = ("cat", "dog", "cup", "lamp", "rug"),
    sha256: str | None = None,
) -> Annotation:
    return Annotation(
        image=image,
        sha256=sha256 or f"{image:_<64}",
        width=10,
        height=10,
        status="ok",
        anomalies=anomalies,
        objects=tuple(SceneObject(name=name, description="d") for name in objects),
        model="m",
        prompts="p",
    )


def of_scenes() -> tuple[list[Annotation], Boxes]:
    annotations = [
        Annotation(
            image=scene.image,
            sha256=scene.sha256,
            width=scene.width,
            height=scene.height,
            status="ok",
            anomalies=tuple(entry.quadruple() for entry in scene.anomalies),
            objects=tuple(SceneObject(name=o.name, description=o.description) for o in scene.objects),
            model="m",
            prompts="p",
        )
        for scene in scenes()
    ]
    return annotations, {
        scene.image: {entry.name: entry.box for entry in scene.objects} for scene in scenes()
    }


def extra(item: Item, key: str) -> object:
    return (item.model_extra or {}).get(key)


def test_drafts_of_the_bundled_scenes_lack_little_but_a_person() -> None:
    annotations, boxes = of_scenes()
    drafts = draft_items(annotations, boxes=boxes)
    assert len(drafts) == sum(bool(entry.anomalies) for entry in annotations)
    problems = check(ItemSet(drafts, DATA / "items.jsonl"))
    assert {problem.field for problem in problems if problem.severity == "warning"} == {
        "artifact_type",
        "draft",
    }
    # No box is known for a part of an object; everything else is there.
    with_parts = {d.id for d in drafts if "wrong part" in extra(d, "draft_from").values()}  # type: ignore[attr-defined]
    errors = {(problem.item, problem.field) for problem in problems if problem.severity == "error"}
    assert errors == {(id, "q3.boxes") for id in with_parts}
    assert len(with_parts) < len(drafts) / 2


def test_the_right_option_is_the_anomaly_and_the_letters_are_aligned() -> None:
    entry = annotation(anomalies=(anomaly("mild", severity=60), anomaly("grave", ("cat", "dog"), severity=5)))
    (item,) = draft_items([entry])
    assert item.q1 is not None
    assert item.q2 is not None
    assert item.q3 is not None
    assert item.q4 is not None
    assert (item.split, item.q1.answer, extra(item, "draft")) == ("art_dg", "yes", True)
    assert item.q2.answer == item.q3.answer == item.q4.answer
    right = item.q2.answer
    assert right != "E"
    assert item.q2.options[right] == "The cat and the dog"
    assert item.q4.options[right] == "The cat and the dog shows grave."
    assert extra(item, "draft_from")[right] == "verified anomaly"  # type: ignore[index]
    assert set(item.q2.options) == set(item.q4.options) == set("ABCD")


def test_what_is_true_of_the_image_is_never_a_wrong_option() -> None:
    entry = annotation(anomalies=(anomaly("x", severity=5), anomaly("y", ("dog",)), anomaly("z", ("cup",))))
    other = annotation("b.png", (anomaly("y", ("dog",)), anomaly("w", ("lamp",))))
    for seed in range(20):
        item = draft_items([entry, other], seed=seed)[0]
        assert item.q2 is not None
        assert item.q4 is not None
        texts = [text for letter, text in item.q4.options.items() if letter != item.q4.answer]
        assert not {"The dog shows y.", "The cup shows z."} & set(texts)
        assert not {"The dog", "The cup"} & set(item.q2.options.values())


def test_reviews_decide_what_is_right_and_what_is_wrong() -> None:
    entry = annotation(anomalies=(anomaly("no", ("dog",), 0), anomaly("yes", severity=50), anomaly("open")))
    reviews: list[dict[str, Any]] = [
        {"image": "a.png", "sha256": entry.sha256, "anomaly": 0, "decision": "accept"},
        {"image": "a.png", "sha256": entry.sha256, "anomaly": 0, "decision": "reject"},
        {"image": "a.png", "sha256": entry.sha256, "anomaly": 1, "decision": "accept"},
        {"image": "a.png", "sha256": "of another picture", "anomaly": 2, "decision": "accept"},
        {"image": "gone.png", "anomaly": 0, "decision": "accept"},
        {"decision": "accept", "anomaly": "0", "image": 3},
    ]
    (item,) = draft_items([entry], reviews=reviews)
    assert item.q4 is not None
    assert item.q4.options[item.q4.answer] == "The cat shows yes."  # type: ignore[index]
    by_source = {source: letter for letter, source in extra(item, "draft_from").items()}  # type: ignore[attr-defined]
    assert item.q4.options[by_source["rejected anomaly"]] == "The dog shows no."
    assert not any("open" in text for text in item.q4.options.values())
    assert draft_items([entry], reviews=[]) == ()


def test_boxes_where_they_are_known_and_the_missing_ones_named() -> None:
    entry = annotation(anomalies=(anomaly("x", ("cat", "dog")),), objects=("cat", "dog", "cup"))
    boxes: Boxes = {"a.png": {"cat": (0, 0, 2, 2), "dog": (1, 1, 5, 4), "cup": (7, 7, 9, 9)}}
    (item,) = draft_items([entry], boxes=boxes)
    assert item.q2 is not None
    assert item.q3 is not None
    assert item.q3.boxes[item.q3.answer] == (0, 0, 5, 4)  # type: ignore[index]
    assert len(item.q3.boxes) == 2
    problems = check([item], images=False)
    missing = "".join(sorted(set("ABCD") - set(item.q3.boxes), key="ABCD".index))
    assert [p.message for p in problems if p.severity == "error"] == [
        f"no box {', '.join(missing)}; give four boxes, A–D"
    ]


def test_one_item_for_copies_of_a_picture() -> None:
    copies = [annotation(name, (anomaly("x"),), sha256="s" * 64) for name in ("b.png", "a.png")]
    assert [item.image for item in draft_items(copies)] == ["a.png"]


NAME = st.text("abc \n", min_size=1, max_size=6).filter(str.strip)
ANOMALY = st.builds(
    lambda name, objects, severity: anomaly(name, tuple(objects), severity),
    NAME,
    st.lists(NAME.map(str.strip), max_size=3),
    st.integers(0, 100),
)
ANNOTATIONS = st.lists(
    st.builds(
        lambda image, anomalies, objects: annotation(image, tuple(anomalies), tuple(objects)),
        st.text("xyz", min_size=1, max_size=8),
        st.lists(ANOMALY, max_size=3),
        st.lists(NAME, max_size=6),
    ),
    max_size=4,
    unique_by=lambda entry: entry.image,
)


@given(ANNOTATIONS, st.integers(0, 5))
def test_always_four_different_options_and_the_same_again(annotations: list[Annotation], seed: int) -> None:
    drafts = draft_items(annotations, seed=seed)
    assert drafts == draft_items(annotations[::-1], seed=seed)
    assert len(drafts) == sum(bool(entry.anomalies) for entry in annotations)
    for item in drafts:
        for choice in (item.q2, item.q4):
            assert choice is not None
            assert len({" ".join(text.split()).casefold() for text in choice.options.values()}) == 4


@pytest.mark.parametrize("seed", range(3))
def test_seeds_move_the_right_letter(seed: int) -> None:
    entries = [annotation(f"{number}.png", (anomaly("x"),)) for number in range(40)]
    letters = [item.right("q2") for item in draft_items(entries, seed=seed)]
    assert set(letters) == set("ABCD")
    assert letters != [item.right("q2") for item in draft_items(entries, seed=seed + 1)]


def test_boxes_of_the_annotation_serve_where_no_others_are_given() -> None:
    objects = {
        "cat": (0, 0, 4, 4),
        "dog": (5, 5, 9, 9),
        "cup": None,
        "lamp": (0, 5, 4, 9),
        "rug": (5, 0, 9, 4),
    }
    entry = annotation(anomalies=(anomaly("six legs").model_copy(update={"box": (1, 1, 3, 3)}),)).model_copy(
        update={
            "objects": tuple(
                SceneObject(name=name, description="d", box=box) for name, box in objects.items()
            )
        }
    )
    (item,) = draft_items([entry])
    assert item.q2 is not None
    assert item.q3 is not None
    # Where it is wrong goes before where its object is.
    assert dict(item.q3.boxes)[item.q3.answer] == (1, 1, 3, 3)  # type: ignore[index]
    for letter, text in item.q2.options.items():
        name = text.removeprefix("The ")
        if letter != item.q3.answer and name in objects:
            assert item.q3.boxes.get(letter) == objects[name]
    (other,) = draft_items([entry], boxes={"a.png": {"dog": (6, 6, 8, 8)}})
    assert other.q2 is not None
    assert other.q3 is not None
    assert (6, 6, 8, 8) in other.q3.boxes.values() or "The dog" not in other.q2.options.values()
