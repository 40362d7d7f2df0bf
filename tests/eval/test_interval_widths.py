"""Every interval of every score, over random small inputs, has a width and holds its figure.

A bootstrap draws from what it was given: of one image, or of images that are all alike, every resample is the
same, which says nothing of how far the truth may be. Such a figure has no interval. No interval here may be
without a width by construction: Wilson's, Newcombe's, Clopper and Pearson's and DeLong's all have one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import uncanny
from tests.eval.audit.annotation_sets import loaded
from tests.eval.audit.annotation_sets import record as audited
from tests.eval.compare.made_runs import anomaly, as_records, record
from tests.eval.mcq.made_sets import answers_to, made_set
from uncanny.eval.artifacts.score.score import score as score_artifacts
from uncanny.eval.audit.parameters import AuditParameters
from uncanny.eval.audit.score.result import AuditResult
from uncanny.eval.audit.score.score import score_audit
from uncanny.eval.common.estimates import Estimate, Share
from uncanny.eval.common.pixels.masks import encode_rle
from uncanny.eval.common.tables.table import Figure, TableResult
from uncanny.eval.detect.data import SourceTruth
from uncanny.eval.detect.score import score as score_detect
from uncanny.eval.edits.people.score import score_people
from uncanny.eval.mcq.data.items import Answer
from uncanny.eval.mcq.score.box_models import BoxPick, score_boxes
from uncanny.eval.mcq.score.score import score as score_mcq
from uncanny.eval.metrics.auc import Auc, auc
from uncanny.eval.metrics.detection import Accuracy
from uncanny.eval.metrics.paired import paired_interval, paired_tests, unpaired_interval
from uncanny.eval.metrics.significance import PositionBias
from uncanny.eval.realism.people import PersonAnswer
from uncanny.eval.realism.score import score as score_realism
from uncanny.eval.realism.verdicts import Verdict
from uncanny.eval.semantic.score.score import score as score_semantic
from uncanny.schema import Detection

RESAMPLES = 40
LEAST_WIDTH = 1e-9

Ends = tuple[float, float] | None


def found(value: object, path: str = "") -> Iterator[tuple[str, float | None, Ends]]:
    """Every figure within a result that may have an interval: where it is, its value and its interval."""
    match value:
        case Estimate() | Share() | Auc():
            yield path, value.value, value.interval
        case PositionBias():
            yield path, value.first_share, value.interval
        case Accuracy():
            yield path, value.accuracy, value.interval()
        case Mapping():
            for name, each in value.items():
                yield from found(each, f"{path}.{name}")
        case str() | bytes() | np.ndarray() | Path():
            pass
        case Sequence():
            for place, each in enumerate(value):
                yield from found(each, f"{path}.{place}")
        case _ if is_dataclass(value):
            for field in fields(value):
                yield from found(getattr(value, field.name), f"{path}.{field.name}")


def check(result: object) -> None:
    """No interval without a width, the wrong way round, or beside its figure."""
    seen = 0
    for path, value, ends in found(result):
        seen += 1
        if ends is None:
            continue
        low, high = ends
        assert high - low > LEAST_WIDTH, f"{path}: {value} {ends}"
        assert value is not None, path
        assert low - LEAST_WIDTH <= value <= high + LEAST_WIDTH, f"{path}: {value} {ends}"
    assert seen
    if isinstance(result, TableResult) and not isinstance(result, AuditResult):
        rows = [row for table in result.tables() for row in table.rows]
        cells = [cell.value if isinstance(cell, Figure) else cell for row in rows for cell in row]
        lacking = [
            cell
            for cell in cells
            if isinstance(cell, Estimate | Share) and cell.value is not None and cell.interval is None
        ]
        assert bool(lacking) == ("Without an interval:" in str(result))


# Whole scores: fewer examples than functions get.
heavy = settings(max_examples=settings().max_examples // 3)
few = st.integers(1, 5)
bits = st.booleans()


@given(st.lists(st.tuples(*[st.integers(0, 4)] * 4), min_size=1, max_size=6))
def test_pairs_of_shares(cells: list[tuple[int, int, int, int]]) -> None:
    for both, first, second, neither in cells:
        n = both + first + second + neither
        paired = paired_interval(both, first, second, neither)
        check(Estimate((first - second) / n if n else None, paired))
        assert (paired is None) == (n == 0)
        if n:
            gap = (both + first) / n - (both + second) / (n + 1)
            check(Estimate(gap, unpaired_interval(both + first, n, both + second, n + 1)))


@given(st.data())
def test_tests_of_two_models(data: st.DataObject) -> None:
    items = data.draw(few)
    columns = st.lists(bits, min_size=items, max_size=items)
    answered = np.array([data.draw(columns) for _ in range(3)])
    right = np.array([data.draw(columns) for _ in range(3)]) & answered
    check(paired_tests(["a", "b", "c"], right, answered))


@given(st.lists(st.tuples(st.sampled_from([0.0, 0.25, 0.5, 1.0, 1e-9]), bits), min_size=1, max_size=12))
def test_areas_under_curves(scored: list[tuple[float, bool]]) -> None:
    values, positive = (np.array(column) for column in zip(*scored, strict=True))
    check(auc(values, positive))


def verdict_of(number: int, answers: tuple[Any, Any, Any], group: str | None) -> Verdict:
    first, original, edited = answers
    return Verdict(
        id=f"p{number}",
        group=group,
        first=first,
        original_first=original if first == "yes" else None,
        edited_first=edited if first == "yes" else None,
    )


PLACES = st.sampled_from(["first", "second", "both", None])
BOXES = st.lists(st.sampled_from([(0, 0, 4, 4), (2, 2, 6, 6), (0, 0, 8, 8)]), max_size=2)


@heavy
@given(st.data())
def test_realism(data: st.DataObject) -> None:
    answers = data.draw(
        st.lists(st.tuples(st.sampled_from(["yes", "no", None]), PLACES, PLACES), min_size=1, max_size=5)
    )
    groups = st.sampled_from(["a", "b", None])
    verdicts = [verdict_of(number, each, data.draw(groups)) for number, each in enumerate(answers)]
    people = data.draw(
        st.lists(
            st.tuples(st.integers(0, 5), st.sampled_from(["edited", "real"]), st.none() | BOXES), max_size=8
        )
    )
    answers_of_people = [
        PersonAnswer.model_validate(
            {
                "id": f"p{number}",
                "said": said,
                "boxes": boxes,
                "truth": [(0, 0, 4, 4)] if number % 2 else None,
            }
        )
        for number, said, boxes in people
    ]
    check(score_realism(verdicts, people=answers_of_people, resamples=RESAMPLES))


@heavy
@given(st.data())
def test_mcq(data: st.DataObject) -> None:
    items = made_set({"art_dg": data.draw(few), "art_pg": 1, "ref_real": data.draw(few), "ref_pg": 1})
    patterns = st.text("01-", min_size=4, max_size=4)
    answers: list[Answer] = []
    for model in ("m", "n", "human/ann", "human/ben"):
        for item in items:
            pattern = data.draw(patterns) if model != "human/ben" else "1-00"
            answers += answers_to(item, pattern, model)
    answers += answers_to(items[0], "1111", "m") if not any(each.model == "m" for each in answers) else []
    check(score_mcq(items, answers, baselines=True, resamples=RESAMPLES))
    picks = {item.id: BoxPick(data.draw(st.sampled_from("ABCD")), {}, False) for item in items[::2]}
    check(score_boxes(items, picks, resamples=RESAMPLES))


SOURCES = st.sampled_from(["generated", "real"])


@given(st.lists(st.tuples(SOURCES, st.none() | SOURCES), min_size=1, max_size=6))
def test_detect(judged: list[tuple[Any, Any]]) -> None:
    records = [
        Detection.model_validate({**audited(f"{number}.png"), "source": said, "verdict": "A verdict."})
        for number, (_, said) in enumerate(judged)
    ]
    truth = SourceTruth({f"{number}.png": source for number, (source, _) in enumerate(judged)}, "made")
    result = score_detect(records, truth)
    check(result)
    check([result.accuracy, *(result.shares(source) for source in ("generated", "real"))])


SEEN = st.lists(st.sampled_from(["six fingers", "a floating cup", "two shadows"]), max_size=2, unique=True)
SEVERITIES = st.sampled_from([10, 30, 90])


def records_of(data: st.DataObject, number: int, **more: Any) -> list[dict[str, Any]]:
    return [
        record(
            f"{place}.png",
            [anomaly(name, severity=data.draw(SEVERITIES)) for name in data.draw(SEEN)],
            source=data.draw(SOURCES),
            **more,
        )
        for place in range(number)
    ]


@heavy
@given(st.data())
def test_semantic(data: st.DataObject) -> None:
    number = data.draw(few)
    truth = records_of(data, number)
    predictions = {name: records_of(data, data.draw(st.integers(1, number))) for name in "ab"}
    check(score_semantic(predictions, truth=truth, similarity="chrf", resamples=RESAMPLES))


@heavy
@given(st.data())
def test_compare(data: st.DataObject) -> None:
    number = data.draw(few)
    a, b = records_of(data, number), records_of(data, number)
    truth = as_records(records_of(data, number))
    check(uncanny.compare(as_records(a), as_records(b), truth=truth, resamples=RESAMPLES))
    check(uncanny.compare(as_records(a), as_records(a), resamples=RESAMPLES))


@given(st.data())
def test_audit(data: st.DataObject) -> None:
    number = data.draw(st.sampled_from([1, 2, 10, 12]))
    severities = st.lists(SEVERITIES, max_size=2)
    alike = data.draw(severities)

    def release() -> list[dict[str, Any]]:
        same = data.draw(bits)
        return [
            audited(
                f"{place}.png",
                alike if same else data.draw(severities),
                prompt_id=str(place // 2 if number % 2 == 0 else place),
            )
            for place in range(number)
        ]

    pair_by = data.draw(st.sampled_from([None, "prompt_id"]))
    now = loaded({"a": as_records(release()), "b": as_records(release())}, pair_by=pair_by)
    before = loaded({"a": as_records(release())}, pair_by=pair_by)
    check(score_audit(now, (), before, AuditParameters(resamples=RESAMPLES), pair_by=pair_by))


REGIONS = st.lists(
    st.sampled_from(
        [
            {"category": "physics", "box": [0, 0, 4, 4]},
            {"category": "semantics", "box": [2, 2, 6, 6]},
            {"category": "physics", "box": [4, 4, 8, 8]},
        ]
    ),
    max_size=2,
)


@given(st.data())
def test_artifacts(data: st.DataObject) -> None:
    number = data.draw(few)

    def images(role: str) -> list[dict[str, Any]]:
        return [
            {
                "image": f"{place}.png",
                "width": 8,
                "height": 8,
                "source": data.draw(SOURCES),
                "regions": data.draw(REGIONS),
                **({"generator": data.draw(st.sampled_from("xy"))} if role == "truth" else {}),
            }
            for place in range(number)
        ]

    check(score_artifacts(images("predictions"), truth=images("truth"), resamples=RESAMPLES))


def mask_of(corner: int) -> dict[str, Any]:
    mask = np.zeros((8, 8), dtype=np.bool_)
    mask[corner : corner + 4, corner : corner + 4] = True
    return encode_rle(mask)


@heavy
@given(st.data())
def test_stress(data: st.DataObject) -> None:
    number = data.draw(few)
    meta = [
        {
            "edited": f"e{place}.png",
            "original": f"o{place}.png",
            "mask": mask_of(place % 2),
            "mask_ratio": data.draw(st.sampled_from([0.1, 0.5])),
            "method": data.draw(st.sampled_from("ab")),
        }
        for place in range(number)
    ]
    scores = st.sampled_from([0.1, 0.4, 0.9])
    seen: list[dict[str, Any]] = []
    for place in range(number):
        seen.append({"image": f"e{place}.png", "score": data.draw(scores), "mask": mask_of(data.draw(few))})
        if data.draw(bits):
            seen.append({"image": f"o{place}.png", "score": data.draw(scores)})
    again = [{**row, "score": data.draw(scores)} for row in seen]
    named = {"mine": seen, "mine@jpeg-85": again, "theirs": again}
    check(uncanny.edits.stress(named, meta=[meta], resamples=RESAMPLES, least_edits=1))


@heavy
@given(st.data())
def test_people(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    number = data.draw(few)
    pairs = [
        uncanny.edits.EditPair(
            id=str(place),
            original=f"o{place}.png",
            edited=f"e{place}.png",
            mask=mask_of(place % 2),
            method="ab"[place % 2],
        )
        for place in range(number)
    ]
    lines = [
        {
            "id": str(place),
            "shown": shown,
            "image": "",
            "person": person,
            "judged": said,
            "boxes": data.draw(BOXES) if said == "edited" else None,
        }
        for person in ("ann", "ben")
        for place in range(number)
        for shown in ("original", "edited")
        if (said := data.draw(st.sampled_from(["real", "edited", None]))) is not None
    ]
    if not lines:
        return
    file = tmp_path_factory.mktemp("people") / "judgements.jsonl"
    file.write_bytes(b"".join(orjson.dumps(line) + b"\n" for line in lines))
    seen = [{"image": f"e{place}.png", "score": 0.9, "mask": mask_of(0)} for place in range(number)]
    result = score_people(pairs, file, predictions={"mine": seen}, by=["method"], resamples=RESAMPLES)
    check(result)
