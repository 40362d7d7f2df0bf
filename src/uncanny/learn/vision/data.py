"""Images with their artifacts, as detectors are trained on them: loading, changes at random, and order.

Everything that is random about the sample at a place in the order follows from the seed and that place, so
that a resumed run sees what an uninterrupted one would have seen.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from uncanny.errors import ItemsError, UsageError
from uncanny.eval.artifacts.data.load import load
from uncanny.eval.artifacts.data.pixels import Drawing
from uncanny.eval.artifacts.data.records import ArtifactImage
from uncanny.eval.common.groups import image_groups
from uncanny.eval.common.pixels.masks import read_mask
from uncanny.images.prepared import read_rgb
from uncanny.learn.common.held_out import Traces, check_apart, traces_of
from uncanny.learn.vision.losses import IGNORED
from uncanny.learn.vision.masks import AlignTo, Mask, benign_mask, random_mask, saliency_mask
from uncanny.schema import ARTIFACT_CATEGORIES
from uncanny.wording import counted, option

Classes = NDArray[np.uint8]
# An artifact of which nobody says the category.
UNNAMED: Final = 254
# So that a crop has something to choose from, and the whole image, as it is asked about, is one of them.
_MOST_ENLARGED: Final = 8 / 7
# The longer side, in sides of the square.
_MOST_LONG: Final = 4


@dataclass(frozen=True, slots=True)
class Labeled:
    """An image that is known to be generated or real. `group` is of images that belong together."""

    truth: ArtifactImage
    path: Path
    generated: bool
    group: str
    traces: Traces

    @property
    def is_annotated(self) -> bool:
        """Whether it is known of each pixel if it is an artifact; a real image has none."""
        return not self.generated or self.truth.record.regions is not None

    def pixels(self) -> tuple[Image.Image, Classes]:
        """The image, RGB, and the class of each pixel (height, width).

        0 is no artifact, 1 to 7 are the categories, `UNNAMED` an artifact without one, and `IGNORED` where
        nobody looked. Of regions that overlap the smaller one counts. Raises ImageError, UsageError.
        """
        image, _ = read_rgb(self.path)
        classes = np.full((image.height, image.width), 0 if self.is_annotated else IGNORED, dtype=np.uint8)
        if not self.generated:
            return image, classes
        drawing = Drawing()
        regions = drawing.regions(self.truth, image.size)
        if drawing.problems:
            raise ItemsError(str(self.path), drawing.problems, remedy="Correct these; nothing was trained.")
        for drawn in sorted(regions, key=lambda each: -each.pixels.area):
            category = drawn.region.category
            number = UNNAMED if category is None else 1 + ARTIFACT_CATEGORIES.index(category)
            classes[drawn.pixels.on(image.size)] = number
        return image, classes


@dataclass(frozen=True, slots=True)
class Splits:
    """Images to train on, those that are held out for tests, and those that something is chosen by."""

    train: Sequence[Labeled]
    test: Sequence[Labeled]
    validation: Sequence[Labeled] = ()

    def named(self) -> dict[str, Sequence[Labeled]]:
        """The sides by name; `validation` only where there is one."""
        named = {"train": self.train, "test": self.test}
        return named | ({"validation": self.validation} if self.validation else {})

    def with_validation(self, share: float, seed: int) -> Splits:
        """A `share` of the groups of training images, 0–1, is taken out of these for validation."""
        train, validation = _divided(self.train, share, seed)
        return Splits(train, self.test, validation)


def read_splits(
    data: Path, held_out: Path | None, share: float, seed: int, root: Path | None = None
) -> Splits:
    """Images of any file or folder of artifacts that `uncanny artifacts` reads.

    Without `held_out`, a `share` of the groups of images is held out, real and generated ones alike. Images
    that belong together, such as a generated one and the real one it was made from, are on one side. Raises
    UsageError, also where `held_out` breaks this, and ItemsError.
    """
    images = _read(data, root)
    if held_out is not None:
        test = _read(held_out, root)
        check_apart(*([each.traces for each in side] for side in (images, test)))
        return Splits(images, test)
    return Splits(*_divided(images, share, seed))


def _divided(images: Sequence[Labeled], share: float, seed: int) -> tuple[list[Labeled], list[Labeled]]:
    """All but a share of the groups, and this share."""
    kinds: dict[str, set[bool]] = {}
    for each in images:
        kinds.setdefault(each.group, set()).add(each.generated)
    rng = np.random.default_rng(seed)
    chosen: set[str] = set()
    # The same share of groups that are real, generated, and both.
    for kind in ({False}, {True}, {False, True}):
        groups = sorted(name for name, found in kinds.items() if found == kind)
        chosen |= set(rng.permutation(groups)[: round(share * len(groups))].tolist())
    return (
        [each for each in images if each.group not in chosen],
        [each for each in images if each.group in chosen],
    )


def _read(data: Path, root: Path | None) -> list[Labeled]:
    loaded = load(data, root=root)
    groups = image_groups([each.record for each in loaded.images])
    keys = range(len(loaded)) if groups is None else groups.codes.tolist()
    known, missing = [], []
    for image, key in zip(loaded.images, keys, strict=True):
        if image.record.source is None:
            continue
        path = loaded.pictures / image.image
        traces = traces_of(image.record, path, loaded.pictures)
        known.append(Labeled(image, path, image.record.source == "generated", str(key), traces))
        if not path.is_file():
            missing.append(str(path))
    if missing:
        raise UsageError(
            f"{counted(len(missing), 'image')} of {data} cannot be found, such as {missing[0]}",
            remedy=f"Name the folder that image paths start in with {option('root')}.",
        )
    if not known:
        raise UsageError(
            f"{data} says of no image whether it is generated or real", remedy="Add `source` to its records."
        )
    return known


@dataclass(frozen=True, slots=True)
class Changes:
    """What happens to an image at random before it is trained on.

    `quality` is the range of JPEG qualities for generated images, which are mostly stored without loss while
    real ones are not. `resize` is the range of factors to `base`: with one, the shorter side is `side` times
    the factor; without one the whole image is brought to a square up to a seventh larger. Then a square of
    `side` pixels is cut out, and mirrored half of the time. What an image lacks of the square is black, and
    `IGNORED`.

    Source: X-AIGD, appendix B.2 and B.3. Deviation: sizes follow the network's input instead of the file's.
    """

    side: int
    quality: tuple[int, int]
    resize: tuple[float, float] | None = None

    def apply(
        self, image: Image.Image, classes: Classes, generated: bool, rng: np.random.Generator
    ) -> tuple[Image.Image, Classes]:
        """The changed image, side × side, and its classes."""
        if generated:
            image = _as_jpeg(image, int(rng.integers(self.quality[0], self.quality[1] + 1)))
        if self.resize is None:
            enlarged = round(self.side * rng.uniform(1, _MOST_ENLARGED))
            size = (enlarged, enlarged)
        else:
            low, high = self.resize
            # As far as it is seen later, however long and narrow it is.
            whole = min(self.side / min(image.size), _MOST_LONG * self.side / max(image.size))
            scale = whole * float(np.exp(rng.uniform(np.log(low), np.log(high))))
            size = (max(1, round(image.width * scale)), max(1, round(image.height * scale)))
        image = image.resize(size, Image.Resampling.BICUBIC)
        labels = Image.fromarray(classes).resize(size, Image.Resampling.NEAREST)
        left = int(rng.integers(0, max(0, size[0] - self.side) + 1))
        top = int(rng.integers(0, max(0, size[1] - self.side) + 1))
        square = Image.new("RGB", (self.side, self.side))
        known = Image.new("L", (self.side, self.side), IGNORED)
        square.paste(image, (-left, -top))
        known.paste(labels, (-left, -top))
        if rng.random() < 0.5:
            square = square.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
            known = known.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
        return square, np.asarray(known)


def _as_jpeg(image: Image.Image, quality: int) -> Image.Image:
    file = BytesIO()
    image.save(file, "JPEG", quality=quality)
    return Image.open(file).convert("RGB")


def training_order(images: Sequence[Labeled], samples: int, seed: int, *, balance: bool) -> list[int]:
    """Which image is at each of so many places: all in a new random order, again and again.

    With `balance` real and generated images take turns, and the fewer ones come more often.
    """
    rng = np.random.default_rng(seed)
    kinds = [list(range(len(images)))]
    if balance:
        kinds = [[n for n, each in enumerate(images) if each.generated is made] for made in (False, True)]
        kinds = [each for each in kinds if each]
    streams: list[list[int]] = [[] for _ in kinds]
    order: list[int] = []
    for place in range(samples):
        kind = place % len(kinds)
        if not streams[kind]:
            streams[kind] = rng.permutation(kinds[kind]).tolist()
        order.append(streams[kind].pop())
    return order


def class_pixels(images: Sequence[Labeled]) -> NDArray[np.int64]:
    """How many pixels of each class there are: not an artifact, and the seven categories. Blocking."""
    counts = np.zeros(1 + len(ARTIFACT_CATEGORIES), dtype=np.int64)
    for each in images:
        _, classes = each.pixels()
        counts += np.bincount(classes.ravel(), minlength=256)[: len(counts)]
    return counts


@dataclass(frozen=True, slots=True)
class Alignment:
    """What attention is drawn to: `to`, and a folder of masks by the names of images in place of ours."""

    to: AlignTo = "artifact"
    masks: Path | None = None

    def mask(self, labeled: Labeled, image: Image.Image, classes: Classes, seed: int) -> Classes:
        """Classes (height, width) with this mask as the artifact of a generated image; real ones have none.

        A random mask is the same each time that an image is seen. Raises UsageError for a missing mask.
        """
        marked: Mask = (classes > 0) & (classes != IGNORED)
        if self.to == "artifact" or not labeled.generated:
            return classes
        if self.masks is not None:
            name = (self.masks / labeled.truth.image).with_suffix(".png")
            mask = read_mask(name, image.size)
        elif self.to == "random":
            number = int.from_bytes(sha256(labeled.truth.image.encode()).digest())
            mask = random_mask(image.size, np.random.default_rng([seed, number]))
        else:
            mask = benign_mask(image, marked) if self.to == "benign" else saliency_mask(image)
        return np.where(mask, UNNAMED, 0).astype(np.uint8)
