"""Windows as far as Linux can act it: what that system lacks is hidden from fairtune's modules, what it refuses is refused."""

from __future__ import annotations

import errno
import fcntl
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

LACKING = {
    "O_DIRECTORY", "O_NOFOLLOW", "O_NONBLOCK", "fork", "getloadavg", "getpgid", "getuid", "killpg", "mkfifo", "sched_getaffinity",
    "setsid", "uname", "SIGALRM", "SIGCHLD", "SIGHUP", "SIGKILL", "SIGPIPE", "SIGUSR1",
}  # fmt: skip
BINARY = 1 << 30
WORKER = (sys.executable, "-c", "from tests.elsewhere import hide, work; hide(); work()")
"""A worker that finds itself there too."""


class _Without:
    """A module without the names that Windows lacks."""

    def __init__(self, module: Any) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Any:
        if name in LACKING:
            raise AttributeError(name)
        return getattr(self._module, name)


class _Os(_Without):
    """`os` that opens no folders, syncs only what may be written, and writes "\\r\\n" unless it is told otherwise."""

    name = "nt"
    O_BINARY = BINARY

    def __init__(self) -> None:
        super().__init__(os)
        self._texts: set[int] = set()

    def open(self, path: Any, flags: int, mode: int = 0o777) -> int:
        if Path(path).is_dir():
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        handle = os.open(path, flags & ~BINARY, mode)
        (self._texts.discard if flags & BINARY else self._texts.add)(handle)
        return handle

    def write(self, handle: int, data: bytes) -> int:
        os.write(handle, data.replace(b"\n", b"\r\n") if handle in self._texts else data)
        return len(data)

    def fsync(self, handle: int) -> None:
        if fcntl.fcntl(handle, fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDONLY:
            raise OSError(errno.EBADF, "Bad file descriptor")


def hide(change: Callable[[Any, str, Any], None] = setattr) -> None:
    """Put every module of fairtune that has been imported there.

    Args:
        change: such as `monkeypatch.setattr`, where the process has other things to do afterwards.
    """
    for name, module in list(sys.modules.items()):
        if name.split(".")[0] == "fairtune":
            for one, instead in ((os, _Os()), (signal, _Without(signal))):
                if vars(module).get(one.__name__) is one:
                    change(module, one.__name__, instead)
            if "BINARY" in vars(module):
                change(module, "BINARY", BINARY)
    refuse_what_is_open(change)


def refuse_what_is_open(change: Callable[[Any, str, Any], None]) -> None:
    """Let no file of this process be deleted that is open or mapped, and no folder be renamed that has such a file."""
    unlink, rename = os.unlink, os.rename

    def careful_unlink(path: Any, *, dir_fd: int | None = None) -> None:
        _require_closed(Path(path) if dir_fd is None else Path(f"/proc/self/fd/{dir_fd}").readlink() / path)
        unlink(path, dir_fd=dir_fd)

    def careful_rename(old: Any, new: Any) -> None:
        _require_closed(Path(old))
        rename(old, new)

    change(os, "unlink", careful_unlink)
    change(os, "rename", careful_rename)


def _require_closed(path: Path) -> None:
    whole = str(path.absolute())
    maps = [line.split(maxsplit=5)[-1] for line in Path("/proc/self/maps").read_text().splitlines()]
    for held in (*maps, *_opened()):
        if held == whole or held.startswith(f"{whole}/"):
            raise PermissionError(errno.EACCES, "it is used by another process", held)


def _opened() -> list[str]:
    """The files that are open; not folders, which deleting a tree holds."""
    found = []
    for handle in os.listdir("/proc/self/fd"):  # noqa: PTH208
        try:
            file = os.readlink(f"/proc/self/fd/{handle}")  # noqa: PTH115
        except OSError:  # that of the listing itself
            continue
        if not os.path.isdir(file):  # noqa: PTH112
            found.append(file)
    return found


def work() -> None:
    from fairtune.execution.executors.worker import main

    main()
