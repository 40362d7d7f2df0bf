"""What measurements share: figures, sizes, images to measure with, and the fake server.

The server is a process of its own, so that its work is not counted as ours.
"""

from __future__ import annotations

import io
import json
import os
import random
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from PIL import Image

SMALL = "UNCANNY_BENCHMARKS_SMALL"
"""The variable that makes sizes small; processes that a benchmark starts inherit it."""


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured figure with what it is compared to: the figure of a peer, or a limit.

    `wanted` is the most that the ratio to `beside` may be, or the least if `higher` is better. None: the two
    are only shown side by side.
    """

    what: str
    value: float
    unit: str = ""
    beside: float | None = None
    peer: str = "limit"
    wanted: float | None = 1.0
    higher: bool = False

    @property
    def ratio(self) -> float | None:
        """None without a peer or limit, and where that is 0."""
        return self.value / self.beside if self.beside else None

    @property
    def met(self) -> bool | None:
        """None where nothing is wanted."""
        if self.beside is None or self.wanted is None:
            return None
        most = self.wanted * self.beside
        return self.value >= most if self.higher else self.value <= most

    def cells(self) -> tuple[str, str, str, str, str]:
        """What, value, peer or limit, ratio, and whether it is met."""
        beside = "" if self.beside is None else f"{self.peer} {_number(self.beside)} {self.unit}".rstrip()
        word = "at least" if self.higher else "at most"
        wanted = "" if self.wanted in (None, 1.0) else f" ({word} {_number(self.wanted)})"
        ratio = "" if self.ratio is None else f"{_number(self.ratio)}{wanted}"
        met = {None: "", True: "met", False: "not met"}[self.met]
        return self.what, f"{_number(self.value)} {self.unit}".rstrip(), beside, ratio, met


FIGURES: list[Figure] = []
"""All figures stated in this process, in order."""


def figure(
    what: str,
    value: float,
    unit: str = "",
    beside: float | None = None,
    peer: str = "limit",
    *,
    wanted: float | None = 1.0,
    higher: bool = False,
) -> None:
    """State a figure: it is printed, and collected for the table. See `Figure` for the arguments."""
    stated = Figure(what, value, unit, beside, peer, wanted, higher)
    FIGURES.append(stated)
    name, shown, other, ratio, met = stated.cells()
    more = ", ".join(filter(None, (other, ratio and f"ratio {ratio}", met)))
    print(f"  {name:<56} {shown:>14}" + (f"   ({more})" if more else ""), flush=True)


def _number(value: float | None) -> str:
    """Three digits, or all of a larger number."""
    if value is None or value != value:
        return "not measured"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def sized(full: int, small: int) -> int:
    """The size of a real run, or one that only tries whether the benchmark runs."""
    return small if os.environ.get(SMALL) else full


def apart(module: str, *arguments: object, env: dict[str, str] | None = None) -> Any:
    """What `python -m MODULE --child ARGUMENTS…` prints last, read as JSON.

    A process of its own: its peak memory and its imports are of nothing but this.
    """
    command = [sys.executable, "-m", module, "--child", *map(str, arguments)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, env=env)
    return json.loads(done.stdout.splitlines()[-1])


def peak_memory_mb() -> float:
    """Of this process alone, in MiB: `ru_maxrss` of `getrusage` begins with what its parent had."""
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) / 1024


def noise_png(number: int, side: int) -> bytes:
    """A PNG of random pixels: it does not compress, so it has about 3 · side² bytes."""
    pixels = random.Random(number).randbytes(3 * side * side)
    file = io.BytesIO()
    Image.frombytes("RGB", (side, side), pixels).save(file, "PNG", compress_level=1)
    return file.getvalue()


def photo_jpeg(number: int, size: tuple[int, int]) -> bytes:
    """A JPEG with as much to see everywhere, and as many bytes, as a photograph of this size."""
    width, height = size[0] // 8, size[1] // 8
    coarse = Image.frombytes("RGB", (width, height), random.Random(number).randbytes(3 * width * height))
    file = io.BytesIO()
    coarse.resize(size, Image.Resampling.BICUBIC).save(file, "JPEG", quality=92)
    return file.getvalue()


def tiny_png(number: int) -> bytes:
    """An 8×8 PNG, different for every number."""
    file = io.BytesIO()
    Image.frombytes("RGB", (8, 8), random.Random(number).randbytes(192)).save(file, "PNG")
    return file.getvalue()


def write_folder(folder: Path, count: int, side: int | None) -> None:
    """`count` different images, noise of `side` pixels or tiny ones, a thousand to a folder."""
    for number in range(count):
        place = folder / f"{number // 1000:03d}"
        place.mkdir(parents=True, exist_ok=True)
        data = tiny_png(number) if side is None else noise_png(number, side)
        (place / f"{number:06d}.png").write_bytes(data)


@contextmanager
def fake_server(*options: str) -> Iterator[str]:
    """Yields its base URL without `/v1`; it is ended by its own pid."""
    command = [sys.executable, "-m", "uncanny", "fake-server", "--max-seconds", "900", *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        line = server.stdout.readline()
        try:
            yield line.rpartition(" ")[2].strip()
        finally:
            server.terminate()
            server.wait(10)
