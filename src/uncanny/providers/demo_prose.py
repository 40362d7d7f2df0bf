"""The demo model's first-step texts: as long as a model's, and readable line by line."""

from __future__ import annotations

from collections.abc import Sequence

_ATTRIBUTE_LOOK = (
    "Shape and structure: I followed the outline of {name} all the way round and looked at every place "
    "where one part meets another, since that is where a generated picture tends to come apart. "
    "Proportion: I compared the parts with each other and with what such a thing usually measures. "
    "Function: I asked whether each part could do what it is there for, and whether it could be used, "
    "opened, held or moved as one would expect. Physical possibility: I looked for weight without "
    "support, for matter that fills the same space twice, and for shadows and reflections that no light "
    "could cast. Anatomy: where living bodies are concerned, I counted limbs, fingers and joints and "
    "checked which way they bend. What I do not list below looked sound, or was too small or too far "
    "hidden to judge."
)
_RELATION_LOOK = (
    "Placement and perspective: I compared where {name} stands with the ground it stands on, and its size "
    "with that of what is beside, before and behind it: {others}. Contact: I looked at every place where "
    "it touches something else and asked whether it rests, hangs, leans or is held there in a way that "
    "could last. Occlusion: I checked that what is nearer hides what is farther, and never the other way "
    "round. Light: I compared shadows and reflections with those of the neighbours. Logic: I asked "
    "whether these things would be found together like this, and whether one could have brought about the "
    "state of the other. Pairs and groups that I do not list below fit together, or cannot be judged from "
    "this picture."
)
_INTEGRATOR_LOOK = (
    "I read the findings about {name} from both analyses, side by side. Findings that describe the same "
    "thing in other words are merged into one, and the merged one keeps the wording that says more about "
    "where it is seen. Findings that contradict each other would be resolved in favour of the one with "
    "evidence; claims that only say that something looks odd, without saying what and where, are left "
    "out. Each entry below keeps its source: the analysis of the object by itself, the analysis of its "
    "relations, or both."
)


def attribute_prose(name: str, findings: Sequence[tuple[str, str, str]]) -> str:
    """Notes on one object from (name, observed, explanation) findings."""
    rows = [f"Name: {n}\n   Observed: {_line(o)}\n   Explanation: {_line(e)}" for n, o, e in findings]
    return _notes(_ATTRIBUTE_LOOK.format(name=name), rows, f"{name} shows nothing that could not be real.")


def relation_prose(
    name: str, others: Sequence[str], findings: Sequence[tuple[Sequence[str], str, str]]
) -> str:
    """Notes on one object among others from (objects, observed, reasoning) findings."""
    around = ", ".join(other for other in others if other != name) or "nothing else"
    rows = [
        f"Objects: {', '.join(n)}\n   Observed: {_line(o)}\n   Reasoning: {_line(r)}" for n, o, r in findings
    ]
    look = _RELATION_LOOK.format(name=name, others=around)
    return _notes(look, rows, f"{name} fits with everything around it.")


def integrator_prose(name: str, findings: Sequence[tuple[str, str, str]]) -> str:
    """A merged list from (phenomenon, explanation, source) findings of one object."""
    rows = [
        f"Object: {name}\n   Phenomenon: {_line(p)}\n   Explanation: {_line(e)}\n   Source: {source}"
        for p, e, source in findings
    ]
    return _notes(_INTEGRATOR_LOOK.format(name=name), rows, f"No finding about {name} remains.")


def _notes(look: str, rows: Sequence[str], nothing: str) -> str:
    listed = "\n".join(f"{number}. {row}" for number, row in enumerate(rows, 1))
    return f"{look}\n\n{listed or nothing}"


def _line(text: str) -> str:
    return " ".join(text.split())
