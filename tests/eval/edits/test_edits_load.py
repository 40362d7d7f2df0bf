"""Pairs from files, folders, frames and programs: read whole, or refused with everything that is wrong."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.eval.edits.made_pairs import known_cases, save, squares
from uncanny.edits import EditPair, load
from uncanny.errors import ItemsError, UncannyError, UsageError

NAMES = st.text(st.characters(codec="utf-8", exclude_categories=["Cc"]), min_size=1, max_size=20)
RECORDS = st.fixed_dictionaries(
    {"id": NAMES, "original": NAMES, "edited": NAMES},
    optional={
        "mask": st.none() | NAMES,
        "label": st.none() | NAMES,
        "objects": st.none() | st.lists(NAMES, max_size=4),
        "scene_diversity": st.none() | st.floats(0, 1e6),
        "of mine": st.integers(-(10**9), 10**9) | NAMES,
    },
)
JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
LOOSE = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@given(records=st.lists(RECORDS, min_size=1, max_size=6, unique_by=lambda record: str(record["id"])))
@LOOSE
def test_what_is_written_is_read(records: list[dict[str, Any]], tmp_path: Path) -> None:
    file = tmp_path / "e.jsonl"
    file.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    for files, record in zip(load(file), records, strict=True):
        assert files.id == record["id"]
        assert files.original == tmp_path / record["original"]
        if "of mine" in record:
            assert (files.pair.model_extra or {})["of mine"] == record["of mine"]
        if record.get("objects") is not None and record.get("scene_diversity") is None:
            assert files.pair.diversity == len(set(record["objects"]))
            assert files.pair.complexity == len(record["objects"])


@given(lines=st.lists(JUNK | st.dictionaries(st.sampled_from(list(EditPair.model_fields)), JUNK), max_size=4))
@LOOSE
def test_whatever_stands_in_a_file_is_read_or_refused_in_words(lines: list[Any], tmp_path: Path) -> None:
    file = tmp_path / "e.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    with suppress(UncannyError):
        assert len(load(file)) == len(lines)


@given(data=st.binary(max_size=200), suffix=st.sampled_from([".jsonl", ".csv", ".parquet"]))
@LOOSE
def test_bytes_of_any_kind_are_read_or_refused_in_words(data: bytes, suffix: str, tmp_path: Path) -> None:
    file = tmp_path / f"e{suffix}"
    file.write_bytes(data)
    with suppress(UncannyError):
        load(file)


def test_folders_with_masks_and_methods(tmp_path: Path) -> None:
    for name in ("original/a.png", "original/b.png", "edited/m/a.png", "edited/m/b.jpg"):
        save(tmp_path / name, squares(side=16))
    save(tmp_path / "masks/m/a.png", np.zeros((16, 16), dtype=np.uint8))
    np.save(tmp_path / "masks/m/b.npy", np.zeros((16, 16)))
    pairs = load(tmp_path)
    assert [(files.id, files.pair.method) for files in pairs] == [("m/a", "m"), ("m/b", "m")]
    assert [files.masks[0].name for files in pairs if isinstance(files.masks[0], Path)] == ["a.png", "b.npy"]
    again = load(original=tmp_path / "original", edited=tmp_path / "edited")
    assert [files.masks for files in again] == [(), ()]
    with pytest.raises(UsageError, match="is not a folder"):
        load(original=tmp_path / "original", edited=tmp_path / "edited", masks=tmp_path / "nowhere")
    with pytest.raises(UsageError, match="needs"):
        load(tmp_path, masks=tmp_path / "masks")


def test_a_mask_outside_the_folders_of_methods_serves_them_all(tmp_path: Path) -> None:
    for name in ("original/a.png", "edited/m/a.png", "edited/n/a.png"):
        save(tmp_path / name, squares(side=16))
    save(tmp_path / "masks/a.png", np.zeros((16, 16), dtype=np.uint8))
    save(tmp_path / "masks/n/a.png", np.zeros((16, 16), dtype=np.uint8))
    masks = {files.id: files.masks for files in load(tmp_path)}
    assert masks == {"m/a": (tmp_path / "masks/a.png",), "n/a": (tmp_path / "masks/n/a.png",)}


def test_tables_hold_masks_and_lists_as_json(tmp_path: Path) -> None:
    file = tmp_path / "e.csv"
    file.write_text(
        "id,original,edited,mask,objects,scene_complexity,cost\n"
        '1,a.png,b.png,"{""size"": [1, 1], ""counts"": [1]}","[""cat"", ""cat""]",7,3\n'
        "2,a.png,b.png,m.png,,,\n"
    )
    one, two = load(file)
    assert one.id == "1"
    assert one.masks == ({"size": [1, 1], "counts": [1]},)
    assert (one.pair.diversity, one.pair.complexity) == (1, 7)
    assert (one.pair.model_extra or {})["cost"] == "3"
    assert two.masks == (tmp_path / "m.png",)
    assert two.pair.diversity is None


def test_rows_of_a_table_are_named_by_their_line(tmp_path: Path) -> None:
    file = tmp_path / "e.csv"
    file.write_text("id,original,edited\n1,a.png,b.png\n2,,b.png\n1,a.png,b.png\n")
    with pytest.raises(ItemsError) as caught:
        load(file)
    assert [(problem.line, problem.field) for problem in caught.value.problems] == [
        (3, "original"),
        (4, "id"),
    ]


def test_a_column_that_is_missing_is_said_once_and_listed_whole(tmp_path: Path) -> None:
    table = tmp_path / "pairs.csv"
    table.write_text("id,edited\n" + "".join(f"{row},e{row}.png\n" for row in range(500)))
    with pytest.raises(ItemsError) as caught:
        load(table)
    assert [problem.line for problem in caught.value.problems] == list(range(2, 502))
    first = "line 2, item '0'; line 3, item '1'; line 4, item '2'; …"
    assert caught.value.lines()[1:2] == (f"  field original: is missing (500 times: {first})",)


@pytest.mark.parametrize("suffix", [".csv", ".jsonl"])
def test_a_repeated_id_is_named_whatever_else_is_wrong_with_it(tmp_path: Path, suffix: str) -> None:
    rows = [{"id": "a", "original": "o.png"}, {"id": "a", "original": "o.png", "edited": "e.png"}]
    file = tmp_path / f"pairs{suffix}"
    if suffix == ".csv":
        file.write_text("id,original,edited\na,o.png,\na,o.png,e.png\n")
    else:
        file.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    with pytest.raises(ItemsError) as caught:
        load(file)
    assert [(each.field, each.item) for each in caught.value.problems] == [("edited", "a"), ("id", "a")]


def test_records_of_a_program_start_at_the_root(tmp_path: Path) -> None:
    known_cases(tmp_path)
    pair = EditPair(id="a", original="black.png", edited="one.png")
    assert load([pair], root=tmp_path).pairs[0].original == tmp_path / "black.png"
    assert load([pair]).pairs[0].original == Path.cwd() / "black.png"
    with pytest.raises(ItemsError, match="was used before"):
        load([pair, pair])
    with pytest.raises(UsageError, match="no pairs"):
        load([])
    mixed: Any = [pair, "b"]
    with pytest.raises(UsageError, match="Pairs are"):
        load(mixed)


def test_the_scenes_are_one_word() -> None:
    pairs = load("scenes")
    assert repr(pairs) == "<16 edits of the bundled scenes>"
    assert all(files.masks for files in pairs)
    assert all(files.pair.texts for files in pairs)
    assert load(pairs) is pairs
    with pytest.raises(UsageError, match="cannot be used with"):
        load("scenes", root=Path.cwd())
