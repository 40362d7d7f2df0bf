"""The confidence of merged findings: what verdicts teach of each run, and what holds whatever they are."""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

import uncanny
from tests.eval.compare.made_runs import anomaly, as_records, record
from tests.eval.merge.made_reviews import reviewed, run_folder
from tests.eval.merge.test_merge import by_text
from uncanny.errors import UsageError
from uncanny.eval.merge.confidence import Case, can_learn, learned
from uncanny.eval.merge.findings import Edge, clusters


def worthless_c(folder: Path, judged: int) -> dict[str, Path]:
    """A and B have the same fault of each image, C only has others; `judged` images of each are reviewed."""
    images = [f"{number}.png" for number in range(20)]
    good = {image: [anomaly(f"true{image}")] for image in images}
    runs = {
        "a": run_folder(folder / "a", good),
        "b": run_folder(folder / "b", good),
        "c": run_folder(folder / "c", {image: [anomaly(f"false{image}")] for image in images}),
    }
    reviewed(runs["a"], [(image, 0, "accept") for image in images[:judged]])
    reviewed(runs["c"], [(image, 0, "reject") for image in images[:judged]])
    return runs


@pytest.mark.parametrize("judged", [1, 5])
def test_verdicts_make_a_run_worthless(tmp_path: Path, judged: int) -> None:
    pytest.importorskip("crowdkit")
    result = uncanny.merge(worthless_c(tmp_path, judged), out=tmp_path / "all")
    found = by_text(tmp_path / "all")
    assert result.basis == "verdicts"
    assert result.judged == 2 * judged
    assert min(each["confidence"] for name, each in found.items() if name.startswith("true")) > 0.9
    assert max(each["confidence"] for name, each in found.items() if name.startswith("false")) < 0.1
    assert found["true0.png"]["verdict"] == "accept"
    assert found["false0.png"]["confidence"] == 0
    recalls = {name: row.recall or 0 for name, row in result.runs.items()}
    assert recalls["a"] > 0.9 > 0.1 > recalls["c"]
    assert result.runs["c"].accepted.value == 0
    assert any("are few, below 30" in notice for notice in result.notices)
    assert "recall" in str(result)


def test_lone_findings_of_a_good_run_are_believed(tmp_path: Path) -> None:
    """Of two runs, A is right alone and C is wrong alone; the share of votes would say 0.5 of both."""
    pytest.importorskip("crowdkit")
    images = [f"{number}.png" for number in range(30)]
    a = run_folder(tmp_path / "a", {image: [anomaly(f"true{image}")] for image in images})
    c = run_folder(tmp_path / "c", {image: [anomaly(f"false{image}")] for image in images})
    reviewed(a, [(image, 0, "accept") for image in images[:5]])
    reviewed(c, [(image, 0, "reject") for image in images[:5]])
    uncanny.merge({"a": a, "c": c}, out=tmp_path / "all")
    found = by_text(tmp_path / "all")
    assert found["true29.png"]["confidence"] > 0.8
    assert found["false29.png"]["confidence"] < 0.2


def test_one_sort_of_verdicts_teaches_nothing(tmp_path: Path) -> None:
    a = reviewed(run_folder(tmp_path / "a", {"1.png": [anomaly("hand")]}), [("1.png", 0, "accept")])
    result = uncanny.merge({"a": a, "b": as_records([record("1.png")])}, out=tmp_path / "all")
    assert result.basis == "votes"
    assert by_text(tmp_path / "all")["hand"]["confidence"] == 0.5
    assert "All findings that people judged are accepted" in result.notices[-1]
    assert result.runs["a"].accepted.value == 1


def test_without_the_extra_the_error_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "crowdkit.aggregation", None)
    runs = worthless_c(tmp_path, 1)
    with pytest.raises(UsageError, match=r"needs crowdkit.*\[merge\]"):
        uncanny.merge(runs, out=tmp_path / "all")
    assert not (tmp_path / "all").exists()


@pytest.mark.parametrize("recalls", [(0.8, 0.6), (0.8, 0.6, 0.5)])
def test_learned_confidences_are_about_right(recalls: tuple[float, ...]) -> None:
    """Runs with a known recall and rate of inventions, never the same; every tenth image is judged."""
    pytest.importorskip("crowdkit")
    drawn = random.Random(1)
    rates = dict(zip("abc", recalls, strict=False))
    inventions = {"a": 0.15, "b": 0.4, "c": 0.9}
    cases: list[Case] = []
    truths: list[bool] = []
    for image in range(300):
        claims = [(True, {name: drawn.random() < rate for name, rate in rates.items()})]
        claims += [
            (False, {each: each == name for each in rates})
            for name in rates
            if drawn.random() < inventions[name]
        ]
        for truth, votes in claims:
            if any(votes.values()):
                cases.append(Case(image, votes, truth if image < 30 else None))
                truths.append(truth)
    fitted = learned(cases, dict.fromkeys(range(300), tuple(rates)))
    error = 0.0
    for pattern in {tuple(case.votes.values()) for case in cases}:
        like = [n for n, case in enumerate(cases) if tuple(case.votes.values()) == pattern]
        said = sum(fitted.confidences[n] for n in like) / len(like)
        really = sum(truths[n] for n in like) / len(like)
        error += abs(said - really) * len(like) / len(cases)
        if sum(pattern) > 1:
            assert said > 0.5
    assert error < 0.12
    assert all(abs(fitted.recalls[name] - rate) < 0.25 for name, rate in rates.items())


RUNS = st.dictionaries(
    st.sampled_from("abcd"),
    st.lists(
        st.lists(st.sampled_from(["hand", "cup", "sign", "rope"]), unique=True, max_size=3),
        min_size=3,
        max_size=3,
    ),
    min_size=2,
)


@given(RUNS, st.randoms(use_true_random=False))
def test_the_order_of_runs_and_findings_does_not_matter(
    runs: dict[str, list[list[str]]], drawn: random.Random
) -> None:
    def found(order: list[str]) -> list[list[tuple[str, float, tuple[str, ...]]]]:
        sources = {
            name: as_records(
                record(f"{place}.png", [anomaly(each) for each in drawn.sample(own, len(own))])
                for place, own in enumerate(runs[name])
            )
            for name in order
        }
        with TemporaryDirectory() as folder:
            uncanny.merge(sources, out=Path(folder, "all"))
            return by_image(Path(folder, "all"))

    assert found(list(runs)) == found(list(runs)[::-1])


def test_the_order_of_runs_changes_no_byte(tmp_path: Path) -> None:
    pytest.importorskip("crowdkit")
    runs = worthless_c(tmp_path, 2)
    uncanny.merge(runs, out=tmp_path / "one")
    uncanny.merge(dict(reversed(runs.items())), out=tmp_path / "two")
    one, two = (tmp_path.joinpath(name, "annotations.jsonl").read_bytes() for name in ("one", "two"))
    assert one == two


def by_image(out: Path) -> list[list[tuple[str, float, tuple[str, ...]]]]:
    records = [json.loads(line) for line in out.joinpath("annotations.jsonl").read_text().splitlines()]
    return [
        sorted((each["name"], each["confidence"], tuple(each["voters"])) for each in line["anomalies"])
        for line in records
    ]


@given(st.integers(2, 5))
def test_a_unanimous_finding_is_kept_as_one(number: int) -> None:
    with TemporaryDirectory() as folder:
        runs = {f"run {n}": as_records([record("1.png", [anomaly("hand")])]) for n in range(number)}
        result = uncanny.merge(runs, out=Path(folder, "all"))
        (only,) = by_text(Path(folder, "all")).values()
        assert only["confidence"] == 1
        assert only["voters"] == sorted(runs)
        assert only["missed_by"] == []
        assert result.merged.agreement.value == 1


NODES = st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 2)), unique=True, min_size=1)


@given(NODES, st.data())
def test_no_cluster_has_two_findings_of_a_run(nodes: list[tuple[str, int]], data: st.DataObject) -> None:
    pairs = [(a, b) for a in nodes for b in nodes if a[0] < b[0]]
    chosen = data.draw(st.lists(st.sampled_from(pairs), unique=True)) if pairs else []
    edges = [Edge(data.draw(st.floats(0, 1)), a, b) for a, b in chosen]
    made = clusters(nodes, edges)
    assert sorted(node for each in made for node in each) == sorted(nodes)
    assert all(len({name for name, _ in each}) == len(each) for each in made)
    shuffled = data.draw(st.permutations(edges))
    assert {frozenset(each) for each in clusters(nodes, shuffled)} == {frozenset(each) for each in made}


def test_learning_needs_both_verdicts() -> None:
    votes = {"a": True, "b": False}
    assert not can_learn([])
    assert not can_learn([Case(0, votes, True), Case(1, votes)])
    assert can_learn([Case(0, votes, True), Case(1, votes, False)])
