"""What pages print is compared: tutorials are run as a whole, other pages where they show output.

Of a tutorial each block of shell or Python is run, in an empty folder. Of other pages a block of `sh` is run
when the next block is `text`, in a folder with three images in `photos/`. A block of `text` is what the block
before it prints on standard output; `…` is anything, and as a line of its own any lines. On such pages a
command that tests cannot run stands in a block of `console`.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path

import pytest

from tests.docs.test_python_blocks import PHOTOS
from tests.runs.e2e import environment, finish
from uncanny.demo.scenes import scenes

DOCS = Path(__file__).parents[2] / "docs"
TUTORIALS = DOCS / "tutorials"
# How many blocks of each page need a key, and are not run.
NOT_RUN_ON = {
    "annotate-folder": 1,
    "audit-generators": 1,
    "audit-judged": 1,
    "benchmark-models": 1,
    "make-pairs": 0,
    "publish-benchmark": 0,
}
BACKGROUND, NOT_RUN = "# In a second terminal\n", "# With your key\n"
# The port that pages name may be taken here.
PORT = "8123"
_BLOCK = re.compile(r"^```(sh|python|text)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_FENCED = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def _pattern(expected: str) -> re.Pattern[str]:
    lines = []
    for line in expected.splitlines():
        # Columns may be wider elsewhere.
        parts = [re.sub(r"(?:\\ )+", " +", re.escape(part)) for part in line.split("…")]
        lines.append(r"(?:.*\n)*?" if line == "…" else ".*".join(parts) + r"[ \t]*\n")
    return re.compile("".join(lines))


def _free_port() -> str:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        return str(held.getsockname()[1])


class Session:
    """A terminal in a folder: what one block exports, the next one has."""

    def __init__(self, folder: Path, background: ExitStack) -> None:
        self.folder, self.background = folder, background
        bin_dir = Path(sys.executable).parent
        self.env = environment(dict.fromkeys((f"{name}_API_KEY" for name in ("OPENAI", "ANTHROPIC")), None))
        self.env["PATH"] = os.pathsep.join((str(bin_dir), self.env["PATH"]))

    def serve(self, command: str) -> None:
        """Start a command that stays, and wait for its first line."""
        process = subprocess.Popen(
            [*shlex.split(command), "--max-seconds", "300"],
            cwd=self.folder,
            env=self.env,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.background.callback(process.wait, 60)
        self.background.callback(process.terminate)
        assert process.stdout is not None
        assert process.stdout.readline().startswith("listening on")

    def run(self, language: str, code: str) -> str:
        """What a block prints; it must end without an error."""
        variables = self.folder.with_suffix(".env")
        shell = ["bash", "-euo", "pipefail", "-c", f"{code}\nenv -0 > {shlex.quote(str(variables))}"]
        command = shell if language == "sh" else [sys.executable, "-c", code]
        process = subprocess.Popen(
            command, cwd=self.folder, env=self.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        done = finish(process, 300)  # a block is several commands
        assert done.code == 0, (code, done.out, done.err)
        assert "Traceback" not in done.err
        if language == "sh":
            pairs = variables.read_text().split("\0")
            self.env = dict(pair.split("=", 1) for pair in pairs if "=" in pair)
        return done.out


@pytest.mark.slow
@pytest.mark.timeout(600)  # many processes
@pytest.mark.parametrize("page", sorted(TUTORIALS.glob("*.md")), ids=lambda page: page.stem)
def test_a_tutorial_does_what_it_says(page: Path, tmp_path: Path) -> None:
    text = page.read_text(encoding="utf-8").replace(PORT, _free_port())
    folder = tmp_path / "here"
    folder.mkdir()
    printed, compared = "", 0
    with ExitStack() as background:
        session = Session(folder, background)
        for language, code in _BLOCK.findall(text):
            if code.startswith(NOT_RUN):
                continue
            if language == "text":
                assert _pattern(code).fullmatch(printed), f"{page.name} prints\n{printed}\nand not\n{code}"
                compared += 1
            elif code.startswith(BACKGROUND):
                session.serve(code.removeprefix(BACKGROUND))
            else:
                printed = session.run(language, code)
    assert compared >= 3


def test_the_blocks_that_need_a_key_are_those_that_say_so() -> None:
    blocks = {page.stem: _BLOCK.findall(page.read_text(encoding="utf-8")) for page in TUTORIALS.glob("*.md")}
    marked = {name: sum(code.startswith(NOT_RUN) for _, code in found) for name, found in blocks.items()}
    assert marked == NOT_RUN_ON


def printing(page: Path) -> list[tuple[str, str]]:
    """Blocks of shell of a page with what they print."""
    blocks = _FENCED.findall(page.read_text(encoding="utf-8"))
    return [
        (code, shown)
        for (language, code), (after, shown) in pairwise(blocks)
        if (language, after) == ("sh", "text")
    ]


GUIDES = [page for page in [DOCS.parent / "README.md", *sorted(DOCS.glob("*.md"))] if printing(page)]


@pytest.mark.slow
@pytest.mark.timeout(300)  # many processes
@pytest.mark.parametrize("page", GUIDES, ids=lambda page: page.stem)
def test_a_page_shows_what_its_commands_print(page: Path, tmp_path: Path) -> None:
    folder = tmp_path / "here"
    (folder / "photos").mkdir(parents=True)
    images = {scene.image_path.stem: scene.image_path for scene in scenes()}
    for name, stem in PHOTOS.items():
        shutil.copy(images[stem], folder / "photos" / name)
    with ExitStack() as background:
        session = Session(folder, background)
        for code, shown in printing(page):
            printed = session.run("sh", code)
            assert _pattern(shown).fullmatch(printed), f"{page.name} prints\n{printed}\nand not\n{shown}"
