"""Conditions that fail a pipeline: how they are written, whether they hold, and the JUnit file of them.

A condition names what must not be. If it `holds`, the gate fails; if it is `clear`, the gate passes. If it is
`unmeasured`, or `undecided` because people have judged too few images, the gate fails, too: a gate that
cannot see does not pass. Whether something got worse is
decided by the corrected tests that the tables show (`common/headline.py`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal
from xml.etree import ElementTree

from uncanny.errors import UsageError
from uncanny.wording import Words, counted, marked, option, shown

State = Literal["clear", "holds", "unmeasured", "undecided"]
Side = Literal["value", "lower", "upper"]
_WORDS: Final[Mapping[State, str]] = {
    "clear": "passed",
    "holds": "FAILED",
    "unmeasured": "FAILED, not measured",
    "undecided": "FAILED, undecided",
}
_LEVEL: Final = re.compile(
    r"(?:(?P<side>lower|upper)\s*:\s*)?(?P<figure>[^<>]*[^<>\s])\s*(?P<sign>[<>])\s*"
    r"(?P<number>[0-9]{1,9}(?:\.[0-9]{1,9})?|\.[0-9]{1,9})"
)
_SIDES: Final[Mapping[str, Side]] = {"": "value", "lower": "lower", "upper": "upper"}
# What XML 1.0 cannot hold, however it is escaped.
_NOT_XML: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass(frozen=True, slots=True)
class Condition:
    """What must not be; `text` is as it was written.

    `figure` is None for `worse` as a whole. `limit` is None where a change for the worse is meant; else the
    gate fails where the figure, or an end of its interval (`side`), is `above` or below it.
    """

    text: str
    figure: str | None
    limit: float | None = None
    above: bool = True
    side: Side = "value"


@dataclass(frozen=True, slots=True)
class Measured:
    """One figure of what is judged. `value` and `interval` are as in the JSON, None where unmeasured.

    `worse` is whether it got worse, by a corrected test; None where nothing could be tested. `why` says what
    is missing of either, and `change` what is known of the change. `undecided` says that a value could be
    had, were more images judged. `basis` is a word on where the value is from. `more` is how much larger it
    is if all that people are unsure of is true: a condition that turns on it is undecided.
    """

    value: float | None = None
    interval: tuple[float, float] | None = None
    worse: bool | None = None
    why: str = "is not measured"
    change: str = ""
    undecided: bool = False
    basis: str = ""
    more: float = 0.0


@dataclass(frozen=True, slots=True)
class Subject:
    """What is judged: a generator, or a run against the first. `figures` are by their names in conditions.

    `headline` are those that `worse` is about. `why` says why nothing can be told of a change; empty where it
    can. `undecided` says that something could be, were more images judged.
    """

    name: str
    figures: Mapping[str, Measured]
    headline: tuple[str, ...]
    why: str = ""
    undecided: bool = False


@dataclass(frozen=True, slots=True)
class Outcome:
    """One condition, judged. `why` is a sentence for people."""

    condition: Condition
    state: State
    why: Words

    @property
    def passed(self) -> bool:
        return self.state == "clear"

    def __str__(self) -> str:
        return f"{_WORDS[self.state]}: {self.condition.text}: {self.why}"


@dataclass(frozen=True, slots=True)
class GateResult:
    """All conditions, in their order. `suite` is what they are called in a JUnit file."""

    outcomes: tuple[Outcome, ...]
    suite: str

    @property
    def passed(self) -> bool:
        """Whether no condition holds, and each could be measured."""
        return all(each.passed for each in self.outcomes)

    def __str__(self) -> str:
        return "\n".join(map(str, self.outcomes))

    def junit(self) -> bytes:
        """A test case a condition: a failure where it holds, an error where it could not be measured."""
        states = [each.state for each in self.outcomes]
        counts = {
            "tests": str(len(states)),
            "failures": str(states.count("holds")),
            "errors": str(states.count("unmeasured") + states.count("undecided")),
            "skipped": "0",
            "time": "0",
        }
        root = ElementTree.Element("testsuites", {"name": self.suite, **counts})
        suite = ElementTree.SubElement(root, "testsuite", {"name": self.suite, **counts})
        for each in self.outcomes:
            names = {"classname": self.suite, "name": _legal(each.condition.text), "time": "0"}
            case = ElementTree.SubElement(suite, "testcase", names)
            if each.state == "clear":
                ElementTree.SubElement(case, "system-out").text = _legal(each.why)
                continue
            tag = "failure" if each.state == "holds" else "error"
            about = {"message": _legal(each.why), "type": each.state}
            ElementTree.SubElement(case, tag, about).text = _legal(each.why)
        ElementTree.indent(root)
        return bytes(ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)) + b"\n"

    def write_junit(self, out: Path | str) -> Path:
        """Write `junit` to `out`, whose folders are made, and return its path; the file appears whole.

        Raises OSError.
        """
        from uncanny.records.jsonl import write_named

        write_named(Path(out), [self.junit()])
        return Path(out)


def read_conditions(
    texts: Sequence[str], figures: Sequence[str], changes: Sequence[str] | None = None
) -> tuple[Condition, ...]:
    """Conditions as they are written: `worse`, `FIGURE:worse`, `FIGURE>NUMBER`, `lower:FIGURE>NUMBER`.

    `figures` are those that have a value, `changes` those that can get worse, the same unless given. Raises
    UsageError for anything else, with what may be written.
    """
    if isinstance(texts, str):
        texts = [texts]
    return tuple(_read(text, figures, figures if changes is None else changes) for text in texts)


def _read(text: object, figures: Sequence[str], changes: Sequence[str]) -> Condition:
    if isinstance(text, str):
        plain = text.strip()
        if plain == "worse":
            return Condition(text, None)
        name, _, end = map(str.strip, plain.rpartition(":"))
        if end == "worse" and name in changes:
            return Condition(text, name)
        match = _LEVEL.fullmatch(plain)
        if match is not None and match["figure"] in figures:
            side = _SIDES[match["side"] or ""]
            return Condition(text, match["figure"], float(match["number"]), match["sign"] == ">", side)
    names = dict.fromkeys(name.partition(":")[0] for name in (*figures, *changes))
    known = [f"{name}:KIND" if name == "kind" else name for name in names]
    quote = "Quote > and <, which a shell reads as redirections. " if text in figures else ""
    raise UsageError(
        f"{option('conditions')} {shown(text)} is not a condition",
        remedy=f"{quote}Write worse, FIGURE:worse, FIGURE>NUMBER or FIGURE<NUMBER. "
        f"FIGURE is {', '.join(known)}.",
    )


def judge(conditions: Sequence[Condition], subjects: Sequence[Subject], suite: str) -> GateResult:
    """Whether each condition holds for any of the `subjects`, or is unmeasured for any."""
    return GateResult(tuple(_judged(each, subjects) for each in conditions), suite)


def _judged(condition: Condition, subjects: Sequence[Subject]) -> Outcome:
    states: list[tuple[State, str]] = [
        (state, f"{subject.name}: {why}")
        for subject in subjects
        for state, why in [
            _change(condition, subject) if condition.limit is None else _level(condition, subject)
        ]
    ]
    fails: tuple[State, ...] = ("holds", "unmeasured", "undecided")
    for wanted in fails:
        found = [why for state, why in states if state == wanted]
        if found:
            return Outcome(condition, wanted, Words("; ".join(found)))
    if not states:
        return Outcome(condition, "unmeasured", Words("there is nothing to judge"))
    return Outcome(condition, "clear", Words("; ".join(why for _, why in states)))


def _change(condition: Condition, subject: Subject) -> tuple[State, str]:
    names = subject.headline if condition.figure is None else (condition.figure,)
    known = {name: subject.figures.get(name, Measured()) for name in names}
    worse = [each.change for each in known.values() if each.worse]
    if worse:
        return "holds", "; ".join(worse)
    if subject.why and any(each.worse is None for each in known.values()):
        return "undecided" if subject.undecided else "unmeasured", subject.why
    missing = [f"{name} {each.why}" for name, each in known.items() if each.worse is None]
    if missing or not names:
        return "unmeasured", "; ".join(missing) or "nothing is measured"
    return "clear", f"no significant change for the worse in {', '.join(known)}"


def _level(condition: Condition, subject: Subject) -> tuple[State, str]:
    assert condition.figure is not None
    assert condition.limit is not None
    each = subject.figures.get(condition.figure, Measured())
    value = each.value
    if condition.side != "value" and value is not None:
        value = None if each.interval is None else each.interval[condition.side == "upper"]
    what = (
        condition.figure if condition.side == "value" else f"the {condition.side} end of {condition.figure}"
    )
    if value is None:
        return "undecided" if each.undecided else "unmeasured", f"{what} {each.why}"
    most = value + each.more
    holds, if_unsure = (
        one > condition.limit if condition.above else one < condition.limit for one in (value, most)
    )
    if holds != if_unsure:
        return "undecided", (
            f"{what} is {value:.4g}{each.basis}, but {most:.4g} if all that people are unsure of is true; "
            f"the limit is {condition.limit:g}"
        )
    sign = f"{'' if holds else 'not '}{'above' if condition.above else 'below'}"
    return "holds" if holds else "clear", f"{what} is {value:.4g}{each.basis}, {sign} {condition.limit:g}"


def summary(result: GateResult) -> Iterator[str]:
    """The lines that a terminal ends with, with marks."""
    failed = [each for each in result.outcomes if not each.passed]
    yield from (
        f"{_WORDS[each.state]}: {each.condition.text}: {marked(each.why)}" for each in result.outcomes
    )
    yield f"Gate: {len(failed):,} of {counted(len(result.outcomes), 'condition')} failed."


def _legal(text: str) -> str:
    return _NOT_XML.sub("\ufffd", text)
