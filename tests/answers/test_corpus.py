"""Answers as models write them, with what each must be read as.

`corpus/*.jsonl`: `id`, `form` (its key), `text`, and either `items` or `error`, a part of the message.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from uncanny.answers import FORMS, read_list
from uncanny.errors import AnswerError

FORM = {form.key: form for form in FORMS}
CASES = [
    pytest.param(json.loads(line), id=f"{path.stem}: {json.loads(line)['id']}")
    for path in sorted((Path(__file__).parent / "corpus").glob("*.jsonl"))
    for line in path.read_text(encoding="utf-8").split("\n")
    if line
]


def test_the_corpus_is_there() -> None:
    assert len(CASES) > 200


@pytest.mark.parametrize("case", CASES)
def test_reads_as_expected(case: dict[str, Any]) -> None:
    form = FORM[case["form"]]
    if "error" in case:
        with pytest.raises(AnswerError) as caught:
            read_list(case["text"], form)
        assert case["error"] in caught.value.message
        assert len(caught.value.message) <= 600
    else:
        items = read_list(case["text"], form)
        assert [item.model_dump(mode="json", exclude_none=True) for item in items] == case["items"]
