"""Where a vision transformer looks, from its attention: pure functions of tensors, gradients included.

`attentions` are a model's, one tensor a layer, the first layer first: (images, heads, tokens, tokens), rows
sum to 1. Patches are the last h·w tokens, so that registers before them do not count. `read` is how strongly
a head reads each token, (tokens,), with the sum 1; None is a head that reads the first, the class token.
Results are differentiable, which the training of detectors needs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, Literal, get_args

if TYPE_CHECKING:
    import torch
    from torch import Tensor

AttentionMap = Literal["rollout", "gradient_rollout", "relevance"]
ATTENTION_MAPS: Final[tuple[AttentionMap, ...]] = get_args(AttentionMap)
# So that an attention of nothing but zeros is a map of zeros.
_LEAST: Final = 1e-12


def attention_rollout(attentions: Sequence[Tensor], read: Tensor | None = None) -> Tensor:
    """How much of what is read comes from each token: (images, tokens), each row sums to 1.

    The mean over heads and the residual connection count alike in each layer: the product of
    (A + I) / 2 over layers, rows of the tokens that are read.

    Source: Abnar and Zuidema (2020), Quantifying attention flow in transformers, section 3.
    """
    return _product([layer.mean(dim=1) for layer in attentions], read)


def gradient_rollout(attentions: Sequence[Tensor], target: Tensor, *, train: bool = False) -> Tensor:
    """The same with each attention weighted by the gradient of `target`: (images, tokens), rows sum to 1.

    `target` is a number an image, such as the logit of "generated", that depends on the attentions. Negative
    weights count as 0. With `train` the result has a gradient of its own (a second derivative), so that a
    loss can be made of it; accumulated gradients are exact.

    Source: Gildenblat (2020), vit-explain. Deviation: no attentions are discarded.
    """
    weighted = zip(attentions, _gradients(attentions, target, train=train), strict=True)
    return _product([(layer * gradient).mean(dim=1).clamp_min(0) for layer, gradient in weighted])


def relevance(
    attentions: Sequence[Tensor], target: Tensor, read: Tensor | None = None, *, train: bool = False
) -> Tensor:
    """Relevance of each token for `target`: (images, tokens), 0 or more.

    R ← R + mean over heads of (∇A ⊙ A)⁺ · R, from the identity on; rows of the tokens that are read. `target`
    and `train` are as for `gradient_rollout`.

    Source: Chefer, Gur and Wolf (2021), Generic attention-model explainability, section 3.1. Deviation: with
    `read` the identity is taken off again, which would give all patches that are read the same share.
    """
    import torch

    gradients = _gradients(attentions, target, train=train)
    identity = result = _identity(attentions[0])
    for layer, gradient in zip(attentions, gradients, strict=True):
        result = result + torch.matmul((layer * gradient).clamp_min(0).mean(dim=1), result)
    return result[:, 0] if read is None else torch.matmul(read, result - identity)


def attention_map(
    attentions: Sequence[Tensor],
    grid: tuple[int, int],
    target: Tensor | None = None,
    read: Tensor | None = None,
    *,
    method: AttentionMap = "rollout",
    train: bool = False,
) -> Tensor:
    """The map A_cls of X-AIGD: (images, h, w), 0–1, 1 where an image is looked at most.

    `grid` is (h, w), the patches down and across. `target` is what the two methods with gradients need.
    Each map is divided by its maximum, so that every image has a 1, real ones too. An image whose patches
    get nothing has zeros. Gradient rollout is for heads that read the class token.

    Source: X-AIGD, section 6.1, which names gradient rollout; appendix D.4, which uses rollout.
    """
    height, width = grid
    if method == "rollout":
        tokens = attention_rollout(attentions, read)
    else:
        assert target is not None, "gradients need a target"
        if method == "relevance":
            tokens = relevance(attentions, target, read, train=train)
        else:
            tokens = gradient_rollout(attentions, target, train=train)
    patches = tokens[:, tokens.shape[1] - height * width :].reshape(-1, height, width)
    return patches / patches.amax(dim=(1, 2), keepdim=True).clamp_min(_LEAST)


def _product(layers: Sequence[Tensor], read: Tensor | None = None) -> Tensor:
    """Rows that are read of the product of layers, each with its residual connection."""
    import torch

    identity = _identity(layers[0])
    row = identity[:, :1] if read is None else read.expand(len(identity), 1, -1)
    # From the last layer back: a row times a matrix, and not matrices.
    for layer in reversed(layers):
        flow = layer + identity
        row = torch.matmul(row, flow / flow.sum(dim=-1, keepdim=True))
    return row[:, 0]


def _identity(layer: Tensor) -> Tensor:
    import torch

    tokens = layer.shape[-1]
    return torch.eye(tokens, dtype=layer.dtype, device=layer.device).expand(len(layer), tokens, tokens)


def _gradients(attentions: Sequence[Tensor], target: Tensor, *, train: bool) -> tuple[torch.Tensor, ...]:
    """Images do not depend on each other, so that the gradient of the sum is each image's own."""
    import torch

    return torch.autograd.grad(target.sum(), list(attentions), create_graph=train, retain_graph=True)
