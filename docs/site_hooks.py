"""What the site does to pages that also read well as they lie in the repository.

- A link to a file or folder beside `docs/`, such as a prompt, leads to a page made of it, below `source/`.
- Formulas, written as GitHub shows them, become MathML, which browsers draw without a script.
- A diagram becomes the picture of it that `make_diagrams.py` has drawn.
- A page that `mkdocs.yml` does not name comes at the end of the guides.
"""

from __future__ import annotations

import hashlib
import os
import posixpath
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from latex2mathml.converter import convert
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
SOURCE = "source/"
# Pages of the repository that the navigation names.
PAGES = ("CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "benchmarks/README.md")
GUIDES = "Guides"
NOT_SHOWN = ("__pycache__",)

_FENCED = re.compile(r"^(```+)(.*?)\n(.*?)^\1[ \t]*$\n?", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"(\]\()([^)\s]+)(\))")
_INLINE_MATH = re.compile(r"\$`([^`\n]+)`\$")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Pages that are not in the navigation go to the guides."""
    nav: list[Any] = config["nav"]
    named = set(_leaves(nav))
    pages = sorted(path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md"))
    guides = next(section[GUIDES] for section in nav if GUIDES in section)
    guides += [page for page in pages if page not in named]
    return config


def _leaves(nav: Any) -> Iterator[str]:
    if isinstance(nav, str):
        yield nav
    else:
        for each in nav.values() if isinstance(nav, dict) else nav:
            yield from _leaves(each)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add a page for each file and folder beside `docs/` that a page links to, and for what those link to."""
    waiting = [ROOT / page for page in PAGES]
    for page in DOCS.rglob("*.md"):
        waiting += _linked(page, page.read_text(encoding="utf-8"))
    made: set[Path] = set()
    while waiting:
        path = waiting.pop()
        if path in made:
            continue
        made.add(path)
        text = _source_page(path)
        files.append(File.generated(config, _site_path(path), content=text))
        if path.suffix == ".md" or path.is_dir():
            waiting += _linked(path, text)
    return files


def _linked(page: Path, text: str) -> list[Path]:
    """What a page links to that lies in the repository and is no page of the site by itself."""
    targets = (_target(page, match[2]) for match in _LINK.finditer(_FENCED.sub("", text)))
    return [path for path in targets if path is not None and not path.is_relative_to(DOCS)]


def _target(page: Path, link: str) -> Path | None:
    """The file or folder that a relative link leads to; None for addresses and anchors."""
    path = link.partition("#")[0]
    if not path or re.match(r"[a-z]+:", link):
        return None
    folder = page if page.is_dir() else page.parent
    target = Path(os.path.normpath(folder / path))
    return target if target.exists() and target.is_relative_to(ROOT) else None


def _site_path(path: Path) -> str:
    """Where the site has what lies at `path`."""
    if path.is_relative_to(DOCS):
        return path.relative_to(DOCS).as_posix()
    name = SOURCE + path.relative_to(ROOT).as_posix()
    if path.is_dir():
        return f"{name}/index.md"
    return name if path.suffix == ".md" else f"{name}.md"


def _source_page(path: Path) -> str:
    """A page of Markdown as it is, a folder as its texts one below the other, any other file as code."""
    name = path.relative_to(ROOT).as_posix()
    if path.is_dir():
        inner = sorted(each for each in path.iterdir() if each.name not in NOT_SHOWN)
        folders = [f"- [{each.name}]({each.name})" for each in inner if each.is_dir()]
        texts = [
            f"## {each.name}\n\n{_code(each.read_text(encoding='utf-8'), 'text')}"
            for each in inner
            if each.suffix == ".md"
        ]
        return "\n\n".join([f"# {name}/", "\n".join(folders), *texts])
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".md":
        return text
    language = {".py": "python", ".yaml": "yaml", ".ipynb": "json", "": "docker"}.get(path.suffix, "ini")
    return f"# {name}\n\n{_code(text, language)}"


def _code(text: str, language: str) -> str:
    return f"`````{language}\n{text.rstrip()}\n`````\n"


def on_page_markdown(markdown: str, page: Page, **_: object) -> str:
    """The page with its links, formulas and diagrams as the site needs them."""
    uri = page.file.src_uri
    origin = _origin(uri)

    def relink(match: re.Match[str]) -> str:
        path = _target(origin, match[2])
        if path is None or (path.is_relative_to(DOCS) and origin.is_relative_to(DOCS)):
            return match[0]
        place = posixpath.relpath(_site_path(path), posixpath.dirname(uri) or ".")
        _, sign, anchor = match[2].partition("#")
        return f"{match[1]}{place}{sign}{anchor}{match[3]}"

    def prose(text: str) -> str:
        # A line that begins with a formula would be a block of its own without the span.
        return _INLINE_MATH.sub(lambda match: f"<span>{convert(match[1])}</span>", _LINK.sub(relink, text))

    def fenced(match: re.Match[str]) -> str:
        language = match[2].strip()
        if language == "math":
            return f'<div class="formula">{convert(match[3].strip(), display="block")}</div>\n\n'
        if language == "mermaid":
            return _diagram(match[3], uri)
        return match[0]

    return _by_fences(markdown, prose, fenced)


def _by_fences(text: str, prose: Callable[[str], str], fenced: Callable[[re.Match[str]], str]) -> str:
    parts, end = [], 0
    for match in _FENCED.finditer(text):
        parts += [prose(text[end : match.start()]), fenced(match)]
        end = match.end()
    return "".join([*parts, prose(text[end:])])


def _origin(uri: str) -> Path:
    """The file or folder that a page of the site was made of."""
    if not uri.startswith(SOURCE):
        return DOCS / uri
    path = ROOT / uri.removeprefix(SOURCE)
    if path.name == "index.md":
        return path.parent
    return path if path.exists() else path.with_suffix("")


def diagram_file(text: str) -> str:
    """Where the picture of a diagram lies, from `docs/`: its name follows from its text."""
    return f"images/diagrams/{hashlib.sha256(text.encode()).hexdigest()[:12]}.svg"


def diagrams(markdown: str) -> list[str]:
    """The texts of all diagrams of a page."""
    return [match[3] for match in _FENCED.finditer(markdown) if match[2].strip() == "mermaid"]


def _diagram(text: str, uri: str) -> str:
    # A picture that is missing is a broken link, which a strict build does not let pass.
    place = posixpath.relpath(diagram_file(text), posixpath.dirname(uri) or ".")
    return f"[![Diagram]({place}){{ .diagram }}]({place})\n\n"
