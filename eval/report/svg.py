"""From the SVG that matplotlib writes to one that belongs to a page: its colours, its font, its policy.

The page forbids style attributes, so that styles become presentation attributes. Colours are drawn as
stand-ins and become the page's variables here, so that a plot follows light and dark. Ids become unique.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from xml.etree import ElementTree

from markupsafe import Markup

# The variables of run.css that a plot may use.
COLOURS = (
    *("bg", "panel", "ink", "soft", "line", "edge", "fill", "accent", "good", "warn", "bad"),
    *("s0", "s1", "s2", "s3", "s4", "a0", "a1", "a2", "a3", "a4", "a5"),
)
_STAND_INS = {name: f"#fe{place:02x}ef" for place, name in enumerate(COLOURS)}
_VARIABLES = {stand_in: f"var(--{name})" for name, stand_in in _STAND_INS.items()} | {"none": "none"}
_PAINTS = ("fill", "stroke")
# Text takes the page's font.
_DROPPED = ("font-family",)
_SVG, _XLINK = "{http://www.w3.org/2000/svg}", "{http://www.w3.org/1999/xlink}"
_REFERENCE = re.compile(r"url\(#([^)]+)\)")


def colour(name: str) -> str:
    """What to give matplotlib for the variable `name` of the page's style. Raises `KeyError` for another."""
    return _STAND_INS[name]


def themed(source: str, *, key: str, title: str, words: str, tips: Mapping[str, str]) -> Markup:
    """`source` as an element for the page.

    `key` makes its ids unique in the page. `title` and `words` are what those hear who don't see it. `tips`
    are tooltips by the gid of what is drawn. Raises `ValueError` for a colour that no theme knows.
    """
    root = ElementTree.fromstring(source)
    for parent in root.iter():
        for child in list(parent):
            if child.tag in (f"{_SVG}metadata", f"{_SVG}style"):
                parent.remove(child)
    _unstyle(root)
    _tips(root, tips)
    _rename(root, key)
    _label(root, key, title, words)
    for element in root.iter():
        element.tag = element.tag.removeprefix(_SVG)
        _tidy(element)
    return Markup(ElementTree.tostring(root, encoding="unicode"))


def _unstyle(root: ElementTree.Element) -> None:
    for element in root.iter():
        for declaration in filter(None, element.attrib.pop("style", "").split(";")):
            name, _, value = (part.strip() for part in declaration.partition(":"))
            if name not in _DROPPED:
                element.set(name, value)
        for paint in _PAINTS:
            drawn = element.get(paint)
            if drawn is not None and drawn not in _VARIABLES:
                raise ValueError(f"{drawn!r} is no colour of the page, use colour()")
            if drawn is not None:
                element.set(paint, _VARIABLES[drawn])


def _tips(root: ElementTree.Element, tips: Mapping[str, str]) -> None:
    for element in root.iter():
        if (words := tips.get(element.get("id", ""))) is not None:
            tip = ElementTree.Element(f"{_SVG}title")
            tip.text = words
            element.insert(0, tip)


def _rename(root: ElementTree.Element, key: str) -> None:
    """References get the page's own ids; ids that nothing refers to go."""
    names: dict[str, str] = {}

    def new(name: str) -> str:
        return names.setdefault(name, f"{key}-{len(names)}")

    for element in root.iter():
        if (link := element.attrib.pop(f"{_XLINK}href", None)) is not None:
            element.set("href", "#" + new(link.removeprefix("#")))
        for name, value in element.items():
            if (found := _REFERENCE.fullmatch(value)) is not None:
                element.set(name, f"url(#{new(found[1])})")
    for element in root.iter():
        if (old := element.attrib.pop("id", None)) in names:
            element.set("id", names[old])


def _tidy(element: ElementTree.Element) -> None:
    if not (element.text or "").strip():
        element.text = None
    element.tail = None
    if "d" in element.attrib:
        element.set("d", " ".join(element.attrib["d"].split()))
    if element.get("transform", "").startswith("rotate(-0 "):
        del element.attrib["transform"]


def _label(root: ElementTree.Element, key: str, title: str, words: str) -> None:
    for place, (tag, text) in enumerate((("title", title), ("desc", words))):
        element = ElementTree.Element(f"{_SVG}{tag}", {"id": f"{key}-{tag}"})
        element.text = text
        root.insert(place, element)
    _, _, width, height = root.attrib["viewBox"].split()
    root.attrib.clear()
    root.attrib |= {
        "viewBox": f"0 0 {width} {height}",
        "width": width,
        "height": height,
        "role": "img",
        "aria-labelledby": f"{key}-title",
        "aria-describedby": f"{key}-desc",
        "stroke-linejoin": "round",
    }
