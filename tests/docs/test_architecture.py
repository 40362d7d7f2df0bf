"""The way of one image, as docs/architecture.md tells it, is the way in the code."""

from __future__ import annotations

import ast
import asyncio
import importlib.util
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from openai import AsyncOpenAI

from tests.runs.e2e import serving, uncanny_here
from uncanny.demo.scenes import scenes

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
CODE = ("agents", "eval", "graphs", "src")
# The group of all commands and the check of a public call: both stand before any function, and are no step.
BEFORE = ("src/uncanny/cli/__init__.py", "src/uncanny/parameters.py")
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


def stacks() -> Iterator[list[FrameType]]:
    """That of the running task, with what runs the loop, and one of each task that waits for something."""
    running: list[FrameType] = []
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        running.append(frame)
        frame = frame.f_back
    yield running
    for task in asyncio.all_tasks():
        waiting: list[FrameType] = []
        awaited: Any = task.get_coro()
        while awaited is not None:
            if (frame := getattr(awaited, "cr_frame", None)) is not None:
                waiting.append(frame)
            awaited = getattr(awaited, "cr_await", None)
        yield waiting


def ours(stack: list[FrameType]) -> dict[str, str]:
    """Functions of ours in it, and their files."""
    names = {frame.f_code.co_qualname.rpartition("<locals>.")[2]: frame for frame in stack}
    files = {name: os.path.realpath(frame.f_code.co_filename) for name, frame in names.items()}
    return {
        name: os.path.relpath(file, ROOT)
        for name, file in files.items()
        if any(file.startswith(f"{ROOT / top}{os.sep}") for top in CODE)
    }


def test_the_way_is_that_of_a_real_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Functions that are under way when the SDK is called for a step of the AttributeAnalyzer."""
    ways: list[dict[str, str]] = []
    post = AsyncOpenAI.post

    async def watched(client: AsyncOpenAI, *arguments: Any, **named: Any) -> Any:
        running, *waiting = (ours(stack) for stack in stacks())
        if {"look_at_parts", "AnnotateContext.answer"} <= running.keys():
            for each in waiting:
                # Neither what watches over the run nor what becomes of other objects.
                if each.keys() & {"Run.work", "Run._worker"}:
                    running |= each
            ways.append(running)
        return await post(client, *arguments, **named)

    monkeypatch.setattr(AsyncOpenAI, "post", watched)
    with serving() as server:
        done = uncanny_here(
            "annotate",
            scenes()[0].image_path,
            *("--model", "openai/gpt-4o", "--base-url", f"{server.url}/v1"),
            *("-o", tmp_path / "run", "--concurrency", "1"),
        )
    assert done.code == 0, done
    way = {(name, file) for name, file in ways[0].items() if file not in BEFORE}
    assert way == set(_HOP.findall(PAGE))


def test_the_count_is_that_of_the_list() -> None:
    hops = _HOP.findall(PAGE)
    count = re.search(r"That is (\d+) functions in (\d+) files", PAGE)
    assert count is not None
    functions, files = len(hops), len({file for _, file in hops})
    assert (int(count[1]), int(count[2])) == (functions, files)
    assert functions <= 15
    assert files <= 10


def test_every_folder_of_code_has_its_row() -> None:
    folders = [
        path.name
        for path in (ROOT / "src" / "uncanny").iterdir()
        if path.is_dir() and path.name != "__pycache__"
    ]
    named = set(re.findall(r"^\| `(?:src/uncanny/)?(\w+)", PAGE, re.MULTILINE))
    assert set(folders) <= named


def test_the_table_says_how_large_folders_are() -> None:
    spec = importlib.util.spec_from_file_location("make_rooms", ROOT / "docs" / "make_rooms.py")
    assert spec is not None
    assert spec.loader is not None
    make_rooms = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(make_rooms)
    said, now = make_rooms.rooms(PAGE), make_rooms.rooms(make_rooms.sized(PAGE))
    assert len(said) > 20
    for name, (places, _, lines) in said.items():
        assert all(place.exists() for place in places), name
        there = int(now[name][2].replace(",", ""))
        assert int(lines.replace(",", "")) == pytest.approx(there, rel=0.1), "run `python docs/make_rooms.py`"
