"""What pages share: templates, style with its hash for the page's policy, data, pictures, how numbers read.

A page is one file that loads nothing: pictures are WebP data URIs, a thumbnail each and larger ones while
there is room, and JSON inside it cannot end its script element, whatever a model wrote.
"""

from __future__ import annotations

import hashlib
from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson
from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from uncanny import __version__
from uncanny.eval.common.tables import TableResult
from uncanny.images import thumbnail
from uncanny.records.jsonl import write_atomically

_SHARED = "uncanny.eval.common"


def score_page(package: str, styles: Sequence[str], filters: Mapping[str, Callable[..., Any]]) -> Environment:
    """What a page of scores is rendered with: templates of `package`, then the shared ones.

    `styles` come after the shared ones. Pages of scores have no script.
    """
    return page_environment(("run.css", "scores.css", *styles), filters, package=package)


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
    environment.filters |= {"percent": percent, "number": lambda value: f"{value:,}", **filters}
    style, script = _source_text(environment, styles), _source_text(environment, scripts)
    environment.globals |= {
        "style": Markup(style),
        "style_hash": _csp_hash(style),
        "script": Markup(script),
        "script_hash": _csp_hash(script) if scripts else "",
        "version": __version__,
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
    write_atomically(path, [page.encode("utf-8", "replace")])
    return path


def _source_text(environment: Environment, names: Sequence[str]) -> str:
    assert environment.loader is not None
    source = "\n".join(environment.loader.get_source(environment, name)[0] for name in names)
    # Browsers hash after normalising line ends; a checkout with CRLF would not match its own policy.
    return source.replace("\r\n", "\n")


def _csp_hash(source: str) -> str:
    return "sha256-" + b64encode(hashlib.sha256(source.encode()).digest()).decode()


def percent(rate: float | None) -> str:
    """A rate for people: never 0% or 100% for what is only nearly so, and a dash for none."""
    if rate is None:
        return "–"
    if 0 < rate < 0.001:
        return "<0.1%"
    if 0.999 < rate < 1:
        return ">99.9%"
    return f"{rate:.1%}".replace(".0%", "%")


def stamp(text: str) -> str:
    """A time as people read it, in UTC to the minute; what is not ISO 8601 stays as it is."""
    try:
        when = datetime.fromisoformat(text)
        return f"{when.astimezone(UTC) if when.tzinfo else when:%Y-%m-%d %H:%M} UTC"
    except (ValueError, OverflowError):
        return text


# Only strings can hold these characters in JSON, so that escaping them never touches its syntax.
_ESCAPES = str.maketrans(
    {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}
)


def page_json(value: Any) -> Markup:
    """`value` as JSON for a `<script type="application/json">`."""
    return Markup(dumped(value).decode().translate(_ESCAPES))


def dumped(value: Any) -> bytes:
    """`value` as JSON. Whole numbers of more than 64 bits, which other tools may write, become floats."""
    try:
        return orjson.dumps(value)
    except TypeError:
        return orjson.dumps(_within_bits(value))


def _within_bits(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _within_bits(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_within_bits(each) for each in value]
    if isinstance(value, int) and not -(2**63) <= value < 2**64:
        try:
            return float(value)
        except OverflowError:
            return None
    return value


THUMBNAIL_SIDE = 320
LARGE_SIDE = 900
_THREADS = 4


@dataclass(frozen=True, slots=True)
class Picture:
    """Data URIs; `small` is None when the file cannot be read, `large` also when the page is full."""

    small: str | None
    large: str | None


@dataclass(frozen=True, slots=True)
class Shot:
    """A file to be shown; with `sha256` only if it has these bytes, and with "" never.

    So a page shows what was judged, and the records of a run from somebody else cannot bring just any file of
    this machine into it.
    """

    path: Path
    sha256: str | None = None


def pictures(shots: Sequence[Shot], budget: int) -> list[Picture]:
    """Encode the files in their order.

    `budget` is in bytes of data URI. Thumbnails are always made; larger pictures for the first files only,
    until the budget is used up.
    """
    with ThreadPoolExecutor(_THREADS) as pool:
        small = list(pool.map(lambda shot: _data_uri(shot, THUMBNAIL_SIDE), shots))
        left = budget - sum(len(uri) for uri in small if uri)
        large: list[str | None] = []
        for start in range(0, len(shots), _THREADS):
            if left <= 0:
                break
            some = zip(shots[start : start + _THREADS], small[start : start + _THREADS], strict=True)
            for uri in pool.map(lambda pair: pair[1] and _data_uri(pair[0], LARGE_SIDE), list(some)):
                left -= len(uri or "")
                large.append(uri if left >= 0 else None)
    large += [None] * (len(shots) - len(large))
    return [Picture(*uris) for uris in zip(small, large, strict=True)]


def _data_uri(shot: Shot, side: int) -> str | None:
    encoded = thumbnail(shot.path, side, sha256=shot.sha256)
    return None if encoded is None else "data:image/webp;base64," + b64encode(encoded).decode()


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
) -> Path:
    """Write the page of any result to `path` and return it: the `lead`, its tables, and a card an input.

    `facts` stand in the head of the page, by name. The page says how many of the `n_inputs` have no card. A
    protocol whose page needs more than this extends `result.html.j2`, or `page.html.j2` below it, with a
    template of its own, rendered by the environment of `score_page`. Raises OSError; the file appears whole
    or not at all.
    """
    shown = zip(cards, pictures([card.shot for card in cards], budget=0), strict=True)
    return write_rendered(
        score_page(_SHARED, (), {}),
        "result.html.j2",
        path,
        title=title,
        lead=lead,
        facts=facts,
        tables=result.tables(),
        cards=[(card, picture.small) for card, picture in shown],
        n_inputs=n_inputs,
    )
