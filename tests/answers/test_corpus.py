"""Answers as models write them, with what each must be read as.

`corpus/*.jsonl`: `id`, `form` (its key), `text`, and either `items` or `error`, a part of the message.

`corpus/packed/*.jsonl`: the same for the forms of the packed schedule (with `paper`, of the paper's). With
`parts` the answer is about enlarged parts by their numbers, each with the numbers of its doubts; `invalid`
has those that must be asked about again, with a part of the reason. With `count` it accounts for so many
findings, and beside an `error` may stand what is kept of it, `best`, and the numbers that are `missing`.
Boxes were asked for in the format `boxes`, and stand in `items` in pixels of a picture of 1000 × 500.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from uncanny.answers.boxes import BOX_FORMATS, DEFAULT_BOX_FORMAT, GivenBox, pixels
from uncanny.answers.forms import FORMS, ListForm
from uncanny.answers.lists import read_list
from uncanny.answers.packed import JUDGEMENTS, PACKED_FORMS, PART_FAULTS, Numbered, asked_in, read_parts
from uncanny.errors import AnswerError

FOLDER = Path(__file__).parent / "corpus"
SIZE = (1000, 500)


def cases(folder: Path) -> list[Any]:
    return [
        pytest.param(json.loads(line), id=f"{path.stem}: {json.loads(line)['id']}")
        for path in sorted(folder.glob("*.jsonl"))
        for line in path.read_text(encoding="utf-8").split("\n")
        if line
    ]


FORM = {form.key: form for form in FORMS}
PACKED_FORM = {form.key: form for form in PACKED_FORMS if form is not PART_FAULTS}
CASES = cases(FOLDER)
PACKED_CASES = cases(FOLDER / "packed")


def test_the_corpus_is_there() -> None:
    assert len(CASES) > 200
    assert len(PACKED_CASES) > 300


@pytest.mark.parametrize("case", CASES)
def test_reads_as_expected(case: dict[str, Any]) -> None:
    form = FORM[case["form"]]
    if "error" in case:
        with pytest.raises(AnswerError) as caught:
            read_list(case["text"], form)
        check_message(caught.value, case)
    else:
        items = read_list(case["text"], form)
        assert [item.model_dump(mode="json", exclude_none=True) for item in items] == case["items"]


@pytest.mark.parametrize("case", PACKED_CASES)
def test_packed_reads_as_expected(case: dict[str, Any]) -> None:
    if case.get("paper"):
        test_reads_as_expected(case)
    elif "parts" in case:
        read_as_parts(case)
    elif "count" in case:
        read_as_numbered(case)
    elif "error" in case:
        with pytest.raises(AnswerError) as caught:
            read_list(case["text"], form_of(case))
        check_message(caught.value, case)
    else:
        assert dumped(read_list(case["text"], form_of(case)), case) == case["items"]


def read_as_parts(case: dict[str, Any]) -> None:
    parts = {int(number): doubts for number, doubts in case["parts"].items()}
    if "error" in case:
        with pytest.raises(AnswerError) as caught:
            read_parts(case["text"], parts)
        check_message(caught.value, case)
        return
    answer = read_parts(case["text"], parts)
    assert dumped(answer.items, case) == case["items"]
    invalid = {int(number): reason for number, reason in case.get("invalid", {}).items()}
    assert answer.invalid.keys() == invalid.keys()
    assert all(reason in answer.invalid[number] for number, reason in invalid.items())


def read_as_numbered(case: dict[str, Any]) -> None:
    reader = Numbered(form_of(case), case["count"])
    if "error" not in case:
        assert dumped(reader.read(case["text"]), case) == case["items"]
        return
    with pytest.raises(AnswerError) as caught:
        reader.read(case["text"])
    check_message(caught.value, case)
    assert dumped(reader.best or (), case) == case.get("best", [])
    if "missing" in case:
        assert list(reader.missing) == case["missing"]


def form_of(case: dict[str, Any]) -> ListForm[Any]:
    return asked_in(PACKED_FORM[case["form"]], case.get("boxes", DEFAULT_BOX_FORMAT))


def dumped(items: tuple[BaseModel, ...], case: dict[str, Any]) -> list[dict[str, Any]]:
    """The items as the corpus has them: without what was left out, and boxes in pixels."""
    form = BOX_FORMATS[case.get("boxes", DEFAULT_BOX_FORMAT)]
    rows = []
    for item in items:
        row = item.model_dump(mode="json", exclude_defaults=True, exclude={"box"})
        given: GivenBox | None = getattr(item, "box", None)
        box = given and pixels(given, form, sent=SIZE, original=SIZE)
        rows.append(row | ({"box": [*box]} if box else {}))
    return rows


def check_message(error: AnswerError, case: dict[str, Any]) -> None:
    assert case["error"] in error.message
    assert len(error.message) <= 600


@pytest.mark.parametrize("field", ["why", "phenomenon", "objects"])
def test_half_a_character_is_refused_in_every_text(field: str) -> None:
    entry = {
        **{"ids": [1], "decision": "keep", "name": "n", "phenomenon": "p", "reasoning": "r"},
        **{"realism": 3, "why": "w", "objects": ["a"]},
    }
    entry[field] = ["SURROGATE"] if field == "objects" else "SURROGATE"
    text = json.dumps({"entries": [entry]}).replace("SURROGATE", "\\ud800")
    with pytest.raises(AnswerError, match="half a character"):
        Numbered(JUDGEMENTS, 1).read(text)
