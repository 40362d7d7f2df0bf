"""The way of one image, as docs/architecture.md tells it, is the way in the code."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
_HOP = re.compile(r"^\d+\. `([\w.]+)` in `([\w./]+)`", re.MULTILINE)


def functions(file: Path) -> set[str]:
    """Names of a file's functions, nested ones too, and of its methods with their class."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    names = {node.name for node in ast.walk(tree) if isinstance(node, kinds)}
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            names |= {f"{node.name}.{each.name}" for each in node.body if isinstance(each, kinds)}
    return names


def test_every_function_on_the_way_is_in_its_file() -> None:
    hops = _HOP.findall(PAGE)
    assert hops
    for function, file in hops:
        assert function in functions(ROOT / file), f"{function} is not in {file}"


def test_each_calls_the_next_one() -> None:
    """By name: each file speaks of the next function, which it calls or hands on to be called."""
    names = [function.rpartition(".")[2] for function, _ in _HOP.findall(PAGE)]
    files = [ROOT / file for _, file in _HOP.findall(PAGE)]
    for place, name in enumerate(names[1:]):
        text = files[place].read_text(encoding="utf-8")
        assert re.search(rf"\b{name}\b", text), (files[place], name)


def test_the_count_is_that_of_the_list() -> None:
    hops = _HOP.findall(PAGE)
    count = re.search(r"That is (\d+) functions in (\d+) files", PAGE)
    assert count is not None
    assert (int(count[1]), int(count[2])) == (len(hops), len({file for _, file in hops}))


def test_every_folder_of_code_has_its_row() -> None:
    folders = [
        path.name
        for path in (ROOT / "src" / "uncanny").iterdir()
        if path.is_dir() and path.name != "__pycache__"
    ]
    named = set(re.findall(r"^\| `(?:src/uncanny/)?(\w+)", PAGE, re.MULTILINE))
    assert set(folders) <= named
