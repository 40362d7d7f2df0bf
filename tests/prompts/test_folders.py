"""Texts of users: read whole or refused by file and variable; ours written out to begin from."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from uncanny.errors import UsageError
from uncanny.prompts import is_ours, make_set, prompt_set
from uncanny.prompts.folders import (
    OPTIONAL,
    VARIABLES,
    read_prompts,
    text_files,
    variables_page,
    write_prompts,
)
from uncanny.protocol import prompt_names
from uncanny.settings import Settings

QUESTION = "Pick one.\n\n$choices"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "texts").mkdir()
    return tmp_path / "texts"


def refused(folder: Path | str, protocol: str = "mcq") -> str:
    with pytest.raises(UsageError) as error:
        read_prompts(protocol, folder)
    return str(error.value)


def test_no_folder_is_ours() -> None:
    ours = read_prompts("mcq", None)
    assert ours is prompt_set("mcq")
    assert (ours.own, ours.chosen) == ((), False)


def test_what_is_missing_is_taken_from_ours(folder: Path) -> None:
    (folder / "q2.md").write_text(f"{QUESTION}\n")
    (folder / "q1.md").write_text(prompt_set("mcq")["q1"].template.template)
    mixed = read_prompts("mcq", folder)
    assert (mixed.own, mixed.chosen) == (("q2",), True)
    assert mixed.texts() == prompt_set("mcq").texts() | {"q2": QUESTION}
    assert mixed.id == make_set("mcq", mixed.texts()).id != prompt_set("mcq").id
    assert not is_ours(mixed.id)
    assert mixed.lacks(prompt_set("mcq")) is None


@pytest.mark.parametrize("protocol", prompt_names())
def test_what_is_written_is_read_as_ours(protocol: str, folder: Path) -> None:
    files = write_prompts(protocol, folder)
    assert {path.name for path in files} == {path.name for path in folder.iterdir()}
    (folder / ".DS_Store").write_bytes(b"\0\xff")
    (folder / "system.md~").write_text("a copy")
    read = read_prompts(protocol, folder)
    assert (read.id, read.texts()) == (prompt_set(protocol).id, prompt_set(protocol).texts())
    assert (read.own, read.chosen) == ((), True)
    assert write_prompts(protocol, folder) == files


def test_bytes_that_editors_add_make_no_difference(folder: Path) -> None:
    (folder / "q2.md").write_bytes(b"\xef\xbb\xbfPick one.\r\n\r\n$choices\r\n")
    assert read_prompts("mcq", folder)["q2"].template.template == QUESTION


def test_an_empty_system_text_sends_none(folder: Path) -> None:
    (folder / "system.md").touch()
    assert read_prompts("mcq", folder)["system"].fill() == ""


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("q7.md", b"Well?", "mcq has no prompt 'q7.md'. It is called q4.md?|q1.md?"),
        ("notes.txt", b"Well?", "mcq has no prompt 'notes.txt'. They are called blind.md, q1.md, "),
        ("Q1.md", b"Well?", "mcq has no prompt 'Q1.md'. It is called q1.md?"),
        ("q1.md", b"", "q1.md is empty. Write a prompt, or delete the file"),
        ("q1.md", b" \n", "q1.md is empty"),
        ("q1.md", b"Gr\xfc\xdfe", "q1.md is not UTF-8: byte 3 is 0xfc. Save it as UTF-8."),
        ("q1.md", b"Is it so?\nFor 5$?", "q1.md, line 2: '$?' is not a variable. Write $$ for a dollar"),
        ("q1.md", b"${choices", "q1.md, line 1: '${choices' is not a variable."),
        ("q1.md", b"Is it $odd?", "q1.md, line 1: there is no variable $odd in this prompt. It has none."),
        ("q2.md", b"$choice", "no variable $choice in this prompt. Did you mean $choices?"),
        ("q2.md", b"$odd", "there is no variable $odd in this prompt. It has $choices."),
        ("q2.md", b"Where is it?", "q2.md: $choices is missing. It stands for the options"),
        ("q2.md", b"Where is it? $$choices", "q2.md: $choices is missing"),
        ("q1.md", b"x" * 1_000_001, "q1.md has more than 1,000,000 bytes"),
        ("system.md", b"$choices", "system.md, line 1: there is no variable $choices"),
    ],
    ids=lambda value: value.decode(errors="replace")[:20] if isinstance(value, bytes) else value[:30],
)  # fmt: skip
def test_what_cannot_be_asked_is_refused_by_file_and_variable(
    name: str, content: bytes, words: str, folder: Path
) -> None:
    (folder / name).write_bytes(content)
    message = refused(folder)
    assert any(part in message for part in words.split("|")), message
    assert str(folder) in message


def make_file(path: Path) -> None:
    path.write_text("Well?")


def make_parent(path: Path) -> None:
    write_prompts("mcq", path / "mcq")


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda _path: None, "does not exist. `uncanny prompts mcq` shows 7 prompts to start from"),
        (make_file, "is a file, not a folder of prompts. Pass the folder it is in"),
        (Path.mkdir, "contains no prompts"),
        (make_parent, "contains prompts of several protocols. Pass "),
    ],
    ids=["missing", "a file", "empty", "of all"],
)
def test_what_is_no_folder_of_texts_is_refused(
    make: Callable[[Path], object], words: str, tmp_path: Path
) -> None:
    make(tmp_path / "texts")
    assert words in refused(tmp_path / "texts")


@pytest.mark.parametrize(
    ("protocol", "texts", "words"),
    [
        ("packed", "annotate", "`annotate` has it: pass `schedule='paper'`"),
        ("annotate", "packed", "`packed` has it: pass `schedule='packed'`"),
        ("packed", "single", "`single` has it: pass `schedule='single'`"),
    ],
)
def test_texts_of_another_schedule_are_refused_with_its_name(
    protocol: str, texts: str, words: str, tmp_path: Path
) -> None:
    write_prompts(texts, tmp_path / "texts")
    message = refused(tmp_path / "texts", protocol)
    assert f"{protocol} has no prompt" in message
    assert words in message
    assert f"`uncanny prompts {protocol}`" in message


def test_folders_and_pipes_are_no_texts(folder: Path) -> None:
    (folder / "q1.md").mkdir()
    assert "q1.md is a folder, not a file. Put the file itself there." in refused(folder)
    (folder / "q1.md").rmdir()
    os.mkfifo(folder / "q1.md")
    assert "q1.md is a named pipe, not a file" in refused(folder)


@pytest.mark.parametrize("target", ["/proc/self/environ", "../secret", "../nothing", "../texts2/q1.md"])
def test_a_link_that_leads_out_of_the_folder_is_refused_whatever_it_leads_to(
    target: str, folder: Path
) -> None:
    (folder.parent / "texts2").mkdir()
    for secret in ("secret", "texts2/q1.md"):
        (folder.parent / secret).write_text("The secret.")
    (folder / "q1.md").symlink_to(target)
    message = refused(folder)
    assert f"{folder}/q1.md is a link that leads out of the folder. Put the file itself there." in message
    assert "secret" not in message


def test_a_link_within_the_folder_and_a_link_to_it_are_followed(folder: Path) -> None:
    (folder / ".texts").mkdir()
    (folder / ".texts" / "q2").write_text(QUESTION)
    (folder / "q2.md").symlink_to(".texts/q2")
    (folder.parent / "link").symlink_to(folder)
    assert read_prompts("mcq", folder.parent / "link").own == ("q2",)


def test_a_folder_where_nothing_may_be_read_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "q1.md").write_text("Well?")
    (folder.parent / "inside").mkdir()
    monkeypatch.setattr(
        "uncanny.settings.settings", lambda: Settings(input_folders=(folder.parent / "inside",))
    )
    messages = []
    for named in (folder, folder.parent / "nothing"):
        messages.append(refused(named).replace(str(named), ""))
        assert "lies in no folder that may be read" in messages[-1]
    assert len(set(messages)) == 1
    monkeypatch.setattr("uncanny.settings.settings", lambda: Settings(input_folders=(folder.parent,)))
    assert read_prompts("mcq", folder).own == ("q1",)


@pytest.mark.parametrize("name", ["OPENAI_API_KEY", "HF_TOKEN", "https_proxy"])
def test_a_text_that_holds_a_key_is_refused_and_the_key_is_not_told(
    name: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = "sk-Zm9v-YmFy-0123456789"
    monkeypatch.setenv(name, f"http://ann:{secret}@proxy:80" if name == "https_proxy" else f" {secret}\n")
    (folder / "q1.md").write_text(f"Is it so?\nThe key is {secret}.")
    message = refused(folder)
    assert f"q1.md contains the key or password in {name}" in message
    assert secret not in message


def test_a_short_word_for_a_key_is_no_secret(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VLLM_API_KEY", "artifact")
    (folder / "q1.md").write_text("Is it an artifact?")
    assert read_prompts("mcq", folder).own == ("q1",)


def test_a_readme_alone_is_no_text(folder: Path) -> None:
    (folder / "readme.md").write_text("What this is.")
    assert "contains no prompts" in refused(folder)


@pytest.mark.parametrize("protocol", prompt_names())
def test_the_table_names_every_text_and_says_what_every_variable_is(protocol: str) -> None:
    page = variables_page(protocol)
    files = text_files(protocol)
    assert [file.file for file in files] == [f"{name}.md" for name in prompt_set(protocol).prompts]
    for file in files:
        assert f"| `{file.file}` |" in page
        for variable in file.names:
            assert variable in VARIABLES, f"say in VARIABLES what ${variable} stands for"
            assert f"| `${variable}` | {VARIABLES[variable]} |" in page


def test_every_optional_variable_is_described_too() -> None:
    assert VARIABLES.keys() >= OPTIONAL


def test_nothing_else_is_written_over(folder: Path) -> None:
    (folder / "q1.md").write_text("Mine.")
    with pytest.raises(UsageError, match=re.escape("q1.md already exists with another prompt")):
        write_prompts("mcq", folder)
    assert [path.name for path in folder.iterdir()] == ["q1.md"]
    write_prompts("mcq", folder, force=True)
    assert read_prompts("mcq", folder).own == ()


@pytest.mark.parametrize("set_id", ["", "@", "mcq", "mcq@00000000", "../mcq@1", "__pycache__@1"])
def test_no_other_id_is_ours(set_id: str) -> None:
    assert not is_ours(set_id)


def test_the_ids_of_the_package_are_ours() -> None:
    assert is_ours(prompt_set("mcq").id)
