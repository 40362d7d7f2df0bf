"""`mcq run` against a server: what is sent, what is kept, and that both are the same over every protocol."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.bundled_runs import some_items
from tests.eval.mcq.recording import McqRun, RecordingServer, Sent, recording, rewritten
from tests.runs.e2e import VLLM, uncanny_here
from uncanny.eval.mcq.data.items import Item
from uncanny.eval.mcq.data.load import load
from uncanny.eval.mcq.data.overlay import overlay
from uncanny.eval.mcq.data.texts import question_text, system_text

PROVIDERS = ("openai", pytest.param("anthropic", marks=pytest.mark.slow), VLLM)
ITEMS = 8
"""As many items of the bundled set are asked about over each protocol; one of them, a `ref_pg`, has no q1."""
ASKED = 31


@pytest.fixture
def run(tmp_path: Path) -> McqRun:
    return McqRun(tmp_path / "run")


@pytest.fixture(scope="module")
def items_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return some_items(tmp_path_factory.mktemp("set") / "plain", ITEMS + 4)


@pytest.fixture(scope="module")
def drawn(items_file: Path) -> Path:
    """The same set with its overlays stored, for what is not about drawing them."""
    return overlay(items_file, out=items_file.parent.parent / "drawn").file


@pytest.fixture(scope="module", params=PROVIDERS)
def hosted(
    request: pytest.FixtureRequest, items_file: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[str, McqRun, RecordingServer]]:
    """A finished run over each protocol, and the server it asked."""
    run = McqRun(tmp_path_factory.mktemp("hosted") / "run")
    with recording() as server:
        asked = server.asked(request.param, "demo")
        done = uncanny_here("mcq", "run", items_file, *asked, "-o", run.path, "--limit", ITEMS, "--quiet")
        assert (done.code, done.out, done.err) == (0, "", "")
        yield request.param, run, server


Hosted = tuple[str, McqRun, RecordingServer]


def matched(server: RecordingServer, drawn: Path) -> dict[str, Sent]:
    """What was sent, by `item/question`: pictures and texts together tell which question it was."""
    by_content = {
        (picture_for(item, question, drawn), question_text(item, question)): f"{item.id}/{question}"
        for item in load(drawn)
        for question in item.questions()
    }
    return {by_content[sent.pictures[0], sent.text]: sent for sent in server.sent()}


def picture_for(item: Item, question: str, drawn: Path) -> bytes:
    return (drawn.parent / str(item.overlay if question == "q3" else item.image)).read_bytes()


def test_the_same_raw_answers_as_in_process(hosted: Hosted, demo: McqRun) -> None:
    _, run, _ = hosted
    assert len(run.raw()) == ASKED
    assert run.raw().items() <= demo.raw().items()


def test_every_question_is_one_call_of_its_own(hosted: Hosted) -> None:
    provider, run, server = hosted
    assert server.requests() == len(server.bodies) == ASKED == len(run.calls())
    assert run.manifest()["totals"]["calls"] == ASKED
    for sent in server.sent():
        assert sent.roles == ("user",), provider
        assert sent.kinds == ("image", "text")


def test_questions_are_sent_word_for_word_and_share_nothing(hosted: Hosted, drawn: Path) -> None:
    _, run, server = hosted
    sent = matched(server, drawn)
    assert set(sent) == set(run.answers())
    items = {item.id: item for item in load(drawn)}
    for key, request in sent.items():
        name, _, question = key.partition("/")
        assert request.text == question_text(items[name], question)  # type: ignore[arg-type]
        assert request.system == system_text(items[name])
        others = {text for other, text in texts_of(items[name]).items() if other != question}
        assert not any(other in str(request.text + request.system) for other in others)


def texts_of(item: Item) -> dict[str, str]:
    return {question: question_text(item, question) for question in item.questions()}


def test_q3_sees_the_stored_overlay_and_the_others_the_original(hosted: Hosted, drawn: Path) -> None:
    _, run, server = hosted
    stored = {path.read_bytes() for path in (run.path / "overlays").iterdir()}
    originals = {(drawn.parent / item.image).read_bytes() for item in load(drawn)[:ITEMS]}
    assert len(stored) == len(originals) == ITEMS
    for key, sent in matched(server, drawn).items():
        assert sent.pictures[0] in (stored if key.endswith("/q3") else originals)


def test_temperature_is_0_where_it_is_taken(hosted: Hosted) -> None:
    provider, run, server = hosted
    (parameters,) = run.manifest()["parameters"].values()
    if provider == "anthropic":
        assert "temperature" not in parameters
        assert all("temperature" not in sent.body for sent in server.sent())
    else:
        assert parameters["temperature"] == 0
        assert {sent.body["temperature"] for sent in server.sent()} == {0}


def test_a_stored_overlay_is_sent_byte_for_byte(tmp_path: Path, drawn: Path, run: McqRun) -> None:
    # Any other picture in its place is used as it is.
    items_file = copied(drawn, tmp_path)
    for item in load(items_file):
        place = items_file.parent / str(item.overlay)
        place.write_bytes(place.read_bytes() + b"\n")
    stored = {(items_file.parent / str(item.overlay)).read_bytes() for item in load(items_file)}
    with recording() as server:
        assert uncanny_here("mcq", "run", items_file, *server.asked(), "-o", run.path, "-q").code == 0
        seen = {sent.pictures[0] for sent in server.sent() if "Four boxes are drawn" in sent.text}
    assert seen == stored
    assert not (run.path / "overlays").exists()


def test_a_set_with_its_own_texts_is_asked_with_them_verbatim(
    tmp_path: Path, drawn: Path, run: McqRun
) -> None:
    items_file = copied(drawn, tmp_path)

    def own(item: Item) -> dict[str, Any]:
        prompts = {question: f" ${{x}} {item.id} {question}?\n\t\u00e9" for question in item.questions()}
        return {"system": "Answer in JSON.\n", "prompts": prompts, "answer_form": "json"}

    rewritten(items_file, own)
    with recording() as server:
        done = uncanny_here("mcq", "run", items_file, *server.asked(), "-o", run.path, "-q")
        assert done.code == 0
        sent = server.sent()
    assert {each.system for each in sent} == {"Answer in JSON.\n"}
    texts = [text for item in load(items_file) for text in (item.prompts or {}).values()]
    assert Counter(each.text for each in sent) == Counter(texts)
    assert run.manifest()["prompts"]["whose"] == "the set's"
    assert {call["prompt"].partition("@")[0] for call in run.calls()} == {
        f"own:{question}" for question in ("q1", "q2", "q3", "q4")
    }


def copied(drawn: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(drawn.parent.parent, tmp_path / "set")) / "drawn" / "items.jsonl"


def test_without_a_system_text_none_is_sent(tmp_path: Path, drawn: Path, run: McqRun) -> None:
    items_file = copied(drawn, tmp_path)
    rewritten(items_file, lambda item: {"prompts": {q: f"{item.id} {q}" for q in item.questions()}})
    with recording() as server:
        command = ("mcq", "run", items_file, *server.asked(), "-o", run.path, "-q", "--limit", "2")
        assert uncanny_here(*command).code == 0
        assert all(turn["role"] == "user" for sent in server.sent() for turn in sent.body["messages"])


def test_the_control_asks_q4_again_without_the_image(drawn: Path, run: McqRun) -> None:
    with recording() as server:
        command = ("mcq", "run", drawn, *server.asked(), "-o", run.path, "--control", "-q")
        assert uncanny_here(*command).code == 0
        blind = [sent for sent in server.sent() if not sent.pictures]
    items = load(drawn)
    controls = [key for key in run.answers() if key.endswith("/q4_no_image")]
    assert len(controls) == sum(item.q4 is not None for item in items)
    # Pairs have the same options: without the image theirs is one question, asked once.
    texts = {item.pair_id or item.id for item in items}
    assert len(blind) == len({sent.text for sent in blind}) == len(texts) < len(items)
    assert len(run.answers()) == sum(len(item.questions()) for item in items) + len(controls)
    for sent in blind:
        assert sent.kinds == ("text",)
        assert "\nF. no picture was provided\n" in sent.text


def test_refusals_are_answers_and_failures_are_asked_again(drawn: Path, run: McqRun) -> None:
    command = ("mcq", "run", drawn, "-o", run.path)
    with recording(
        refuse=lambda sent: "Does this picture have" in sent.text,
        fail=lambda sent: "Which of these places" in sent.text,
    ) as server:
        done = uncanny_here(*command, *server.asked(), "--json", "--limit", "3")
    content = done.json()
    assert done.code == 1
    assert {answer["question"] for answer in content["failures"]} == {"q2"}
    answers = run.answers()
    for key, answer in answers.items():
        outcome = {"q1": "refused", "q2": "error"}.get(answer.question, "answered")
        assert answer.outcome == outcome, key
        assert (answer.raw is None) == (answer.error is not None) == (outcome == "error")
    assert {a.raw for a in answers.values() if a.outcome == "refused"} == {"I would rather not."}
    assert all("too odd" in str(a.error) for a in answers.values() if a.outcome == "error")
    with recording() as server:
        kept = uncanny_here(*command, *server.asked(), "--limit", "3", "--keep-failed", "-q")
        assert (kept.code, server.requests()) == (1, 0)
        again = uncanny_here(*command, *server.asked(), "--limit", "3", "-q")
        assert (again.code, again.err) == (0, "")
        assert all("Which of these places" in sent.text for sent in server.sent())
        assert server.requests() == sum(answer.question == "q2" for answer in answers.values())
    assert Counter(a.outcome for a in run.answers().values())["refused"] == 3
