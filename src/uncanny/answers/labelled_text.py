"""Items as labelled text: `@1. Name: … Phenomenon: … Reasoning: … Severity Score: 20`.

Marks and labels are read whatever Markdown is around them: `1.`, `1)`, `### 1.`, `**Anomaly 1**`,
`- **Name**:`, `**Name:**`, full-width colons, labels on lines of their own or in the middle of a line, or all
items in one line. `says_nothing` tells an answer that says, and says only, that there is nothing to list.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise
from typing import Any, Literal

from uncanny.answers.forms import ItemField, ListForm, label_key
from uncanny.errors import AnswerError

Mark = Literal["at", "word", "number", "heading", ""]

_DECOR = r"[\s>*_•·‣▪◦+`\u2013\u2014\u200b\u2060\ufeff-]*"
_WORDS = "anomaly|finding|issue|item|object|attribute|relation|problem"
_HEAD = re.compile(
    rf"""(?P<decor>{_DECOR}(?P<hashes>\#{{0,6}}){_DECOR})
    (?:
        (?P<at>@\s?\#?\d{{1,5}}\s?[.):：]?)
      | (?P<word>(?:{_WORDS})\s?(?:no\.?\s?|\#)?\d{{1,5}}[*_]{{0,3}}\s?(?:[.):：\u2013\u2014-]|$))
      | (?P<number>\(?\d{{1,4}}\s?(?:[.)](?!\d)|[、．]))
    )?
    {_DECOR}""",
    re.VERBOSE | re.IGNORECASE,
)
# No quotes: a label in quotes is the key of a piece of JSON.
_LABEL = re.compile(r"(?P<label>[^:：\"]{1,60})[:：]")
_PAIR = re.compile(r"(?P<title>[^:：]{1,200}?)[*_]{0,3}(?:[:：]|\s[-\u2013\u2014]\s)[*_]{0,3}(?P<rest>.*)")
_FENCE = re.compile(r"[`~]{3,} ?\w{0,12}")
_RULE = re.compile(r"[-*_=—]{3,}")
_BRACKETS = re.compile(r"[{}\[\]]+,?")
_YAML_BLOCK = (">", "|", ">-", "|-")
_LINES = re.compile(r"\r\n|[\r\n\u2028\u2029]")


@dataclass(slots=True)
class _Line:
    """One line, taken apart: `mark` is what may begin an item, `value` what follows it and the label."""

    mark: Mark
    label: ItemField | None
    value: str
    whole: str
    pair: tuple[str, str] | None = None


@dataclass(slots=True)
class _Draft:
    """An item being read: the lines of each field by its name, and all lines as they came."""

    mark: Mark
    title: str = ""
    fields: dict[str, list[str]] = field(default_factory=dict)
    current: list[str] | None = None
    whole: list[str] = field(default_factory=list)


def labelled_items(text: str, form: ListForm[Any]) -> Iterator[dict[str, object]]:
    """The items in `text`, as strings by field name, unvalidated; none where there is no labelled item.

    An unnumbered repetition of a label begins the next item. Text ahead of the first item is left out, and
    so is what follows a severity on further lines. Raises `AnswerError` for pieces of JSON.
    """
    draft: _Draft | None = None
    for raw in _LINES.split(_one_item_a_line(text, form)):
        bare = raw.strip()
        if _BRACKETS.fullmatch(bare):
            raise AnswerError("the JSON is not valid or not complete")
        if _FENCE.fullmatch(bare):
            continue
        if _RULE.fullmatch(bare):
            if draft:
                draft.current = None
            continue
        taken = _take(_line(raw, form), draft, form)
        if draft and taken is not draft and _is_item(draft):
            yield _values(draft, form)
        draft = taken
    if draft and _is_item(draft):
        yield _values(draft, form)


def has_labels(text: str, form: ListForm[Any]) -> bool:
    """Whether a line of `text` begins with one of the form's labels."""
    return any(_line(raw, form).label is not None for raw in _LINES.split(text))


def _one_item_a_line(text: str, form: ListForm[Any]) -> str:
    first = "|".join(re.escape(each) for each in (form.fields[0].name, *form.fields[0].labels))
    begins = (
        rf"(?<=\s)(?=(?:@\s?\d{{1,5}}\s?[.):：]?|\d{{1,4}}[.)])\s?[*_]{{0,3}}(?:{first})\s?[*_]{{0,3}}[:：])"
    )
    return re.sub(begins, "\n", text, flags=re.IGNORECASE)


def _line(raw: str, form: ListForm[Any]) -> _Line:
    head = _HEAD.match(raw)
    assert head is not None  # every part of the pattern may be empty
    rest = raw[head.end() :].rstrip()
    bold = "**" in head["decor"] or "__" in head["decor"]
    mark: Mark = "at" if head["at"] else "word" if head["word"] else "number" if head["number"] else ""
    if not mark and (head["hashes"] or (bold and rest.endswith(("**", "__", "**:")))):
        mark = "heading"
    label = _LABEL.match(rest)
    known = form.by_label.get(label_key(label["label"])) if label else None
    if known is not None and label is not None:
        closing = label["label"].rstrip()[-1:] in "*_"
        value = rest[label.end() :].strip()
        if not closing:
            value = re.sub(r"^(\*{1,3}|_{1,3})(?=\s|$)|^\*\*(?!.*\*\*)", "", value).strip()
        return _Line(mark if mark != "heading" else "", known, value, raw)
    if mark == "heading" and (known := form.by_label.get(label_key(rest))):
        return _Line("", known, "", raw)
    if len(form.fields) == 2 and form.title and (mark or bold) and (pair := _PAIR.fullmatch(rest)):
        title, value = _plain(pair["title"]), _plain(pair["rest"])
        if title and value:
            return _Line("number" if mark in ("heading", "") else mark, None, rest, raw, (title, value))
    return _Line(mark, None, rest, raw)


def _take(line: _Line, last: _Draft | None, form: ListForm[Any]) -> _Draft | None:
    """Add `line` to `last`, or to the new item that it begins; returns the one it went to."""
    if line.label is not None:
        if last is None or _begins(line, last, form):
            last = _Draft(line.mark)
        last.current = last.fields.setdefault(line.label.name, [])
        last.current.append(line.value)
    elif line.mark and (last is None or line.mark in ("at", "word") or not last.fields or _full(last, form)):
        last = _Draft(line.mark, title=line.pair[0] if line.pair else _plain(line.value))
        if line.pair:
            last.current = last.fields.setdefault(form.fields[1].name, [])
            last.current.append(line.pair[1])
    elif last is not None and last.current is not None:
        last.current.append(line.whole)
    if last is not None:
        last.whole.append(line.whole)
    return last


def _is_item(draft: _Draft) -> bool:
    """False for a heading with nothing below it, such as "## Anomalies": it heads the answer."""
    return bool(draft.fields) or draft.mark not in ("heading", "")


def _begins(line: _Line, last: _Draft, form: ListForm[Any]) -> bool:
    """Whether a labelled line begins a new item: numbered fields of one item (`2. Phenomenon: …`) do not."""
    assert line.label is not None
    if line.mark in ("at", "word") or line.label.name in last.fields:
        return True
    return bool(line.mark) and line.label is form.fields[0] and bool(last.fields)


def _full(draft: _Draft, form: ListForm[Any]) -> bool:
    has = {*draft.fields, form.title if draft.title else None}
    return all(each.name in has for each in form.fields if each.required)


def _values(draft: _Draft, form: ListForm[Any]) -> dict[str, object]:
    if not _full(draft, form):
        inline = split_inline("\n".join(draft.whole), form)
        if len(inline) > len(draft.fields):
            return {name: _plain(value) for name, value in inline.items()}
    values: dict[str, object] = {}
    for each in form.fields:
        lines = draft.fields.get(each.name)
        if lines is None:
            continue
        if lines[0] in _YAML_BLOCK:
            lines = lines[1:]
        if each.kind in ("severity", "confidence"):
            lines = [next((line for line in lines if line.strip()), "")]
        values[each.name] = _plain("\n".join(lines))
    if form.title and draft.title:
        values.setdefault(form.title, draft.title)
    return values


def _plain(value: str) -> str:
    """`value` without Markdown or quotes around the whole of it."""
    value = value.strip().removesuffix("```").strip()
    for mark in ("**", "__"):
        if value.count(mark) % 2:
            value = (
                value.removesuffix(mark).removeprefix(mark)
                if value.endswith(mark)
                else value.removeprefix(mark)
            )
        elif value.count(mark) == 2 and value.startswith(mark) and value.endswith(mark):
            value = value[2:-2]
    if len(value) > 1 and value[0] == value[-1] == '"' and value.count('"') == 2:
        value = value[1:-1]
    return value.strip()


def split_inline(text: str, form: ListForm[Any]) -> dict[str, str]:
    """The values of one item by field name; empty where `text` has no label.

    A label counts if it is capitalised or set in Markdown: "for this reason: …" is prose. Raises
    `AnswerError` where two labels give the same field.
    """
    labels = [
        each
        for each in _labels(tuple(form.by_label)).finditer(text)
        if each["marks"] or each["label"][0].isupper()
    ]
    values: dict[str, str] = {}
    for each, following in pairwise([*labels, None]):
        assert each is not None  # only the last one is
        name = form.by_label[label_key(each["label"])].name
        if name in values:
            raise AnswerError(f"{name} is given twice in one item")
        end = following.start() if following else len(text)
        values[name] = text[each.end() : end].strip().lstrip("*_").strip(" \t\r\n;,|")
    return values


@cache
def _labels(labels: tuple[str, ...]) -> re.Pattern[str]:
    words = "|".join(
        re.escape(each).replace(r"\ ", "[ _-]") for each in sorted(labels, key=len, reverse=True)
    )
    return re.compile(
        rf"(?<![\w\"'])(?P<marks>[*_]{{0,3}})(?P<label>{words})\s?(?:\([^()\n]{{0,40}}\))?\s?[*_]{{0,3}}[:：]",
        re.IGNORECASE,
    )


_LONGEST = 120
_EMPTY_LIST = re.compile(r"\[\s*\]|(?P<key>\w+)\s*[:=]\s*\[\s*\]")
_FENCED = re.compile(r"^[`~]{3,}(?:json|text|plaintext|markdown|yaml)?\s|[`~]{3,}$")
_NOT_WORD = re.compile(r"[\W_]+")
_KIND = r"(?:visible |semantic |visual |obvious |clear |significant |content level |apparent )?"
_FOUND = r"(?:found|detected|observed|identified|present|visible|reported)"
_WHERE = r"(?: (?:in|within) (?:the|this) (?:given |provided )?(?:image|picture|photo|scene))?"


def says_nothing(text: str, form: ListForm[Any]) -> bool:
    """Whether the whole of `text` is `[]`, "None", "No anomalies found." or the like.

    The forms are few and must fill the answer: "no anomalies, except …" and "the image looks fine" are not
    among them, since an empty list is a result and a doubtful one is worth another question.
    """
    if len(text) > _LONGEST:
        return False
    text = _FENCED.sub("", text.strip()).strip()
    if empty := _EMPTY_LIST.fullmatch(text):
        return empty["key"] is None or empty["key"].casefold() == form.key
    if any(bracket in text for bracket in "{}[]"):
        return False
    plain = _NOT_WORD.sub(" ", text).strip().casefold()
    nouns = "(?:" + "|".join(re.escape(noun) for noun in form.nouns) + ")"
    nothing = f"no {_KIND}{nouns}"
    return any(
        re.fullmatch(pattern, plain)
        for pattern in (
            r"none(?: found)?",
            r"n a",
            f"nothing(?: (?:is |was )?(?:wrong|{_FOUND}))?{_WHERE}",
            f"{nouns} none(?: {_FOUND})?",
            f"{nothing}(?: (?:is |are |were |was |have been )?{_FOUND})?{_WHERE}",
            f"there (?:is|are) {nothing}(?: {_FOUND})?{_WHERE}",
            f"(?:i|we) (?:found|find|see|detect|detected|observe|observed) {nothing}{_WHERE}",
        )
    )
