"""Who may ask the dashboard: names, methods, tokens and cookies, by requests that try."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from fairtune.core.errors import FairtuneError
from fairtune.monitor.dash.guard import POLICY, Guard, GuardedApp, is_loopback

TOKEN = "a-token-that-is-long-enough"
OPEN, CLOSED = Guard.of("127.0.0.1", None), Guard.of("0.0.0.0", TOKEN, ["lab.example"])


def ask(
    guard: Guard, path: str = "/", method: str = "GET", query: str = "", **headers: str
) -> tuple[int, dict[str, str]]:
    """The status and headers of an answer; 200 is the application's own."""
    sent: list[dict[str, Any]] = []

    async def app(_: Any, __: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"seen"})

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    named = {"host": "127.0.0.1:8321", **{name.replace("_", "-"): value for name, value in headers.items()}}
    scope = {
        "type": "http", "method": method, "path": path, "raw_path": path.encode(), "query_string": query.encode(),
        "headers": [(name.encode(), value.encode("latin-1")) for name, value in named.items()], "scheme": "http",
        "server": ("127.0.0.1", 8321), "root_path": "", "http_version": "1.1",
    }  # fmt: skip
    asyncio.run(GuardedApp(app, guard)(scope, receive, send))
    return sent[0]["status"], {name.decode(): value.decode() for name, value in sent[0]["headers"]}


@pytest.mark.parametrize("host", ["127.0.0.1:8321", "localhost", "LOCALHOST:9", "[::1]:8321", "localhost."])
def test_names_of_this_machine_are_answered(host: str) -> None:
    assert ask(OPEN, host=host)[0] == 200


@pytest.mark.parametrize(
    "host",
    ["evil.example", "evil.example:8321", "127.0.0.1.evil.example", "localhost@evil.example", "", "[::1", "[::1]x", "192.168.0.7",
     "localhost:8321:1", "localhost:x", "127.0.0.1/"],
)  # fmt: skip
def test_a_name_that_was_made_to_point_here_is_refused(host: str) -> None:
    assert ask(OPEN, host=host)[0] == 421


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "CONNECT", "get"])
def test_nothing_can_be_changed(method: str) -> None:
    status, headers = ask(OPEN, method=method)
    assert (status, headers["allow"]) == (405, "GET, HEAD")


def test_other_sites_can_read_nothing() -> None:
    assert ask(OPEN, sec_fetch_site="cross-site", sec_fetch_mode="no-cors")[0] == 403
    assert ask(OPEN, sec_fetch_site="cross-site", sec_fetch_mode="cors")[0] == 403
    assert ask(OPEN, sec_fetch_site="cross-site", sec_fetch_mode="navigate")[0] == 200
    _, headers = ask(OPEN, origin="https://evil.example")
    assert not any(name.lower().startswith("access-control") for name in headers)


def test_every_answer_has_the_strict_headers_refusals_too() -> None:
    for status, headers in (ask(OPEN), ask(OPEN, host="evil.example"), ask(CLOSED, host="lab.example")):
        found = {name.lower(): value for name, value in headers.items()}
        assert found["content-security-policy"] == POLICY, status
        assert found["x-content-type-options"] == "nosniff"
        assert found["x-frame-options"] == "DENY"
        assert found["cross-origin-resource-policy"] == "same-origin"
        assert found["cache-control"] == "no-store"
    assert "unsafe" not in POLICY


def test_beyond_the_loopback_there_is_no_way_without_a_token() -> None:
    with pytest.raises(FairtuneError, match="token"):
        Guard.of("0.0.0.0", None)
    with pytest.raises(FairtuneError, match="token"):
        Guard.of("lab.example", None)
    with pytest.raises(FairtuneError, match="16 characters"):
        Guard.of("127.0.0.1", "short")
    assert [is_loopback(host) for host in ("127.0.0.1", "127.8.8.8", "::1", "[::1]", "localhost", "0.0.0.0", "10.0.0.1")] == [
        True, True, True, True, True, False, False,
    ]  # fmt: skip


@pytest.mark.parametrize(
    "tried",
    [{}, {"query": "token="}, {"query": f"token={TOKEN[:-1]}"}, {"query": f"token={TOKEN}x"}, {"query": f"Token={TOKEN}"},
     {"authorization": "Bearer "}, {"authorization": f"Basic {TOKEN}"}, {"cookie": f"{CLOSED.cookie_name}={TOKEN}"},
     {"cookie": f"{CLOSED.cookie_name}="},
     {"cookie": "\x00=;;;,"}, {"query": "token=%ff%00"}],
)  # fmt: skip
def test_a_wrong_token_opens_nothing(tried: dict[str, str]) -> None:
    status, headers = ask(CLOSED, host="lab.example", **tried)
    assert status == 401
    assert "set-cookie" not in headers


def test_the_token_becomes_a_cookie_and_leaves_the_address() -> None:
    status, headers = ask(CLOSED, "/study/x", query=f"arm=a&token={TOKEN}", host="lab.example")
    assert (status, headers["location"]) == (303, "/study/x?arm=a")
    cookie = headers["set-cookie"]
    assert TOKEN not in cookie
    assert "HttpOnly" in cookie
    assert "SameSite=lax" in cookie
    assert ask(CLOSED, host="lab.example", cookie=cookie.partition(";")[0])[0] == 200
    assert ask(CLOSED, host="lab.example", authorization=f"Bearer {TOKEN}")[0] == 200
    other = Guard.of("0.0.0.0", TOKEN[::-1])
    assert ask(other, host="10.0.0.1", cookie=cookie.partition(";")[0])[0] == 401, "that of another dashboard"
    assert other.cookie_name != CLOSED.cookie_name
    assert ask(CLOSED, host="evil.example", cookie=cookie.partition(";")[0])[0] == 421
    assert ask(CLOSED, host="192.168.0.7", cookie=cookie.partition(";")[0])[0] == 200


@pytest.mark.parametrize("path", ["//evil.example/x", "/\\evil.example", "///evil.example"])
def test_the_way_in_leads_nowhere_else(path: str) -> None:
    _, headers = ask(CLOSED, path, query=f"token={TOKEN}", host="lab.example")
    assert headers["location"].startswith("/")
    assert not headers["location"].startswith(("//", "/\\"))


def test_an_address_without_end_is_refused() -> None:
    assert ask(OPEN, "/" + "x" * 100_000)[0] == 414
