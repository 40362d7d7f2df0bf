"""Who asks, and what they may do: a bearer token, or the cookie of a session that a login page opened.

While no token was ever made and nobody but this machine can reach the service, everybody is `local` and may
do everything. From the first token on, and beyond loopback from the start, one is needed.
"""

from __future__ import annotations

import math
import time
from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass
from typing import Annotated, Any, Final, Literal

from fastapi import Depends, Request, Response
from fastapi.encoders import jsonable_encoder
from fastapi.security import APIKeyCookie, HTTPBearer
from limits import RateLimitItemPerMinute
from limits.storage import MemoryStorage
from limits.strategies import SlidingWindowCounterRateLimiter
from sqlalchemy import Connection
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers

from uncanny.service import ROLES, Role
from uncanny.service.api.errors import ApiError
from uncanny.service.service import Service
from uncanny.service.store.tokens import SESSION_S, Token

Group = Literal["reads", "writes", "logins"]


@dataclass(frozen=True, slots=True)
class Rates:
    """Requests a minute. `logins` counts the attempts that failed, of one address."""

    reads: int = 6_000
    writes: int = 1_200
    logins: int = 20


class RateLimiter:
    """Safe from threads."""

    def __init__(self, rates: Rates) -> None:
        self._limits = {name: RateLimitItemPerMinute(most) for name, most in asdict(rates).items()}
        self._limiter = SlidingWindowCounterRateLimiter(MemoryStorage())

    def hit(self, group: Group, key: str) -> None:
        """Count one. Raises ApiError 429, which says when to come again."""
        if self._limiter.hit(self._limits[group], group, key):
            return
        reset = self._limiter.get_window_stats(self._limits[group], group, key).reset_time
        wait = max(1, math.ceil(reset - time.time()))
        raise ApiError(429, headers={"Retry-After": str(min(wait, 60))})


COOKIE: Final = "uncanny_session"
LOCAL: Final = "local"
_MOST_SECRET: Final = 200
_NEEDS: Final = "needs_"
# For the description of the interface alone: the headers are read by `Gate`.
_SCHEMES: Final = (
    HTTPBearer(auto_error=False, description="A token of `uncanny token add`."),
    APIKeyCookie(name=COOKIE, auto_error=False, description="What the login page sets."),
)
SECURITY_SCHEMES: Final[dict[str, Any]] = {
    scheme.scheme_name: jsonable_encoder(scheme.model, by_alias=True, exclude_none=True)
    for scheme in _SCHEMES
}
SECURITY: Final[list[dict[str, list[str]]]] = [{name: []} for name in SECURITY_SCHEMES]


@dataclass(frozen=True, slots=True)
class Who:
    """Somebody who asks. `name` is the token's, and that of their verdicts and jobs."""

    name: str
    role: Role
    via: Literal["local", "token", "session"]

    def may(self, role: Role) -> bool:
        return ROLES.index(self.role) >= ROLES.index(role)


class Gate:
    """Tells who a request is from."""

    def __init__(self, service: Service, rates: RateLimiter, *, tokens_needed: bool) -> None:
        """With `tokens_needed` nobody is believed to be local."""
        self._service, self._tokens_needed = service, tokens_needed
        self.rates = rates

    def who(self, request: Request) -> Who | None:
        """None where nothing says it, or what does is no token or session that is in use."""
        secret = bearer(request.headers)
        if secret is not None:
            token = self._service.tokens.find(secret)
            if token is None:
                self._count_failure(request)
            return _who(token, "token")
        session = request.cookies.get(COOKIE)
        if session is not None and 0 < len(session) <= _MOST_SECRET:
            who = _who(self._service.tokens.session(session), "session")
            if who is not None:
                return who
        if self._tokens_needed or _is_forwarded(request.headers) or self._service.tokens.any():
            return None
        return Who(LOCAL, "operator", "local")

    def log_in(self, request: Request, secret: str) -> str | None:
        """A session for the cookie; None where `secret` is not a token. Raises ApiError 429."""
        address, audit = address_of(request), self._service.audit

        def note(connection: Connection, token: Token) -> None:
            audit.add(connection, token.name, token.role, "log_in", address=address)

        fits = 0 < len(secret) <= _MOST_SECRET
        session = self._service.tokens.open_session(secret, note) if fits else None
        if session is None:
            self._count_failure(request)
            audit.write("nobody", "none", "log_in_failed", address=address)
        return session

    def _count_failure(self, request: Request) -> None:
        """Raises ApiError 429 past the limit.

        Only called once a token was looked up and not found: many people can share an address, and failures
        of one must not lock the others out. Nobody guesses 256 bits, so the limit only spares the log.
        """
        self.rates.hit("logins", address_of(request))

    def log_out(self, request: Request) -> None:
        session = request.cookies.get(COOKIE)
        if session is not None and 0 < len(session) <= _MOST_SECRET:
            self._service.tokens.close_session(session)


def set_session(request: Request, response: Response, session: str) -> None:
    """Give the browser its session. Over TLS, also that of a proxy ahead of us, it comes back by TLS only."""
    secure = request.url.scheme == "https" or request.headers.get("origin", "").startswith("https://")
    response.set_cookie(
        COOKIE, session, max_age=int(SESSION_S), path="/", httponly=True, samesite="strict", secure=secure
    )


def clear_session(response: Response) -> None:
    response.delete_cookie(COOKIE, path="/", httponly=True, samesite="strict")


def ambient(headers: Headers) -> bool:
    """Whether a browser sends by itself what a request is believed for: a cookie, and nothing else does."""
    return bearer(headers) is None and f"{COOKIE}=" in headers.get("cookie", "")


def bearer(headers: Headers) -> str | None:
    """The token of a header `Authorization: Bearer …`; None where there is none of that form."""
    scheme, _, secret = headers.get("authorization", "").partition(" ")
    secret = secret.strip()
    return secret if scheme.lower() == "bearer" and 0 < len(secret) <= _MOST_SECRET else None


def address_of(request: Request) -> str:
    """From where a request comes; that of a proxy where the server was not told to believe it."""
    return request.client.host if request.client is not None else "unknown"


def gate_of(request: Request) -> Gate:
    gate = request.app.state.gate
    assert isinstance(gate, Gate)
    return gate


def who_of(request: Request) -> Who | None:
    """Who asks, found out once a request; for pages that show something to everybody."""
    if not hasattr(request.state, "who"):
        request.state.who = gate_of(request).who(request)
    who: Who | None = request.state.who
    return who


def needs(role: Role) -> Callable[..., Awaitable[Who]]:
    """A dependency: who asks, who may do what `role` may. Raises ApiError 401, 403, 429."""

    async def check(request: Request) -> Who:
        return await let_in(request, role)

    check.__name__ = f"{_NEEDS}{role}"
    return check


async def let_in(request: Request, role: Role) -> Who:
    """The same ahead of all that a route reads, so that of strangers no body is. Raises as `needs`.

    A thread is taken only where the database has to say who it is.
    """
    if not hasattr(request.state, "who"):
        await run_in_threadpool(who_of, request)
    who: Who | None = request.state.who
    if who is not None and getattr(request.state, "let_in", None) == role:
        return who
    if who is None:
        raise ApiError(401)
    if who.via != "local":
        reads = request.method in ("GET", "HEAD")
        gate_of(request).rates.hit("reads" if reads else "writes", who.name)
    if not who.may(role):
        raise ApiError(403, f"This needs a token of the role {role}; yours is {who.role}.")
    request.state.let_in = role
    return who


def role_of(dependency: object) -> Role | None:
    """The role that a dependency of `needs` wants; None of another one."""
    name = getattr(dependency, "__name__", "")
    return next((role for role in ROLES if name == f"{_NEEDS}{role}"), None)


# For routes that need not know who asks, as `dependencies`; then for those that do.
for_readers: Final = [Depends(needs("reader"))]
for_reviewers: Final = [Depends(needs("reviewer"))]
for_operators: Final = [Depends(needs("operator"))]
Reader = Annotated[Who, *for_readers]
Reviewer = Annotated[Who, *for_reviewers]
Operator = Annotated[Who, *for_operators]


def _is_forwarded(headers: Headers) -> bool:
    """Whether a proxy says that it stands between: then the sender is not on this machine."""
    return any(name in headers for name in ("forwarded", "x-forwarded-for", "x-real-ip", "via"))


def _who(token: Token | None, via: Literal["token", "session"]) -> Who | None:
    return None if token is None else Who(token.name, token.role, via)
