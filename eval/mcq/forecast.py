"""What an MCQ run would ask and roughly cost, without opening a model."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from uncanny.agents.artifact_answerer import own_texts
from uncanny.client.prices import PriceTable
from uncanny.client.tokens import InputEstimate, image_tokens, input_words, notes_of, text_tokens
from uncanny.eval.mcq.items import AskedQuestion, Item
from uncanny.eval.mcq.load import image_path
from uncanny.eval.mcq.run import McqJob, McqTask
from uncanny.eval.mcq.texts import question_text, system_text
from uncanny.images import stored_size
from uncanny.models.base import Tokens
from uncanny.models.registry import missing_addresses
from uncanny.runs.progress import Progress
from uncanny.runs.run import prompts_of

# A letter, or a letter in a short JSON object; reasoning models use far more.
ANSWER_TOKENS = 10


def forecast_mcq(job: McqJob) -> dict[str, Any]:
    """Questions left, tokens and cost; None where those of the model are not known (see `InputEstimate`).

    The prefix cache is left out: how much of an image's four questions it covers depends on the provider.
    Reasoning is not counted. Raises UsageError.
    """
    prices = PriceTable.load(job.models.prices)
    model = str(job.models.model)
    task = McqTask(job, prompts_of(job.folder, own_texts()))
    pending = _pending(task)
    sizes: dict[str, int | None] = {}
    tokens = InputEstimate()
    questions = 0
    for item, asked in pending:
        for question in asked:
            questions += 1
            _add(tokens, task, item, question, model, sizes)
    total = tokens.total
    output = questions * ANSWER_TOKENS
    cost = None if total is None else prices.cost(model, Tokens(total, output, 0, 0))
    return {
        "items": len(job.items[: job.options.limit]),
        "calls": questions,
        **tokens.as_json(),
        "output_tokens": output,
        "cost_usd": cost,
        "image_tokens_unknown": sorted(tokens.models),
        "missing": missing_addresses(job.models.all_models(), job.models.base_urls),
    }


def forecast_mcq_text(found: dict[str, Any]) -> str:
    tokens = input_words(found, "{:,}".format)
    cost = "not priced" if found["cost_usd"] is None else f"${found['cost_usd']:.2f}"
    return "\n".join(
        [
            f"Items    {found['items']:,}, {found['calls']:,} questions to ask, a call each",
            f"Tokens   about {tokens}, {found['output_tokens']:,} out without reasoning",
            f"Cost     {cost} without the prefix cache",
            *notes_of(found),
            "Nothing was asked. These are estimates; --limit 5 gives real figures.",
        ]
    )


def _pending(task: McqTask) -> Iterable[tuple[Item, tuple[AskedQuestion, ...]]]:
    task.job.folder.check_links()
    return [(each.item, each.questions) for each in task.take_up(task.records(), Progress())]


def _add(
    tokens: InputEstimate,
    task: McqTask,
    item: Item,
    question: AskedQuestion,
    model: str,
    sizes: dict[str, int | None],
) -> None:
    job, ours = task.job, task.prompts
    text = text_tokens(system_text(item, ours)) + text_tokens(question_text(item, question, ours))
    if question == "q4_no_image":
        tokens.add(model, text)
        return
    if item.image not in sizes:
        size = stored_size(image_path(item, job.items_file, job.root))
        sizes[item.image] = 0 if size is None else image_tokens(model, *size)
    tokens.add(model, text, sizes[item.image])
