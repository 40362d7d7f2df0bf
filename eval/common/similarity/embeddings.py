"""Embeddings of texts on disk between runs, found by backbone, layer and token ids.

Files of some thousand texts each (safetensors, never unpickled), written whole and never changed. What
cannot be read, was cut off, is damaged or belongs to something else is passed over, and its texts are
embedded again.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import uuid
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from uncanny.eval.common.similarity.backbone import Ids

_STEPS = 32_767


@dataclass(frozen=True, slots=True, eq=False)
class Packed:
    """An embedding in half the space, near enough for scores within 1e-5 of the exact ones.

    `centre`: the mean of the rows, float32; `rows`: what each differs from it, in steps of `step`.

    A few dimensions of trained models are large and nearly the same in every token; in the centre they stay
    exact. Even steps cost a tenth of the accuracy of float16, which is coarse where numbers are large.
    """

    centre: NDArray[np.float32]
    step: np.float32
    rows: NDArray[np.int16]

    @classmethod
    def of(cls, embedding: NDArray[np.float32]) -> Packed:
        centre = embedding.mean(axis=0, dtype=np.float32)
        apart = embedding - centre
        step = np.float32(max(float(np.abs(apart).max()), 1e-9) / _STEPS)
        return cls(centre, step, np.rint(apart / step).astype(np.int16))

    def unpack(self) -> NDArray[np.float32]:
        """(tokens, width), each row of length 1."""
        rows = self.rows * self.step + self.centre
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        return rows

    def check(self) -> int:
        """A checksum, so that a damaged disk does not change scores."""
        first = zlib.crc32(self.step.tobytes(), zlib.crc32(self.centre.tobytes()))
        return zlib.crc32(self.rows.tobytes(), first)

    @property
    def nbytes(self) -> int:
        return self.centre.nbytes + self.rows.nbytes


FORMAT = "uncanny-embeddings-1"
_FILE_BYTES = 32_000_000
_PATTERN = "*/emb-*.safetensors"


@dataclass(frozen=True, slots=True)
class _Place:
    file: Path
    number: int
    start: int
    length: int
    check: int


class EmbeddingStore:
    """One backbone and layer in a folder shared by all. At the limit, files unused for longest make room;
    those this run has used stay, so a set larger than the limit is kept in part and not pushed out by itself.
    """

    def __init__(self, folder: Path, identity: str, limit_bytes: int) -> None:
        self._root, self._limit = folder, limit_bytes
        self._folder = folder / hashlib.sha256(identity.encode()).hexdigest()[:32]
        self._index: dict[bytes, _Place] = {}
        self._waiting: dict[bytes, Packed] = {}
        self._waiting_bytes = 0
        self._used: set[Path] = set()
        self.full = False
        for file in sorted(self._folder.glob(_PATTERN.split("/")[1])):
            self._read_index(file)

    def __len__(self) -> int:
        return len(self._index) + len(self._waiting)

    def load(self, texts: Iterable[Sequence[int]]) -> dict[Ids, NDArray[np.float32]]:
        """What is there of `texts`: (tokens, width), unit rows."""
        loaded: dict[Ids, NDArray[np.float32]] = {}
        by_file: dict[Path, list[tuple[Ids, _Place]]] = {}
        for ids in map(tuple, texts):
            key = _key(ids)
            if (packed := self._waiting.get(key)) is not None:
                loaded[ids] = packed.unpack()
            elif (place := self._index.get(key)) is not None and place.length == len(ids):
                by_file.setdefault(place.file, []).append((ids, place))
        for file, places in by_file.items():
            loaded.update(self._read(file, places))
        return loaded

    def keep(self, ids: Sequence[int], packed: Packed) -> None:
        key = _key(ids)
        if self.full or key in self._index or key in self._waiting:
            return
        self._waiting[key] = packed
        self._waiting_bytes += packed.nbytes
        if self._waiting_bytes >= _FILE_BYTES:
            self.flush()

    def flush(self) -> None:
        """Writes what waits. A full disk or a folder that cannot be written ends keeping, not the run."""
        if not self._waiting or self.full:
            return
        waiting, self._waiting = self._waiting, {}
        size, self._waiting_bytes = self._waiting_bytes, 0
        if not self._make_room(size):
            self.full = True
            return
        file = self._folder / f"emb-{uuid.uuid4().hex}.safetensors"
        try:
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            _write(file, waiting)
        except OSError:
            self.full = True
            return
        self._used.add(file)
        self._read_index(file)

    def _make_room(self, size: int) -> bool:
        there = []
        for file in self._root.glob(_PATTERN):
            with contextlib.suppress(OSError):  # another process may have made room with it
                there.append((file.stat().st_mtime, file.stat().st_size, file))
        taken = sum(bytes_ for _, bytes_, _ in there)
        for _, bytes_, file in sorted(there):
            if taken + size <= self._limit:
                break
            if file not in self._used:
                with contextlib.suppress(OSError):
                    file.unlink()
                    taken -= bytes_
        return taken + size <= self._limit

    def _read_index(self, file: Path) -> None:
        from safetensors import SafetensorError, safe_open

        try:
            with safe_open(file, framework="numpy") as opened:
                if (opened.metadata() or {}).get("format") != FORMAT:
                    return
                keys, lengths = opened.get_tensor("keys"), opened.get_tensor("lengths").tolist()
                checks, starts = opened.get_tensor("checks").tolist(), [0, *np.cumsum(lengths).tolist()]
                rows = opened.get_slice("rows").get_shape()[0]
            if keys.shape != (len(lengths), 32) or starts[-1] != rows or len(checks) != len(lengths):
                return
        except (SafetensorError, OSError, ValueError, IndexError):
            return
        for number, key in enumerate(keys):
            place = _Place(file, number, starts[number], lengths[number], checks[number])
            self._index[key.tobytes()] = place

    def _read(self, file: Path, places: list[tuple[Ids, _Place]]) -> dict[Ids, NDArray[np.float32]]:
        from safetensors import SafetensorError, safe_open

        loaded: dict[Ids, NDArray[np.float32]] = {}
        try:
            # Opened for each chunk, not kept open: pages of mapped files would count as memory in use.
            with safe_open(file, framework="numpy") as opened:
                steps = opened.get_tensor("steps")
                centres, rows = opened.get_slice("centres"), opened.get_slice("rows")
                for ids, at in places:
                    packed = Packed(
                        centres[at.number], steps[at.number], rows[at.start : at.start + at.length]
                    )
                    if packed.check() == at.check:
                        loaded[ids] = packed.unpack()
        except (SafetensorError, OSError, ValueError, IndexError):
            pass
        for ids, _ in places:
            if ids not in loaded:
                self._index.pop(_key(ids), None)
        if file not in self._used:
            self._used.add(file)
            with contextlib.suppress(OSError):
                os.utime(file)
        return loaded


def _key(ids: Sequence[int]) -> bytes:
    return hashlib.sha256(np.asarray(ids, dtype="<i8").tobytes()).digest()


def _write(file: Path, kept: dict[bytes, Packed]) -> None:
    from safetensors.numpy import save_file

    arrays: dict[str, NDArray[Any]] = {
        "keys": np.stack([np.frombuffer(key, dtype=np.uint8) for key in kept]),
        "lengths": np.array([len(packed.rows) for packed in kept.values()], dtype=np.int64),
        "checks": np.array([packed.check() for packed in kept.values()], dtype=np.int64),
        "steps": np.array([packed.step for packed in kept.values()], dtype=np.float32),
        "centres": np.stack([packed.centre for packed in kept.values()]),
        "rows": np.concatenate([packed.rows for packed in kept.values()]),
    }
    unfinished = file.with_suffix(".unfinished")
    try:
        save_file(arrays, unfinished, metadata={"format": FORMAT})
        unfinished.replace(file)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise
