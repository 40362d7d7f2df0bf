"""A JSON list in the place of JSON Lines is called that, by all that read lines."""

from __future__ import annotations

from pathlib import Path

import pytest

import uncanny
from tests.cli.complaints import one_line
from tests.runs.e2e import uncanny_here
from uncanny.errors import UsageError


@pytest.mark.parametrize(
    "command",
    [
        "edits stress d={lines} --meta {list}",
        "edits stress d={list} --meta {lines}",
        "edits measure {list} -o {out}.jsonl",
        "mcq check {list}",
        "realism run {list} -m demo -o {out}",
        "audit a={list}",
        "compare {lines} {list}",
        "export {list} --all --to csv -o {out}",
        "report {list}",
        "curate filter {list} -m demo -o {out}",
    ],
)
@pytest.mark.parametrize("indent", ["", "\n  "])
def test_a_list_is_called_one(command: str, indent: str, tmp_path: Path) -> None:
    places = {"list": tmp_path / "list.json", "lines": tmp_path / "lines.jsonl", "out": tmp_path / "out"}
    places["list"].write_text(f'[{indent}{{"id": "a", "edited": "a.png"}}\n]\n')
    places["lines"].write_text('{"image": "a.png", "edited": "a.png", "source": "generated"}\n')
    done = uncanny_here(*command.format(**places).split())
    one_line(done, "list.json is a JSON list instead of JSON Lines. Write one object per line")


def test_a_list_in_python_is_one_too(tmp_path: Path) -> None:
    file = tmp_path / "items.json"
    file.write_bytes(b"\xef\xbb\xbf[]")
    with pytest.raises(UsageError, match="a JSON list instead of JSON Lines"):
        uncanny.mcq.check(file)
