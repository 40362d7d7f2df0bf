"""Measuring edits: pairs of 1,024² a second on all cores, beside the same by scikit-image and SciPy."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageFilter
from scipy import ndimage  # type: ignore[import-untyped]
from scipy.spatial.distance import pdist  # type: ignore[import-untyped]

from benchmarks.common import figure, sized
from uncanny.edits import EditPair, load
from uncanny.eval.edits.data import EditFiles
from uncanny.eval.edits.parameters import MeasureConfig
from uncanny.eval.edits.score import Work, measure_edit
from uncanny.eval.metrics.edits import squared_difference, ssim
from uncanny.eval.metrics.post_edit import post_edit
from uncanny.images.prepared import read_rgb

SIDE, PAIRS, ROUNDS = 1024, sized(24, 2), sized(3, 1)
EDITED = 300
OTHERS = "scikit-image and SciPy"
Pixels = NDArray[np.uint8]
Kind = Literal["pasted back", "regenerated"]
KINDS: tuple[Kind, ...] = get_args(Kind)


def main() -> None:
    cores = len(os.sched_getaffinity(0))
    busy = os.getloadavg()[0]
    print(f"{PAIRS} pairs of {SIDE}², PNG, {cores} cores, median of {ROUNDS} rounds; load {busy:.1f}\n")
    with tempfile.TemporaryDirectory() as folder:
        for kind in KINDS:
            files = list(load(written(Path(folder) / kind, kind)))
            _check(files[0])
            _compare(kind, files, cores)
        _pools(files, cores)


def _compare(kind: Kind, files: list[EditFiles], cores: int) -> None:
    first, second = _pixels(files[0])
    ours, our_cpu = _median(lambda: _on_all_cores(uncanny_way, files, cores))
    plain, plain_cpu = _median(lambda: _on_all_cores(plain_way, files, cores))
    _, decoding = _median(lambda: [_pixels(each) for each in files])
    _, of_ssim = _median(lambda: [ssim(first, second) for _ in files])
    _, of_mask = _median(lambda: [post_edit(squared_difference(first, second)) for _ in files])
    print(f"{kind}, one square of {EDITED} pixels edited")
    figure(f"{kind}, pairs a second", PAIRS / ours, "", PAIRS / plain, OTHERS, higher=True)
    scale = 1000 / PAIRS
    figure(f"{kind}, CPU a pair", scale * our_cpu, "ms", scale * plain_cpu, OTHERS)
    shares = [100 * each / our_cpu for each in (decoding, of_ssim, of_mask)]
    print("  of our CPU: decoding {:.0f} %, SSIM {:.0f} %, MSE and mask {:.0f} %".format(*shares))
    ours, plain = scale * (our_cpu - decoding), scale * (plain_cpu - decoding)
    figure(f"{kind}, CPU a pair without decoding", ours, "ms", plain, OTHERS)


def written(folder: Path, kind: Kind, pairs: int = PAIRS) -> list[EditPair]:
    """Soft noise that compresses as photographs do; the edit is a bright square with noise of its own."""
    folder.mkdir(parents=True)
    random = np.random.default_rng(3)
    made = []
    for number in range(pairs):
        original = _picture(random)
        edited = original.copy()
        if kind == "regenerated":  # as by a decoder of latents: every pixel a little different
            apart = random.integers(-3, 4, original.shape)
            edited = np.clip(original.astype(np.int16) + apart, 0, 255).astype(np.uint8)
        top, left = random.integers(0, SIDE - EDITED, 2)
        edited[top : top + EDITED, left : left + EDITED] = 255 - _picture(random)[:EDITED, :EDITED] // 4
        paths = [folder / f"{number}-{side}.png" for side in ("original", "edited")]
        for path, pixels in zip(paths, (original, edited), strict=True):
            Image.fromarray(pixels).save(path, compress_level=6)
        made.append(EditPair(id=str(number), original=str(paths[0]), edited=str(paths[1])))
    return made


def _picture(random: np.random.Generator) -> Pixels:
    coarse = Image.fromarray(random.integers(0, 256, (SIDE // 16, SIDE // 16, 3), dtype=np.uint8))
    soft = coarse.resize((SIDE, SIDE), Image.Resampling.BICUBIC).filter(ImageFilter.GaussianBlur(2))
    grain = random.integers(-2, 3, (SIDE, SIDE, 1))
    picture: Pixels = np.clip(np.asarray(soft).astype(np.int16) // 2 + grain, 0, 255).astype(np.uint8)
    return picture


def _pixels(files: EditFiles) -> tuple[Pixels, Pixels]:
    return np.asarray(read_rgb(files.original)[0]), np.asarray(read_rgb(files.edited)[0])


def _on_all_cores(work: Callable[[EditFiles], object], files: list[EditFiles], workers: int) -> list[object]:
    with ThreadPoolExecutor(workers) as pool:
        return list(pool.map(work, files))


def uncanny_way(files: EditFiles) -> Any:
    return measure_edit(files, Work(MeasureConfig()))


def plain_way(files: EditFiles) -> dict[str, float]:
    """The same figures, each by the library function for it."""
    from skimage import metrics, morphology

    similarity: Any = metrics.structural_similarity
    paths = (files.original, files.edited)
    original, edited = (np.asarray(Image.open(path).convert("RGB")) for path in paths)
    squares = ((original.astype(np.float64) - edited.astype(np.float64)) ** 2).sum(axis=2) / (3 * 255**2)
    objects = morphology.remove_small_objects(squares > 0.1, max_size=9, connectivity=2)
    wide = ndimage.binary_dilation(objects, np.ones((11, 11)))
    mask = morphology.remove_small_objects(wide, max_size=199, connectivity=2)
    labels, number = ndimage.label(mask, np.ones((3, 3)))
    centres = np.array(ndimage.center_of_mass(mask, labels, range(1, number + 1)))
    return {
        "mse": float(squares.mean()),
        "ssim": float(similarity(original, edited, win_size=5, channel_axis=2, data_range=255)),
        "post_edit_ratio": float(mask.mean()),
        "largest_component_ratio": float(np.bincount(labels.ravel())[1:].max() / mask.size),
        "largest_centroid_distance": float(pdist(centres).max()) if number > 1 else 0.0,
        "components": number,
    }


def _check(files: EditFiles) -> None:
    """Both give the same figures, or the comparison says nothing."""
    ours = uncanny_way(files)
    for name, value in plain_way(files).items():
        assert abs(getattr(ours, name) - value) < 1e-6, (name, getattr(ours, name), value)


def _median(work: Callable[[], object]) -> tuple[float, float]:
    """Wall time and CPU of this process, medians over the rounds."""
    times = []
    for _ in range(ROUNDS):
        start, cpu = time.perf_counter(), time.process_time()
        work()
        times.append((time.perf_counter() - start, time.process_time() - cpu))
    wall, cpu = (sorted(column)[ROUNDS // 2] for column in zip(*times, strict=True))
    return wall, cpu


def _pools(files: list[EditFiles], cores: int) -> None:
    """Threads against processes, for the same work."""
    single, _ = _median(lambda: [uncanny_way(each) for each in files])
    threads, _ = _median(lambda: _on_all_cores(uncanny_way, files, cores))
    with ProcessPoolExecutor(cores) as pool:
        list(pool.map(uncanny_way, files[:cores]))
        processes, _ = _median(lambda: list(pool.map(uncanny_way, files)))
    one = "one thread"
    figure(f"pairs a second with {cores} threads", PAIRS / threads, "", PAIRS / single, one, higher=True)
    figure(f"pairs a second with {cores} processes", PAIRS / processes, "", PAIRS / single, one, wanted=None)
