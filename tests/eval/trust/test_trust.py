"""From judged images to figures of all: the truth is in the interval where the model alone is wrong."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import orjson
import pytest

import uncanny
from tests.eval.trust.judged_runs import biased, fault, image_of, judge, true_figures, write
from tests.images.test_damaged_images import not_as_root
from tests.runs.e2e import uncanny_here
from uncanny.errors import UsageError
from uncanny.eval.trust.data import judged_findings, read_judged
from uncanny.eval.trust.score import TrustResult
from uncanny.records.reviews import ReviewLog, completion, new_review
from uncanny.records.sample import Design, read_sample


@pytest.mark.parametrize("design", ["random", "active"])
def test_corrected_figures_hold_the_truth_where_the_model_alone_does_not(tmp_path: Path, design: Any) -> None:
    records, truth = biased(2_000, seed=3)
    run = write(tmp_path / "run", [*records.values()])
    uncanny.sample(run, size=150, design=design)
    judge(run, records, truth)
    result = uncanny.trust(run)
    true = true_figures(truth)
    widths = {}
    for name, each in result.figures.items():
        figure = each.corrected
        assert figure.low is not None
        assert figure.high is not None
        assert figure.low <= true[name] <= figure.high, name
        widths[name] = figure.high - figure.low
    # The model makes up more than it misses: what it says of itself is outside.
    visible = result.figures["visible"].corrected
    assert visible.model_only is not None
    assert visible.high is not None
    assert visible.model_only > visible.high
    assert (visible.n, visible.frame) == (150, 2_000)
    # More judged images narrow all of them.
    uncanny.sample(run, size=300)
    judge(run, records, truth)
    for name, each in uncanny.trust(run).figures.items():
        assert each.corrected.n == 300
        assert (each.corrected.high or 0) - (each.corrected.low or 0) < widths[name]


def test_findings_are_told_by_kind_agent_and_confidence_and_what_was_missed(tmp_path: Path) -> None:
    sure = fault("six fingers", 5, 0.95, kind="anatomy", found_by=["SceneScanner"])
    unsure = fault("no shadow", 60, 0.62, kind="light", found_by=["RelationReasoner", "SceneScanner"])
    hidden = fault("blur", 30, 0.2, kind="text", found_by=["SceneScanner"])
    missing = fault("two moons", 15, None, kind="count")
    records = {f"{n}.png": image_of(f"{n}.png", [sure, unsure, hidden], n) for n in range(4)}
    truth = {name: [sure, missing] for name in records}
    truth["3.png"] = [hidden]
    run = write(tmp_path / "run", [*records.values()])
    uncanny.sample(run, size=4)
    judge(run, records, truth)
    result = uncanny.trust(run)
    assert (result.precision.counts, result.precision.out_of) == (3, 8)
    told = {name: (each.counts, each.out_of) for name, each in {**result.by_kind, **result.by_agent}.items()}
    assert told == {
        **{"anatomy": (3, 4), "light": (0, 4)},
        **{"RelationReasoner": (0, 4), "SceneScanner": (3, 8)},
    }
    # What the model was not sure enough of, it has not found.
    assert (result.missed.counts, result.missed.out_of) == (4, 7)
    filled = [(each.low, each.right.counts, each.right.out_of) for each in result.bins if each.mean]
    assert filled == [(0.6, 0, 4), (0.9, 3, 4)]
    assert result.calibration_error == pytest.approx((0.62 + 0.2) / 2)
    # Everybody is told what the few judged images do not tell.
    visible = result.figures["visible"].corrected
    assert (visible.value, visible.low, result.judged.design.missing) == (1.0, None, 26)
    assert next(iter(result.next_steps())).startswith("The run has only 4 images: with fewer than 30")
    assert orjson.loads(orjson.dumps(result.to_json()))["corrected"]["visible"]["low"] is None
    assert {name: each.corrected.value for name, each in result.kinds.items()} == {
        **{"anatomy": 0.75, "count": 0.75},
        **{"light": 0.0, "text": 0.25},
    }
    assert uncanny.trust(run, min_confidence=0).missed.counts == 3


def test_what_people_are_unsure_of_is_a_range(tmp_path: Path) -> None:
    records = {f"{n}.png": image_of(f"{n}.png", [fault("odd")], n) for n in range(4)}
    run = write(tmp_path / "run", [*records.values()])
    uncanny.sample(run, size=4)
    log = ReviewLog.of_run(run)
    for n, record in enumerate(records.values()):
        decision = "unsure" if n < 2 else "accept"
        log.append([new_review(record, 0, record.anomalies[0], "ann", decision), completion(record, "ann")])  # type: ignore[arg-type]
    figure = uncanny.trust(run).figures["visible"]
    assert (figure.corrected.value, figure.if_unsure_accepted) == (0.5, 1.0)


def test_images_that_are_open_replaced_or_gone_are_counted_and_in_no_figure(tmp_path: Path) -> None:
    records, truth = biased(60, seed=5)
    run = write(tmp_path / "run", [*records.values()])
    uncanny.sample(run, size=40)
    judge(run, records, truth)
    sample = read_sample(run)
    assert sample is not None
    replaced, deleted, reannotated = (each.image for each in sample.images[:3])
    now = dict(records)
    now[replaced] = now[replaced].model_copy(update={"sha256": "f" * 64})
    now[reannotated] = now[reannotated].model_copy(update={"anomalies": (fault("another text"),)})
    del now[deleted]
    write(run, [*now.values()])
    result = uncanny.trust(run)
    assert sorted(result.judged.gone) == sorted([replaced, deleted])
    assert (result.judged.open_images, result.judged.design.n, result.judged.design.size) == (1, 37, 59)
    # One of the first, which somebody may have found too hard.
    assert result.judged.skipped == 1
    assert "1 image of the sample was passed over" in str(result)
    assert "1 image of the sample was passed over" in result.report(tmp_path / "trust.html").read_text()
    notices = uncanny.audit({"a": run}, resamples=0).leaderboard.notices
    assert any("a: 1 image of the sample was passed over" in each for each in notices)
    assert max(result.judged.design.probabilities) <= 1
    # What was said of the former findings, and that nothing else is there, is not used, and is counted.
    stale = len(records[reannotated].anomalies) + 1
    assert (result.judged.stale, result.to_json()["stale_verdicts"]) == (stale, stale)
    assert "about an earlier annotation, or another picture" in " ".join(str(result).split())
    assert any("about an earlier annotation" in each for each in notices)


def test_an_image_under_two_names_is_one_image_of_a_calibration(tmp_path: Path) -> None:
    records = {f"{n}.png": image_of(f"{n}.png", [fault("one")], n // 2) for n in range(6)}
    run = write(tmp_path / "run", [*records.values()])
    uncanny.sample(run, size=6)
    judge(run, records, {name: [fault("one")] for name in records})
    findings = [*judged_findings(read_judged(run, 0.5), 0.5)]
    assert (len(findings), len({each.image for each in findings})) == (6, 3)


@pytest.mark.parametrize("locked", ["annotations.jsonl", "sample.json", "reviews.jsonl", "run.json", ""])
@pytest.mark.parametrize("command", ["trust", "sample", "audit"])
def test_what_may_not_be_read_is_a_mistake_of_the_user(command: str, locked: str) -> None:
    records, _ = biased(3, seed=1)
    # Not in `tmp_path`, whose folders only their owner may enter.
    with TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        run = write(Path(folder) / "run", [*records.values()])
        uncanny.sample(run, size=2)
        for name in ("reviews.jsonl", "run.json"):
            (run / name).write_text("{}" if name == "run.json" else "")
        (run / locked).chmod(0)
        more: dict[str, list[object]] = {
            **{"trust": [run], "sample": [run, "--size", "2"], "audit": [f"a={run}", "--no-report"]}
        }
        with not_as_root():
            done = uncanny_here(command, *more[command])
    if (command, locked) == ("sample", "reviews.jsonl"):  # which it does not read; it cannot write, either
        assert "sample.json cannot be written" in done.err
    else:
        assert "Permission denied" in done.err
    assert (done.code, "Traceback" in done.err) == (2, False)


def test_without_a_sample_or_judged_images_it_says_what_to_do(tmp_path: Path) -> None:
    records, _ = biased(10, seed=1)
    run = write(tmp_path / "run", [*records.values()])
    with pytest.raises(UsageError, match="has no sample of images that people judge"):
        uncanny.trust(run)
    uncanny.sample(run, size=5)
    result = uncanny.trust(run)
    assert result.figures["cap"].corrected.value is None
    assert result.figures["af"].corrected.model_only is not None
    assert (result.precision.value, result.calibration_error, result.missed.value) == (None, None, None)
    assert "5 images of the sample are not judged yet" in str(result)
    with pytest.raises(UsageError, match="is not a run folder"):
        uncanny.trust(tmp_path / "nothing")


def test_the_command_prints_what_the_function_returns(tmp_path: Path) -> None:
    records, truth = biased(200, seed=2)
    run = write(tmp_path / "run", [*records.values()])
    uncanny.sample(run, size=60)
    judge(run, records, truth)
    done = uncanny_here("trust", run)
    assert done.code == 0
    assert "Figures of all 200 images, from 60 judged images" in done.out
    result = uncanny.trust(run)
    assert isinstance(result, TrustResult)
    assert uncanny_here("trust", run, "--json", "-").json() == orjson.loads(orjson.dumps(result.to_json()))
    assert uncanny_here("trust", run, "--csv", "-").out == result.to_csv()
    rows = list(result.rows())
    assert {*rows[0]} <= {*TrustResult.columns}
    assert result.to_csv().splitlines()[0] == ",".join(TrustResult.columns)


def test_a_table_that_nobody_filled_in_completes_nothing(tmp_path: Path) -> None:
    records, _ = biased(40, seed=1)
    run = write(tmp_path / "run", [*records.values()])
    file = tmp_path / "all.csv"
    assert uncanny_here("export", run, "--all", "--to", "csv", "-o", file).code == 0
    done = uncanny_here("import", file, "--run", run, "--reviewer", "ann", "--complete")
    assert done.code == 2
    assert "images of the file have findings without a decision" in " ".join(done.err.split())
    assert not (run / "reviews.jsonl").exists()


def test_a_table_that_people_filled_in_completes_its_images(tmp_path: Path) -> None:
    records = {f"{n}.png": image_of(f"{n}.png", [fault("odd")] if n < 3 else [], n) for n in range(5)}
    run = write(tmp_path / "run", [*records.values()])
    uncanny.sample(run, size=5)
    table = uncanny.export(run, to="csv", out=tmp_path / "table.csv", all=True).files["csv"]
    lines = table.read_text().splitlines()
    column = lines[0].split(",").index("decision")
    judged = [lines[0]]
    for line in lines[1:]:
        cells = line.split(",")
        cells[column] = "accept" if cells[0].endswith("/0.png") else "reject" if "odd" in line else ""
        judged.append(",".join(cells))
    table.write_text("\n".join(judged) + "\n")
    done = uncanny_here("import", table, "--run", run, "--reviewer", "ann", "--complete", "--json").json()
    assert done["completed"] == 5
    # The same file again changes nothing.
    before = (run / "reviews.jsonl").read_bytes()
    assert uncanny.import_reviews(table, run=run, reviewer="ann", complete=True).counts["completed"] == 0
    assert (run / "reviews.jsonl").read_bytes() == before
    result = uncanny.trust(run)
    assert (result.judged.open_images, result.judged.design.n) == (0, 5)
    assert result.figures["visible"].corrected.value == pytest.approx(0.2)
    assert (result.precision.counts, result.precision.out_of) == (1, 3)


@pytest.mark.slow
def test_an_active_sample_says_more_than_a_random_one_of_its_size(tmp_path: Path) -> None:
    """The model misses nothing and is unsure of what it makes up, so that its doubt leads to its mistakes."""
    records, truth = biased(2_000, seed=7, made_up=0.15, found=1.0)
    widths: dict[Design, list[float]] = {"random": [], "active": []}
    for design, found in widths.items():
        for seed in range(15):
            run = write(tmp_path / f"{design}-{seed}", [*records.values()])
            uncanny.sample(run, size=150, design=design, seed=seed)
            judge(run, records, truth)
            visible = uncanny.trust(run).figures["visible"].corrected
            found.append((visible.high or 0) - (visible.low or 0))
    assert 0 < sum(widths["active"]) < 0.9 * sum(widths["random"])
