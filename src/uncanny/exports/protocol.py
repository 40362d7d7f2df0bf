"""Exports in the table of protocols."""

from __future__ import annotations

from uncanny.protocol import Input, Protocol

PROTOCOLS = (
    Protocol(
        "export",
        ("export",),
        "Export a dataset",
        "Write the verified anomalies of a run as datasets.",
        "uncanny.exports.parameters:ExportParameters",
        Input("run", "run", "The run whose findings are exported.", bundled=False),
        makes="files",
        report=False,
    ),
)
