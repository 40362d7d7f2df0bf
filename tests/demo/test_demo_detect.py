"""The demo model answers both turns of the detection protocol, and the fake server those of any image."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from pathlib import Path

import pytest

from tests.verdicts import source_of
from uncanny.answers.forms import ANOMALIES
from uncanny.answers.lists import read_list
from uncanny.demo.data.mistakes import DETECT_MISTAKES
from uncanny.demo.model import DemoRequest, answer
from uncanny.demo.recognition import Turn
from uncanny.demo.scenes import Scene, scenes
from uncanny.demo.views import known_view
from uncanny.errors import RequestRejectedError
from uncanny.prompts import prompt_set

PROMPTS = prompt_set("detect")
DOCUMENT = Path(__file__).parents[2] / "docs" / "demo.md"
SCENES = scenes()
by_id = pytest.mark.parametrize("scene", SCENES, ids=[scene.id for scene in SCENES])


def generate(name: str, image: str, *, first: str = "yes", objects: int | None = None) -> str:
    turns = [Turn("system", PROMPTS["system"].fill()), Turn("user", PROMPTS["source"].fill())]
    if name != "source":
        turns += [Turn("assistant", first), Turn("user", PROMPTS[name].fill())]
    return answer(DemoRequest(tuple(turns), (image,)), synthetic_objects=objects).text


def right(scene: Scene) -> str:
    return "generated" if scene.role == "anomalous" else "real"


def test_scenes_are_judged_right_but_for_the_listed_mistakes() -> None:
    answers = {scene.id: generate("source", scene.sha256) for scene in SCENES}
    wrong = {scene.id: answers[scene.id] for scene in SCENES if source_of(answers[scene.id]) != right(scene)}
    assert wrong == DETECT_MISTAKES


def test_a_verdict_is_in_the_form_that_is_asked_for() -> None:
    answers = {generate("source", scene.sha256) for scene in SCENES}
    assert answers == {"Verdict: Yes", "Verdict: No", DETECT_MISTAKES["r03-shadow-away-from-sun"]}
    assert all(form in PROMPTS["source"].fill() for form in ("Verdict: Yes", "Verdict: No"))


def test_the_mistakes_are_one_of_each_kind() -> None:
    rights = {scene.id: right(scene) for scene in SCENES}
    kinds = {(rights[scene], source_of(wrong)) for scene, wrong in DETECT_MISTAKES.items()}
    assert kinds == {("generated", "real"), ("real", "generated"), ("real", None)}


def test_every_mistake_is_documented() -> None:
    table = re.findall(
        r"^\| `([^`]+)` \| `source` \| (\w+) \| (.+) \|$", DOCUMENT.read_text(encoding="utf-8"), re.MULTILINE
    )
    by_scene = {scene.id: right(scene) for scene in SCENES}
    assert sorted(table) == sorted(
        (scene, by_scene[scene], wrong) for scene, wrong in DETECT_MISTAKES.items()
    )


@by_id
def test_anomalies_are_those_the_model_sees(scene: Scene) -> None:
    view = known_view(scene.sha256)
    assert view is not None
    anomalies = read_list(generate("anomalies", scene.sha256), ANOMALIES)
    assert [(each.name, each.severity) for each in anomalies] == [
        (a.name, a.severity) for a in view.anomalies
    ]


@by_id
def test_content_names_the_objects(scene: Scene) -> None:
    content = generate("content", scene.sha256, first="no")
    assert content.startswith(f"The picture shows {scene.objects[0].name}")
    assert content.endswith(".")


def test_an_image_it_does_not_know_is_turned_down_by_the_demo_and_made_up_by_the_server() -> None:
    digests = [hashlib.sha256(b"picture %d" % number).hexdigest() for number in range(200)]
    with pytest.raises(RequestRejectedError, match="knows only the bundled scenes"):
        generate("source", digests[0])
    answers = [generate("source", digest, objects=8) for digest in digests]
    assert answers == [generate("source", digest, objects=8) for digest in digests]
    counts = Counter(source_of(each) for each in answers)
    assert set(counts) == {"generated", "real", None}
    assert counts[None] < 30
    assert min(counts["generated"], counts["real"]) > 60
    assert read_list(generate("anomalies", digests[0], objects=8), ANOMALIES)
    assert "synthetic answer" in generate("content", digests[0], objects=8)
