"""Write the sizes in the table of folders of `docs/architecture.md`: `python docs/make_rooms.py`.

A test fails if a size is off by more than a tenth.
"""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "architecture.md"
_ROW = re.compile(
    r"^\| (?P<names>`[^|]+`) \| (?P<what>[^|]+) \| (?P<files>[\d,]*) \| (?P<lines>[\d,]*) \|$", re.MULTILINE
)


def rooms(page: str) -> dict[str, tuple[list[Path], str, str]]:
    """The rows of the table: their folders and files, and how many files and lines they say."""
    return {row["names"]: (_places(row["names"]), row["files"], row["lines"]) for row in _ROW.finditer(page)}


def size(places: list[Path], others: list[Path]) -> tuple[int, int]:
    """Python files and lines below these places, without those that have a row of their own."""
    inner = [
        other for other in others if any(other != place and other.is_relative_to(place) for place in places)
    ]
    files = {file for place in places for file in ([place] if place.is_file() else place.rglob("*.py"))}
    own = [file for file in files if not any(file.is_relative_to(other) for other in inner)]
    return len(own), sum(file.read_bytes().count(b"\n") for file in own)


def sized(page: str) -> str:
    """The page with the sizes of today."""
    others = [place for places, _, _ in rooms(page).values() for place in places]

    def row(match: re.Match[str]) -> str:
        files, lines = size(_places(match["names"]), others)
        return f"| {match['names']} | {match['what']} | {files} | {lines:,} |"

    return _ROW.sub(row, page)


def _places(names: str) -> list[Path]:
    base, places = ROOT, []
    for name in re.findall(r"`([^`]+)`", names):
        place = next(
            (folder / name for folder in (ROOT, base.parent) if (folder / name).exists()), ROOT / name
        )
        base = place
        places.append(place)
    return places


if __name__ == "__main__":
    PAGE.write_text(sized(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
