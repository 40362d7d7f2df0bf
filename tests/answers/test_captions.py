"""The gates that labels and captions have to pass."""

from __future__ import annotations

import pytest

from uncanny.answers.writings import TextKind, failed_caption_gates, special_characters


@pytest.mark.parametrize(
    ("text", "kind", "failed"),
    [
        ("a red car", "label", ()),
        ("one two three four five", "label", ()),
        ("one two three four five six", "label", ("length",)),
        (" ".join(["word"] * 30), "caption", ()),
        (" ".join(["word"] * 31), "caption", ("length",)),
        ("A man's well-worn hat, on a chair.", "caption", ()),
        ("Ein großer Hund läuft über die Brücke", "caption", ()),
        ("一只狗", "label", ()),
        ("नमस्ते", "label", ()),
        ("dog (brown)", "label", ("special_characters",)),
        ('a sign that says "open"', "caption", ("special_characters",)),
        ("dog\ncat", "label", ("special_characters",)),
        ("dog 🐕", "label", ("special_characters",)),
        ("", "label", ("empty",)),
        ("...", "caption", ("empty",)),
        ("a/b c d e f g", "label", ("length", "special_characters")),
    ],
)
def test_each_text_says_which_gates_it_fails(text: str, kind: TextKind, failed: tuple[str, ...]) -> None:
    assert failed_caption_gates(text, kind) == failed


def test_the_number_of_words_can_be_another() -> None:
    assert failed_caption_gates("a red car", "label", most_words=2) == ("length",)


def test_special_characters_are_named_once_each_in_order() -> None:
    assert special_characters("a <b> [c] <d>") == ("<", ">", "[", "]")
    assert special_characters("plain words, it's well-known.") == ()
