"""Masks: an outline by SAM 2, or a plain shape; kept, filled and widened, or refused with the reason.

Source: SalArt-VQA, appendix B.3, stages 1 and 2: hands are hulls of their landmarks, feet ellipses, faces
polygons, which are hulls here, too. The paper keeps masks that cover the seed and do not spread to other
subjects, and does not say how that is decided; the limits here are ours. Other subjects are the regions that
were found, edited or not: with hands, other hands alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from threading import Lock
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from uncanny.errors import UsageError, text_of
from uncanny.eval.common.pixels.crops import Mask
from uncanny.eval.common.pixels.shapes import box_crop, polygon_crop
from uncanny.eval.metrics.edits import windows_with
from uncanny.eval.pairs.data import Hint, MaskSource
from uncanny.eval.pairs.make.people import MARGIN
from uncanny.eval.pairs.make.regions import Region, ellipse
from uncanny.extras import optional

# Of the points of a region that SAM 2 is given, and of its box where it has none, a mask covers this share.
LEAST_COVERED: Final = 0.5
LEAST_OF_BOX: Final = 0.2
# So much of a mask may lie outside the box of its region, widened by this share of its sides; and so much of
# another region may lie in the mask.
MOST_OUTSIDE: Final = 0.15
WIDENED: Final = 0.1
MOST_OF_OTHERS: Final = 0.25
# Seeds for SAM 2: more points say no more, and cost time.
_MOST_POINTS: Final = 8
_MEAN, _DEVIATION = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


class MaskError(Exception):
    """There is no mask for a region; `str()` says why."""


class Sam2:
    """A SAM 2 model of transformers, loaded when it is first used; for one thread at a time.

    Pixels are prepared here, so that torchvision is not needed.
    """

    def __init__(self, model: str, device: str | None) -> None:
        """Raises UsageError where transformers or torch is not installed."""
        optional("torch", "pairs", "SAM 2")
        optional("transformers", "pairs", "SAM 2")
        self._name, self._device, self._lock = model, device, Lock()
        self._model: Any = None

    def masks(self, pixels: NDArray[np.uint8], hint: Hint) -> list[Mask]:
        """The masks that the model offers for a region, the one it is surest of first.

        `pixels` are RGB, of shape (height, width, 3). Raises UsageError for a model that cannot be loaded.
        """
        import torch
        from torch.nn import functional

        with self._lock:
            if self._model is None:
                self._model = self._loaded()
            model = self._model
            side = int(model.config.vision_config.backbone_config.image_size[0])
            height, width = pixels.shape[:2]
            values = torch.from_numpy(np.array(pixels)).permute(2, 0, 1)[None].to(model.device) / 255
            values = functional.interpolate(values, (side, side), mode="bilinear", antialias=True)
            mean, deviation = (
                torch.tensor(each, device=model.device)[:, None, None] for each in (_MEAN, _DEVIATION)
            )
            across, down = side / width, side / height
            box = [hint.box[0] * across, hint.box[1] * down, hint.box[2] * across, hint.box[3] * down]
            seeds = seeds_of(hint)
            points = [[x * across, y * down] for x, y in seeds]
            with torch.inference_mode():
                output = model(
                    pixel_values=((values - mean) / deviation).to(model.dtype),
                    input_points=torch.tensor([[points]], device=model.device),
                    input_labels=torch.ones((1, 1, len(points)), dtype=torch.int64, device=model.device),
                    input_boxes=torch.tensor([[box]], device=model.device),
                    multimask_output=True,
                )
                # One image, one region: some masks, each with how sure the model is of it.
                logits, sure = output.pred_masks[0, 0].float(), output.iou_scores[0, 0].float()
                large = functional.interpolate(logits[:, None], (height, width), mode="bilinear")[:, 0]
            order = torch.argsort(sure, descending=True).tolist()
            return [(large[place] > 0).cpu().numpy() for place in order]

    def _loaded(self) -> Any:
        import torch
        from transformers import Sam2Model

        kind: Any = Sam2Model

        device = self._device or ("cuda" if torch.cuda.is_available() else "cpu")
        try:
            return kind.from_pretrained(self._name, use_safetensors=True).to(device).eval()
        except Exception as error:  # whatever hub, files and libraries raise
            raise UsageError(
                f"The SAM 2 model {self._name} cannot be loaded: {text_of(error)}",
                remedy="Pass the folder of a model, or a name on the hub, as facebook/sam2.1-hiera-large.",
            ) from error


def region_mask(
    region: Region,
    others: Sequence[Region],
    pixels: NDArray[np.uint8],
    sam: Sam2 | None,
    *,
    dilate: int,
    largest: float,
) -> tuple[Mask, MaskSource]:
    """The mask of a region in RGB pixels of shape (height, width, 3), and where it is from.

    Given masks are taken as they are, but for holes and dilation. Raises MaskError where no mask is fit for
    use: none covers the region, each spreads beyond it, or it covers more than the share `largest` of the
    image; UsageError as `Sam2.masks`.
    """
    from scipy import ndimage  # type: ignore[import-untyped]  # slow to import

    size = (pixels.shape[1], pixels.shape[0])
    source: MaskSource
    if region.mask is not None:
        mask, source = region.mask, "given"
    elif sam is not None:
        mask, source = (
            _fitting(sam.masks(pixels, region.hint), region.hint, [each.hint for each in others]),
            "sam2",
        )
    elif region.hint.source in ("hand", "face") and (outline := hull(region.hint, size)) is not None:
        mask, source = outline, "hull"
    elif region.hint.source in ("object", "limb"):
        mask, source = box_crop(region.hint.box, size).on(size), "box"
    else:
        mask, source = ellipse(region.hint.box, size), "ellipse"
    whole = dilated(np.asarray(ndimage.binary_fill_holes(mask)), dilate)
    share = np.count_nonzero(whole) / whole.size
    if not share:
        raise MaskError("it is empty")
    if share > largest:
        raise MaskError(f"it covers {share:.0%} of the image, and {largest:.0%} are allowed")
    return whole, source


def seeds_of(hint: Hint) -> list[tuple[int, int]]:
    """Points that belong to a region: a few of its own, else the middle of its box."""
    if not hint.points:
        x0, y0, x1, y1 = hint.box
        return [((x0 + x1) // 2, (y0 + y1) // 2)]
    step = max(1, -(-len(hint.points) // _MOST_POINTS))
    return list(hint.points[::step])


def hull(hint: Hint, size: tuple[int, int]) -> Mask | None:
    """The convex hull of the points of a region, as much wider as its box is, within the box.

    None where they lie on a line.
    """
    from scipy.spatial import ConvexHull, QhullError  # type: ignore[import-untyped]  # slow to import

    try:
        corners = [hint.points[each] for each in ConvexHull(hint.points).vertices]
    except (QhullError, ValueError):  # on a line; fewer than three
        return None
    x0, y0, x1, y1 = hint.box
    margin = round(max(x1 - x0, y1 - y0) * MARGIN / (1 + 2 * MARGIN))
    wide: Mask = dilated(polygon_crop(corners, size).on(size), margin) & box_crop(hint.box, size).on(size)
    return wide


def dilated(mask: Mask, pixels: int) -> Mask:
    """The mask widened by so many pixels on each side, in a square."""
    return windows_with(np.pad(mask, pixels), 2 * pixels + 1) if pixels else mask


def _fitting(masks: Sequence[Mask], hint: Hint, others: Sequence[Hint]) -> Mask:
    """The first of the masks that fits its region. Raises MaskError with what is wrong with the first."""
    reasons = [misfit(mask, hint, others) for mask in masks]
    for mask, reason in zip(masks, reasons, strict=True):
        if reason is None:
            return mask
    raise MaskError(reasons[0] or "the model offers none")


def misfit(mask: Mask, hint: Hint, others: Sequence[Hint]) -> str | None:
    """Why a mask is not that of its region; None where it may be."""
    area = int(np.count_nonzero(mask))
    if not area:
        return "it is empty"
    if hint.points:
        seeds = seeds_of(hint)
        covered = sum(bool(mask[y, x]) for x, y in seeds) / len(seeds)
        least = LEAST_COVERED
    else:
        covered, least = _share(mask, hint.box), LEAST_OF_BOX
    if covered < least:
        return f"it covers {covered:.0%} of the region, and {least:.0%} are needed"
    x0, y0, x1, y1 = hint.box
    across, down = round(WIDENED * (x1 - x0)), round(WIDENED * (y1 - y0))
    inside = mask[max(0, y0 - down) : y1 + down, max(0, x0 - across) : x1 + across]
    outside = 1 - np.count_nonzero(inside) / area
    if outside > MOST_OUTSIDE:
        return f"{outside:.0%} of it lies outside the region"
    for other in others:
        if _share(mask, other.box) > max(MOST_OF_OTHERS, _within(hint.box, other.box)):
            return f"it spreads to {other.name}"
    return None


def _share(mask: Mask, box: Sequence[int]) -> float:
    """How much of a box is in the mask."""
    part = mask[box[1] : box[3], box[0] : box[2]]
    return np.count_nonzero(part) / part.size if part.size else 0.0


def _within(box: Sequence[int], other: Sequence[int]) -> float:
    """How much of the other box lies in `box`: parts of one thing overlap."""
    across = max(0, min(box[2], other[2]) - max(box[0], other[0]))
    down = max(0, min(box[3], other[3]) - max(box[1], other[1]))
    return across * down / ((other[2] - other[0]) * (other[3] - other[1]))
