"""BERTScore as a measure of similarity: every distinct text embedded once, all pairs from the embeddings."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from uncanny.eval.semantic import greedy_match
from uncanny.eval.semantic.backbone import Backbone
from uncanny.eval.semantic.embed import Ids, embed
from uncanny.eval.semantic.embedding_store import EmbeddingStore
from uncanny.eval.semantic.packed import Packed
from uncanny.eval.semantic.similarity import Matrix, TextPairs

if TYPE_CHECKING:
    import torch

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


class BertScore:
    """BERTScore F1 as bert-score defines it: one layer, no idf, no rescaling; clipped to 0–1.

    `published_table`: the name of the published table that scores may stand beside. `store`: where embeddings
    stay between runs. `keep_all`: there also those of predicted texts. `on_texts`: told how many texts were
    embedded, after each batch.
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
        on_texts: Callable[[int], None] | None = None,
    ) -> None:
        self.described = described
        self.published_table = published_table
        self.counts = Counts()
        self.on_texts = on_texts
        self._backbone, self._store, self._keep_all = backbone, store, keep_all
        kind = backbone.model.device.type
        self._batch_tokens = batch_tokens or BATCH_TOKENS.get(kind, BATCH_TOKENS_GPU)
        self._chunk_tokens = max(self._batch_tokens, CHUNK_TOKENS.get(kind, CHUNK_TOKENS_GPU))

    @property
    def compares_with_published(self) -> bool:
        """Whether there is a published table with this backbone and layer."""
        return self.published_table is not None

    def matrices(self, wanted: Iterable[TextPairs]) -> Iterator[Matrix]:
        """One matrix for each entry, in order. Reads ahead some hundred texts, by their tokens."""
        try:
            for chunk in self._chunks(wanted):
                yield from self._score(chunk)
        finally:
            if self._store is not None:
                self._store.flush()

    def _chunks(self, wanted: Iterable[TextPairs]) -> Iterator[list[_Entry]]:
        """Entries whose distinct texts have together at most a chunk's tokens, and at least one entry."""
        chunk: list[_Entry] = []
        texts: set[Ids] = set()
        tokens = 0
        for entry in self._tokenized(wanted):
            new = {ids for ids in (*entry.predicted, *entry.true) if ids is not None} - texts
            more = sum(map(len, new))
            if chunk and tokens + more > self._chunk_tokens:
                yield chunk
                chunk, texts, tokens = [], set(), 0
                new = {ids for ids in (*entry.predicted, *entry.true) if ids is not None}
                more = sum(map(len, new))
            chunk.append(entry)
            texts |= new
            tokens += more
        if chunk:
            yield chunk

    def _tokenized(self, wanted: Iterable[TextPairs]) -> Iterator[_Entry]:
        source = iter(wanted)
        while entries := list(islice(source, _READ_AT_ONCE)):
            texts = list(dict.fromkeys(text for entry in entries for text in (*entry.predicted, *entry.true)))
            ids = dict(zip(texts, self._backbone.ids(texts), strict=True))
            for entry in entries:
                yield _Entry([ids[text] for text in entry.predicted], [ids[text] for text in entry.true])

    def _score(self, chunk: list[_Entry]) -> list[Matrix]:
        import torch

        with torch.inference_mode():
            embedded = self._embedded(chunk)
            cells = [self._cells(entry, embedded) for entry in chunk]
            # One transfer for all: waiting for a GPU after each image would cost more than the scores.
            flat = torch.cat([block.flatten() for block in cells]).cpu().double().numpy()
        ends = np.cumsum([block.numel() for block in cells])[:-1]
        return [_spread(entry, part) for entry, part in zip(chunk, np.split(flat, ends), strict=True)]

    def _cells(self, entry: _Entry, embedded: dict[Ids, greedy_match.Embedded]) -> torch.Tensor:
        predicted = [embedded[ids] for ids in entry.predicted if ids is not None]
        true = [embedded[ids] for ids in entry.true if ids is not None]
        return greedy_match.f1(predicted, true)

    def _embedded(self, chunk: list[_Entry]) -> dict[Ids, greedy_match.Embedded]:
        true = {ids for entry in chunk for ids in entry.true if ids is not None}
        texts = true | {ids for entry in chunk for ids in entry.predicted if ids is not None}
        rows = self._from_disk(texts)
        missing = [ids for ids in texts if ids not in rows]
        made = embed(self._backbone, missing, self._batch_tokens, self.on_texts)
        self.counts.from_disk += len(rows)
        self.counts.embedded += len(made)
        rows |= self._kept(made, texts if self._keep_all else true)
        return {ids: (found, self._backbone.weights(ids)) for ids, found in rows.items()}

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


def _spread(entry: _Entry, found: np.ndarray[Any, np.dtype[np.float64]]) -> Matrix:
    """The scores in the cells of texts that have a word, 0 in all others."""
    cells = np.zeros((len(entry.predicted), len(entry.true)))
    rows = [at for at, ids in enumerate(entry.predicted) if ids is not None]
    columns = [at for at, ids in enumerate(entry.true) if ids is not None]
    cells[np.ix_(rows, columns)] = found.reshape(len(rows), len(columns))
    return cells
