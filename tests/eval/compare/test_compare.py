"""Two made-up runs with known differences give exactly these; truth, cost, prompts; what failed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

import uncanny
from tests.eval.compare.made_runs import anomaly, as_records, record, written
from uncanny.errors import ItemsError, UsageError
from uncanny.eval.common.similarity.base import Matrix, TextPairs
from uncanny.eval.compare.score.score import band, change_of
from uncanny.eval.metrics.intervals import wilson_interval
from uncanny.schema import Annotation
from uncanny.settings import settings


def known_runs() -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Five images: one lost, one gained, one with more, one with fewer, one the same; 5 in common."""
    one, two, three = (
        anomaly("one", kind="anatomy"),
        anomaly("two", severity=50),
        anomaly("three", kind="light"),
    )
    a = [
        record("lost.png", [one, two]),
        record("gained.png"),
        record("more.png", [one]),
        record("fewer.png", [one, two, three]),
        record("same.png", [two]),
    ]
    b = [
        record("lost.png"),
        record("gained.png", [anomaly("new", kind="text")]),
        record("more.png", [three, one]),
        record("fewer.png", [two, one]),
        record("same.png", [two]),
    ]
    return a, b


def test_known_differences_are_found_exactly() -> None:
    a, b = known_runs()
    result = uncanny.compare({"old": as_records(a), "new": as_records(b)})
    content = result.to_json()
    assert content["runs"] == ["old", "new"]
    assert content["images"] == {"both": 5, "only_a": 0, "only_b": 0}
    rules = {"text": 4, "box": 0, "both": 0}
    assert content["anomalies"] == {"in_common": 4, "only_a": 3, "only_b": 2, "rules": rules}
    assert content["changed"] == {
        "found_to_none": 1,
        "none_to_found": 1,
        "more": 1,
        "fewer": 1,
        "same": 1,
    }
    kinds = {name: (each["a"], each["b"], each["difference"]) for name, each in content["by_kind"].items()}
    assert kinds == {"anatomy": (3, 2, -1), "text": (0, 1, 1), "light": (1, 1, 0), "unknown": (3, 2, -1)}
    only = {name: (each["only_a"], each["only_b"]) for name, each in content["by_kind"].items()}
    assert only == {"anatomy": (1, 0), "text": (0, 1), "light": (1, 1), "unknown": (1, 0)}
    bands = {name: (each["a"], each["b"]) for name, each in content["by_severity"].items()}
    assert bands == {"0-19": (0, 0), "20-39": (4, 4), "40-59": (3, 2), "60-79": (0, 0), "80-100": (0, 0)}
    figures = content["figures"]
    assert (figures["af"]["a"], figures["af"]["b"]) == (7 / 5, 6 / 5)
    assert figures["mai"]["a"] == pytest.approx((4 * 0.8 + 3 * 0.5) / 5)
    assert figures["cap"]["b"] == pytest.approx(6 / 5 * (4 * 0.8 + 2 * 0.5) / 5)
    assert figures["af"]["difference"] == pytest.approx(-0.2)
    described = content["descriptions"]
    words = [len(each["reasoning"].split()) for image in a for each in image["anomalies"]]
    assert described["reasoning_words"]["a"] == pytest.approx(sum(words) / 7)
    assert described["with_box"]["b"] == 0
    # One, two and three; new is only in the second run.
    assert content["distinct_names"] == [3, 4]
    low, high = figures["af"]["ci"]
    assert low < 0 < high
    # Worst first: two anomalies lost, then one.
    assert [image["image"] for image in content["per_image"]][:2] == ["lost.png", "fewer.png"]
    (fewer,) = (image for image in content["per_image"] if image["image"] == "fewer.png")
    assert [(match["a"], match["b"], match["rule"]) for match in fewer["in_common"]] == [
        (0, 1, "text"),
        (1, 0, "text"),
    ]
    assert fewer["only_a"] == [2]
    assert fewer["only_b"] == []


def test_the_other_way_round_everything_is_mirrored() -> None:
    a, b = known_runs()
    (forth,) = uncanny.compare({"x": as_records(a), "y": as_records(b)}).comparisons
    (back,) = uncanny.compare({"x": as_records(b), "y": as_records(a)}).comparisons
    assert (forth.in_common, forth.only_a, forth.only_b) == (back.in_common, back.only_b, back.only_a)
    for name, figure in forth.figures.items():
        mirrored = back.figures[name]
        assert (figure.a, figure.b) == (mirrored.b, mirrored.a)
        assert figure.difference.value == pytest.approx(-(mirrored.difference.value or 0))
    assert forth.images_changed["more"] == back.images_changed["fewer"]


def test_intervals_are_a_bootstrap_over_images() -> None:
    """Written down anew, image by image, with other random numbers."""
    rng = np.random.default_rng(3)
    counts = rng.integers(0, 4, size=(2, 60))
    sides = [
        as_records(
            record(f"{place}.png", [anomaly(f"{side} {place} {k}") for k in range(number)])
            for place, number in enumerate(counts[side])
        )
        for side in (0, 1)
    ]
    (comparison,) = uncanny.compare(*sides).comparisons
    differences = counts[1] - counts[0]
    drawn = rng.choice(differences, size=(10_000, 60)).mean(axis=1)
    estimate = comparison.figures["af"].difference
    assert estimate.value == pytest.approx(differences.mean())
    assert estimate.interval == pytest.approx(np.quantile(drawn, [0.025, 0.975]), abs=0.03)


def test_what_failed_in_either_run_is_left_out_and_never_taken_for_flawless() -> None:
    a, b = known_runs()
    b[0] |= {"status": "failed", "errors": []}
    a[3] |= {"status": "partial"}
    a[4]["source"] = None
    (comparison,) = uncanny.compare({"a": as_records(a), "b": as_records(b)}, resamples=0).comparisons
    content = comparison.to_json()
    assert content["images"]["both"] == 2
    assert content["changed"]["found_to_none"] == 0
    assert content["left_out"]["pairs"] == 3
    assert content["left_out"]["a"] == {"failed": 0, "partial": 1, "unreadable": 0, "unclear": 1}
    assert content["left_out"]["b"]["failed"] == 1
    assert any("3 of 5 images are left out" in notice for notice in comparison.notices)
    # What failed costs all the same.
    assert content["cost"]["calls"] == [10, 10]


def test_cost_is_none_where_a_record_does_not_measure_it() -> None:
    a, b = known_runs()
    b[1]["usage"] = {"calls": 1, "input_tokens": None, "cached_tokens": 0, "output_tokens": 3}
    del b[2]["usage"]
    cost = uncanny.compare({"a": as_records(a), "b": as_records(b)}, resamples=0).to_json()["cost"]
    assert cost["calls"] == [10, None]
    assert cost["input_tokens"] == [500, None]
    assert cost["unmeasured"]["input_tokens"] == [0, 2]
    assert cost["ratio"]["output_tokens"] is None
    assert cost["seconds_an_image"] == [None, None]


def test_a_run_without_kinds_is_named_beside_one_that_has_them() -> None:
    plain = [record("a.png", [anomaly("one")]), record("b.png", [anomaly("two")]), record("c.png")]
    kinds = [
        record("a.png", [anomaly("one", kind="count")]),
        record("b.png", [anomaly("two")]),
        record("c.png"),
    ]

    def words(a: list[dict[str, Any]], b: list[dict[str, Any]]) -> list[str]:
        comparison = uncanny.compare({"x": as_records(a), "y": as_records(b)}, resamples=0).comparisons[0]
        return [notice for notice in comparison.notices if "kinds" in notice]

    ends = "has no kinds, which its schedule or its tool does not ask for: nothing is compared by kind."
    assert words(kinds, plain) == [f"y {ends}"]
    assert words(plain, kinds) == [f"x {ends}"]
    assert words(plain, plain) == words(kinds, kinds) == []
    assert words(kinds, [record("a.png"), record("b.png"), record("c.png")]) == []
    # What was not asked for is not 0.
    both = uncanny.compare({"x": as_records(kinds), "y": as_records(plain)}, resamples=0)
    assert both.to_json()["by_kind"] == {}
    assert (
        "count"
        in uncanny.compare({"x": as_records(kinds), "y": as_records(kinds)}, resamples=0).to_json()["by_kind"]
    )


def test_more_than_two_runs_are_each_compared_with_the_first() -> None:
    a, b = known_runs()
    result = uncanny.compare({"a": as_records(a), "b": as_records(b), "c": as_records(a)}, resamples=0)
    content = result.to_json()
    assert list(content) == ["comparisons", "about"]
    assert [each["runs"] for each in content["comparisons"]] == [["a", "b"], ["a", "c"]]
    assert content["comparisons"][1]["anomalies"]["only_a"] == 0
    assert "all 7 are in common" in result.comparisons[1].headline


TRUTH = [
    record("lost.png", [anomaly("one", kind="anatomy"), anomaly("four", kind="light")], source="generated"),
    record("gained.png", source="real"),
    record("more.png", [anomaly("three", kind="light")], source="generated"),
    record("fewer.png", [anomaly("one", kind="anatomy")], source="generated"),
]


def test_against_a_truth(tmp_path: Path) -> None:
    a, b = known_runs()
    unused = [record("elsewhere.png"), record("broken.png", status="failed")]
    truth = written(tmp_path / "truth.jsonl", [*TRUTH, *unused])
    (comparison,) = uncanny.compare({"a": as_records(a), "b": as_records(b)}, truth=truth).comparisons
    content = comparison.to_json()["truth"]
    assert (content["images"], content["with_anomaly"], content["without_anomaly"]) == (4, 3, 1)
    assert (content["recall"]["a"], content["recall"]["b"]) == (2 / 4, 2 / 4)
    assert (content["precision"]["a"], content["precision"]["b"]) == (2 / 6, 2 / 5)
    assert (content["false_alarms"]["a"], content["false_alarms"]["b"]) == (0, 1)
    assert (content["detection"]["a"], content["detection"]["b"]) == (4 / 4, 2 / 4)
    kinds = {kind: (each["true"], each["a"], each["b"]) for kind, each in content["recall_by_kind"].items()}
    assert kinds == {"anatomy": (2, 1.0, 0.5), "light": (2, 0.0, 0.5)}
    assert content["source"] is None
    assert any("1 of 5 images have no truth" in notice for notice in comparison.notices)
    assert any("not counted: elsewhere.png, broken.png" in notice for notice in comparison.notices)
    # A true anomaly lost, and a false alarm that is new, come before what nobody knows to be true.
    lost = {image["image"]: image.get("truth", {}).get("lost") for image in comparison.to_json()["per_image"]}
    assert lost == {"lost.png": 1, "gained.png": 1, "fewer.png": 0, "more.png": 0, "same.png": None}
    assert list(lost)[:2] == ["lost.png", "gained.png"]


def test_semantic_scores_are_those_of_uncanny_semantic(tmp_path: Path) -> None:
    a, b = known_runs()
    files = {name: written(tmp_path / f"{name}.jsonl", rows[:4]) for name, rows in (("a", a), ("b", b))}
    truth = written(tmp_path / "truth.jsonl", TRUTH)
    compared = uncanny.compare(files, truth=truth, resamples=0).to_json()["truth"]
    scores = uncanny.semantic.score(files, truth=truth, similarity="chrf", resamples=0)
    for name in files:
        for protocol in ("release", "paper"):
            score = scores[name].protocols[protocol]
            assert compared["semap"][protocol][name] == pytest.approx(score.semap["full"].value)
            assert compared["semf1"][protocol][name] == pytest.approx(score.semf1["full"].value)


def test_two_releases_on_the_same_prompts() -> None:
    """Other pictures with other names: paired by prompt, several in order, boxes say nothing."""
    box: dict[str, Any] = {"box": [0, 0, 10, 10], "kind": "count"}
    old = [
        record("v1/x0.png", [anomaly("p", **box)], sha256="0" * 64, prompt_id="p1"),
        record("v1/x1.png", [anomaly("q")], sha256="1" * 64, prompt_id="p1"),
        record("v1/x2.png", sha256="2" * 64, prompt_id="p2"),
    ]
    new = [
        record("v2/y2.png", [anomaly("s")], sha256="3" * 64, prompt_id="p2"),
        record("v2/y0.png", [anomaly("r", **box)], sha256="4" * 64, prompt_id="p1"),
        record("v2/y3.png", sha256="5" * 64, prompt_id="p3"),
    ]
    (comparison,) = uncanny.compare(as_records(old), as_records(new), by="prompt").comparisons
    content = comparison.to_json()
    assert content["pairing"] == {"prompt_id": 2}
    assert content["images"] == {"both": 2, "only_a": 1, "only_b": 1}
    assert content["anomalies"]["in_common"] == 0
    assert {each["prompt"]: each["change"] for each in content["per_image"]} == {
        "p1": "same",
        "p2": "none_to_found",
    }
    assert comparison.names == ("run 1", "run 2")


def test_images_of_a_prompt_are_resampled_together() -> None:
    """Ten images a prompt that are all alike say no more than one: the interval is that of the prompts."""
    names = [f"{place}.png" for place in range(8)]
    found = [[[anomaly(name)] * (place % 2 * side) for place, name in enumerate(names)] for side in (0, 1)]
    few, many = (
        [
            as_records(
                record(f"{copy}/{name}", own, prompt_id=name)
                for name, own in zip(names, side, strict=True)
                for copy in range(copies)
            )
            for side in found
        ]
        for copies in (1, 10)
    )
    intervals = [
        uncanny.compare(*sides, by="prompt").comparisons[0].figures["af"].difference.interval
        for sides in (few, many)
    ]
    assert intervals[0] == intervals[1]


def test_by_stem_where_records_have_no_prompt() -> None:
    old, new = [record("v1/cat.png", sha256="0" * 64)], [record("v2/cat.webp", sha256="1" * 64)]
    (comparison,) = uncanny.compare(as_records(old), as_records(new), by="prompt").comparisons
    assert comparison.pairing == {"stem": 1}
    assert any("file stems" in notice for notice in comparison.notices)


def test_the_same_settings_twice_say_how_repeatable_a_run_is(tmp_path: Path) -> None:
    photos = folder(tmp_path)
    runs = [uncanny.annotate(photos, model="demo", out=tmp_path / name, repeats=1) for name in "ab"]
    (comparison,) = uncanny.compare(*runs).comparisons
    assert comparison.repeatability is not None
    assert comparison.repeatability.found_again.value == 1
    assert comparison.mismatches == ()
    other = uncanny.annotate(photos, model="demo", out=tmp_path / "c", repeats=2)
    (comparison,) = uncanny.compare(runs[0], other).comparisons
    assert comparison.repeatability is None
    assert [mismatch.what for mismatch in comparison.mismatches] == ["setting repeats"]


def folder(tmp_path: Path) -> Path:
    from uncanny.demo.scenes import scenes
    from uncanny.records.run_folder import copy_into

    return copy_into(tmp_path / "photos", [scene.image_path for scene in scenes()[:4]])


def test_what_cannot_be_compared_is_refused(tmp_path: Path) -> None:
    a, b = known_runs()
    ours = as_records(a)
    with pytest.raises(UsageError, match="two runs or more"):
        uncanny.compare(ours)
    with pytest.raises(UsageError, match="no image of"):
        uncanny.compare(ours, as_records([record("other.png", sha256="0" * 64)]))
    with pytest.raises(UsageError, match="does not exist"):
        uncanny.compare(ours, tmp_path / "nothing.jsonl")
    with pytest.raises(UsageError, match="`by` must be 'image' or 'prompt', not 'stem'"):
        uncanny.compare(ours, ours, by="stem")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="`match_threshold` must be more than 0, not 0"):
        uncanny.compare(ours, ours, match_threshold=0)
    with pytest.raises(UsageError, match="`truth` belongs to one set"):
        uncanny.compare(ours, ours, truth="scenes", by="prompt")
    broken = written(tmp_path / "broken.jsonl", [*b, b[0], {"image": "x.png"}])
    with pytest.raises(ItemsError) as caught:
        uncanny.compare(ours, broken)
    assert "the image was there before" in str(caught.value)
    assert "broken.jsonl" in str(caught.value)


def test_nothing_is_called_a_difference_whose_interval_holds_zero() -> None:
    a, b = known_runs()
    headline = uncanny.compare({"old": as_records(a), "new": as_records(b)}).comparisons[0].headline
    assert "14 % fewer" in headline
    assert "may be chance" in headline
    many = [record(f"{place}.png", [anomaly(f"{place}")]) for place in range(40)]
    none = [record(f"{place}.png") for place in range(40)]
    sure = uncanny.compare({"old": as_records(many), "new": as_records(none)}).comparisons[0].headline
    assert sure.startswith("new finds 100 % fewer anomalies than old for the same cost; 0 are in common")


@pytest.mark.parametrize(("images", "differs"), [(1, False), (2, False), (5, False), (8, True)])
def test_what_is_the_same_on_all_images_has_no_interval_and_a_test_decides(
    images: int, differs: bool
) -> None:
    many = [record(f"{place}.png", [anomaly(f"{place}", kind="light")]) for place in range(images)]
    none = [record(f"{place}.png") for place in range(images)]
    truth = as_records(many)
    (comparison,) = uncanny.compare(as_records(many), as_records(none), truth=truth).comparisons
    assert comparison.truth is not None
    for figure in (comparison.figures["af"], comparison.truth.recall, comparison.truth.by_kind["light"][1]):
        assert (figure.difference.value, figure.difference.interval) == (-1.0, None)
        assert figure.differs is differs
        assert figure.p_value == (None if images == 1 else 2.0 ** (1 - images))
    unsure = "no test tells if by chance" if images == 1 else "which may be chance"
    assert (unsure in comparison.headline) is not differs
    proof = "share of images with any 1.000 → 0.000 (p = 0.031)"
    assert (proof in comparison.headline) is differs
    assert comparison.to_json()["figures"]["af"].get("p_value") == comparison.figures["af"].p_value


def test_one_image_of_a_kind_is_no_difference() -> None:
    """However many others there are: they say nothing of it."""
    many = [record(f"{place}.png", [anomaly(f"{place}")]) for place in range(20)]
    ours, theirs = [*many[:-1], record("19.png")], many
    truth = [*many[:-1], record("19.png", [anomaly("19", kind="light")])]
    (comparison,) = uncanny.compare(as_records(ours), as_records(theirs), truth=as_records(truth)).comparisons
    assert comparison.truth is not None
    _, light = comparison.truth.by_kind["light"]
    assert (light.a, light.b, light.difference.interval, light.differs) == (0.0, 1.0, None, False)


def test_rows_are_the_same_figures() -> None:
    a, b = known_runs()
    result = uncanny.compare({"a": as_records(a), "b": as_records(b)}, truth=as_records(TRUTH))
    frame = result.to_pandas()
    (recall,) = frame[(frame.group == "truth") & (frame.name == "recall")].to_dict("records")
    assert (recall["a"], recall["b"]) == (0.5, 0.5)
    lines = result.to_csv().splitlines()
    assert lines[0] == "run_a,run_b,group,name,a,b,difference,low,high"
    assert len(lines) == len(frame) + 1
    assert "recall of anatomy" in str(result)


def test_bands_and_changes() -> None:
    assert [band(severity) for severity in (0, 19, 20, 79, 80, 100)] == [
        "0-19",
        "0-19",
        "20-39",
        "60-79",
        "80-100",
        "80-100",
    ]
    changes = [change_of(*counts) for counts in ((1, 0), (0, 1), (2, 1), (1, 2), (0, 0))]
    assert changes == ["found_to_none", "none_to_found", "fewer", "more", "same"]


class FirstWord:
    """A measure with two sides: half for a text that begins as the true one does, whole for an equal one."""

    described: dict[str, Any] = {"measure": "first word"}  # noqa: RUF012
    compares_with_published = False

    def matrices(self, texts: Iterable[TextPairs]) -> Iterator[Matrix]:
        for pairs in texts:
            cells = [[self._cell(a, b) for b in pairs.true] for a in pairs.predicted]
            yield np.array(cells, np.float64).reshape(len(pairs.predicted), len(pairs.true))

    def _cell(self, predicted: str, true: str) -> float:
        return 1.0 if predicted == true else 0.6 if len(predicted) > len(true) else 0.0


def test_a_similarity_of_ones_own_counts_in_both_directions() -> None:
    """0.6 one way and 0 the other are 0.3."""
    long, short = (
        [record("x.png", [{"name": "x", "phenomenon": text, "reasoning": text, "severity": 1}])]
        for text in ("six fingers", "six")
    )
    for sides in ((long, short), (short, long)):
        runs = [as_records(side) for side in sides]
        close, far = (
            uncanny.compare(*runs, match_by=FirstWord(), match_threshold=threshold, resamples=0).comparisons[
                0
            ]
            for threshold in (0.3, 0.31)
        )
        assert (close.in_common, far.in_common) == (1, 0)
    default = uncanny.compare(*runs, match_by=FirstWord(), resamples=0).settings
    assert default.match.similarity == 0.7


@pytest.fixture
def _embeddings_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("UNCANNY_EMBEDDINGS_DIR", str(tmp_path / "embeddings"))
    settings.cache_clear()
    yield
    settings.cache_clear()


@pytest.mark.slow
@pytest.mark.usefixtures("_embeddings_here")
def test_bertscore_is_that_of_the_semantic_score(tmp_path: Path) -> None:
    """Only that it is reached, with its options: the measure itself has tests of its own."""
    from tests.eval.semantic.made_backbones import make

    folder = make(tmp_path / "model", "distilbert")
    a, b = known_runs()
    compared = uncanny.compare(
        as_records(a), as_records(b), match_by="bertscore", backbone=str(folder), num_layers=1, resamples=0
    )
    assert compared.settings.similarity["measure"] == "bertscore"
    assert compared.settings.match.similarity == 0.8
    # Equal texts are equal under any measure.
    assert compared.comparisons[0].in_common >= 4


@pytest.mark.parametrize("seed", range(6))
def test_counts_of_any_two_runs_fit_together(seed: int) -> None:
    rng = Random(seed)
    boxes = (None, [0, 0, 10, 10], [2, 2, 11, 12])
    kinds = ("anatomy", "light", None)
    pool = [
        anomaly(str(n), severity=rng.randrange(101), kind=rng.choice(kinds), box=rng.choice(boxes))
        for n in range(12)
    ]

    def made() -> list[Annotation]:
        return as_records(
            record(
                f"{n}.png", rng.sample(pool, rng.randint(0, 5)), status=rng.choice(["ok"] * 6 + ["failed"])
            )
            for n in range(10)
        )

    a, b = made(), made()
    (forth,) = uncanny.compare({"a": a, "b": b}, resamples=0).comparisons
    (back,) = uncanny.compare({"a": b, "b": a}, resamples=0).comparisons
    assert (forth.in_common, forth.only_a, forth.only_b) == (back.in_common, back.only_b, back.only_a)
    assert sum(forth.images_changed.values()) == len(forth.images)
    for groups in (forth.by_kind, forth.by_severity):
        assert sum(group.a for group in groups.values()) == forth.in_common + forth.only_a
        assert sum(group.only_b for group in groups.values()) == forth.only_b
    assert sum(forth.match_rules.values()) == forth.in_common


def test_a_gate_does_not_pass_kinds_that_no_run_names() -> None:
    """Of two releases whose model named no kind nothing is known of kinds; the other figures are judged."""

    def release(kind: str | None) -> list[Annotation]:
        return as_records(record(f"{n}.png", [anomaly(f"fault {n}", kind=kind)]) for n in range(12))

    silent = uncanny.compare({"v1": release(None), "v2": release(None)}, by="prompt", resamples=100)
    gate = silent.gate(["af:worse", "kind:text:worse", "worse"])
    assert [outcome.state for outcome in gate.outcomes] == ["clear", "unmeasured", "unmeasured"]
    named = uncanny.compare({"v1": release("light"), "v2": release("light")}, by="prompt", resamples=100)
    assert named.gate(["worse", "kind:text:worse"]).passed


def test_a_gate_knows_how_sure_shares_of_none_and_all_are() -> None:
    """A release without anomalies has a share of 0, which thirty images bound from above."""
    faulty = as_records(record(f"{n}.png", [anomaly(f"fault {n}")]) for n in range(30))
    flawless = as_records(record(f"{n}.png") for n in range(30))
    released = uncanny.compare({"v1": faulty, "v2": flawless}, by="prompt", resamples=200)
    _, high = wilson_interval(0, 30) or (0.0, 1.0)
    texts = ["upper:images_with_anomaly>0.2", "upper:images_with_anomaly>0.1"]
    assert 0.1 < high < 0.2
    assert [each.state for each in released.gate(texts).outcomes] == ["clear", "holds"]

    truth = [*faulty[:15], *flawless[15:]]
    judged = uncanny.compare({"none": flawless, "all": truth}, truth=truth, resamples=200)
    low, clean = wilson_interval(15, 15), wilson_interval(0, 15)
    assert low is not None
    assert clean is not None
    texts = [
        f"lower:recall<{low[0] - 0.01:.3f}",
        f"lower:recall<{low[0] + 0.01:.3f}",
        f"upper:false_alarms>{clean[1] + 0.01:.3f}",
        f"upper:false_alarms>{clean[1] - 0.01:.3f}",
        f"lower:detection<{low[0] + 0.05:.3f}",
        "lower:precision<0.7",
    ]
    states = [each.state for each in judged.gate(texts).outcomes]
    assert states == ["clear", "holds", "clear", "holds", "clear", "clear"]
    # What has no upper bound has no interval where all is alike.
    assert released.gate(["upper:af>1"]).outcomes[0].state == "unmeasured"


def test_other_images_of_the_same_names_are_told_apart_from_other_names() -> None:
    def release(name: str, digest: str) -> list[Annotation]:
        return as_records([record(name, sha256=digest * 64)])

    with pytest.raises(UsageError, match=r"'v1/1\.png' here, 'v2/1\.png' there, with other bytes") as caught:
        uncanny.compare({"v1": release("v1/1.png", "a"), "v2": release("v2/1.png", "b")})
    assert "by='prompt'" in str(caught.value)
    assert "Name images alike" not in str(caught.value)
    with pytest.raises(UsageError, match="Name images alike"):
        uncanny.compare({"v1": release("v1/1.png", "a"), "v2": release("v2/2.png", "b")})
