"""Prompt texts: all of them used, none of them with a hole, each change with a new id."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

import pytest

import uncanny.prompts
from tests.agents.specialists import Specialists, listed
from tests.client.scripted import in_turn, text_response, texts
from uncanny.agents.config import AnnotateConfig
from uncanny.errors import ExtensionError
from uncanny.graphs.annotate import annotate_graph
from uncanny.prompts import SHARED, PromptSet, make_set, prompt_set, set_names
from uncanny.schema import KINDS

FOLDER = Path(str(files("uncanny.prompts")))
ANNOTATE = prompt_set("annotate")


@pytest.fixture
def sets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder of prompt sets in place of the product's."""
    monkeypatch.setattr(uncanny.prompts, "files", lambda _: tmp_path)
    prompt_set.cache_clear()
    yield tmp_path
    prompt_set.cache_clear()


def write_set(folder: Path, **prompts: str) -> PromptSet:
    (folder / "task").mkdir(exist_ok=True)
    for name, text in prompts.items():
        (folder / "task" / f"{name}.md").write_text(text, encoding="utf-8")
    prompt_set.cache_clear()
    return prompt_set("task")


def pattern(text: str) -> re.Pattern[str]:
    """Matches what the prompt looks like once its variables are filled in."""
    parts = re.split(r"\$\{?[a-z_]+\}?", text)
    return re.compile(".*?".join(map(re.escape, parts)), re.DOTALL)


async def test_every_prompt_is_asked_by_some_agent_and_every_text_asked_is_a_prompt() -> None:
    specialists = Specialists("cup")
    specialists.answers["AttributeAnalyzer", 1, None] = in_turn(text_response(""), text_response("Notes."))
    specialists.answers["AttributeAnalyzer", 2, None] = in_turn(
        text_response("hm?"), listed("attributes", {"name": "odd", "observed": "x", "explanation": "x"})
    )
    image = specialists.context(AnnotateConfig(schedule="paper", scene_scans=1))
    await annotate_graph().ainvoke({"image": "a.png"}, context=image)
    sent = {text for request in specialists.model.requests for text in texts(request)}
    patterns = {name: pattern(prompt.template.template) for name, prompt in ANNOTATE.prompts.items()}
    unused = {name for name, wanted in patterns.items() if not any(wanted.search(text) for text in sent)}
    assert unused == {"strict"}
    parts = ("system", "relation_context", "open", "strict")
    ids = {ANNOTATE[name].id for name in patterns if name not in parts}
    recorded = {call.prompt for call in image.scope.calls}
    assert recorded == ids - {ANNOTATE["repair"].id, ANNOTATE["repair_text"].id}


@pytest.mark.parametrize(
    "folder",
    [each for each in FOLDER.iterdir() if each.is_dir() and each.name not in ("__pycache__", SHARED)],
)
def test_a_prompt_folder_holds_prompts_and_nothing_else(folder: Path) -> None:
    names = {path.stem for path in folder.iterdir()}
    assert {path.suffix for path in folder.iterdir()} == {".md"}
    assert set(prompt_set(folder.name).prompts) == names


def test_shared_texts_are_taken_in_and_none_is_a_set_or_unused() -> None:
    with pytest.raises(LookupError):
        prompt_set(SHARED)
    assert SHARED not in set_names()
    written = [path.read_text(encoding="utf-8") for path in FOLDER.glob("*/*.md")]
    used = {name for text in written for name in re.findall(r"\{\{(\w+)\}\}", text)}
    assert used == {path.stem for path in (FOLDER / SHARED).iterdir()}
    for name in set_names():
        assert not any("{{" in text for text in prompt_set(name).texts().values())


def test_a_change_of_a_shared_text_is_a_new_id(sets: Path) -> None:
    (sets / SHARED).mkdir()
    (sets / SHARED / "scale.md").write_text("from 0 to {{top}}")
    (sets / SHARED / "top.md").write_text("100")
    first = write_set(sets, rate="Rate it {{scale}}. {{other}")
    assert first["rate"].fill() == "Rate it from 0 to 100. {{other}"
    (sets / SHARED / "top.md").write_text("10")
    changed = write_set(sets)
    assert changed["rate"].fill() == "Rate it from 0 to 10. {{other}"
    assert changed.id != first.id


@pytest.mark.parametrize("name", ANNOTATE.prompts)
def test_a_missing_variable_fails(name: str) -> None:
    prompt = ANNOTATE[name]
    variables = prompt.template.get_identifiers()
    assert prompt.template.is_valid()
    whole = prompt.fill(**dict.fromkeys(variables, "VALUE"))
    assert "$" not in whole
    for missing in variables:
        with pytest.raises(ExtensionError, match=rf"{name}.*\${missing}\b"):
            prompt.fill(**dict.fromkeys(set(variables) - {missing}, "VALUE"))


def test_a_set_that_is_not_there_fails() -> None:
    with pytest.raises((LookupError, OSError)):
        prompt_set("no such task")


def test_an_empty_set_fails(sets: Path) -> None:
    (sets / "empty").mkdir()
    with pytest.raises(LookupError, match="no prompts in 'empty'"):
        prompt_set("empty")


def test_any_character_changes_the_ids(sets: Path) -> None:
    first = write_set(sets, look="Look at $object.", listing="List.")
    second = write_set(sets, look="Look at $object!", listing="List.")
    assert first.id != second.id
    assert first["look"].id != second["look"].id
    assert first["listing"].id == second["listing"].id
    assert second.hashes() == {name: prompt.id.partition("@")[2] for name, prompt in second.prompts.items()}


def test_a_new_or_renamed_prompt_changes_the_sets_id(sets: Path) -> None:
    ids = [write_set(sets, look="Look.").id, write_set(sets, listing="List.").id]
    (sets / "task" / "listing.md").rename(sets / "task" / "three.md")
    prompt_set.cache_clear()
    ids.append(prompt_set("task").id)
    assert len(set(ids)) == 3


def test_the_hash_is_that_of_the_text(sets: Path) -> None:
    text = "Ein Stück: $object"
    digest = hashlib.sha256(text.encode()).hexdigest()
    assert write_set(sets, look=f"{text}\n")["look"].id == f"look@{digest[:8]}"


def test_the_same_files_have_the_same_ids_on_every_system(sets: Path) -> None:
    unix = write_set(sets, look="Look.\nList.\n").id
    (sets / "task" / "look.md").write_bytes(b"Look.\r\nList.\r\n")
    prompt_set.cache_clear()
    assert prompt_set("task").id == unix


def test_texts_make_the_set_they_came_from() -> None:
    again = make_set("annotate", dict(reversed(ANNOTATE.texts().items())))
    assert (again.id, again.texts()) == (ANNOTATE.id, ANNOTATE.texts())


def test_what_can_be_asked_with_in_place_of_another() -> None:
    own = make_set("task", {"look": "Look at $object in $place.", "listing": "List."})
    for others, why in (
        ({"look": "See $object.", "listing": "All."}, None),
        ({"look": "See $object.", "listing": "All.", "three": "More."}, None),
        ({"look": "See $object."}, "the text listing.md is missing"),
        (
            {"look": "See $object and $more.", "listing": "All."},
            "look.md has the variable $more, which is not filled in any more",
        ),
        (
            {"look": "See $object for 5$.", "listing": "All."},
            "look.md has a $ that does not start a variable",
        ),
    ):
        assert make_set("task", others).lacks(own) == why


@pytest.mark.parametrize("name", ["packed/attributes", "packed/open_look", "shared/kinds"])
def test_prompts_that_ask_for_a_kind_offer_all_of_them(name: str) -> None:
    text = (files("uncanny.prompts") / f"{name}.md").read_text(encoding="utf-8")
    assert [kind for kind in KINDS if kind not in text] == []
