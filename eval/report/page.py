"""What pages of scores share: templates, style and its hash for the page's policy, and how a number reads."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from uncanny.eval.report.figures import percent
from uncanny.eval.report.run_report import csp_hash, source_text

_SHARED_STYLES = ("run.css", "scores.css")


def score_page(package: str, styles: Sequence[str], filters: Mapping[str, Callable[..., Any]]) -> Environment:
    """Templates of `package`, then the shared ones; `styles` come after the shared ones, all in one hash.

    Everything is escaped, and an unknown variable is an error. Pages of scores have no script.
    """
    environment = Environment(
        loader=ChoiceLoader(
            [PackageLoader(package, "templates"), PackageLoader("uncanny.eval.report", "templates")]
        ),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"percent": percent, "number": lambda value: f"{value:,}", **filters}
    style = source_text(environment, (*_SHARED_STYLES, *styles))
    environment.globals |= {"style": Markup(style), "style_hash": csp_hash(style)}
    return environment
