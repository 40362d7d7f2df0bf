"""Reports people read: a finished or running run as one self-contained HTML page."""

from uncanny.eval.report.run_report import write_report

__all__ = ["write_report"]
