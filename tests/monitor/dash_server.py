"""A dashboard that listens, in a thread of the test's process, and requests as anybody could make them."""

from __future__ import annotations

import http.client
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from fairtune.monitor.dash.guard import Guard
from fairtune.monitor.dash.server import DashServer, _listen

HOST = "127.0.0.1"


@dataclass
class Answer:
    status: int
    body: str
    headers: dict[str, str] = field(default_factory=dict)


@dataclass
class RunningDash:
    port: int

    @property
    def address(self) -> str:
        return f"http://{HOST}:{self.port}"

    def get(self, path: str, method: str = "GET", **headers: str) -> Answer:
        """Args:
        path: sent as it is, unlike by a browser.
        """
        connection = http.client.HTTPConnection(HOST, self.port, timeout=20)
        try:
            connection.putrequest(method, path, skip_host=True)
            sent = {"Host": f"{HOST}:{self.port}", **{name.replace("_", "-"): value for name, value in headers.items()}}
            for name, value in sent.items():
                connection.putheader(name, value)
            connection.endheaders()
            found = connection.getresponse()
            return Answer(
                found.status, found.read().decode("utf-8", "replace"), {k.lower(): v for k, v in found.getheaders()}
            )
        finally:
            connection.close()


@contextmanager
def running_dash(
    runs: Path, guard: Guard | None = None, study: str | None = None, port: int = 0
) -> Iterator[RunningDash]:
    """A server of a runs folder, at a port of its own unless one is given."""
    listening = _listen(HOST, port)
    server = DashServer(runs, guard or Guard.of(HOST, None), study)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    until = time.monotonic() + 20
    while not server.started and time.monotonic() < until:
        time.sleep(0.01)
    found = RunningDash(listening.getsockname()[1])
    try:
        yield found
    finally:
        server.should_exit = True
        thread.join(10)
        listening.close()
