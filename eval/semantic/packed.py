"""An embedding in half the space, near enough for scores within 1e-5 of the exact ones."""

from __future__ import annotations

import zlib
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_STEPS = 32_767


@dataclass(frozen=True, slots=True)
class Packed:
    """`centre`: the mean of the rows, float32; `rows`: what each differs from it, in steps of `step`.

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
