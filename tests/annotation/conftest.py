"""A synthetic run for the tests of the report."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from PIL import Image, ImageDraw

import uncanny
from uncanny.records.run_manifest import FORMAT

HOSTILE = "</script><img src=x onerror=alert(1)><!-- \u2028 & \"'"
MANY_SCRIPTS = "سبع أصابع 👁️ 七本の指 𝕏"
STARTED = datetime(2026, 3, 1, 9, 0, tzinfo=UTC)
FLAWS = [
    ("Six fingers on the left hand", "The hand on the mug has six fingers.", "A human hand has five.", 8),
    ("Chair leg ends in the air", "The rear leg stops above the floor.", "Nothing carries the seat.", 22),
    ("Shadow against the light", "The shadow falls towards the window.", "Light comes from there.", 46),
    ("Clock with two number sevens", "7 stands twice on the dial.", "Dials count to twelve once.", 63),
    ("Handle without a hinge", "The door has a handle and no hinge.", "It could not turn.", 85),
]
STEPS = [
    ("ObjectPerceiver", 1, 3),
    ("AttributeAnalyzer", 1, 3),
    ("AttributeAnalyzer", 2, 3),
    ("RelationReasoner", 1, 3),
    ("RelationReasoner", 2, 3),
    ("AnomalyIntegrator", 1, 3),
    ("AnomalyIntegrator", 2, 3),
    ("AnomalyFormatter", 1, 1),
]


def draw(path: Path, seed: int) -> None:
    """A room of plain shapes."""
    dice = random.Random(seed)
    path.parent.mkdir(parents=True, exist_ok=True)
    image = Image.new("RGB", (640, 480), (226, 218, 204))
    pen = ImageDraw.Draw(image)
    pen.rectangle((0, 330, 640, 480), fill=(150 + seed * 13 % 60, 120, 96))
    pen.rectangle((60, 50, 220, 210), fill=(150, 190, 220), outline="white", width=10)
    x = dice.randrange(220, 380)
    pen.rectangle((x, 240, x + 200, 262), fill=(96, 62, 38))
    for leg in (x + 8, x + 90, x + 180):
        pen.rectangle((leg, 262, leg + 12, dice.randrange(330, 430)), fill=(96, 62, 38))
    pen.ellipse(
        (x + 60, 180, x + 60 + dice.randrange(30, 90), 240), fill=tuple(dice.randrange(255) for _ in "rgb")
    )
    image.save(path)


def annotation(number: int, status: str = "ok", **changes: Any) -> dict[str, Any]:
    flaws = (
        [FLAWS[(number + k) % len(FLAWS)] for k in range(number % 4)] if status in ("ok", "partial") else []
    )
    error = {
        "agent": "RelationReasoner",
        "step": 2,
        "object": "chair",
        "kind": "timeout",
        "message": "no answer in 60 s",
    }
    if status == "unreadable":
        error |= {
            "agent": "image",
            "step": 1,
            "object": None,
            "kind": "ImageError",
            "message": "cut off after 12 bytes",
        }
        changes |= {"width": None, "height": None, "sha256": None, "usage": {}}
    keys = ("name", "phenomenon", "reasoning", "severity")
    record = {
        "image": f"rooms/{number:05}.png",
        "sha256": "ab" * 32,
        "width": 640,
        "height": 480,
        "status": status,
        "anomalies": [
            dict(zip(keys, flaw, strict=True)) | {"objects": ["chair", "person"]} for flaw in flaws
        ],
        "objects": [{"name": "chair", "description": "a wooden chair"}],
        "model": "openai/gpt-4o",
        "errors": [] if status == "ok" else [error],
        "prompts": "annotate@1a2b3c4d",
        "usage": {
            "calls": sum(times for _, _, times in STEPS),
            "input_tokens": 60_000 + number,
            "cached_tokens": 41_000,
            "output_tokens": 5_000,
        },
    }
    return record | changes


def calls(record: dict[str, Any]) -> list[dict[str, Any]]:
    dice = random.Random(record["image"])
    rows: list[dict[str, Any]] = []
    clock = 0.0
    if record["status"] == "unreadable":
        return rows
    for agent, step, times in STEPS:
        took = 0.0
        for sample in range(times):
            latency = round(dice.uniform(0.7, 4.2), 2)
            took = max(took, latency)
            failed = record["status"] != "ok" and agent == "RelationReasoner" and step == 2 and sample == 0
            rows.append(
                {
                    "image": record["image"],
                    "agent": agent,
                    "step": step,
                    "sample": sample,
                    "model": "openai/gpt-4o",
                    "object": None if step == 1 and times == 1 else ["chair", "person", "window"][sample],
                    "prompt": f"{agent.lower()}@1a2b3c4d",
                    "asked": f"Look at the {agent} task. Report what is wrong.",
                    "answer": None
                    if failed
                    else f"Finding {sample} of {record['image']}: the leg is too short.",
                    "outcome": "error" if failed else "answered",
                    "detail": "no answer in 60 s" if failed else None,
                    "sees_image": agent != "AnomalyIntegrator",
                    "attempt": 3 if failed else 1,
                    "repair": 0,
                    "replayed": agent == "ObjectPerceiver" and sample == 2,
                    "input_tokens": None if failed else 2_700,
                    "cached_tokens": 1_900,
                    "output_tokens": None if failed else 230,
                    "cost_usd": None,
                    "latency_s": latency,
                    "started": (STARTED + timedelta(seconds=clock)).isoformat(timespec="milliseconds"),
                }
            )
        clock += took
    return rows


def make_run(folder: Path, records: list[dict[str, Any]], *, pictures: bool = True, **info: Any) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for number, record in enumerate(records if pictures else []):
        if record["status"] != "unreadable":
            draw(folder / record["image"], number)
            record["sha256"] = hashlib.sha256((folder / record["image"]).read_bytes()).hexdigest()
    rows = [row for record in records for row in calls(record)]
    for name, lines in (("annotations.jsonl", records), ("calls.jsonl", rows)):
        text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
        (folder / name).write_text(text, encoding="utf-8")
    outcomes = {"answered": 590, "unparseable": 4, "refused": 1, "error": 5}
    manifest = {
        "format": FORMAT,
        "uncanny": uncanny.__version__,
        "python": "3.11.7",
        "libraries": {"langgraph": "1.2.22"},
        "root": None,
        "state": "finished",
        "started": "2026-03-01T09:00:00Z",
        "updated": "2026-03-01T09:12:00Z",
        "model": "openai/gpt-4o",
        "roles": {"integrator": "openai/gpt-4o-mini"},
        "fallback": None,
        "parameters": {"openai/gpt-4o": {"temperature": 0.3, "top_p": 0.95, "max_output_tokens": 2000}},
        "prompts": {"id": "annotate@1a2b3c4d", "files": {"system": "1a2b"}, "system": "You inspect images."},
        "pixels": {"policy": {"max_side": 2048}, "changed": {"orientation": 3, "downscale": 2}},
        "totals": {
            "images": len(records),
            "calls": 600,
            "replayed": 12,
            "input_tokens": 1_240_000,
            "cached_tokens": 806_000,
            "output_tokens": 91_000,
            "cost_usd": None,
            "outcomes": outcomes,
            "seconds": 754.2,
        },
    }
    (folder / "run.json").write_text(json.dumps(manifest | info))
    return folder


def mixed_run(folder: Path) -> Path:
    records = [annotation(number) for number in range(9)]
    records[2] = annotation(2, "partial")
    records[4] = annotation(4, "failed")
    records[5] = annotation(5, "unreadable")
    records[7]["anomalies"][0] |= {"name": HOSTILE[:150], "phenomenon": HOSTILE, "reasoning": MANY_SCRIPTS}
    return make_run(folder, records)


@pytest.fixture(scope="session")
def write_run() -> Callable[..., Path]:
    """`make_run`, for tests that want a run of their own."""
    return make_run


@pytest.fixture(scope="session")
def record() -> Callable[..., dict[str, Any]]:
    """`annotation`: number, status and changes to a record."""
    return annotation


@pytest.fixture
def small_run(tmp_path: Path) -> Path:
    """Nine images: six ok, one partial, one failed, one unreadable; one with hostile text."""
    return mixed_run(tmp_path / "kitchen <b>")


@pytest.fixture(scope="module")
def shared_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same, for tests that leave it as it is."""
    return mixed_run(tmp_path_factory.mktemp("runs") / "kitchen <b>")
