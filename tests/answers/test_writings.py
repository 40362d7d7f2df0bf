"""Answers of agents that write for image models, as models write them.

`corpus/writings/writings.jsonl`: `id`, `kind`, the `original` text or list of objects, `text`, and either
`is` or `error`, a part of the message.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from uncanny.answers.writings import TextKind, failed_caption_gates, read_inpainting, read_rewritten
from uncanny.errors import AnswerError

FILE = Path(__file__).parent / "corpus" / "writings" / "writings.jsonl"
CASES = [json.loads(line) for line in FILE.read_text(encoding="utf-8").split("\n") if line]


def read(case: dict[str, Any]) -> Any:
    if case["kind"] in ("label", "caption"):
        return read_rewritten(case["text"], case["kind"], case["original"])
    edit = read_inpainting(case["text"], case["original"], removal=case["kind"] == "removal")
    return [edit.object, edit.prompt]


@pytest.mark.parametrize("case", [pytest.param(case, id=case["id"]) for case in CASES])
def test_reads_as_expected(case: dict[str, Any]) -> None:
    if "is" in case:
        assert read(case) == case["is"]
        return
    with pytest.raises(AnswerError) as caught:
        read(case)
    assert case["error"] in caught.value.message
    assert len(caught.value.message) <= 600


def test_what_is_read_passes_the_gates_it_is_judged_by_later() -> None:
    for case in CASES:
        if "is" in case:
            text = case["is"] if isinstance(case["is"], str) else case["is"][1]
            kind: TextKind = "label" if case["kind"] == "label" else "caption"
            assert text is None or not failed_caption_gates(text, kind), case


@pytest.mark.parametrize("spoilt", ["{" * 20_000, "Label:" * 5_000, "\x00", "Label: \ud800", "]" * 9])
def test_nothing_but_an_answer_error_is_raised(spoilt: str) -> None:
    with pytest.raises(AnswerError):
        read_rewritten(spoilt, "label", "dog")
    with pytest.raises(AnswerError):
        read_inpainting(spoilt, ["dog"])
