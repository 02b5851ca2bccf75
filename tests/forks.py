"""`--forks N`: the tests in N processes, forked when all is collected: what tests import is imported once, not once per process.

A file's tests stay together, so that what they share is made once, and files with a test that is marked `slow` are begun first,
so that no process is left alone with one at the end. Every process has temporary folders and a cache of its own.
"""

from __future__ import annotations

import os
import pickle
import selectors
import struct
import sys
import traceback
import warnings
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

import pytest

NUMBER = struct.Struct("i")
WARM = ("tests.execution.warm", "tests.warm_light", "tests.warm_data")


class Forks:
    """Hands files to processes, and their reports to pytest as if the tests had run here."""

    def __init__(self, processes: int) -> None:
        self._processes = processes

    def pytest_sessionstart(self, session: pytest.Session) -> None:
        """Use the core that collecting leaves idle: many tests take a warm process, which takes as long to start."""
        if _asks_for_all(session.config):
            from tests.warm import begin

            for imports in WARM:
                begin(imports)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool | None:
        if session.config.option.collectonly or (
            session.testsfailed and not session.config.option.continue_on_collection_errors
        ):
            return None  # pytest's own loop knows what to do
        files = _by_file(session.items)
        todo, feed = os.pipe()
        os.write(feed, b"".join(NUMBER.pack(number) for number in range(len(files))))
        os.close(feed)
        folder = session.config._tmp_path_factory.getbasetemp()  # type: ignore[attr-defined]
        children: dict[int, int] = {}
        for place in range(min(self._processes, len(files))):
            ours, theirs = os.pipe()
            pid = os.fork()
            if not pid:
                for other in (ours, *children):
                    os.close(other)
                _work(session, files, todo, theirs, folder / f"fork-{place}")
            os.close(theirs)
            children[ours] = pid
        os.close(todo)
        try:
            _relay(session, children)
        finally:
            for pid in children.values():
                with suppress(ProcessLookupError):
                    os.kill(pid, 9)
                os.waitpid(pid, 0)
        return True


def _asks_for_all(config: pytest.Config) -> bool:
    """Whether no files were named; `--quick` starts no process."""
    named = config.args_source is not pytest.Config.ArgsSource.TESTPATHS
    return not (named or config.option.collectonly or config.getoption("--quick"))


def _by_file(items: list[pytest.Item]) -> list[list[pytest.Item]]:
    files: dict[Path, list[pytest.Item]] = {}
    for item in items:
        files.setdefault(item.path, []).append(item)
    return sorted(files.values(), key=lambda tests: not any(test.get_closest_marker("slow") for test in tests))


def _relay(session: pytest.Session, children: dict[int, int]) -> None:
    """Tell pytest what the processes tell, until they are done."""
    hook = session.config.hook
    running: dict[int, str] = {}  # the test that each is at
    with selectors.DefaultSelector() as selector:
        for pipe in children:
            selector.register(os.fdopen(pipe, "rb"), selectors.EVENT_READ, pipe)
        while selector.get_map():
            for key, _ in selector.select():
                try:
                    name, content = pickle.load(key.fileobj)  # type: ignore[arg-type]
                except (EOFError, pickle.UnpicklingError):
                    session.shouldfail = f"a process ended in {running.get(key.data, 'its first test')}"
                    break
                match name:
                    case "start":
                        running[key.data] = content["nodeid"]
                        hook.pytest_runtest_logstart(**content)
                    case "report":
                        report = hook.pytest_report_from_serializable(config=session.config, data=content)
                        hook.pytest_runtest_logreport(report=report)
                    case "warning":
                        hook.pytest_warning_recorded.call_historic(kwargs=content)
                    case "done":
                        selector.unregister(key.fileobj)
                        key.fileobj.close()  # type: ignore[union-attr]
            if session.shouldfail:
                raise session.Failed(session.shouldfail)
            if session.shouldstop:
                raise session.Interrupted(session.shouldstop)


class _Sender:
    """Tells the parent what pytest is told here."""

    def __init__(self, config: pytest.Config, pipe: int) -> None:
        self._config, self._pipe = config, os.fdopen(pipe, "wb")

    def send(self, name: str, content: Any = None) -> None:
        self._pipe.write(pickle.dumps((name, content)))
        self._pipe.flush()

    def pytest_runtest_logstart(self, nodeid: str, location: tuple[str, int | None, str]) -> None:
        self.send("start", {"nodeid": nodeid, "location": location})

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.send("report", self._config.hook.pytest_report_to_serializable(config=self._config, report=report))

    def pytest_warning_recorded(self, warning_message: Any, when: str, nodeid: str, location: Any) -> None:
        where = (warning_message.filename, warning_message.lineno)
        category = warning_message.category
        known = getattr(sys.modules.get(category.__module__), category.__qualname__, None) is category
        plain = warnings.WarningMessage(str(warning_message.message), category if known else UserWarning, *where)
        self.send("warning", {"warning_message": plain, "when": when, "nodeid": nodeid, "location": location})


def _work(session: pytest.Session, files: list[list[pytest.Item]], todo: int, pipe: int, folder: Path) -> NoReturn:
    """Take file after file; never returns, so that nothing of the parent is finished twice."""
    config, code = session.config, 1
    try:
        _be_apart(config, folder)
        sender = _Sender(config, pipe)
        config.pluginmanager.register(sender)
        tests = _tests(files, todo)
        test = next(tests, None)
        while test is not None:
            following = next(tests, None)
            config.hook.pytest_runtest_protocol(item=test, nextitem=following)
            test = following
        sender.send("done")
        code = 0
    except KeyboardInterrupt:
        pass  # the parent was interrupted too, and says so
    except BaseException:
        config.pluginmanager.getplugin("capturemanager").stop_global_capturing()
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def _tests(files: list[list[pytest.Item]], todo: int) -> Iterator[pytest.Item]:
    while number := os.read(todo, NUMBER.size):
        yield from files[NUMBER.unpack(number)[0]]


def _be_apart(config: pytest.Config, folder: Path) -> None:
    """Share no file with the parent and its other processes: neither those that catch output nor folders nor the terminal."""
    capture = config.pluginmanager.getplugin("capturemanager")
    capture.stop_global_capturing()
    capture.start_global_capturing()
    folder.mkdir(mode=0o700)
    config._tmp_path_factory._basetemp = folder  # type: ignore[attr-defined]
    os.environ["FAIRTUNE_CACHE"] = str(Path(os.environ["FAIRTUNE_CACHE"]) / folder.name)
    config.pluginmanager.getplugin("terminalreporter")._tw._file = Path(os.devnull).open("w")  # noqa: SIM115
