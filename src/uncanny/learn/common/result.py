"""A run of training as an object: its steps, what came of it, its examples, its page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import orjson

from uncanny.errors import UsageError
from uncanny.eval.common.parameters import PicturesMode
from uncanny.eval.common.tables.table import Column, Table, TableResult
from uncanny.learn.common.session import EXAMPLES, MODEL, read_results
from uncanny.learn.common.steps import STEPS, StepRecord, read_steps
from uncanny.parameters import path_of
from uncanny.records.jsonl import open_to_read
from uncanny.records.run_folder import RunFolder
from uncanny.records.run_manifest import RunManifest
from uncanny.wording import duration


class LearnRun(TableResult):
    """A run of `uncanny learn`, finished or not.

    Opening it reads `run.json`. Raises UsageError where `path` is not such a run.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = path_of("run", path)
        manifest = RunFolder(self.path).read_manifest()
        if manifest is None or not str(manifest.task).startswith("learn_"):
            raise UsageError(
                f"{self.path} is not a run of `uncanny learn`", remedy="Pass the folder of such a run."
            )
        self.manifest: RunManifest = manifest

    @property
    def state(self) -> str:
        """`finished`, `interrupted` (the same call resumes it), `stopped` by an error, or `running`."""
        return str(self.manifest.state)

    @property
    def model(self) -> Path:
        """The folder of the trained model: an adapter, or whole weights, with its card."""
        return self.path / MODEL

    @cached_property
    def steps(self) -> Sequence[StepRecord]:
        """One record per optimizer step. Raises RecordError for an invalid line."""
        return read_steps(self.path / STEPS)

    @cached_property
    def results(self) -> Mapping[str, Any]:
        """`results.json`; empty until training has ended. Raises UsageError where it cannot be read."""
        return read_results(self.path)

    @cached_property
    def examples(self) -> Sequence[Mapping[str, Any]]:
        """Held-out inputs with what was expected, and the answers before and after training."""
        reader = open_to_read(self.path / EXAMPLES)
        if reader is None:
            return []
        with reader:
            return [orjson.loads(line) for line in reader if line.strip()]

    def tables(self) -> tuple[Table, ...]:
        """The figures before and after, what training took, and the published rows."""
        return (*self._figures(), self._training(), *self._published())

    def _training(self) -> Table:
        results, steps = self.results, self.steps
        losses = [each.loss for each in steps if each.loss is not None]
        seconds = None if self.manifest.totals is None else self.manifest.totals.seconds
        memory = max((each.memory_bytes or 0 for each in steps), default=0)
        rows: list[tuple[str, Any]] = [
            ("state", self.state),
            ("optimizer steps", len(steps)),
            ("loss, first step", losses[0] if losses else None),
            ("loss, last step", losses[-1] if losses else None),
            ("trainable parameters", results.get("trainable_parameters")),
            ("all parameters", results.get("parameters")),
            ("time", None if seconds is None else duration(seconds)),
            ("peak memory", f"{memory / 2**30:.2f} GiB" if memory else None),
        ]
        return Table(("training", Column("value", digits=4)), tuple(rows), title="Training")

    def _figures(self) -> tuple[Table, ...]:
        figures: Mapping[str, Mapping[str, Any]] = self.results.get("figures", {})
        if not figures:
            return ()
        rows = tuple((name, each.get("before"), each.get("after")) for name, each in figures.items())
        columns = ("on held-out data", Column("before", digits=3), Column("after", digits=3))
        notes = tuple(self.results.get("notes", ()))
        return (Table(columns, rows, title="Before and after training", notes=notes),)

    def _published(self) -> tuple[Table, ...]:
        published = self.results.get("published")
        if not published:
            return ()
        rows = tuple((name, *cells) for name, *cells in published["rows"])
        # As many digits as the paper has.
        printed = [str(cell) for _, *cells in rows for cell in cells if cell is not None]
        digits = max(len(each.partition(".")[2]) for each in printed)
        columns: tuple[str | Column, ...] = (
            "published",
            *(Column(name, digits=digits) for name in published["columns"]),
        )
        return (Table(columns, rows, title="Published", notes=(published["note"],)),)

    def to_json(self) -> dict[str, Any]:
        """State, steps, first and last loss, seconds, where the model is, and all of `results.json`."""
        losses = [each.loss for each in self.steps]
        return {
            "run": str(self.path),
            "state": self.state,
            "model": str(self.model) if self.model.is_dir() else None,
            "steps": len(self.steps),
            "first_loss": losses[0] if losses else None,
            "last_loss": losses[-1] if losses else None,
            "seconds": None if self.manifest.totals is None else self.manifest.totals.seconds,
            "results": dict(self.results),
        }

    def report(self, out: str | Path | None = None, *, pictures: PicturesMode = "link") -> Path:
        """Write the page, `report.html` in the run's folder unless `out` is given, and return its path.

        Raises OSError where it cannot be written.
        """
        from uncanny.learn.common.report import write_page

        return write_page(self, self.path / "report.html" if out is None else Path(out), pictures=pictures)
