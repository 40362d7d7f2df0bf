"""Reading model answers: from whatever text came back to validated items, or to one `AnswerError`.

`read_list(text, form)` reads a list; `uncanny.answers.forms` holds the forms of the pipeline's steps, also as
JSON schema for backends that can constrain an answer; `uncanny.answers.verdicts` reads verdicts.
"""

from uncanny.answers.forms import (
    ANOMALIES,
    ATTRIBUTES,
    FINDINGS,
    FORMS,
    OBJECTS,
    RELATIONS,
    AttributeFinding,
    Finding,
    ItemField,
    ListForm,
    RelationFinding,
    make_form,
    own_schema,
    shared_schema,
)
from uncanny.answers.lists import read_first, read_list, read_severity

__all__ = [
    "ANOMALIES",
    "ATTRIBUTES",
    "FINDINGS",
    "FORMS",
    "OBJECTS",
    "RELATIONS",
    "AttributeFinding",
    "Finding",
    "ItemField",
    "ListForm",
    "RelationFinding",
    "make_form",
    "own_schema",
    "read_first",
    "read_list",
    "read_severity",
    "shared_schema",
]
