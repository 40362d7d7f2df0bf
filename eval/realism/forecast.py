"""What a realism run would ask and roughly cost, without opening a model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from uncanny.agents.verdict import own_texts
from uncanny.client.prices import PriceTable
from uncanny.client.tokens import InputEstimate, image_tokens, input_words, notes_of, text_tokens
from uncanny.eval.realism.pairs import PairFiles
from uncanny.eval.realism.run import RealismJob, RealismTask
from uncanny.images import SkippedInputs, stored_size
from uncanny.models.base import Tokens
from uncanny.models.registry import missing_addresses
from uncanny.prompts import PromptSet
from uncanny.runs.inputs import skipped_figures, skipped_line
from uncanny.runs.progress import Progress
from uncanny.runs.run import prompts_of

# A few sentences and a verdict; reasoning models use far more.
ANSWER_TOKENS = 150


def forecast_realism(job: RealismJob) -> dict[str, Any]:
    """Calls, tokens and cost of what is left: at least one call a pair, at most three.

    Where the truth lies depends on how many images pass the first check. Tokens and cost are None where
    the model's are not known (see `InputEstimate`). Repair questions, reasoning and the prefix cache are
    not counted. Raises UsageError.
    """
    prices = PriceTable.load(job.models.prices)
    pending = _pending(job)
    least, most, unreadable = _Tally(), _Tally(), 0
    texts = prompts_of(job.folder, own_texts())
    for pair in pending:
        sizes = [stored_size(pair.original), stored_size(pair.edited)]
        if None in sizes:
            unreadable += 1
            continue
        _add(job, texts, sizes, least, most)
    found: dict[str, Any] = {
        "pairs": len(job.pairs.pairs[: job.options.limit]),
        "pending": len(pending),
        "unreadable": unreadable,
        **skipped_figures(job.pairs.skipped or SkippedInputs()),
    }
    for name, tally in (("least", least), ("most", most)):
        total = tally.input.total
        used = Tokens(total, tally.output, 0, 0)
        found |= {
            f"calls_{name}": tally.calls,
            **tally.input.as_json(f"_{name}"),
            f"output_tokens_{name}": tally.output,
            f"cost_usd_{name}": None if total is None else prices.cost(str(job.models.model), used),
        }
    return found | {
        "image_tokens_unknown": sorted(most.input.models),
        "missing": missing_addresses(job.models.all_models(), job.models.base_urls),
    }


def forecast_realism_text(found: dict[str, Any]) -> str:
    unreadable = f", {found['unreadable']:,} of them unreadable" if found["unreadable"] else ""
    return "\n".join(
        [
            f"Pairs    {found['pairs']:,}, {found['pending']:,} to judge{unreadable}",
            *skipped_line(found["skipped"]),
            f"Calls    {_range(found, 'calls', '{:,}')}, by how many edits pass the first check",
            f"Tokens   about {input_words(found, '{:,}'.format, '_least', '_most')}, "
            f"{_range(found, 'output_tokens', '{:,}')} out without reasoning",
            f"Cost     {_range(found, 'cost_usd', '${:.2f}', 'not priced')} without the prefix cache",
            *notes_of(found),
            "Nothing was asked. These are estimates; --limit 5 gives real figures.",
        ]
    )


class _Tally:
    def __init__(self) -> None:
        self.calls = self.output = 0
        self.input = InputEstimate()

    def add(self, model: str, text: int, *images: int | None) -> None:
        self.calls += 1
        self.output += ANSWER_TOKENS
        self.input.add(model, text, *images)


def _add(
    job: RealismJob,
    texts: PromptSet,
    sizes: Sequence[tuple[int, int] | None],
    least: _Tally,
    most: _Tally,
) -> None:
    model = str(job.models.model)
    original, edited = (image_tokens(model, *size) if size else None for size in sizes)
    system = text_tokens(texts["system"].template.template)
    first = system + text_tokens(texts["first_check"].fill())
    second = system + text_tokens(texts["second_check"].fill())
    for tally in (least, most):
        tally.add(model, first, edited)
    for _ in range(2):
        most.add(model, second, edited, original)


def _pending(job: RealismJob) -> Sequence[PairFiles]:
    job.folder.read_manifest()  # a run that this version cannot go on with is refused
    task = RealismTask(job)
    return task.take_up(task.records(), Progress())


def _range(found: dict[str, Any], name: str, form: str, unknown: str = "?") -> str:
    least, most = found[f"{name}_least"], found[f"{name}_most"]
    if least is None or most is None:
        return unknown
    ends = form.format(least), form.format(most)
    return ends[0] if ends[0] == ends[1] else f"{ends[0]} to {ends[1]}"
