"""Docstrings as Markdown: examples with `>>>` and literal blocks become code."""

from __future__ import annotations

import re
from typing import Any

from griffe import Attribute, Docstring, Extension, Object

_EXAMPLE = re.compile(r"^( *)>>> .*(?:\n\1\S.*)*", re.MULTILINE)


def as_markdown(text: str) -> str:
    """A docstring, cleaned of its indent, with its examples fenced."""
    fenced = _EXAMPLE.sub(lambda match: f"{match[1]}```pycon\n{match[0]}\n{match[1]}```", text)
    return re.sub(r"^::$\n|:(?=:$)", "", fenced, flags=re.MULTILINE)


class Docstrings(Extension):
    """What mkdocstrings loads goes through `as_markdown`."""

    def on_object(self, *, obj: Object, **_: Any) -> None:
        if obj.docstring is not None:
            obj.docstring.value = as_markdown(obj.docstring.value)

    def on_attribute(self, *, attr: Attribute, **_: Any) -> None:
        """A plain function that is made of its `_async` twin says so."""
        if match := re.fullmatch(r"blocking\((\w+)\)", str(attr.value)):
            text = f"`{match[1]}` for programs without an event loop: the same arguments and result."
            attr.docstring = Docstring(text, parent=attr)
