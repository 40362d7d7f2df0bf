"""Draw the pictures of the pages: `python docs/make_images.py [NAME…]`, all of them without a name.

Pages of runs are made with the demo model and photographed in Chromium, those that are served as their
commands serve them; `diagrams` are the Mermaid diagrams of all pages as SVG, for which npm fetches Mermaid.
Needs the test tools, those of the site (`make site`), Chromium, and npm for diagrams. The site cannot be
built where a diagram was changed and not drawn again.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from playwright.sync_api import Page, sync_playwright

sys.path.insert(0, str(Path(__file__).parent))
from site_hooks import DOCS, diagram_file, diagrams

import uncanny
from uncanny.demo.scenes import scenes
from uncanny.eval.mcq.data.load import copy_scenes

MERMAID: Final = "12.3.0"
WIDTH: Final = 1280
CHROMIUM: Final = ("/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome")
_UNCANNY: Final = str(Path(sys.executable).with_name("uncanny"))
_MERMAID_PAGE = "<!doctype html><body></body>"
_RENDER = """async ([name, text]) => {
  mermaid.initialize({startOnLoad: false, theme: "neutral", fontFamily: "sans-serif", deterministicIds: true,
                      htmlLabels: false,
                      flowchart: {htmlLabels: false, useMaxWidth: false, wrappingWidth: 400}});
  return (await mermaid.render(name, text)).svg;
}"""


# Those at the end of a page are loaded only when somebody comes near.
_ALL_IMAGES = """() => Promise.all([...document.images].map(image => {
  image.loading = "eager";
  return image.decode().catch(() => null);
}))"""


@contextmanager
def browser_page() -> Iterator[Page]:
    """A page of the machine's Chromium, in the light, 1280 pixels wide."""
    binary = next((path for path in CHROMIUM if Path(path).exists()), None)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=binary, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": WIDTH, "height": 800}, color_scheme="light")
        yield page
        browser.close()


def draw_diagrams() -> None:
    """Every diagram that is missing; those that no page has any more are removed."""
    wanted = {
        DOCS / diagram_file(text): text
        for path in DOCS.rglob("*.md")
        for text in diagrams(path.read_text(encoding="utf-8"))
    }
    folder = DOCS / "images" / "diagrams"
    folder.mkdir(parents=True, exist_ok=True)
    for path in set(folder.glob("*.svg")) - set(wanted):
        path.unlink()
    with tempfile.TemporaryDirectory() as work, browser_page() as page:
        page.set_content(_MERMAID_PAGE)
        page.add_script_tag(path=_mermaid(Path(work)))
        for path, text in wanted.items():
            svg = page.evaluate(_RENDER, [f"d{path.stem}", text])
            path.write_text(svg + "\n", encoding="utf-8")
            print(path.relative_to(DOCS))


def _mermaid(folder: Path) -> Path:
    subprocess.run(
        ["npm", "pack", "--silent", f"mermaid@{MERMAID}"], cwd=folder, check=True, stdout=subprocess.DEVNULL
    )
    with tarfile.open(next(folder.glob("mermaid-*.tgz"))) as archive:
        archive.extract("package/dist/mermaid.min.js", folder, filter="data")
    return folder / "package/dist/mermaid.min.js"


def _report(work: Path) -> Path:
    subprocess.run([_UNCANNY, "demo", "-o", "demo", "--quiet"], cwd=work, check=True)
    return work / "demo" / "report.html"


def _mcq(work: Path) -> Path:
    run = uncanny.mcq.run("scenes", model="demo", out=work / "mcq")
    return uncanny.mcq.score("scenes", run, baselines=True).report(work / "mcq.html", published=True)


def _semantic(work: Path) -> Path:
    run = uncanny.detect("scenes", model="demo", out=work / "detect")
    return uncanny.semantic.score({"demo": run}, truth="scenes", similarity="chrf").report(
        work / "semantic.html"
    )


def _realism(work: Path) -> Path:
    run = uncanny.realism.run("scenes", model="demo", out=work / "realism")
    return uncanny.realism.score({"demo": run}).report(work / "realism.html")


def _compare(work: Path) -> Path:
    images = [scene.image_path for scene in scenes()]
    annotated = uncanny.annotate(images, model="demo", out=work / "annotate")
    detected = uncanny.detect(images, model="demo", out=work / "detect")
    result = uncanny.compare({"annotate": annotated, "detect": detected}, truth="scenes")
    return result.report(work / "compare.html")


# Made-up generators: anomalies an image, and how real they are, as the mean of a beta distribution.
_GENERATORS: Final = {
    "aspen": (2.2, 0.62), "birch": (2.5, 0.52), "cedar": (2.9, 0.45), "elder": (3.0, 0.41),
    "hazel": (3.2, 0.47), "maple": (3.9, 0.42), "larch": (4.0, 0.29), "rowan": (4.5, 0.27),
}  # fmt: skip


def _audit(work: Path) -> Path:
    import numpy as np

    from uncanny.prompts import prompt_set

    # Not those of made-up texts, which a page would warn of.
    texts = prompt_set("packed").id
    for seed, (name, (rate, real)) in enumerate(_GENERATORS.items()):
        rng = np.random.default_rng(seed)
        lines = []
        for index in range(300):
            severities = (100 * rng.beta(4 * real, 4 * (1 - real), rng.poisson(rate))).round().astype(int)
            anomalies = [
                {
                    "name": f"Flaw {severity % 17}",
                    "phenomenon": "made up",
                    "reasoning": "made up",
                    "severity": severity,
                }
                for severity in severities.tolist()
            ]
            record = {"image": f"{name}/{index:03}.png", "sha256": None, "width": None, "height": None}
            record |= {"status": "ok", "model": "m/assessor", "prompts": texts}
            lines.append(json.dumps(record | {"anomalies": anomalies}))
        (work / f"{name}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    result = uncanny.audit({name: work / f"{name}.jsonl" for name in _GENERATORS}, pair_by="stem")
    return result.report(work / "audit.html")


# The page of each picture, and how much of it is shown, in pixels.
PAGES: Final[dict[str, tuple[Callable[[Path], Path], int]]] = {
    "report": (_report, 1310),
    "mcq": (_mcq, 1765),
    "semantic": (_semantic, 1380),
    "realism": (_realism, 2123),
    "compare": (_compare, 985),
    "audit": (_audit, 2240),
}


def photograph(name: str) -> None:
    make, height = PAGES[name]
    with tempfile.TemporaryDirectory() as work, browser_page() as page:
        page.goto(make(Path(work)).as_uri())
        page.wait_for_load_state("networkidle")
        page.set_viewport_size({"width": WIDTH, "height": height})
        page.evaluate(_ALL_IMAGES)
        page.screenshot(path=DOCS / "images" / f"{name}.png")
        print(f"images/{name}.png")


@contextmanager
def _served(*arguments: str, environment: Mapping[str, str] = {}) -> Iterator[str]:
    """The address that a command of uncanny serves pages or answers at."""
    with subprocess.Popen(
        [_UNCANNY, *arguments], stdout=subprocess.PIPE, text=True, env=os.environ | environment
    ) as process:
        try:
            assert process.stdout is not None
            yield process.stdout.readline().split()[-1]
        finally:
            process.terminate()


def _as_ann(page: Page) -> None:
    page.get_by_label("Name").fill("Ann")
    page.keyboard.press("Enter")


def _picture_is_there(page: Page) -> None:
    page.locator("body:not(.busy)").wait_for()
    page.wait_for_load_state("networkidle")


def _review(page: Page, work: Path) -> None:
    subprocess.run([_UNCANNY, "demo", "-o", "demo", "--quiet"], cwd=work, check=True)
    with _served("review", str(work / "demo"), "--reviewer", "ann") as address:
        page.goto(address)
        page.locator("#filters select[name=kind]").select_option("contact")
        _picture_is_there(page)
        cup = page.get_by_role("heading", name="Teacup floats above its saucer")
        for _ in range(9):
            if not cup.is_visible():
                page.keyboard.press("j")
                _picture_is_there(page)
        cup.wait_for()
        _keep(page, "review.png")


def _service(page: Page, work: Path) -> None:
    with (
        _served("fake-server", "--latency-ms", "1500") as models,
        _served(
            *("serve", "--port", "0", "--data", str(work / "data")),
            environment={"OPENAI_COMPATIBLE_BASE_URL": f"{models}/v1"},
        ) as address,
        uncanny.Client(address) as client,
    ):
        images = [scene.image_path for scene in scenes()]
        job = client.annotate(images, model="openai-compatible/fake", name="Spring batch", concurrency=4)
        page.goto(f"{address}/jobs/{job.id}")
        page.locator(".shot-card").nth(11).wait_for(timeout=180_000)
        page.wait_for_load_state("load")
        _keep(page, "service.png")
        job.cancel()


def _people_mcq(page: Page, work: Path) -> None:
    with _served("mcq", "people", "scenes", "-o", str(work / "run")) as address:
        page.goto(address)
        _as_ann(page)
        panel, answered = page.locator("#panel"), page.locator(".progress p")
        # The boxes of the fourth item.
        for number in range(14):
            _picture_is_there(page)
            page.keyboard.press("n" if panel.get_attribute("data-question") == "q1" else "e")
            answered.get_by_text(f"{number + 1} of 129 questions answered").wait_for()
        _picture_is_there(page)
        _keep(page, "people-mcq.webp")


def _people_check(page: Page, work: Path) -> None:
    with _served("mcq", "review", "scenes", "-o", str(work / "run")) as address:
        page.goto(address)
        _as_ann(page)
        # The fourth item has a fault.
        for number in range(3):
            _picture_is_there(page)
            page.keyboard.press("c")
            page.locator(".progress p").get_by_text(f"{number + 1} of 34 items checked").wait_for()
        _picture_is_there(page)
        _keep(page, "people-check.webp")


def _people_edits(page: Page, work: Path) -> None:
    with _served("edits", "people", "scenes", "-o", str(work / "run")) as address:
        page.goto(address)
        _as_ann(page)
        page.locator("#panel").wait_for()
        _picture_is_there(page)
        page.keyboard.press("e")
        page.locator("body.placing .a9s-annotationlayer").wait_for()
        frame = page.locator("#frame").bounding_box()
        assert frame is not None
        for left, top, right, bottom in ((0.2, 0.55, 0.4, 0.85), (0.55, 0.1, 0.75, 0.35)):
            page.mouse.move(frame["x"] + left * frame["width"], frame["y"] + top * frame["height"])
            page.mouse.down()
            page.mouse.move(
                frame["x"] + right * frame["width"], frame["y"] + bottom * frame["height"], steps=5
            )
            page.mouse.up()
        page.locator("#boxes", has_text="2 boxes").wait_for()
        _keep(page, "people-edits.webp")


def _people_rate(page: Page, work: Path) -> None:
    with _served("edits", "rate", "scenes", "-o", str(work / "run")) as address:
        page.goto(address)
        _as_ann(page)
        page.locator("body[data-shown]").wait_for()
        _keep(page, "people-rate.webp")


def _people_author(page: Page, work: Path) -> None:
    items = copy_scenes(work / "set")
    with _served("mcq", "author", str(items), "--images", str(items.parent / "images")) as address:
        page.goto(address)
        page.locator("#items").select_option(label="r06-pawn-without-shadow")
        page.locator("#problems", has_text="Nothing is wrong.").wait_for()
        _picture_is_there(page)
        _keep(page, "people-author.webp")


def _keep(page: Page, name: str) -> None:
    from io import BytesIO

    from PIL import Image

    page.mouse.move(0, 0)
    drawn = page.screenshot()
    file = DOCS / "images" / name
    if file.suffix == ".webp":
        Image.open(BytesIO(drawn)).convert("RGB").save(file, quality=85, method=6)
    else:
        file.write_bytes(drawn)
    print(f"images/{name}")


# Pages that a command serves, each as somebody uses it.
SERVED: Final[dict[str, Callable[[Page, Path], None]]] = {
    "review": _review,
    "service": _service,
    "people-mcq": _people_mcq,
    "people-check": _people_check,
    "people-edits": _people_edits,
    "people-rate": _people_rate,
    "people-author": _people_author,
}


def photograph_served(name: str) -> None:
    with tempfile.TemporaryDirectory() as work, browser_page() as page:
        SERVED[name](page, Path(work))


def main(names: list[str]) -> None:
    every = ["diagrams", *PAGES, *SERVED]
    if unknown := set(names).difference(every):
        sys.exit(f"No picture is called {', '.join(sorted(unknown))}; there are {', '.join(every)}.")
    for name in names or every:
        if name == "diagrams":
            draw_diagrams()
        elif name in SERVED:
            photograph_served(name)
        else:
            photograph(name)


if __name__ == "__main__":
    main(sys.argv[1:])
