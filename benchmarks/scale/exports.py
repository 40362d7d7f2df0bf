"""A reviewed run of 20,000 images exported to each form, beside reading and validating its records alone."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path

from benchmarks.common import figure, sized

IMAGES, ANOMALIES, REVIEWERS = sized(20_000, 1_000), 4, 2
FORMS = ("jsonl", "csv", "parquet", "coco", "labelstudio", "cvat", "sft", "agents")
_READ = """
import sys
from pathlib import Path
from uncanny.eval.common.inputs.runs import stream_annotations
print(sum(1 for _ in stream_annotations(Path(sys.argv[1]) / "annotations.jsonl")))
"""


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="uncanny-") as folder:
        run = Path(folder) / "run"
        run.mkdir()
        _write(run)
        print(f"  {IMAGES:,} images x {ANOMALIES} anomalies x {REVIEWERS} verdicts")
        alone, memory = _measured([sys.executable, "-c", _READ, str(run)])
        figure("reading the records alone, peak memory", memory, "MB")
        for form in FORMS:
            out = str(Path(folder) / form)
            command = [sys.executable, "-m", "uncanny", "export", str(run), "--to", form, "-o", out, "-q"]
            cpu, memory = _measured(command)
            figure(f"--to {form}, CPU time", cpu, "s", alone, "reading the records alone", wanted=None)
            figure(f"--to {form}, peak memory", memory, "MB")


def _measured(command: list[str]) -> tuple[float, int]:
    """CPU seconds and peak memory in MB of a process: a child of a child, which counts by itself."""
    script = (
        "import resource, subprocess, sys;"
        "subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL);"
        "used = resource.getrusage(resource.RUSAGE_CHILDREN);"
        "print(used.ru_utime + used.ru_stime, used.ru_maxrss)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, *command], check=True, capture_output=True, text=True
    )
    cpu, peak = done.stdout.split()
    return float(cpu), int(peak) // 1000


def _write(run: Path) -> None:
    from uncanny.records.reviews import Review, ReviewLog, quadruple_sha256
    from uncanny.schema import Annotation, Anomaly

    text = " ".join(f"word{number}" for number in range(25))
    anomalies = tuple(
        Anomaly(name=f"Fault {number}", phenomenon=text, reasoning=text, severity=20, box=(1, 2, 30, 40))
        for number in range(ANOMALIES)
    )
    hashes = [quadruple_sha256(each) for each in anomalies]
    at, log = datetime(2026, 1, 1, tzinfo=UTC), ReviewLog.of_run(run)
    with (run / "annotations.jsonl").open("wb") as records, (run / "calls.jsonl").open("wb") as calls:
        for number in range(IMAGES):
            image, digest = f"photos/{number:06}.png", sha256(str(number).encode()).hexdigest()
            record = Annotation(
                image=image,
                sha256=digest,
                width=1024,
                height=768,
                status="ok",
                anomalies=anomalies,
                model="demo",
                prompts="packed@1",
            )
            records.write(record.model_dump_json().encode() + b"\n")
            calls.write(b'{"image":"%s","agent":"SceneScanner","answer":"x"}\n' % image.encode())
            if number % 1_000 == 0:
                names = [f"photos/{each:06}.png" for each in range(number, number + 1_000)]
                log.append(
                    Review(
                        image=each, anomaly=index, decision="accept", reviewer=who, at=at, text_sha256=hash
                    )
                    for each in names
                    for index, hash in enumerate(hashes)
                    for who in ("ann", "bob")
                )
