"""A reasoner from exported chats to scores, with a real vLLM: train, serve the adapter, detect, semantic.

It also needs the packages of the extra `learn`: see `.ci/run`.
"""

from __future__ import annotations

import json
import shlex
import signal
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.runs.e2e import finish, start
from tests.vllm_cpu.test_lifecycle import Watched
from uncanny.models.vllm.server import COMMAND_VARIABLE

pytestmark = [
    pytest.mark.vllm,
    pytest.mark.skipif(
        any(find_spec(each) is None for each in ("trl", "peft", "torchvision")),
        reason="the packages of the extra `learn` are not installed",
    ),
]


def test_the_trained_adapter_is_asked_and_scored(vllm_command: tuple[str, ...], tmp_path: Path) -> None:
    import uncanny.learn
    from tests.learn import conftest  # noqa: F401  makes torchvision importable
    from tests.learn.planted import PLANTED, color_of, make_base, planted, write_chats
    from uncanny.learn.reasoning.card import ask_words, serve_words

    base = make_base(tmp_path / "base")
    data = write_chats(tmp_path / "data", train=range(6), test=range(100, 102))
    run = uncanny.learn.reasoner(data, base=base, out=tmp_path / "run", max_measured=0, **PLANTED)
    served = shlex.split(serve_words(run))
    arguments = [*served[1:3], served[3], "--port", "0", *served[4:]]
    log = tmp_path / "vllm.log"
    place = arguments.index("--")
    arguments[place:place] = ["--log", str(log)]
    images = tmp_path / "images"
    images.mkdir()
    chats = [json.loads(line) for line in (data / "test.jsonl").read_text().splitlines()]
    truth = []
    for chat in chats:
        name = chat["images"][0]
        (images / name).write_bytes((data / name).read_bytes())
        truth.append(
            {"image": name, "source": "generated", "anomalies": anomalies_of(planted(color_of(name)))}
        )
    (tmp_path / "truth.jsonl").write_text("".join(json.dumps(each) + "\n" for each in truth))
    with start(*arguments, env={COMMAND_VARIABLE: shlex.join(vllm_command)}) as process:
        watched = Watched(process)
        assert process.stdout is not None
        line = process.stdout.readline().decode()
        assert line.startswith("listening on "), (finish(process), log.read_text()[-3000:])
        address = line.split()[-1]
        detect, semantic = (
            shlex.split(each)
            for each in ask_words(run, str(images), str(tmp_path / "truth.jsonl")).split("&&")
        )
        out = tmp_path / "detected"
        detect[detect.index("-o") + 1] = str(out)
        semantic[semantic.index("runs/d")] = str(out)
        with start(*detect[1:], "--base-url", address, "--temperature", "0") as asked:
            done = finish(asked, 600)
            assert done.code in (0, 1), done.err
        process.send_signal(signal.SIGINT)
        watched.finish()
    records = [json.loads(line) for line in (out / "annotations.jsonl").read_text().splitlines()]
    listed = {each["image"].rsplit("/", 1)[-1]: each["listing"] for each in records}
    right = [name for name, said in listed.items() if said == planted(color_of(name))]
    assert len(right) >= 5, listed
    with start(*semantic[1:], "--similarity", "chrf", "--json", tmp_path / "scores.json") as scored:
        assert finish(scored, 120).code in (0, 1)
    scores = json.loads((tmp_path / "scores.json").read_text())
    assert scores


def anomalies_of(text: str) -> list[dict[str, object]]:
    from uncanny.answers.forms import ANOMALIES
    from uncanny.answers.lists import read_list

    return [each.model_dump(exclude_unset=True) for each in read_list(text, ANOMALIES)]
