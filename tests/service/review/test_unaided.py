"""People who annotate from nothing, and how that is compared with what a model found."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from starlette.testclient import TestClient

import uncanny
from tests.runs.e2e import uncanny_here
from tests.service.made_review import anomaly, make_run
from uncanny.errors import UsageError
from uncanny.records.sample import Sample, SampledImage, read_sample, write_sample
from uncanny.schema import Annotation, Anomaly
from uncanny.service.review.findings import ImageEnd
from uncanny.service.review.pages import ReviewSite, review_app
from uncanny.service.review.queue import Filters
from uncanny.service.review.run import ReviewRun
from uncanny.service.review.unaided import start_unaided
from uncanny.service.safety import Guard

SAMPLE = Filters(sample=True)


@pytest.fixture
def agents(tmp_path: Path) -> Path:
    """Three images: two findings, one, none."""
    return make_run(
        tmp_path / "agents", [[anomaly("Cup floats"), anomaly("No shadow")], [anomaly("Six")], []]
    )


def test_people_annotate_and_are_compared_with_agents(agents: Path, tmp_path: Path) -> None:
    folder = tmp_path / "deeper" / "people"
    start_unaided(folder, agents)
    run = ReviewRun.open(folder)
    assert run.progress(Filters("all"), "ann").findings == 0
    first = run.walk(None, "next", SAMPLE, "ann")
    assert isinstance(first, ImageEnd)
    with pytest.raises(UsageError, match="Nobody has looked at the images"):
        uncanny.export(folder, to="jsonl", out=tmp_path / "people.jsonl")
    with TestClient(
        Guard(review_app(ReviewSite(run, reviewer="ann", sample=True))), base_url="http://127.0.0.1:8000"
    ) as client:
        page = client.get("/").text
        assert "Anything wrong?" in page
        assert "The model found nothing" not in page
        assert "Cup floats" not in page
    run.add(first.image, Anomaly.model_validate(anomaly("cup floats") | {"reasoning": "Cannot be."}), "ann")
    run.complete(first, run.image_view(first, SAMPLE, "ann").state, SAMPLE, "ann")
    second = run.walk(first, "next-image", SAMPLE, "ann")
    assert isinstance(second, ImageEnd)
    run.complete(second, run.image_view(second, SAMPLE, "ann").state, SAMPLE, "ann")
    # The third image was not looked at: it is not flawless.
    people = uncanny.export(folder, to="jsonl", out=tmp_path / "people.jsonl")
    assert (people.images, people.anomalies) == (2, 1)
    result = uncanny.compare({"people": tmp_path / "people.jsonl", "agents": agents}, resamples=0)
    (both,) = result.comparisons
    assert (len(both.images), both.in_common, both.only_a, both.only_b) == (2, 1, 0, 2)
    assert (both.figures["af"].a, both.figures["af"].b) == (0.5, 1.5)
    assert both.descriptions["reasoning_words"].a == 2.0
    assert both.descriptions["words"].a == 6.0
    assert both.distinct_names == (1, 3)
    # Beginning again changes nothing.
    before = (folder / "reviews.jsonl").read_bytes()
    start_unaided(folder, agents)
    assert (folder / "reviews.jsonl").read_bytes() == before


def test_the_sample_comes_along(agents: Path, tmp_path: Path) -> None:
    (drawn,) = [each for each in ReviewRun.open(agents)._images if each.name.endswith("001.png")]
    images = (SampledImage(image=drawn.name, probability=0.3),)
    write_sample(agents, Sample(design="random", seed=4, frame=3, size=1, images=images))
    start_unaided(tmp_path / "people", agents)
    sample = read_sample(tmp_path / "people")
    assert sample is not None
    assert [each.image for each in sample.images] == ["../agents/images/001.png"]
    assert (sample.images[0].probability, sample.seed, sample.frame) == (0.3, 4, 3)


def test_a_folder_of_a_model_is_refused(agents: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="already contains annotations of a model"):
        start_unaided(agents, agents)
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="cannot be made"):
        start_unaided(tmp_path / "file" / "run", agents)


def test_it_belongs_to_one_run_and_grows_with_its_sample(agents: Path, tmp_path: Path) -> None:
    people, other = tmp_path / "people", make_run(tmp_path / "other", [[anomaly("Six")]])
    uncanny.sample(agents, size=1)
    start_unaided(people, agents / "annotations.jsonl")
    before = (people / "annotations.jsonl").read_bytes()
    with pytest.raises(UsageError, match=r"people has the images of \S*agents, not of \S*other"):
        start_unaided(people, other)
    with pytest.raises(UsageError, match=r"sample of \S*people is that of \S*agents"):
        uncanny.sample(people, size=2)
    uncanny.sample(agents, size=2)
    start_unaided(people, agents)
    sample = read_sample(people)
    assert sample is not None
    assert sample.size == 2
    # A new draw that leaves out what people may have judged is not taken over.
    (agents / "sample.json").unlink()
    uncanny.sample(agents, size=1, seed=4)
    start_unaided(people, agents)
    assert read_sample(people) == sample
    assert (people / "annotations.jsonl").read_bytes() == before


def test_what_people_found_is_not_nothing(agents: Path, tmp_path: Path) -> None:
    people = tmp_path / "people"
    start_unaided(people, agents)
    both = {"people": people, "agents": agents}
    calls: list[Callable[[], object]] = [
        lambda: uncanny.compare(both),
        lambda: uncanny.compare({**both, "people": people / "annotations.jsonl"}),
        lambda: uncanny.compare({"agents": agents, "again": agents}, truth=people),
        lambda: uncanny.merge(both, out=tmp_path / "merged"),
        lambda: uncanny.audit({"people": people}),
        lambda: uncanny.audit({"agents": agents}, before={"agents": people}),
        lambda: uncanny.semantic.score(people, truth=agents),
        lambda: uncanny.semantic.score(agents, truth=people),
        lambda: uncanny.trust(people),
        lambda: uncanny.report(people),
    ]
    for call in calls:
        with pytest.raises(UsageError, match=r"what people found.*uncanny\.export\("):
            call()
    # Nor in memory, where a model's records are taken.
    lines = {run: (run / "annotations.jsonl").read_bytes().splitlines() for run in (people, agents)}
    found, seen = ([Annotation.model_validate_json(line) for line in lines[run]] for run in (people, agents))
    dicts = [each.model_dump() for each in found]
    calls = [
        lambda: uncanny.compare({"people": found, "agents": seen}),
        lambda: uncanny.merge({"people": found, "agents": seen}, out=tmp_path / "merged"),
        lambda: uncanny.audit({"people": found}),
        lambda: uncanny.semantic.score({"people": found}, truth=seen),
        lambda: uncanny.semantic.score(seen, truth=dicts),
    ]
    for call in calls:
        with pytest.raises(UsageError, match=r"what people found.*uncanny\.export\("):
            call()
    # With what people found put into them, they are records as any.
    fault = Anomaly.model_validate(anomaly("cup floats"))
    whole = [found[0].model_copy(update={"anomalies": (fault,)}), *found[1:]]
    assert uncanny.audit({"people": whole}, resamples=0)["people"].af.value == pytest.approx(1 / 3)
    done = uncanny_here("trust", people)
    assert done.code == 2
    assert f"`uncanny export {people} --to jsonl" in done.err
    # Nobody has looked at the images: not even with all findings are they flawless.
    exported = uncanny.export(people, to="jsonl", out=tmp_path / "people.jsonl", all=True)
    assert (exported.images, exported.images_left_out) == (0, {"unreviewed": 3})
