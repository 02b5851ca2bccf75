"""Who may ask the dashboard, and for what: every request passes here before anything is looked up.

A page of somebody else's in the same browser must not read a ledger: so the Host header must be one of ours, which stops names
that were made to point here, and no answer may be read or framed by other origins. Nothing can be changed: there are no methods
but GET and HEAD. Beyond the loopback a token is needed, which is compared in constant time and kept in a cookie.
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
from collections.abc import Iterable
from dataclasses import dataclass
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qsl, quote, urlencode

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from fairtune.core.errors import FairtuneError

COOKIE = "fairtune_dash"
TOKEN = "token"
LOOPBACK = ("localhost", "127.0.0.1", "::1")
SHORTEST_TOKEN = 16
LONGEST_ADDRESS = 4096
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; font-src 'none'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}
"""Of every answer; the policy on contents may be stricter where a page's own is."""


@dataclass(frozen=True)
class Guard:
    """What is asked of every request.

    Args:
        hosts: names by which the server may be called, in small letters and without a port.
        token: None where nobody but this machine can ask.
    """

    hosts: frozenset[str]
    token: str | None = None

    @classmethod
    def of(cls, host: str, token: str | None, names: Iterable[str] = ()) -> Guard:
        """For a server that listens at a host.

        Raises:
            FairtuneError: it would be open to others without a token, or with one that can be guessed.
        """
        if token is not None and (len(token) < SHORTEST_TOKEN or not token.isascii() or not token.isprintable()):
            raise FairtuneError(
                f"--token: needs at least {SHORTEST_TOKEN} characters that can be typed; without --token a good one is made."
            )
        if not is_loopback(host) and token is None:
            raise FairtuneError(f"--host {host}: others could ask there, so a token is needed; see --token.")
        called = {name.lower().rstrip(".") for name in (*LOOPBACK, *names)}
        if not is_every(host):
            called.add(host.lower().strip("[]"))
        return cls(frozenset(called), token)

    def allows_host(self, header: str | None) -> bool:
        """Whether a Host header names this server. An address may be any of the machine's where a token guards them."""
        name = _host_name(header or "")
        if name is None:
            return False
        return name in self.hosts or (self.token is not None and _is_address(name))

    def knows(self, token: str | None) -> bool:
        """Whether a token is the right one, in a time that does not tell how much of it is."""
        if self.token is None:
            return True
        return hmac.compare_digest(_digest(token or ""), _digest(self.token))

    @property
    def cookie(self) -> str:
        """What a browser keeps: not the token itself, so that the address bar's secret is in no cookie jar."""
        return hmac.new((self.token or "").encode(), b"fairtune dashboard", hashlib.sha256).hexdigest()

    @property
    def cookie_name(self) -> str:
        """Its own for each token, since a browser has one jar for all ports of a host."""
        return f"{COOKIE}_{self.cookie[:8]}"

    def knows_cookie(self, header: str | None) -> bool:
        try:
            found = SimpleCookie(header or "").get(self.cookie_name)
        except CookieError:
            return False
        return found is not None and hmac.compare_digest(_digest(found.value), _digest(self.cookie))


class GuardedApp:
    """An application behind a guard."""

    def __init__(self, app: ASGIApp, guard: Guard) -> None:
        self._app, self._guard = app, guard

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return  # no WebSockets here
        refused = self._refuse(scope)
        await (refused or self._app)(scope, receive, _with_headers(send))

    def _refuse(self, scope: Scope) -> Response | None:
        """The answer to a request that goes no further."""
        headers = Headers(scope=scope)
        if not self._guard.allows_host(headers.get("host")):
            return PlainTextResponse("This dashboard is not called by that name; see `fairtune dash --help`.\n", 421)
        if scope["method"] not in ("GET", "HEAD"):
            return PlainTextResponse(
                "This dashboard only shows; nothing can be changed here.\n", 405, {"Allow": "GET, HEAD"}
            )
        if len(scope["path"]) + len(scope["query_string"]) > LONGEST_ADDRESS * 4:
            return PlainTextResponse("That address is too long.\n", 414)
        if headers.get("sec-fetch-site") == "cross-site" and headers.get("sec-fetch-mode") != "navigate":
            return PlainTextResponse("Other sites cannot read this dashboard.\n", 403)
        if self._guard.token is None or self._guard.knows_cookie(headers.get("cookie")):
            return None
        return self._ask_for_token(scope, headers)

    def _ask_for_token(self, scope: Scope, headers: Headers) -> Response | None:
        asked = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        given = next((value for name, value in asked if name == TOKEN), None)
        scheme, _, bearer = headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer" and self._guard.knows(bearer.strip()):
            return None
        if given is None or not self._guard.knows(given):
            return PlainTextResponse(
                "A token is needed: open the address that `fairtune dash` printed where it was started.\n",
                401,
                {"WWW-Authenticate": "Bearer"},
            )
        kept = urlencode([(name, value) for name, value in asked if name != TOKEN])
        # one slash: two would make the path a host
        where = "/" + quote(scope["path"].lstrip("/\\"), safe="/~") + (f"?{kept}" if kept else "")
        answer = RedirectResponse(where, 303)
        answer.set_cookie(self._guard.cookie_name, self._guard.cookie, httponly=True, samesite="lax", path="/")
        return answer


def _with_headers(send: Send) -> Send:
    async def guarded(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in HEADERS.items():
                headers[name] = value
            headers.setdefault("Content-Security-Policy", POLICY)
            headers.setdefault("Cache-Control", "no-store")
        await send(message)

    return guarded


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach a host."""
    name = host.lower().strip("[]")
    if name == "localhost":
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def is_every(host: str) -> bool:
    """Whether a host means every address of the machine."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_unspecified
    except ValueError:
        return host == ""


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _host_name(header: str) -> str | None:
    """The host of a Host header, without its port; None where it is not one."""
    name, port = header, ""
    if header.startswith("["):
        name, bracket, port = header[1:].partition("]")
        if not bracket or (port and not port.startswith(":")):
            return None
        port = port[1:]
    elif ":" in header:
        name, _, port = header.partition(":")
    if (port and not (port.isascii() and port.isdecimal())) or not name or any(letter in name for letter in "/@\\ \t"):
        return None
    return name.lower().rstrip(".")


def _digest(text: str) -> bytes:
    """Of one length, whatever is compared."""
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).digest()
