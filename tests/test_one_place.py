"""A parameter, an agent and a protocol are each added in one place, and are everywhere then."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
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
    assert "--hints 9 is not from 0 to 4" in uncanny(tree, *asked, "--config", options, code=2)
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
        '    ListStep("SceneScanner", 1, "scan", "scan", output_tokens=_FAULTS, form=FAULTS, look="scan"),\n',
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
