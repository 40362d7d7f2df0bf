"""A realism run as other tools read it, and small pairs to run on."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from tests.runs.e2e import pictures
from uncanny.eval.realism.verdicts import Verdict, label_of


@dataclass(frozen=True, slots=True)
class RealismRun:
    """A run folder of `realism run`."""

    path: Path

    @property
    def file(self) -> Path:
        return self.path / "verdicts.jsonl"

    def verdicts(self) -> dict[str, Verdict]:
        """All verdicts by id, checked: each once, in order, with the label of its answers."""
        verdicts = [Verdict.model_validate_json(line) for line in self.file.read_bytes().splitlines()]
        names = [verdict.id for verdict in verdicts]
        assert names == sorted(set(names))
        for verdict in verdicts:
            check_verdict(verdict)
        return dict(zip(names, verdicts, strict=True))

    def answers(self) -> dict[str, dict[str, Any]]:
        """What of each pair must be the same whenever the same was answered."""
        kept = {
            "first",
            "original_first",
            "edited_first",
            "label",
            "case",
            "group",
            "outcome",
            "raw",
            "notes",
        }
        return {name: verdict.model_dump(include=kept) for name, verdict in self.verdicts().items()}

    def calls(self) -> list[dict[str, Any]]:
        return [orjson.loads(line) for line in (self.path / "calls.jsonl").read_bytes().splitlines()]

    def manifest(self) -> dict[str, Any]:
        manifest: dict[str, Any] = orjson.loads((self.path / "run.json").read_bytes())
        return manifest


def check_verdict(verdict: Verdict) -> None:
    """What must hold for every record, however the models behaved."""
    answers = (verdict.first, verdict.original_first, verdict.edited_first)
    assert (verdict.label, verdict.case) == label_of(*answers), verdict
    assert (verdict.outcome == "judged") == (not verdict.errors) == (verdict.label != "undetermined"), verdict
    if verdict.first != "yes":
        assert answers[1:] == (None, None), verdict
    if verdict.outcome == "unusable":
        assert not verdict.raw, verdict
    else:
        assert set(verdict.raw) == (
            {"first", "original_first", "edited_first"} if verdict.first == "yes" else {"first"}
        )
    assert verdict.usage is not None


def small_pairs(folder: Path, number: int) -> Path:
    """A pair file on small pictures, no two alike."""
    pictures(folder / "original", number)
    pictures(folder / "edited", number, first=100)
    lines = [
        orjson.dumps(
            {
                "id": f"i{index:02d}",
                "original": f"original/p{index:02d}.png",
                "edited": f"edited/p{100 + index}.png",
                "group": "even" if index % 2 == 0 else "odd",
            }
        )
        for index in range(number)
    ]
    path = folder / "pairs.jsonl"
    path.write_bytes(b"\n".join(lines) + b"\n")
    return path
