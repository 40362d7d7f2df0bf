"""A page as a test reads it, and what must hold of every page of figures."""

from __future__ import annotations

import base64
import hashlib
import re
from html.parser import HTMLParser


class Page(HTMLParser):
    """Tags with their attributes, and the words between them."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.html = html
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        if self.cdata_elem != "script":  # nobody reads these
            self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attrs for name, attrs in self.tags if name == tag]


def check_static_page(page: Page) -> None:
    """It loads nothing, its policy knows its one style, tags are closed in order, links lead somewhere."""
    policy = next(meta["content"] for meta in page.all("meta") if meta.get("http-equiv"))
    style = re.search(r"<style>(.*?)</style>", page.html, re.DOTALL)
    assert policy is not None
    assert style is not None
    digest = base64.b64encode(hashlib.sha256(style[1].encode()).digest()).decode()
    assert re.match(r"default-src 'none'; img-src data:( 'self' file:)?; style-src", policy)
    assert f"style-src 'sha256-{digest}'" in policy
    assert page.html.count("</style>") == 1
    check_script(page)
    assert not [attrs for _, attrs in page.tags if "style" in attrs]
    assert all((attrs["src"] or "").startswith("data:image/webp;base64,") for attrs in page.all("img"))
    _check_nesting(page.html)
    ids = [attrs["id"] or "" for _, attrs in page.tags if "id" in attrs]
    assert len(ids) == len(set(ids))
    links = [attrs["href"] or "" for attrs in page.all("a") + page.all("use")]
    assert all(link.startswith("#") for link in links)
    assert {link[1:] for link in links} <= set(ids)


def check_script(page: Page) -> None:
    """All that runs is the program's own script, by its hash; other script elements are data."""
    policy = next(meta["content"] for meta in page.all("meta") if meta.get("http-equiv"))
    (script,) = re.findall(r"<script>(.*?)</script>", page.html, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in (policy or "")
    assert not re.search(r"@import|url\(|\bfetch\(|XMLHttpRequest|innerHTML", script)
    others = [attrs for attrs in page.all("script") if attrs]
    assert len(page.all("script")) == len(others) + 1
    assert all(attrs["type"] == "application/json" for attrs in others)


def _check_nesting(html: str) -> None:
    open_tags: list[str] = []
    html = re.sub(r"<script\b.*?</script>", "", html, flags=re.DOTALL)
    for slash, tag, rest in re.findall(r"<(/?)([a-zA-Z]\w*)\b([^>]*)>", html):
        if slash:
            assert open_tags.pop() == tag
        elif not rest.endswith("/") and tag not in ("meta", "img", "input", "wbr"):
            open_tags.append(tag)
    assert open_tags == []
