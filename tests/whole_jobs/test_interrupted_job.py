"""A folder of three hundred odd files, annotated with every kind of interruption, reviewed and exported."""

from __future__ import annotations

import asyncio
import csv
import re
import subprocess
import time
from collections import Counter
from collections.abc import Awaitable, Iterator
from pathlib import Path
from typing import Final, cast

import httpx2
import nbclient
import nbformat
import pytest

from tests.cli.pseudo_terminal import at_terminal
from tests.runs.e2e import Run, Server, check_no_traceback, environment, finish, serving_process, start
from tests.service.made_review import served
from tests.whole_jobs.odd_job import check_calls, check_records, exported_to_coco, make_job
from uncanny import AnnotateRun
from uncanny.wording import cost, duration

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]

CONCURRENCY: Final = 12
JUDGED: Final = 30


@pytest.fixture
def server() -> Iterator[Server]:
    with serving_process("--objects", "2", "--anomalies", "2", "--latency-ms", "60") as running:
        yield running


def asked_for(server: Server, requests: int, process: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + 120
    while server.requests() < requests:
        assert time.monotonic() < until
        assert process.poll() is None
        time.sleep(0.02)


def shown(page: Path) -> str:
    """A page as it is read."""
    return " ".join(re.sub("<[^>]*>", " ", page.read_text(encoding="utf-8")).split())


def test_a_job_with_every_interruption_is_whole_in_the_end(server: Server, tmp_path: Path) -> None:
    folder, run = make_job(tmp_path / "photos"), Run(tmp_path / "run")
    command = ("annotate", folder.path, "--root", folder.path, *server.asked(name="gpt-4o"), "-o", run.path)
    options = (*command, "--concurrency", CONCURRENCY)

    with at_terminal(*options) as terminal:
        asked_for(server, 150, terminal.process)
        terminal.press_ctrl_c()
        assert terminal.end() == 130
        assert re.search(r"Stopping: waiting for \d+ calls?\. Ctrl-C again to leave now\.", terminal.text())
        assert "Interrupted, " in terminal.text()
        assert "Traceback" not in terminal.text()
    after_ctrl_c = server.requests()
    assert run.manifest()["totals"]["calls"] == after_ctrl_c

    with start(*options, "-q") as process:
        asked_for(server, after_ctrl_c + 200, process)
        process.kill()
        process.communicate()
    assert AnnotateRun(run.path).summary.state == "running"

    spent = AnnotateRun(run.path).summary.cost_usd
    assert spent is not None
    limit = round(1.5 * spent, 4)
    stopped = finish(start(*options, "--max-cost-usd", limit))
    assert stopped.code == 3, stopped.err
    totals = run.manifest()["totals"]
    assert spent < totals["cost_usd"] <= limit
    message = f"{cost(totals['cost_usd'])} of {cost(limit)} spent"
    assert message in stopped.err
    assert f"Cost     {cost(totals['cost_usd'])}\n" in stopped.out
    assert f"cost {cost(totals['cost_usd'])}" in shown(run.path / "report.html")

    done = finish(start(*options, "--max-cost-usd", 20 * limit))
    check_no_traceback(done)
    assert done.code == 1, done.err  # some files are no pictures

    check_records(folder, run)
    totals = check_calls(run, server.requests(), CONCURRENCY)
    # The same figures everywhere.
    page = shown(run.path / "report.html")
    found = sum(len(record.anomalies or ()) for record in run.records())
    assert re.search(rf"^Images   {len(folder.expected)}: {totals['ok']:,} ok, ", done.out, re.MULTILINE)
    assert f"Found    {found:,} anomalies" in done.out
    assert f"Calls    {totals['calls']:,}, " in done.out
    assert f"Cost     {cost(totals['cost_usd'])}\n" in done.out
    assert f"Time     {duration(totals['seconds'])}, " in done.out
    assert (totals["images"], totals["anomalies"]) == (len(folder.expected), found)
    assert Counter(record.status for record in run.records()) == {
        name: totals[name] for name in ("ok", "unreadable")
    }
    for words in (
        f"calls {totals['calls']:,}",
        f"cost {cost(totals['cost_usd'])}",
        f"wall time {duration(totals['seconds'])}",
        f"{found:,}",
    ):
        assert words in page, words
    # Nothing is left to do but to try the broken files once more, which asks nobody.
    before = server.requests()
    assert finish(start(*options, "-q")).code == 1
    assert server.requests() == before

    accepted = review(run.path)
    exported = finish(start("export", run.path, "--to", "csv,coco", "-o", tmp_path / "data"))
    assert exported.code == 0, exported.err
    with (tmp_path / "data" / "anomalies.csv").open(newline="", encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["name"]]
    assert len(rows) == accepted
    assert exported_to_coco(tmp_path / "data") == accepted


def review(run: Path) -> int:
    """Judge findings as the page does, key by key; returns how many are accepted."""
    place = re.compile(r'data-finding="([^"]*)" data-text="([0-9a-f]{64})"')
    decisions = ("accept", "reject", "accept", "unsure")
    judged: set[str] = set()
    with served(run, "--reviewer", "ann") as address, httpx2.Client(base_url=address) as person:
        panel = person.get("/").raise_for_status().text
        for number in range(JUDGED):
            found = place.search(panel)
            assert found is not None
            assert found[1] not in judged
            judged.add(found[1])
            body = {"finding": found[1], "text": found[2], "decision": decisions[number % 4], "show": "todo"}
            panel = person.post("/verdict", json=body, headers={"Origin": address.rstrip("/")}).text
    return sum(decisions[number % 4] == "accept" for number in range(JUDGED))


CELLS: Final = {
    "annotate": """
import os, uncanny
def annotate():
    photos = os.environ["PHOTOS"]
    return uncanny.annotate(photos, root=photos, model="openai/gpt-4o", base_url=os.environ["ADDRESS"],
                            out=os.environ["RUN"], concurrency=12, progress=True, schedule="single")
annotate()
""",
    "resume": "run = annotate()\nrun",
    "frame": "frame = run.to_pandas('images')\nprint(len(frame), 'rows', frame.sha256.notna().sum())\nframe",
    "export": (
        "out = os.environ['RUN'] + '-data'\n"
        "data = uncanny.export(run.path, to=['csv', 'coco'], out=out, all=True)\nprint(data)"
    ),
}


async def test_the_same_in_a_notebook(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, run = make_job(tmp_path / "photos"), Run(tmp_path / "run")
    for name, value in environment().items():
        monkeypatch.setenv(name, value)
    for name, place in {"PHOTOS": folder.path, "ADDRESS": server.v1, "RUN": run.path}.items():
        monkeypatch.setenv(name, str(place))
    notebook = nbformat.v4.new_notebook(  # type: ignore[no-untyped-call]
        cells=[nbformat.v4.new_code_cell(source) for source in CELLS.values()]  # type: ignore[no-untyped-call]
    )
    cells = dict(zip(CELLS, notebook.cells, strict=True))
    client = nbclient.NotebookClient(notebook, timeout=200, kernel_name="python3", allow_errors=True)
    async with client.async_setup_kernel():
        working = asyncio.create_task(client.async_execute_cell(cells["annotate"], 0))
        while (await asyncio.to_thread(server.requests)) < 80:
            assert not working.done(), cells["annotate"]["outputs"]
            await asyncio.sleep(0.05)
        assert client.km is not None
        await cast("Awaitable[None]", client.km.interrupt_kernel())
        await working
        after = server.requests()
        for index, name in enumerate(("resume", "frame", "export"), 1):
            await client.async_execute_cell(cells[name], index)

    def told(name: str) -> str:
        outputs = cells[name]["outputs"]
        return "".join(output.get("text", "") for output in outputs)

    errors = {
        name: [output["ename"] for output in cell["outputs"] if output["output_type"] == "error"]
        for name, cell in cells.items()
    }
    assert errors == {"annotate": ["KeyboardInterrupt"], "resume": [], "frame": [], "export": []}, cells
    assert re.search(r"Stopping: waiting for \d+ calls?\. Interrupt again to leave now\.", told("annotate"))
    check_records(folder, run)
    totals = check_calls(run, server.requests(), 0)
    assert totals["calls"] == server.requests() > after
    assert told("frame").startswith(f"{len(folder.expected)} rows")
    found = sum(len(record.anomalies or ()) for record in run.records())
    with (tmp_path / "run-data" / "anomalies.csv").open(newline="", encoding="utf-8") as file:
        assert sum(bool(row["name"]) for row in csv.DictReader(file)) == found
    assert exported_to_coco(tmp_path / "run-data") == found
