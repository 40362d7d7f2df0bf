"""A small run with pictures, texts that formats stumble over, and reviewers who disagree."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path

from PIL import Image

from uncanny.records.jsonl import read_records
from uncanny.records.reviews import Decision, ReviewedAnomaly, ReviewLog, new_review, review_image
from uncanny.schema import Annotation, Anomaly, SceneObject

AT = datetime(2026, 1, 1, tzinfo=UTC)
HOSTILE = (
    '=HYPERLINK("http://x","y")\n@2. Name: other\r\n<b a="1">&amp;]]></b>\t\x07 Reasoning: <image> é 手 😀'
)
FORMULAS = ("=1+1", "+1", "-1", "@SUM(A1)", "\tx", "'=x", "''")
SIZE = (64, 48)


def anomaly(name: str, box: tuple[int, int, int, int] | None = None, **more: object) -> Anomaly:
    fields = {
        "name": name,
        "phenomenon": f"{name} is seen.",
        "reasoning": f"{name} cannot be.",
        "severity": 20,
    }
    return Anomaly.model_validate(fields | {"box": box, "kind": "anatomy"} | more)


def make_run(
    folder: Path, images: Sequence[tuple[str, Sequence[Anomaly]]], **more: object
) -> list[Annotation]:
    """A run folder with a PNG an image, each of another colour, and its records, `status` ok unless given."""
    records = []
    for number, (name, anomalies) in enumerate(images):
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", SIZE, (number % 256, number // 256, 7)).save(file, "PNG")
        fields = {
            "image": name,
            "sha256": sha256(file.read_bytes()).hexdigest(),
            "width": SIZE[0],
            "height": SIZE[1],
            "status": "ok",
            "anomalies": tuple(anomalies),
            "objects": (SceneObject(name="hand", description="A hand."),),
            "model": "demo",
            "prompts": "packed@1",
        }
        records.append(Annotation.model_validate(fields | more))
    write_records(folder, records)
    return records


def write_records(folder: Path, records: Sequence[Annotation]) -> None:
    lines = "".join(record.model_dump_json() + "\n" for record in records)
    (folder / "annotations.jsonl").write_text(lines, encoding="utf-8")


def judge(folder: Path, record: Annotation, who: str, *decisions: Decision | None) -> None:
    """What `who` says of the anomalies of a record, in their order; None for nothing."""
    ReviewLog.of_run(folder).append(
        new_review(record, index, record.anomalies[index], who, decision, at=AT)
        for index, decision in enumerate(decisions)
        if decision is not None
    )


def usual_run(folder: Path) -> list[Annotation]:
    """Three images: one judged to the end, with a hostile text, one in part, one not at all."""
    records = make_run(
        folder,
        [
            (
                "photos/a b#1.png",
                [anomaly("Six fingers", (10, 5, 30, 40)), anomaly("=1+1", phenomenon=HOSTILE)],
            ),
            ("photos/b.png", [anomaly("Two moons", (0, 0, 64, 48), kind=None), anomaly("Bent wall")]),
            ("photos/c.png", [anomaly("No shadow", (1, 2, 3, 4), kind="light")]),
        ],
    )
    judge(folder, records[0], "ann", "accept", "accept")
    judge(folder, records[0], "bob", "accept", "unsure")
    judge(folder, records[0], "eve", "reject", "accept")
    judge(folder, records[1], "ann", "accept", None)
    return records


def many_records(folder: Path, count: int) -> None:
    """`count` records of four anomalies each, with their calls and two verdicts an anomaly; no pictures."""
    log = ReviewLog.of_run(folder)
    anomalies = tuple(anomaly(f"Fault {number}", (1, 2, 30, 40)) for number in range(4))
    with (folder / "annotations.jsonl").open("wb") as records, (folder / "calls.jsonl").open("wb") as calls:
        for start in range(0, count, 1_000):
            reviews = []
            for number in range(start, min(count, start + 1_000)):
                digest = sha256(str(number).encode()).hexdigest()
                record = Annotation(
                    image=f"photos/{number:06}.png",
                    sha256=digest,
                    width=64,
                    height=48,
                    status="ok",
                    anomalies=anomalies,
                    model="demo",
                    prompts="packed@1",
                )
                records.write(record.model_dump_json().encode() + b"\n")
                calls.write(b'{"image":"%s","agent":"SceneScanner","answer":"x"}\n' % record.image.encode())
                reviews += [
                    new_review(record, index, each, who, "accept", at=AT)
                    for index, each in enumerate(anomalies)
                    for who in ("ann", "bob")
                ]
            log.append(reviews)


def findings(run: Path) -> list[ReviewedAnomaly]:
    """All of a run as its reviews leave them, in the order of its records."""
    by_image = ReviewLog.of_run(run).by_image()
    records = read_records(run / "annotations.jsonl", Annotation)
    return [
        each for record in records for each in review_image(record, by_image.get(record.image, ())).anomalies
    ]
