"""What a run of multiple-choice questions would ask and roughly cost, without opening a model."""

from __future__ import annotations

from typing import Any

from uncanny.client.prices import PriceTable
from uncanny.client.tokens import InputEstimate, image_tokens, input_words, notes_of, text_tokens
from uncanny.eval.mcq.data.texts import question_text, system_text
from uncanny.eval.mcq.run import McqTask
from uncanny.images import stored_size
from uncanny.models.base import Tokens
from uncanny.models.registry import missing_addresses
from uncanny.prompts import prompt_set
from uncanny.runs.progress import Progress
from uncanny.runs.run import prompts_of

# A letter, or a letter in a short JSON object; reasoning models use far more.
ANSWER_TOKENS = 10


def forecast(task: McqTask) -> dict[str, Any]:
    """Questions left, tokens and cost; None where those of the model are not known (see `InputEstimate`).

    The prefix cache is left out: how much of an image's four questions it covers depends on the provider.
    Reasoning is not counted. Raises UsageError.
    """
    prices = PriceTable.load(task.models.prices)
    task.prompts = texts = prompts_of(task.folder, prompt_set("mcq"))
    task.folder.check_links()
    model, items = str(task.models.model), task.items
    tokens, questions = InputEstimate(), 0
    image: dict[str, int | None] = {}
    for pending in task.load_pending(task.records(), Progress()):
        item = pending.item
        for question in pending.questions:
            questions += 1
            text = text_tokens(system_text(item, texts)) + text_tokens(question_text(item, question, texts))
            if question == "q4_no_image":
                tokens.add(model, text)
                continue
            if item.image not in image:
                size = stored_size(items.image_path(item))
                image[item.image] = 0 if size is None else image_tokens(model, *size)
            tokens.add(model, text, image[item.image])
    total, output = tokens.total, questions * ANSWER_TOKENS
    return {
        "items": len(items[: task.options.limit]),
        "calls": questions,
        **tokens.as_json(),
        "output_tokens": output,
        "cost_usd": None if total is None else prices.cost(model, Tokens(total, output, 0, 0)),
        "image_tokens_unknown": sorted(tokens.models),
        "missing": missing_addresses(task.models.all_models(), task.models.base_urls),
    }


def forecast_text(content: dict[str, Any]) -> str:
    """The forecast for people."""
    tokens = input_words(content, "{:,}".format)
    cost = "not priced" if content["cost_usd"] is None else f"${content['cost_usd']:.2f}"
    return "\n".join(
        [
            f"Items    {content['items']:,}, {content['calls']:,} questions to ask, a call each",
            f"Tokens   about {tokens}, {content['output_tokens']:,} out without reasoning",
            f"Cost     {cost} without the prefix cache",
            *notes_of(content),
            "Nothing was asked. These are estimates; --limit 5 gives real figures.",
        ]
    )
