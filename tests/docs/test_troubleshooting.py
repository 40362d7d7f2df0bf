"""Every message on the page of troubleshooting is one that the code has, or that click says."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "troubleshooting.md"
CODE = ("src/uncanny", "eval", "graphs", "agents")
# Said by click and by servers.
OF_OTHERS = {"No such command …", "HTTP 401: …", "HTTP 404: …"}
# A part that a message shares with many others says nothing.
LEAST = 8


def _messages() -> list[str]:
    rows = re.findall(r"^\| (`[^|]*`[^|]*) \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    return [re.findall(r"`([^`]+)`", row)[0] for row in rows]


def _templates(path: Path) -> Iterator[str]:
    """The texts of a file, with a character that is in none of them for each that is filled in."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.JoinedStr):
            parts = [part.value if isinstance(part, ast.Constant) else "\0" for part in node.values]
            yield "".join(map(str, parts))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def _stands_in(message: str, templates: list[str]) -> bool:
    parts = [part.strip(" ") for part in message.split("…")]
    longest = max(parts, key=len)
    assert len(longest) >= LEAST, message
    pattern = re.compile(".*?".join(map(re.escape, parts)), re.DOTALL)
    return any(longest in text and pattern.search(text) for text in templates)


def test_each_message_stands_in_the_code() -> None:
    files = [path for folder in CODE for path in (ROOT / folder).rglob("*.py")]
    templates = [text for path in files for text in _templates(path)]
    messages = [message for message in _messages() if message not in OF_OTHERS]
    assert len(messages) > 30
    assert [message for message in messages if not _stands_in(message, templates)] == []
