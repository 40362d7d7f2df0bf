"""Raw annotation payloads as a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.eval.mcq.made_sets import to_payload
from uncanny.errors import ItemsError, UsageError
from uncanny.eval.mcq.data.load import copy_scenes, load
from uncanny.eval.mcq.data.released import holds_payloads, import_table


def write(path: Path, lines: list[Any]) -> Path:
    path.write_bytes(b"".join(orjson.dumps(line) + b"\n" for line in lines))
    return path


@pytest.mark.parametrize("nested", [False, True])
def test_the_scenes_come_back_from_their_payloads(tmp_path: Path, nested: bool) -> None:
    source = copy_scenes(tmp_path / "scenes")
    items = load(source)
    lines = []
    for item in items:
        names = {"id": item.id, "image": item.image, "split": item.split, "pair_id": item.pair_id}
        lines.append({**names, "payload": to_payload(item)} if nested else {**to_payload(item), **names})
    file = write(tmp_path / "scenes" / "payloads.jsonl", lines)
    assert holds_payloads(file)
    imported = import_table(file, out=tmp_path / "out")
    assert imported == load(tmp_path / "out" / "items.jsonl")
    for before, after in zip(items, imported, strict=True):
        assert imported.image_path(after).resolve() == items.image_path(before).resolve()
        for name in ("id", "split", "pair_id", "artifact_type", "q1", "q2", "q3", "q4"):
            assert getattr(after, name) == getattr(before, name)


def test_everything_wrong_is_named_at_once_and_nothing_written(tmp_path: Path) -> None:
    good = {"id": "a", "image": "a.png", "split": "ref_real", "q1_ref": "no"}
    file = write(
        tmp_path / "p.jsonl",
        [good, {**good, "id": 7}, {**good, "split": "other"}, {**good, "q1_ref": "maybe"}, [1]],
    )
    with pytest.raises(ItemsError) as caught:
        import_table(file, out=tmp_path / "out")
    assert [problem.line for problem in caught.value.problems] == [2, 3, 3, 4, 4, 5]
    assert not (tmp_path / "out").exists()


def test_an_item_file_or_a_table_is_no_payload(tmp_path: Path) -> None:
    assert not holds_payloads(copy_scenes(tmp_path / "scenes"))
    assert not holds_payloads(tmp_path)
    (tmp_path / "t.csv").write_text("row_id,q1_ref\n")
    assert not holds_payloads(tmp_path / "t.csv")


def test_a_target_that_is_there_is_left_alone(tmp_path: Path) -> None:
    file = write(tmp_path / "p.jsonl", [{"id": "a", "image": "a.png", "split": "ref_real", "q1_ref": "no"}])
    import_table(file, out=tmp_path / "out")
    with pytest.raises(UsageError, match="already exists"):
        import_table(file, out=tmp_path / "out")
