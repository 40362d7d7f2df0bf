"""Opening a page for people changes nothing: what was passed over is recorded with somebody's answer."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.request import Request, urlopen

import orjson
import pytest

from tests.service.running import serving
from uncanny.eval.edits.data import load as load_pairs
from uncanny.eval.mcq.data.load import copy_scenes


def contents(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def read(address: str) -> str:
    with urlopen(address) as answer:
        data: bytes = answer.read()
    return data.decode(errors="replace")


def post(address: str, path: str, body: object) -> None:
    headers = {"Content-Type": "application/json", "Origin": address}
    with urlopen(Request(f"{address}{path}", orjson.dumps(body), headers)) as answer:
        assert answer.status == 200


def read_everything(address: str) -> str:
    """The page, its panel and the pictures they name, each twice; the page."""
    for _ in range(2):
        page = read(f"{address}/") + read(f"{address}/panel")
        addresses = set(re.findall(r"/(?:image|preview)/[\w/]+", page))
        assert addresses
        for each in addresses:
            read(address + each)
    return page


def errors_in(file: Path) -> list[str]:
    lines = [orjson.loads(line) for line in file.read_bytes().splitlines()]
    return [line["id"] for line in lines if line["error"]]


@pytest.mark.slow
def test_looking_at_questions_writes_nothing(tmp_path: Path) -> None:
    items = copy_scenes(tmp_path / "set")
    lines = [line for line in items.read_bytes().splitlines() if orjson.loads(line).get("q3")][:4]
    items.write_bytes(b"\n".join(lines) + b"\n")
    first, second, _, last = map(orjson.loads, lines)
    for each in (first, last):
        (items.parent / each["image"]).write_bytes(b"no picture")
    run = tmp_path / "run"
    with serving(
        "mcq", "people", str(items), "-o", str(run), "--person", "ann", "--question", "q3"
    ) as address:
        before = contents(run)
        page = read_everything(address)
        assert contents(run) == before
        for _ in range(2):
            key = re.search(r'data-key="(\w+)"', page)
            assert key is not None
            post(address, "/answer", {"key": key[1], "question": "q3", "choice": "A"})
            page = read(f"{address}/panel")
        after = contents(run)
        read(f"{address}/")
        assert contents(run) == after
    assert errors_in(run / "answers.jsonl") == [first["id"], last["id"]]
    assert {name for name in after if name.startswith("overlays/")}
    assert second["id"] not in errors_in(run / "answers.jsonl")


@pytest.mark.slow
def test_looking_at_edits_writes_nothing(tmp_path: Path) -> None:
    good = next(iter(load_pairs("scenes")))
    rows = [{"id": "half", "original": str(good.original), "edited": "a.png"}]
    rows.append({"id": "bad", "original": "b.png", "edited": "c.png"})
    for name in ("a.png", "b.png", "c.png"):
        (tmp_path / name).write_bytes(b"no picture")
    pairs = tmp_path / "pairs.jsonl"
    pairs.write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in rows))
    run = tmp_path / "run"
    with serving("edits", "people", str(pairs), "-o", str(run), "--person", "ann") as address:
        before = contents(run)
        page = read_everything(address)
        assert contents(run) == before
        key = re.search(r'data-key="(\w+)"', page)
        assert key is not None
        post(address, "/judge", {"key": key[1], "judged": "real"})
        after = contents(run)
        read(f"{address}/")
        assert contents(run) == after
    assert sorted(errors_in(run / "judgements.jsonl")) == ["bad", "bad", "half"]
