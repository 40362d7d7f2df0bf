"""A stress table of 100,000 rows: reading, joining, grouping and testing, beside a plain pandas groupby."""

from __future__ import annotations

import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from benchmarks.common import apart, figure, peak_memory_mb, sized

EDITS, REAL = sized(70_000, 700), sized(30_000, 300)
METRICS = ("mask_ratio", "ssim", "mse", "post_edit_ratio", "largest_component_ratio", "lpips")
LEVELS = ("method", "model", "dataset", "shape")
PHRASES = sized(2_000, 20)


def write_tables(folder: Path, edits: int = EDITS, real: int = REAL) -> None:
    """Edits as `edits measure` writes them, with originals, and predictions on both as JSON Lines."""
    rng = np.random.default_rng(0)
    figures = {name: rng.random(edits) for name in METRICS}
    levels = {name: rng.integers(0, 3 + place * 3, edits) for place, name in enumerate(LEVELS)}
    phrases = rng.integers(0, PHRASES, edits)
    scores = np.clip(rng.normal(0.4 + 0.4 * figures["mask_ratio"], 0.2), 0, 1)
    with (folder / "edits.jsonl").open("wb") as meta, (folder / "p.jsonl").open("wb") as predictions:
        for place in range(edits):
            edit: dict[str, Any] = {
                "id": f"e{place}",
                "original": f"original/{place % real:06}.png",
                "edited": f"edited/{place:06}.png",
                "label": f"thing {phrases[place]}",
                "edited_label": "another thing",
                **{name: float(values[place]) for name, values in figures.items()},
                **{name: f"{name} {values[place]}" for name, values in levels.items()},
            }
            meta.write(orjson.dumps(edit) + b"\n")
            predictions.write(orjson.dumps({"image": edit["edited"], "score": float(scores[place])}) + b"\n")
        for place, score in enumerate(np.clip(rng.normal(0.35, 0.2, real), 0, 1).tolist()):
            predictions.write(orjson.dumps({"image": f"original/{place:06}.png", "score": score}) + b"\n")


def ours(folder: Path) -> dict[str, float]:
    from uncanny.edits import stress

    scores = stress(folder / "p.jsonl", meta=folder / "edits.jsonl")
    scores.to_json()
    first = next(iter(scores.detectors.values())).first
    return {
        f"{factor.name} {group.name}": group.recall.value
        for factor in first.factors.values()
        for group in factor.groups
        if group.recall.value is not None
    }


def plain(folder: Path) -> dict[str, float]:
    """Recall by bin, level and phrase alone: no checks, intervals, tests or AUC."""
    import pandas

    meta = pandas.read_json(folder / "edits.jsonl", lines=True)
    predictions = pandas.read_json(folder / "p.jsonl", lines=True)
    table = meta.merge(predictions, left_on="edited", right_on="image")
    table["found"] = table["score"] >= 0.5
    recalls: dict[str, float] = {}
    for name in METRICS:
        low, high = table[name].quantile([0.25, 0.75])
        bins = np.where(table[name] < low, "small", np.where(table[name] > high, "large", "medium"))
        recalls |= {f"{name} {group}": mean for group, mean in table.groupby(bins)["found"].mean().items()}
    for name in LEVELS:
        recalls |= {f"{name} {group}": mean for group, mean in table.groupby(name)["found"].mean().items()}
    table["phrase"] = table["label"].str.lower() + " → " + table["edited_label"].str.lower()
    grouped = table.groupby("phrase")["found"]
    means = grouped.mean()[grouped.size() >= 20].sort_values()
    return recalls | {f"directional {group}": mean for group, mean in means.items()}


def measure(kind: str, folder: Path) -> None:
    began = time.perf_counter()
    recalls = ours(folder) if kind == "ours" else plain(folder)
    wall = time.perf_counter() - began
    print(json.dumps({"recalls": recalls, "wall": wall, "peak": peak_memory_mb()}))


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_tables(folder)
        walls: dict[str, list[float]] = {"ours": [], "plain": []}
        results: dict[str, Any] = {}
        for _ in range(3):
            for kind in walls:
                results[kind] = apart("benchmarks.scores.stress", kind, folder)
                walls[kind].append(results[kind]["wall"])
    same = results["ours"]["recalls"].keys() == results["plain"]["recalls"].keys() and all(
        abs(value - results["plain"]["recalls"][key]) < 1e-9
        for key, value in results["ours"]["recalls"].items()
    )
    wall, other = (sorted(walls[kind])[1] for kind in ("ours", "plain"))
    groups = len(results["ours"]["recalls"])
    print(f"  {EDITS + REAL:,} predictions, {EDITS:,} edits, {groups:,} groups; the same recalls: {same}")
    figure("wall time (better: 3 s)", wall, "s", 10)
    for what, unit, own, plains in (
        ("wall time", "s", wall, other),
        ("peak memory", "MB", results["ours"]["peak"], results["plain"]["peak"]),
    ):
        figure(what, own, unit, plains, "recall alone with pandas", wanted=None)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        measure(sys.argv[2], Path(sys.argv[3]))
    else:
        main()
