"""From a file to its record: what went wrong is in it, and an empty list means a flawless image."""

from __future__ import annotations

from pathlib import Path

import pytest
from PIL import Image

from tests.agents.specialists import Specialists, listed
from tests.client.scripted import guarded, text_response
from tests.runs.e2e import check_record
from tests.runs.scripted_run import annotated, annotator, image_files
from uncanny.agents.common.annotate_context import AnnotateState, Context
from uncanny.errors import ModelUnusableError, RequestRejectedError
from uncanny.images.encode import PixelPolicy
from uncanny.images.prepared import prepare
from uncanny.models.base import Tokens
from uncanny.prompts import prompt_set
from uncanny.runs.inputs import ImageFile
from uncanny.schema import Annotation


@pytest.fixture
def file(tmp_path: Path) -> ImageFile:
    return image_files(tmp_path, 1)[0]


async def test_a_good_image_is_ok(file: ImageFile) -> None:
    asked = Specialists("cup", "table")
    done = await annotated(annotator(asked), file)
    found = done.record
    check_record(found)
    assert (found.image, found.status, found.model) == ("p00.png", "ok", "script/one")
    assert (found.width, found.height) == (32, 24)
    assert found.prompts == prompt_set("annotate").id
    assert [one.name for one in found.objects] == ["cup", "table"]
    assert [one.severity for one in found.anomalies] == [7]
    assert found.usage.calls == len(done.calls) == len(asked.model.requests) == 3 + 12 + 1
    assert found.usage.input_tokens == 1_600
    assert found.usage.cost_usd is None
    assert found.pixels is not None
    assert (found.pixels.changes, found.pixels.sent) == ((), None)
    assert not found.model_extra
    assert {call.image for call in done.calls} == {"p00.png"}


async def test_an_image_with_nothing_wrong_is_ok_and_empty(file: ImageFile) -> None:
    found = (await annotated(annotator(Specialists()), file)).record
    check_record(found)
    assert (found.status, found.anomalies, found.objects) == ("ok", (), ())


async def test_some_failed_objects_make_it_partial(file: ImageFile) -> None:
    asked = Specialists("cup", "table")
    asked.answers["RelationReasoner", 1, "table"] = lambda _: RequestRejectedError("no")
    found = (await annotated(annotator(asked), file)).record
    check_record(found)
    assert found.status == "partial"
    assert len(found.anomalies) == 1
    (error,) = found.errors
    assert error.model_dump() == {
        "agent": "RelationReasoner",
        "step": 1,
        "object": "table",
        "kind": "rejected",
        "message": "no",
    }


async def test_when_every_object_failed_an_empty_list_is_no_answer(file: ImageFile) -> None:
    asked = Specialists("cup", "table")
    asked.answers["AttributeAnalyzer", 1, None] = lambda _: RequestRejectedError("no")
    found = (await annotated(annotator(asked), file)).record
    check_record(found)
    assert found.status == "failed"
    assert [error.object for error in found.errors] == ["cup", "table"]
    assert not asked.requests("AnomalyFormatter")


@pytest.mark.parametrize("agent", ["ObjectPerceiver", "AnomalyFormatter"])
async def test_a_failed_perceiver_or_formatter_fails_the_image(file: ImageFile, agent: str) -> None:
    asked = Specialists("cup")
    asked.answers[agent, 1, None] = lambda _: text_response("hm?")
    found = (await annotated(annotator(asked), file)).record
    check_record(found)
    assert found.status == "failed"
    assert [(error.agent, error.kind) for error in found.errors] == [(agent, "unparseable")]


async def test_cut_objects_are_recorded(file: ImageFile) -> None:
    found = (await annotated(annotator(Specialists("a1", "a2", "a3"), max_objects=1), file)).record
    assert [one.name for one in found.objects] == ["a1"]
    assert found.model_extra is not None
    assert [one["name"] for one in found.model_extra["cut_objects"]] == ["a2", "a3"]
    assert Annotation.model_validate_json(found.model_dump_json()) == found


async def test_what_is_beyond_the_read_part_of_an_answer_is_counted(file: ImageFile) -> None:
    asked = Specialists(*(f"thing {number}" for number in range(503)))
    found = (await annotated(annotator(asked, max_objects=1), file)).record
    check_record(found)
    assert found.status == "ok"
    assert found.model_extra is not None
    assert len(found.model_extra["cut_objects"]) == 499
    assert found.model_extra["left_out"] == {"objects": 9}  # of each of three drafts


async def test_parts_are_enlarged_up_to_the_limit_on_pixels_of_the_run(file: ImageFile) -> None:
    limits = []

    async def perceive(_state: AnnotateState, image: Context) -> AnnotateState:
        limits.append(image.max_pixels)
        return {"objects": [], "cut": []}

    made = annotator(Specialists())
    made.task.policy, made.task.nodes = PixelPolicy(max_pixels=10**9), {"perceive": perceive}
    assert (await annotated(made, file)).record.status == "ok"
    assert limits == [10**9]


async def test_calls_of_a_fallback_are_told_apart(file: ImageFile) -> None:
    broken, second = Specialists("cup"), Specialists("cup")
    broken.answers["AnomalyIntegrator", 1, None] = lambda _: ModelUnusableError("no credit")
    second.model.name = "script/second"
    found = (await annotated(annotator(broken, guarded(second.model)), file)).record
    assert found.status == "ok"
    assert found.model_extra == {"models": {"script/one": 8, "script/second": 3}}


async def test_a_fallback_that_did_everything_is_named(file: ImageFile) -> None:
    broken, second = Specialists("cup"), Specialists("cup")
    broken.answers["ObjectPerceiver", 1, None] = lambda _: ModelUnusableError("no credit")
    second.model.name = "script/second"
    annotate = annotator(broken, guarded(second.model))
    await annotated(annotate, file)  # from now on, the first model is not asked any more
    again = (await annotated(annotate, image_files(file.path.parent / "more", 2)[1])).record
    assert again.model == "script/one"
    assert again.model_extra == {"models": {"script/second": 10}}


async def test_usage_nobody_reported_is_not_zero(file: ImageFile) -> None:
    asked = Specialists("cup")
    asked.answers["AttributeAnalyzer", 1, None] = lambda _: text_response("Notes.", tokens=Tokens(output=3))
    usage = (await annotated(annotator(asked), file)).record.usage
    assert (usage.input_tokens, usage.output_tokens, usage.calls) == (None, 93, 10)


async def test_what_ends_the_run_is_raised(file: ImageFile) -> None:
    asked = Specialists("cup")
    asked.answers["AttributeAnalyzer", 1, None] = lambda _: ModelUnusableError("wrong key")
    with pytest.raises(ModelUnusableError, match="wrong key"):
        await annotated(annotator(asked), file)


async def test_an_image_that_cannot_be_read_is_a_record_with_the_reason(tmp_path: Path) -> None:
    asked = Specialists("cup")
    found = (await annotated(annotator(asked), ImageFile(tmp_path / "gone.png", "gone.png"))).record
    check_record(found)
    assert (found.status, found.sha256, found.width, found.pixels) == ("unreadable", None, None, None)
    assert [(error.agent, error.step, error.kind) for error in found.errors] == [("image", 0, "missing")]
    assert not asked.model.requests


async def test_an_image_that_had_to_be_converted_says_so(tmp_path: Path) -> None:
    Image.new("RGB", (6, 5), "red").save(tmp_path / "a.tiff")
    file = ImageFile(tmp_path / "a.tiff", "a.tiff")
    asked = Specialists()
    made = annotator(asked)
    opened = prepare(file.path, PixelPolicy(), made.engine.limits)
    found = (await annotated(made, file)).record
    assert found.pixels is not None
    assert found.pixels.changes
    assert found.pixels.sent is not None
    assert found.pixels.sent.sha256 == opened.sent_sha256 != found.sha256 == opened.source_sha256
    sent = asked.model.requests[0].messages[1].parts[0]
    assert getattr(sent, "sha256", None) == opened.sent_sha256


async def test_a_scan_that_came_through_leaves_failed_objects_partial(file: ImageFile) -> None:
    asked = Specialists("cup")
    asked.answers["AttributeAnalyzer", 1, None] = lambda _: RequestRejectedError("no")
    asked.answers["SceneScanner", 1, None] = lambda _: listed("findings")
    found = (await annotated(annotator(asked, scene_scans=1), file)).record
    assert (found.status, len(found.errors)) == ("partial", 1)


def test_the_settings_of_a_run_have_the_system_text() -> None:
    task = annotator(Specialists()).task
    texts = prompt_set("annotate")
    rules = texts["open"].template.template
    assert rules
    assert task.settings().prompts.system == texts["system"].fill(strictness=rules, language="English")
    strict = annotator(Specialists(), strictness="strict", language="German").task.settings().prompts.system
    assert strict is not None
    assert texts["strict"].template.template in strict
    assert "German" in strict
