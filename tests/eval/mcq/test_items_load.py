"""Item and answer files: good ones read, bad ones refused with everything that is wrong."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from uncanny.errors import ItemsError, UsageError
from uncanny.eval.mcq.data.answers import load_answers
from uncanny.eval.mcq.data.checks import check
from uncanny.eval.mcq.data.items import Answer, Item, ItemSet
from uncanny.eval.mcq.data.load import load, write_items

TEXTS = {"A": "a", "B": "b", "C": "c", "D": "d"}
ONE: dict[str, Any] = {
    "id": "one",
    "image": "one.png",
    "split": "art_dg",
    "q1": {"answer": "yes"},
    "q2": {"options": TEXTS, "answer": "B"},
    "q3": {"boxes": {letter: [0, 0, 4, 4] for letter in "ABCD"}, "answer": "B"},
    "q4": {"options": TEXTS, "answer": "B"},
}


def lines(path: Path, *records: object) -> Path:
    path.write_text("".join(f"{json.dumps(record)}\n" for record in records), encoding="utf-8")
    return path


def problems_of(path: Path) -> list[tuple[int | None, str | None, str | None]]:
    with pytest.raises(ItemsError) as caught:
        load(path)
    return [(problem.line, problem.item, problem.field) for problem in caught.value.problems]


def test_unknown_keys_blank_lines_and_a_byte_order_mark_are_no_fault(tmp_path: Path) -> None:
    path = tmp_path / "items.jsonl"
    path.write_bytes(b"\xef\xbb\xbf" + json.dumps({**ONE, "source": "mine"}).encode() + b"\n\n  \n")
    (item,) = load(path)
    assert item.model_extra == {"source": "mine"}


def test_every_fault_of_a_file_is_named_at_once(tmp_path: Path) -> None:
    path = lines(
        tmp_path / "items.jsonl",
        ONE,
        {**ONE, "id": "letter", "q2": {"options": {**TEXTS, "E": "none"}, "answer": "B"}},
        {**ONE, "id": "empty", "q4": {"options": TEXTS, "answer": ""}},
        {**ONE, "id": "split", "split": "art", "q1": {"answer": "maybe"}},
        {"image": "x.png", "split": "art_dg"},
        [1, 2],
        {**ONE, "id": 7},
        {**ONE, "id": "box", "q3": {"boxes": {"A": [1, 2, 3]}, "answer": "F"}},
        ONE,
    )
    assert problems_of(path) == [
        (2, "letter", "q2.options.E"),
        (3, "empty", "q4.answer"),
        (4, "split", "split"),
        (4, "split", "q1.answer"),
        (5, None, "id"),
        (6, None, None),
        (7, None, "id"),
        (8, "box", "q3.boxes.A.3"),
        (8, "box", "q3.answer"),
        (9, "one", "id"),
    ]


def test_messages_say_what_to_do(tmp_path: Path) -> None:
    path = lines(
        tmp_path / "items.jsonl",
        {**ONE, "q2": {"options": {**TEXTS, "E": "none"}, "answer": "B"}},
        {**ONE, "id": "two", "q4": {"options": TEXTS, "answer": ""}},
    )
    with pytest.raises(ItemsError, match=r"line 1, item 'one', field q2.options.E: .*leave it out") as caught:
        load(path)
    assert "line 2, item 'two', field q4.answer: the reference answer is empty" in str(caught.value)
    assert str(path) in str(caught.value)


def test_the_message_lists_twenty_and_counts_the_rest(tmp_path: Path) -> None:
    """What all lack is one line, what is wrong with each is one each."""
    records = ({"id": f"i{number}", "image": number, "q1": number} for number in range(15))
    path = lines(tmp_path / "items.jsonl", *records)
    with pytest.raises(ItemsError) as caught:
        load(path)
    assert len(caught.value.problems) == 45
    assert "45 problems" in str(caught.value)
    assert "is missing (15 times: line 1, item 'i0'; " in str(caught.value)
    assert "and 11 more" in str(caught.value)


@pytest.mark.parametrize(
    "content",
    [
        b"{",
        b"\x00\xff\xfe\n",
        b"[" * 5000,
        b'{"id": "' + b"x" * 1_000_000 + b'", "split": 3}',
        b'{"id": "a\\nb", "image": "", "split": "' + b"y" * 100_000 + b'"}',
        b'{"id": "\xed\xa0\x80"}',
    ],
)
def test_hostile_lines_end_in_one_short_error(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "items.jsonl"
    path.write_bytes(content)
    with pytest.raises(UsageError) as caught:
        load(path)
    assert len(str(caught.value)) < 4000 + len(str(path))


def test_files_that_are_not_there_or_empty(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        load(tmp_path / "none.jsonl")
    with pytest.raises(UsageError, match="cannot be read"):
        load(tmp_path)
    (tmp_path / "empty.jsonl").write_text("\n\n")
    with pytest.raises(UsageError, match="contains no items"):
        load(tmp_path / "empty.jsonl")
    with pytest.raises(UsageError, match="`root` must be a folder that exists"):
        load(tmp_path / "empty.jsonl", root=tmp_path / "empty.jsonl")


def test_paths_start_at_the_file_or_at_the_root(tmp_path: Path) -> None:
    item = Item.model_validate({**ONE, "image": "a/b.png", "overlay": "o.png"})
    file = tmp_path / "set" / "items.jsonl"
    items = ItemSet((item,), file)
    assert items.image_path(item) == tmp_path / "set" / "a" / "b.png"
    assert ItemSet((item,), file, tmp_path).image_path(item) == tmp_path / "a" / "b.png"
    assert items.overlay_path(item) == tmp_path / "set" / "o.png"
    assert items.overlay_path(Item.model_validate(ONE)) is None


def test_the_bundled_set_is_read_where_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.chdir(tmp_path)
    items = load("scenes")
    assert all(items.image_path(item).is_file() for item in items)
    assert check("scenes") == ()
    assert list(tmp_path.iterdir()) == [], "nothing is copied"
    assert items.items == load("scenes", folder=tmp_path / "run").items


TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20)
CHOICE = st.fixed_dictionaries(
    {"options": st.fixed_dictionaries(dict.fromkeys("ABCD", TEXT)), "answer": st.sampled_from("ABCDE")}
)
SIDE = st.floats(-1e6, 1e6, allow_nan=False) | st.integers(-9, 9999)
BOXES = st.dictionaries(st.sampled_from("ABCD"), st.tuples(SIDE, SIDE, SIDE, SIDE))
ITEM = st.builds(
    Item.model_validate,
    st.fixed_dictionaries(
        {
            "id": TEXT,
            "image": TEXT,
            "split": st.sampled_from(["art_dg", "art_pg", "ref_real", "ref_pg"]),
            "q1": st.none() | st.fixed_dictionaries({"answer": st.sampled_from(["yes", "no"])}),
            "q2": CHOICE,
            "q3": st.fixed_dictionaries({"boxes": BOXES, "answer": st.sampled_from("ABCDE")}),
            "q4": CHOICE,
        },
        optional={
            "pair_id": TEXT,
            "artifact_type": st.sampled_from(["count", "other"]),
            "prompts": st.dictionaries(st.sampled_from(["q1", "q2", "q3", "q4"]), TEXT),
            "answer_form": st.sampled_from(["letter", "json"]),
            "note": st.lists(TEXT),
        },
    ),
)


@given(st.lists(ITEM, min_size=1, max_size=4, unique_by=lambda item: item.id))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_what_is_written_is_read_again(tmp_path: Path, items: list[Item]) -> None:
    path = tmp_path / "items.jsonl"
    write_items(items, path)
    assert load(path).items == tuple(items)


def answer(model: str = "m", **changed: object) -> dict[str, object]:
    return {"id": "one", "question": "q2", "raw": "B", "model": model, **changed}


def test_answers_of_several_models_and_files(tmp_path: Path) -> None:
    first = lines(tmp_path / "1.jsonl", answer("m"), answer("n", raw="C"), answer("m", id="two"))
    second = lines(tmp_path / "2.jsonl", answer("m"), answer("m", question="q4_no_image", raw="F"))
    read = load_answers([first, second])
    assert [(a.model, a.id, a.question) for a in read] == [
        ("m", "one", "q2"),
        ("n", "one", "q2"),
        ("m", "two", "q2"),
        ("m", "one", "q4_no_image"),
    ]
    assert load_answers([]) == ()


def test_contradicting_answers_name_both_lines(tmp_path: Path) -> None:
    first = lines(tmp_path / "1.jsonl", answer("m"))
    second = lines(tmp_path / "2.jsonl", answer("n"), answer("m", raw="C"), {"id": "x"})
    with pytest.raises(ItemsError) as caught:
        load_answers([first, second])
    message = str(caught.value)
    assert f"'B' at {first}:1 and 'C' at {second}:2" in message
    assert [(problem.line, problem.field) for problem in caught.value.problems] == [
        (3, "question"),
        (3, "raw"),
        (3, "model"),
        (2, "q2"),
    ]


@pytest.mark.parametrize("failure_first", [True, False])
def test_an_answer_replaces_a_failed_call_wherever_it_stands(tmp_path: Path, failure_first: bool) -> None:
    both = [answer(raw=None, outcome="error", error="timeout"), answer()]
    path = lines(tmp_path / "a.jsonl", *(both if failure_first else both[::-1]))
    assert [a.raw for a in load_answers([path])] == ["B"]


def test_a_failed_call_alone_stays_a_failed_call(tmp_path: Path) -> None:
    path = lines(tmp_path / "a.jsonl", answer(raw=None, outcome="error", error="timeout"))
    assert load_answers([path]) == (
        Answer(id="one", question="q2", raw=None, model="m", outcome="error", error="timeout"),
    )
