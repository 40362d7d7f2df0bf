"""The site as `make site` has built it: nothing in it is loaded from elsewhere, every public name is there.

Only where UNCANNY_SITE names its folder, as in CI.
"""

from __future__ import annotations

import os
import re
from html.parser import HTMLParser
from importlib import import_module
from pathlib import Path

import pytest

import uncanny
from tests.doors import MODULES

DOCS = Path(__file__).parents[2] / "docs"
SITE = os.environ.get("UNCANNY_SITE")
# What a browser fetches without being asked.
LOADED = {"script": "src", "img": "src", "link": "href", "iframe": "src", "source": "src", "object": "data"}
NOT_FETCHED = {"canonical", "prev", "next"}


def public_names() -> set[str]:
    names = {f"uncanny.{name}" for name in uncanny.__all__} - {f"uncanny.{name}" for name in MODULES}
    for module in MODULES:
        names |= {f"uncanny.{module}.{name}" for name in import_module(f"uncanny.{module}").__all__}
    # The base of the tree is there with the others.
    return names - {"uncanny.UncannyError"}


def test_every_public_name_has_its_place_on_the_page() -> None:
    page = (DOCS / "api.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^::: (\S+)$", page, re.MULTILINE)) == public_names()


class _Loaded(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.addresses: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        address = values.get(LOADED.get(tag, ""))
        if address and values.get("rel") not in NOT_FETCHED:
            self.addresses.append(address)


@pytest.mark.skipif(SITE is None, reason="UNCANNY_SITE names the folder of the built site")
def test_the_site_loads_nothing_from_elsewhere() -> None:
    assert SITE is not None
    pages = sorted(Path(SITE).rglob("*.html"))
    assert len(pages) > 40
    foreign = {}
    for page in pages:
        parser = _Loaded()
        parser.feed(page.read_text(encoding="utf-8"))
        foreign[page.name] = [each for each in parser.addresses if re.match(r"(?:[a-z]+:)?//", each)]
    assert {name: addresses for name, addresses in foreign.items() if addresses} == {}
    styles = [style.read_text(encoding="utf-8") for style in Path(SITE).rglob("*.css")]
    assert not [url for style in styles for url in re.findall(r"url\([\"']?((?:https?:)?//[^)]*)\)", style)]


@pytest.mark.skipif(SITE is None, reason="UNCANNY_SITE names the folder of the built site")
def test_formulas_diagrams_and_links_beside_the_docs_became_what_they_should() -> None:
    assert SITE is not None
    methods = (Path(SITE) / "methods.html").read_text(encoding="utf-8")
    assert methods.count('<math xmlns="http://www.w3.org/1998/Math/MathML" display="block">') >= 10
    assert "$`" not in methods
    annotate = (Path(SITE) / "annotate.html").read_text(encoding="utf-8")
    assert "mermaid" not in annotate
    assert 'href="source/prompts/packed/index.html"' in annotate
    assert (Path(SITE) / "source/prompts/packed/index.html").is_file()


@pytest.mark.skipif(SITE is None, reason="UNCANNY_SITE names the folder of the built site")
def test_no_table_and_no_link_stays_as_it_was_written() -> None:
    assert SITE is not None
    left = {}
    for page in sorted(Path(SITE).rglob("*.html")):
        text = page.read_text(encoding="utf-8")
        prose = re.sub(r"<(pre|code|script)\b.*?</\1>", "", text, flags=re.DOTALL)
        left[page.name] = re.findall(r"\| -{3}|\]\([^)\s]+\)|^```|<p>[^<]*\n- ", prose, re.MULTILINE)
    assert {name: rest for name, rest in left.items() if rest} == {}
