"""How an image becomes the tensor that a detector takes, and which part of the image that tensor shows.

The library's image processors do the same but do not say which part was kept, which heat maps need. Tests
compare the tensors with theirs.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from uncanny.errors import ImageError, UsageError

if TYPE_CHECKING:
    from torch import Tensor

Heat = NDArray[np.float32]
Box = tuple[float, float, float, float]
IMAGENET_MEAN: Final = (0.485, 0.456, 0.406)
IMAGENET_STD: Final = (0.229, 0.224, 0.225)
# More than any detector needs; an image of one row of pixels would be enlarged to billions.
_MOST_PIXELS: Final = 2**26
_RESAMPLING: Final[Mapping[str, Image.Resampling]] = {
    "bilinear": Image.Resampling.BILINEAR,
    "bicubic": Image.Resampling.BICUBIC,
    "nearest": Image.Resampling.NEAREST,
    "lanczos": Image.Resampling.LANCZOS,
    "box": Image.Resampling.BOX,
}


@dataclass(frozen=True, slots=True)
class View:
    """Resize, crop and normalize an image, in this order.

    `size` is (height, width) in pixels to which the whole image is brought, whatever its shape. Or `shortest`
    is the length in pixels of the shorter side, with the shape kept; with `longest` the longer side is at
    most so long. `crop` is (height, width) of the middle that is kept, None for all; what a crop lacks is
    black. Values of 0–1 are normalized by `mean` and `std`, a number a channel.
    """

    size: tuple[int, int] | None = None
    shortest: int | None = None
    longest: int | None = None
    crop: tuple[int, int] | None = None
    resample: Image.Resampling = Image.Resampling.BICUBIC
    mean: tuple[float, ...] = IMAGENET_MEAN
    std: tuple[float, ...] = IMAGENET_STD

    def tensor(self, image: Image.Image) -> tuple[Tensor, Box]:
        """The tensor (3, height, width) of an RGB image, and the box (x0, y0, x1, y1) of it that is shown.

        The box is in pixels of `image`, and reaches outside where a crop is larger than the image. Raises
        ImageError for an image so much longer than wide that it would need gigabytes.
        """
        import torch

        height, width = self._resized(image.width, image.height)
        if max(height * width, math.prod(self.crop or ())) > _MOST_PIXELS > image.width * image.height:
            raise ImageError(
                f"{image.width} × {image.height} pixels, resized for the detector, are too many",
                kind="unsupported",
            )
        pixels = image.convert("RGB")
        if (width, height) != image.size:
            pixels = pixels.resize((width, height), self.resample)
        left = top = 0
        shown_height, shown_width = height, width
        if self.crop is not None:
            shown_height, shown_width = self.crop
            top, left = (height - shown_height) // 2, (width - shown_width) // 2
            pixels = pixels.crop((left, top, left + shown_width, top + shown_height))
        values = torch.from_numpy(np.asarray(pixels).copy()).permute(2, 0, 1).float() / 255
        mean, std = (torch.tensor(each).view(-1, 1, 1) for each in (self.mean, self.std))
        across, down = image.width / width, image.height / height
        box = (left * across, top * down, (left + shown_width) * across, (top + shown_height) * down)
        return (values - mean) / std, box

    @property
    def window(self) -> int:
        """Side in pixels of what the model sees at once, for patches that slide over an image."""
        sides = self.crop or self.size or (self.shortest or 224,) * 2
        return max(sides)

    def _resized(self, width: int, height: int) -> tuple[int, int]:
        if self.size is not None:
            return self.size
        if self.shortest is None:
            return height, width
        scale = self.shortest / min(width, height)
        if self.longest is not None:
            scale = min(scale, self.longest / max(width, height))
        # As torchvision does it: what is beyond a whole pixel of the longer side is cut off.
        return max(1, int(height * scale + 1e-9)), max(1, int(width * scale + 1e-9))

    def to_json(self) -> dict[str, Any]:
        """As `preprocessor_config.json` has it, so that other programs prepare images alike."""
        size: dict[str, int] | None = None
        if self.size is not None:
            size = {"height": self.size[0], "width": self.size[1]}
        elif self.shortest is not None:
            size = {"shortest_edge": self.shortest}
            size |= {} if self.longest is None else {"longest_edge": self.longest}
        crop = None if self.crop is None else {"height": self.crop[0], "width": self.crop[1]}
        return {
            "do_convert_rgb": True,
            "do_resize": size is not None,
            **({} if size is None else {"size": size}),
            "do_center_crop": crop is not None,
            **({} if crop is None else {"crop_size": crop}),
            "resample": int(self.resample),
            "do_rescale": True,
            "rescale_factor": 1 / 255,
            "do_normalize": True,
            "image_mean": list(self.mean),
            "image_std": list(self.std),
        }

    @classmethod
    def of_processor(cls, content: Mapping[str, Any], side: int) -> View:
        """From the `preprocessor_config.json` of transformers. `side` is the model's, where it says nothing.

        Raises UsageError for what is not read.
        """
        size, shortest, longest = _size_of(content.get("size"), side)
        crop = None
        if content.get("do_center_crop"):
            given = content.get("crop_size") or {"height": side, "width": side}
            given = {"height": given, "width": given} if isinstance(given, int) else given
            crop = (int(given["height"]), int(given["width"]))
        if "crop_pct" in content and shortest is not None and shortest < 384:
            # ConvNeXt enlarges by this and takes the middle, below 384 pixels.
            crop, shortest = (shortest, shortest), int(shortest / float(content["crop_pct"]))
        elif "crop_pct" in content and shortest is not None:
            size, shortest = (shortest, shortest), None
        if not content.get("do_resize", True):
            size = shortest = longest = None
        factor = content.get("rescale_factor", 1 / 255) if content.get("do_rescale", True) else 1.0
        if abs(float(factor) * 255 - 1) > 1e-3:
            raise UsageError(
                f"preprocessor_config.json scales pixels by {factor}; only 1/255 is read",
                remedy="Save the classifier with a processor that scales by 1/255.",
            )
        normal = content.get("do_normalize", True)
        mean, std = _normalization(content, "image_mean", "image_std") if normal else ((0.0,) * 3, (1.0,) * 3)
        return cls(
            size,
            shortest,
            longest,
            crop,
            Image.Resampling(int(content.get("resample", Image.Resampling.BICUBIC))),
            mean,
            std,
        )

    @classmethod
    def of_timm(cls, content: Mapping[str, Any]) -> View:
        """From the `pretrained_cfg` of timm: enlarged by `crop_pct`, of which the middle is taken.

        Raises UsageError where it does not say by what pixels are normalized.
        """
        _, height, width = content.get("input_size", (3, 224, 224))
        share = float(content.get("crop_pct", 0.875))
        resample = _RESAMPLING.get(str(content.get("interpolation")), Image.Resampling.BICUBIC)
        mean, std = _normalization(content, "mean", "std")
        if content.get("crop_mode") == "squash":
            size = (int(height / share), int(width / share))
            return cls(size, crop=(height, width), resample=resample, mean=mean, std=std)
        shortest = int(min(height, width) / share)
        return cls(shortest=shortest, crop=(height, width), resample=resample, mean=mean, std=std)


def _size_of(size: Any, side: int) -> tuple[tuple[int, int] | None, int | None, int | None]:
    """Whole size, shorter and longer side: one of the first two is there."""
    if size is None:
        return (side, side), None, None
    if isinstance(size, int):
        return (size, size), None, None
    if "height" in size and "width" in size:
        return (int(size["height"]), int(size["width"])), None, None
    if "shortest_edge" in size:
        longest = size.get("longest_edge")
        return None, int(size["shortest_edge"]), None if longest is None else int(longest)
    raise UsageError(
        f"preprocessor_config.json has the size {size!r}, which is not read",
        remedy="Give height and width, or shortest_edge.",
    )


def _normalization(content: Mapping[str, Any], *names: str) -> list[tuple[float, ...]]:
    """Mean and standard deviation a channel. They are not guessed: architectures differ, and so do scores."""
    if missing := [name for name in names if content.get(name) is None]:
        raise UsageError(
            f"The detector's folder does not say by what pixels are normalized ({' and '.join(missing)})",
            remedy="Add what it was trained with to preprocessor_config.json, or for timm to pretrained_cfg.",
        )
    return [tuple(float(each) for each in content[name]) for name in names]


def on_image(heat: Heat, box: Box, size: tuple[int, int]) -> Heat:
    """A map (h, w) of what a tensor shows, on the whole image: (height, width), 0–1.

    `box` is the part of the image that the tensor shows, `size` the image's width and height. Values between
    the middles of cells are linear; what was not shown is 0.
    """
    x0, y0, x1, y1 = (round(each) for each in box)
    scaled = Image.fromarray(np.ascontiguousarray(heat, dtype=np.float32)).resize(
        (max(1, x1 - x0), max(1, y1 - y0)), Image.Resampling.BILINEAR
    )
    canvas = Image.new("F", size)
    canvas.paste(scaled, (x0, y0))
    return np.clip(np.asarray(canvas, dtype=np.float32), 0, 1)
