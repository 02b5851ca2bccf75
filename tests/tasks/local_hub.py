"""A hub on the loopback: the part of its HTTP interface by which `datasets` finds and fetches a data set at a commit."""

from __future__ import annotations

import hashlib
import json
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlparse


@contextmanager
def local_hub(root: Path, asked: list[str]) -> Iterator[str]:
    """Serve `<root>/<owner>/<name>/<commit>/...` as data sets; yields the address and notes what was asked for."""
    server = _server()
    _Handler.root, _Handler.asked = root, asked
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        _Handler.root = None


def hub_environment(home: Path, endpoint: str | None = None) -> dict[str, str]:
    """For a process that reads from the hub at this address, or without network what is in the folder `HF_HOME`."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith("HF_") and k != "FAIRTUNE_MIRROR"}
    return {**kept, "HF_HOME": str(home), **({"HF_ENDPOINT": endpoint} if endpoint else {"HF_HUB_OFFLINE": "1"})}


@cache
def _server() -> ThreadingHTTPServer:
    """All the hubs of a test session have one address, which the hub's libraries read only when they are imported."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    root: Path | None = None
    asked: list[str]

    def log_message(self, *_: object) -> None:
        pass

    def _answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        if self.root is None:
            self._send(503)
            return
        self.asked.append(f"{self.command} {self.path}")
        match unquote(urlparse(self.path).path).strip("/").split("/"):
            case ["datasets", owner, name, "resolve", commit, *path]:
                self._send_file(self.root / owner / name / commit / "/".join(path), commit)
            case ["api", "datasets", owner, name, verb, commit, *path]:
                folder = self.root / owner / name / commit
                if folder.is_dir():
                    self._send_json(self._facts(verb, folder, "/".join(path), body))
                else:
                    self._send(404, x_error_code="RevisionNotFound")
            case _:
                self._send(404, x_error_code="RepoNotFound")

    do_GET = do_HEAD = do_POST = _answer  # noqa: N815 - http.server looks for these names

    def _facts(self, verb: str, folder: Path, under: str, body: bytes) -> Any:
        if verb == "revision":
            files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
            siblings = [{"rfilename": str(path.relative_to(folder))} for path in files]
            return {"id": "/".join(folder.parts[-3:-1]), "sha": folder.name, "siblings": siblings}
        if verb == "tree":
            return [_entry(path, folder) for path in sorted((folder / under).glob("*"))]
        paths = json.loads(body)["paths"] if body.startswith(b"{") else parse_qs(body.decode())["paths"]
        return [_entry(folder / path, folder) for path in paths if (folder / path).exists()]

    def _send_file(self, file: Path, commit: str) -> None:
        if not file.is_file():
            self._send(404, x_error_code="EntryNotFound", x_repo_commit=commit)
            return
        self._send(200, file.read_bytes(), etag=f'"{_oid(file)}"', x_repo_commit=commit)

    def _send_json(self, value: Any) -> None:
        self._send(200, json.dumps(value).encode(), content_type="application/json")

    def _send(self, code: int, body: bytes = b"", **headers: str) -> None:
        self.send_response(code)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


def _entry(path: Path, folder: Path) -> dict[str, Any]:
    name = str(path.relative_to(folder))
    if path.is_dir():
        return {"type": "directory", "path": name, "oid": "0" * 40}
    return {"type": "file", "path": name, "size": path.stat().st_size, "oid": _oid(path)}


def _oid(file: Path) -> str:
    return hashlib.sha1(file.read_bytes(), usedforsecurity=False).hexdigest()
