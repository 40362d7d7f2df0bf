"""Pixel metrics of 2,600 masks of 1024² beside scikit-learn and NumPy, 10,000 boxes, a score from files."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import orjson

from benchmarks.common import figure, sized
from uncanny.eval.common.pixels.crops import Crop, Mask, crop, union
from uncanny.eval.common.pixels.shapes import box_crop, polygon_crop
from uncanny.eval.metrics.regions import instance_counts, overlap, pixel_counts, region_counts

MASKS = sized(2_600, 20)
SIDE = 1024
# Different ones; each is taken again until there are so many.
DIFFERENT = sized(50, 4)
# Of scikit-learn, which takes minutes for all.
TIMED_APART = sized(26, 2)
ROUNDS = sized(3, 1)
# Of one record, and how many of them are drawn one by one.
BOXES = sized(10_000, 100)
BOXES_TIMED_APART = sized(500, 50)

Pair = tuple[Mask, Mask]


def made_pairs(number: int = DIFFERENT) -> list[Pair]:
    """Artifacts as annotators outline them: some blots, of which the prediction has others and moved ones."""
    rng = np.random.default_rng(0)
    rows, columns = np.ogrid[:SIDE, :SIDE]

    def blots(count: int) -> Mask:
        mask = np.zeros((SIDE, SIDE), dtype=np.bool_)
        for _ in range(count):
            y, x = rng.integers(100, SIDE - 100, 2)
            height, width = rng.integers(15, 120, 2)
            mask |= ((rows - y) / height) ** 2 + ((columns - x) / width) ** 2 <= 1
        return mask

    pairs = []
    for _ in range(number):
        true = blots(int(rng.integers(1, 8)))
        pairs.append((np.roll(true, 40, axis=1) | blots(1), true))
    return pairs


def scikit_learn(predicted: Mask, true: Mask) -> None:
    from sklearn.metrics import jaccard_score

    jaccard_score(true.ravel(), predicted.ravel())


def plain_numpy(predicted: Mask, true: Mask) -> tuple[int, int, int]:
    """As one writes it down: what is in common, and the sums."""
    return int(np.logical_and(predicted, true).sum()), int(predicted.sum()), int(true.sum())


def counting_numpy(predicted: Mask, true: Mask) -> tuple[int, int, int]:
    """With the function that counts faster than it sums."""
    both = np.count_nonzero(predicted & true)
    return int(both), int(np.count_nonzero(predicted)), int(np.count_nonzero(true))


def seconds(work: Callable[[], object]) -> float:
    """The best of some rounds."""
    best = float("inf")
    for _ in range(ROUNDS):
        start = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - start)
    return best


def over(pairs: Sequence[Pair], count: Callable[[Mask, Mask], object], number: int) -> float:
    """Seconds for `number` pairs."""

    def work() -> None:
        for place in range(number):
            count(*pairs[place % len(pairs)])

    return seconds(work)


def pixels() -> None:
    pairs = made_pairs()
    crops = [(crop(predicted), crop(true)) for predicted, true in pairs]
    for predicted, true in pairs:
        expected = plain_numpy(predicted, true)
        assert pixel_counts(predicted, true) == counting_numpy(predicted, true) == expected
        assert region_counts([crop(predicted)], [crop(true)]) == expected

    def ours(predicted: Mask, true: Mask) -> object:
        return overlap(*map(np.asarray, pixel_counts(predicted, true)))

    def cropped() -> None:
        for place in range(MASKS):
            predicted, true = crops[place % len(crops)]
            overlap(*map(np.asarray, region_counts([predicted], [true])))

    own = over(pairs, ours, MASKS)
    own_crops = seconds(cropped)
    others = {
        "plain NumPy (sums)": over(pairs, plain_numpy, MASKS),
        "NumPy, count_nonzero": over(pairs, counting_numpy, MASKS),
        "scikit-learn jaccard_score": over(pairs, scikit_learn, TIMED_APART) * MASKS / TIMED_APART,
    }
    area = np.mean([each.pixels.size for pair in crops for each in pair]) / SIDE**2
    print(f"  {MASKS:,} pairs of masks of {SIDE}², IoU, PixP, PixR and PixF1")
    for name, taken in others.items():
        times = 20 if "scikit" in name else 1
        figure("whole masks", own, "s", taken, name, wanted=1 / times)
        figure(
            f"as it scores: crops, on average {area:.0%} of the image",
            own_crops,
            "s",
            taken,
            name,
            wanted=1 / times,
        )


def many_boxes() -> None:
    """One record with 10,000 boxes of most of its image, against five polygons: its pixels and instances."""
    rng = np.random.default_rng(2)
    corners = rng.integers((0, 0, SIDE - 100, SIDE - 100), (100, 100, SIDE, SIDE), (BOXES, 4)).tolist()
    size = (SIDE, SIDE)
    boxes = [box_crop(each, size) for each in corners]
    true = [polygon_crop([(x, y), (x + 400, y), (x, y + 300)], size) for x, y in rng.integers(0, 600, (5, 2))]

    def ours() -> tuple[object, object]:
        return region_counts(boxes, true), instance_counts(boxes, true)

    def drawn(some: Sequence[Crop]) -> tuple[object, object]:
        """As it was done before: every box is pixels, and every pair is looked at."""
        whole = np.zeros((SIDE, SIDE), dtype=np.bool_)
        right, found = np.zeros(len(some), dtype=np.bool_), np.zeros(len(true), dtype=np.bool_)
        for row, box in enumerate(some):
            x0, y0, x1, y1 = box.box
            whole[y0:y1, x0:x1] |= box.pixels
            area = np.count_nonzero(box.pixels)
            for column, region in enumerate(true):
                rx0, ry0, rx1, ry1 = region.box
                x, y, right_end, lower_end = max(x0, rx0), max(y0, ry0), min(x1, rx1), min(y1, ry1)
                if x < right_end and y < lower_end:
                    part = box.pixels[y - y0 : lower_end - y0, x - x0 : right_end - x0]
                    other = region.pixels[y - ry0 : lower_end - ry0, x - rx0 : right_end - rx0]
                    indicates = np.count_nonzero(part & other) >= 0.5 * area
                    right[row] |= indicates
                    found[column] |= indicates
        truth = union(true).on(size)
        pixels = np.count_nonzero(whole & truth), np.count_nonzero(whole), np.count_nonzero(truth)
        return pixels, (int(right.sum()), len(some), int(found.sum()), len(true))

    some = boxes[:BOXES_TIMED_APART]
    assert drawn(some) == (region_counts(some, true), instance_counts(some, true))
    own = seconds(ours)
    before = seconds(lambda: drawn(some)) * BOXES / BOXES_TIMED_APART
    print(f"  one image of {SIDE}², {BOXES:,} boxes of most of it, {len(true)} true polygons")
    figure(f"one record with {BOXES:,} boxes", own, "s", before, "every box as pixels")


def polygon(region: Crop) -> list[list[float]]:
    """An outline with as many corners as annotators set."""
    x0, y0, x1, y1 = region.box
    turns = np.linspace(0, 2 * np.pi, 40, endpoint=False)
    xs, ys = (x0 + x1) / 2 + (x1 - x0) / 2 * np.cos(turns), (y0 + y1) / 2 + (y1 - y0) / 2 * np.sin(turns)
    return [[float(x), float(y)] for x, y in zip(xs, ys, strict=True)]


def whole() -> None:
    """As `uncanny artifacts score` works: 2,600 images, 14,000 polygons of truth, as many predicted boxes."""
    from uncanny.eval.artifacts.score.score import score
    from uncanny.schema import ARTIFACT_CATEGORIES

    rng = np.random.default_rng(1)
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder) / name for name in ("truth.jsonl", "boxes.jsonl")]
        with files[0].open("wb") as truth, files[1].open("wb") as boxes:
            for number in range(MASKS):
                about = {"image": f"{number}.png", "width": SIDE, "height": SIDE}
                outlines, predicted = [], []
                for _ in range(int(rng.poisson(5.4))):
                    category = str(rng.choice(ARTIFACT_CATEGORIES))
                    x, y, w, h = rng.integers((0, 0, 20, 20), (800, 800, 220, 220)).tolist()
                    region = Crop(x, y, np.ones((h, w), dtype=np.bool_))
                    outlines.append({"category": category, "polygon": polygon(region)})
                    predicted.append({"category": category, "box": [x + 10, y + 10, x + w + 10, y + h + 10]})
                truth.write(orjson.dumps({**about, "source": "generated", "regions": outlines}) + b"\n")
                verdict = {"score": float(rng.random()), "regions": predicted}
                boxes.write(orjson.dumps({**about, **verdict}) + b"\n")
        for resamples in (0, 10_000):
            start = time.perf_counter()
            scores = score(files[1], truth=files[0], resamples=resamples)
            taken = time.perf_counter() - start
            regions = scores.truth.regions
            print(f"  from files, {MASKS:,} images, {regions:,} true polygons")
            figure(f"{resamples:,} resamples, images a second", MASKS / taken)
            figure(f"{resamples:,} resamples", taken, "s")


def main() -> None:
    pixels()
    many_boxes()
    whole()


if __name__ == "__main__":
    main()
