"""A folder of images from `uncanny demo` to an exported data set, with the mistakes that users made."""

from __future__ import annotations

import csv
import html
import json
from pathlib import Path

import pytest

from tests.runs.e2e import Server
from tests.whole_jobs.conftest import Shell, copy

# Many processes: a busy machine takes its time.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


def test_a_folder_is_annotated(shell: Shell, server: Server, scenes: Path) -> None:
    photos = copy(scenes, shell.folder / "photos", "d01-six-fingers.png", "r01-cup-floating.webp")
    (photos / "notes.txt").write_text("ask Ann")
    (photos / "cut.png").write_bytes((scenes / "d02-three-arms.png").read_bytes()[:3000])
    (photos / "new.heic").write_bytes(b"\0\0\0\x18ftypheic" + bytes(40))

    # Before anything is asked.
    assert "Did you mean annotate" in shell.mistake("anotate", "photos", "-m", "demo")
    assert "Pass -o runs" in shell.mistake("annotate", "photos", "-m", "demo")
    (shell.folder / ".env").write_text("OPENAI_API_KEY=sk-in-a-file\n")
    unset = shell.mistake("annotate", "photos", "-m", "openai/gpt-4o", "-o", "r", OPENAI_API_KEY="")
    assert "OPENAI_API_KEY is not set" in unset
    assert ".env" in unset
    assert "sk-in-a-file" not in unset
    dry = shell.uncanny("annotate", "photos", "-m", "openai-compatible/any", "--dry-run")
    assert dry.code == 0
    assert "needs the server's address" in dry.out + dry.err

    # The run itself: what cannot be read is a record, and said.
    done = shell.uncanny("annotate", "photos", "-m", "demo", "-o", "runs/a")
    assert done.code == 1
    assert "Raised hand has six fingers" in done.out
    assert "photos/cut.png" in done.out
    assert "photos/new.heic" in done.out
    # To a file progress is seen from the start.
    assert done.err.splitlines()[0].startswith("4 images")
    records = [json.loads(line) for line in (shell.folder / "runs/a/annotations.jsonl").open()]
    assert sorted(record["status"] for record in records) == ["ok", "ok", "unreadable", "unreadable"]

    # Another command does not go on with it, and says so in a line.
    other = shell.mistake("detect", "photos", "-m", "demo", "-o", "runs/a")
    assert "contains a run of `annotate`" in other
    assert "other settings" in shell.mistake(
        "annotate", "photos", "-m", "demo", "-o", "runs/a", "--repeats", 2
    )

    # A hosted model: addresses without /v1, and with one too much, are put right.
    for model, address in (("openai/any", server.url), ("anthropic/any", server.v1)):
        out = f"runs/{model.split('/')[0]}"
        hosted = shell.uncanny(
            "annotate", photos / "r01-cup-floating.webp", "-m", model, "--base-url", address, "-o", out
        )
        assert hosted.code == 0, hosted.err
        manifest = json.loads((shell.folder / out / "run.json").read_text())
        assert manifest["totals"]["calls"] > 0, hosted.err

    exported = shell.uncanny("export", "runs/a", "--all", "--to", "csv,coco", "-o", "data")
    assert exported.code == 0, exported.err
    with (shell.folder / "data" / "anomalies.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    page = (shell.folder / "runs/a/report.html").read_text(encoding="utf-8")
    names = [each["name"] for record in records for each in record["anomalies"] or ()]
    assert len(names) > 0
    assert sorted(row["name"] for row in rows if row["name"]) == sorted(names)
    assert all(html.escape(name) in page for name in names)
