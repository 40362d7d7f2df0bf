"""Finished runs of the demo model over the bundled scenes, made once a process for all that read one.

And sets of few of its questions: a page draws every picture of its set, asked about or not.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from tests.runs.e2e import uncanny_here
from uncanny.eval.mcq.data.load import copy_scenes

Kind = Literal["annotate", "detect", "mcq", "realism"]
COMMANDS: dict[Kind, tuple[str, ...]] = {
    "annotate": ("demo",),
    "detect": ("detect", "scenes", "-m", "demo"),
    "mcq": ("mcq", "run", "scenes", "-m", "demo"),
    "realism": ("realism", "run", "scenes", "-m", "demo"),
}


@dataclass(frozen=True, slots=True)
class BundledRun:
    """The run folder, to be left as it is, and what its command printed."""

    path: Path
    out: str

    def copy(self, target: Path) -> Path:
        """The same run in a folder of the test's own, to be worked on."""
        return Path(shutil.copytree(self.path, target))


@dataclass(frozen=True, slots=True)
class BundledRuns:
    folder: Path
    _made: dict[Kind, BundledRun] = field(default_factory=dict)

    def __call__(self, kind: Kind) -> BundledRun:
        if kind not in self._made:
            path = self.folder / kind
            done = uncanny_here(*COMMANDS[kind], "-o", path)
            assert (done.code, done.told) == (0, "")
            self._made[kind] = BundledRun(path, done.out)
        return self._made[kind]


def some_items(folder: Path, number: int) -> Path:
    """The first items of the bundled set of questions, as a set of their own."""
    file = copy_scenes(folder)
    file.write_bytes(b"".join(file.read_bytes().splitlines(keepends=True)[:number]))
    return file
