"""Measuring edits: pairs of 1,024² a second on all cores, beside the same by scikit-image and SciPy."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageFilter
from scipy import ndimage  # type: ignore[import-untyped]
from scipy.spatial.distance import pdist  # type: ignore[import-untyped]

from uncanny.edits import EditPair, EditParameters, load
from uncanny.eval.edits.data import EditFiles
from uncanny.eval.edits.score import measure_edit
from uncanny.eval.metrics.edits import post_edit, squared_difference, ssim
from uncanny.images import read_rgb

SIDE, PAIRS, ROUNDS = 1024, 24, 3
Pixels = NDArray[np.uint8]
Kind = Literal["pasted back", "regenerated"]


def run() -> None:
    cores = len(os.sched_getaffinity(0))
    print(
        f"{PAIRS} pairs of {SIDE}², PNG, {cores} cores, median of {ROUNDS} rounds; load {os.getloadavg()[0]:.1f}\n"
    )
    with tempfile.TemporaryDirectory() as folder:
        for kind in ("pasted back", "regenerated"):
            files = list(load(_written(Path(folder) / kind, kind)))
            _check(files[0])
            measure_time, measure_cpu = _median(lambda: _each(files, cores))
            plain_time, plain_cpu = _median(lambda: _plain_set(files, cores))
            _, decoding = _median(lambda: [_pixels(each) for each in files])
            first, second = _pixels(files[0])
            _, ssim_cpu = _median(lambda: [ssim(first, second) for _ in range(PAIRS)])
            _, mask_cpu = _median(
                lambda: [post_edit(squared_difference(first, second)) for _ in range(PAIRS)]
            )
            print(f"{kind}, one square of 300 pixels edited")
            print(
                f"  uncanny     {PAIRS / measure_time:6.1f} pairs/s   CPU {1000 * measure_cpu / PAIRS:6.1f} ms a pair"
            )
            print(
                f"  plain       {PAIRS / plain_time:6.1f} pairs/s   CPU {1000 * plain_cpu / PAIRS:6.1f} ms a pair"
            )
            print(f"  ratio       {plain_time / measure_time:6.1f} ×, of CPU {plain_cpu / measure_cpu:.1f} ×")
            print(f"  of uncanny's CPU: decoding {100 * decoding / measure_cpu:.0f} %, ", end="")
            print(
                f"SSIM {100 * ssim_cpu / measure_cpu:.0f} %, MSE and mask {100 * mask_cpu / measure_cpu:.0f} %"
            )
            print(f"  without decoding: CPU {(plain_cpu - decoding) / (measure_cpu - decoding):.1f} ×\n")
        _pools(files, cores)


def _written(folder: Path, kind: Kind) -> list[EditPair]:
    """Soft noise, as compressible as photographs; the edit is a white square with soft noise of its own."""
    folder.mkdir(parents=True)
    random = np.random.default_rng(3)
    pairs = []
    for number in range(PAIRS):
        original = _picture(random)
        edited = original.copy()
        if kind == "regenerated":  # as by a VAE: every pixel a little different
            apart = random.integers(-3, 4, original.shape)
            edited = np.clip(original.astype(np.int16) + apart, 0, 255).astype(np.uint8)
        top, left = random.integers(0, SIDE - 300, 2)
        edited[top : top + 300, left : left + 300] = 255 - _picture(random)[:300, :300] // 4
        paths = [folder / f"{number}-{side}.png" for side in ("original", "edited")]
        for path, pixels in zip(paths, (original, edited), strict=True):
            Image.fromarray(pixels).save(path, compress_level=6)
        pairs.append(EditPair(id=str(number), original=str(paths[0]), edited=str(paths[1])))
    return pairs


def _picture(random: np.random.Generator) -> Pixels:
    coarse = Image.fromarray(random.integers(0, 256, (SIDE // 16, SIDE // 16, 3), dtype=np.uint8))
    soft = coarse.resize((SIDE, SIDE), Image.Resampling.BICUBIC).filter(ImageFilter.GaussianBlur(2))
    grain = random.integers(-2, 3, (SIDE, SIDE, 1))
    return np.clip(np.asarray(soft).astype(np.int16) // 2 + grain, 0, 255).astype(np.uint8)


def _pixels(files: EditFiles) -> tuple[Pixels, Pixels]:
    return np.asarray(read_rgb(files.original)[0]), np.asarray(read_rgb(files.edited)[0])


def _each(files: list[EditFiles], workers: int) -> list[Any]:
    with ThreadPoolExecutor(workers) as pool:
        return list(pool.map(_uncanny, files))


def _uncanny(files: EditFiles) -> Any:
    return measure_edit(files, EditParameters())


def _plain_set(files: list[EditFiles], workers: int) -> list[Any]:
    with ThreadPoolExecutor(workers) as pool:
        return list(pool.map(_plain, files))


def _plain(files: EditFiles) -> dict[str, float]:
    """The same figures, each by the library function for it."""
    from skimage.metrics import structural_similarity
    from skimage.morphology import remove_small_objects

    original, edited = (
        np.asarray(Image.open(path).convert("RGB")) for path in (files.original, files.edited)
    )
    squares = ((original.astype(np.float64) - edited.astype(np.float64)) ** 2).sum(axis=2) / (3 * 255**2)
    objects = remove_small_objects(squares > 0.1, max_size=9, connectivity=2)
    wide = ndimage.binary_dilation(objects, np.ones((11, 11)))
    mask = remove_small_objects(wide, max_size=199, connectivity=2)
    labels, number = ndimage.label(mask, np.ones((3, 3)))
    centres = np.array(ndimage.center_of_mass(mask, labels, range(1, number + 1))).reshape(-1, 2)
    return {
        "mse": float(squares.mean()),
        "ssim": float(structural_similarity(original, edited, win_size=5, channel_axis=2, data_range=255)),
        "post_edit_ratio": float(mask.mean()),
        "largest_component_ratio": float(np.bincount(labels.ravel())[1:].max() / mask.size)
        if number
        else 0.0,
        "largest_centroid_distance": float(pdist(centres).max()) if number > 1 else 0.0,
        "components": number,
    }


def _check(files: EditFiles) -> None:
    """Both give the same figures, or the comparison says nothing."""
    ours = _uncanny(files)
    for name, value in _plain(files).items():
        assert abs(getattr(ours, name) - value) < 1e-6, (name, getattr(ours, name), value)


def _median(work: Callable[[], object]) -> tuple[float, float]:
    """Wall time and CPU of this process, medians over the rounds."""
    times = []
    for _ in range(ROUNDS):
        start, cpu = time.perf_counter(), time.process_time()
        work()
        times.append((time.perf_counter() - start, time.process_time() - cpu))
    return tuple(sorted(column)[ROUNDS // 2] for column in zip(*times, strict=True))  # type: ignore[return-value]


def _pools(files: list[EditFiles], cores: int) -> None:
    """Threads against processes, for the same work."""
    threads, _ = _median(lambda: _each(files, cores))
    single, _ = _median(lambda: [_uncanny(each) for each in files])
    with ProcessPoolExecutor(cores) as pool:
        list(pool.map(_uncanny, files[:cores]))
        processes, _ = _median(lambda: list(pool.map(_uncanny, files)))
    print(f"one thread {PAIRS / single:.1f} pairs/s, {cores} threads {PAIRS / threads:.1f}, ", end="")
    print(f"{cores} processes {PAIRS / processes:.1f}")
