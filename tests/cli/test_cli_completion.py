"""What shells complete, asked for as their scripts do."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.runs.e2e import uncanny_here


def completed(words: str, *, shell: str = "bash") -> list[str]:
    """What may stand in the place of the last of `words`."""
    done = uncanny_here(
        env={
            "_UNCANNY_COMPLETE": f"{shell}_complete",
            "COMP_WORDS": words,
            "COMP_CWORD": str(len(words.split(" ")) - 1),
        }
    )
    assert done.err == ""
    return [line.partition(",")[2] for line in done.out.splitlines()]


@pytest.mark.parametrize(
    ("words", "known"),
    [
        ("uncanny ann", {"annotate"}),
        ("uncanny mcq sc", {"score"}),
        ("uncanny annotate photos --model anth", {"anthropic/"}),
        ("uncanny mcq run scenes -m gem", {"gemini/"}),
        ("uncanny annotate photos --role integrator=de", {"integrator=demo", "integrator=deepinfra/"}),
        ("uncanny annotate photos --schedule pa", {"packed", "paper"}),
        ("uncanny annotate photos --conf", {"--config"}),
        ("uncanny mcq run sce", {"scenes"}),
        ("uncanny init mcq r", {"run"}),
    ],
)
def test_words_are_completed(words: str, known: set[str]) -> None:
    assert known & set(completed(words)), completed(words)


def test_files_are_completed_behind_a_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs" / "a").mkdir(parents=True)
    assert completed("uncanny mcq score scenes ours=ru") == ["ours=runs/"]
    assert completed("uncanny mcq score scenes ours=runs/") == ["ours=runs/a/"]
    # Of files without a name the shell knows more than a program.
    assert completed("uncanny mcq score scenes ru") == ["ru"]


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_each_shell_has_a_script(shell: str) -> None:
    done = uncanny_here(env={"_UNCANNY_COMPLETE": f"{shell}_source"})
    assert (done.code, done.err) == (0, "")
    assert f"_UNCANNY_COMPLETE={shell}_complete" in done.out
