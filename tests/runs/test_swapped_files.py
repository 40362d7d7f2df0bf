"""Somebody swaps a file below an allowed folder for a link while it is read: nothing outside is ever read."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tests.swapped import ATTACK_S, attacked
from uncanny.client.prices import PriceTable
from uncanny.errors import UncannyError
from uncanny.eval.common.inputs.table_files import rows
from uncanny.eval.common.pixels.masks import read_mask
from uncanny.files import read_file
from uncanny.images.file_bytes import read_image_file
from uncanny.images.prepared import read_rgb
from uncanny.prompts.folders import read_prompts
from uncanny.service.jobs.folder import open_no_link, open_within
from uncanny.service.pictures import Picture, Pictures
from uncanny.settings import settings

pytestmark = pytest.mark.slow

SECRET = b"the secret"
MOST = 2**30


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The one folder that may be read from; beside it a folder of secrets by the same names."""
    for name, shade, text in (("root", 0, b"public text"), ("outside", 255, SECRET)):
        folder = tmp_path / name / "sub"
        folder.mkdir(parents=True)
        Image.new("L", (8, 8), shade).save(folder / "a.png")
        (folder / "a.jsonl").write_bytes(b'{"text": "%s"}\n' % text)
        np.save(folder / "a.npy", np.full((8, 8), shade, np.uint8))
        (folder / "texts").mkdir()
        (folder / "texts" / "system.md").write_bytes(text)
        price = {"model": "a/b", "input": 1, "output": 2, "source": text.decode()}
        (folder / "prices.json").write_text(json.dumps([price]))
    folder = (tmp_path / "root").resolve()
    for variable in ("UNCANNY_FOLDERS", "UNCANNY_INPUT_FOLDERS"):
        monkeypatch.setenv(variable, str(folder))
    settings.cache_clear()
    yield folder
    monkeypatch.undo()
    settings.cache_clear()


def _image(path: Path) -> bytes:
    return SECRET if read_rgb(path)[0].getpixel((0, 0)) == (255, 255, 255) else b"public"


def _mask(path: Path) -> bytes:
    return SECRET if read_mask(path).any() else b"public"


def _served_picture(path: Path) -> bytes | None:
    folder = next(each for each in path.parents if each.name == "root")
    shown = asyncio.run(Pictures([folder]).full(Picture(path, None)))
    return None if shown is None else SECRET if b"\xff\xff" in _pixels(shown.data) else b"public"


def _pixels(data: bytes) -> bytes:
    return Image.open(BytesIO(data)).tobytes()


def _job_file(path: Path) -> bytes:
    folder = next(each for each in path.parents if each.name == "root")
    with open_within(folder, path.relative_to(folder).as_posix()) as file:
        return file.read()


def _job_records(path: Path) -> bytes:
    with open(path, "rb", opener=open_no_link) as file:
        return file.read()


def _table(path: Path) -> bytes:
    return b"".join(str(row["text"]).encode() for row in rows(path))


def _prompt(path: Path) -> bytes:
    return read_prompts("single", path.parent)["system"].template.template.encode()


def _price(path: Path) -> bytes:
    price = PriceTable.load(path).find("a/b")
    assert price is not None
    return str(price.source).encode()


READERS: dict[str, tuple[str, Callable[[Path], bytes | None]]] = {
    "pixels of an image": ("a.png", _image),
    "bytes of an image": ("a.png", lambda path: _as_secret(read_image_file(path, MOST), path)),
    "mask": ("a.png", _mask),
    "mask as an array": ("a.npy", _mask),
    "items or records": ("a.jsonl", read_file),
    "table": ("a.jsonl", _table),
    "prompt": ("texts/system.md", _prompt),
    "prices": ("prices.json", _price),
    "file of a job": ("a.jsonl", _job_file),
    "records of a job": ("a.jsonl", _job_records),
    "picture of a page": ("a.png", _served_picture),
}


def _as_secret(data: bytes, path: Path) -> bytes:
    outside = path.parents[2] / "outside" / "sub" / path.name
    return SECRET if data == outside.read_bytes() else b"public"


def _tried(reader: str, root: Path) -> bytes | None:
    name, read = READERS[reader]
    try:
        return read(root / "sub" / name)
    except (OSError, UncannyError):
        return None


def _attack(read: Callable[[], bytes | None], root: Path, name: str, seconds: float) -> int:
    """How often the secret was read, while the file and the folder it lies in are swapped."""
    file, outside = root / "sub" / name, root.parent / "outside" / "sub"
    leaked = 0
    for inside, link_to in ((file, outside / name), (file.parent, (outside / name).parent)):
        some, leaks = attacked(read, inside, link_to, SECRET, seconds / 2)
        assert some
        leaked += leaks
    return leaked


@pytest.mark.parametrize("reader", READERS)
def test_a_link_that_stays_is_not_followed_to_the_outside(reader: str, root: Path) -> None:
    assert _tried(reader, root) not in (None, SECRET)
    path = root / "sub" / READERS[reader][0]
    outside = root.parent / "outside" / "sub" / READERS[reader][0]
    path.unlink()
    path.symlink_to(outside)
    assert _tried(reader, root) is None
    path.parent.rename(root / "other")
    path.parent.symlink_to(outside.parent)
    assert _tried(reader, root) is None


@pytest.mark.parametrize("reader", READERS)
def test_a_file_that_is_swapped_is_never_the_one_outside(reader: str, root: Path) -> None:
    assert not _attack(lambda: _tried(reader, root), root, READERS[reader][0], 0.3)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("reader", READERS)
def test_a_file_that_is_swapped_for_a_while_is_never_the_one_outside(reader: str, root: Path) -> None:
    assert not _attack(lambda: _tried(reader, root), root, READERS[reader][0], ATTACK_S)


def test_what_is_looked_at_and_then_opened_is_the_one_outside_now_and_then(root: Path) -> None:
    """So that the attack is one."""

    def read() -> bytes | None:
        path = root / "sub" / "a.jsonl"
        try:
            return path.read_bytes() if path.resolve().is_relative_to(root) else None
        except OSError:
            return None

    assert _attack(read, root, "a.jsonl", 20)
