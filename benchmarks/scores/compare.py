"""Two runs over 10,000 images compared, beside sacrebleu on all pairs of texts, one after the other."""

from __future__ import annotations

import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson

from benchmarks.common import figure, sized

IMAGES, EACH = sized(10_000, 20), 6
# Half of what the second run says is the first one's in other words, the rest is new.
IN_COMMON, WORDS_CHANGED = 0.5, 0.25
# sacrebleu takes some seven minutes for all images: measured on some of them.
NAIVE_IMAGES = sized(100, 5)
# Words of a phenomenon and of a reasoning, from a few to the longest that models write.
_WORDS = {"phenomenon": (18, 45), "reasoning": (22, 60)}
_WANTED_S = 30


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="uncanny-") as folder:
        files = [Path(folder) / f"{name}.jsonl" for name in "ab"]
        write(files)
        _whole(files)
        _side_by_side(files)


def _whole(files: list[Path]) -> None:
    command = [sys.executable, "-m", "uncanny", "compare", *map(str, files), "--no-report"]
    started, before = time.perf_counter(), _cpu()
    done = subprocess.run([*command, "--json", "-"], check=True, capture_output=True)
    wall, cpu = time.perf_counter() - started, _cpu() - before
    content = orjson.loads(done.stdout)
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1000
    anomalies = content["anomalies"]
    print(f"  `uncanny compare`, {IMAGES:,} images x 2 runs x {EACH} anomalies, chrF, 10,000 resamples:")
    figure("wall time", wall, "s", _WANTED_S)
    figure("CPU time", cpu, "s")
    figure("peak memory", peak, "MB")
    print(f"    {anomalies['in_common']:,} in common, {anomalies['only_a']:,} only A")


def paired(files: list[Path]) -> tuple[Any, Any]:
    """Pairs of records of the same image, and how their anomalies are matched."""
    from uncanny.eval.compare.data import pair_runs, read_runs
    from uncanny.eval.compare.score.match import THRESHOLDS, MatchSettings

    first, second = read_runs(files, None)
    return pair_runs(first, second, "image").pairs, MatchSettings(THRESHOLDS["chrf"])


def texts(pair: Any) -> Any:
    from uncanny.eval.compare.score.match import fields_of

    return fields_of(pair.a.anomalies, pair.b.anomalies)


def _side_by_side(files: list[Path]) -> None:
    """The matches themselves, ours and with sacrebleu's own call for every pair of texts."""
    from uncanny.eval.common.similarity.base import mutual, open_measure
    from uncanny.eval.compare.score.match import match_anomalies

    pairs, settings = paired(files)
    some = [texts(pair) for pair in pairs[:NAIVE_IMAGES]]
    started = time.process_time()
    by_pairs = [naive(each) for each in some]
    naive_s = time.process_time() - started
    started = time.process_time()
    ours = list(mutual(open_measure("chrf"), some, 0.5, settings.similarity))
    ours_s = time.process_time() - started
    whole = mutual(open_measure("chrf"), some, 0.5, 0.0)
    worst = max(float(abs(a - b).max()) for a, b in zip(by_pairs, whole, strict=True))
    matched = []
    for matrices in (by_pairs, ours):
        rows = zip(pairs, matrices, strict=False)
        matched.append(
            [
                [
                    (match.a, match.b)
                    for match in match_anomalies(
                        pair.a.anomalies, pair.b.anomalies, cells, settings, with_boxes=False
                    )
                ]
                for pair, cells in rows
            ]
        )
    print(f"  chrF of all pairs of {NAIVE_IMAGES} images, both directions and fields, CPU:")
    figure("CPU time of the matches", ours_s, "s", naive_s, "sacrebleu pair by pair")
    print(f"    largest difference of a similarity {worst:.1e}; the same matches: {matched[0] == matched[1]}")


def naive(fields: Any) -> Any:
    import numpy as np
    from sacrebleu.metrics.chrf import CHRF

    chrf = CHRF()
    cells = []
    for pairs in (fields.phenomenon, fields.reasoning):
        forth = [[chrf.sentence_score(a, [b]).score / 100 for b in pairs.true] for a in pairs.predicted]
        back = [[chrf.sentence_score(b, [a]).score / 100 for b in pairs.true] for a in pairs.predicted]
        cells.append((np.array(forth) + np.array(back)) / 2)
    return (cells[0] + cells[1]) / 2


def write(files: list[Path], images: int = IMAGES) -> None:
    rng = random.Random(0)
    words = _vocabulary(rng)
    with files[0].open("wb") as first, files[1].open("wb") as second:
        for number in range(images):
            ours = [_anomaly(rng, words) for _ in range(EACH)]
            theirs = [
                _in_other_words(each, rng, words) if rng.random() < IN_COMMON else _anomaly(rng, words)
                for each in ours
            ]
            rng.shuffle(theirs)
            for file, anomalies in ((first, ours), (second, theirs)):
                file.write(orjson.dumps(_record(number, anomalies)) + b"\n")


def _vocabulary(rng: random.Random) -> list[str]:
    """Made-up words of syllables, as often alike as those of a language are."""
    syllables = [c + v + e for c in "bcdfghlmnprst" for v in "aeiou" for e in ("", "n", "r", "s", "t")]
    return ["".join(rng.choices(syllables, k=rng.randint(1, 3))) for _ in range(6_000)]


def _anomaly(rng: random.Random, words: list[str]) -> dict[str, Any]:
    made = {field: " ".join(_drawn(rng, words, rng.randint(*span))) for field, span in _WORDS.items()}
    return {"name": "made up", **made, "severity": rng.randrange(101), "objects": []}


def _drawn(rng: random.Random, words: list[str], number: int) -> Iterator[str]:
    for _ in range(number):
        yield words[int(len(words) * rng.random() ** 3)]


def _in_other_words(anomaly: dict[str, Any], rng: random.Random, words: list[str]) -> dict[str, Any]:
    changed = {
        field: " ".join(
            next(_drawn(rng, words, 1)) if rng.random() < WORDS_CHANGED else word
            for word in anomaly[field].split()
        )
        for field in _WORDS
    }
    return anomaly | changed


def _record(number: int, anomalies: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "image": f"{number:05}.png",
        "sha256": f"{number:064x}",
        "width": 1024,
        "height": 1024,
        "status": "ok",
        "anomalies": anomalies,
        "objects": [{"name": "cat", "description": "A cat on a mat."}],
        "errors": [],
        "model": "made/up",
        "prompts": "annotate@1",
        "usage": {"calls": 50, "input_tokens": 1000, "cached_tokens": 0, "output_tokens": 10},
    }


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
