"""Base URLs: what is taken, what is sent, what is shown, and which proxy is between."""

from __future__ import annotations

import base64

import pytest
import yarl
from hypothesis import example, given
from hypothesis import strategies as st
from openai import AsyncOpenAI

from uncanny.errors import UsageError
from uncanny.models.addresses import LONGEST_URL, parse_address

PASSWORD = "Hunter2Secret"


@pytest.fixture(autouse=True)
def without_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:8000/v1",
        "https://api.openai.com/v1/",
        "HTTPS://Api.Example.COM:443/V1",
        "http://[::1]:8000/v1",
        "http://[2001:db8:0:0::1]/v1",
        "http://bücher.example/v1",
        "http://gpu_box-7.lan:9000/some/path/v1",
        "http://localhost/%7Euser/ä/v1",
    ],
)
def test_a_plain_address_is_what_the_sdk_makes_of_it_so_kept_answers_are_found(url: str) -> None:
    address = parse_address(url)
    client = AsyncOpenAI(api_key="any", base_url=url)
    assert address.url == address.shown == address.identity == str(client.base_url)
    assert (address.parameters, address.authorization, address.secrets, address.proxy) == ({}, None, (), None)
    assert parse_address(f"  {url}\n").url == address.url


@pytest.mark.parametrize("url", ["https://api.anthropic.com", "https://api.anthropic.com/"])
def test_an_address_without_a_path_stands_for_the_server_without_a_slash(url: str) -> None:
    assert parse_address(url).identity == "https://api.anthropic.com"
    assert parse_address(url).url == "https://api.anthropic.com/"


@pytest.mark.parametrize(
    ("url", "shown", "identity"),
    [
        (f"https://user:{PASSWORD}@host/v1", "https://[key]@host/v1/", "https://host/v1/"),
        (f"https://{PASSWORD}@host/v1", "https://[key]@host/v1/", "https://host/v1/"),
        (f"https://host/v1?api_key={PASSWORD}", "https://host/v1/?api_key=[key]", "https://host/v1/"),
        (
            f"https://host/v1?api-version=2024-10-21&code={PASSWORD}",
            "https://host/v1/?api-version=2024-10-21&code=[key]",
            "https://host/v1/?api-version=2024-10-21",
        ),
        (
            f"https://host/v1?way=long-{PASSWORD}",
            "https://host/v1/?way=[key]",
            f"https://host/v1/?way=long-{PASSWORD}",
        ),
    ],
)
def test_credentials_are_kept_for_the_call_and_shown_nowhere(url: str, shown: str, identity: str) -> None:
    address = parse_address(url)
    assert (address.shown, address.identity) == (shown, identity)
    assert any(PASSWORD in secret for secret in address.secrets)
    assert PASSWORD not in f"{address} {address!r}"
    assert "?" not in address.url
    assert "@" not in address.url


def test_ordinary_words_are_not_taken_out_of_error_bodies() -> None:
    address = parse_address("https://host/v1?region=europe-west&form=description&key=k")
    assert address.shown == "https://host/v1/?region=[key]&form=[key]&key=[key]"
    assert address.secrets == ("k",)


def test_what_goes_with_every_call() -> None:
    address = parse_address("https://us%40er:pa%20ss@host/v1?api_key=a%2Fb&x=")
    assert address.parameters == {"api_key": "a/b", "x": ""}
    assert address.authorization is not None
    assert base64.b64decode(address.authorization.removeprefix("Basic ")) == b"us@er:pa ss"
    assert {"pa%20ss", "pa ss", "a/b", "a%2Fb", address.authorization[6:]} <= set(address.secrets)


@pytest.mark.parametrize(
    ("url", "without", "expected"),
    [
        ("http://h/v1/chat/completions", ("/chat/completions",), "http://h/v1/"),
        ("http://h/v1/chat/completions/", ("/chat/completions",), "http://h/v1/"),
        ("http://h/chat/completions", ("/chat/completions",), "http://h/"),
        ("http://h/v1", ("/messages", "/v1"), "http://h/"),
        ("http://h/anthropic/v1/messages", ("/messages", "/v1"), "http://h/anthropic/"),
        ("http://h/v1beta", ("/messages", "/v1"), "http://h/v1beta/"),
    ],
)
def test_what_calls_add_themselves_is_left_out(url: str, without: tuple[str, ...], expected: str) -> None:
    assert parse_address(url, without=without).url == expected


@pytest.mark.parametrize(
    ("url", "versioned"),
    [
        ("http://h", False),
        ("http://h/api/", False),
        ("http://v1/", False),
        ("http://h/v12x-ray", False),
        ("http://h/v1", True),
        ("http://h/v1beta/openai/", True),
        ("http://h/api/v3/x", True),
    ],
)
def test_whether_the_path_names_a_version(url: str, versioned: bool) -> None:
    assert parse_address(url).has_version is versioned


def test_the_same_address_with_a_version() -> None:
    address = parse_address(f"http://u:{PASSWORD}@h:1/api?key=k").with_version()
    assert (address.url, address.shown) == ("http://h:1/api/v1/", "http://[key]@h:1/api/v1/?key=[key]")
    assert address.identity == "http://h:1/api/"


BAD = [
    "",
    "gpu:8000",
    "ftp://host/v1",
    "http://",
    "http:///v1",
    "http://:8000/v1",
    "http://host:99999/v1",
    "http://host:0/v1",
    "http://host:-1/v1",
    "http://host:eighty/v1",
    "http://[::1/v1",
    "http://[host]/v1",
    "http://::1]/v1",
    "http://[v1.x]/v1",
    "http://host/v1\nX-Evil: 1",
    "http://ho st/v1",
    "http://ho\tst/v1",
    "http://host/\x1b[31mv1",
    "http://" + "a" * 64 + ".example/v1",
    "http://" + "a." * 130 + "example/v1",
    "http://host..example/v1",
    "http://ho<st/v1",
    "http://host\\evil/v1",
    "http://xn--/v1",
    "http://host/" + "x" * LONGEST_URL,
    "http://host/v1#part",
    "http://ho\u202est/v1",
]


@pytest.mark.parametrize("url", BAD, ids=lambda url: repr(url)[:30])
def test_an_address_that_no_call_can_go_to_is_refused(url: str) -> None:
    with pytest.raises(UsageError, match="is not a base URL") as caught:
        parse_address(url)
    assert "\n" not in str(caught.value)
    assert "\x1b" not in str(caught.value)
    assert len(str(caught.value)) < 600


@pytest.mark.parametrize(
    "url",
    [
        "user:{}@host/v1",
        "htp://user:{}@host/v1",
        "http://user:{}@host:99999/v1",
        "http://user:{}#x@host/v1",
        "http://user:{}/x@host/v1",
        "http://user:{}?x@host/v1",
        "http://user:{}@[::1/v1",
        "http://{}@host:x/v1",
        "http://host:x/v1?api_key={}",
        "host/v1?api_key={}",
        "http://user:x{} y@host/v1",
    ],
)
def test_a_broken_address_does_not_give_its_password_away(url: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_address(url.format(PASSWORD))
    assert not any(part in str(caught.value) for part in ("Hunter", "2Secret"))


PARTS = st.sampled_from([
    "http", "https", "://", "//", ":", "@", "/", "?", "#", "[", "]", "%", "%00", "&", "=", ".", "..", "host",
    "v1", "user", "::1", "8000", "99999999999999999999", "é", "ß", "\u3002", "xn--", "xn--a", " ", "\n", "-",
])  # fmt: skip


@example("://.")
@given(st.lists(PARTS | st.text(max_size=3), max_size=12).map("".join) | st.text(max_size=40))
def test_any_text_is_an_address_or_wrong_use(text: str) -> None:
    for url in (text, f"http://{text}", f"http://host{text}"):
        try:
            address = parse_address(url)
        except UsageError:
            continue
        assert address.url.isprintable()
        assert address.url.startswith(("http://", "https://"))
        assert address.url.endswith("/")
        assert parse_address(address.url).url == address.url
        assert yarl.URL(address.url).host  # what the transport makes of it


@pytest.fixture
def proxies(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    monkeypatch.setenv("HTTPS_PROXY", f"http://me:{PASSWORD}@proxy:3128")
    monkeypatch.setenv("http_proxy", "plain-proxy:3128")
    return monkeypatch


def test_the_proxy_of_the_environment_is_named_without_its_password(proxies: pytest.MonkeyPatch) -> None:
    proxy = parse_address("https://api.example/v1").proxy
    assert proxy is not None
    assert (proxy.url, proxy.shown) == (f"http://me:{PASSWORD}@proxy:3128", "http://[key]@proxy:3128")
    assert PASSWORD in proxy.secrets
    assert PASSWORD not in repr(proxy)
    plain = parse_address("http://api.example/v1").proxy
    assert plain is not None
    assert plain.url == "http://plain-proxy:3128"
    proxies.delenv("http_proxy")
    assert parse_address("http://api.example/v1").proxy is None
    proxies.setenv("ALL_PROXY", "http://last:1")
    assert parse_address("http://api.example/v1").proxy is not None


HERE = [
    "127.0.0.1", "127.1.2.3", "127.0.0.1.", "127.1", "127.0.1", "2130706433", "0x7f000001", "0x7f.1",
    "0177.0.0.1", "017700000001", "0", "0.0.0.0", "0x0", "localhost", "LOCALHOST", "localhost.",
    "api.localhost", "api.localhost.", "localhost.localdomain", "ip6-localhost", "[::1]", "[::]",
    "[0:0:0:0:0:0:0:1]",
    "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "\uff11\uff12\uff17.0.0.1", "127\u30020\u30020\u30021",
    "\uff4c\uff4f\uff43\uff41\uff4c\uff48\uff4f\uff53\uff54",
]  # fmt: skip
ELSEWHERE = [
    "api.example", "10.0.0.1", "128.1", "2130706432.example", "1.1", "167772161", "localhost.example",
    "notlocalhost", "127.0.0.1.example", "[fd00::1]", "[::ffff:10.0.0.1]", "0x7f000001.org",
]  # fmt: skip


@pytest.mark.parametrize("host", HERE)
@pytest.mark.parametrize("scheme", ["http", "https"])
@pytest.mark.usefixtures("proxies")
def test_no_proxy_is_between_this_machine_and_itself(scheme: str, host: str) -> None:
    assert parse_address(f"{scheme}://{host}:8000/v1").proxy is None


@pytest.mark.parametrize("host", ELSEWHERE)
@pytest.mark.usefixtures("proxies")
def test_a_proxy_is_between_this_machine_and_others(host: str) -> None:
    assert parse_address(f"http://{host}:8000/v1").proxy is not None


@pytest.mark.parametrize(
    ("no_proxy", "host", "through"),
    [
        ("*", "api.example", False),
        ("api.example", "api.example", False),
        (".example", "api.example", False),
        ("example", "api.example", False),
        ("other, api.example:8000", "api.example", False),
        ("api.example:9000", "api.example", True),
        ("ample", "api.example", True),
        ("10.0.0.0/8", "10.1.2.3", False),
        ("10.0.0.0/8,,nonsense/99", "11.1.2.3", True),
        ("10.1.2.3", "10.1.2.3", False),
        ("fd00::/8", "[fd00::1]", False),
        ("", "api.example", True),
    ],
)
def test_no_proxy_takes_names_and_networks(
    no_proxy: str, host: str, through: bool, proxies: pytest.MonkeyPatch
) -> None:
    proxies.setenv("NO_PROXY", no_proxy)
    assert (parse_address(f"http://{host}:8000/v1").proxy is not None) is through


@pytest.mark.parametrize(
    "proxy", ["socks5://proxy:1080", f"http://me:{PASSWORD}@proxy:x", "http://", "http://[x"]
)
def test_a_proxy_that_cannot_be_used_is_refused(proxy: str, proxies: pytest.MonkeyPatch) -> None:
    proxies.setenv("HTTPS_PROXY", proxy)
    with pytest.raises(UsageError, match=r"HTTPS_PROXY.* cannot be used.*NO_PROXY") as caught:
        parse_address("https://api.example/v1")
    assert PASSWORD not in str(caught.value)
    assert parse_address("https://127.0.0.1/v1").proxy is None
