"""What scoring answers gives: `McqScores`, a mapping from model to `ModelScore`, and its JSON.

`to_json()` is what `mcq score --json` prints. Beside the keys of the format it has, for each model: `model`,
`parser`, `scored` (what each share of `splits` is counted out of), `refused` (of the invalid answers, those
that the provider marks as refusals), `missing_by` (why answers are missing), `asked` (how many there could
be), `unused` (answers to nothing that is asked), `changed` (missing answers that were given before their
question was changed), `stand_ins` where answers came from other models, by which, `raters` where people were
averaged, `no_image` where the control was asked, and
`lenient`, the whole object once more under the lenient reading. Several models also have `oracle_counts`, and
`blind` where one guessed without the images: it is `blind/MODEL` among the models, and tested there against
`MODEL`. `sides` has the tests of art_pg against ref_pg by model and question, where the items have such
pairs.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final

from uncanny.eval.common.estimates import Share, ShareValue
from uncanny.eval.common.groups import ImageGroups
from uncanny.eval.common.json_fields import as_json, intervals_json, json_of
from uncanny.eval.common.score_json import about, digest_of
from uncanny.eval.common.tables.paired import tests_json
from uncanny.eval.common.tables.table import RowsResult, Table, explain_intervals
from uncanny.eval.mcq.data.items import Answer, AskedQuestion, Item, ItemSet, Question
from uncanny.eval.mcq.data.texts import own_texts
from uncanny.eval.mcq.score.controls import NoImageScore
from uncanny.eval.mcq.score.matrix import ResponseMatrix
from uncanny.eval.mcq.score.parser import PARSER_VERSION, Parser
from uncanny.eval.mcq.score.sides import SidesTest, sides_json, sides_table
from uncanny.eval.mcq.score.tables import (
    pair_tables,
    published_scores,
    ranked,
    score_table,
    texts_by_model,
    unseen_tables,
)
from uncanny.eval.metrics.intervals import LEVEL, METHOD
from uncanny.eval.metrics.paired import PairedTest
from uncanny.parameters import path_of

if TYPE_CHECKING:
    from uncanny.eval.common.pages.pictures import PicturesMode

COLUMNS = ("model", "split", "score", "value", "low", "high", "counts", "out_of")


@dataclass(frozen=True, slots=True)
class SplitScores:
    """Shares of the images of one split, or union of splits, that are answered right.

    Each attribute is a share in 0–1, None where nothing of it is asked or answered: `ref_pg` has no Q1, and
    `overall` is q1, `all_q1_4` and `all_q2_4` alone. `shares` has the same with counts and interval.
    """

    shares: Mapping[str, Share]

    q1 = ShareValue()
    """Is there an artifact? On artifact images this is recall, on real photographs specificity."""
    q2 = ShareValue()
    """Where?"""
    q3 = ShareValue()
    """Which box?"""
    q4 = ShareValue()
    """What shows it?"""
    all_q1_4 = ShareValue()
    """All four right on the same image."""
    all_q2_4 = ShareValue()
    """Q2, Q3 and Q4 right on the same image."""


@dataclass(frozen=True, slots=True)
class Bias:
    """How often one answer is given, and how often it is right, among the answers to one question."""

    given: float | None
    right: float | None


@dataclass(frozen=True, slots=True)
class ModelScore:
    """The scores of one model, or the mean of several raters, on one set.

    `splits` are `artifact`, `art_dg`, `art_pg`, `ref_real`, `ref_pg` and `overall`. `patterns`, `invalid`,
    `refused`, `missing`, `unused` and `asked` (all answers there could be) are counts, summed over the
    raters; of guessing, `patterns` are expected numbers. A refused answer is invalid too. `missing` counts,
    by reason, the answers that do not exist: they are in no share. `changed` are those of them that were
    given to another question than is asked now, as ids and questions. `stand_ins` counts, by model, the
    answers that came from another one: a fallback's.
    """

    model: str
    raters: int
    n_images: Mapping[str, int]
    splits: Mapping[str, SplitScores]
    q1_detection: Mapping[str, Share]
    patterns: Mapping[str, float]
    hierarchy: Mapping[str, Share]
    by_type: Mapping[str, Share]
    disagreement: Mapping[str, Mapping[str, Share]]
    answer_bias: Mapping[Question, Mapping[str, Bias]]
    invalid: Mapping[Question, int]
    refused: Mapping[Question, int]
    missing: Mapping[str, int]
    unused: int
    asked: int
    changed: tuple[tuple[str, AskedQuestion], ...] = ()
    stand_ins: Mapping[str, int] = field(default_factory=dict)

    @property
    def answered(self) -> int:
        """How many answers there are, invalid ones included."""
        return self.asked - sum(self.missing.values())

    def share(self, split: str, name: str) -> Share | None:
        """One share of `splits` with its counts; None where there is none of this name."""
        scores = self.splits.get(split)
        return None if scores is None else scores.shares.get(name)


@dataclass(frozen=True, slots=True)
class McNemar(PairedTest):
    """Two models on the `n` items both answer, for one `question` or `all_q1_4`; see `PairedTest`.

    `adjusted_p` is corrected for all pairs of models with this question.
    """

    question: str


@dataclass(frozen=True, slots=True, repr=False)
class McqScores(RowsResult, Mapping[str, ModelScore]):
    """The scores of all models on one set: `scores["openai/gpt-4o"].splits["artifact"].all_q1_4`.

    A mapping from model to `ModelScore`; people who answered are averaged under `human`. `lenient` holds the
    second reading where it was asked for, `controls` the models that were asked Q4 without the image.
    `oracle` is the share of artifact images that at least one model gets all right, None for a single model;
    `mcnemar` compares each two, people and baselines left out, and `blind` each model with what it guessed
    without the images; `sides` compares each model on art_pg with itself on ref_pg, over the pairs of these.
    `groups` are items that intervals and tests take together. `item_set`, `answers` and
    `responses` are what was scored; the page needs them.

    Printed, it is the table of `mcq score`.
    """

    columns: ClassVar = COLUMNS

    models: Mapping[str, ModelScore]
    lenient: Mapping[str, ModelScore]
    controls: Mapping[str, NoImageScore]
    oracle: Share | None
    mcnemar: tuple[McNemar, ...]
    blind: tuple[McNemar, ...]
    sides: tuple[SidesTest, ...]
    parser: Parser
    resamples: int
    seed: int
    published: bool
    groups: ImageGroups | None
    item_set: ItemSet = field(repr=False, compare=False)
    answers: tuple[Answer, ...] = field(repr=False, compare=False)
    responses: Mapping[str, ResponseMatrix] = field(repr=False, compare=False)

    def __getitem__(self, model: str) -> ModelScore:
        return self.models[model]

    def __iter__(self) -> Iterator[str]:
        return iter(self.models)

    def __len__(self) -> int:
        return len(self.models)

    def table(self) -> Table:
        """The main figures in percent, a line a model, best first; then the published ones if asked for."""
        return score_table(self)

    def tables(self) -> tuple[Table, ...]:
        """The table of main figures; of several models each two on all Q1–4, or those next to each other.

        Then each on the two sides of pairs, and what models do without the images, where they were asked
        that.
        """
        sides = sides_table(self.sides, ranked(self))
        pairs = () if sides is None else (sides,)
        tables = (self.table(), *pair_tables(self), *pairs, *unseen_tables(self))
        return explain_intervals(tables, wanted=self.resamples, groups=self.groups)

    def to_json(self) -> dict[str, Any]:
        """What `mcq score --json` prints: one model's object, or `models`, `oracle` and `mcnemar` of several.

        Shares are in 0–1, None where nothing was asked or answered. `about` says what they are of.
        """
        more: dict[str, Any] = {
            "about": about(
                # A set has the same digest after it was exported.
                {
                    "items": digest_of(
                        item.model_dump(mode="json", include=_DIGESTED if own_texts(item) else _OURS)
                        for item in self.item_set
                    )
                },
                texts_by_model(self.answers),
                resamples=self.resamples,
                seed=self.seed,
                groups=self.groups,
            ),
            **({"published": published_scores()} if self.published else {}),
            **({"sides": sides_json(self.sides)} if self.sides else {}),
        }
        models = {name: self._model_json(name) for name in self.models}
        if len(models) == 1:
            (content,) = models.values()
            # The control is reported by model, and people who answered are one entry here.
            for control in self.controls.values():
                content["no_image"] = control.to_json()
            return content | more
        for name, control in self.controls.items():
            if name in models:
                models[name]["no_image"] = control.to_json()
        blind = {"blind": tests_json((test.question, test) for test in self.blind)} if self.blind else {}
        return {
            "models": models,
            "oracle": None if self.oracle is None else self.oracle.value,
            "oracle_counts": None
            if self.oracle is None
            else json_of(self.oracle, "solved=counts n=out_of ci=interval"),
            "mcnemar": tests_json((test.question, test) for test in self.mcnemar),
            **blind,
            **more,
        }

    def rows(self) -> Iterator[dict[str, object]]:
        """The shares of `splits`, one row a model, split and score; `low` and `high` end its interval.

        Those of Q4 without the image follow, with `no_image` in place of the split.
        """
        tables = [
            (model, split, of_split.shares)
            for model, scores in self.models.items()
            for split, of_split in scores.splits.items()
        ]
        tables += [(model, "no_image", control.shares) for model, control in self.controls.items()]
        for model, split, shares in tables:
            for name, share in shares.items():
                ends = share.interval or (None, None)
                row = (model, split, name, share.value, *ends, share.counts, share.out_of)
                yield dict(zip(COLUMNS, row, strict=True))

    def report(
        self,
        out: str | os.PathLike[str],
        *,
        published: bool = True,
        overlays: Path | None = None,
        pictures: PicturesMode = "link",
    ) -> Path:
        """Write the page of these scores to `out` and return its path; see `report.page.write_page`."""
        from uncanny.eval.mcq.report.page import write_page

        target = path_of("out", out)
        return write_page(self, target, published=published, overlays=overlays, pictures=pictures)

    def _model_json(self, name: str) -> dict[str, Any]:
        content = model_json(self.models[name], "exact", self.resamples, self.seed)
        if name in self.lenient:
            content["lenient"] = model_json(self.lenient[name], "lenient", self.resamples, self.seed)
        return content


# What scores of answers do not depend on: where the pictures are, and where uncanny's own prompts stand.
_DIGESTED: Final = set(Item.model_fields) - {"image", "overlay", "prompts_id"}
_OURS: Final = _DIGESTED - {"system", "prompts", "answer_form"}


def model_json(score: ModelScore, parser: Parser, resamples: int, seed: int) -> dict[str, Any]:
    """One model's object."""
    content: dict[str, Any] = {
        "model": score.model,
        "parser": f"{parser}/{PARSER_VERSION}",
        **json_of(score, "n_images"),
        "splits": {split: as_json(scores.shares) for split, scores in score.splits.items()},
        **json_of(score, "q1_detection"),
        "patterns": {pattern: round(count) for pattern, count in score.patterns.items()},
        **json_of(score, "hierarchy"),
        "by_type": {name: json_of(share, "n=out_of all_q1_4=value") for name, share in score.by_type.items()},
        **json_of(score, "disagreement invalid refused"),
        "missing": sum(score.missing.values()),
        **json_of(score, "missing_by=missing asked unused"),
        "changed": [{"id": item, "question": question} for item, question in score.changed],
        "scored": {
            split: {name: share.out_of for name, share in scores.shares.items()}
            for split, scores in score.splits.items()
        },
        **json_of(score, "answer_bias"),
        "ci": _intervals_json(score, resamples, seed),
    }
    if score.stand_ins:
        content["stand_ins"] = dict(score.stand_ins)
    return content | ({"raters": score.raters} if score.raters > 1 else {})


def _intervals_json(score: ModelScore, resamples: int, seed: int) -> dict[str, Any]:
    return {
        "level": LEVEL,
        "method": METHOD,
        "resamples": resamples,
        "seed": seed,
        "splits": {split: intervals_json(scores.shares) for split, scores in score.splits.items()},
        **{
            name: intervals_json(getattr(score, name))
            for name in ("q1_detection", "hierarchy", "by_type", "disagreement")
        },
    }
