"""Verdict files: read whole, labels derived again, or refused with everything that is wrong with them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from uncanny.errors import UsageError
from uncanny.eval.mcq.load import parse_records
from uncanny.eval.mcq.problems import ItemsError, Problem, shown
from uncanny.eval.realism.records import Verdict
from uncanny.eval.realism.result import VerdictSet
from uncanny.eval.realism.run import VERDICTS
from uncanny.graphs.ugda_cases import label_of
from uncanny.records.run_folder import RunFolder, unfinished


def load_verdicts(paths: Sequence[Path]) -> tuple[VerdictSet, ...]:
    """One set a file; a run folder stands for the file in it.

    Each verdict comes back with its label and case as derived from its answers. Raises ItemsError with every
    invalid line, repeated id, and stored label or case that disagrees with the answers of all files, and
    UsageError for a file that cannot be read, holds no verdicts, or is named twice.
    """
    for path in paths:
        if path.is_dir():
            RunFolder(path).check_links()
    files = [path / VERDICTS if path.is_dir() else path for path in paths]
    if len({file.resolve() for file in files}) < len(files):
        raise UsageError("A verdict file is named twice", remedy="Name each file once.")
    sets: list[VerdictSet] = []
    problems: list[Problem] = []
    for file in files:
        found, invalid = parse_records(file, Verdict)
        wrong = sorted([*invalid, *_repeated(found), *_contradictions(found)], key=lambda one: one.line or 0)
        problems += [replace(one, message=f"{file}: {one.message}") for one in wrong] if files[1:] else wrong
        if not found and not wrong:
            raise UsageError(f"{file} holds no verdicts", remedy="Give the verdicts.jsonl of a run.")
        left = unfinished(file.parent, len(found)) if file.name == VERDICTS else None
        sets.append(VerdictSet(file.stem, file, tuple(_labelled(verdict) for _, verdict in found), left))
    if problems:
        what = str(files[0]) if len(files) == 1 else f"{len(files)} verdict files"
        raise ItemsError(what, problems, remedy="Correct these lines; nothing was scored.")
    return _named(sets)


def _labelled(verdict: Verdict) -> Verdict:
    label, case = label_of(verdict.first, verdict.original_first, verdict.edited_first)
    return verdict.model_copy(update={"label": label, "case": case})


def _contradictions(found: Sequence[tuple[int, Verdict]]) -> Iterator[Problem]:
    """A record may leave label or case out; what it stores has to follow from its answers."""
    for line, verdict in found:
        derived = label_of(verdict.first, verdict.original_first, verdict.edited_first)
        for field in ("label", "case"):
            stored, right = getattr(verdict, field), getattr(derived, field)
            if field in verdict.model_fields_set and stored != right:
                message = f"{shown(stored)} is stored, the answers give {shown(right)}; correct either"
                yield Problem(verdict.id, field, message, line=line)


def _repeated(found: Sequence[tuple[int, Verdict]]) -> Iterator[Problem]:
    first: dict[str, int] = {}
    for line, verdict in found:
        if verdict.id in first:
            message = f"the id was used before, at line {first[verdict.id]}; keep one verdict a pair"
            yield Problem(verdict.id, "id", message, line=line)
        first.setdefault(verdict.id, line)


def _named(sets: Sequence[VerdictSet]) -> tuple[VerdictSet, ...]:
    """All by their one model, else all by their folder or file, else all by their path."""
    for name_of in (_model, _place):
        names = [name_of(each) for each in sets]
        if None not in names and len(set(names)) == len(names):
            break
    else:
        names = [str(each.path) for each in sets]
    return tuple(replace(each, name=name or "") for each, name in zip(sets, names, strict=True))


def _model(found: VerdictSet) -> str | None:
    models = {verdict.model for verdict in found.verdicts}
    return models.pop() if len(models) == 1 else None


def _place(found: VerdictSet) -> str | None:
    return (found.path.parent.name if found.path.name == VERDICTS else found.path.stem) or None
