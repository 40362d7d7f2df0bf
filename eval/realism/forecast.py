"""What a realism run would ask and roughly cost, without opening a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from uncanny.client.prices import PriceTable
from uncanny.client.tokens import InputEstimate, image_tokens, input_words, notes_of, text_tokens
from uncanny.eval.realism.data import PairFiles
from uncanny.eval.realism.run import RealismTask
from uncanny.images import SkippedInputs, stored_size
from uncanny.models.base import Tokens
from uncanny.models.registry import missing_addresses
from uncanny.prompts import PromptSet, prompt_set
from uncanny.runs.inputs import skipped_figures, skipped_line
from uncanny.runs.progress import Progress
from uncanny.runs.run import prompts_of

# A few sentences and a verdict; reasoning models use far more.
ANSWER_TOKENS = 150


def forecast(task: RealismTask) -> dict[str, Any]:
    """Calls, tokens and cost of what is left: at least one call a pair, at most three.

    Where the truth lies depends on how many images pass the first check. Tokens and cost are None where
    the model's are not known (see `InputEstimate`). Repair questions, reasoning and the prefix cache are
    not counted. Raises UsageError.
    """
    prices = PriceTable.load(task.models.prices)
    texts = prompts_of(task.folder, prompt_set("realism"))
    pending = _pending(task)
    model = str(task.models.model)
    least, most, unreadable = _Bound(), _Bound(), 0
    for pair in pending:
        sizes = stored_size(pair.original), stored_size(pair.edited)
        if sizes[0] is None or sizes[1] is None:
            unreadable += 1
            continue
        _add_pair(model, texts, sizes[0], sizes[1], least, most)
    return {
        "pairs": len(task.pairs.pairs[: task.options.limit]),
        "pending": len(pending),
        "unreadable": unreadable,
        **skipped_figures(task.pairs.skipped or SkippedInputs()),
        **least.to_json("least", model, prices),
        **most.to_json("most", model, prices),
        "image_tokens_unknown": sorted(most.input.models),
        "missing": missing_addresses(task.models.all_models(), task.models.base_urls),
    }


def forecast_text(content: dict[str, Any]) -> str:
    """The forecast for people."""
    unreadable = f", {content['unreadable']:,} of them unreadable" if content["unreadable"] else ""
    return "\n".join(
        [
            f"Pairs    {content['pairs']:,}, {content['pending']:,} to judge{unreadable}",
            *skipped_line(content["skipped"]),
            f"Calls    {_range(content, 'calls', '{:,}')}, by how many edits pass the first check",
            f"Tokens   about {input_words(content, '{:,}'.format, '_least', '_most')}, "
            f"{_range(content, 'output_tokens', '{:,}')} out without reasoning",
            f"Cost     {_range(content, 'cost_usd', '${:.2f}', 'not priced')} without the prefix cache",
            *notes_of(content),
            "Nothing was asked. These are estimates; --limit 5 gives real figures.",
        ]
    )


class _Bound:
    """What all pairs take at the least, or at the most."""

    def __init__(self) -> None:
        self.calls = 0
        self.input = InputEstimate()

    def add(self, model: str, text: int, *images: int | None) -> None:
        self.calls += 1
        self.input.add(model, text, *images)

    def to_json(self, name: str, model: str, prices: PriceTable) -> dict[str, Any]:
        total, output = self.input.total, self.calls * ANSWER_TOKENS
        cost = None if total is None else prices.cost(model, Tokens(total, output, 0, 0))
        return {
            f"calls_{name}": self.calls,
            **self.input.as_json(f"_{name}"),
            f"output_tokens_{name}": output,
            f"cost_usd_{name}": cost,
        }


def _add_pair(
    model: str,
    texts: PromptSet,
    original_size: tuple[int, int],
    edited_size: tuple[int, int],
    least: _Bound,
    most: _Bound,
) -> None:
    original, edited = image_tokens(model, *original_size), image_tokens(model, *edited_size)
    system = text_tokens(texts["system"].template.template)
    first_check = system + text_tokens(texts["first_check"].fill())
    second_check = system + text_tokens(texts["second_check"].fill())
    for bound in (least, most):
        bound.add(model, first_check, edited)
    for _ in range(2):
        most.add(model, second_check, edited, original)


def _pending(task: RealismTask) -> Sequence[PairFiles]:
    task.folder.read_manifest()  # a run that this version cannot go on with is refused
    return task.load_pending(task.records(), Progress())


def _range(content: Mapping[str, Any], name: str, form: str, unknown: str = "?") -> str:
    least, most = content[f"{name}_least"], content[f"{name}_most"]
    if least is None or most is None:
        return unknown
    ends = form.format(least), form.format(most)
    return ends[0] if ends[0] == ends[1] else f"{ends[0]} to {ends[1]}"
