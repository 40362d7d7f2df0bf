"""The public interface: every name is there, its example runs, and importing it loads next to nothing."""

from __future__ import annotations

import ast
import asyncio
import doctest
import inspect
import shutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, get_origin

import pytest
from langchain_core.runnables import RunnableLambda

import uncanny
from tests.doors import MODULES, PROTOCOLS
from uncanny.demo.scenes import scenes

DOORS = [uncanny, *(getattr(uncanny, name) for name in MODULES)]


@pytest.mark.parametrize("door", DOORS, ids=lambda door: str(door.__name__))
def test_every_public_name_is_there_and_documented(door: ModuleType) -> None:
    assert sorted(door.__all__) == list(door.__all__)
    for name in door.__all__:
        value = getattr(door, name)
        # Of an alias with parameters, as `PackedGraph[…]`, that of its class.
        assert inspect.getdoc(get_origin(value) or value), name
    assert set(door.__all__) <= set(dir(door))
    with pytest.raises(AttributeError, match="nonsense"):
        door.nonsense  # noqa: B018


@pytest.mark.parametrize("door", DOORS, ids=lambda door: str(door.__name__))
def test_type_checkers_and_python_see_the_same(door: ModuleType) -> None:
    imports = [
        (node.module, alias.name)
        for node in ast.walk(ast.parse(inspect.getsource(door)))
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if alias.asname == alias.name
    ]
    assert sorted(name for _, name in imports) == door.__all__
    for module, name in imports:
        assert module is not None
        assert getattr(door, name) is getattr(import_module(module), name)


ASYNC = [(door, name) for door in DOORS for name in door.__all__ if name.endswith("_async")]


@pytest.mark.parametrize(("door", "name"), ASYNC, ids=[f"{door.__name__}.{name}" for door, name in ASYNC])
def test_async_functions_are_told_apart_from_plain_ones(door: ModuleType, name: str) -> None:
    # By these LangChain, FastAPI and others decide whether they await a call or make it in a thread.
    assert inspect.iscoroutinefunction(getattr(door, name))
    assert asyncio.iscoroutinefunction(getattr(door, name))
    plain = getattr(door, name.removesuffix("_async"))
    assert not inspect.iscoroutinefunction(plain)
    assert not asyncio.iscoroutinefunction(plain)


async def test_a_framework_awaits_an_async_function(names: dict[str, Any]) -> None:
    function: Any = uncanny.annotate_image_async
    annotation = await RunnableLambda(function).ainvoke(names["image"], model="demo")
    assert annotation.status == "ok"


@pytest.fixture
def names(tmp_path: Path) -> dict[str, Any]:
    """What examples may use: a folder of one image, the image, and a folder that is not there yet."""
    scene = next(scene for scene in scenes() if scene.anomalies)
    (tmp_path / "photos").mkdir()
    shutil.copy(scene.image_path, tmp_path / "photos")
    return {
        "asyncio": asyncio,
        "uncanny": uncanny,
        "images": tmp_path / "photos",
        "image": scene.image_path,
        "out": tmp_path / "run",
        "folder": tmp_path,
    }


def documented() -> dict[str, tuple[ModuleType, str]]:
    """The functions by their names, `x_async` with the docstring of `x` left out: each example runs once."""
    functions: dict[str, tuple[ModuleType, str]] = {}
    docs: set[str | None] = set()
    for door in [uncanny, *(getattr(uncanny, name) for name in PROTOCOLS)]:
        for name in door.__all__:
            doc = getattr(door, name).__doc__
            if inspect.isfunction(getattr(door, name)) and doc not in docs:
                functions[f"{door.__name__}.{name}"] = door, name
                docs.add(doc)
    return functions


@pytest.mark.slow
@pytest.mark.parametrize(("door", "name"), documented().values(), ids=documented())
def test_every_function_has_an_example_that_runs(
    door: ModuleType, name: str, names: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(names["folder"])
    function = getattr(door, name)
    examples = doctest.DocTestFinder(recurse=False).find(function, name, globs=names)
    assert any(example.examples for example in examples), "no example"
    report: list[str] = []
    for example in examples:
        runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
        runner.run(example, out=report.append)
    assert not report, "".join(report)


def test_what_is_shown_of_a_result_is_no_wall_of_fields(names: dict[str, Any]) -> None:
    annotation = uncanny.annotate_image(names["image"], model="demo")
    anomaly = annotation.anomalies[0]
    assert repr(annotation) == f"<Annotation {names['image']}: ok, 1 anomaly>"
    assert str(annotation).splitlines()[1:] == [
        f"  {anomaly.severity:3}  {anomaly.name}: {anomaly.phenomenon} (95 % sure)"
    ]
    assert repr(uncanny.mcq.load("scenes")) == "<34 items of the bundled scenes>"
    assert repr(uncanny.realism.load("scenes")) == "<16 pairs of the bundled scenes>"
    truth = uncanny.semantic.load("scenes", role="truth")
    assert repr(truth) == "<anomalies of 34 images of scenes>"
    scores = uncanny.semantic.score(truth, truth=truth, similarity="chrf", resamples=0)
    assert repr(scores) == str(scores)


def test_importing_it_loads_next_to_nothing() -> None:
    code = "import uncanny, sys; print(' '.join(m for m in sys.modules if m.startswith('uncanny')))"
    done = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True, timeout=60
    )
    assert done.stdout.split() == ["uncanny"]
