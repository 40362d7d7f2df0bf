"""A fact has one place, and a file and a folder have their measure: counted over the product's files."""

from __future__ import annotations

import ast
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

from uncanny.protocol import protocols

ROOT = Path(__file__).parents[1]
MOST_PER_PARAMETER, MOST_PER_PROTOCOL = 4, 2
MOST_LINES, MOST_FILES = 500, 16
# Fields of the providers' own protocols have names of parameters: `max_tokens`, `top_p`, `base_url`.
# So do fields of trainers, and every log of training: `learning_rate`.
OF_TRAINERS = {"learning_rate"}
PROVIDERS = ("src/uncanny/models/", "src/uncanny/demo/server/")


@cache
def product_files() -> Mapping[str, ast.Module]:
    """The product's modules by their path, without the demo's data."""
    folders = ("src/uncanny", "agents", "graphs", "prompts", "eval")
    files = (file for folder in folders for file in (ROOT / folder).rglob("*.py"))
    # `src/uncanny/eval` and the like are links to the folders at the top.
    own = {file.resolve().relative_to(ROOT.resolve()).as_posix(): file for file in files}
    return {name: ast.parse(file.read_text()) for name, file in own.items() if "/demo/data/" not in name}


def texts(module: ast.Module) -> Iterator[str]:
    """All texts in it, and all names of its fields."""
    for node in ast.walk(module):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            yield node.target.id


def test_few_files_name_a_parameter() -> None:
    kinds = (kind for each in protocols().values() for kind in (each.parameters, each.more))
    # A single word such as `schedule` is also a word of messages.
    parameters = {name for kind in kinds for name in kind.model_fields if "_" in name} - OF_TRAINERS
    assert len(parameters) > 40
    named = defaultdict(set)
    for file, module in product_files().items():
        if not file.startswith(PROVIDERS):
            for text in parameters.intersection(texts(module)):
                named[text].add(file)
    assert named.keys() == parameters
    assert {name: files for name, files in named.items() if len(files) > MOST_PER_PARAMETER} == {}


def test_few_files_name_a_protocol() -> None:
    """Outside its own folder, and the files of commands, graphs, agents and demo answers called after it."""
    # Words that mean something else, too: a set of prompts, a field of findings, an extra, a log, a command.
    words = {"annotate", "prompts", "realism", "semantic", "audit", "export"}
    protocol_names = protocols().keys() - words
    assert len(protocol_names) >= 8
    named = defaultdict(set)
    for file, module in product_files().items():
        for name in protocol_names.intersection(texts(module)):
            if name.partition("_")[0] not in file and not file.endswith("/protocol.py"):
                named[name].add(file)
    assert {name: files for name, files in named.items() if len(files) > MOST_PER_PROTOCOL} == {}


def test_no_file_is_long_and_no_folder_full() -> None:
    lines = {name: (ROOT / name).read_text().count("\n") for name in product_files()}
    assert {name: count for name, count in lines.items() if count > MOST_LINES} == {}
    # `python -m uncanny` needs a file that has no concept of its own.
    files = Counter(name.rpartition("/")[0] for name in lines if not name.endswith("/__main__.py"))
    assert {name: count for name, count in files.items() if count > MOST_FILES} == {}
