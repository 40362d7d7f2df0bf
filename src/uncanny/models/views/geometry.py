"""How servers resize a picture before a model sees it, and how many tokens the result takes.

There is one class for each way of resizing. The table in `views` says which family of models uses which one,
with which numbers. Sizes are width and height in pixels, each at least 1.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache

from uncanny.models.base import Detail

Size = tuple[int, int]


class Geometry(ABC):
    """One way of resizing and counting.

    `sized` is False where only the tokens are known, and not the size at which the model sees the picture.
    """

    sized: bool = True

    @abstractmethod
    def seen(self, width: int, height: int) -> Size:
        """Width and height after the server's resizing, of a picture of this size as sent."""

    @abstractmethod
    def tokens(self, width: int, height: int) -> int:
        """Input tokens of a picture of this size as sent."""

    def at(self, detail: Detail) -> Geometry:  # noqa: ARG002
        """The same at a setting of OpenAI's `detail`, which other servers do not have; this one is "high"."""
        return self

    @property
    @abstractmethod
    def resizing(self) -> str:
        """What the server does to the picture, in words for the documentation."""

    @property
    @abstractmethod
    def counting(self) -> str:
        """How many tokens result, in words for the documentation."""


def fit(width: int, height: int, longest: int) -> Size:
    """The size of a picture made smaller, if needed, so that its long side has at most `longest` pixels."""
    return _scaled(width, height, min(1.0, longest / max(width, height)))


def _limits(longest: int | None, most: int | None, cell: int) -> str:
    limits = (
        "" if longest is None else f"long side at most {longest:,}",
        "" if most is None else f"at most {most:,} cells of {cell}²",
    )
    return ", ".join(filter(None, limits))


def cells(length: float, cell: int) -> int:
    """Cells of `cell` pixels that cover `length` pixels."""
    # Rounding first: 768.0000000001 pixels are 768.
    return max(1, math.ceil(round(length / cell, 6)))


def _scaled(width: float, height: float, scale: float) -> Size:
    return max(1, round(width * scale)), max(1, round(height * scale))


@dataclass(frozen=True)
class ShortSideTiles(Geometry):
    """OpenAI's tiles of 512 pixels: into 2048², then the short side at most 768."""

    base: int
    tile: int
    longest: int = 2048

    def at(self, detail: Detail) -> ShortSideTiles:
        return replace(self, tile=0, longest=512) if detail == "low" else self

    def seen(self, width: int, height: int) -> Size:
        scale = min(1.0, self.longest / max(width, height))
        return _scaled(width, height, min(scale, 768 / min(width, height)))

    def tokens(self, width: int, height: int) -> int:
        across, down = self.seen(width, height)
        return self.base + self.tile * cells(across, 512) * cells(down, 512)

    @property
    def resizing(self) -> str:
        return f"into {self.longest} × {self.longest}, then short side at most 768"

    @property
    def counting(self) -> str:
        return f"{self.base:,} and {self.tile:,} per tile of 512²"


@dataclass(frozen=True)
class Patches(Geometry):
    """OpenAI's patches of 32 pixels: at most `most`, after a long side of at most `longest`.

    `original` are those two limits at detail "original". None is no limit. `times` is the number of tokens
    per patch.
    """

    times: float
    most: int | None = 1536
    longest: int | None = 2048
    original: tuple[int | None, int | None] = (2048, 1536)

    def at(self, detail: Detail) -> Patches:
        longest, most = self.original
        return replace(self, longest=longest, most=most) if detail == "original" else self

    def seen(self, width: int, height: int) -> Size:
        if self.longest is not None:
            width, height = fit(width, height, self.longest)
        if self.most is None or cells(width, 32) * cells(height, 32) <= self.most:
            return width, height
        scale = math.sqrt(self.most * 32 * 32 / (width * height))
        across, down = width * scale / 32, height * scale / 32
        # One side is made a whole number of patches.
        whole = min(math.floor(across) / across, math.floor(down) / down)
        return _scaled(width, height, scale * (whole or 1.0))

    def tokens(self, width: int, height: int) -> int:
        across, down = self.seen(width, height)
        return math.ceil(round(cells(across, 32) * cells(down, 32) * self.times, 6))

    @property
    def resizing(self) -> str:
        return _limits(self.longest, self.most, 32)

    @property
    def counting(self) -> str:
        return f"{self.times:g} per cell of 32²"


@dataclass(frozen=True)
class Cells(Geometry):
    """Cells of `cell` pixels: the largest size of the same shape within `longest` pixels and `most` cells.

    `most` None is no limit. `breaks` counts one more token at the end of each row.
    """

    cell: int
    longest: int
    most: int | None = None
    breaks: bool = False

    def seen(self, width: int, height: int) -> Size:
        start = min(max(width, height), self.longest)
        if self._fits(fit(width, height, start)):
            return fit(width, height, start)
        # More pixels never take fewer cells.
        largest = bisect_right(
            range(1, start), False, key=lambda side: not self._fits(fit(width, height, side))
        )
        return fit(width, height, max(1, largest))

    def _fits(self, size: Size) -> bool:
        return self.most is None or cells(size[0], self.cell) * cells(size[1], self.cell) <= self.most

    def tokens(self, width: int, height: int) -> int:
        across, down = (cells(side, self.cell) for side in self.seen(width, height))
        return (across + self.breaks) * down

    @property
    def resizing(self) -> str:
        return _limits(self.longest, self.most, self.cell)

    @property
    def counting(self) -> str:
        return f"1 per cell of {self.cell}²" + (" and 1 per row" if self.breaks else "")


@dataclass(frozen=True)
class PaddedPatches(Geometry):
    """Kimi's patches of 14 pixels: at most `most`, `longest` pixels a side; 2 × 2 of them are one token."""

    longest: int
    most: int

    def seen(self, width: int, height: int) -> Size:
        # Rests of patches are not counted here.
        patches = max(1, width // 14) * max(1, height // 14)
        scale = min(1.0, self.longest / max(width, height), math.sqrt(self.most / patches))
        return max(1, math.floor(width * scale)), max(1, math.floor(height * scale))

    def tokens(self, width: int, height: int) -> int:
        across, down = self.seen(width, height)
        return cells(across, 28) * cells(down, 28)

    @property
    def resizing(self) -> str:
        return _limits(self.longest, self.most, 14)

    @property
    def counting(self) -> str:
        return "1 per cell of 28²"


@dataclass(frozen=True)
class Multiples(Geometry):
    """Both sides made multiples of `cell` pixels, `least` to `most` pixels in all: `smart_resize`."""

    cell: int
    least: int
    most: int

    def seen(self, width: int, height: int) -> Size:
        across, down = (max(1, round(side / self.cell)) * self.cell for side in (width, height))
        if across * down > self.most:
            scale = math.sqrt(self.most / (width * height))
            across, down = (
                max(1, math.floor(side * scale / self.cell)) * self.cell for side in (width, height)
            )
        elif across * down < self.least:
            scale = math.sqrt(self.least / (width * height))
            across, down = (math.ceil(side * scale / self.cell) * self.cell for side in (width, height))
        return across, down

    def tokens(self, width: int, height: int) -> int:
        across, down = self.seen(width, height)
        return min(across * down, self.most) // self.cell**2

    @property
    def resizing(self) -> str:
        return f"sides to multiples of {self.cell}, {self.least:,} to {self.most:,} pixels"

    @property
    def counting(self) -> str:
        return f"1 per cell of {self.cell}²"


@dataclass(frozen=True)
class ScaledTo(Geometry):
    """Enlarged or made smaller to `most` cells, both sides multiples of `cell` pixels."""

    cell: int
    most: int

    def seen(self, width: int, height: int) -> Size:
        scale = math.sqrt(self.most * self.cell**2 / (width * height))
        across, down = (math.floor(side * scale / self.cell) for side in (width, height))
        # A strip: as long as its shape says, and one cell wide.
        if not across:
            across, down = 1, min(height // width, self.most)
        elif not down:
            across, down = min(width // height, self.most), 1
        return across * self.cell, down * self.cell

    def tokens(self, width: int, height: int) -> int:
        across, down = self.seen(width, height)
        return across * down // self.cell**2

    @property
    def resizing(self) -> str:
        return f"enlarged or shrunk to {self.most:,} cells of {self.cell}²"

    @property
    def counting(self) -> str:
        return f"1 per cell, at most {self.most:,}"


@dataclass(frozen=True)
class Square(Geometry):
    """Made a square of `side` pixels, whatever its shape, that takes `count` tokens."""

    side: int
    count: int

    def seen(self, width: int, height: int) -> Size:  # noqa: ARG002
        return self.side, self.side

    def tokens(self, width: int, height: int) -> int:  # noqa: ARG002
        return self.count

    @property
    def resizing(self) -> str:
        return f"to {self.side} × {self.side}"

    @property
    def counting(self) -> str:
        return f"{self.count:,}"


@dataclass(frozen=True)
class OwnTiles(Geometry):
    """Google's tiles: one up to 384 pixels, else tiles with sides of the short side over 1.5, 256 to 768."""

    count: int

    def seen(self, width: int, height: int) -> Size:
        return width, height

    def tokens(self, width: int, height: int) -> int:
        if max(width, height) <= 384:
            return self.count
        tile = min(max(math.floor(min(width, height) / 1.5), 256), 768)
        return self.count * math.ceil(width / tile) * math.ceil(height / tile)

    @property
    def resizing(self) -> str:
        return "not shrunk: tiles of up to 768²"

    @property
    def counting(self) -> str:
        return f"{self.count:,} per tile, one tile up to 384 × 384"


@dataclass(frozen=True)
class Budget(Geometry):
    """A fixed number of tokens; how the picture is resized is not known."""

    count: int
    sized = False

    def seen(self, width: int, height: int) -> Size:
        return width, height

    def tokens(self, width: int, height: int) -> int:  # noqa: ARG002
        return self.count

    @property
    def resizing(self) -> str:
        return "not known"

    @property
    def counting(self) -> str:
        return f"{self.count:,}"


@cache
def _grids(most: int) -> tuple[Size, ...]:
    """Columns and rows of all grids of at most `most` tiles, the smallest first."""

    def grids() -> Iterator[Size]:
        for across in range(1, most + 1):
            yield from ((across, down) for down in range(1, most // across + 1))

    return tuple(sorted(grids(), key=lambda grid: (grid[0] * grid[1], grid)))


@dataclass(frozen=True)
class StretchedGrid(Geometry):
    """InternVL's grid: stretched to the grid of at most `most` tiles whose shape is nearest; a thumbnail."""

    tile: int
    most: int
    count: int

    def seen(self, width: int, height: int) -> Size:
        across, down = self._grid(width, height)
        return across * self.tile, down * self.tile

    def _grid(self, width: int, height: int) -> Size:
        best, least = (1, 1), math.inf
        for across, down in _grids(self.most):
            difference = abs(width / height - across / down)
            # Of grids of one shape the larger one is taken if the picture has half of its pixels.
            larger = difference == least and width * height > 0.5 * self.tile**2 * across * down
            if difference < least or larger:
                best, least = (across, down), difference
        return best

    def tokens(self, width: int, height: int) -> int:
        across, down = self._grid(width, height)
        return self.count * (across * down + (across * down > 1))

    @property
    def resizing(self) -> str:
        return f"stretched to 1 to {self.most} tiles of {self.tile}²"

    @property
    def counting(self) -> str:
        return f"{self.count} per tile and for a thumbnail"


@dataclass(frozen=True)
class PaddedTiles(Geometry):
    """Llama 4's canvas: the grid of at most `most` tiles that shrinks the picture least; a thumbnail."""

    tile: int
    most: int
    count: int

    def seen(self, width: int, height: int) -> Size:
        across, down = self._grid(width, height)
        # A picture smaller than one tile is enlarged to it, others never are.
        within = (
            min(max(width, self.tile), across * self.tile),
            min(max(height, self.tile), down * self.tile),
        )
        scale = min(within[0] / width, within[1] / height)
        return max(1, math.floor(round(width * scale, 6))), max(1, math.floor(round(height * scale, 6)))

    def _grid(self, width: int, height: int) -> Size:
        def order(grid: Size) -> tuple[bool, float, int]:
            scale = min(grid[0] * self.tile / width, grid[1] * self.tile / height)
            return scale < 1, scale if scale >= 1 else -scale, grid[0] * grid[1]

        return min(_grids(self.most), key=order)

    def tokens(self, width: int, height: int) -> int:
        across, down = self._grid(width, height)
        return self.count * (across * down + (across * down > 1))

    @property
    def resizing(self) -> str:
        return f"fitted into at most {self.most} tiles of {self.tile}²"

    @property
    def counting(self) -> str:
        return f"{self.count} per tile and for a thumbnail"


@dataclass(frozen=True)
class PaddedGrid(Geometry):
    """LLaVA-OneVision's grid: fitted into that of up to `side` × `side` tiles that keeps most pixels.

    Each tile is `across` × `across` features; beyond `most` tiles, features are pooled to as many. A picture
    also has one tile of the whole and one token at the end of each row.
    """

    tile: int
    side: int
    across: int
    most: int

    def seen(self, width: int, height: int) -> Size:
        columns, rows = self._grid(width, height)
        scale = min(columns * self.tile / width, rows * self.tile / height)
        return max(1, math.floor(round(width * scale, 6))), max(1, math.floor(round(height * scale, 6)))

    def _grid(self, width: int, height: int) -> Size:
        def order(grid: Size) -> tuple[int, int]:
            canvas = grid[0] * self.tile, grid[1] * self.tile
            scale = min(canvas[0] / width, canvas[1] / height)
            kept = min(math.floor(width * scale) * math.floor(height * scale), width * height)
            return -kept, canvas[0] * canvas[1] - kept

        sides = range(1, self.side + 1)
        return min(((across, down) for across in sides for down in sides), key=order)

    def tokens(self, width: int, height: int) -> int:
        columns, rows = (each * self.across for each in self._grid(width, height))
        # What pads the picture to the grid is taken off again, the same on both sides.
        if width / height > columns / rows:
            rows -= (rows - math.floor(round(height * columns / width, 7))) // 2 * 2
        else:
            columns -= (columns - math.floor(round(width * rows / height, 7))) // 2 * 2
        columns, rows = max(1, columns), max(1, rows)
        ratio = math.sqrt(columns * rows / (self.most * self.across**2))
        if ratio > 1.1:
            columns, rows = int(columns // ratio), int(rows // ratio)
        return columns * rows + rows + self.across**2

    @property
    def resizing(self) -> str:
        return f"fitted into up to {self.side} × {self.side} tiles of {self.tile}²"

    @property
    def counting(self) -> str:
        most = self.across**2
        return f"{most} for the whole, and {most} per tile up to {self.most} tiles"
