"""Scores as a table for a terminal and a notebook, with what has to be known before they are believed.

Published figures are those of SalArt-VQA, tables 1 and 4 to 7. Beside scores of our own they never stand
without a word on what else differs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from uncanny.eval.common.estimates import Share, percent_words
from uncanny.eval.common.headline import Versus, ranking
from uncanny.eval.common.published import asked_with, texts_notes
from uncanny.eval.common.published import published as published_tables
from uncanny.eval.common.tables.paired import conditions_table, paired_table
from uncanny.eval.common.tables.table import MISSING, Cell, Column, Table
from uncanny.eval.mcq.data.items import QUESTIONS, Answer
from uncanny.eval.mcq.score.controls import BLIND_PREFIX, RANDOM, is_baseline
from uncanny.eval.mcq.score.matrix import is_rater
from uncanny.wording import counted

if TYPE_CHECKING:
    from uncanny.eval.mcq.score.result import McqScores, ModelScore

# Column: heading, split, score.
COLUMNS = (
    ("Q1 recall", "artifact", "q1"),
    ("Q1 spec.", "ref_real", "q1"),
    ("Q2", "artifact", "q2"),
    ("Q3", "artifact", "q3"),
    ("Q4", "artifact", "q4"),
    ("art. Q1–4", "artifact", "all_q1_4"),
    ("real Q1–4", "ref_real", "all_q1_4"),
    ("all Q1–4", "overall", "all_q1_4"),
    ("all Q2–4", "overall", "all_q2_4"),
)
_MAIN = COLUMNS[7]
TITLE = "Scores on Q1 to Q4"
CONTROL_SHARES: Mapping[str, str] = {
    "f_rate": "F",
    "a_to_e_rate": "A–E",
    "key_match": "Q4's answer",
    "key_match_e": "of it E",
    "same_non_e": "same A–D",
}
# Q1 and Q3 have no words of an item's own: by themselves they show which answer a model likes.
_BLIND_LABELS: Mapping[str, str] = {"q2": "Q2", "q4": "Q4", "all_q1_4": "all Q1–4"}
_REASONS: Mapping[str, str] = {
    "image": "image not readable",
    "infrastructure": "no answer from the server",
    "rejected": "request rejected",
    "defect": "defect, see the log",
    "truncated": "answer cut off",
}
MOST_NAMED = 5
_THEIRS = "published models were asked with the released prompts about the 950 released images"


def score_table(scores: McqScores) -> Table:
    """The main figures in percent, a line a model; `published` adds the published models below.

    Models come in the order of the main figure, which is all Q1–4, people and baselines after them.
    """
    models = ranked(scores)
    rows: list[tuple[Cell, ...]] = [(name, *_cells(scores[name], drawn=name != RANDOM)) for name in models]
    said = headline(scores)
    notes = [*([said] if said else []), *_notes(scores)]
    if scores.published:
        rows.append(("published:", *("" for _ in COLUMNS)))
        for row in published_scores()["main"]:
            values = [row.get(f"{split}_{name}") for _, split, name in COLUMNS]
            rows.append((row["model"], *("" if value is None else value / 100 for value in values)))
        notes.insert(bool(said), published_caveat(scores))
    columns = (Column(heading, unit="%", better="higher") for heading, _, _ in COLUMNS)
    compared = sum(_place(name) == 0 for name in models)
    return Table(("model", *columns), tuple(rows), TITLE, tuple(notes), compared=compared)


def ranked(scores: McqScores) -> list[str]:
    """Models by all Q1–4, best first, then people, then baselines; of equals the first named comes first."""

    def key(name: str) -> tuple[int, float]:
        _, split, figure = _MAIN
        share = scores[name].share(split, figure)
        return (_place(name), 1.0 if share is None or share.value is None else -share.value)

    return sorted(scores, key=key)


def headline(scores: McqScores) -> str:
    """Who leads by the main figure, by the tests of `pair_tables`; empty where no model has one.

    Where no model was asked, people and baselines stand with their figures.
    """
    _, split, figure = _MAIN
    names = ranked(scores)
    names = [name for name in names if _place(name) == 0] or names
    words = {
        name: percent_words(share)
        for name in names
        if (share := scores[name].share(split, figure)) and share.value is not None
    }
    tests = [
        Versus(each.first, each.second, each.difference, each.adjusted_p)
        for each in scores.mcnemar
        if each.question == "all_q1_4"
    ]
    return ranking(words, tests, what="all four questions right")


def pair_tables(scores: McqScores) -> tuple[Table, ...]:
    """Each two models on all Q1–4, the better one first; of many models those next to each other.

    Empty for a single model.
    """
    names = [name for name in ranked(scores) if _place(name) == 0]
    tests = [each for each in scores.mcnemar if each.question == "all_q1_4"]
    table = paired_table(tests, names, "all Q1–4", "items")
    return () if table is None else (table,)


def unseen_tables(scores: McqScores) -> tuple[Table, ...]:
    """What models do without the images: the control, and what they guess. Empty where none was asked."""
    names = [name for name in ranked(scores) if name in scores.controls]
    control = Table(
        ("model", "items", *(Column(heading, unit="%") for heading in CONTROL_SHARES.values()), "invalid"),
        tuple(
            (
                name,
                scores.controls[name].n,
                *(scores.controls[name].shares[key] for key in CONTROL_SHARES),
                scores.controls[name].invalid,
            )
            for name in names
        ),
        "Q4 without the image, with F for saying so",
        tuple(_control_notes(scores, names)),
    )
    tests = {
        f"{test.first}, {label}": test
        for name in ranked(scores)
        for test in scores.blind
        if test.first == name and (label := _BLIND_LABELS.get(test.question))
    }
    blind = conditions_table(
        tests,
        "All questions guessed without the images",
        "items",
        "only with",
        "only without",
        "Difference in shares right, with the images minus without, with 95 % intervals (Newcombe, paired); "
        "items that are right only with the image, and only without; exact McNemar test, corrected by Holm "
        f"for {counted(len({test.first for test in scores.blind}), 'model')}; Cohen's g.",
    )
    return (*([control] if names else []), *([blind] if blind else []))


def _control_notes(scores: McqScores, names: Sequence[str]) -> Iterator[str]:
    missing = [f"{name} {count:,}" for name in names if (count := scores.controls[name].missing)]
    if missing:
        yield f"Missing answers, not counted: {'; '.join(missing)}"
    ends = ", in brackets 95 % intervals (Wilson)" if scores.resamples else ""
    yield (
        "F says that there is no image, and is right. Q4's answer: the letter that is right for the image, "
        "which is not shown, and how many of these are E. Same A–D: the same letter as with the image, of "
        f"the items answered both ways. Percent{ends}."
    )


def _place(name: str) -> int:
    """Which block of rows a name belongs to."""
    return 2 if is_baseline(name) else 1 if is_rater(name) else 0


def published_scores() -> dict[str, Any]:
    """Tables 1, 4, 5, 6 and 7: `main`, `hierarchy`, `q1_detection`, `by_route`, `type_and_disagreement`."""
    return published_tables("mcq_scores")


def published_caveat(scores: McqScores) -> str:
    """In what else than the model published rows differ from those of `scores`."""
    whose, sentence = asked_with(texts_by_model(scores.answers))
    compare = (
        "rows compare only where these items are those"
        if whose == {"set"}
        else "rows compare only where these items and prompts are those"
        if whose <= {"set", "unknown"}
        else "for orientation only, rows do not compare"
    )
    return f"{sentence}; {_THEIRS}: {compare}." if sentence else f"{_THEIRS[0].upper()}{_THEIRS[1:]}."


def texts_words(scores: McqScores, *, published: bool) -> tuple[str, str]:
    """Whose prompts the answers are to, and what that means for published figures, as two sentences.

    Both are empty where no model was asked.
    """
    whose, sentence = asked_with(texts_by_model(scores.answers))
    if not sentence:
        return "", ""
    if whose == {"set"}:
        return (
            f"{sentence}, word for word.",
            "Figures compare with published ones where the items are theirs.",
        )
    if whose <= {"set", "unknown"}:
        return f"{sentence}.", "Figures compare with published ones where items and prompts are theirs."
    shown = "; published models are shown for orientation only" if published else ""
    theirs = "which were asked with the released prompts"
    return f"{sentence}.", f"Figures do not compare with published ones, {theirs}{shown}."


def texts_by_model(answers: Iterable[Answer]) -> Mapping[str, set[str]]:
    """By model the ids of the prompts that its answers name; people and baselines were asked with none.

    Of the prompts that a set carries the id is `own:` and the question, whatever each item's own are. The
    control without the image is left out: no set carries a prompt for it.
    """
    texts: dict[str, set[str]] = {}
    for answer in answers:
        if answer.question not in QUESTIONS or is_rater(answer.model) or is_baseline(answer.model):
            continue
        ids = texts.setdefault(answer.model, set())
        prompts = (answer.model_extra or {}).get("prompts")
        if isinstance(prompts, str):
            ids.add(prompts.partition("@")[0] if prompts.startswith("own:") else prompts)
    return texts


def changed_note(changed: Sequence[tuple[str, str]]) -> str:
    """Which answers are no answers any more, and what to do about it."""
    answers = "1 answer was" if len(changed) == 1 else f"{len(changed):,} answers were"
    named = ", ".join(f"{item} {question}" for item, question in changed[:MOST_NAMED])
    more = f", and {len(changed) - MOST_NAMED:,} more in the JSON" if len(changed) > MOST_NAMED else ""
    return (
        f"{answers} given before the question was changed, and left out ({named}{more}). "
        "Start the same run again to ask the changed questions, or score against the items as they were."
    )


def _cells(score: ModelScore, *, drawn: bool) -> list[Cell]:
    """What is expected was not drawn: it has no interval."""
    shares = [score.share(split, name) for _, split, name in COLUMNS]
    return [*shares] if drawn else [share and share.value for share in shares]


def _notes(scores: McqScores) -> list[str]:
    notes = [f"{note}." for note in texts_notes(texts_by_model(scores.answers))]
    for name, score in scores.items():
        notes += [
            f"{name}: {count:,} of {score.answered:,} answers came from {other}"
            for other, count in score.stand_ins.items()
        ]
    missing = [
        f"{name} {sum(score.missing.values()):,} of {score.asked:,} ({_reasons(score)})"
        for name, score in scores.items()
        if score.missing
    ]
    if missing:
        notes.append(f"Missing answers, not counted: {'; '.join(missing)}")
    notes += [f"{name}: {changed_note(score.changed)}" for name, score in scores.items() if score.changed]
    unused = [f"{name} {score.unused:,}" for name, score in scores.items() if score.unused]
    if unused:
        notes.append(f"Answers to what these items do not ask, left out: {'; '.join(unused)}")
    blind = [name for name in scores if name.startswith(BLIND_PREFIX)]
    if blind:
        notes.append(f"Guessed from the words of the questions, without the images: {', '.join(blind)}")
    invalid = [
        f"{name} {count:,}{_refused(refused, count)}"
        for name, count, refused in (
            (name, sum(score.invalid.values()), sum(score.refused.values())) for name, score in scores.items()
        )
        if count
    ]
    if invalid:
        notes.append(f"Invalid answers, counted as wrong: {'; '.join(invalid)}")
    if scores.oracle is not None and scores.oracle.value is not None and len(scores) > 1:
        notes.append(
            f"At least one model gets all four right on {_percent(scores.oracle)} % of artifact images"
        )
    notes.append(
        "Q1 recall, Q2 to Q4 and art. are over images with an artifact, Q1 spec. and real over real ones, "
        "all over every image that is asked these questions"
    )
    if not scores.resamples:
        return [*notes, "Percent."]
    of_people = "; of the mean of people bootstrap" if any(s.raters > 1 for s in scores.values()) else ""
    return [*notes, f"Percent, in brackets 95 % intervals (Wilson{of_people})."]


def _refused(refused: int, of: int) -> str:
    return "" if not refused else ", all refused" if refused == of else f", {refused:,} of them refused"


def _reasons(score: ModelScore) -> str:
    return ", ".join(f"{count:,} {missing_words(reason)}" for reason, count in score.missing.items())


def missing_words(reason: str) -> str:
    """Why an answer is missing, where the recorded word alone does not say it."""
    return _REASONS.get(reason, reason)


def _percent(share: Share | None) -> str:
    return MISSING if share is None or share.value is None else f"{100 * share.value:.1f}"
