"""BERTScore F1 of all pairs of texts: every distinct text embedded once, all pairs from the embeddings.

T. Zhang et al., *BERTScore: Evaluating Text Generation with BERT*, ICLR 2020, section 3, as `bert-score`
computes it, without idf and without rescaling. Deviations: clipped to 0–1, a text without a word is similar
to nothing, and texts are cut after 512 tokens.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from uncanny.errors import UsageError
from uncanny.eval.common.parameters import MeasureParameters
from uncanny.eval.common.similarity import weights
from uncanny.eval.common.similarity.backbone import Backbone, Ids, embed, load
from uncanny.eval.common.similarity.base import Matrix, TextPairs
from uncanny.eval.common.similarity.embeddings import EmbeddingStore, Packed
from uncanny.extras import install_hint
from uncanny.models.compute import choose_device
from uncanny.settings import settings

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


# Most tokens in a forward pass, and in all texts of a chunk: a chunk is embedded and scored before the next
# is read. On a CPU small batches stay in its caches and pad little; 16,384 tokens are some 400 texts and
# 50 MB at width 768.
BATCH_TOKENS = {"cpu": 512}
BATCH_TOKENS_GPU = 32_768
CHUNK_TOKENS = {"cpu": 16_384}
CHUNK_TOKENS_GPU = 131_072
_READ_AT_ONCE = 64


@dataclass(slots=True)
class Counts:
    """Distinct texts of each chunk, added up: `embedded` by a forward pass, `from_disk` without."""

    embedded: int = 0
    from_disk: int = 0


@dataclass(frozen=True, slots=True)
class _Entry:
    """Token ids of an entry's texts, None for a text without a word."""

    predicted: list[Ids | None]
    true: list[Ids | None]

    @property
    def ids(self) -> set[Ids]:
        """Those of all its texts."""
        return {ids for ids in (*self.predicted, *self.true) if ids is not None}


class BertScore:
    """BERTScore F1 as bert-score defines it: one layer, no idf, no rescaling; clipped to 0–1.

    `published_table`: the name of the published table that scores may stand beside. `store`: where embeddings
    stay between runs. `keep_all`: there also those of predicted texts.
    """

    def __init__(
        self,
        backbone: Backbone,
        described: dict[str, Any],
        *,
        published_table: str | None = None,
        batch_tokens: int | None = None,
        store: EmbeddingStore | None = None,
        keep_all: bool = False,
    ) -> None:
        self.described = described
        self.published_table = published_table
        self.counts = Counts()
        self._backbone, self._store, self._keep_all = backbone, store, keep_all
        kind = backbone.model.device.type
        self._batch_tokens = batch_tokens or BATCH_TOKENS.get(kind, BATCH_TOKENS_GPU)
        self._chunk_tokens = max(self._batch_tokens, CHUNK_TOKENS.get(kind, CHUNK_TOKENS_GPU))

    @property
    def compares_with_published(self) -> bool:
        """Whether there is a published table with this backbone and layer."""
        return self.published_table is not None

    def matrices(self, texts: Iterable[TextPairs]) -> Iterator[Matrix]:
        """One matrix for each entry, in order. Reads ahead some hundred texts, by their tokens."""
        try:
            for chunk in self._chunks(texts):
                yield from self._score(chunk)
        finally:
            if self._store is not None:
                self._store.flush()

    def _chunks(self, texts: Iterable[TextPairs]) -> Iterator[list[_Entry]]:
        """Entries whose distinct texts have together at most a chunk's tokens, and at least one entry."""
        chunk: list[_Entry] = []
        distinct: set[Ids] = set()
        tokens = 0
        for entry in self._tokenized(texts):
            new = entry.ids - distinct
            if chunk and tokens + sum(map(len, new)) > self._chunk_tokens:
                yield chunk
                chunk, distinct, tokens, new = [], set(), 0, entry.ids
            chunk.append(entry)
            distinct |= new
            tokens += sum(map(len, new))
        if chunk:
            yield chunk

    def _tokenized(self, texts: Iterable[TextPairs]) -> Iterator[_Entry]:
        source = iter(texts)
        while entries := list(islice(source, _READ_AT_ONCE)):
            texts_at_once = (text for entry in entries for text in (*entry.predicted, *entry.true))
            distinct = list(dict.fromkeys(texts_at_once))
            ids = dict(zip(distinct, self._backbone.ids(distinct), strict=True))
            for entry in entries:
                yield _Entry([ids[text] for text in entry.predicted], [ids[text] for text in entry.true])

    def _score(self, chunk: list[_Entry]) -> list[Matrix]:
        import torch

        with torch.inference_mode():
            embedded = self._embedded(chunk)

            def vectors(side: list[Ids | None]) -> list[Embedded]:
                return [embedded[ids] for ids in side if ids is not None]

            cells = [f1(vectors(each.predicted), vectors(each.true)) for each in chunk]
            # One transfer for all: waiting for a GPU after each image would cost more than the scores.
            flat = torch.cat([block.flatten() for block in cells]).cpu().double().numpy()
        ends = np.cumsum([block.numel() for block in cells])[:-1]
        return [_spread(entry, part) for entry, part in zip(chunk, np.split(flat, ends), strict=True)]

    def _embedded(self, chunk: list[_Entry]) -> dict[Ids, Embedded]:
        true = {ids for entry in chunk for ids in entry.true if ids is not None}
        texts = set[Ids]().union(*(entry.ids for entry in chunk))
        rows = self._from_disk(texts)
        missing = [ids for ids in texts if ids not in rows]
        made = embed(self._backbone, missing, self._batch_tokens)
        self.counts.from_disk += len(rows)
        self.counts.embedded += len(made)
        rows |= self._kept(made, texts if self._keep_all else true)
        return {ids: (vectors, self._backbone.weights(ids)) for ids, vectors in rows.items()}

    def _from_disk(self, texts: set[Ids]) -> dict[Ids, torch.Tensor]:
        import torch

        if self._store is None:
            return {}
        device = self._backbone.model.device
        return {ids: torch.from_numpy(rows).to(device) for ids, rows in self._store.load(texts).items()}

    def _kept(self, made: dict[Ids, torch.Tensor], keep: set[Ids]) -> dict[Ids, torch.Tensor]:
        """The same embeddings, those to keep as they will come back from disk: a second run scores alike."""
        import torch

        if self._store is None:
            return made
        for ids in keep & made.keys():
            packed = Packed.of(made[ids].cpu().numpy())
            self._store.keep(ids, packed)
            made[ids] = torch.from_numpy(packed.unpack()).to(made[ids].device)
        return made


def _spread(entry: _Entry, scores: np.ndarray[Any, np.dtype[np.float64]]) -> Matrix:
    """The scores in the cells of texts that have a word, 0 in all others."""
    cells = np.zeros((len(entry.predicted), len(entry.true)))
    rows = [at for at, ids in enumerate(entry.predicted) if ids is not None]
    columns = [at for at, ids in enumerate(entry.true) if ids is not None]
    cells[np.ix_(rows, columns)] = scores.reshape(len(rows), len(columns))
    return cells


_NEEDED = ("torch", "transformers", "bert_score")


def open_measure(parameters: MeasureParameters) -> BertScore:
    """BERTScore with the chosen backbone. Raises UsageError, with the remedy, for whatever is not there."""
    absent = [name for name in _NEEDED if find_spec(name) is None]
    if absent:
        raise UsageError(
            f"BERTScore needs {', '.join(absent)}, which is not installed",
            remedy=install_hint("semantic", instead="compare texts with chrf, which needs no model"),
        )
    chosen = parameters.backbone or weights.DEFAULT_BACKBONE
    path = weights.local_folder(chosen)
    layer = weights.layer_of(chosen, parameters.num_layers, is_path=path is not None)
    device = choose_device(parameters.device)
    folder = path if path is not None else weights.fetch(chosen, layer)
    try:
        content = weights.content_hash(folder)
    except OSError as error:
        raise UsageError(f"Backbone {chosen!r} cannot be read: {error}") from error
    name = weights.first_name(chosen) if path is None else folder.name
    backbone = load(folder, chosen, layer, device)
    limit = int(settings().embeddings_gb * 1e9)
    store = EmbeddingStore(_embeddings_folder(), f"{content}\n{layer}", limit) if limit else None
    return BertScore(
        backbone,
        _described(name, content, layer, is_path=path is not None),
        published_table=weights.published_table(chosen, layer, is_path=path is not None),
        batch_tokens=parameters.batch_tokens,
        store=store,
        keep_all=parameters.keep_all,
    )


def _described(name: str, content: str, layer: int, *, is_path: bool) -> dict[str, Any]:
    from bert_score.utils import get_hash

    # bert-score's own name for what was computed; ours is always the fast tokenizer under transformers 5.
    own = get_hash(name, layer, False, False, False, False)
    return {
        "measure": "bertscore",
        "backbone": name,
        "from": "folder" if is_path else "hub",
        "weights": content[:16],
        "num_layers": layer,
        "signature": own,
        # Without what torch was built for: scores are the same on a GPU within rounding.
        "versions": {
            package: version(package).split("+")[0] for package in ("bert-score", "transformers", "torch")
        },
    }


def _embeddings_folder() -> Path:
    if (chosen := settings().embeddings_dir) is not None:
        return chosen.expanduser()
    cache = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return (cache if cache.is_absolute() else Path.home() / ".cache") / "uncanny" / "embeddings"
