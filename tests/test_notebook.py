"""The notebook in examples runs from top to bottom, under the event loop of a kernel."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import nbclient
import nbformat
import pytest

NOTEBOOK = Path(__file__).parents[1] / "examples" / "notebook.ipynb"


def read() -> Any:
    return nbformat.read(NOTEBOOK, as_version=4)  # type: ignore[no-untyped-call]


@pytest.mark.slow
def test_the_notebook_runs_and_shows_what_it_promises() -> None:
    notebook = read()
    nbclient.NotebookClient(notebook, timeout=300, kernel_name="python3").execute()
    cells = {cell["id"]: cell for cell in notebook.cells if cell["cell_type"] == "code"}
    outputs: list[dict[str, Any]] = [output for cell in cells.values() for output in cell["outputs"]]
    assert not [output for output in outputs if output["output_type"] == "error"]
    kinds = [kind for output in outputs for kind in output.get("data", {})]
    assert kinds.count("text/html") >= 3  # the run, the frame, the scores
    assert "image/png" in kinds
    text = "".join(output.get("text", "") for output in outputs)
    assert "/100" in text


def test_the_notebook_is_kept_without_outputs() -> None:
    for cell in read().cells:
        assert not cell.get("outputs")
        assert cell.get("execution_count") is None
