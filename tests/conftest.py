"""What many tests share: a tiny BERT with its tokenizer on disk, and a toy task that it can learn."""

from __future__ import annotations

import atexit
import gc
import os
import shutil
import signal
import sys
import tempfile
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

os.environ.setdefault("HF_HUB_OFFLINE", "1")  # no test talks to a network
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
os.environ.setdefault(
    "OMP_NUM_THREADS", "1"
)  # tests run side by side, and tiny models lose more by threads than they gain

os.environ["FAIRTUNE_CACHE"] = tempfile.mkdtemp(prefix="fairtune-tests-")  # never the user's own
os.environ["FAIRTUNE_STATE"] = f"{os.environ['FAIRTUNE_CACHE']}/state"
atexit.register(shutil.rmtree, os.environ["FAIRTUNE_CACHE"], ignore_errors=True)
if "FAIRTUNE_TEST_WARM" not in os.environ:  # pytest's workers inherit it; once it is gone, the warm processes end
    os.environ["FAIRTUNE_TEST_WARM"] = tempfile.mkdtemp(prefix=f"fairtune-warm-{os.getpid()}-")
    atexit.register(shutil.rmtree, os.environ["FAIRTUNE_TEST_WARM"], ignore_errors=True)

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # so a shell starts jobs in the background; tests press Ctrl-C
    signal.signal(signal.SIGINT, signal.default_int_handler)

from fairtune.core import plugins  # noqa: E402
from fairtune.testing.toy import TaskFiles, make_tiny_model, make_tiny_task  # noqa: E402 - after the settings above
from tests import browser  # noqa: E402
from tests.cluster import slurm_cluster  # noqa: E402

gc.disable()  # while modules are imported and tests collected, which leaves no garbage


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--quick", action="store_true", help="only tests without torch, figures and processes, for `make quick`"
    )
    parser.addoption("--forks", type=int, default=0, metavar="N", help="in N processes, for `make test`")


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--quick") and (hasattr(config, "workerinput") or not config.getoption("numprocesses", None)):
        from tests.quick import be_quick

        be_quick()
    if processes := config.getoption("--forks"):
        from tests.forks import Forks

        config.pluginmanager.register(Forks(processes))


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--quick"):
        from tests.quick import skip_marked

        skip_marked(items)
    browser.skip_as_one(config, items)
    slurm_cluster.skip_as_one(config, items)


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """What was skipped for want of a browser or of Slurm is said, though `-q` says no reasons."""
    for report in terminalreporter.getreports("skipped"):
        if browser.WHERE in str(report.longrepr) or slurm_cluster.SKIPPED in str(report.longrepr):
            terminalreporter.write_line(f"Skipped: {report.longrepr[2].removeprefix('Skipped: ')}")


def pytest_collection_finish() -> None:
    """What was imported is no garbage either: the collections that every run asks for need not look through it."""
    freeze_what_is_left()
    gc.enable()


_known = 0  # modules that were imported when objects were last frozen


def freeze_what_is_left() -> None:
    global _known
    _known = len(sys.modules)
    gc.collect()
    gc.freeze()


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Nor need they look through what tests imported late, or what caches keep, once a file is done or much was imported."""
    if nextitem is not None and (nextitem.path != item.path or len(sys.modules) > _known + 100):
        freeze_what_is_left()


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_tiny_model(tmp_path_factory.mktemp("models") / "tiny-bert")


@pytest.fixture(scope="session")
def tiny_task(tmp_path_factory: pytest.TempPathFactory) -> TaskFiles:
    return make_tiny_task(tmp_path_factory.mktemp("tasks"))


class InProcessExecutor:
    """Performs jobs in this process, one after the other."""

    def __init__(self, device: str) -> None:
        self._device, self._waiting = device, deque[Any]()

    def submit(self, jobs: Sequence[Any]) -> None:
        self._waiting.extend(jobs)

    def events(self) -> Iterator[Any]:
        from fairtune.execution.executors.base import ENDED, JobEvent
        from fairtune.execution.run import perform_run

        while self._waiting:
            job = self._waiting.popleft()
            result = perform_run(job, self._device, lambda: None, lambda _: None)
            yield JobEvent(job, ENDED, {"result": result})

    def cancel_waiting(self) -> None:
        self._waiting.clear()

    def stop(self) -> None: ...


@contextmanager
def performing_here() -> Iterator[None]:
    """Studies whose runs are performed in this process, for what comes before and after them.

    Starting a worker costs more than all the rest of a small study; what only workers can get wrong is tested in
    execution/test_studies.py.
    """
    from fairtune.execution.executors.slots import find_devices
    from fairtune.execution.prepare import load_task_once
    from fairtune.execution.study_run import use_executor

    load_task_once.cache_clear()  # a task of the same name may have other data in another test
    with use_executor(lambda execution, _: InProcessExecutor(find_devices(execution.devices)[0])):
        yield
    load_task_once.cache_clear()


@pytest.fixture
def performed_here() -> Iterator[None]:
    with performing_here():
        yield


def forget_plugins() -> None:
    """Know none, as a new process does. Of plug-ins that lie among the tests, the other tests' modules stay imported."""
    loaded = plugins.loaded_plugins()
    names = {plugin.module for plugin in loaded}
    kept = {name: found for name, found in sys.modules.items() if name.startswith("tests") and name not in names}
    for plugin in loaded:
        plugins.forget_plugin(plugin.root)
    sys.modules.update(kept)


@pytest.fixture
def forgotten_plugins() -> Iterator[None]:
    """What a test loads as a plug-in is unknown again after it."""
    yield
    forget_plugins()


@pytest.fixture(scope="session", autouse=True)
def templates_compiled_once() -> Iterator[None]:
    """A page's template is compiled once per session, not once per page; a command writes one page and never notices."""
    from jinja2 import Environment

    compiled: dict[tuple[Any, ...], Any] = {}
    compile_template = Environment.compile

    def once(self: Environment, source: Any, *place: Any, **options: Any) -> Any:
        look = (self.autoescape, self.undefined, self.trim_blocks, self.lstrip_blocks, *self.filters, *self.globals)
        key = (source, place, *sorted(options.items()), look)
        if key not in compiled:
            compiled[key] = compile_template(self, source, *place, **options)
        return compiled[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Environment, "compile", once)
        yield


@pytest.fixture(scope="session", autouse=True)
def nothing_waits_for_the_disk() -> Iterator[None]:
    """What this process writes may reach the disk later: only a machine that loses its power could tell.

    Tests of a disk that refuses replace `os.fsync` themselves; processes that are not warm still wait.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda _: None)
        yield


@pytest.fixture(scope="session", autouse=True)
def git_is_asked_once() -> Iterator[None]:
    """Of the folder that the tests run in, whose commit every run here puts on record; of others it is asked each time."""
    from fairtune.ledger import environment

    ask, here, answers = environment._git_commit, Path.cwd(), list[Any]()

    def once() -> Any:
        if Path.cwd() != here:
            return ask()
        if not answers:
            answers.append(ask())
        return answers[0]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(environment, "_git_commit", once)
        yield


@contextmanager
def drawing_nothing() -> Iterator[None]:
    from tests.undrawn import draw_nothing

    with pytest.MonkeyPatch.context() as patch:
        draw_nothing(patch.setattr)
        yield


@pytest.fixture
def undrawn() -> Iterator[None]:
    with drawing_nothing():
        yield
