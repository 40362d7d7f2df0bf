"""Texts scored by meaning, beside bert-score pair by pair and in one call, and bare forward passes."""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.common import apart, figure, peak_memory_mb, sized
from benchmarks.scores.semantic_texts import EACH, IMAGES, distilbert, images

LAYER = 5
BLOCK = sized(20, 4)
# bert-score pair by pair takes about a quarter of an hour for all images: measured on some of each block.
PAIRWISE = 2
WHOLE_IMAGES, WHOLE_MODELS = 10_774, 20
MEMORY_IMAGES = (sized(200, 2), sized(500, 4), sized(1_000, 6))

# What ours is beside, and the most of its time that is wanted.
NAMES = {
    "ours": ("ours", None),
    "bare": ("bare forward passes, distinct texts", 1.15),
    "again": ("ours again, true texts from disk", None),
    "one call": ("bert_score.score, all pairs in one call", 1.0),
    "pairwise": (f"BERTScorer pair by pair, {PAIRWISE} of {BLOCK} images scaled up", 1 / 6),
}

Fields = dict[str, tuple[list[str], list[str]]]


@dataclass(slots=True)
class Spent:
    """Seconds. With other work on the machine only those of CPU mean something."""

    wall: float = 0.0
    cpu: float = 0.0

    def on(self, work: Callable[[], Any], scale: float = 1.0) -> Any:
        wall, cpu = time.perf_counter(), time.process_time()
        result = work()
        self.wall += (time.perf_counter() - wall) * scale
        self.cpu += (time.process_time() - cpu) * scale
        return result


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="uncanny-") as folder:
        model = distilbert(Path(folder) / "model")
        _speed(model, Path(folder) / "embeddings")
        print("  width 768 and one layer, embeddings of true texts kept on disk")
        for count, peak in apart("benchmarks.scores.semantic", model):
            figure(f"peak memory after {count:,} images", peak, "MB")


def _speed(model: Path, embeddings: Path) -> None:
    import torch
    from bert_score import BERTScorer, score

    ours, library = _measure(model, LAYER, embeddings), BERTScorer(str(model), num_layers=LAYER)
    made = images(IMAGES)
    spent = {name: Spent() for name in NAMES}
    cells: list[float] = []
    worst = 0.0
    print(f"  {torch.get_num_threads()} threads, {IMAGES} images x {EACH} x {EACH} anomalies x 2 fields")
    _bare(ours, made[:4])
    for start in range(0, IMAGES, BLOCK):
        block = made[start : start + BLOCK]
        spent["bare"].on(partial(_bare, ours, block))
        found = spent["ours"].on(partial(_flat, ours, block))
        spent["again"].on(partial(_flat, ours, block))
        alone = spent["pairwise"].on(partial(_pair_by_pair, library, block[:PAIRWISE]), BLOCK / PAIRWISE)
        cells += found
        worst = max(worst, *(abs(a - b) for a, b in zip(alone, found, strict=False)))
    pairs = [pair for image in made for pair in _pairs(image)]
    predicted, true = [p for p, _ in pairs], [t for _, t in pairs]
    call = partial(score, predicted, true, model_type=str(model), num_layers=LAYER)
    f1 = spent["one call"].on(call)[2].tolist()
    _print(spent)
    worst_call = max(abs(a - b) for a, b in zip(f1, cells, strict=True))
    figure("largest difference of a score, pair by pair", worst)
    figure("largest difference of a score, in one call", worst_call)


def _print(spent: dict[str, Spent]) -> None:
    ours = spent["ours"]
    for key, (name, wanted) in list(NAMES.items())[1:]:
        figure("wall time", ours.wall, "s", spent[key].wall, name, wanted=wanted)
        figure("CPU time", ours.cpu, "s", spent[key].cpu, name, wanted=wanted)
    texts = IMAGES * EACH * 4
    whole = WHOLE_IMAGES * EACH * 2 * (WHOLE_MODELS + 1)
    hours = ours.wall / texts * whole / 3600
    figure("texts a second", texts / ours.wall)
    print(f"  {WHOLE_IMAGES:,} images x {WHOLE_MODELS} models with")
    print(f"    true texts embedded once are {whole:,} texts: {hours:.1f} hours at this speed")


def _measure(model: Path, layer: int, embeddings: Path) -> Any:
    from uncanny.eval.common.similarity.backbone import load
    from uncanny.eval.common.similarity.bertscore import BertScore
    from uncanny.eval.common.similarity.embeddings import EmbeddingStore

    store = EmbeddingStore(embeddings, str(layer), 10**10)
    return BertScore(load(model, "made", layer, "cpu"), {}, store=store)


def _flat(measure: Any, block: list[Fields]) -> list[float]:
    from uncanny.eval.common.similarity.base import TextPairs

    wanted = (TextPairs(*field) for image in block for field in image.values())
    return [cell for matrix in measure.matrices(wanted) for cell in matrix.ravel().tolist()]


def _bare(measure: Any, block: list[Fields]) -> None:
    """The limit: tokenized and sent through the same model, longest first, padded, nothing done with it."""
    import torch

    backbone, budget = measure._backbone, measure._batch_tokens
    texts = {text for image in block for field in image.values() for side in field for text in side}
    ids = sorted(backbone.tokenizer(list(texts), truncation=True, max_length=512)["input_ids"], key=len)
    with torch.inference_mode():
        while ids:
            many = max(1, budget // len(ids[-1]))
            batch, ids = ids[-many:], ids[:-many]
            padded = torch.zeros(len(batch), len(batch[-1]), dtype=torch.long)
            for row, one in enumerate(batch):
                padded[row, : len(one)] = torch.tensor(one)
            backbone.model(padded, attention_mask=(padded != 0).long())


def _pair_by_pair(library: Any, block: list[Fields]) -> list[float]:
    return [library.score([p], [t])[2].item() for image in block for p, t in _pairs(image)]


def _pairs(image: Fields) -> Iterator[tuple[str, str]]:
    for predicted, true in image.values():
        for one in predicted:
            for other in true:
                yield one, other


def _peak(model: Path) -> None:
    with tempfile.TemporaryDirectory(prefix="uncanny-") as folder:
        measure = _measure(model, 1, Path(folder))
        peaks = [(0, peak_memory_mb())]
        for at, _ in enumerate(measure.matrices(_wanted(MEMORY_IMAGES[-1])), 1):
            if at % 2 == 0 and at // 2 in MEMORY_IMAGES:
                peaks.append((at // 2, peak_memory_mb()))
    print(json.dumps(peaks))


def _wanted(count: int) -> Iterator[Any]:
    """Read as from files: texts are not kept."""
    from uncanny.eval.common.similarity.base import TextPairs

    for seed in range(count):
        for field in images(1, seed)[0].values():
            yield TextPairs(*field)


if __name__ == "__main__":
    _peak(Path(sys.argv[2]))
