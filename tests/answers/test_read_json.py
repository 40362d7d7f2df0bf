"""Well-formed JSON answers."""

from __future__ import annotations

import json

import pytest

from uncanny.answers.forms import ANOMALIES
from uncanny.answers.lists import read_list
from uncanny.errors import AnswerError
from uncanny.schema import Anomaly

ONE = (
    '{"name": "Six fingers", "phenomenon": "Six.", "reasoning": "Five.", "severity": 20, "objects": ["hand"]}'
)
LABELLED = "@1. Name: Six fingers\nPhenomenon: Six.\nReasoning: Five.\nSeverity Score: 20"
READ = Anomaly(name="Six fingers", phenomenon="Six.", reasoning="Five.", severity=20, objects=("hand",))


def test_reads_bare_and_wrapped() -> None:
    assert read_list(f'{{"anomalies": [{ONE}]}}', ANOMALIES) == (READ,)
    assert read_list(f'{{"answer": {{"anomalies": [{ONE}]}}}}', ANOMALIES) == (READ,)


def test_collapses_exact_duplicates() -> None:
    assert read_list(f'{{"anomalies": [{ONE}, {ONE}]}}', ANOMALIES) == (READ,)


def test_an_empty_list_is_an_answer() -> None:
    assert read_list('{"anomalies": []}', ANOMALIES) == ()


@pytest.mark.parametrize("answer", ["No anomalies.", LABELLED, f'{{"anomalies": [{ONE}]}}'])
def test_a_text_in_a_json_object_is_taken_out(answer: str) -> None:
    assert read_list(json.dumps({"answer": answer}), ANOMALIES) == read_list(answer, ANOMALIES)


@pytest.mark.parametrize("answer", ["I cannot say.", "", 3, None, ["a"]])
def test_what_is_in_it_is_no_better_for_that(answer: object) -> None:
    with pytest.raises(AnswerError):
        read_list(json.dumps({"answer": answer}), ANOMALIES)
