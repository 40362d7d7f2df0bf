"""The review page at 100,000 findings: how soon the server, the page and the next finding are there."""

from __future__ import annotations

import hashlib
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import httpx2
import orjson
from PIL import Image

import uncanny
from benchmarks.common import figure, sized
from uncanny.records.reviews import Decision, ReviewLog, new_review
from uncanny.schema import Annotation

IMAGES, FINDINGS = sized(16_700, 40), 6
PICTURES, SIDE = 40, 1024
JUDGED = sized(50_000, 60)
# Images of the sample that is judged whole.
SAMPLE = sized(500, 8)
STEPS = sized(200, 6)
# The most that is wanted, as medians.
READY_MS, PAINTED_MS = 300, 50
WORDS = [
    "hand",
    "shadow",
    "edge",
    "of",
    "the",
    "cup",
    "floats",
    "bends",
    "finger",
    "lamp",
    "behind",
    "table",
    "light",
    "reflection",
    "two",
    "into",
]
KINDS = ("anatomy", "count", "structure", "text", "contact", "light", None)
AGENTS = (("AttributeAnalyzer",), ("AttributeAnalyzer", "SceneScanner"), ("RelationReasoner",))


def main() -> None:
    folder = Path(tempfile.mkdtemp(prefix="uncanny-review-"))
    try:
        _make_run(folder)
        uncanny.sample(folder, size=SAMPLE)
        for judged, options in ((0, ()), (0, ("--sample",)), (JUDGED, ())):
            if judged:
                _judge(folder, judged)
            of = f"{judged:,} judged {' '.join(options)}".rstrip()
            print(f"  {IMAGES * FINDINGS:,} findings, {of}")
            began = time.perf_counter()
            with _server(folder, *options) as (address, pid):
                figure(f"{of}, server listens after", time.perf_counter() - began, "s")
                figure(f"{of}, memory of the server", _memory(pid) / 1e6, "MB")
                if not options:
                    _requests(address, of)
                _browser(address, "a" * FINDINGS + "c" if options else "aru", of)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _make_run(folder: Path) -> None:
    """Records of as many images, which are links to a few files as large as real ones."""
    chance = random.Random(0)
    (folder / "images").mkdir()
    digests = []
    for number in range(PICTURES):
        small = Image.frombytes("RGB", (64, 64), chance.randbytes(64 * 64 * 3))
        file = folder / f"{number}.png"
        small.resize((SIDE, SIDE), Image.Resampling.BICUBIC).save(file)
        digests.append(hashlib.sha256(file.read_bytes()).hexdigest())
    print(f"  pictures of {SIDE} × {SIDE}, {file.stat().st_size / 1e6:.1f} MB each")
    make_annotations(folder, IMAGES, digests)
    for number in range(IMAGES):
        os.link(folder / f"{number % PICTURES}.png", folder / f"images/{number:06d}.png")


def make_annotations(folder: Path, images: int, digests: Sequence[str] = ("0" * 64,)) -> None:
    """A run of so many images with `FINDINGS` each; the images themselves are not there."""
    chance = random.Random(0)
    with (folder / "annotations.jsonl").open("wb") as lines:
        for number in range(images):
            anomalies = [_anomaly(chance) for _ in range(FINDINGS)]
            digest = digests[number % len(digests)]
            record = {"image": f"images/{number:06d}.png", "sha256": digest, "width": SIDE, "height": SIDE}
            record |= {"status": "ok", "anomalies": anomalies, "objects": [], "errors": []}
            lines.write(orjson.dumps(record | {"model": "m", "prompts": "p"}) + b"\n")
    (folder / "run.json").write_bytes(orjson.dumps({"format": 2, "task": "annotate"}))


def _anomaly(chance: random.Random) -> dict[str, object]:
    x, y = chance.randrange(SIDE - 200), chance.randrange(SIDE - 200)
    return {
        "name": " ".join(chance.choices(WORDS, k=4)),
        "phenomenon": " ".join(chance.choices(WORDS, k=30)),
        "reasoning": " ".join(chance.choices(WORDS, k=30)),
        "severity": chance.randrange(101),
        "objects": chance.choices(WORDS, k=2),
        "box": [x, y, x + 150, y + 120],
        "kind": chance.choice(KINDS),
        "found_by": chance.choice(AGENTS),
    }


def _judge(folder: Path, count: int) -> None:
    """Verdicts of other reviewers, two on some findings."""
    chance = random.Random(1)
    decisions: tuple[Decision, ...] = ("accept", "accept", "reject")
    reviews = []
    with (folder / "annotations.jsonl").open("rb") as lines:
        for line in lines:
            record = Annotation.model_validate_json(line)
            for place, anomaly in enumerate(record.anomalies):
                who, what = chance.choice(("ann", "ben")), chance.choice(decisions)
                reviews.append(new_review(record, place, anomaly, who, what))
            if len(reviews) >= count:
                break
    ReviewLog.of_run(folder).append(reviews[:count])


@contextmanager
def _server(folder: Path, *options: str) -> Iterator[tuple[str, int]]:
    command = [sys.executable, "-m", "uncanny", "review", str(folder), "--reviewer", "cid", *options]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield process.stdout.readline().split()[-1], process.pid
    finally:
        process.terminate()
        process.wait()


def _memory(pid: int) -> int:
    """Resident bytes of a process, as Linux tells them."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def _requests(address: str, of: str) -> None:
    """What the server alone takes, by a client that reads the page's own marks."""
    with httpx2.Client(base_url=address, headers={"Origin": address}) as client:
        pages = [_timed(partial(client.get, "/")) for _ in range(21)]
        _print(f"{of}, page, server alone", [seconds for seconds, _ in pages])
        text = pages[-1][1].text
        verdicts = []
        for number in range(STEPS):
            body = {"finding": _mark(text, "finding"), "text": _mark(text, "text"), "show": "todo"}
            body["decision"] = ("accept", "reject", "unsure")[number % 3]
            seconds, answer = _timed(partial(client.post, "/verdict", json=body))
            assert answer.status_code == 200, answer.text
            verdicts.append(seconds)
            text = answer.text
        _print(f"{of}, verdict and next finding, server alone", verdicts)
        for name, query in (("ties", "show=ties"), ("kind, file order", "show=todo&kind=light&order=file")):
            firsts = [_timed(partial(client.get, f"/finding?{query}"))[0] for _ in range(21)]
            _print(f"{of}, first finding by {name}", firsts)


def _browser(address: str, keys: str, of: str) -> None:
    """From each of `keys`, again and again, to the next finding on the screen, its picture included."""
    from playwright.sync_api import sync_playwright

    chromium = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))))
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for cache in ("empty", "warm"):
            loads: list[float] = []
            for _ in range(9):
                if cache == "empty" or not loads:
                    page = browser.new_context(viewport={"width": 1280, "height": 800}).new_page()
                page.goto(address)
                page.wait_for_selector("body[data-shown]")
                # From the start of the navigation to the first finding with its picture.
                loads.append(page.evaluate("() => performance.getEntriesByName('shown')[0].startTime / 1000"))
            _print(f"{of}, page ready in Chromium, {cache} cache", loads, READY_MS)
        # Between two frames: from the key's event to the frame after the one that has the new finding.
        page.evaluate(
            """() => { window.painted = []; addEventListener('keydown', () => {
              const began = performance.now(), before = document.body.dataset.shown;
              const look = () => document.body.dataset.shown === before ? requestAnimationFrame(look)
                : requestAnimationFrame(() => window.painted.push((performance.now() - began) / 1000));
              requestAnimationFrame(look); }, true); }"""
        )
        for number in range(STEPS):
            page.keyboard.press(keys[number % len(keys)])
            while page.evaluate("() => window.painted.length") <= number:
                time.sleep(0.002)
            page.wait_for_timeout(60)
        _print(f"{of}, key to next finding painted", page.evaluate("() => window.painted"), PAINTED_MS)
        browser.close()


def _timed(call: Callable[[], httpx2.Response]) -> tuple[float, httpx2.Response]:
    began = time.perf_counter()
    answer = call()
    return time.perf_counter() - began, answer


def _mark(text: str, name: str) -> str:
    return text.split(f'data-{name}="')[1].split('"')[0]


def _print(what: str, seconds: list[float], most_ms: float | None = None) -> None:
    ordered = sorted(seconds)
    late = ordered[min(len(ordered) - 1, round(0.95 * len(ordered)))]
    figure(f"{what}, median", statistics.median(ordered) * 1e3, "ms", most_ms)
    figure(f"{what}, p95", late * 1e3, "ms")
