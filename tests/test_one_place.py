"""A parameter, an agent and a protocol are each added in one place, and are everywhere then."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from uncanny.demo.scenes import scenes

ROOT = Path(__file__).parents[1]
CODE = ("src", "agents", "graphs", "prompts", "eval", "docs")

pytestmark = pytest.mark.slow


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A copy of the product's code, to be changed."""
    ignored = shutil.ignore_patterns("__pycache__")
    for name in CODE:
        shutil.copytree(ROOT / name, tmp_path / "tree" / name, symlinks=True, ignore=ignored)
    return tmp_path / "tree"


def insert(file: Path, before: str, text: str) -> None:
    content = file.read_text()
    assert content.count(before) == 1, file
    file.write_text(content.replace(before, text + before))


def python(tree: Path, *arguments: object, code: int = 0) -> str:
    """What a program prints that imports the changed code."""
    done = subprocess.run(
        [sys.executable, *map(str, arguments)],
        cwd=tree.parent,
        env={**os.environ, "PYTHONPATH": str(tree / "src"), "COLUMNS": "100"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == code, done.stderr
    return done.stdout + done.stderr


def uncanny(tree: Path, *words: object, code: int = 0) -> str:
    return python(tree, "-m", "uncanny", *words, code=code)


def test_a_parameter_is_everywhere_once_it_is_in_its_model(tree: Path) -> None:
    insert(
        tree / "eval/mcq/parameters.py",
        '    control: bool = False\n    """Ask Q4 again',
        "    hints: Annotated[int, Field(ge=0, le=4)] = 1\n"
        '    """Number of hints that go with a question."""\n',
    )
    text = uncanny(tree, "mcq", "run", "--help")
    assert "--hints INTEGER" in text
    assert "Number of hints that go with a question. [default: 1]" in " ".join(text.split())

    asked = ("mcq", "run", "scenes", "-m", "demo", "-o", "run", "--limit", "1", "-q")
    options = tree.parent / "options.toml"
    options.write_text("[mcq.run]\nhints = 9\n")
    assert "--hints must be from 0 to 4, not 9" in uncanny(tree, *asked, "--config", options, code=2)
    options.write_text("[mcq.run]\nhints = 2\n")
    uncanny(tree, *asked, "--config", options)
    assert json.loads((tree.parent / "run/run.json").read_text())["plan"]["hints"] == 2
    assert "hints = 2" in uncanny(tree, "init", "--from", "run", "-o", "-")

    shown = python(
        tree,
        "-c",
        "import json, uncanny.mcq\n"
        "from uncanny.service.jobs.kinds import KINDS\n"
        "from uncanny.service.web.forms import form_fields\n"
        "params = KINDS['mcq'].params\n"
        "field = {each.name: each for each in form_fields(params, {})}['hints']\n"
        "schema = params.model_json_schema()['properties']['hints']\n"
        "print(json.dumps([uncanny.mcq.run.__doc__, str(field), schema]))\n"
        "try: uncanny.mcq.run('scenes', model='demo', out='other', hints=9)\n"
        "except uncanny.UncannyError as error: print(error)\n",
    )
    documented, field, schema = json.loads(shown.splitlines()[0])
    assert "hints: Number of hints that go with a question." in documented
    assert "Number of hints" in field
    assert "'maximum': 4" in str(schema)
    assert "`hints` must be at most 4, not 9" in shown
    page = python(
        tree,
        "-c",
        "import sys; sys.path[:0] = ['tree/docs']\nimport make_commands as m\nprint(m.commands_page())",
    )
    assert "| `--hints` `INTEGER` | Number of hints that go with a question. | 1 |" in page


def test_an_agent_is_asked_once_it_is_in_the_table_of_steps(tree: Path) -> None:
    insert(
        tree / "agents/steps.py",
        "    SCAN_IMAGE,\n    ListStep(\n",
        '    ListStep("ShadowReader", 1, "shadows", output_tokens=_FAULTS, form=FAULTS, look="shadows"),\n',
    )
    prompt = (tree / "prompts/packed/scan.md").read_text()
    (tree / "prompts/packed/shadows.md").write_text(f"Look at every shadow.\n\n{prompt}")
    image = scenes()[0].image_path
    role = ("--role", "shadows=noop")
    uncanny(tree, "annotate", image, "-m", "noop", *role, "-o", "run", "-q")
    (record,) = map(json.loads, (tree.parent / "run/annotations.jsonl").read_text().splitlines())
    assert record["status"] == "ok"
    assert "ShadowReader" in {each["found_by"] for each in record["candidates"]}
    forecast = json.loads(uncanny(tree, "annotate", image, "-m", "noop", "--dry-run", "--json"))
    without = json.loads(
        python(ROOT, "-m", "uncanny", "annotate", image, "-m", "noop", "--dry-run", "--json")
    )
    assert forecast["calls"] == without["calls"] + 1
    assert "shadows.md" in uncanny(tree, "prompts", "packed")


PROTOCOL = '''"""Checking captions in the table of protocols."""

from uncanny.protocol import Input, Protocol

PROTOCOLS = (
    Protocol(
        "captions",
        ("captions",),
        "Check captions",
        "Check whether captions describe their images.",
        takes="uncanny.eval.captions.run:CaptionParameters",
        input=Input("captions", "items", "A file of captions.", bundled=False),
        records="checks.jsonl",
        run="uncanny.eval.captions.protocol:run",
        page="uncanny.eval.captions.protocol:page_of",
        then=("report",),
        unit="captions",
    ),
)


async def run(captions, **options):
    from uncanny.eval.captions.data import load
    from uncanny.eval.captions.run import run_async

    return await run_async(load(captions), **options)


def page_of(folder, parameters):
    from uncanny.eval.captions.data import Caption
    from uncanny.eval.captions.report import report
    from uncanny.eval.captions.run import CaptionRun

    run = CaptionRun(folder)
    records = [(each.id, str(folder / each.image), each.caption) for each in run.records]
    captions = [Caption(id=id, image=image, caption=caption) for id, image, caption in records]
    return report(captions, run, parameters.out)
'''
JOB = """
import re, sys, httpx, uncanny
with uncanny.Client(sys.argv[1]) as client:
    job = client.captions(f"server:{sys.argv[2]}", model="noop", limit=1).wait()
    print(job.state, len(list(job.records())))
    def read(page):
        answer = httpx.get(sys.argv[1] + page)
        print(page, answer.status_code, "Check captions" in answer.text, "A blue cup" in answer.text)
        return answer.text
    for page in ("/new", "/new/captions", f"/jobs/{job.id}"):
        read(page)
    read(re.search(r'/jobs/[^"]+/page', read(f"/jobs/{job.id}/report"))[0])
"""


def test_a_protocol_is_a_folder_and_a_line_of_the_table(tree: Path) -> None:
    folder = tree / "eval/captions"
    shutil.copytree(ROOT / "tests/outside_package/src/lab_tools/captions", folder)
    for file in folder.glob("*.py"):
        file.write_text(file.read_text().replace("lab_tools.captions", "uncanny.eval.captions"))
    (folder / "protocol.py").write_text(PROTOCOL)
    # `noop` says nothing that could be read.
    insert(folder / "agent.py", "    first, _, why = read_text(answer)", "    return Fit(True, answer)\n")
    insert(
        tree / "src/uncanny/protocol.py",
        '    "uncanny.annotation.protocol",\n',
        '    "uncanny.eval.captions.protocol",\n',
    )
    shutil.copy(scenes()[0].image_path, tree.parent / "cup.webp")
    captions = tree.parent / "captions.jsonl"
    captions.write_text('{"id": "1", "image": "cup.webp", "caption": "A blue cup"}\n')

    assert "Check whether captions describe their images." in uncanny(tree, "--help")
    assert "--temperature" in uncanny(tree, "captions", "--help")
    assert "Captions 1: 1 checked" in uncanny(tree, "captions", captions, "-m", "noop", "-o", "run")
    assert "A blue cup" in (tree.parent / uncanny(tree, "report", "run").strip()).read_text()
    assert '"noop"' in uncanny(tree, "init", "--from", "run", "-o", "-")
    by_function = (
        "from uncanny.eval.captions.data import load\nfrom uncanny.eval.captions.run import run\n"
        "print(run(load('captions.jsonl'), model='noop', out='other').records[0].status)"
    )
    assert python(tree, "-c", by_function) == "checked\n"

    with serving(tree) as address:
        told = python(tree, "-c", JOB, address, captions).splitlines()
    assert told[0] == "finished 1"
    assert told[1].startswith("/new 200 True")
    assert told[2].startswith("/new/captions 200 True")
    assert told[3].split()[1] == "200"
    assert told[5].split()[1:] == ["200", "False", "True"]


@contextmanager
def serving(tree: Path) -> Iterator[str]:
    """The address of a service of the changed code; its jobs may name files beside it."""
    service = subprocess.Popen(
        [sys.executable, "-m", "uncanny", "serve", "--port", "0", "--root", str(tree.parent)],
        cwd=tree.parent,
        env={**os.environ, "PYTHONPATH": str(tree / "src")},
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert service.stdout is not None
        yield service.stdout.readline().split()[-1]
    finally:
        service.terminate()
        service.wait(30)
