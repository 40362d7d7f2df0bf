"""20,000 pictures in Parquet shards: found and read in order, out of order, and beside the same as files."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from importlib import import_module
from pathlib import Path
from random import Random

from benchmarks.common import figure, sized

ROWS, SHARDS, SIDE = sized(20_000, 800), 4, 160
FILES = "files"
_WAYS = {"in order": 1.0, "in order, 8 threads": 1.0, "out of order": 0.01}
_READ = """
import random, sys, time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from uncanny.images.discover import discover
from uncanny.images.file_bytes import read_image_file
import pyarrow, pyarrow.parquet
def memory():
    status = Path("/proc/self/status").read_text()  # a process inherits the peak that getrusage has
    return int(status.split("VmHWM:")[1].split()[0])
start = memory()
began = time.process_time()
paths = list(discover([Path(sys.argv[1])], rows=True).files)
found = time.process_time() - began
way, share = sys.argv[2], float(sys.argv[3])
if way == "out of order":
    random.Random(0).shuffle(paths)
    paths = paths[: int(share * len(paths))]
read = lambda path: len(read_image_file(path, 10**9))
began = time.process_time()
if "threads" in way:
    with ThreadPoolExecutor(8) as threads:
        size = sum(threads.map(read, paths))
else:
    size = sum(map(read, paths))
took = time.process_time() - began
print(len(paths), found, took, size, (memory() - start) // 1000)
"""


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="uncanny-") as folder:
        places = {
            FILES: _write_files(Path(folder) / "files"),
            "Parquet, 100 rows a group": _write(Path(folder) / "small", 100),
            "Parquet, one group a shard": _write(Path(folder) / "large", ROWS),
        }
        size = sum(file.stat().st_size for file in places["Parquet, 100 rows a group"].iterdir())
        print(f"  {ROWS:,} pictures in {SHARDS} shards, {size // 10**6:,} MB")
        of_files: dict[str, float] = {}
        for name, place in places.items():
            for way, share in _WAYS.items():
                command = [sys.executable, "-c", _READ, str(place), way, str(share)]
                done = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
                read, found, took = int(done[0]), float(done[1]), float(done[2])
                each = 1e6 * took / read
                beside = of_files.get(way)  # files come first
                of_files.setdefault(way, each)
                figure(f"{name}, {way}, CPU a picture of {read:,}", each, "µs", beside, FILES, wanted=None)
                figure(f"{name}, {way}, CPU of finding them", found, "s")
                figure(f"{name}, {way}, memory above the start", float(done[4]), "MB")


def _pictures() -> list[bytes]:
    """Noise of one kind, so that nothing packs well; each a little different by its last bytes."""
    from io import BytesIO

    from PIL import Image

    out = BytesIO()
    Image.frombytes("RGB", (SIDE, SIDE), Random(0).randbytes(3 * SIDE * SIDE)).save(out, "JPEG", quality=95)
    return [out.getvalue() + number.to_bytes(4, "big") for number in range(ROWS)]


def _write(folder: Path, group: int) -> Path:
    arrow, parquet = import_module("pyarrow"), import_module("pyarrow.parquet")
    folder.mkdir()
    pictures, each = _pictures(), ROWS // SHARDS
    for shard in range(SHARDS):
        rows = [
            {"bytes": pictures[number], "path": f"{number:06}.jpg"}
            for number in range(shard * each, (shard + 1) * each)
        ]
        table = arrow.table({"image": rows})
        parquet.write_table(table, folder / f"{shard:05}.parquet", row_group_size=group)
    return folder


def _write_files(folder: Path) -> Path:
    folder.mkdir()
    for number, data in enumerate(_pictures()):
        (folder / f"{number:06}.jpg").write_bytes(data)
    return folder
