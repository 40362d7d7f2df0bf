"""Who may do what: every route, with no token and with each role."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from fastapi.routing import iter_route_contexts

from tests.service.api.conftest import ADDRESS, API, Site
from uncanny.service import ROLES, Role
from uncanny.service.api.app import service_app
from uncanny.service.api.auth import COOKIE, Rates
from uncanny.service.service import Service
from uncanny.service.web.pages import add_pages

JOB, SET, FILE = "job_" + "a" * 20, "set_" + "a" * 20, "file_" + "a" * 20
# The least role of each route; None for what everybody may see.
TABLE: dict[tuple[str, str], Role | None] = {
    ("GET", "/healthz"): None,
    ("GET", "/openapi.json"): None,
    ("GET", "/metrics"): "reader",
    ("GET", f"{API}/me"): "reader",
    ("GET", f"{API}/kinds"): "reader",
    ("GET", f"{API}/jobs"): "reader",
    ("POST", f"{API}/jobs"): "operator",
    ("GET", f"{API}/jobs/{{job_id}}"): "reader",
    ("DELETE", f"{API}/jobs/{{job_id}}"): "operator",
    ("POST", f"{API}/jobs/{{job_id}}/cancel"): "operator",
    ("POST", f"{API}/jobs/{{job_id}}/retry"): "operator",
    ("POST", f"{API}/jobs/{{job_id}}/limits"): "operator",
    ("GET", f"{API}/jobs/{{job_id}}/events"): "reader",
    ("GET", f"{API}/jobs/{{job_id}}/result"): "reader",
    ("GET", f"{API}/jobs/{{job_id}}/records"): "reader",
    ("GET", f"{API}/jobs/{{job_id}}/files"): "reader",
    ("GET", f"{API}/jobs/{{job_id}}/files/{{path:path}}"): "reader",
    ("GET", f"{API}/jobs/{{job_id}}/log"): "reader",
    ("GET", f"{API}/jobs/{{job_id}}/archive"): "reader",
    ("GET", f"{API}/jobs/{{job_id}}/findings"): "reader",
    ("POST", f"{API}/jobs/{{job_id}}/verdicts"): "reviewer",
    ("GET", f"{API}/jobs/{{job_id}}/reviews"): "reader",
    ("GET", f"{API}/jobs/{{job_id}}/agreement"): "reader",
    ("POST", f"{API}/images"): "operator",
    ("GET", f"{API}/images"): "reader",
    ("POST", f"{API}/images/{{set_id}}"): "operator",
    ("GET", f"{API}/images/{{set_id}}"): "reader",
    ("DELETE", f"{API}/images/{{set_id}}"): "operator",
    ("POST", f"{API}/files"): "operator",
    ("GET", f"{API}/files/{{file_id}}"): "reader",
    ("DELETE", f"{API}/files/{{file_id}}"): "operator",
    ("GET", f"{API}/audit"): "operator",
}


def routes(site: Site) -> Iterator[tuple[str, str]]:
    """What the application answers of the interface; pages have a table of their own."""
    for context in iter_route_contexts(site.app.routes):
        for method in getattr(context, "methods", None) or ():
            path = context.path
            assert path is not None
            if method != "HEAD" and (
                path.startswith(API) or path in ("/healthz", "/metrics", "/openapi.json")
            ):
                yield method, path


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Site, dict[Role, str]]]:
    """One service for all routes, with a token a role; nothing of it is changed."""
    with Service.open(tmp_path_factory.mktemp("roles")) as service:
        site = Site(service, service_app(service, rates=Rates(10**6, 10**6, 10**6)))
        yield site, {role: service.tokens.add(role, role) for role in ROLES}


def test_every_route_is_in_the_table(site: Site) -> None:
    assert sorted(routes(site)) == sorted(TABLE)


@pytest.mark.parametrize(("method", "path"), TABLE)
def test_a_route_wants_its_role(shared: tuple[Site, dict[Role, str]], method: str, path: str) -> None:
    site, tokens = shared
    address = path.replace("{path:path}", "run/a").format(job_id=JOB, set_id=SET, file_id=FILE)
    wanted = TABLE[method, path]
    with site.client() as nobody:
        status = nobody.request(method, address).status_code
        assert (status == 401) == (wanted is not None)
        assert (
            nobody.request(method, address, headers={"Authorization": "Bearer unc_x"}).status_code == status
        )
        assert nobody.request(method, address, headers={"Authorization": "Basic eDp5"}).status_code == status
        nobody.cookies.set(COOKIE, "unc_x")
        assert nobody.request(method, address, headers={"Origin": ADDRESS}).status_code == status
    for role, token in tokens.items():
        with site.client(token) as somebody:
            answer = somebody.request(method, address)
            allowed = wanted is None or ROLES.index(role) >= ROLES.index(wanted)
            assert (answer.status_code == 403) == (not allowed), answer.text
            assert answer.status_code != 401


def test_on_this_machine_no_token_is_needed_until_there_is_one(site: Site) -> None:
    with site.client() as client:
        assert client.get(f"{API}/me").json() == {"name": "local", "role": "operator", "via": "local"}
        token = site.service.tokens.add("ann", "reader")
        assert client.get(f"{API}/me").status_code == 401
        answer = client.get(f"{API}/me", headers={"Authorization": f"bearer {token}"})
        assert answer.json() == {"name": "ann", "role": "reader", "via": "token"}
        site.service.tokens.revoke("ann")
        assert client.get(f"{API}/me", headers={"Authorization": f"Bearer {token}"}).status_code == 401
        # The door stays shut where the last key is taken back.
        assert client.get(f"{API}/me").status_code == 401


def test_beyond_this_machine_nobody_is_local(site: Site) -> None:
    app = service_app(site.service, tokens_needed=True)
    with Site(site.service, app).client() as client:
        assert client.get(f"{API}/me").status_code == 401
        assert client.get("/healthz").status_code == 200


@pytest.mark.parametrize("header", ["X-Forwarded-For", "Forwarded", "X-Real-IP", "Via"])
def test_who_comes_by_a_proxy_is_not_local(site: Site, header: str) -> None:
    with site.client() as client:
        assert client.get(f"{API}/me", headers={header: "203.0.113.7"}).status_code == 401


def test_who_asks_too_often_is_told_when_to_come_again(site: Site) -> None:
    app = service_app(site.service, rates=Rates(reads=3, writes=2, logins=2))
    limited = Site(site.service, app)
    ann, bob = (site.service.tokens.add(name, "operator") for name in ("ann", "bob"))
    with limited.client(ann) as client:
        assert [client.get(f"{API}/me").status_code for _ in range(5)] == [200, 200, 200, 429, 429]
        answer = client.get(f"{API}/me")
        assert answer.json()["error"]["code"] == "too_many_requests"
        assert 1 <= int(answer.headers["Retry-After"]) <= 60
        address = f"{API}/jobs/{JOB}/cancel"
        assert [client.post(address).status_code for _ in range(3)] == [404, 404, 429]
    with limited.client(bob) as client:
        assert client.get(f"{API}/me").status_code == 200


def test_failed_attempts_of_an_address_never_lock_its_valid_tokens_out(site: Site) -> None:
    app = service_app(site.service, rates=Rates(logins=2))
    add_pages(app, site.service)
    limited = Site(site.service, app)
    ann = site.service.tokens.add("ann", "operator")
    with limited.client("unc_guessed") as client:
        assert [client.get(f"{API}/me").status_code for _ in range(4)] == [401, 401, 429, 429]
    with limited.client(ann) as client:
        assert client.get(f"{API}/me").status_code == 200
    with limited.client() as browser:
        browser.headers["Origin"] = ADDRESS
        assert browser.post("/login", json={"token": "unc_guessed"}).status_code == 429
        assert browser.post("/login", json={"token": ann}).status_code == 204
        assert browser.get("/").status_code == 200
    # Refused attempts past the limit write nothing.
    assert [line.action for line in site.service.audit.page().lines] == ["log_in"]
