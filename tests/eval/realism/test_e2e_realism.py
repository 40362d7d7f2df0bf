"""`realism run` with the demo model and over a server: the same verdicts whatever the protocol."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.eval.mcq.recording import RecordingServer, recording
from tests.eval.realism.realism_run import RealismRun, small_pairs
from tests.runs.e2e import VLLM, check_no_traceback, serving, uncanny_here
from uncanny.prompts import prompt_set

PROVIDERS = ("openai", pytest.param("anthropic", marks=pytest.mark.slow), VLLM)
# Ten first checks, seven pairs with two more; one question never gets a verdict and is asked three times.
QUESTIONS, CALLS = 32, 34


@pytest.fixture
def run(tmp_path: Path) -> RealismRun:
    return RealismRun(tmp_path / "run")


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> RealismRun:
    run = RealismRun(tmp_path_factory.mktemp("demo") / "run")
    done = uncanny_here("realism", "run", "scenes", "--model", "demo", "-o", run.path)
    assert (done.code, done.told) == (0, "")
    assert "Pairs    16: 15 ok, 1 undetermined" in done.out
    assert "4 deceiving, 3 intermediate, 8 non_deceiving, 1 undetermined" in done.out
    assert "r05 undetermined, edited_first: no line starts with `Verdict:`" in done.out
    return run


@pytest.fixture(scope="module", params=PROVIDERS)
def hosted(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[str, RealismRun, RecordingServer]]:
    """A finished run over each protocol, and the server it asked."""
    run = RealismRun(tmp_path_factory.mktemp("hosted") / "run")
    with recording() as server:
        asked = server.asked(request.param, "demo")
        done = uncanny_here("realism", "run", "scenes", *asked, "-o", run.path, "--quiet")
        assert (done.code, done.out, done.err) == (0, "", "")
        yield request.param, run, server


Hosted = tuple[str, RealismRun, RecordingServer]


def test_the_same_verdicts_as_in_process(hosted: Hosted, demo: RealismRun) -> None:
    _, run, _ = hosted
    assert run.answers() == demo.answers()


def test_calls_are_counted_and_none_is_made_after_an_early_exit(hosted: Hosted) -> None:
    provider, run, server = hosted
    verdicts = run.verdicts().values()
    assert server.requests() == len(run.calls()) == CALLS, provider
    assert sum(len(verdict.raw) for verdict in verdicts) == QUESTIONS
    assert sum(verdict.usage.calls for verdict in verdicts if verdict.usage) == CALLS
    assert run.manifest()["totals"]["calls"] == CALLS


def test_every_question_is_sent_as_it_should_be(hosted: Hosted) -> None:
    provider, run, server = hosted
    texts = prompt_set("realism")
    kinds: Counter[tuple[str, ...]] = Counter()
    for sent in server.sent():
        assert sent.system == texts["system"].template.template
        if sent.roles == ("user",):
            name = "first_check" if len(sent.pictures) == 1 else "second_check"
            assert sent.text == texts[name].fill()
            kinds[sent.kinds] += 1
        else:
            assert sent.roles == ("user", "assistant", "user")
    assert kinds == {("image", "text"): 16, ("image", "image", "text"): 16}
    (parameters,) = run.manifest()["parameters"].values()
    assert 2_048 in parameters.values()
    wanted = (None, None) if provider == "anthropic" else (0.1, 1.0)
    assert (parameters.get("temperature"), parameters.get("top_p")) == wanted


def test_the_second_check_begins_like_the_first(hosted: Hosted) -> None:
    _, run, server = hosted
    alone = [sent.pictures[0] for sent in server.sent() if len(sent.pictures) == 1]
    second = [sent.pictures for sent in server.sent() if len(sent.pictures) == 2 and len(sent.roles) == 1]
    assert sum(first in alone for first, _ in second) == 8
    assert {frozenset(images) for images in second} == {frozenset(turned[::-1]) for turned in second}
    assert all(verdict.model for verdict in run.verdicts().values())


def test_a_run_on_the_scenes_can_be_moved(demo: RealismRun, tmp_path: Path) -> None:
    moved = demo.path.rename(tmp_path / "moved")
    try:
        done = uncanny_here("realism", "run", "scenes", "--model", "demo", "-o", moved, "--json")
        assert (done.code, done.json()["totals"]["replayed"]) == (0, 0)
        for verdict in RealismRun(moved).verdicts().values():
            assert verdict.original is not None
            assert (moved / verdict.original.image).is_file()
    finally:
        moved.rename(demo.path)


@pytest.mark.slow
@pytest.mark.parametrize("provider", ["openai", "anthropic"])
def test_faults_cost_time_and_not_a_single_verdict(provider: str, tmp_path: Path, run: RealismRun) -> None:
    pairs = small_pairs(tmp_path / "in", 12)
    with serving() as server:
        calm = RealismRun(tmp_path / "calm")
        asked = server.asked(provider, "demo")
        done = uncanny_here("realism", "run", pairs, *asked, "-o", calm.path, "-q")
        assert (done.code, done.err) == (0, "")
    assert {verdict.label for verdict in calm.verdicts().values()} > {"deceiving"}
    faults = {"429": 0.1, "500": 0.05, "529": 0.05, "cut": 0.05, "malformed": 0.1, "length": 0.05}
    with serving(faults=faults, seed=5) as server:
        asked = server.asked(provider, "demo")
        done = uncanny_here("realism", "run", pairs, *asked, "-o", run.path, "-q")
        assert sum(server.stats()["faults"].values()) > 5
    check_no_traceback(done)
    assert done.code == 0, done.err
    same, other = calm.verdicts(), run.verdicts()
    for name, verdict in other.items():
        if verdict.label != "undetermined":
            assert (verdict.label, verdict.case) == (same[name].label, same[name].case)
    assert sum(verdict.label == "undetermined" for verdict in other.values()) <= 1


def test_refusals_and_empty_answers_leave_pairs_undetermined(tmp_path: Path) -> None:
    pairs = small_pairs(tmp_path / "in", 3)
    for fault, outcome, asked in (("refusal", "refused", 1), ("malformed", "undetermined", 3)):
        run = RealismRun(tmp_path / fault)
        with serving(faults={fault: 1.0}) as server:
            command = ("realism", "run", pairs, *server.asked(), "-o", run.path)
            done = uncanny_here(*command)
            assert server.requests() == 3 * asked
            assert (done.code, done.told) == (0, "")
            assert f"3 {outcome}" in done.out
            # What a model would not say is not asked for again and again.
            assert uncanny_here(*command, "-q").code == 0
            assert server.requests() == 3 * asked
        for verdict in run.verdicts().values():
            assert (verdict.outcome, verdict.label, verdict.first) == (outcome, "undetermined", None)


def test_failed_calls_are_records_and_asked_again_by_the_same_command(
    tmp_path: Path, run: RealismRun
) -> None:
    pairs = small_pairs(tmp_path / "in", 8)
    command = ("realism", "run", pairs, "-o", run.path)
    broken = True
    with recording(fail=lambda sent: broken and len(sent.pictures) == 2) as server:
        done = uncanny_here(*command, *server.asked(), "--json")
        failed = {name for name, verdict in run.verdicts().items() if verdict.outcome == "failed"}
        assert failed
        assert (done.code, {failure["id"] for failure in done.json()["failures"]}) == (1, failed)
        for name, verdict in run.verdicts().items():
            assert (verdict.first == "yes") == (name in failed)
            assert all("too odd" in error.message for error in verdict.errors)
        first = len(server.bodies)
        assert first == 8 + 2 * len(failed)
        broken = False
        kept = uncanny_here(*command, *server.asked(), "--keep-failed", "-q")
        assert (kept.code, len(server.bodies)) == (1, first)
        again = uncanny_here(*command, *server.asked(), "-q")
        assert (again.code, again.err) == (0, "")
        assert len(server.bodies) == first + 2 * len(failed)
    assert {verdict.outcome for verdict in run.verdicts().values()} == {"judged"}
