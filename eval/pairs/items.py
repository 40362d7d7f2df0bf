"""Writing the pairs that are kept, with drafts of questions about them: `uncanny.pairs.items`."""

from __future__ import annotations

import os
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

import orjson

from uncanny.errors import UsageError
from uncanny.eval.common.inputs.pair_folders import PAIRS
from uncanny.eval.mcq.data.items import ItemSet
from uncanny.eval.mcq.data.load import ITEMS_FILE, item_lines, write_items
from uncanny.eval.pairs.data import MadePair, load_made
from uncanny.eval.pairs.drafts import draft_pair
from uncanny.eval.pairs.outcome import outcomes
from uncanny.eval.pairs.parameters import ItemsParameters
from uncanny.eval.pairs.result import DRAFTS, PairsResult, kept_of, pair_record
from uncanny.files import dump_json
from uncanny.parameters import path_of, takes
from uncanny.records.jsonl import write_named
from uncanny.wording import option


@takes(ItemsParameters)
def items(pairs: str | os.PathLike[str], parameters: ItemsParameters) -> PairsResult:
    """Write the pairs that people kept, and drafts of questions about them.

    `pairs` is the folder of a run of `make`. A candidate is kept if people accepted its finding on the review
    page of `screened`, or added one of their own. In `out`, `pairs.jsonl` gets the kept pairs, as `uncanny
    edits` reads them, with everything that is on record of how they were made. `items.jsonl` gets two drafts
    a pair, art_pg and ref_pg, with the same options, for `uncanny mcq`.

    Returns what became of every candidate. Without a kept pair both files are empty. Raises UsageError for a
    folder without candidates, and, without `force`, where people have edited `items.jsonl`; RecordError for
    an invalid line; OSError where a file cannot be written.

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
    out = folder if parameters.out is None else Path(parameters.out)
    target = out / ITEMS_FILE
    numbers = {pair.id: number for number, pair in enumerate(made)}
    kept = list(kept_of(judged))
    drafted = [
        draft_pair(
            each,
            by_original[each.pair.original.image],
            parameters.seed,
            out,
            numbers[each.pair.id],
        )
        for each in kept
    ]
    drafts = ItemSet(tuple(item for both in drafted for item in both), target)
    if not parameters.force:
        _check_unchanged(out)
    records = (
        pair_record(each, out, b"".join(item_lines(both))) for each, both in zip(kept, drafted, strict=True)
    )
    # A kill between both files must not look as if somebody had edited the drafts.
    target.unlink(missing_ok=True)
    write_named(out / PAIRS, (dump_json(record) + b"\n" for record in records))
    write_items(drafts, target)
    return PairsResult(made, judged, drafts, out / PAIRS, target)


def _check_unchanged(out: Path) -> None:
    """Raises UsageError for drafts that people have worked on since they were written."""
    target, pairs = out / ITEMS_FILE, out / PAIRS
    if not target.is_file():
        return
    lines = target.read_bytes().splitlines(keepends=True)
    found = [sha256(b"".join(lines[at : at + 2])).hexdigest() for at in range(0, len(lines), 2)]
    with suppress(orjson.JSONDecodeError, AttributeError):
        written = pairs.read_bytes().splitlines() if pairs.is_file() else []
        if found == [digest for line in written if (digest := orjson.loads(line).get(DRAFTS)) is not None]:
            return
    raise UsageError(
        f"{target} has changed since its drafts were written",
        remedy=f"Move it elsewhere, or replace it with {option('force', True)}.",
    )
