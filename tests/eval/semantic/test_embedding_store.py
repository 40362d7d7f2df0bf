"""Embeddings on disk: exact enough, within their limit, and nothing foreign or damaged is believed."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from uncanny.eval.common.similarity import embeddings as embedding_store
from uncanny.eval.common.similarity.embeddings import EmbeddingStore, Packed

WIDTH = 64


def unit_rows(seed: int, tokens: int = 9, width: int = WIDTH, outlier: float = 0.0) -> NDArray[np.float32]:
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(tokens, width)).astype(np.float32)
    rows[:, :2] += np.float32(outlier)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return rows


def ids(seed: int, tokens: int = 9) -> tuple[int, ...]:
    return tuple(range(seed, seed + tokens))


def filled(folder: Path, seeds: range, limit: int = 10**9, identity: str = "one") -> EmbeddingStore:
    store = EmbeddingStore(folder, identity, limit)
    for seed in seeds:
        store.keep(ids(seed), Packed.of(unit_rows(seed)))
    store.flush()
    return store


@pytest.mark.parametrize("tokens", [1, 3, 40, 512])
@pytest.mark.parametrize("outlier", [0.0, 3.0, 30.0])
def test_packed_rows_give_the_same_cosines(tokens: int, outlier: float) -> None:
    exact, others = unit_rows(1, tokens, 768, outlier), unit_rows(2, 40, 768, outlier)
    packed = Packed.of(exact).unpack()
    assert np.abs(packed @ others.T - exact @ others.T).max() < 1e-5
    np.testing.assert_allclose(np.linalg.norm(packed, axis=1), 1, atol=1e-6)


def test_what_was_kept_comes_back_in_this_run_and_the_next(tmp_path: Path) -> None:
    store = EmbeddingStore(tmp_path, "one", 10**9)
    store.keep(ids(1), Packed.of(unit_rows(1)))
    waiting = store.load([ids(1), ids(2)])
    store.flush()
    written, reopened = store.load([ids(1)]), EmbeddingStore(tmp_path, "one", 10**9).load([ids(1), ids(2)])
    assert set(waiting) == set(reopened) == {ids(1)}
    for loaded in (waiting, written, reopened):
        np.testing.assert_array_equal(loaded[ids(1)], Packed.of(unit_rows(1)).unpack())


def test_another_backbone_or_layer_finds_nothing(tmp_path: Path) -> None:
    filled(tmp_path, range(3))
    assert EmbeddingStore(tmp_path, "two", 10**9).load([ids(1)]) == {}


@pytest.mark.parametrize("damage", ["cut", "flipped", "empty", "pickle", "foreign", "folder"])
def test_what_is_damaged_or_foreign_is_passed_over(tmp_path: Path, damage: str) -> None:
    filled(tmp_path, range(3))
    (file,) = tmp_path.glob("*/emb-*.safetensors")
    content = file.read_bytes()
    if damage == "folder":
        file.unlink()
        file.mkdir()
    elif damage == "foreign":
        from safetensors.numpy import save_file

        save_file({"rows": np.zeros((3, 4))}, file)
    else:
        changed = {
            "cut": content[:-20],
            "flipped": content[:-5] + bytes([content[-5] ^ 255]) + content[-4:],
            "empty": b"",
            "pickle": b"\x80\x04cos\nsystem\n",
        }
        file.write_bytes(changed[damage])
    loaded = EmbeddingStore(tmp_path, "one", 10**9).load([ids(0), ids(1), ids(2)])
    assert set(loaded) < {ids(0), ids(1), ids(2)}
    for seed in range(3):
        if ids(seed) in loaded:
            np.testing.assert_array_equal(loaded[ids(seed)], Packed.of(unit_rows(seed)).unpack())


def test_a_file_that_vanishes_meanwhile_is_embedded_again(tmp_path: Path) -> None:
    store = filled(tmp_path, range(3))
    next(tmp_path.glob("*/emb-*")).unlink()
    assert store.load([ids(1)]) == {}
    store.keep(ids(1), Packed.of(unit_rows(1)))
    assert set(store.load([ids(1)])) == {ids(1)}


def test_the_limit_holds_and_the_longest_unused_goes_first(tmp_path: Path) -> None:
    filled(tmp_path, range(0, 3), identity="old")
    for file in tmp_path.glob("*/emb-*"):
        os.utime(file, (1, 1))
    filled(tmp_path, range(0, 3), identity="newer")
    size = sum(file.stat().st_size for file in tmp_path.glob("*/emb-*"))
    store = filled(tmp_path, range(0, 3), limit=size + 100, identity="newest")
    assert not store.full
    assert not EmbeddingStore(tmp_path, "old", 1).load([ids(0)])
    assert EmbeddingStore(tmp_path, "newer", 1).load([ids(0)])
    assert EmbeddingStore(tmp_path, "newest", 1).load([ids(0)])


def test_a_set_larger_than_the_limit_is_kept_in_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedding_store, "_FILE_BYTES", 1)
    for _ in range(2):
        store = EmbeddingStore(tmp_path, "one", 10_000)
        for seed in range(20):
            if not store.load([ids(seed)]):
                store.keep(ids(seed), Packed.of(unit_rows(seed)))
        store.flush()
        assert store.full
        assert sum(file.stat().st_size for file in tmp_path.glob("*/*")) <= 10_000
        assert store.load([ids(0), ids(1)])


def test_a_folder_that_cannot_be_written_ends_keeping_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    store = filled(tmp_path / "file" / "embeddings", range(3))
    assert store.full
    assert store.load([ids(0)]) == {}


def test_no_unfinished_file_stays(tmp_path: Path) -> None:
    filled(tmp_path, range(3))
    assert [file.suffix for file in tmp_path.glob("*/*")] == [".safetensors"]
