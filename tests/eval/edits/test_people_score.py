"""Scores of people who judged edited images: by hand, and against scikit-learn, SciPy and plain loops."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pytest
from click.testing import CliRunner
from PIL import Image
from scipy.stats import chi2_contingency  # type: ignore[import-untyped]
from scipy.stats.contingency import association  # type: ignore[import-untyped]
from sklearn.metrics import accuracy_score, precision_recall_fscore_support

from tests.eval.common.page_text import Page
from uncanny.cli import uncanny as cli
from uncanny.errors import ItemsError, UsageError
from uncanny.eval.edits.people.data import JUDGEMENTS, PROFILES, default_form, read_form
from uncanny.eval.edits.people.result import PeopleScores
from uncanny.eval.edits.people.score import box_ious, score_people
from uncanny.eval.metrics.intervals import clustered_interval, wilson_interval

SIZE = (20, 10)


def make_pairs(folder: Path, masks: Sequence[Sequence[tuple[int, int, int, int]] | None]) -> Path:
    """A pair for each of `masks`, which are boxes; None is a pair without a mask."""
    (folder / "images").mkdir(parents=True)
    lines = []
    for number, boxes in enumerate(masks):
        line: dict[str, Any] = {
            "id": f"p{number}",
            "method": "ab"[number % 2],
            "ugda": ["yes", "no"][number // 2 % 2],
        }
        for side in ("original", "edited"):
            line[side] = f"images/{number}-{side}.png"
            Image.new("RGB", SIZE, (10 * number, 0, 100)).save(folder / line[side])
        if boxes is not None:
            pixels = np.zeros(SIZE[::-1], dtype=np.uint8)
            for x0, y0, x1, y1 in boxes:
                pixels[y0:y1, x0:x1] = 255
            line["mask"] = f"images/{number}-mask.png"
            Image.fromarray(pixels).save(folder / line["mask"])
        lines.append(orjson.dumps(line) + b"\n")
    (folder / "pairs.jsonl").write_bytes(b"".join(lines))
    return folder / "pairs.jsonl"


def judged(
    pair: int, shown: str, person: str, verdict: str | None, boxes: Any = None, **more: Any
) -> dict[str, Any]:
    return {
        "id": f"p{pair}",
        "shown": shown,
        "image": f"images/{pair}-{shown}.png",
        "person": person,
        "judged": verdict,
        "boxes": ([] if boxes is None else boxes) if verdict == "edited" else None,
        "width": SIZE[0],
        "height": SIZE[1],
        **more,
    }


def write(
    folder: Path, lines: Sequence[Mapping[str, Any]], profiles: Sequence[Mapping[str, Any]] = ()
) -> Path:
    folder.mkdir(exist_ok=True)
    for name, some in ((JUDGEMENTS, lines), (PROFILES, profiles)):
        if some:
            (folder / name).write_bytes(b"".join(orjson.dumps(each) + b"\n" for each in some))
    return folder


# Ann finds both edits and takes one original for an edit; Ben finds none, and takes one original for real.
BY_HAND = [
    judged(0, "edited", "ann", "edited", [[0, 0, 10, 10]], seconds=2.0),
    judged(0, "original", "ann", "real", seconds=4.0),
    judged(1, "edited", "ann", "edited", seconds=9.0),
    judged(1, "original", "ann", "edited", [[0, 0, 5, 5]]),
    judged(0, "edited", "ben", "real"),
    judged(0, "original", "ben", "real"),
    judged(1, "edited", "ben", "real"),
]


@pytest.fixture
def pairs(tmp_path: Path) -> Path:
    return make_pairs(tmp_path / "set", [[(5, 0, 15, 10)], [(0, 0, 20, 10)], None])


def test_edits_of_one_original_count_as_one(tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "shared").mkdir()
    own = make_pairs(tmp_path / "own", [[(5, 0, 15, 10)]] * 8)
    shared = make_pairs(tmp_path / "shared", [[(5, 0, 15, 10)]] * 8)
    lines = [orjson.loads(line) for line in shared.read_bytes().splitlines()]
    for number, line in enumerate(lines):
        line["original"] = f"images/{number // 4}-original.png"
    shared.write_bytes(b"".join(orjson.dumps(line) + b"\n" for line in lines))
    edits = [judged(number, "edited", "ann", "edited" if number < 4 else "real") for number in range(8)]
    run = write(tmp_path / "run", edits)
    apart, together = score_people(own, run), score_people(shared, run)
    assert apart.grouped is None
    assert apart.together.accuracy.interval == wilson_interval(4, 8)
    assert together.together.accuracy.interval == clustered_interval([4, 0], [4, 4])
    assert together.to_json()["about"]["intervals"]["groups"] == {"by": "original", "groups": 2, "images": 8}
    assert "8 images come in 2 groups (by original)" in str(together)
    assert apart.together.accuracy.value == together.together.accuracy.value


def test_a_case_worked_by_hand(pairs: Path, tmp_path: Path) -> None:
    scores = score_people(pairs, write(tmp_path / "run", BY_HAND))
    ann, ben, both = scores.people["ann"], scores.people["ben"], scores.together
    assert (ann.accuracy.counts, ann.accuracy.out_of, ann.accuracy.value) == (3, 4, 0.75)
    # An original and its edit are a group: she is right on both of the first, on one of the second.
    assert ann.accuracy.interval == clustered_interval([2, 1], [2, 2])
    assert (ann.precision.value, ann.recall.value, ann.specificity.value) == (2 / 3, 1.0, 0.5)
    assert ann.f1.value == pytest.approx(0.8)
    # Boxes 0–10 and mask 5–15 share 5 of 15 columns; of the other edit no place was named.
    assert ann.iou.value == pytest.approx((1 / 3 + 0) / 2)
    assert ann.found_iou.value == pytest.approx(1 / 3)
    assert (ann.with_iou, ann.without_iou, ann.boxed, ann.seconds) == (2, 0, 1, 4.0)
    assert (ben.accuracy.value, ben.precision.value, ben.recall.value, ben.f1.value) == (
        1 / 3,
        None,
        0.0,
        0.0,
    )
    assert (ben.specificity.value, ben.iou.value, ben.found_iou.value, ben.seconds) == (1.0, 0.0, None, None)
    assert (both.judged, both.images, both.accuracy.value) == (7, 4, 4 / 7)
    # By image: (1/3 + 0) / 2 and (0 + 0) / 2.
    assert both.iou.value == pytest.approx((1 / 6 + 0) / 2)
    # They agree on one original only; on both edits they differ, and one original was judged by one alone.
    assert (scores.ties, scores.majority.judged, scores.majority.accuracy.value) == (2, 2, 0.5)
    assert scores.majority.iou.value is None
    assert (scores.agreement.units, scores.agreement.judgements) == (3, 6)
    assert scores.left.unseen == 2


def test_groups_are_edits_with_their_originals(pairs: Path, tmp_path: Path) -> None:
    scores = score_people(pairs, write(tmp_path / "run", BY_HAND), by=["ugda"])
    assert list(scores.factors) == ["method", "ugda"]
    first = scores.factors["method"]["a"]
    assert (first.judged, first.accuracy.counts, first.recall.counts, first.recall.out_of) == (4, 3, 1, 2)
    assert scores.factors["method"]["b"].accuracy.counts == 1
    nobody = scores.factors["ugda"]["no"]
    assert (nobody.judged, nobody.accuracy.value, nobody.iou.value) == (0, None, None)
    with pytest.raises(UsageError, match="no column size"):
        score_people(pairs, tmp_path / "run", by=["size"])


def test_bins_of_measured_edits_are_groups(pairs: Path, tmp_path: Path) -> None:
    lines = [orjson.loads(line) for line in pairs.read_bytes().splitlines()]
    for line, size in zip(lines, ("large", "small", None), strict=True):
        line["bins"] = {"mask_ratio": size}
    pairs.write_bytes(b"".join(orjson.dumps(line) + b"\n" for line in lines))
    scores = score_people(pairs, write(tmp_path / "run", BY_HAND))
    assert list(scores.factors["mask_ratio"]) == ["small", "large"]
    assert scores.factors["mask_ratio"]["large"].recall.counts == 1


@pytest.mark.parametrize("seed", range(5))
def test_figures_are_those_of_other_implementations(tmp_path: Path, seed: int) -> None:
    draw = random.Random(seed)
    masks = [[random_box(draw) for _ in range(draw.randint(1, 3))] for _ in range(6)]
    pairs = make_pairs(tmp_path / "set", masks)
    lines, profiles = [], []
    for person in range(5):
        profiles.append({"person": f"q{person}", "answers": {"age": draw.choice(["young", "old", None])}})
        for pair in range(6):
            for shown in ("original", "edited"):
                verdict = draw.choice(["real", "edited"])
                boxes = [random_box(draw) for _ in range(draw.randint(0, 3))]
                lines.append(judged(pair, shown, f"q{person}", verdict, boxes))
    scores = score_people(pairs, write(tmp_path / "run", lines, profiles), least_answers=1, resamples=50)
    for name, figures in [*scores.people.items(), (None, scores.together)]:
        own = [line for line in lines if name in (None, line["person"])]
        truth = [line["shown"] == "edited" for line in own]
        said = [line["judged"] == "edited" for line in own]
        assert figures.accuracy.value == pytest.approx(accuracy_score(truth, said))
        precision, recall, f1, _ = precision_recall_fscore_support(
            truth, said, average="binary", zero_division=0
        )
        assert (figures.precision.value or 0) == pytest.approx(precision)
        assert figures.recall.value == pytest.approx(recall)
        assert figures.f1.value == pytest.approx(f1)
        edits = [line for line in own if line["shown"] == "edited"]
        ious = [naive_iou(line["boxes"] or [], masks[int(line["id"][1:])]) for line in edits]
        assert figures.iou.value == pytest.approx(sum(ious) / len(ious))
    check_questionnaire(scores, lines, profiles)


def check_questionnaire(
    scores: PeopleScores, lines: list[dict[str, Any]], profiles: list[dict[str, Any]]
) -> None:
    said = {profile["person"]: profile["answers"]["age"] for profile in profiles}
    levels = sorted({age for age in said.values() if age is not None})
    table = np.zeros((len(levels), 2), dtype=int)
    for line in lines:
        if said[line["person"]] is not None:
            right = (line["judged"] == "edited") == (line["shown"] == "edited")
            table[levels.index(said[line["person"]]), int(right)] += 1
    column = scores.questionnaire["age"]
    assert {level: list(counts) for level, counts in column.levels.items()} == {
        level: [int(row[1]), int(row.sum())] for level, row in zip(levels, table, strict=True)
    }
    if len(levels) < 2:
        assert column.association.chi2 is None
        return
    expected = chi2_contingency(table, correction=False)
    assert column.association.chi2 == pytest.approx(expected.statistic)
    assert column.association.cramers_v == pytest.approx(association(table, method="cramer"))
    if expected.expected_freq.min() >= 5:
        assert column.association.p_value == pytest.approx(expected.pvalue)


def random_box(draw: random.Random) -> tuple[int, int, int, int]:
    x0, y0 = draw.randrange(SIZE[0] - 1), draw.randrange(SIZE[1] - 1)
    return x0, y0, draw.randint(x0 + 1, SIZE[0]), draw.randint(y0 + 1, SIZE[1])


def naive_iou(boxes: Sequence[Sequence[int]], mask: Sequence[Sequence[int]]) -> float:
    def inside(x: int, y: int, some: Sequence[Sequence[int]]) -> bool:
        return any(x0 <= x < x1 and y0 <= y < y1 for x0, y0, x1, y1 in some)

    pixels = [(inside(x, y, boxes), inside(x, y, mask)) for x in range(SIZE[0]) for y in range(SIZE[1])]
    return sum(a and b for a, b in pixels) / sum(a or b for a, b in pixels)


def test_masks_as_boxes_are_those_of_their_connected_parts() -> None:
    mask = np.zeros((10, 20), dtype=np.bool_)
    mask[0, 0:4] = mask[0:4, 0] = True  # an angle, whose box is 4 × 4
    mask[8:10, 18:20] = True
    iou, box_iou = box_ious([(0, 0, 4, 4), (18, 8, 20, 10)], mask)
    assert iou == pytest.approx(11 / 20)
    assert box_iou == 1.0
    # Boxes that overlap count once, and what lies outside the picture not at all.
    assert box_ious([(0, 0, 4, 4), (0, 0, 4, 4), (15, 8, 30, 10)], mask)[1] == pytest.approx(20 / 26)
    assert box_ious([], mask) == (0.0, 0.0)


def test_what_is_not_measured_is_counted_and_in_no_figure(pairs: Path, tmp_path: Path) -> None:
    lines = [
        *BY_HAND,
        judged(2, "edited", "ann", "edited", [[0, 0, 5, 5]]),  # has no mask
        judged(1, "original", "ben", None, error="damaged"),
        judged(9, "edited", "ann", "real"),
        judged(
            0, "edited", "cid", "edited", [[0, 0, 2, 2]], width=40, height=20
        ),  # another file of this name
        judged(0, "original", "cid", "edited"),
        judged(0, "original", "cid", "real"),
    ]
    scores = score_people(pairs, write(tmp_path / "run", lines))
    assert (scores.people["ann"].without_iou, scores.people["cid"].without_iou) == (1, 1)
    assert scores.people["cid"].iou.value is None
    assert scores.people["cid"].specificity.value == 1.0  # the last word counts
    left = scores.left
    assert (left.unknown, left.unjudged, left.repeated) == (("p9",), 1, 1)
    text = str(scores)
    assert "1 image could not be shown" in text
    assert "2 judgements of edits without a mask of their size, in no IoU" in text
    assert scores.to_json()["left_out"]["unknown"] == {"n": 1, "pairs": ["p9"]}


def test_an_original_that_edits_share_is_one_image(pairs: Path, tmp_path: Path) -> None:
    lines = [orjson.loads(line) for line in pairs.read_bytes().splitlines()]
    lines[1]["original"] = lines[0]["original"]
    pairs.write_bytes(b"".join(orjson.dumps(line) + b"\n" for line in lines))
    said = [judged(0, "original", "ann", "real"), judged(1, "original", "ben", "real")]
    scores = score_people(pairs, write(tmp_path / "run", said))
    assert (scores.together.images, scores.agreement.units) == (1, 1)
    assert scores.factors["method"]["b"].judged == 2


def test_a_detector_is_scored_on_the_same_images(pairs: Path, tmp_path: Path) -> None:
    seen = [
        {"image": "images/0-edited.png", "score": 0.9, "mask": str(pairs.parent / "images/0-mask.png")},
        {"image": "images/0-original.png", "score": 0.8},
        {"image": "images/1-edited.png", "score": 0.1},
        {"image": "images/2-edited.png", "score": 0.9},  # which nobody has judged
        {"image": "images/elsewhere.png", "score": 0.9},  # which is in no pair
    ]
    scores = score_people(pairs, write(tmp_path / "run", BY_HAND), predictions={"mine": seen})
    mine = scores.detectors["mine"]
    assert (mine.figures.judged, mine.without, mine.unused) == (3, 1, 1)
    assert "mine: 1 prediction of images in no pair, left out" in str(scores)
    assert mine.figures.accuracy.value == pytest.approx(1 / 3)
    assert (mine.figures.precision.value, mine.figures.recall.value) == (0.5, 0.5)
    assert (mine.figures.iou.value, mine.figures.with_iou, mine.figures.without_iou) == (1.0, 1, 1)
    assert "mine says nothing of 1 image that people judged" in str(scores)
    wrong = [{"image": "images/0-edited.png", "score": 7}]
    with pytest.raises(ItemsError, match="from 0 to 1"):
        score_people(pairs, tmp_path / "run", predictions={"mine": wrong})


def test_several_folders_are_one_study(pairs: Path, tmp_path: Path) -> None:
    first, second = write(tmp_path / "a", BY_HAND[:4]), write(tmp_path / "b", BY_HAND[4:])
    apart = score_people(pairs, [first, second]).to_json()
    assert apart == score_people(pairs, write(tmp_path / "run", BY_HAND)).to_json()


BROKEN: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "judged": lambda line: {**line, "judged": "fake"},
    "boxes": lambda line: {**line, "boxes": [[5, 5, 1, 1]]},
    "person": lambda line: {**line, "person": ""},
    "seconds": lambda line: {**line, "seconds": -1},
}


@pytest.mark.parametrize("name", BROKEN)
def test_invalid_lines_are_named(pairs: Path, tmp_path: Path, name: str) -> None:
    run = write(tmp_path / "run", [*BY_HAND, BROKEN[name](BY_HAND[0])])
    with pytest.raises(ItemsError, match=name):
        score_people(pairs, run)


def test_what_cannot_be_scored_is_said(pairs: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="does not exist"):
        score_people(pairs, tmp_path / "nowhere")
    (tmp_path / "empty.jsonl").touch()
    with pytest.raises(UsageError, match="no judgements yet"):
        score_people(pairs, tmp_path / "empty.jsonl")
    with pytest.raises(UsageError, match="None of the judgements"):
        score_people(pairs, write(tmp_path / "other", [judged(9, "edited", "ann", "real")]))


def test_the_command_writes_json_table_csv_and_page(pairs: Path, tmp_path: Path) -> None:
    run = write(tmp_path / "run", BY_HAND, [{"person": "ann", "answers": {"age": "young"}}])
    json_file, csv_file = tmp_path / "s.json", tmp_path / "s.csv"
    options = ["--json", str(json_file), "--csv", str(csv_file), "--least-answers", "1"]
    done = CliRunner().invoke(cli, ["edits", "people-score", str(pairs), str(run), *options])
    assert done.exit_code == 0, done.output
    assert "Krippendorff" in done.output
    scores = orjson.loads(json_file.read_bytes())
    assert scores["people"]["ann"]["accuracy"]["value"] == 0.75
    assert scores["questionnaire"]["age"]["cramers_v"] is None
    assert len(csv_file.read_text().splitlines()) == 1 + 2 + 2 + 2
    page = (run / "people.html").read_text()
    assert "found 2 of 4 edits shown, and took 1 of 3 originals for edited" in Page(page).text
    # The same again may be written over, something else not.
    assert CliRunner().invoke(cli, ["edits", "people-score", str(pairs), str(run), *options]).exit_code == 0
    json_file.write_text("[]")
    again = CliRunner().invoke(cli, ["edits", "people-score", str(pairs), str(run), *options])
    assert isinstance(again.exception, UsageError)


def test_people_with_few_judgements_are_named_beside_the_questionnaire(pairs: Path, tmp_path: Path) -> None:
    run = write(tmp_path / "run", BY_HAND, [{"person": "ann", "answers": {"age": "young"}}])
    scores = score_people(pairs, run, least_answers=4)
    assert scores.to_json()["left_out"]["few_answers"] == {"n": 1, "people": ["ben"]}
    assert "People with 4 judgements or more, without ben;" in " ".join(str(scores).split())
    assert score_people(pairs, run, least_answers=1).few_answers == ()


def test_the_questionnaire_that_comes_along_has_the_six_columns_of_the_study(tmp_path: Path) -> None:
    form = default_form()
    assert [len(question.options) for question in form.questions] == [3, 7, 5, 6, 4, 5]
    assert read_form("default") == form
    own = tmp_path / "form.json"
    own.write_bytes(orjson.dumps({"questions": [{"id": "a", "text": "A?", "options": ["x", "y"]}]}))
    assert read_form(own).questions[0].options == ("x", "y")
    twice = [{"id": "a b", "text": "?", "options": ["x", "x"]}]
    wrongs: list[Any] = [{"questions": []}, {"questions": twice}, [], {}]
    for wrong in wrongs:
        own.write_bytes(orjson.dumps(wrong))
        with pytest.raises(ItemsError):
            read_form(own)
    own.write_text("{")
    with pytest.raises(UsageError, match="not valid JSON"):
        read_form(own)
