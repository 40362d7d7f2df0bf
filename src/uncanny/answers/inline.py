"""Labels in the middle of a line: `@1. Name: … Phenomenon: … Severity Score: 20`."""

from __future__ import annotations

import re
from functools import cache
from itertools import pairwise
from typing import Any

from uncanny.answers.listform import ListForm, label_key
from uncanny.errors import AnswerError


def split_inline(text: str, form: ListForm[Any]) -> dict[str, str]:
    """The values of one item by field name; empty where `text` has no label.

    A label counts if it is capitalised or set in Markdown: "for this reason: …" is prose. Raises
    `AnswerError` where two labels give the same field.
    """
    found = [
        each
        for each in _labels(tuple(form.by_label)).finditer(text)
        if each["marks"] or each["label"][0].isupper()
    ]
    values: dict[str, str] = {}
    for each, following in pairwise([*found, None]):
        assert each is not None  # only the last one is
        name = form.by_label[label_key(each["label"])].name
        if name in values:
            raise AnswerError(f"{name} is given twice in one item")
        end = following.start() if following else len(text)
        values[name] = text[each.end() : end].strip().lstrip("*_").strip(" \t\r\n;,|")
    return values


@cache
def _labels(labels: tuple[str, ...]) -> re.Pattern[str]:
    words = "|".join(
        re.escape(each).replace(r"\ ", "[ _-]") for each in sorted(labels, key=len, reverse=True)
    )
    return re.compile(
        rf"(?<![\w\"'])(?P<marks>[*_]{{0,3}})(?P<label>{words})\s?(?:\([^()\n]{{0,40}}\))?\s?[*_]{{0,3}}[:：]",
        re.IGNORECASE,
    )
