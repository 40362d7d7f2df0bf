"""The interface against its own description: whatever is asked, the answer is one that is described."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from schemathesis import AuthContext, Case, HookContext
from schemathesis.config import SchemathesisConfig
from schemathesis.engine import events, from_schema
from schemathesis.engine.recorder import ScenarioRecorder

from tests.service.api.conftest import Site, png
from uncanny.service.api.app import guarded, service_app
from uncanny.service.api.auth import Rates

# No description says which suffixes, uploads and models there are, which limits a job's kind has, or which
# corners make a box.
NOT_TO_BE_DESCRIBED = {
    ("POST /api/v1/files", "positive_data_acceptance"),
    ("POST /api/v1/jobs", "positive_data_acceptance"),
    ("POST /api/v1/jobs/{job_id}/limits", "positive_data_acceptance"),
    ("POST /api/v1/jobs/{job_id}/verdicts", "positive_data_acceptance"),
}


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_no_answer_is_other_than_described(site: Site) -> None:
    """Examples, boundaries and made-up requests for every route; half of them about things that are there."""
    app = service_app(site.service, rates=Rates(10**9, 10**9, 10**9))
    with site.client() as client:
        images = client.post("/api/v1/images", files=[("files", ("a.png", png()))]).json()["id"]
        file = client.post("/api/v1/files", files=[("file", ("a.jsonl", b"{}\n"))]).json()["id"]
    app.state.ending.set()  # streams of jobs that nobody works on would have no end
    there = {"job_id": site.ended_job().id, "set_id": images, "file_id": file}
    there["path"] = "run/annotations.jsonl"
    token = site.service.tokens.add("ann", "operator")
    config = SchemathesisConfig.from_dict(
        {
            "generation": {"max-examples": 40, "deterministic": True},
            "phases": {"stateful": {"enabled": False}},
        }
    )
    served = guarded(app, names=["testserver"])
    schema = schemathesis.openapi.from_asgi("/openapi.json", served, config=config)

    @schema.auth()
    class _Bearer:
        def get(self, _case: Case[Any], _context: AuthContext) -> str:
            return token

        def set(self, case: Case[Any], data: str, _context: AuthContext) -> None:
            case.headers["Authorization"] = f"Bearer {data}"

    turn = 0

    @schema.hook
    def map_path_parameters(context: HookContext, path_parameters: dict[str, Any]) -> dict[str, Any]:
        nonlocal turn
        turn += 1
        deletes = context.operation is not None and context.operation.method.upper() == "DELETE"
        if turn % 2 or deletes or not path_parameters:
            return path_parameters
        return {name: there.get(name, value) for name, value in path_parameters.items()}

    wrong: set[str] = set()
    asked = 0
    for event in from_schema(schema).execute():
        if isinstance(event, events.ScenarioFinished):
            asked += len(event.recorder.interactions)
            wrong |= set(_wrong(event.recorder))
        elif isinstance(event, events.NonFatalError | events.FatalError):
            wrong.add(repr(event))
    assert asked > 500
    assert not wrong, "\n".join(sorted(wrong))


def _wrong(recorder: ScenarioRecorder) -> Iterator[str]:
    for checks in recorder.checks.values():
        for check in checks:
            if check.failure_info is None or (recorder.label, check.name) in NOT_TO_BE_DESCRIBED:
                continue
            failure = check.failure_info.failure
            yield f"{recorder.label}: {failure.title}: {failure.message} {check.failure_info.code_sample}"
