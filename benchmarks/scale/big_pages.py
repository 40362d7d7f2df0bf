"""The pages of an audit of 15 generators × 1,000 images and of 20 models × 950 items, in a browser.

Made-up figures over the bundled scenes, seeded. `python -m benchmarks.scale.big_pages DIR` leaves pages and
screenshots in DIR.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from benchmarks.common import figure, sized
from benchmarks.scores.mcq_scoring import SIZES

IMAGES, MODELS = sized(1000, 20), sized(20, 3)
NAMES = (
    *("ours 2.1", "Aurora XL", "Brushwork-3", "Cobalt Image Turbo", "Dune Diffusion 1.5 Large", "Ember"),
    *("Fjord V2", "Garnet-I1-Dev", "Halcyon Image 2.0 (distilled, 4 steps)", "Iris", "Juniper 7B"),
    *("Kestrel Pro", "Lagoon.1 [dev]", "Meadow Sprint 1.6B", "Nimbus"),
)
# Kind, ways of calling it, what is seen, and in how many of a hundred images it is.
FAULTS = (
    ("anatomy", ("extra finger", "extra fingers", "hand with six fingers"), "A hand has six fingers.", 14),
    ("anatomy", ("merged limbs", "merged arms", "limbs merged"), "Two arms share a forearm.", 6),
    ("count", ("chair with five legs", "extra chair leg"), "A chair has five legs.", 5),
    ("text", ("garbled text", "garbled letters", "unreadable sign"), "A sign has shapes like letters.", 17),
    ("contact", ("floating cup", "floating mug", "cup floats"), "The cup hangs over its saucer.", 8),
    ("light", ("shadow in wrong direction", "wrong shadow direction"), "It falls towards the lamp.", 9),
    ("perspective", ("bent horizon", "horizon is bent"), "The horizon breaks behind the tree.", 4),
    ("structure", ("handle without hinge", "door without hinge"), "The door has no hinge.", 5),
    ("function", ("spout leads nowhere", "spout without opening"), "The spout is closed.", 3),
    ("logic", ("mirror shows another thing",), "The mirror shows a vase that is not there.", 6),
    (None, ("odd texture", "odd patch"), "A patch looks odd.", 3),
)
WHY = "Whoever made this thing, or stood there, would have it otherwise: it cannot be so."


def write_audit(folder: Path) -> None:
    """A run for each generator in `now`, and one of the first in `before`; a prompt is a file name."""
    for number, name in enumerate(NAMES):
        write_run(folder / "now" / name, 0.75 + 0.07 * number, seed=number)
    write_run(folder / "before" / NAMES[0], 1.05, seed=99)


def write_run(folder: Path, rate: float, *, seed: int) -> None:
    from uncanny.demo.scenes import scenes
    from uncanny.prompts.folders import read_prompts

    texts = read_prompts("annotate", None).id
    rng = np.random.default_rng(seed)
    (folder / "images").mkdir(parents=True)
    records = []
    pictures = list(enumerate(scenes()))
    for number in range(IMAGES):
        scene = pictures[int(rng.integers(len(pictures)))][1]
        image = f"images/{number:04}{scene.image_path.suffix}"
        os.link(_once(folder, scene.image_path), folder / image)
        anomalies = []
        for kind, names, phenomenon, percent in FAULTS:
            if rng.random() * 100 < percent * rate:
                x, y = rng.integers(0, scene.width // 2), rng.integers(0, scene.height // 2)
                anomalies.append(
                    {
                        "name": str(rng.choice(names)),
                        "phenomenon": phenomenon,
                        "reasoning": WHY,
                        "severity": int(100 * rng.beta(1.5, 2.6)),
                        "kind": kind,
                        "box": [int(x), int(y), int(x) + scene.width // 4, int(y) + scene.height // 4],
                    }
                )
        records.append(
            {"image": image, "sha256": scene.sha256, "width": scene.width, "height": scene.height}
            | {"status": "ok", "anomalies": anomalies, "errors": [], "model": "made/up", "prompts": texts}
            | {"objects": [{"name": "thing", "description": "A thing."}], "usage": {"calls": 12}}
        )
    (folder / "annotations.jsonl").write_bytes(b"".join(orjson.dumps(each) + b"\n" for each in records))
    (folder / "run.json").write_bytes(orjson.dumps({"state": "finished", "model": "made/up"}))


def _once(folder: Path, picture: Path) -> Path:
    """A copy in the same file system, to which links can be made."""
    kept = folder.parent.parent / "pictures" / picture.name
    kept.parent.mkdir(exist_ok=True)
    if not kept.exists():
        shutil.copy(picture, kept)
    return kept


def write_mcq(folder: Path) -> None:
    """As many items as the released set, of the scenes with their questions, and answers of all models."""
    from uncanny.demo.scenes import scenes

    folder.mkdir(parents=True)
    (folder / "images").mkdir()
    (folder / "x").mkdir()
    rng = np.random.default_rng(0)
    types = ("anatomy", "topology", "count", "local_render", "plausibility")
    items: list[dict[str, Any]] = []
    for split, size in SIZES.items():
        faulty = split.startswith("art")
        pool = [scene for scene in scenes() if scene.mcq is not None and bool(scene.anomalies) == faulty]
        for number in range(size):
            scene = pool[number % len(pool)]
            image = f"images/{split}-{number:03}{scene.image_path.suffix}"
            os.link(_once(folder / "x", scene.image_path), folder / image)
            questions = scene.mcq.model_dump(mode="json") if scene.mcq else {}
            items.append(
                {"id": f"{split}-{number:03}", "image": image, "split": split}
                | {"artifact_type": types[number % 5] if faulty else None}
                | {name: questions[name] for name in ("q2", "q3", "q4")}
                | {"q1": None if split == "ref_pg" else questions["q1"]}
            )
    (folder / "items.jsonl").write_bytes(b"".join(orjson.dumps(each) + b"\n" for each in items))
    hard = rng.normal(0, 1, len(items))
    for model in range(MODELS):
        name = f"provider-{model % 4}/a-model-with-a-long-name-{model:02}"
        skill = 2.2 - 0.15 * model
        answers = []
        for item, difficulty in zip(items, hard, strict=True):
            for question in ("q1", "q2", "q3", "q4"):
                if item[question] is None:
                    continue
                right = rng.random() < 1 / (1 + np.exp(difficulty - skill))
                letters = ["yes", "no"] if question == "q1" else list("ABCDE")
                raw = item[question]["answer"] if right else str(rng.choice(letters))
                if rng.random() < 0.003:
                    raw = "I cannot tell which of these it is."
                answers.append({"id": item["id"], "question": question, "raw": raw, "model": name})
        (folder / f"{model:02}.jsonl").write_bytes(b"".join(orjson.dumps(each) + b"\n" for each in answers))


def make_audit(folder: Path) -> Path:
    import uncanny

    first = NAMES[0]
    result = uncanny.audit(
        folder / "now", own=first, before={first: folder / "before" / first}, pair_by="stem"
    )
    return _timed("audit", lambda: result.report(folder / "audit.html", title="Release 2.1"))


def make_mcq(folder: Path) -> Path:
    from uncanny.mcq import load, score

    scores = score(load(folder / "items.jsonl"), [folder / f"{model:02}.jsonl" for model in range(MODELS)])
    return _timed("mcq", lambda: scores.report(folder / "mcq.html"))


def _timed(what: str, made: Callable[[], Path]) -> Path:
    busy = time.process_time()
    path = made()
    figure(f"{what}, page written, CPU time", time.process_time() - busy, "s")
    figure(f"{what}, size of the page", path.stat().st_size / 1e6, "MB")
    return path


def in_browser(page: Path, pictures: Path | None) -> None:
    """Time to load and to scroll through, and the height, at two widths; screenshots in `pictures`."""
    from playwright.sync_api import sync_playwright

    chromium = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))))
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for width in (1280, 390):
            tab = browser.new_context(viewport={"width": width, "height": 850}).new_page()
            tab.goto(page.as_uri())
            times = tab.evaluate(
                "() => { const [t] = performance.getEntriesByType('navigation');"
                " return [t.domContentLoadedEventEnd, t.loadEventEnd]; }"
            )
            height = tab.evaluate("() => document.documentElement.scrollHeight")
            frames = tab.evaluate(_SCROLL)
            nodes = tab.evaluate("() => document.querySelectorAll('*').length")
            ordered = sorted(frames)
            middle, late = ordered[len(ordered) // 2], ordered[int(0.95 * len(ordered))]
            print(f"  {height:,} px high, {nodes:,} elements")
            at = f"{page.stem}, {width} px"
            figure(f"{at}, ready", times[0] / 1e3, "s")
            figure(f"{at}, loaded", times[1] / 1e3, "s")
            for what, frame in (("median", middle), ("p95", late), ("longest", ordered[-1])):
                figure(f"{at}, frame while scrolling, {what}", frame, "ms")
            if pictures is not None:
                for part in range(min(12, -(-height // 1700))):
                    tab.set_viewport_size({"width": width, "height": 1700})
                    tab.evaluate(f"() => scrollTo(0, {1700 * part})")
                    tab.wait_for_timeout(250)
                    tab.screenshot(path=str(pictures / f"{page.stem}-{width}-{part:02}.png"))
        browser.close()


# From top to bottom in sixty steps, one a frame: how long each frame took.
_SCROLL = """async () => { const times = []; let last = performance.now();
  const end = document.documentElement.scrollHeight;
  for (let step = 1; step <= 60; step++) { scrollTo(0, end * step / 60);
    const now = await new Promise(requestAnimationFrame); times.push(now - last); last = now; }
  return times; }"""


def main(folder: Path | None = None) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        place = folder or Path(scratch)
        for name, write, make in (("audit", write_audit, make_audit), ("mcq", write_mcq, make_mcq)):
            if not (place / name).exists():
                write(place / name)
            busy = time.process_time()
            page = make((place / name).resolve())
            figure(f"{name}, read, scored and written, CPU time", time.process_time() - busy, "s")
            in_browser(page, folder)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if sys.argv[1:] else None)
