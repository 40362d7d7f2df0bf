"""Every published table that ships can be asked for by name, and says where it is from."""

from __future__ import annotations

from importlib.resources import files
from typing import get_args

from uncanny.eval.common.published import Published, published


def test_names_and_files_agree() -> None:
    names = {path.name.removesuffix(".json") for path in (files("uncanny.eval") / "published").iterdir()}
    assert set(get_args(Published)) == {name for name in names if not name.startswith("__")}


def test_each_names_its_source() -> None:
    for name in get_args(Published):
        assert "table" in published(name)["source"]
