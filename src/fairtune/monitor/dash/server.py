"""Starts the dashboard's server, on this machine alone unless somebody asks for more."""

from __future__ import annotations

import errno
import secrets
import socket
import threading
import webbrowser
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

import uvicorn

from fairtune.core.errors import FairtuneError, LedgerError
from fairtune.ledger.folders import require_study, study_names
from fairtune.monitor.dash.app import Dashboard
from fairtune.monitor.dash.guard import TOKEN, Guard, is_every, is_loopback

TOKEN_BYTES = 24


def serve_dashboard(
    runs: Path,
    study: str | None = None,
    host: str = "127.0.0.1",
    port: int = 8321,
    token: str | None = None,
    open_browser: bool = False,
    names: tuple[str, ...] = (),
    tell: Callable[[str], None] = print,
) -> None:
    """Serve until somebody stops it with Ctrl-C.

    Args:
        study: that the first page shows; None lists all.
        port: 0 takes any that is free.
        token: None makes one where others can reach the host.
        names: further names by which the machine is called.
        tell: takes the lines that say where it is.

    Raises:
        FairtuneError: the port is taken, the host is not this machine's, or there is no such folder or study.
    """
    require_runs(runs)
    if study is not None:
        require_study(runs, study)
    if token is None and not is_loopback(host):
        token = secrets.token_urlsafe(TOKEN_BYTES)
    guard = Guard.of(host, token, (*names, socket.gethostname()) if is_every(host) else names)
    listening = _listen(host, port)
    try:
        _serve(runs, study, guard, listening, host, open_browser, tell)
    finally:
        listening.close()


def require_runs(runs: Path) -> None:
    """Refuse a folder in which there is nothing to look at, and never will be.

    Raises:
        LedgerError: it is missing, no folder, or cannot be read.
    """
    if not runs.exists():
        raise LedgerError(
            f"there is no runs folder {runs}; name one with --runs, or start a study with `fairtune run FILE`."
        )
    study_names(runs)


class DashServer(uvicorn.Server):
    """The server of one runs folder."""

    def __init__(self, runs: Path, guard: Guard, study: str | None = None) -> None:
        self._dashboard = Dashboard(runs, study)
        config = uvicorn.Config(
            self._dashboard.app(guard), log_level="error", access_log=False, server_header=False, date_header=False,
            timeout_graceful_shutdown=1, timeout_keep_alive=15, limit_concurrency=256, lifespan="on", ws="none",
            proxy_headers=False,
        )  # fmt: skip
        super().__init__(config)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._dashboard.close()
        await super().shutdown(sockets)


def _serve(
    runs: Path, study: str | None, guard: Guard, listening: socket.socket, host: str, open_browser: bool,
    tell: Callable[[str], None],
) -> None:  # fmt: skip
    place = address(host, listening.getsockname()[1], study, guard.token)
    tell(f"The dashboard of {runs} is at {place}")
    if guard.token is not None:
        beyond = "" if is_loopback(host) else " It is not encrypted: better an ssh tunnel."
        tell(f"Whoever has this address can look; nothing can be changed there.{beyond}")
    tell("Ctrl-C stops it; the runs go on.")
    if open_browser:
        threading.Timer(0.5, webbrowser.open, [place]).start()
    DashServer(runs, guard, study).run(sockets=[listening])


def address(host: str, port: int, study: str | None = None, token: str | None = None) -> str:
    """What to open in a browser."""
    name = socket.gethostname() if is_every(host) else host
    shown = f"[{name}]" if ":" in name else name
    path = "/" if study is None else f"/study/{quote(study, safe='')}"
    return f"http://{shown}:{port}{path}" + (f"?{TOKEN}={quote(token)}" if token else "")


def _listen(host: str, port: int) -> socket.socket:
    name = host.strip("[]")
    try:
        family, kind, protocol, _, place = socket.getaddrinfo(
            name, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        found = socket.socket(family, kind, protocol)
    except (socket.gaierror, UnicodeError, OverflowError, OSError) as error:
        raise FairtuneError(f"--host {host}: not an address of this machine ({_reason(error)}).") from None
    try:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind(place)
        found.listen(128)
        return found
    except OSError as error:
        found.close()
        if error.errno == errno.EADDRINUSE:
            raise FairtuneError(
                f"--port {port}: in use already, perhaps by another dashboard; choose another, or 0 for any that is free."
            ) from None
        if error.errno == errno.EADDRNOTAVAIL:
            raise FairtuneError(
                f"--host {host}: not an address of this machine; 127.0.0.1 is for itself alone, 0.0.0.0 for every address it has."
            ) from None
        what = (
            f"--port {port}: ports below 1024 take an administrator's rights"
            if error.errno == errno.EACCES
            else f"--host {host}"
        )
        raise FairtuneError(f"{what} ({_reason(error)}).") from None


def _reason(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)
