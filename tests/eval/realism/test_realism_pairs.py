"""Pairs from files, from folders, and the bundled ones."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest

from tests.eval.realism.made_verdicts import written
from tests.runs.e2e import pictures
from uncanny import realism
from uncanny.demo.scenes import scene_by_sha256
from uncanny.errors import ItemsError, UsageError
from uncanny.eval.realism.data import PairFiles, folder_pairs, load_pairs, scene_pairs, store_scene_pairs


def test_the_bundled_pairs() -> None:
    pairs = scene_pairs().pairs
    assert len(pairs) == 16
    assert {pair.group for pair in pairs} == {"drawn", "rendered"}
    assert all(pair.original.is_file() and pair.edited.is_file() for pair in pairs)


def test_stored_they_are_the_same_and_stay(tmp_path: Path) -> None:
    path = store_scene_pairs(tmp_path / "set")
    stored = load_pairs(path)
    for mine, bundled in zip(stored.pairs, scene_pairs().pairs, strict=True):
        assert (mine.id, mine.group) == (bundled.id, bundled.group)
        assert mine.original.read_bytes() == bundled.original.read_bytes()
        assert mine.edited.read_bytes() == bundled.edited.read_bytes()
    before = path.stat().st_mtime_ns
    store_scene_pairs(tmp_path / "set")
    assert path.stat().st_mtime_ns == before
    assert scene_by_sha256("0" * 64) is None


def test_a_pair_file_starts_paths_at_itself_or_at_a_root(tmp_path: Path) -> None:
    rows = [{"id": "a", "original": "o/a.png", "edited": "e/a.png", "group": "g", "more": 1}]
    path = written(tmp_path / "pairs.jsonl", map(orjson.dumps, rows))
    (pair,) = load_pairs(path).pairs
    assert (pair.id, pair.group) == ("a", "g")
    assert pair.original == tmp_path / "o" / "a.png"
    (tmp_path / "root").mkdir()
    (pair,) = load_pairs(path, tmp_path / "root").pairs
    assert pair.edited == tmp_path / "root" / "e" / "a.png"


def test_everything_wrong_is_told_at_once(tmp_path: Path) -> None:
    lines = [
        b'{"id":"a","original":"o","edited":"e"}',
        b"nope",
        b'{"id":"b","original":"o"}',
        b'{"id":"a","original":"o","edited":"e"}',
        b'{"id":"c","original":"","edited":"e","group":7}',
        b'{"id":"b","original":"o","edited":"e"}',
        b'{"id":"a","original":"o"}',
    ]
    with pytest.raises(ItemsError) as caught:
        load_pairs(written(tmp_path / "pairs.jsonl", lines))
    message = str(caught.value)
    for words in (
        "8 problems",
        "line 2: not valid JSON",
        "line 3, item 'b', field edited: is missing",
        "line 4, item 'a', field id: the id was used before, at line 1",
        "line 5, item 'c', field original",
        "line 5, item 'c', field group",
        "line 6, item 'b', field id: the id was used before, at line 3",
        "line 7, item 'a', field id: the id was used before, at line 1",
    ):
        assert words in message


@pytest.mark.parametrize("content", [b"", b"\n\n"])
def test_no_pairs_at_all(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "p.jsonl").write_bytes(content)
    with pytest.raises(UsageError, match="contains no pairs"):
        load_pairs(tmp_path / "p.jsonl")
    with pytest.raises(UsageError, match="cannot be read"):
        load_pairs(tmp_path / "none.jsonl")
    with pytest.raises(UsageError, match="is not a folder"):
        load_pairs(tmp_path)


def test_two_folders_pair_equal_names_whatever_the_suffix(tmp_path: Path) -> None:
    originals, edits = pictures(tmp_path / "original", 3), pictures(tmp_path / "edited", 3)
    (edits / "p01.png").rename(edits / "p01.webp")
    pair_set = load_pairs(tmp_path)
    assert [(pair.id, pair.group) for pair in pair_set] == [("p00", None), ("p01", None), ("p02", None)]
    assert (pair_set.pairs[1].original, pair_set.pairs[1].edited) == (
        originals / "p01.png",
        edits / "p01.webp",
    )


def test_groups_share_originals(tmp_path: Path) -> None:
    pictures(tmp_path / "o", 2)
    for group in ("brushnet", "sdxl/v2"):
        pictures(tmp_path / "e" / group, 2)
    pairs = folder_pairs(tmp_path / "o", tmp_path / "e").pairs
    assert [pair.id for pair in pairs] == ["brushnet/p00", "brushnet/p01", "sdxl/v2/p00", "sdxl/v2/p01"]
    assert [pair.group for pair in pairs] == ["brushnet"] * 2 + ["sdxl/v2"] * 2
    assert {pair.original for pair in pairs} == {tmp_path / "o" / "p00.png", tmp_path / "o" / "p01.png"}


def test_a_name_in_one_folder_only_is_a_pair_with_a_missing_side(tmp_path: Path) -> None:
    pictures(tmp_path / "original", 2)
    pictures(tmp_path / "edited", 2, first=1)
    pairs = {pair.id: pair for pair in load_pairs(tmp_path).pairs}
    assert set(pairs) == {"p00", "p01", "p02"}
    assert not pairs["p00"].edited.exists()
    assert not pairs["p02"].original.exists()


def test_two_files_of_one_name_are_told(tmp_path: Path) -> None:
    pictures(tmp_path / "original", 1)
    pictures(tmp_path / "edited", 1)
    (tmp_path / "edited" / "p00.jpg").write_bytes(b"")
    with pytest.raises(ItemsError, match=r"p00\.jpg and p00\.png have the same name"):
        load_pairs(tmp_path)


def test_empty_folders(tmp_path: Path) -> None:
    for side in ("original", "edited"):
        (tmp_path / side).mkdir()
    with pytest.raises(UsageError, match="No images in"):
        load_pairs(tmp_path)


def test_pairs_of_a_program_have_ids_of_their_own_and_absolute_paths(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    pair = PairFiles("a", Path("o.png"), Path("e.png"), "g")
    assert list(realism.load([pair])) == [PairFiles("a", tmp_path / "o.png", tmp_path / "e.png", "g")]
    with pytest.raises(ItemsError, match="item 'a', field id: the id was used before; give every pair"):
        realism.load([pair, pair])
    with pytest.raises(UsageError, match="There are no pairs"):
        realism.load([])


def test_load_takes_what_the_command_takes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    pictures(tmp_path / "original", 1)
    pictures(tmp_path / "edited", 1)
    folders = realism.load(original="original", edited="edited")
    assert (
        list(folders)
        == list(realism.load("."))
        == [PairFiles("p00", Path("original/p00.png"), Path("edited/p00.png"))]
    )
    assert realism.load(folders) is folders
    assert len(realism.load("scenes")) == 16
    (tmp_path / "scenes").mkdir()
    with pytest.raises(UsageError, match="is not a folder"):
        realism.load("scenes")
    for wrong in ({}, {"source": ".", "original": "o", "edited": "e"}, {"original": "o"}):
        with pytest.raises(UsageError):
            realism.load(**wrong)
