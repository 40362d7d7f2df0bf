"""Items that reviewers have checked: what they say, how far they agree, and the items they agree on.

Source: SalArt-VQA, appendix D.4. Three reviewers check each item, and only items that all three find valid
are kept; others are revised and checked again, or left out. Deviations: reviewers may also be unsure, which
is counted by itself and keeps an item out as well; and the agreement, which the paper does not estimate, is
Krippendorff's α.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final, Literal, get_args

from pydantic import Field

from uncanny.errors import UsageError
from uncanny.eval.common.inputs.people import read_people
from uncanny.eval.common.inputs.problems import NonEmpty
from uncanny.eval.common.json_fields import json_of
from uncanny.eval.common.tables.table import Cell, Column, RowsResult, Table
from uncanny.eval.mcq.data.items import Item, ItemSet
from uncanny.eval.mcq.data.load import ItemSource, item_lines, load, write_items
from uncanny.eval.mcq.data.texts import content_digest
from uncanny.eval.mcq.parameters import KeepParameters
from uncanny.eval.metrics.significance import Agreement, krippendorff_alpha
from uncanny.files import dump_json
from uncanny.images.file_bytes import RecordedFile, changed_files
from uncanny.parameters import check_records, takes
from uncanny.records.reviews import DECISIONS, Decision, Rule, disputed
from uncanny.schema import Number, Record
from uncanny.wording import counted

ITEM_REVIEWS: Final = "item_reviews.jsonl"
# What a page calls the decisions of `reviews`.
WORDS: Final[Mapping[Decision, str]] = {"accept": "correct", "reject": "wrong", "unsure": "unsure"}
# What becomes of an item; `open` has too few verdicts.
Status = Literal["agreed", "disputed", "unsure", "rejected", "open"]
STATUSES: Final[tuple[Status, ...]] = get_args(Status)
KEYS: Final = ("items", "agreement", "reviewers")
_MOST_LISTED: Final = 50

ReviewSource = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]
_REVIEWS: Final = "Reviews are a run folder or a file, or several of them"


class ItemReview(Record):
    """One line of `item_reviews.jsonl`: whether a person finds that an item is as it should be.

    `decision` is None if the item could not be shown, and `error` says why. `content` is the `item_digest` of
    what was checked, `sha256` that of the image, and `overlay_sha256` that of the item's own picture with
    boxes; None in reviews of other tools, and where the item has no such picture. `seconds` are from when the
    image was to be seen to the end of the answer, without those in which the page was hidden.
    """

    id: NonEmpty
    person: NonEmpty
    decision: Decision | None
    note: str | None = None
    content: str | None = None
    sha256: str | None = None
    overlay_sha256: str | None = None
    seconds: Annotated[Number, Field(ge=0, allow_inf_nan=False)] | None = None
    error: str | None = None
    at: str | None = None

    def files(self, item: Item, items: ItemSet) -> set[RecordedFile]:
        """The pictures of the item that were shown, with their bytes then; without those that are unknown."""
        shown = (items.image_path(item), self.sha256), (items.overlay_path(item), self.overlay_sha256)
        return {RecordedFile(path, digest, None) for path, digest in shown if path and digest}


def item_digest(item: Item) -> str:
    """Changes when a question, an option, a box or a right answer of an item does."""
    asked = [[content_digest(item, each), item.right(each)] for each in item.questions()]
    return sha256(dump_json(asked)).hexdigest()


@dataclass(frozen=True, slots=True, repr=False)
class KeptItems(RowsResult):
    """The `items` that are kept by `rule`, and what became of all of them (`statuses`, by id).

    `verdicts` and `notes` are by item and person. `stale` reviews are of an item or image that changed since,
    `unknown` ones of no item of the set; `unshown` counts items that could not be shown to somebody.
    """

    columns: ClassVar = ("id", "status", *WORDS.values())

    items: ItemSet
    rule: Rule
    statuses: Mapping[str, Status]
    verdicts: Mapping[str, Mapping[str, Decision]]
    notes: Mapping[str, Mapping[str, str]]
    agreement: Agreement
    stale: int
    unknown: int
    unshown: int
    path: Path | None = field(compare=False)

    @property
    def counts(self) -> dict[Status, int]:
        """Items by what became of them."""
        often = Counter(self.statuses.values())
        return {status: often[status] for status in STATUSES}

    def to_json(self) -> dict[str, Any]:
        """What `uncanny mcq check --reviews … --json` writes. None is unmeasured."""
        return {
            "rule": self.rule._asdict(),
            "items": {"n": len(self.statuses), **self.counts},
            "agreement": json_of(self.agreement, "krippendorff_alpha=alpha items=units verdicts=judgements"),
            "reviewers": {
                person: {WORDS[each]: often[each] for each in DECISIONS}
                for person, often in self._by_person().items()
            },
            "by_item": {
                item: {
                    "status": status,
                    "verdicts": {person: WORDS[each] for person, each in self.verdicts[item].items()},
                    "notes": dict(self.notes[item]),
                }
                for item, status in self.statuses.items()
            },
            "left_out": json_of(self, "stale unknown unshown"),
        }

    def rows(self) -> Iterator[dict[str, Any]]:
        """A row an item, with how many find it correct, wrong, or are unsure."""
        for item, status in self.statuses.items():
            often = Counter(self.verdicts[item].values())
            yield {"id": item, "status": status, **{WORDS[each]: often[each] for each in DECISIONS}}

    def tables(self) -> tuple[Table, ...]:
        """What became of the items, the reviewers, and the items that are not agreed on, with notes."""
        counts = self.counts
        shown = ("too few verdicts" if status == "open" else status for status in STATUSES)
        head: list[str | Column] = ["", "items", *shown, Column("Krippendorff's α", digits=2)]
        row = ("reviewed", len(self.statuses), *counts.values(), self.agreement.alpha)
        tables = [Table(tuple(head), (row,), "Items", tuple(f"{each}." for each in self._words()))]
        people: list[tuple[Cell, ...]] = [
            (person, often.total(), *(often[each] for each in DECISIONS))
            for person, often in self._by_person().items()
        ]
        tables.append(Table(("", "checked", *WORDS.values()), tuple(people), "Reviewers"))
        doubtful = [item for item, status in self.statuses.items() if status not in ("agreed", "open")]
        if doubtful:
            listed: list[tuple[Cell, ...]] = [
                (item, self.statuses[item], self._said(item)) for item in doubtful[:_MOST_LISTED]
            ]
            more = len(doubtful) - len(listed)
            notes = (f"{more:,} more are in the CSV and JSON.",) if more else ()
            tables.append(Table(("", "status", "what reviewers say"), tuple(listed), "To revise", notes))
        return tuple(tables)

    def _words(self) -> Iterator[str]:
        yield f"An item is agreed on if it is found correct by {self.rule.words}"
        if self.agreement.units:
            alone = "" if self.agreement.alpha is not None else "; it cannot be told from chance"
            yield f"α is over {counted(self.agreement.units, 'item')} that several checked{alone}"
        if self.stale:
            yield f"{counted(self.stale, 'review')} of items or images that changed since, left out"
        if self.unknown:
            yield f"{counted(self.unknown, 'review')} of items that are not in the set, left out"
        if self.unshown:
            yield f"{counted(self.unshown, 'item')} could not be shown to somebody"

    def _said(self, item: str) -> str:
        notes = self.notes[item]
        return "; ".join(
            f"{person}: {WORDS[decision]}" + (f" ({notes[person]})" if person in notes else "")
            for person, decision in self.verdicts[item].items()
        )

    def _by_person(self) -> dict[str, Counter[Decision]]:
        by_person: dict[str, Counter[Decision]] = {}
        for verdicts in self.verdicts.values():
            for person, decision in verdicts.items():
                by_person.setdefault(person, Counter())[decision] += 1
        return dict(sorted(by_person.items()))


@takes(KeepParameters)
def keep(items: ItemSource, reviews: ReviewSource, parameters: KeepParameters) -> KeptItems:
    """The items that reviewers agree on, and how far they do.

    `items` are as in `load`, `reviews` run folders of `uncanny mcq review`, or files of `ItemReview`
    records. Where a person has checked an item twice, the last time counts; people of the same name in two of
    them are two people. With `out` the items that are kept are written to this file, without the mark of a
    draft, with image paths that start at its folder.

    An item is `agreed` on if the rule accepts it, `rejected` if the rule rejects it, `disputed` if some find
    it correct and others wrong, `unsure` if the unsure keep it from a decision, and `open` with too few
    verdicts.

    Raises UsageError for what cannot be read, where nothing was checked, and, with `out`, where no item is
    kept; ItemsError with all that is wrong in files.

    >>> line = '{"id": "d01-five-fingers", "person": "%s", "decision": "accept"}'
    >>> lines = [line % person for person in ("ann", "ben")]
    >>> written = (folder / "item_reviews.jsonl").write_text(chr(10).join(lines))
    >>> kept = uncanny.mcq.keep("scenes", folder / "item_reviews.jsonl", least_verdicts=2)
    >>> [item.id for item in kept.items], kept.counts["open"]
    (['d01-five-fingers'], 33)
    """
    paths = (str, os.PathLike)
    sources = [reviews] if isinstance(reviews, paths) else check_records(reviews, paths, what=_REVIEWS)
    known = load(items)
    (recorded,) = read_people([Path(each) for each in sources], {ITEM_REVIEWS: ItemReview})
    if not recorded:
        raise UsageError("There are no reviews of items yet", remedy="Begin with `uncanny mcq review`.")
    said, stale, unknown, unshown = _last(recorded, known)
    if not said:
        raise UsageError(
            "None of the reviews is about one of these items as they are",
            remedy="Pass the items that were checked, or check them again.",
        )
    rule = parameters.rule
    verdicts: dict[str, dict[str, Decision]] = {item.id: {} for item in known}
    notes: dict[str, dict[str, str]] = {item.id: {} for item in known}
    for (name, person), each in said.items():
        if each.decision is not None:
            verdicts[name][person] = each.decision
        if each.note:
            notes[name][person] = each.note
    statuses = {name: _status(rule, own) for name, own in verdicts.items()}
    out = None if parameters.out is None else Path(parameters.out)
    chosen = [item for item in known if statuses[item.id] == "agreed"]
    if out is not None and not chosen:
        most = max(map(len, verdicts.values()))
        raise UsageError(
            f"{out} was not written: none of {counted(len(known), 'item')} is found correct by {rule.words}. "
            f"No item has more than {counted(most, 'verdict')}",
            remedy=rule.remedy,
        )
    kept = ItemSet(tuple(chosen), known.file, known.root)
    if out is not None:
        kept = ItemSet(tuple(_released(item, known, out.parent) for item in chosen), out)
        write_items(kept, out)
    agreement = krippendorff_alpha(Counter(own.values()) for own in verdicts.values())
    return KeptItems(kept, rule, statuses, verdicts, notes, agreement, stale, unknown, unshown, out)


def _status(rule: Rule, verdicts: Mapping[str, Decision]) -> Status:
    decision = rule.decide(verdicts.values())
    if decision is None:
        return "open"
    if decision == "unsure":
        return "disputed" if disputed(verdicts.values()) else "unsure"
    return "agreed" if decision == "accept" else "rejected"


def _last(
    reviews: Sequence[ItemReview], items: ItemSet
) -> tuple[dict[tuple[str, str], ItemReview], int, int, int]:
    """The last review of each item and person that is about the item as it is; the others, counted."""
    digests = {item.id: item_digest(item) for item in items}
    by_id = {item.id: item for item in items}
    shown = [each.files(by_id[each.id], items) if each.id in by_id else set() for each in reviews]
    changed = changed_files(set().union(*shown))
    last: dict[tuple[str, str], ItemReview] = {}
    failed: set[tuple[str, str]] = set()
    stale = unknown = 0
    for each, files in zip(reviews, shown, strict=True):
        at = (each.id, each.person)
        if each.id not in digests:
            unknown += 1
        elif each.decision is None:
            failed.add(at)
        elif files & changed or each.content not in (None, digests[each.id]):
            stale += 1
        else:
            last[at] = each
    return last, stale, unknown, len({item for item, _ in failed - last.keys()})


def kept_before(file: Path, items: ItemSet) -> bool:
    """Whether a file has nothing but items of this set as `keep` writes them."""
    lines = set(item_lines(_released(item, items, file.parent) for item in items))
    return set(file.read_bytes().splitlines(keepends=True)) <= lines


def _released(item: Item, items: ItemSet, folder: Path) -> Item:
    """An item that is no draft any more, with paths that start at `folder`."""
    fields = item.model_dump(exclude_unset=True)
    fields.pop("draft", None)
    fields["image"] = os.path.relpath(items.image_path(item), folder)
    if (overlay := items.overlay_path(item)) is not None:
        fields["overlay"] = os.path.relpath(overlay, folder)
    return Item.model_validate(fields)
