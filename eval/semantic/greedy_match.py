"""BERTScore F1 of all pairs of two lists of texts, from the embeddings of their tokens.

Zhang et al., *BERTScore: Evaluating Text Generation with BERT*, 2020, without idf and without rescaling.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

    # Rows are unit vectors, one a token; weights are 1, and 0 for tokens that match but do not count.
    Embedded = tuple[torch.Tensor, torch.Tensor]

# Cells of the largest block of token similarities: 64 MB.
_MOST_CELLS = 16_000_000


def f1(predicted: Sequence[Embedded], true: Sequence[Embedded]) -> torch.Tensor:
    """(predicted, true), clipped to 0–1. A text without a counted token has 0 to everything."""
    import torch

    if not predicted or not true:
        return torch.zeros(len(predicted), len(true))

    their, their_weight = _padded(true)
    longest = max(len(rows) for rows, _ in predicted)
    step = max(1, _MOST_CELLS // max(1, longest * their_weight.numel()))
    blocks = [_block(predicted[at : at + step], their, their_weight) for at in range(0, len(predicted), step)]
    return torch.cat(blocks)


def _block(predicted: Sequence[Embedded], their: torch.Tensor, their_weight: torch.Tensor) -> torch.Tensor:
    import torch

    ours, our_weight = _padded(predicted)
    (few, long, width), (many, wide, _) = ours.shape, their.shape
    cosines = ours.reshape(-1, width) @ their.reshape(-1, width).T
    cosines = cosines.view(few, long, many, wide)
    # Padding has weight NaN and must never be the best match; what is masked has to stay below any cosine.
    cosines.masked_fill_(our_weight.isnan().view(few, long, 1, 1), -2.0)
    cosines.masked_fill_(their_weight.isnan().view(1, 1, many, wide), -2.0)
    our_weight, their_weight = our_weight.nan_to_num(0.0), their_weight.nan_to_num(0.0)
    precision = (cosines.amax(3) * our_weight.view(few, long, 1)).sum(1) / our_weight.sum(1).view(few, 1)
    recall = (cosines.amax(1) * their_weight.view(1, many, wide)).sum(2) / their_weight.sum(1).view(1, many)
    both = 2 * precision * recall / (precision + recall)
    return torch.nan_to_num(both, nan=0.0, posinf=0.0, neginf=0.0).clamp(0.0, 1.0)


def _padded(texts: Sequence[Embedded]) -> tuple[torch.Tensor, torch.Tensor]:
    from torch.nn.utils.rnn import pad_sequence

    rows = pad_sequence([rows for rows, _ in texts], batch_first=True)
    weights = pad_sequence([weights for _, weights in texts], batch_first=True, padding_value=float("nan"))
    return rows, weights
