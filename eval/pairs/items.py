"""Writing the pairs that are kept, with drafts of questions about them: `uncanny.pairs.items`."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from uncanny.errors import UsageError
from uncanny.eval.mcq.data.items import ItemSet
from uncanny.eval.mcq.data.load import ITEMS_FILE, item_lines, write_items
from uncanny.eval.pairs.data import PAIRS, MadePair, load_made
from uncanny.eval.pairs.drafts import draft_pair
from uncanny.eval.pairs.outcome import outcomes
from uncanny.eval.pairs.parameters import ItemsParameters
from uncanny.eval.pairs.result import PairsResult, kept_of, pair_record
from uncanny.files import dump_json
from uncanny.parameters import path_of, takes
from uncanny.records.jsonl import write_named
from uncanny.wording import option


@takes(ItemsParameters)
def items(pairs: str | os.PathLike[str], parameters: ItemsParameters) -> PairsResult:
    """Write the pairs that people kept, and drafts of questions about them.

    `pairs` is the folder of a run of `make`. A candidate is kept if people accepted its finding on the review
    page of `PAIRS/screened`, or added one of their own. `PAIRS/pairs.jsonl` gets the kept pairs, as `uncanny
    edits` reads them, with everything that is on record of how they were made. `PAIRS/items.jsonl` gets two
    drafts a pair, art_pg and ref_pg, with the same options, for `uncanny mcq`.

    Returns what became of every candidate. Without a kept pair both files are empty. Raises UsageError for a
    folder without candidates, and, without `force`, where `items.jsonl` contains anything but these drafts,
    because people may have edited it; RecordError for an invalid line; OSError where a file cannot be
    written.

    >>> made = uncanny.pairs.make(images, inpainter="demo", out=out)
    >>> screened = uncanny.pairs.screen(made, model="demo")
    >>> uncanny.pairs.items(made, unreviewed=True).candidates
    5

    Source: SalArt-VQA, section 3 and appendix B.
    """
    folder = path_of("pairs", pairs)
    made = load_made(folder)
    screened = None if parameters.screened is None else Path(parameters.screened)
    judged = tuple(outcomes(made, parameters.rule, screened=screened, unreviewed=parameters.unreviewed))
    by_original: dict[str, list[MadePair]] = {}
    for pair in made:
        by_original.setdefault(pair.original.image, []).append(pair)
    target = folder / ITEMS_FILE
    kept = list(kept_of(judged))
    drafts = ItemSet(
        tuple(
            item
            for each in kept
            for item in draft_pair(each, by_original[each.pair.original.image], parameters.seed)
        ),
        target,
    )
    _check_unchanged(target, item_lines(drafts), force=parameters.force)
    write_named(folder / PAIRS, [dump_json(pair_record(each)) + b"\n" for each in kept])
    write_items(drafts, target)
    return PairsResult(made, judged, drafts, folder / PAIRS, target)


def _check_unchanged(target: Path, lines: Iterable[bytes], *, force: bool) -> None:
    """Raises UsageError for a file that people have worked on."""
    if force or not target.is_file():
        return
    if target.read_bytes() not in (b"", b"".join(lines)):
        raise UsageError(
            f"{target} already exists and contains more than these drafts",
            remedy=f"Move it elsewhere, or replace it with {option('force', True)}.",
        )
