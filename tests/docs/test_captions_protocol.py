"""The protocol of docs/extend.md: its files are those that the page lists, and it runs from end to end."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import orjson
import pytest
from lab_tools.captions.agent import Fit, read_fit
from lab_tools.captions.data import Caption, load
from lab_tools.captions.report import report
from lab_tools.captions.run import CaptionRun, run, run_async
from lab_tools.captions.score import score

import uncanny
from tests.eval.common.page_text import Page, check_static_page
from tests.runs.e2e import pictures
from uncanny import Capabilities, ModelRequest, ModelResponse, Stop, errors, register_provider
from uncanny.errors import ItemsError
from uncanny.eval.mcq.run import McqRun
from uncanny.models import registry
from uncanny.records.run_folder import unfinished

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "tests" / "outside_package" / "src"
PROTOCOL = PACKAGE / "lab_tools" / "captions"
MOST_FILES = 8
CAPTIONS = 12


class Scripted:
    """Says no to what elephants are in; its first answer about a cup cannot be read."""

    capabilities = Capabilities()

    def __init__(self, model: str) -> None:
        self.name = f"scripted/{model}"
        self.delay_s = 0.1 if model == "slow" else 0.0
        self.requests: list[ModelRequest] = []

    async def generate(self, request: ModelRequest) -> ModelResponse:
        self.requests.append(request)
        await asyncio.sleep(self.delay_s)
        text = "\n".join(
            part for message in request.messages for part in message.parts if isinstance(part, str)
        )
        if "refuse" in text:
            return ModelResponse("I cannot say.", "refusal")
        if "cup" in text and len(request.messages) == 2:
            return ModelResponse("Perhaps.")
        return ModelResponse("no\nNo elephant is there." if "elephant" in text else "Yes.\nIt is blue.")


@pytest.fixture(autouse=True)
def scripted(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a test registers is gone after it."""
    monkeypatch.setattr(registry, "_REGISTERED", {"scripted": Scripted})


def caption_file(folder: Path) -> Path:
    """Captions of blue pictures; every third speaks of an elephant, and people agree but for one."""
    pictures(folder, CAPTIONS)
    lines: list[dict[str, Any]] = [
        {
            "id": f"c{number:02d}",
            "image": f"p{number:02d}.png",
            "caption": "an elephant" if number % 3 == 0 else "a blue cup" if number == 1 else "a blue square",
            "fits": number % 3 != 0 and number != 2,
        }
        for number in range(CAPTIONS)
    ]
    file = folder / "captions.jsonl"
    file.write_bytes(b"".join(orjson.dumps(line) + b"\n" for line in lines))
    return file


def test_the_page_lists_the_files_that_are_there() -> None:
    page = (ROOT / "docs" / "extend.md").read_text(encoding="utf-8")
    page = page.partition("\n## Add a protocol\n")[2].partition("\n## ")[0]
    listed = set(re.findall(r"^\| `([\w/]+\.\w+)` \|", page, re.MULTILINE))
    files = {path.relative_to(PROTOCOL).as_posix() for path in PROTOCOL.rglob("*") if path.is_file()}
    files = {name for name in files if "__pycache__" not in name and name != "__init__.py"}
    assert listed == files
    assert len(files) <= MOST_FILES


def test_nothing_outside_knows_it() -> None:
    """No line elsewhere had to be changed for it."""
    for folder in ("src", "agents", "graphs", "eval", "prompts"):
        for file in (ROOT / folder).rglob("*.py"):
            assert "lab_tools" not in file.read_text(encoding="utf-8"), file


def test_run_score_and_page(tmp_path: Path) -> None:
    captions = load(caption_file(tmp_path / "in"))
    checked = run(captions, model="scripted/quick", out=tmp_path / "run")
    assert checked.summary.state == "finished"
    assert dict(checked.summary.statuses) == {"checked": CAPTIONS, "failed": 0, "unreadable": 0}
    assert checked.summary.calls == CAPTIONS + 1  # one answer was repaired
    first, cup = checked.records[0], checked.records[1]
    assert (first.fits, first.why) == (False, "No elephant is there.")
    assert (cup.fits, cup.usage.calls) == (True, 2)
    assert first.prompts == checked.manifest.prompts.id
    assert len(checked.to_pandas()) == CAPTIONS
    assert checked.end is not None
    assert checked.end.progress.failures == 0

    scores = score(captions, checked)
    assert (scores.fits.counts, scores.fits.out_of) == (8, 12)
    assert (scores.accuracy.counts, scores.accuracy.out_of) == (11, 12)
    assert scores.accuracy.interval is not None
    low, high = scores.accuracy.interval
    assert low < 11 / 12 < high < 1
    assert "captions that fit" in str(scores)
    assert "<table>" in scores._repr_html_()
    orjson.dumps(scores.to_json())

    with pytest.raises(errors.UsageError, match="a run of 'captions'"):
        uncanny.report(checked)
    page = Page(report(captions, checked).read_text(encoding="utf-8"))
    check_static_page(page)
    assert len(page.all("img")) == CAPTIONS
    assert "66.7 % of 12 captions describe their image" in page.text
    assert page.text.index("an elephant") < page.text.index("a blue cup")


def test_its_records_are_guarded_and_counted_as_those_of_any_run(tmp_path: Path) -> None:
    captions = load(caption_file(tmp_path / "in"))
    checked = run(captions, model="scripted/quick", out=tmp_path / "run")
    left = unfinished(checked.path, "captions", CAPTIONS - 1)
    assert str(left) == "its run is not finished (finished), 1 of 12 captions is missing"
    assert checked.manifest.record_file == CaptionRun.record_file
    records = tmp_path / "run" / CaptionRun.record_file
    with pytest.raises(
        errors.UsageError, match=r"no answers\.jsonl, but checks\.jsonl: it is a run of another"
    ):
        McqRun(checked)
    records.rename(tmp_path / "elsewhere.jsonl")
    records.symlink_to(tmp_path / "elsewhere.jsonl")
    with pytest.raises(errors.UsageError, match=r"checks\.jsonl is a link to"):
        run(captions, model="scripted/quick", out=tmp_path / "run")


def test_what_fails_is_recorded_and_in_no_share(tmp_path: Path) -> None:
    captions = load(caption_file(tmp_path / "in"))[:3]
    captions = (*captions, captions[0].model_copy(update={"id": "d", "caption": "refuse"}))
    (tmp_path / "in" / "p02.png").write_bytes(b"no image")
    checked = run(captions, model="scripted/quick", out=tmp_path / "run")
    assert dict(checked.summary.statuses) == {"checked": 2, "failed": 1, "unreadable": 1}
    assert checked.end is not None
    assert checked.end.progress.failures == 2
    assert {record.id: [error.kind for error in record.errors] for record in checked.records} == {
        "c00": [],
        "c01": [],
        "c02": ["not_an_image"],
        "d": ["refused"],
    }
    scores = score((*captions, captions[0].model_copy(update={"id": "e"})), checked)
    assert (scores.fits.out_of, scores.unanswered, scores.missing) == (2, 2, 1)
    empty = score((), checked)
    assert (empty.fits.value, empty.accuracy.interval) == (None, None)
    assert "–" in str(empty)
    check_static_page(Page(report(captions, checked).read_text(encoding="utf-8")))


def run_slowly(file: str, out: str) -> None:
    """What the process does that is killed."""
    register_provider("scripted", Scripted, replace=True)
    run(load(file), model="scripted/slow", out=out, concurrency=2)


@pytest.mark.slow
def test_a_killed_run_goes_on(tmp_path: Path) -> None:
    file, out = caption_file(tmp_path / "in"), tmp_path / "run"
    code = "import sys; from tests.docs.test_captions_protocol import run_slowly; run_slowly(*sys.argv[1:])"
    env = {**os.environ, "PYTHONPATH": str(PACKAGE)}
    with subprocess.Popen([sys.executable, "-c", code, str(file), str(out)], cwd=ROOT, env=env) as process:
        records = out / "checks.jsonl"
        while not records.exists() or records.read_bytes().count(b"\n") < 3:
            assert process.poll() is None
            time.sleep(0.01)
        process.kill()
        assert process.wait(30) == -9
    before = CaptionRun(out)
    done = len(before.records)
    assert 3 <= done < CAPTIONS
    assert before.summary.state == "running"
    model = Scripted("slow")
    register_provider("scripted", lambda _name: model, replace=True)
    captions = load(file)
    resumed = run(captions, model="scripted/slow", out=out)
    assert len(model.requests) <= CAPTIONS + 1 - done
    assert resumed.summary.state == "finished"
    assert score(captions, resumed) == score(
        captions, run(captions, model="scripted/slow", out=tmp_path / "b")
    )
    with pytest.raises(errors.RunMismatchError, match="temperature"):
        run(captions, model="scripted/slow", out=out, temperature=1.0)


@pytest.mark.slow
async def test_a_stopped_run_asks_anew_only_what_changed(tmp_path: Path) -> None:
    captions, out, stop = load(caption_file(tmp_path / "in")), tmp_path / "run", Stop()

    def third(_record: object) -> None:
        if len(CaptionRun(out).records) == 3:
            stop.request()

    stopped = await run_async(
        captions, model="scripted/slow", out=out, concurrency=1, stop=stop, on_record=third
    )
    assert stopped.summary.state == "interrupted"
    assert stopped.summary.pending
    await run_async(captions, model="scripted/slow", out=out)
    model = Scripted("slow")
    register_provider("scripted", lambda _name: model, replace=True)
    pictures(tmp_path / "other", 1, first=99)
    shutil.copyfile(tmp_path / "other" / "p99.png", captions[5].image)
    changed = [*captions[:7], captions[7].model_copy(update={"caption": "an elephant"}), *captions[8:]]
    checked = await run_async(changed, model="scripted/slow", out=out)
    assert len(model.requests) == 2
    assert checked.records[7].fits is False


def test_a_file_of_captions_is_read_whole_or_refused(tmp_path: Path) -> None:
    file = caption_file(tmp_path / "in")
    file.write_bytes(file.read_bytes() + b'{"id": "c00", "image": "a.png", "caption": "x"}\n{"id": "y"}\n')
    with pytest.raises(ItemsError) as error:
        load(file)
    assert {problem.line for problem in error.value.problems} == {CAPTIONS + 1, CAPTIONS + 2}
    with pytest.raises(errors.UsageError, match="cannot be read"):
        load(tmp_path / "none.jsonl")


@pytest.mark.parametrize("answer", ["yes\nIt is.", "**Yes**\n\nIt is.", "<think>no</think>\nYES\nIt is."])
def test_how_answers_are_read(answer: str) -> None:
    assert read_fit(answer) == Fit(True, "It is.")


@pytest.mark.parametrize("answer", ["", "Yes, but\nno", "fits"])
def test_what_is_no_answer(answer: str) -> None:
    with pytest.raises(errors.AnswerError):
        read_fit(answer)


def test_captions_are_records() -> None:
    assert Caption(id="a", image="a.png", caption="x").fits is None
