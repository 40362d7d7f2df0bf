"""What a model says of held-out images, before and after training, and how close that is to what is true."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from uncanny.answers.forms import ANOMALIES
from uncanny.answers.lists import read_list
from uncanny.errors import AnswerError
from uncanny.eval.common.published import published
from uncanny.eval.semantic.score.score import score
from uncanny.learn.common.language import LanguageModel
from uncanny.learn.reasoning.data import Example, join_entries, split_entries, text_of

# The published rows of the paper's model and of the one that it was trained from.
_PUBLISHED = ("Qwen2.5-VL-7B", "AnomReasonor-7B")
_COLUMNS = {
    f"{figure}_{view}": f"{name}, {view}"
    for figure, name in (("semap", "SemAP"), ("semf1", "SemF1"))
    for view in ("phe", "rea", "full")
}


@dataclass(frozen=True, slots=True)
class Case:
    """A held-out image: how it is asked about, and what is to be said in the end."""

    example: Example
    wanted: str


def cases_of(examples: Sequence[Example]) -> list[Case]:
    """The images in their order; a list that was exported in parts is wanted whole."""
    by_image: dict[str, list[Example]] = {}
    for example in examples:
        by_image.setdefault(example.key, []).append(example)
    return [Case(each[0], _whole(each)) for each in by_image.values()]


def _whole(parts: Sequence[Example]) -> str:
    answers = [text_of(part.messages[-1]) for part in parts]
    entries = [entry for answer in answers for entry in split_entries(answer)]
    return join_entries(entries) if len(parts) > 1 and entries else answers[0]


def answers_of(
    model: LanguageModel, cases: Sequence[Case], max_tokens: int, done: Callable[[], None]
) -> list[str]:
    """The last answer of the model about each image, its own earlier answers before it."""
    answers = []
    for case in cases:
        said: list[Any] = []
        answer = ""
        pictures = case.example.pictures()
        for message in case.example.messages:
            if message["role"] == "assistant":
                answer = model.answer(said, pictures, max_tokens)
                said.append({"role": "assistant", "content": [{"type": "text", "text": answer}]})
            else:
                said.append(message)
        answers.append(answer)
        done()
    return answers


def figures_of(cases: Sequence[Case], answers: Sequence[str]) -> Mapping[str, float | None]:
    """SemAP and SemF1 by chrF over the lists that are expected, and shares of answers, 0–1; None of nothing.

    An answer that is no list counts as an empty one.
    """
    listed = [_anomalies(answer) for answer in answers]
    truth = [
        {"image": str(number), "anomalies": _anomalies(case.wanted) or []}
        for number, case in enumerate(cases)
    ]
    predicted = [{"image": str(number), "anomalies": each or []} for number, each in enumerate(listed)]
    semap = semf1 = None
    if any(each["anomalies"] for each in truth):
        figures = score(predicted, truth=truth, similarity="chrf", resamples=0)["predictions"]
        release = figures.protocols["release"]
        semap, semf1 = release.semap["full"].value, release.semf1["full"].value
    exact = [answer == case.wanted for case, answer in zip(cases, answers, strict=True)]
    return {
        "SemAP (chrF)": semap,
        "SemF1 (chrF)": semf1,
        "share of answers in the expected form": _share([each is not None for each in listed]),
        "share of answers that are equal to the expected one": _share(exact),
    }


def _anomalies(answer: str) -> list[dict[str, Any]] | None:
    try:
        return [each.model_dump(mode="json", exclude_unset=True) for each in read_list(answer, ANOMALIES)]
    except AnswerError:
        return None


def _share(hits: Sequence[bool]) -> float | None:
    return sum(hits) / len(hits) if hits else None


def published_rows() -> Mapping[str, Any]:
    """What the paper prints of its model and of the one before training, for `results.json`."""
    table = published("semantic_scores")
    rows = [
        [f"{row['model']}, {backbone}", *(row[name] for name in _COLUMNS)]
        for backbone, models in table["backbones"].items()
        for row in models
        if row["model"] in _PUBLISHED
    ]
    note = (
        f"{table['source']}. Other images, other prompts and BERTScore with the named model: these figures "
        "compare with each other, not with those above."
    )
    return {"columns": list(_COLUMNS.values()), "rows": rows, "note": note}
