"""Well-formed JSON answers."""

from __future__ import annotations

from uncanny.answers.forms import ANOMALIES
from uncanny.answers.lists import read_list
from uncanny.schema import Anomaly

ONE = (
    '{"name": "Six fingers", "phenomenon": "Six.", "reasoning": "Five.", "severity": 20, "objects": ["hand"]}'
)
READ = Anomaly(name="Six fingers", phenomenon="Six.", reasoning="Five.", severity=20, objects=("hand",))


def test_reads_bare_and_wrapped() -> None:
    assert read_list(f'{{"anomalies": [{ONE}]}}', ANOMALIES) == (READ,)
    assert read_list(f'{{"answer": {{"anomalies": [{ONE}]}}}}', ANOMALIES) == (READ,)


def test_collapses_exact_duplicates() -> None:
    assert read_list(f'{{"anomalies": [{ONE}, {ONE}]}}', ANOMALIES) == (READ,)


def test_an_empty_list_is_an_answer() -> None:
    assert read_list('{"anomalies": []}', ANOMALIES) == ()
