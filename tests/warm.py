"""Processes that begin where a fresh one stands after its imports, for tests that need real ones: to kill, to interrupt, to feed.

Importing torch and transformers takes far longer than what a test asks of a process. One process per test session, shared by
pytest's workers, imports once and forks on request; the fork then becomes `python -m MODULE ...` or `python -c CODE ...`: its
own arguments, environment, folder, streams and session, no state of any test, and Python's own way to end. What libraries read
from the environment at import stays as it was, but for the hub's libraries; tests of that, and some of each kind, start
processes for real.
"""

from __future__ import annotations

import array
import base64
import gc
import hashlib
import io
import json
import os
import pickle
import runpy
import select
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
import types
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import filelock
import psutil

from tests.undrawn import UNDRAWN, draw_nothing

FOLDER = "FAIRTUNE_TEST_WARM"
"""The variable that names the folder of the sockets, whose name has the session's process; set by conftest.py before pytest's
workers start."""
AGENT = "torch.distributed.elastic.multiprocessing.subprocess_handler.subprocess_handler"
"""Where torchrun's agent has a name of its own for `Popen`, since it was imported."""
STATE = struct.Struct("i")
ROOT = Path(__file__).parents[1]


_RealPopen = subprocess.Popen


class WarmPopen(subprocess.Popen):  # type: ignore[type-arg]
    """`subprocess.Popen` of this Python with `-m` or `-c`, forked from a process that has all of a worker's imports."""

    imports = "tests.execution.warm"
    """The module that the forking process imports first."""

    def _execute_child(self, args: Any, executable: Any, preexec_fn: Any, close_fds: Any, pass_fds: Any, cwd: Any,  # noqa: ARG002
                       env: Any, startupinfo: Any, creationflags: Any, shell: Any, p2cread: int, p2cwrite: int,  # noqa: ARG002
                       c2pread: int, c2pwrite: int, errread: int, errwrite: int, restore_signals: Any, gid: Any,  # noqa: ARG002
                       gids: Any, uid: Any, umask: Any, start_new_session: bool, process_group: Any) -> None:  # fmt: skip # noqa: ARG002
        order = {
            "args": [str(arg) for arg in args[1:]],
            "cwd": str(cwd or Path.cwd()),
            "env": dict(os.environ if env is None else env),
            "session": start_new_session,
        }
        streams = [own if own != -1 else usual for own, usual in ((p2cread, 0), (c2pwrite, 1), (errwrite, 2))]
        self._line = self._ask(order["env"])
        _send(self._line, order, streams)
        (self.pid,) = STATE.unpack(self._line.recv(STATE.size, socket.MSG_WAITALL))
        self._child_created = True
        with (Path(os.environ[FOLDER]) / f"started-by-{os.getpid()}").open("a") as log:
            log.write(f"{self.pid}\n")
        devnull = getattr(self, "_devnull", None)
        for ours, theirs in ((p2cwrite, p2cread), (c2pread, c2pwrite), (errread, errwrite)):
            if ours != -1 and theirs != -1 and theirs != devnull:
                os.close(theirs)
        if devnull is not None:
            os.close(devnull)

    def _ask(self, _: dict[str, str]) -> socket.socket:
        """A line to the process that forks one with this environment."""
        return _connect(self.imports, _RealPopen)

    def _internal_poll(self, _deadstate: Any = None, **_: Any) -> int | None:
        if self.returncode is None and (state := self._ended(os.WNOHANG)) is not None:
            self._handle_exitstatus(state)
        return self.returncode  # type: ignore[no-any-return]

    def _try_wait(self, wait_flags: int) -> tuple[int, int]:
        state = self._ended(wait_flags)
        return (0, 0) if state is None else (self.pid, state)

    def _ended(self, flags: int) -> int | None:
        """How it ended, as `waitpid` says it; None if it has not."""
        self._line.settimeout(0 if flags & os.WNOHANG else None)
        try:
            (state,) = STATE.unpack(self._line.recv(STATE.size, socket.MSG_WAITALL))
        except BlockingIOError:
            return None
        self._line.close()
        return int(state)


class LightPopen(WarmPopen):
    """The same of the command line without torch, transformers, pandas and their like: for tests that none is imported."""

    imports = "tests.warm_light"


class DataPopen(WarmPopen):
    """The same with pyarrow, pandas and torch, but without the hub's libraries, which read their settings at import."""

    imports = "tests.warm_data"


class HubPopen(DataPopen):
    """The same with the hub's libraries: each environment's `HF_` variables have a forking process of their own.

    It is forked from the one without these libraries. Tests that give the same variables share it: the same folder, the same
    address of a hub.
    """

    def _ask(self, env: dict[str, str]) -> socket.socket:
        settings = {name: value for name, value in sorted(env.items()) if name.startswith("HF_")}
        others = {name: value for name, value in os.environ.items() if not name.startswith("HF_")}
        key = hashlib.sha256(json.dumps(settings).encode()).hexdigest()[:12]

        def start(order: list[str], **options: Any) -> DataPopen:
            return DataPopen(order, env={**others, **settings}, **options)

        return _connect(f"tests.warm_hub-{key}", start)


def warm_run(
    args: list[str],
    *,
    popen: type[WarmPopen] = WarmPopen,
    input: Any = None,
    timeout: float = 120,
    check: bool = False,
    **options: Any,
) -> subprocess.CompletedProcess[Any]:
    """`subprocess.run` of such a process, its output captured."""
    options["stdin"] = subprocess.DEVNULL if input is None else subprocess.PIPE
    with popen(args, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options) as process:
        try:
            out, err = process.communicate(input, timeout)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
    done = subprocess.CompletedProcess(args, process.returncode, out, err)
    if check and done.returncode:
        raise AssertionError(f"exit code {done.returncode}\n{err}")
    return done


class WarmProcess:
    """What `multiprocessing.Process` is to its users here: a function and its arguments, in such a process."""

    CODE = "import base64, os, pickle, sys; target, args = pickle.loads(base64.b64decode(sys.argv[1])); target(*args); os._exit(0)"

    def __init__(self, target: Callable[..., None], args: tuple[Any, ...] = ()) -> None:
        self._order = base64.b64encode(pickle.dumps((target, args))).decode()

    def start(self) -> None:
        self._process = WarmPopen([sys.executable, "-c", self.CODE, self._order])

    def join(self, timeout: float | None = None) -> None:
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout)

    @property
    def exitcode(self) -> int | None:
        return self._process.poll()


def light_run(args: list[str], **options: Any) -> subprocess.CompletedProcess[Any]:
    return warm_run(args, popen=LightPopen, **options)


def data_run(args: list[str], **options: Any) -> subprocess.CompletedProcess[Any]:
    return warm_run(args, popen=DataPopen, **options)


def started_by(process: subprocess.Popen[Any]) -> list[int]:
    """The warm processes that a warm process has started; for `ps` they are children of the one that forked them."""
    log = Path(os.environ[FOLDER]) / f"started-by-{process.pid}"
    return [int(line) for line in log.read_text().split()] if log.exists() else []


def hub_run(args: list[str], **options: Any) -> subprocess.CompletedProcess[Any]:
    return warm_run(args, popen=HubPopen, **options)


def begin(name: str, popen: Callable[..., subprocess.Popen[Any]] = _RealPopen) -> Path:
    """Start the process that imports a module, unless that was done. Returns the address at which it will listen."""
    address = Path(os.environ[FOLDER]) / name
    begun = Path(f"{address}.pid")
    with filelock.FileLock(f"{address}.lock"):
        if not begun.exists():
            order = [sys.executable, "-c", f"from tests.warm import main; main({name!r})"]
            with Path(f"{address}.log").open("ab") as log:
                quiet: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": log, "stderr": log}
                process = popen(order, cwd=ROOT, start_new_session=True, **quiet)
            begun.write_text(str(process.pid))
    return address


def _connect(name: str, popen: Callable[..., subprocess.Popen[Any]]) -> socket.socket:
    """A line to a process that has imported a module; it is started when it is first needed."""
    address = begin(name, popen)
    process, until = int(Path(f"{address}.pid").read_text()), time.monotonic() + 200
    while not address.exists():
        waiting = _imports(process) and time.monotonic() < until
        assert waiting or address.exists(), Path(f"{address}.log").read_text()
        time.sleep(0.05)
    line = socket.socket(socket.AF_UNIX)
    line.connect(str(address))
    return line


def _imports(process: int) -> bool:
    """Whether it is still there, and did not end before it listened."""
    try:
        return bool(psutil.Process(process).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def _send(line: socket.socket, order: dict[str, Any], streams: list[int]) -> None:
    content = json.dumps(order).encode()
    line.sendmsg([STATE.pack(len(content))], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", streams))])
    line.sendall(content)


def _receive(line: socket.socket) -> tuple[dict[str, Any], list[int]]:
    head, streams, _, _ = socket.recv_fds(line, STATE.size, 3)
    (size,) = STATE.unpack(head)
    return json.loads(line.recv(size, socket.MSG_WAITALL)), streams


def serve(imports: str) -> dict[str, Any]:
    """Fork a process per order, until the folder or the test session is gone. Returns, in the forked process alone, its order."""
    folder = Path(os.environ[FOLDER])
    session = int(folder.name.split("-")[2])
    server = socket.socket(socket.AF_UNIX)
    server.bind(str(folder / f"{imports}.new"))
    server.listen(64)
    ended, tell = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.set_wakeup_fd(tell)
    signal.signal(signal.SIGCHLD, lambda *_: None)  # written there: no need to ask again and again who has ended
    (folder / f"{imports}.new").rename(folder / imports)
    running: dict[int, socket.socket] = {}
    while (folder / imports).exists() and _alive(session):
        ready, _, _ = select.select([server, ended], [], [], 1)
        if ended in ready:
            os.read(ended, 4096)
        if server in ready:
            line, _ = server.accept()
            order, streams = _receive(line)
            pid = os.fork()
            if not pid:
                signal.set_wakeup_fd(-1)
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                os.close(ended)
                os.close(tell)
                server.close()
                for other in (line, *running.values()):
                    other.close()
                _take(order, streams, imports)
                return order
            for stream in streams:
                os.close(stream)
            running[pid] = line
            with suppress(BrokenPipeError):
                line.sendall(STATE.pack(pid))
        while running:
            pid, state = os.waitpid(-1, os.WNOHANG)
            if not pid:
                break
            with suppress(BrokenPipeError), running.pop(pid) as line:
                line.sendall(STATE.pack(state))
    os._exit(0)


def _alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


def _take(order: dict[str, Any], streams: list[int], imports: str) -> None:
    """Become the process that was ordered."""
    if order["session"]:
        os.setsid()
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
    for stream in streams:
        os.close(stream)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ.clear()
    os.environ.update(order["env"])
    tempfile.tempdir = None  # where temporary files are is read from the environment once
    os.chdir(order["cwd"])
    now = bool(os.environ.get("PYTHONUNBUFFERED"))
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        raw = io.FileIO(number, "wb" if number else "rb", closefd=False)
        buffered = io.BufferedWriter(raw) if number else io.BufferedReader(raw)
        errors = "backslashreplace" if number == 2 else "strict"
        stream = io.TextIOWrapper(buffered, "utf-8", errors, line_buffering=number == 2 or now, write_through=now)
        stream.mode = "w" if number else "r"
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)
    if UNDRAWN in os.environ:
        draw_nothing()
    if FOLDER in os.environ:
        WarmPopen.imports = imports
        subprocess.Popen = _dispatch  # type: ignore[misc, assignment]
        if (agent := sys.modules.get(AGENT)) is not None:
            agent.Popen = _dispatch  # type: ignore[attr-defined]


def _dispatch(args: Any, *rest: Any, **options: Any) -> Any:
    """What a warm process starts is warm too, if it is of this Python."""
    args = list(args) if isinstance(args, tuple) else args  # as torchrun's agent has them
    ours = isinstance(args, list) and args[:1] == [sys.executable] and args[1:2] in (["-m"], ["-c"])
    return (WarmPopen if ours else _RealPopen)(args, *rest, **options)


def _forget(_: Any) -> None: ...


def main(name: str) -> None:
    """Import what the name says before any dash, and become each process that is ordered."""
    __import__(name.partition("-")[0])
    os.fsync = _forget  # as in conftest.py: only a machine that loses its power could tell
    gc.collect()
    gc.freeze()  # what was imported is no garbage: neither a run's own collections nor its end need look through it
    how, what, *words = serve(name)["args"]
    sys.path[0] = ""
    if how == "-m":
        sys.argv = [what, *words]
        runpy.run_module(what, run_name="__main__", alter_sys=True)
    else:
        sys.argv = ["-c", *words]
        sys.modules["__main__"] = module = types.ModuleType("__main__")
        exec(compile(what, "<string>", "exec"), module.__dict__)
