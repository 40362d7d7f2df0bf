"""Auditing 100,000 annotations with 10,000 bootstrap resamples, and coverage of the intervals."""

from __future__ import annotations

import json
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import orjson

from benchmarks.common import apart, figure, peak_memory_mb, sized
from benchmarks.scores import audit_coverage

ANNOTATIONS = sized(100_000, 600)
# Of the published audit: 15 generators, about 6.3 anomalies an image.
RATE = 6.3
CASES = {
    "15 generators, images independent": (15, None),
    "15 generators, paired by prompt": (15, "stem"),
    "1 generator": (1, None),
}


def write_sets(folder: Path, generators: int) -> None:
    """Annotations as a run writes them, without pictures; severities are any integers, all images differ."""
    text = "Something that cannot be so, told in a sentence of some length, as models do."
    for generator in range(generators):
        rng = np.random.default_rng(generator)
        with (folder / f"{generator}.jsonl").open("wb") as file:
            for index, count in enumerate(rng.poisson(RATE, ANNOTATIONS // generators)):
                anomalies = [
                    {
                        "name": f"flaw {severity % 37}",
                        "phenomenon": text,
                        "reasoning": text,
                        "severity": severity,
                    }
                    for severity in rng.integers(0, 61, count).tolist()
                ]
                record = {
                    "image": f"images/{index:06}.png",
                    "sha256": f"{index:064}",
                    "width": 1024,
                    "height": 1024,
                    "status": "ok",
                    "anomalies": anomalies,
                    "objects": [{"name": "hand", "description": text}] * 8,
                    "errors": [],
                    "model": "openai/any",
                    "prompts": "annotate@0",
                }
                file.write(orjson.dumps(record) + b"\n")


def measure(folder: Path, pair_by: str | None) -> None:
    from uncanny.eval.audit.data.load import find_pairing, load_generators
    from uncanny.eval.audit.score.score import score_audit
    from uncanny.eval.common.inputs.sources import read_sources

    sources = read_sources({path.stem: path for path in sorted(folder.glob("*.jsonl"))})
    began, busy = time.perf_counter(), time.process_time()
    generators = load_generators(sources, pairing=find_pairing(pair_by, sources))
    read = time.perf_counter() - began
    result = score_audit(generators, pair_by=pair_by)
    wall, processor = time.perf_counter() - began, time.process_time() - busy
    images = sum(score.images for score in result.leaderboard.generators.values())
    print(json.dumps([images, result.resamples, wall, read, processor, peak_memory_mb()]))


def main() -> None:
    for name, (generators, pair_by) in CASES.items():
        with tempfile.TemporaryDirectory() as folder:
            write_sets(Path(folder), generators)
            images, resamples, wall, read, cpu, peak = apart("benchmarks.scores.audit", folder, pair_by or "")
            print(f"  {name}: {images:,} annotations, {resamples:,} resamples, on two cores")
            figure(f"{name}, wall time", wall, "s", 20)
            figure(f"{name}, wall time of reading", read, "s")
            figure(f"{name}, CPU time", cpu, "s")
            figure(f"{name}, peak memory", peak, "MB", 1_000)
    audit_coverage.main()


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        measure(Path(sys.argv[2]), sys.argv[3] or None)
    else:
        main()
