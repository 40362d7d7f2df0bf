"""What a model said of each pair: the records of `verdicts.jsonl`, and sets of them to be scored.

Verdicts come from `realism run`, or from any tool that writes the contract's keys. Labels are derived again
from the answers by a table of cases, and a file is read whole or refused with everything that is wrong with
it.

Source: SAGI, supplementary, sections 1.5 and 1.6; the file format is this project's own.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Literal, NamedTuple, get_args

from pydantic import Field

from uncanny.agents.realism_judge import CheckName
from uncanny.answers.verdicts import Position, Realistic
from uncanny.errors import ItemsError, Problem, UsageError
from uncanny.eval.common.inputs.problems import NonEmpty, by_line, parse_records, repeated_ids
from uncanny.eval.common.inputs.sources import of_place
from uncanny.parameters import check_records
from uncanny.records.run_folder import RunFolder, Unfinished, check_recorded, unfinished
from uncanny.schema import Record, Usage, Whole
from uncanny.wording import shown

VERDICTS = "verdicts.jsonl"

Choice = Literal["original", "edited", "both"]
Label = Literal["deceiving", "intermediate", "non_deceiving", "undetermined"]
Case = Literal[1, 2, 3, 4]
LABELS: Final[tuple[Label, ...]] = get_args(Label)
CASES: Final[tuple[Case, ...]] = get_args(Case)

# What both orders chose, either way round: the case in which the image deceives, None where it does not.
CASE_OF: Final[Mapping[frozenset[Choice], Case | None]] = {
    frozenset({"original", "edited"}): 1,  # the choice follows the position
    frozenset({"edited"}): 2,  # consistently prefers the edit
    frozenset({"both", "edited"}): 3,
    frozenset({"both"}): 4,  # cannot tell
    frozenset({"original"}): None,
    frozenset({"original", "both"}): None,
}


class Labelled(NamedTuple):
    """`case` is None but for `deceiving`."""

    label: Label
    case: Case | None


UNDETERMINED: Final = Labelled("undetermined", None)


def choice_of(position: Position, *, original_first: bool) -> Choice:
    """Which image was chosen, the order undone."""
    if position == "both":
        return "both"
    return "original" if (position == "first") == original_first else "edited"


def label_of(
    first: Realistic | None, original_first: Position | None, edited_first: Position | None
) -> Labelled:
    """The label of a pair; None is a verdict that is missing.

    After `no` nothing else counts. After a missing first verdict, or with one missing choice, nothing is
    guessed, not even where every value of the missing choice would give the same label.
    """
    if first == "no":
        return Labelled("non_deceiving", None)
    if first is None or original_first is None or edited_first is None:
        return UNDETERMINED
    chosen = frozenset(
        {choice_of(original_first, original_first=True), choice_of(edited_first, original_first=False)}
    )
    case = CASE_OF[chosen]
    return Labelled("intermediate" if case is None else "deceiving", case)


VerdictOutcome = Literal["judged", "undetermined", "refused", "failed", "unusable"]


class CheckError(Record):
    """Why one question has no verdict; `asked` is `images` where nothing could be asked."""

    asked: CheckName | Literal["images"]
    kind: str
    message: str


class Side(Record):
    """One image of a pair as a file: its digest and its pixels as seen; None where it could not be read.

    `file_stamp` is as in annotations.
    """

    image: str
    sha256: str | None = None
    width: Whole | None = None
    height: Whole | None = None
    changes: tuple[str, ...] = ()
    file_stamp: str | None = None


class Verdict(Record):
    """One line of `verdicts.jsonl`: what was answered, in the words of the question, and the label.

    None in `first`, `original_first` or `edited_first` is a question that was not asked or that brought no
    verdict; after `no` the second check is not asked. `case` is None but for `deceiving`. What follows
    `case` is this tool's own, and missing in verdicts of others: `outcome` says whether the label stands
    (`judged`), or why it is `undetermined`: no verdict could be read (`undetermined`), the model declined
    (`refused`), a call failed (`failed`), or the pair could not be shown (`unusable`). `raw` has the last
    answer to each question asked. `notes` tells what is odd about a pair that was judged all the same.
    Where not all calls went to `model`, a further key `models` has them by model; `columns` has what the file
    of pairs says of the pair besides.
    """

    id: NonEmpty
    group: str | None = None
    first: Realistic | None
    original_first: Position | None
    edited_first: Position | None
    label: Label | None = None
    case: Case | None = None
    outcome: VerdictOutcome | None = None
    raw: dict[CheckName, str | None] = Field(default_factory=dict)
    errors: tuple[CheckError, ...] = ()
    notes: tuple[str, ...] = ()
    original: Side | None = None
    edited: Side | None = None
    model: str | None = None
    prompts: str | None = None
    asked: str | None = None
    usage: Usage | None = None

    @property
    def status(self) -> str:
        """What a run counts it as."""
        return "ok" if self.outcome in (None, "judged") else self.outcome


@dataclass(frozen=True, slots=True)
class VerdictSet:
    """Verdicts of one file in its order, each with the label and case that follow from its answers.

    `name` is unique among the sets scored together. `path` is the file, None for verdicts of a program.
    `unfinished` says how many pairs of its run have no verdict yet, None where none is known to be missing.
    """

    name: str
    path: Path | None
    verdicts: tuple[Verdict, ...]
    unfinished: Unfinished | None = None


VerdictFile = str | os.PathLike[str]
VerdictSource = VerdictFile | Sequence[Verdict]
_VERDICTS = "Verdicts are run folders, files, uncanny.realism.Verdict records, or a mapping from name to them"
# A file or run folder, several, or verdicts of a program; a mapping where each is to have a name.
Verdicts = VerdictSource | Sequence[VerdictFile] | Mapping[str, VerdictSource]


def verdict_sets(verdicts: Verdicts) -> tuple[VerdictSet, ...]:
    """One set a file, run, or sequence of verdicts; a folder of several models' runs is a set each.

    A mapping names the sets; otherwise all go by their one model, else all by their folder or file, else all
    by their path. Raises ItemsError with every invalid line, repeated id, and stored label or case that
    disagrees with the answers of all files, and UsageError for a file that cannot be read, holds no verdicts,
    or is named twice.
    """
    if isinstance(verdicts, Mapping):
        return _read_sets(list(verdicts.items()))
    if isinstance(verdicts, str | os.PathLike):
        return _named(_read_sets([("", file) for file in _runs_in(verdicts)]))
    check_records(verdicts, (str, os.PathLike, Verdict), what=_VERDICTS)
    records = [each for each in verdicts if isinstance(each, Verdict)]
    files = [each for each in verdicts if not isinstance(each, Verdict)]
    if files and records:
        raise UsageError(
            "Verdicts and files cannot be mixed",
            remedy="Give a mapping from a name to the verdicts or the file.",
        )
    runs = [run for file in files for run in _runs_in(file)]
    return _named(_read_sets([("", run) for run in runs] or [("", records)]))


def _runs_in(folder: VerdictFile) -> Sequence[VerdictFile]:
    """A folder of several models' runs stands for them; all else for itself."""
    path = Path(folder)
    if not path.is_dir() or (path / VERDICTS).exists():
        return [folder]
    return sorted(file.parent for file in path.glob(f"*/{VERDICTS}")) or [folder]


def _read_sets(sources: Sequence[tuple[str, VerdictSource]]) -> tuple[VerdictSet, ...]:
    """A set a source, under its name. Raises what `verdict_sets` raises."""
    files = [_file_of(source) for _, source in sources]
    resolved = [file.resolve() for file in files if file is not None]
    if len(set(resolved)) < len(resolved):
        raise UsageError("A verdict file is named twice", remedy="Pass each file once.")
    sets: list[VerdictSet] = []
    problems: list[Problem] = []
    for (name, source), file in zip(sources, files, strict=True):
        lines: Sequence[tuple[int | None, Verdict]]
        invalid: list[Problem] = []
        if isinstance(source, str | os.PathLike):
            lines, invalid = parse_records(file or Path(source), Verdict)
        else:
            lines = [(None, verdict) for verdict in check_records(source, Verdict, what=_VERDICTS)]
        wrong = [*invalid, *repeated_ids(lines, "keep one verdict a pair", invalid), *_contradictions(lines)]
        what = str(file or name or "The sequence")
        if len(sources) > 1:
            wrong = [of_place(problem, what) for problem in wrong]
        problems += sorted(wrong, key=by_line)
        if not lines and not wrong:
            raise UsageError(f"{what} contains no verdicts", remedy="Give the verdicts.jsonl of a run.")
        left = unfinished(file.parent, "pairs", len(lines)) if file and file.name == VERDICTS else None
        sets.append(VerdictSet(name, file, tuple(_labelled(verdict) for _, verdict in lines), left))
    if problems:
        what = str(files[0] or "The verdicts") if len(files) == 1 else f"{len(files)} verdict files"
        raise ItemsError(what, problems, remedy="Correct these lines; nothing was scored.")
    return tuple(sets)


def _file_of(source: VerdictSource) -> Path | None:
    """The file, in a run folder or named itself. Raises UsageError for a folder whose files are links."""
    if not isinstance(source, str | os.PathLike):
        return None
    path = Path(source)
    if not path.is_dir():
        return path
    RunFolder(path).check_links()
    check_recorded(path, VERDICTS)
    return path / VERDICTS


def _labelled(verdict: Verdict) -> Verdict:
    label, case = label_of(verdict.first, verdict.original_first, verdict.edited_first)
    return verdict.model_copy(update={"label": label, "case": case})


def _contradictions(lines: Sequence[tuple[int | None, Verdict]]) -> Iterator[Problem]:
    """A record may leave label or case out; what it stores has to follow from its answers."""
    for line, verdict in lines:
        derived = label_of(verdict.first, verdict.original_first, verdict.edited_first)
        for field in ("label", "case"):
            stored, right = getattr(verdict, field), getattr(derived, field)
            if field in verdict.model_fields_set and stored != right:
                message = f"{shown(stored)} is stored, the answers give {shown(right)}; correct either"
                yield Problem(verdict.id, field, message, line=line)


def _named(sets: Sequence[VerdictSet]) -> tuple[VerdictSet, ...]:
    """All by their one model, else all by their folder or file, else all by their path."""
    for name_of in (_model, _place):
        names = [name_of(each) for each in sets]
        if None not in names and len(set(names)) == len(names):
            break
    else:
        names = [str(each.path or "verdicts") for each in sets]
    return tuple(replace(each, name=name or "") for each, name in zip(sets, names, strict=True))


def _model(verdicts: VerdictSet) -> str | None:
    models = {verdict.model for verdict in verdicts.verdicts}
    return models.pop() if len(models) == 1 else None


def _place(verdicts: VerdictSet) -> str | None:
    path = verdicts.path
    if path is None:
        return None
    return (path.parent.name if path.name == VERDICTS else path.stem) or None
