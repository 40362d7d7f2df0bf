"""`--fail-if` and `--junit` of audit and compare: exit codes, files, and what is refused beforehand."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import orjson
import pytest

from tests.eval.audit.annotation_sets import record, written
from tests.eval.audit.test_audit_releases import release
from tests.runs.e2e import uncanny_here
from uncanny.errors import UsageError
from uncanny.eval.audit.run import audit
from uncanny.eval.compare.score.score import compare


@pytest.fixture
def places(tmp_path: Path) -> tuple[Path, Path]:
    """Now and before: faults of text doubled, those of light went, as many images show any."""
    before = [["text"]] * 10 + [["light"]] * 20 + [[]] * 90
    now = [["text"]] * 24 + [["light"]] * 6 + [[]] * 90
    return release(tmp_path / "now.jsonl", now), release(tmp_path / "old.jsonl", before)


def test_an_audit_fails_where_one_kind_got_worse(places: tuple[Path, Path], tmp_path: Path) -> None:
    now, old = places
    base = ["audit", f"a={now}", "--before", f"a={old}", "--resamples", "200"]
    conditions = ["worse", "visible:worse", "kind:light:worse", "kind:text>0.5", "lower:visible>0.1"]
    fail_if = [part for each in conditions for part in ("--fail-if", each)]
    file = tmp_path / "new" / "folder" / "gate.xml"
    files = ["--junit", str(file), "--json", str(tmp_path / "a.json")]
    done = uncanny_here(*base, *fail_if, *files)
    assert done.code == 4
    assert (tmp_path / "a.json").is_file()
    assert "FAILED: worse: a: images with text faults 8 % → 20 %" in done.err
    assert "Gate: 2 of 5 conditions failed." in done.err
    cases = ElementTree.parse(file).findall("testsuite/testcase")
    assert [case.find("failure") is not None for case in cases] == [True, False, False, False, True]
    # Its own file may be written over; another's may not.
    passing = uncanny_here(*base, "--fail-if", "visible:worse", *files)
    assert (passing.code, "passed: visible:worse" in passing.err) == (0, True)
    file.write_text("<notes/>")
    assert uncanny_here(*base, "--fail-if", "worse", *files).code == 2
    assert file.read_text() == "<notes/>"


def test_what_cannot_be_measured_fails_and_says_why(tmp_path: Path) -> None:
    many = written(tmp_path / "many.jsonl", [record(f"{n}.png", [10]) for n in range(20)])
    few = written(tmp_path / "few.jsonl", [record(f"{n}.png", [10]) for n in range(5)])

    def why(*arguments: str) -> str:
        done = uncanny_here("audit", *arguments)
        assert done.code == 4
        return " ".join(done.err.split())

    assert "no earlier release to compare with" in why(f"a={many}", "--fail-if", "worse")
    assert "too few images" in why(f"a={few}", "--fail-if", "visible<0.1")
    assert "too few images or prompts" in why(f"a={few}", "--before", f"a={few}", "--fail-if", "af:worse")
    unmeasured = why(f"a={many}", "--resamples", "0", "--fail-if", "upper:visible>0.9")
    assert "the upper end of visible is not measured" in unmeasured
    assert "af is not measured" in why(
        f"a={many}", "--before", f"a={many}", "--resamples", "0", "--fail-if", "af:worse"
    )


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--fail-if", "wrose"], "Write worse, FIGURE:worse"),
        (["--junit", "gate.xml"], "Add --fail-if"),
        (["b={0}", "--fail-if", "worse"], "Pass --own NAME"),
    ],
)
def test_mistakes_are_said_beforehand(
    arguments: list[str], words: str, places: tuple[Path, Path], tmp_path: Path
) -> None:
    filled = [each.format(places[1]) for each in arguments]
    done = uncanny_here("audit", f"a={places[0]}", "--json", str(tmp_path / "a.json"), *filled)
    assert (done.code, words in " ".join(done.err.split())) == (2, True)
    assert not (tmp_path / "a.json").exists()


def test_a_comparison_is_judged_by_the_truth_or_between_releases(tmp_path: Path) -> None:
    kinds: dict[str, list[list[str]]] = {
        "now": [["text"]] * 24 + [["light"]] * 6 + [[]] * 90,
        "old": [["text"]] * 10 + [["light"]] * 20 + [[]] * 90,
        "blind": [[]] * 120,
    }
    for folder, each in kinds.items():
        file = release(tmp_path / folder / "run.jsonl", each)
        # The same images, as two models see them.
        records = [orjson.loads(line) for line in file.read_bytes().splitlines()]
        written(file, [{**one, "sha256": f"{number:064x}"} for number, one in enumerate(records, 1)])
    now, old, blind = (str(tmp_path / folder / "run.jsonl") for folder in kinds)
    run = ["compare", f"old={old}", f"new={now}", "--no-report", "--fail-if"]
    by_image = uncanny_here(*run, "worse")
    assert (by_image.code, "neither better nor worse" in " ".join(by_image.err.split())) == (4, True)
    by_prompt = uncanny_here(*run, "worse", "--by", "prompt", "--junit", str(tmp_path / "gate.xml"))
    assert by_prompt.code == 4
    assert "FAILED: worse: new: kind:text 10 → 24 (p" in by_prompt.err
    assert ElementTree.parse(tmp_path / "gate.xml").find("testsuite/testcase/failure") is not None
    assert uncanny_here(*run, "af:worse", "--by", "prompt", "-q").err == ""
    assert uncanny_here(*run, "worse", "--truth", old).code == 0
    missed = uncanny_here("compare", old, f"new={blind}", "--truth", old, "--no-report", "--fail-if", "worse")
    assert missed.code == 4
    assert "recall 1 → 0 (p" in missed.err
    assert uncanny_here(*run, "precision<0.1", "--truth", now).code == 0
    assert "recall is not measured" in uncanny_here(*run, "recall<0.5").err


def test_python_judges_as_the_command_line(places: tuple[Path, Path]) -> None:
    now, old = places
    gate = audit({"a": now}, before={"a": old}, resamples=200).gate(["worse", "visible>0.9"])
    assert [each.state for each in gate.outcomes] == ["holds", "clear"]
    assert not gate.passed
    assert not compare({"old": old, "new": now}, by="prompt").gate(["kind:text:worse"]).passed
    with pytest.raises(UsageError, match="Pass `own"):
        audit({"a": now, "b": old}, resamples=0).gate(["worse"])
