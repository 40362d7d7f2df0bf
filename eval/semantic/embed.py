"""Forward passes: token ids in, one unit vector a token out, in batches of like length."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from uncanny.errors import UsageError
from uncanny.eval.semantic.backbone import Backbone

if TYPE_CHECKING:
    import torch

Ids = tuple[int, ...]


def embed(
    backbone: Backbone,
    texts: Sequence[Ids],
    batch_tokens: int,
    on_batch: Callable[[int], None] | None = None,
) -> dict[Ids, torch.Tensor]:
    """Distinct token lists → (tokens, width) on the backbone's device. `on_batch` gets each batch's count.

    A batch has at most `batch_tokens` tokens, padding included, and at least one text.
    """
    import torch

    found: dict[Ids, torch.Tensor] = {}
    with torch.inference_mode():
        for batch in batches(texts, batch_tokens):
            rows = _fitting(backbone, batch)
            rows /= rows.norm(dim=-1, keepdim=True)
            # One copy without the padding; each text is a view of it.
            found.update(zip(batch, torch.split(rows, [len(ids) for ids in batch]), strict=True))
            if on_batch is not None:
                on_batch(len(batch))
    return found


def _fitting(backbone: Backbone, batch: Sequence[Ids]) -> torch.Tensor:
    """In halves where the device has no memory for the whole; UsageError where not even for one text."""
    import torch

    try:
        return forward(backbone, batch)
    except torch.OutOfMemoryError as error:
        if len(batch) == 1:
            raise UsageError(
                f"{backbone.model.device} has no memory for a text of {len(batch[0])} tokens",
                remedy="Score on another device, with --device cpu for instance.",
            ) from error
    half = len(batch) // 2
    return torch.cat([_fitting(backbone, batch[:half]), _fitting(backbone, batch[half:])])


def forward(backbone: Backbone, batch: Sequence[Ids]) -> torch.Tensor:
    """Hidden states of the tokens of a batch, one after another, without padding."""
    import torch

    device = backbone.model.device
    lengths = torch.tensor([len(ids) for ids in batch])
    ids = torch.full((len(batch), int(lengths.max())), backbone.pad)
    mask = torch.arange(ids.shape[1]) < lengths.unsqueeze(1)
    ids[mask] = torch.tensor([i for ids in batch for i in ids])
    mask = mask.to(device, non_blocking=True)
    states: torch.Tensor = backbone.model(ids.to(device, non_blocking=True), attention_mask=mask.long())[0]
    return states[mask]


def batches(texts: Sequence[Ids], batch_tokens: int) -> Iterator[list[Ids]]:
    """Longest first, so that what does not fit into memory shows at once."""
    batch: list[Ids] = []
    for ids in sorted(texts, key=len, reverse=True):
        if batch and len(batch[0]) * (len(batch) + 1) > batch_tokens:
            yield batch
            batch = []
        batch.append(ids)
    if batch:
        yield batch
