"""What pages share: templates, style and script with their hashes for the page's policy, how numbers read.

A page is one file that asks nothing of the network. Its pictures, and the viewer that opens them, are in
`pictures.py`.
"""

from __future__ import annotations

import hashlib
import re
from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from uncanny import __version__
from uncanny.eval.common.estimates import NO_INTERVAL, Estimate, Share, interval_words
from uncanny.eval.common.pages.pictures import Layer, PageViews, PicturesMode, Shot, View
from uncanny.eval.common.tables.table import TableResult
from uncanny.records.jsonl import write_named

_SHARED = "uncanny.eval.common"


def score_page(
    package: str,
    styles: Sequence[str],
    filters: Mapping[str, Callable[..., Any]],
    *,
    scripts: Sequence[str] = (),
) -> Environment:
    """What a page of scores is rendered with: templates of `package`, then the shared ones.

    `styles` and `scripts` come after the shared ones. Without scripts all that is in the page can be read,
    but nothing opens and no table is sorted.
    """
    return page_environment(
        ("run.css", "viewer.css", "scores.css", *styles),
        filters,
        scripts=("dom.js", "paging.js", "viewer.js", "sort.js", *scripts),
        package=package,
    )


def page_environment(
    styles: Sequence[str],
    filters: Mapping[str, Callable[..., Any]],
    *,
    scripts: Sequence[str] = (),
    package: str = _SHARED,
) -> Environment:
    """What pages are rendered with: everything is escaped, and an unknown variable is an error.

    All `styles` have one hash in the page's policy, and so have all `scripts`; templates extend
    `page.html.j2`, which names both.
    """
    environment = Environment(
        loader=ChoiceLoader([PackageLoader(package, "templates"), PackageLoader(_SHARED, "templates")]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    shared: dict[str, Callable[..., Any]] = {
        "percent": percent,
        "number": lambda value: f"{value:,}",
        "breakable": breakable,
    }
    environment.filters |= {**shared, **filters}
    style, script = _source_text(environment, styles), _source_text(environment, scripts)
    environment.globals |= {
        "style": Markup(style),
        "style_hash": _csp_hash(style),
        "script": Markup(script),
        "script_hash": _csp_hash(script) if scripts else "",
        "version": __version__,
        "no_interval": NO_INTERVAL,
    }
    return environment


def write_rendered(
    environment: Environment, template: str, path: Path, *, made: datetime | None = None, **content: object
) -> Path:
    """Write the page that `template` makes of `content` to `path` and return it.

    `made` is now, unless it is given. Raises OSError; the file appears whole or not at all.
    """
    when = stamp((made or datetime.now(UTC)).isoformat())
    page = environment.get_template(template).render(made=when, **content)
    write_named(path, [page.encode("utf-8", "replace")])
    return path


def _source_text(environment: Environment, names: Sequence[str]) -> str:
    assert environment.loader is not None
    source = "\n".join(environment.loader.get_source(environment, name)[0] for name in names)
    # Browsers hash after normalising line ends; a checkout with CRLF would not match its own policy.
    return source.replace("\r\n", "\n")


def _csp_hash(source: str) -> str:
    return "sha256-" + b64encode(hashlib.sha256(source.encode()).digest()).decode()


def percent(rate: float | None) -> str:
    """A rate for people: never 0 % or 100 % for what is only nearly so, and a dash for none.

    The space is one that no line breaks at.
    """
    if rate is None:
        return "–"
    if 0 < rate < 0.001:
        return "<0.1\N{NO-BREAK SPACE}%"
    if 0.999 < rate < 1:
        return ">99.9\N{NO-BREAK SPACE}%"
    return f"{rate:.1%}".replace(".0%", "%").replace("%", "\N{NO-BREAK SPACE}%")


def figure_words(figure: Estimate | Share) -> str:
    """A figure as plots say it: percent, counts of a share, and its interval."""
    if figure.value is None:
        return "not measured"
    interval = interval_words(figure)
    counts = f", {figure.counts:,} of {figure.out_of:,}" if isinstance(figure, Share) else ""
    return f"{percent(figure.value)}{counts}" + (f", interval {interval}" if interval else "")


def breakable(name: str) -> Markup:
    """A name, escaped, that a narrow column breaks at its slashes and dashes instead of within words.

    Numbers of versions stay whole.
    """
    return Markup("<wbr>").join(escape(part) for part in re.split(r"(?<=[/:_-])(?=.)|(?<=\.)(?=\D)", name))


def stamp(text: str) -> str:
    """A time as people read it, in UTC to the minute; what is not ISO 8601 stays as it is."""
    try:
        when = datetime.fromisoformat(text)
        return f"{when.astimezone(UTC) if when.tzinfo else when:%Y-%m-%d %H:%M} UTC"
    except (ValueError, OverflowError):
        return text


@dataclass(frozen=True, slots=True)
class Card:
    """One input on the page of a result: `badge` is what came of it in a word, `texts` are by what they
    are."""

    title: str
    shot: Shot
    badge: str
    texts: Mapping[str, str]


def write_result_page(
    result: TableResult,
    path: Path,
    *,
    title: str,
    lead: str,
    facts: Mapping[str, str],
    cards: Sequence[Card] = (),
    n_inputs: int = 0,
    pictures: PicturesMode = "link",
) -> Path:
    """Write the page of any result to `path` and return it: the `lead`, its tables, and a card an input.

    `facts` stand in the head of the page, by name. The page says how many of the `n_inputs` have no card.
    Full-size pictures are linked or embedded, as `pictures` says. A protocol whose page needs more than this
    extends `result.html.j2`, or `page.html.j2` below it, with a template of its own, rendered by the
    environment of `score_page`. Raises OSError; the file appears whole or not at all.
    """
    views = PageViews(path, pictures)
    shown = views.add([View(card.title, (Layer("image", card.shot),)) for card in cards])
    return write_rendered(
        score_page(_SHARED, (), {}),
        "result.html.j2",
        path,
        title=title,
        lead=lead,
        facts=facts,
        tables=result.tables(),
        cards=list(zip(cards, shown, strict=True)),
        n_inputs=n_inputs,
        page_views=views,
    )
