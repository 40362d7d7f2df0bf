"""`--config`: what a file of options says, what goes before it, and how wrong ones are refused."""

from __future__ import annotations

from pathlib import Path

import click
import orjson
import pytest

from tests.bundled_runs import BundledRuns
from tests.cli.complaints import one_line
from tests.runs.e2e import uncanny_here
from uncanny.cli import uncanny
from uncanny.cli.common.config import commands, key_of, parameters
from uncanny.demo.scenes import scenes


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.slow
def test_a_file_gives_options_and_arguments_and_its_paths_start_from_it(
    tmp_path: Path, bundled_run: BundledRuns, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    bundled_run("mcq").copy(tmp_path / "runs" / "m")
    file = write(
        tmp_path / "conf" / "mcq.toml",
        'resamples = 7\n[mcq]\nitems = "scenes"\nseed = 1\n[mcq.score]\nseed = 2\n'
        'answers = { ours = "../runs/m" }\njson = "../scores.json"\nno-report = true\n'
        "[realism.run]\nmodel = []\n",
    )
    done = uncanny_here("mcq", "score", "--config", file)
    assert (done.code, done.err) == (0, "")
    assert any(line.startswith("ours ") for line in done.out.splitlines())
    assert (tmp_path / "scores.json").is_file()
    # What is on the command line goes first, a list as a whole.
    again = uncanny_here("mcq", "score", "scenes", "b=runs/m", "--config", file, "--json", "-")
    assert again.code == 0, again.err
    assert "b" in again.out
    assert "ours" not in again.out


def test_the_environment_goes_before_the_file(tmp_path: Path) -> None:
    image = scenes()[0].image_path
    file = write(tmp_path / "run.toml", 'model = "openai/x"\nbase-url = "nonsense"\nconcurrency = 3\n')
    # A server's address from the file is not even looked at where the variable has one, nor is the number.
    variables = {"OPENAI_BASE_URL": "http://127.0.0.1:9/v1", "UNCANNY_CONCURRENCY": "5"}
    refused = uncanny_here("annotate", image, "--dry-run", "--config", file)
    assert (refused.code, refused.err.splitlines()[-1]) == (
        2,
        f"--base-url is set in {file}, line 2.",
    ), refused.err
    assert uncanny_here("annotate", image, "--dry-run", "--config", file, env=variables).code == 0


def test_a_message_says_which_options_are_from_the_file(tmp_path: Path) -> None:
    file = write(tmp_path / "run.toml", 'model = "demo"\n\n[annotate]\nlimit = 0\n')
    done = uncanny_here("annotate", "photos", "--dry-run", "--config", file)
    assert done.code == 2
    assert done.err.splitlines()[1] == f"--limit is set in {file}, line 4."
    given = uncanny_here("annotate", "photos", "--dry-run", "--config", file, "--limit", "0")
    one_line(given, "--limit must be from 1")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "[annotate]\nlimt = 3",
            ("line 2", "`uncanny annotate` has no option 'limt'", "Did you mean limit?"),
        ),
        ("max_cost_usd = 3", ("line 1", "Write max-cost-usd")),
        ("timeout_s = 3", ("Write timeout",)),
        ("[annotate]\nno-cache = true", ("Write cache = false",)),
        ("[anotate]\nlimit = 3", ("line 1", "[anotate] is not a command", "Did you mean annotate?")),
        ("[mcq.score]\nlimit = 3", ("`uncanny mcq score` has no option 'limit'",)),
        ('limit = "3"', ("line 1", "limit must be a whole number, not '3'")),
        ("limit = true", ("limit must be a whole number, not True")),
        ("cache = 1", ("cache must be true or false, not 1",)),
        ('schedule = "papre"', ('one of "packed", "paper", "single"',)),
        ("[token.add]\nname = 1", ("`uncanny token` does not take options from a file",)),
        ("model = demo", ("is not valid TOML", "line 1")),
        ('openai-api-key = "x"', ("must not contain keys", "OPENAI_API_KEY", "line 1")),
        ('model = "anthropic/x"\napi_key = "abc"', ("ANTHROPIC_API_KEY",)),
        ('language = "sk-abcdefghijklmnop0123"', ("must not contain keys",)),
        ('base-url = "openai=http://ann:pass@h/v1"', ("OPENAI_BASE_URL",)),
        ('[serve]\ndatabase = "postgresql://ann:pass@h/db"', ("UNCANNY_DATABASE",)),
    ],
)
def test_what_is_wrong_is_refused_with_its_place(tmp_path: Path, text: str, words: tuple[str, ...]) -> None:
    file = write(tmp_path / "run.toml", text + "\n")
    done = uncanny_here("annotate", "photos", "--model", "demo", "--dry-run", "--config", file)
    one_line(done, str(file), *words)
    assert not any(secret in done.err for secret in ("abc", "ann:pass"))


def test_what_is_only_named_like_a_key_is_taken(tmp_path: Path) -> None:
    image = scenes()[0].image_path
    words = (
        "sketches-of-buildings",
        "hf-dataset-generated-v1",
        "sk-texture-errors-v2",
        "pk_photographs_2024",
    )
    for word in words:
        file = write(tmp_path / "run.toml", f'language = "{word}"\nout = "sk-abcdefghijklmnop0123"\n')
        assert uncanny_here("annotate", image, "--model", "demo", "--dry-run", "--config", file).code == 0
    # Made as OpenAI, OpenRouter, Anthropic, DeepSeek, Groq, Hugging Face and Google make theirs.
    for key in (
        "sk-proj-Ab3dEf6hIj9lMn2pQr5tUv8xYz1-T3BlbkFJ",
        "sk-or-v1-0123456789abcdef0123456789abcdef",
        "sk-ant-api03-Zx8Yw7Vu6Ts5Rq4Po3Nm2Lk1_Ji0Hg9-AA",
        "sk-0f1e2d3c4b5a69788796a5b4c3d2e1f0",
        "gsk_Ab3dEf6hIj9lMn2pQr5tUv8xYz1Ab3dEf6hIj9",
        "hf_AbCdEfGhIjKlMnOpQrStUvWxYzAbCdEfGh",
        "AIzaSyA1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q",
    ):
        file = write(tmp_path / "run.toml", f'language = "{key}"\n')
        done = uncanny_here("annotate", image, "--model", "demo", "--dry-run", "--config", file)
        one_line(done, "looks like one")
        assert key not in done.err


def test_it_stands_behind_the_command() -> None:
    for words in (("--config", "run.toml", "annotate"), ("mcq", "--config", "run.toml", "run")):
        done = uncanny_here(*words)
        assert done.code == 2
        assert "No such option '--config'. Those of a command stand behind it." in done.err


def test_odd_files(tmp_path: Path) -> None:
    image = scenes()[0].image_path
    call = ("annotate", image, "--dry-run", "--config")
    marked = tmp_path / "marked.toml"
    marked.write_bytes(b"\xef\xbb\xbfmodel = 'demo'\r\nannotate.limit = 1\r\n")
    assert uncanny_here(*call, marked).code == 0
    one_line(uncanny_here(*call, tmp_path), "cannot be read")
    binary = tmp_path / "binary.toml"
    binary.write_bytes(b"\xff\xfe\x00")
    one_line(uncanny_here(*call, binary), "is not UTF-8 text")
    one_line(uncanny_here(*call, write(tmp_path / "deep.toml", "a = " + "[" * 100_000)), "is not valid TOML")
    # Long lines are looked through once.
    long = write(
        tmp_path / "long.toml", "x = '" + "[ " * 200_000 + "'\n[" + " " * 200_000 + "annotate]\nlimt = 1\n"
    )
    one_line(uncanny_here(*call, write(long, long.read_text("utf-8").partition("\n")[2])), "line 2", "limit")


def test_no_file_is_read_that_is_not_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "uncanny.toml", 'model = "demo"\nlimit = 0\n')
    image = scenes()[0].image_path
    variables = {"UNCANNY_CONFIG": "uncanny.toml", "UNCANNY_ANNOTATE_CONFIG": "uncanny.toml"}
    done = uncanny_here("annotate", image, "--model", "demo", "--dry-run", "--json", env=variables)
    assert done.code == 0, done.err
    missing = uncanny_here("annotate", image, "--dry-run")
    assert "uncanny.toml is here; it is read with --config uncanny.toml." in missing.err


def test_an_option_of_every_command_has_a_key_of_its_own() -> None:
    found = dict(commands(uncanny))
    assert ("annotate",) in found
    assert ("mcq", "run") in found
    assert not {("init",), ("prompts",), ("demo",)} & found.keys()
    for words, command in found.items():
        keys = [
            key_of(each)
            for each in command.params
            if isinstance(each, click.Argument) or (each.expose_value and not each.is_eager)
        ]
        assert len(keys) == len(set(keys)) == len(parameters(command)), words


@pytest.mark.slow
def test_a_service_is_sent_what_the_file_says(tmp_path: Path) -> None:
    """As if it had been given: nothing listens there, so it is the address that fails."""
    file = write(tmp_path / "run.toml", 'server = "http://127.0.0.1:9"\nmodel = "demo"\nrun = "r"\n')
    done = uncanny_here("annotate", scenes()[0].image_path, "--config", file)
    assert done.code == 2, done
    assert "http://127.0.0.1:9" in done.err


def test_a_forecast_is_that_of_the_same_options(tmp_path: Path) -> None:
    file = write(tmp_path / "run.toml", 'model = "demo"\n[annotate]\nschedule = "paper"\nrepeats = 2\n')
    image = scenes()[0].image_path
    by_file = uncanny_here("annotate", image, "--dry-run", "--json", "--config", file)
    by_hand = uncanny_here(
        "annotate", image, "--dry-run", "--json", "--model", "demo", "--schedule", "paper", "--repeats", "2"
    )
    assert by_file.code == by_hand.code == 0
    assert orjson.loads(by_file.out) == orjson.loads(by_hand.out)


def test_the_example_of_the_page_is_taken(tmp_path: Path) -> None:
    page = Path(__file__).parents[2] / "docs" / "configuration.md"
    example = page.read_text(encoding="utf-8").partition("```toml\n")[2].partition("```")[0]
    file = write(tmp_path / "run.toml", example)
    done = uncanny_here("annotate", scenes()[0].image_path, "--dry-run", "--json", "--config", file)
    assert done.code == 0, done.err


def test_a_long_value_that_begins_like_a_key_is_read_at_once(tmp_path: Path) -> None:
    # A pattern that tries each way through it would take hours for this one.
    file = write(tmp_path / "run.toml", f'language = "sk-{"a1" * 20_000}!"\n')
    assert "looks like one" not in uncanny_here("annotate", "x", "--dry-run", "--config", file).err


def test_a_device_without_an_end_is_no_file_of_options() -> None:
    one_line(uncanny_here("mcq", "plan", "--config", "/dev/zero"), "is a device, not a file")
