"""A review of a sample whose server is killed again and again while the sample grows: no verdict is lost."""

from __future__ import annotations

import random
import subprocess
import sys
import threading
from pathlib import Path

import httpx2
import pytest

import uncanny
from tests.service.made_review import anomaly, log_of, make_run
from tests.service.review.test_sample import mark, place_of
from uncanny.records.reviews import ReviewLog
from uncanny.records.sample import read_sample


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_no_kept_verdict_is_lost_by_kills_and_larger_samples(tmp_path: Path) -> None:
    images = [[anomaly(f"finding {place}") for place in range(number % 3)] for number in range(60)]
    run = make_run(tmp_path / "run", images, size=(8, 8))
    uncanny.sample(run, size=10)
    chance, kept = random.Random(4), 0
    for size in (10, 20, 20, 40, 40, 60, 60):
        uncanny.sample(run, size=size)
        kept += judge_until_killed(run, after=chance.uniform(0.05, 0.8))
        # Others may have been written whose answer the kill cut off, never fewer.
        assert len(log_of(run)) >= kept
    kept += judge_until_killed(run, after=None)
    reviews = ReviewLog.of_run(run).by_image()
    sample = read_sample(run)
    assert sample is not None
    assert {each.image for each in sample.images} == reviews.keys()
    judged = uncanny.trust(run).judged
    assert (judged.design.n, judged.open_images, judged.gone) == (60, 0, ())
    assert judged.design.probabilities.tolist() == [1.0] * 60
    assert (judged.people == judged.model).all()


def judge_until_killed(run: Path, after: float | None) -> int:
    """Accept and complete everything until the server is killed, or all is judged; how many answers came."""
    command = [sys.executable, "-m", "uncanny", "review", str(run), "--sample", "--reviewer", "ann"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        address = process.stdout.readline().split()[-1]
        killer = threading.Timer(after or 250, process.kill)
        killer.start()
        answers = 0
        try:
            with httpx2.Client(base_url=address, headers={"Origin": address}) as client:
                page = client.get("/?sample=yes").text
                while finding := place_of(page):
                    body = {"finding": finding, "sample": "yes"}
                    if finding.endswith("-end"):
                        answer = client.post("/complete", json=body | {"state": mark(page, "state")})
                    else:
                        body |= {"text": mark(page, "text"), "decision": "accept"}
                        answer = client.post("/verdict", json=body)
                    assert answer.status_code == 200, answer.text
                    answers += 1
                    page = answer.text
                    if answers > 1_000:
                        pytest.fail(page[:2_000])
        except httpx2.TransportError:
            pass  # killed
        finally:
            killer.cancel()
            process.kill()
    return answers
