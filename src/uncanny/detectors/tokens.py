"""Which tokens of a vision transformer its head reads: found by asking it, so that maps start from there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from uncanny.models.compute import frozen

if TYPE_CHECKING:
    from torch import Tensor

# A share of less than this is not read: rounding leaves some of what is exactly nothing.
_LEAST: Final = 1e-4
# A class token, a token of distillation and registers are less than these together.
_MOST_PREFIX: Final = 32


@dataclass(frozen=True, slots=True)
class Tokens:
    """The tokens of a vision transformer: those before the patches, such as a class token, then the patches.

    `patch` is the side of a patch in pixels, `shares` are how strongly the head reads each token before the
    patches and, last, all patches together, 0–1; their sum is 1.
    """

    patch: int
    shares: tuple[float, ...]

    @property
    def prefix(self) -> int:
        """How many tokens come before the patches."""
        return len(self.shares) - 1

    @property
    def read_patches(self) -> bool:
        """Whether the head reads patches: their mean, in any classifier of transformers."""
        return self.shares[-1] > _LEAST

    @property
    def read_others(self) -> bool:
        """Whether it reads a token that is not a patch."""
        return sum(self.shares[:-1]) > _LEAST

    def grid(self, pixels: Tensor) -> tuple[int, int]:
        """Patches down and across of images (images, 3, height, width)."""
        return pixels.shape[2] // self.patch, pixels.shape[3] // self.patch

    def read(self, pixels: Tensor) -> Tensor:
        """How strongly each token of images is read: (tokens,), with the sum 1."""
        import torch

        down, across = self.grid(pixels)
        patches = down * across
        weights = [*self.shares[:-1], *[self.shares[-1] / patches] * patches]
        return torch.tensor(weights, dtype=pixels.dtype, device=pixels.device)


def tokens_of(model: Any, side: int, score: Callable[[Tensor], Tensor]) -> Tokens | None:
    """The tokens of a classifier of transformers; None for one without attention between all its tokens.

    `side` is that of its images in pixels: some networks change when they see another. How strongly a token
    is read is the norm of the gradient of `score`, which makes a number an image of logits, by the token
    after the last layer.
    """
    import torch

    config = model.config
    patch = getattr(getattr(config, "vision_config", config), "patch_size", None)
    if not isinstance(patch, int):
        return None
    pixels = torch.linspace(-1, 1, 3 * side * side).reshape(1, 3, side, side).requires_grad_()
    try:
        with torch.enable_grad(), frozen(model):
            output = model(pixel_values=pixels, output_attentions=True, output_hidden_states=True)
            (slopes,) = torch.autograd.grad(score(output.logits).sum(), output.hidden_states[-1])
    except (AttributeError, IndexError, RuntimeError, TypeError, ValueError):
        return None  # a network of another kind, which has no such outputs
    found = [each for each in output.attentions or () if each is not None]
    rows = slopes.shape[1]
    prefix = rows - (side // patch) ** 2
    square = all(layer.shape[0] == 1 and layer.shape[2:] == (rows, rows) for layer in found)
    if not found or slopes.ndim != 3 or not square or not 0 <= prefix <= _MOST_PREFIX:
        return None
    norms = slopes[0].norm(dim=1).double()
    whole = norms.sum().clamp_min(torch.finfo(norms.dtype).tiny)
    shares = (norms[:prefix] / whole).tolist()
    return Tokens(patch, (*shares, (norms[prefix:].sum() / whole).item()))
