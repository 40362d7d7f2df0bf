"""Texts scored by meaning, beside bert-score pair by pair and in one call, and bare forward passes."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.semantic_texts import EACH, IMAGES, distilbert, images

LAYER = 5
BLOCK = 20
# bert-score pair by pair takes about a quarter of an hour for all images: measured on some of each block.
PAIRWISE = 2
WHOLE_IMAGES, WHOLE_MODELS = 10_774, 20
MEMORY_IMAGES = (200, 1_000)

Fields = dict[str, tuple[list[str], list[str]]]


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="uncanny-") as folder:
        model = distilbert(Path(folder) / "model")
        _speed(model, Path(folder) / "embeddings")
        print("  peak memory at width 768 and one layer, embeddings of true texts kept on disk:")
        for count in MEMORY_IMAGES:
            command = [sys.executable, "-m", "benchmarks.semantic", str(model), str(count)]
            said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
            print(f"    {count:>6,} images  {said.strip()}")


def _speed(model: Path, embeddings: Path) -> None:
    import torch
    from bert_score import BERTScorer, score

    ours, library = _measure(model, LAYER, embeddings), BERTScorer(str(model), num_layers=LAYER)
    made = images(IMAGES)
    spent = dict.fromkeys(("bare", "ours", "again", "pairwise", "one call"), 0.0)
    cells: list[float] = []
    worst = 0.0
    print(f"  {torch.get_num_threads()} threads, {IMAGES} images x {EACH} x {EACH} anomalies x 2 fields")
    _bare(ours, made[:4])
    for start in range(0, IMAGES, BLOCK):
        block = made[start : start + BLOCK]
        spent["bare"] += _timed(partial(_bare, ours, block))[0]
        took, found = _timed(partial(_flat, ours, block))
        spent["ours"] += took
        cells += found
        spent["again"] += _timed(partial(_flat, ours, block))[0]
        took, alone = _timed(partial(_pair_by_pair, library, block[:PAIRWISE]))
        spent["pairwise"] += took * BLOCK / PAIRWISE
        worst = max(worst, *(abs(a - b) for a, b in zip(alone, found, strict=False)))
    pairs = [pair for image in made for pair in _pairs(image)]
    spent["one call"], (_, _, f1) = _timed(
        lambda: score([p for p, _ in pairs], [t for _, t in pairs], model_type=str(model), num_layers=LAYER)
    )
    worst_call = max(abs(a - b) for a, b in zip(f1.tolist(), cells, strict=True))
    _print(spent, worst, worst_call)


def _print(spent: dict[str, float], worst: float, worst_call: float) -> None:
    ours = spent["ours"]
    names = {
        "bare": ("bare forward passes over the distinct texts", "ours at most 1.15 of it"),
        "ours": ("ours", ""),
        "again": ("ours again, true texts from disk", ""),
        "one call": ("bert_score.score, all pairs in one call", "ours faster"),
        "pairwise": (
            f"BERTScorer pair by pair, {PAIRWISE} of {BLOCK} images scaled up",
            "ours 6 times faster",
        ),
    }
    for key, (name, wanted) in names.items():
        ratio = f"{spent[key] / ours:6.2f} of ours"
        print(f"  {name:<52} {spent[key]:8.1f} s  {ratio}  {f'(wanted: {wanted})' if wanted else ''}")
    print(f"  ours of bare: {ours / spent['bare']:.3f}")
    print(f"  largest difference of a score: {worst:.1e} pair by pair, {worst_call:.1e} in one call")
    texts = IMAGES * EACH * 4
    whole = WHOLE_IMAGES * EACH * 2 * (WHOLE_MODELS + 1)
    hours = ours / texts * whole / 3600
    print(f"  {texts / ours:.1f} texts a second; {WHOLE_IMAGES:,} images x {WHOLE_MODELS} models, true texts")
    print(f"    embedded once, are {whole:,} texts: {hours:.1f} hours at this speed")


def _measure(model: Path, layer: int, embeddings: Path) -> Any:
    from uncanny.eval.semantic.backbone import load
    from uncanny.eval.semantic.bertscore import BertScore
    from uncanny.eval.semantic.embedding_store import EmbeddingStore

    store = EmbeddingStore(embeddings, str(layer), 10**10)
    return BertScore(load(model, "made", layer, "cpu"), {}, store=store)


def _flat(measure: Any, block: list[Fields]) -> list[float]:
    from uncanny.eval.semantic.similarity import TextPairs

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


def _timed(work: Callable[[], Any]) -> tuple[float, Any]:
    began = time.perf_counter()
    result = work()
    return time.perf_counter() - began, result


def _peak(model: Path, count: int) -> None:
    with tempfile.TemporaryDirectory(prefix="uncanny-") as folder:
        measure = _measure(model, 1, Path(folder))
        loaded = _high_water()
        cells = sum(matrix.size for matrix in measure.matrices(_wanted(count)))
        print(f"{_high_water():,} MB, {loaded:,} MB before the first text; {cells:,} scores")


def _wanted(count: int) -> Iterator[Any]:
    """Read as from files: texts are not kept."""
    from uncanny.eval.semantic.similarity import TextPairs

    for seed in range(count):
        for field in images(1, seed)[0].values():
            yield TextPairs(*field)


def _high_water() -> int:
    """Peak memory in MB. Unlike `ru_maxrss` it leaves out the process that started this one."""
    found = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    return int(found[1]) // 1000 if found else 0


if __name__ == "__main__":
    _peak(Path(sys.argv[1]), int(sys.argv[2]))
