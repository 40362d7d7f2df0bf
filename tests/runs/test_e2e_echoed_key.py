"""A server that hands the key on in its answers: it reaches no file."""

from __future__ import annotations

import base64
import gzip
import re
from pathlib import Path
from urllib.parse import quote

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from tests.runs.e2e import Done, check_no_traceback, pictures, uncanny_here
from uncanny.models.error_body import KeyMask, one_line, read_error_body

pytestmark = pytest.mark.slow

KEY = "sk-proj/Zq7_0123456789-abcdefXYZ"
ESCAPED = "".join(f"\\u{ord(character):04X}" if n % 3 else character for n, character in enumerate(KEY))
SLASHED = KEY.replace("/", "\\/")


def encoded(before: str, after: str, *, urlsafe: bool, padded: bool) -> str:
    """The key within a longer text, in base64."""
    code = base64.urlsafe_b64encode if urlsafe else base64.b64encode
    text = code(f"{before}{KEY}{after}".encode()).decode()
    return text if padded else text.rstrip("=")


ENCODED = [
    encoded(before, after, urlsafe=urlsafe, padded=padded)
    for before in ("", "x", "ab", "Authorization: Bearer ")
    for after in ("", ":", "}}", "\r\nHost: here\r\n")
    for urlsafe in (False, True)
    for padded in (False, True)
]
ANOMALY = {"name": "NAME", "phenomenon": "It is KEY.", "reasoning": "KEY", "severity": 7, "objects": ["KEY"]}


def answer(question: str, key: str) -> str:
    """A valid answer to any question of detection, MCQ and realism, with the key in it."""
    if "Is it realistic, so that" in question:
        text = "Assessment: KEY\n\nVerdict: Yes"
    elif "looks more real" in question:
        text = "KEY\nVerdict: First"
    elif "made by an image generator?" in question:
        text = "Verdict: Yes"
    elif "What in this picture could not be so" in question:
        text = orjson.dumps({"anomalies": [ANOMALY]}).decode().replace("NAME", "KEY in the picture")
    else:
        text = "KEY"
    return text.replace("KEY", key)


@pytest.fixture
def echo(httpserver: HTTPServer) -> HTTPServer:
    """Two protocols; `httpserver.key` is how the key is written."""
    httpserver.key = KEY  # type: ignore[attr-defined]

    def text_response(request: Request) -> str:
        assert KEY in request.headers.get("Authorization", "") + request.headers.get("x-api-key", "")
        content = orjson.loads(request.get_data())["messages"][-1]["content"]
        asked = content if isinstance(content, str) else " ".join(part.get("text", "") for part in content)
        return answer(asked, httpserver.key)  # type: ignore[attr-defined]

    def chat(request: Request) -> Response:
        message = {"role": "assistant", "content": text_response(request)}
        body = {"model": f"m {KEY}", "choices": [{"message": message, "finish_reason": "stop"}]}
        return Response(orjson.dumps(body), headers={"x-request-id": KEY}, content_type="application/json")

    def messages(request: Request) -> Response:
        content = [{"type": "text", "text": text_response(request)}]
        body = {"type": "message", "model": KEY, "content": content, "stop_reason": "end_turn"}
        return Response(orjson.dumps(body), headers={"request-id": KEY}, content_type="application/json")

    httpserver.expect_request("/v1/chat/completions").respond_with_handler(chat)
    httpserver.expect_request("/v1/messages").respond_with_handler(messages)
    return httpserver


def here(*arguments: object) -> Done:
    return uncanny_here(*arguments, env={"OPENAI_API_KEY": KEY, "ANTHROPIC_API_KEY": KEY})


def asked(server: HTTPServer, provider: str) -> tuple[str, ...]:
    url = server.url_for("" if provider == "anthropic" else "/v1")
    return "--model", f"{provider}/gpt-4o", "--base-url", url


def decodable(text: bytes) -> bool:
    """Whether any run of base64 in a text has a part of the key that tells it."""
    for run in set(re.findall(rb"[A-Za-z0-9+/_-]{12,}", text.replace(b"\\/", b"/"))):
        plain = run.translate(bytes.maketrans(b"-_", b"+/"))
        for start in range(4):
            part = plain[start:]
            if KEY[8:18].encode() in base64.b64decode(part[: len(part) // 4 * 4]):
                return True
    return False


def check_nowhere(folder: Path, done: Done) -> None:
    """No file below `folder` has the key, nor has what stands packed in a page, nor what was printed."""
    check_no_traceback(done)
    assert KEY not in done.out + done.err
    for file in filter(Path.is_file, folder.rglob("*")):
        data = file.read_bytes()
        packed = re.findall(rb'"packed":"([A-Za-z0-9+/=]+)"', data)
        for text in (data, *(gzip.decompress(base64.b64decode(each)) for each in packed)):
            assert KEY.encode() not in text, file
            assert not decodable(text), file
            assert orjson.dumps(KEY) not in text, file
            assert KEY.partition("/")[2].encode() not in text, file


WRITTEN = {
    "plain": KEY,
    "escaped": ESCAPED,
    "slashed": SLASHED,
    "base64": encoded("", "", urlsafe=False, padded=True),
    "base64 of the header": encoded("Bearer ", "", urlsafe=True, padded=False),
    "base64, slashed": encoded("", "", urlsafe=False, padded=True).replace("/", "\\/"),
}


@pytest.mark.parametrize("written", WRITTEN.values(), ids=WRITTEN)
@pytest.mark.parametrize("provider", ["openai", "anthropic"])
def test_detection(provider: str, written: str, echo: HTTPServer, tmp_path: Path) -> None:
    echo.key = written  # type: ignore[attr-defined]
    images = pictures(tmp_path / "in", 2)
    done = here("detect", images, *asked(echo, provider), "-o", tmp_path / "run")
    assert done.code == 0
    check_nowhere(tmp_path / "run", done)
    records = (tmp_path / "run" / "annotations.jsonl").read_text()
    assert "[key]." in records


@pytest.mark.parametrize("provider", ["openai", "anthropic"])
def test_multiple_choice_and_realism(provider: str, echo: HTTPServer, tmp_path: Path) -> None:
    done = here("mcq", "run", "scenes", *asked(echo, provider), "--limit", "2", "-o", tmp_path / "mcq")
    check_nowhere(tmp_path / "mcq", done)
    assert '"raw":"[key]"' in (tmp_path / "mcq" / "answers.jsonl").read_text()
    done = here(
        "realism", "run", "scenes", *asked(echo, provider), "--limit", "2", "-o", tmp_path / "realism"
    )
    assert done.code == 0
    check_nowhere(tmp_path / "realism", done)
    assert "Assessment: [key]" in (tmp_path / "realism" / "verdicts.jsonl").read_text()


def test_what_is_masked() -> None:
    mask = KeyMask([KEY, "none", "EMPTY", "token-abc123", ""])
    assert mask(f"a {KEY}{KEY} b") == "a [key][key] b"
    assert mask(f'{{"x": "{ESCAPED}"}}') == '{"x": "[key]"}'
    assert mask("none of it is EMPTY, sk-other-key") == "none of it is EMPTY, sk-other-key"
    assert mask("token-abc123") == "[key]"
    assert KeyMask([])("a \\u0061") == "a \\u0061"


@pytest.mark.parametrize("around", ["{}", "a {} b", '{{"x": "{}"}}', "data:{}", "{}{}"])
def test_base64_of_the_key_is_masked_like_the_key(around: str) -> None:
    mask = KeyMask([KEY])
    for written in ENCODED:
        text = around.format(written, written)
        for masked in (
            mask(text),
            mask(orjson.dumps(text).decode().replace("/", "\\/")),
            mask("".join(f"\\u{ord(each):04x}" for each in text)),
            one_line(text, [KEY]),
            read_error_body(orjson.dumps({"error": {"message": text}}), [KEY]).message,
        ):
            assert "[key]" in masked
            assert not decodable(masked.encode()), (text, masked)


def test_a_whole_word_of_base64_goes_with_its_padding() -> None:
    assert KeyMask([KEY])(f"I got {base64.b64encode(KEY.encode()).decode()}.") == "I got [key]."
    assert KeyMask([KEY])(f"I got {base64.b64encode(b'x' + KEY.encode()).decode()}.") == "I got e[key]."


@given(
    st.text(st.characters(codec="utf-8"), min_size=8, max_size=60),
    st.binary(max_size=9),
    st.binary(max_size=9),
)
def test_whatever_the_key_is_and_whatever_stands_around_it(key: str, before: bytes, after: bytes) -> None:
    text = base64.b64encode(before + key.encode() + after).decode()
    assert KeyMask([key])(text) != text
    assert KeyMask([key])(text.replace("+", "-").replace("/", "_").rstrip("=")) != text


@pytest.mark.parametrize("form", [KEY.encode().hex(), KEY.encode().hex().upper(), quote(KEY, safe="")])
def test_other_ways_to_write_it_are_masked_too(form: str) -> None:
    assert KeyMask([KEY])(f"a {form} b") == "a [key] b"
    assert one_line(f"a {form} b", [KEY]) == "a [key] b"
