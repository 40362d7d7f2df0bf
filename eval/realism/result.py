"""The scores of a realism check as values: for programs, as the contract's JSON, as rows, and as tables."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from uncanny.errors import UsageError
from uncanny.eval.common.estimates import Share
from uncanny.eval.common.groups import ImageGroups
from uncanny.eval.common.json_fields import json_of
from uncanny.eval.common.published import caveat, published, texts_notes
from uncanny.eval.common.score_json import about, digest_of
from uncanny.eval.common.tables.table import Cell, Column, Figure, RowsResult, Table, explain_intervals
from uncanny.eval.metrics.intervals import METHOD
from uncanny.eval.metrics.significance import PositionBias
from uncanny.eval.realism.people import PEOPLE_LABELS, SHARE_KEYS, PeopleScore, published_people
from uncanny.eval.realism.verdicts import CASES, LABELS, Case, Label, VerdictOutcome, VerdictSet
from uncanny.parameters import path_of
from uncanny.schema import stand_ins

if TYPE_CHECKING:
    from uncanny.eval.common.pages.pictures import PicturesMode

Place = Literal["first", "second", "both"]
TwoWay = Literal["deceiving", "non_deceiving", "undetermined"]

PLACES: tuple[Place, ...] = ("first", "second", "both")
TWO_WAY: tuple[TwoWay, ...] = ("deceiving", "non_deceiving", "undetermined")
COLUMNS = ("set", "group", "table", "name", "value", "count", "out_of", "low", "high")
PAGE = "realism.html"
# What each case is called, and which choices make it.
CASE_WORDS: Mapping[Case, tuple[str, str]] = {
    1: ("follows the position", "original once, edited once"),
    2: ("prefers the edit", "edited both times"),
    3: ("leans to the edit", "edited once, both once"),
    4: ("can't tell", "both both times"),
}


@dataclass(frozen=True, slots=True)
class CallCount:
    """What was asked, and what the early exit saved.

    `questions` is how many of the three questions a pair were asked, `saved` how many second checks, two a
    pair, the `no` of the first check made needless. `made` counts calls with retries and repair questions;
    None where the records do not tell.
    """

    questions: int
    saved: int
    made: int | None


@dataclass(frozen=True, slots=True)
class GroupScore:
    """The scores of all pairs of a set, or of one group's.

    Shares come with 95 % Wilson intervals. Those of the three labels, of the cases and of the
    two-way reading, where `intermediate` counts as non-deceiving, are out of the pairs with a label; that of
    `undetermined` is out of all. `outcomes` counts records by how they came about, those that do not tell
    by their label.
    """

    n: int
    labels: Mapping[Label, Share]
    cases: Mapping[Case, Share]
    two_way: Mapping[TwoWay, Share]
    outcomes: Mapping[VerdictOutcome, int]
    position_bias: PositionBias
    calls: CallCount

    def shares(self) -> Iterator[tuple[str, str, Share]]:
        """Every share by its table and its name."""
        for table in ("labels", "cases", "two_way"):
            for name, share in getattr(self, table).items():
                yield table, str(name), share

    def to_json(self) -> dict[str, Any]:
        """Counts under the contract's keys; shares with their intervals beside them."""
        shares: dict[str, dict[str, Any]] = {"labels": {}, "cases": {}, "two_way": {}}
        counts: dict[str, dict[str, int]] = {"labels": {}, "cases": {}, "two_way": {}}
        for table, name, share in self.shares():
            shares[table][name] = json_of(share, SHARE_KEYS)
            counts[table][name] = share.counts
        bias = self.position_bias
        return {
            "n": self.n,
            **counts,
            "shares": shares,
            "outcomes": dict(self.outcomes),
            "position_bias": {
                **json_of(bias, "first second both p_value"),
                "shares": {place: bias.share(place) for place in PLACES},
                **json_of(bias, "first_share ci=interval"),
            },
            **json_of(self, "calls"),
        }


@dataclass(frozen=True, slots=True)
class SetScore:
    """The scores of one set of verdicts.

    `groups` is empty where no pair has a group; pairs without a group are then in `overall` alone. `people`
    is None where nobody was asked. `together` are pairs that intervals take as one, as edits of one original.
    """

    verdicts: VerdictSet
    overall: GroupScore
    groups: Mapping[str, GroupScore]
    people: PeopleScore | None
    together: ImageGroups | None = None

    @property
    def stand_ins(self) -> Mapping[str, int]:
        """Labels that other models than the verdicts' own had a part in, a fallback, counted by model."""
        return Counter(
            name
            for verdict in self.verdicts.verdicts
            if verdict.label != "undetermined"
            for name in stand_ins(verdict, verdict.model)
        )

    @property
    def texts(self) -> tuple[str, ...]:
        """Ids of the texts that verdicts were asked for with, sorted; none where they do not tell."""
        return tuple(sorted({each.prompts for each in self.verdicts.verdicts if each.prompts is not None}))

    @property
    def labelled(self) -> int:
        """How many pairs have a label."""
        return self.overall.n - self.overall.labels["undetermined"].counts


@dataclass(frozen=True, slots=True, repr=False)
class RealismScore(RowsResult):
    """All sets side by side, by name, in the order given; `score[name]` is one of them.

    `resamples` and `seed` are what the intervals were made with; 0 resamples is none. `published` shows the
    published scores of people beside those here, in tables and on the page.
    """

    columns: ClassVar = COLUMNS

    sets: Mapping[str, SetScore]
    resamples: int
    seed: int
    published: bool = False

    def __getitem__(self, name: str) -> SetScore:
        return self.sets[name]

    @property
    def together(self) -> ImageGroups | None:
        """The pairs of the first set that has such as belong together; None where none has."""
        return next((each.together for each in self.sets.values() if each.together is not None), None)

    def to_json(self) -> dict[str, Any]:
        """What `uncanny realism score --json` writes: one set as it is, several under `models` by name."""
        sets = {
            name: {
                **each.overall.to_json(),
                "groups": {group: score.to_json() for group, score in each.groups.items()},
                "people": None if each.people is None else each.people.to_json(),
                **({"stand_ins": dict(each.stand_ins)} if each.stand_ins else {}),
                "prompts": list(each.texts),
                "unfinished": None if each.verdicts.unfinished is None else asdict(each.verdicts.unfinished),
                "intervals": METHOD,
                "resamples": self.resamples,
                "seed": self.seed,
            }
            for name, each in self.sets.items()
        }
        pairs = {name: _pairs_digest(each.verdicts) for name, each in self.sets.items()}
        return {
            **(next(iter(sets.values())) if len(sets) == 1 else {"models": sets}),
            "about": about(
                {"pairs": pairs}, self.texts, resamples=self.resamples, seed=self.seed, groups=self.together
            ),
            **({"published": published("inpainting_scores")} if self.published else {}),
        }

    def rows(self) -> Iterator[dict[str, str | float | None]]:
        """A row a number, with the keys `COLUMNS`; the group is empty for the pairs of a whole set."""
        for name, each in self.sets.items():
            for group, score in (("", each.overall), *each.groups.items()):
                row = {"set": name, "group": group}
                for table, of, share in score.shares():
                    low, high = share.interval or (None, None)
                    row_of_share = {"value": share.value, "count": share.counts, "out_of": share.out_of}
                    yield {**row, "table": table, "name": of, **row_of_share, "low": low, "high": high}
                bias = score.position_bias
                for place in PLACES:
                    chosen = {"count": getattr(bias, place), "out_of": bias.checks}
                    yield {**row, "table": "position", "name": place, "value": bias.share(place), **chosen}
                yield {**row, "table": "position", "name": "p_value", "value": bias.p_value}

    def report(
        self,
        out: str | os.PathLike[str] | None = None,
        *,
        root: str | os.PathLike[str] | None = None,
        title: str | None = None,
        pictures: PicturesMode = "link",
    ) -> Path:
        """Write the page and return its path: `realism.html` beside the first verdicts unless `out` says
        otherwise.

        `root` is where paths of pictures start, else where the run beside the verdicts says, else at the
        verdicts' own folder; a picture that cannot be read is left out. Full-size
        `pictures` are linked from their files, or embedded. The file appears whole or not at all.
        Raises OSError where it cannot be written, UsageError without a path for verdicts of no file.
        """
        from uncanny.eval.realism.report import write_realism_page

        target = self.page() if out is None else path_of("out", out)
        if target is None:
            raise UsageError("These verdicts have no folder", remedy="Give a path for the page.")
        folder = None if root is None else path_of("root", root)
        return write_realism_page(self, target, root=folder, title=title, pictures=pictures)

    def page(self) -> Path | None:
        """Where the page goes unless a path is given; None for verdicts of no file."""
        file = next((each.verdicts.path for each in self.sets.values()), None)
        return None if file is None else file.parent / PAGE

    def tables(self) -> tuple[Table, ...]:
        """A column a set; then each set's groups, and people where they were asked."""
        sets = self.sets
        columns: list[str | Column] = [""]
        for name in sets:
            columns += ["n" if len(sets) == 1 else f"{name} n", Column(name, unit="%")]
        tables = [Table(tuple(columns), tuple(_overall_rows([each.overall for each in sets.values()])))]
        for name, each in sets.items():
            if each.groups:
                tables.append(_group_table(name if len(sets) > 1 else "group", each))
        if self.published or any(each.people for each in sets.values()):
            tables.append(self._people())
        last = tables.pop()
        own = (*tables, replace(last, notes=tuple(self._notes())))
        return explain_intervals(own, wanted=self.resamples, groups=self.together)

    def texts_notes(self) -> Iterator[str]:
        """Where not all verdicts were asked for with uncanny's texts, and the same ones."""
        return texts_notes(self.texts)

    @property
    def texts(self) -> dict[str, tuple[str, ...]]:
        """By set the ids of the prompts that its verdicts name."""
        return {name: each.texts for name, each in self.sets.items()}

    def _people(self) -> Table:
        """People's accuracy and IoU by label, a column a set, the published ones last."""
        people = {name: each.people for name, each in self.sets.items() if each.people is not None}
        rows: list[Row] = [("  answers", *(each.answers for each in people.values()))] if people else []
        paper = published_people() if self.published else {}
        if paper and rows:
            rows = [(*rows[0], "")]
        for words, key in (("accuracy", "acc"), ("IoU", "iou")):
            for label in PEOPLE_LABELS:
                cells: list[Cell] = [getattr(each, words.lower())[label] for each in people.values()]
                cells += [paper[f"{key}_{label}"] / 100] if paper else []
                rows.append((f"  {words} {label}", *cells))
        columns = (Column(name, unit="%") for name in (*people, *(["published"] if paper else [])))
        return Table(("people", *columns), tuple(rows))

    def _notes(self) -> Iterator[str]:
        if self.published:
            yield caveat("inpainting_scores", self.texts)
        yield from (f"{note}." for note in self.texts_notes())
        for name, each in self.sets.items():
            for other, count in each.stand_ins.items():
                yield f"{name}: {count:,} of {each.labelled:,} labels came from {other}, in whole or in part"
            if each.verdicts.unfinished is not None:
                yield f"{name}: {each.verdicts.unfinished}; start it again to resume"
            without = [f"{n:,} {kind}" for kind, n in each.overall.outcomes.items() if kind != "judged" and n]
            if without:
                yield (f"{name}: {', '.join(without)}; without a label; counted only as undetermined")
            if each.people is not None:
                yield from (f"{name}: {note}" for note in each.people.left_out.notes())
        intervals = " with 95 % intervals (Wilson)" if self.resamples else ""
        yield f"Percent{intervals}. Two-way: intermediate counts as non-deceiving."
        if self.resamples and any(each.people is not None for each in self.sets.values()):
            yield f"Of IoU, and of several answers about an image: by {self.resamples:,} resamples of images."


def _pairs_digest(verdicts: VerdictSet) -> str:
    """Of the pairs' ids, groups and images, where the verdicts say which these are."""
    return digest_of(
        [each.id, each.group, *(side and side.sha256 for side in (each.original, each.edited))]
        for each in verdicts.verdicts
    )


Row = tuple[Cell, ...]
_P_VALUE = Column("", p_value=True)


def _overall_rows(scores: Sequence[GroupScore]) -> Iterator[Row]:
    """Two cells a set: how many, and the share."""

    def row(name: str, cells: Iterable[tuple[Cell, Cell]]) -> Row:
        return (name, *chain.from_iterable(cells))

    def shares(name: str, of_sets: Iterable[Share]) -> Row:
        return row(name, ((share.counts, share) for share in of_sets))

    def counts(name: str, of_sets: Iterable[int | None]) -> Row:
        return row(name, ((count, "") for count in of_sets))

    yield counts("pairs", (score.n for score in scores))
    for label in LABELS:
        yield shares(label, (score.labels[label] for score in scores))
        if label == "deceiving":
            for case in CASES:
                yield shares(f"  {case} {CASE_WORDS[case][0]}", (score.cases[case] for score in scores))
    yield row("two-way reading", [("", "")] * len(scores))
    for label in TWO_WAY[:2]:
        yield shares(f"  {label}", (score.two_way[label] for score in scores))
    biases = [score.position_bias for score in scores]
    yield counts("second checks", (bias.checks for bias in biases))
    for place in PLACES:
        yield row(f"  chose {place}", ((getattr(bias, place), bias.share(place)) for bias in biases))
    yield row("  position bias, p", (("", Figure(bias.p_value, _P_VALUE)) for bias in biases))
    yield counts("questions asked", (score.calls.questions for score in scores))
    yield counts("  saved by the early exit", (score.calls.saved for score in scores))
    yield counts("calls with repeats", (score.calls.made for score in scores))


def _group_table(head: str, scores: SetScore) -> Table:
    rows: Iterator[tuple[Cell, ...]] = (
        (group, score.n, *(score.labels[label] for label in LABELS), score.position_bias.p_value)
        for group, score in scores.groups.items()
    )
    labels = (Column(label.replace("_", "-"), unit="%") for label in LABELS)
    return Table((head, "pairs", *labels, Column("bias p", p_value=True)), tuple(rows))
