"""`--forks`: every test is run once, its report is pytest's own, and a process that dies is no success."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CONFTEST = """
from tests.forks import Forks

def pytest_configure(config):
    config.addinivalue_line("markers", "slow: long")
    config.pluginmanager.register(Forks(2))
"""
FILES = {
    "test_a.py": """
        import pytest
        def test_one(tmp_path): assert tmp_path.parent.name in ("fork-0", "fork-1")
        @pytest.mark.skip(reason="not today")
        def test_two(): ...
    """,
    "test_b.py": """
        import warnings
        def test_three():
            print("said before it failed")
            warnings.warn("mind this", DeprecationWarning)
            assert 1 == 2
    """,
    "test_c.py": "def test_four(): ...",
}


def run(folder: Path, files: dict[str, str], *words: str) -> subprocess.CompletedProcess[str]:
    (folder / "conftest.py").write_text(CONFTEST)
    for name, content in files.items():
        (folder / name).write_text(textwrap.dedent(content))
    environment = {"PYTHONPATH": str(ROOT), "FAIRTUNE_CACHE": str(folder / "cache"), "TMPDIR": str(folder)}
    words = ("-m", "pytest", "-c", "/dev/null", "--rootdir", ".", "-p", "no:cacheprovider", *words)
    return subprocess.run([sys.executable, *words], cwd=folder, env=environment, capture_output=True, text=True)


def test_reports_are_those_of_one_process(tmp_path: Path) -> None:
    done = run(tmp_path, FILES, "-rs")
    assert done.returncode == 1
    assert "1 failed, 2 passed, 1 skipped, 1 warning" in done.stdout
    for part in (
        "test_b.py::test_three",
        "assert 1 == 2",
        "said before it failed",
        "DeprecationWarning: mind this",
        "not today",
    ):
        assert part in done.stdout


def test_what_is_marked_slow_is_begun_first(tmp_path: Path) -> None:
    slow = "import pytest\n@pytest.mark.slow\ndef test_long(): ..."
    done = run(tmp_path, {"test_a.py": "def test_short(): ...", "test_z.py": slow, **FILES}, "-v")
    order = [line.split("::")[1].split()[0] for line in done.stdout.splitlines() if "::" in line and "%" in line]
    assert "test_long" in order[:2]


def test_the_first_failure_ends_it_where_that_is_asked_for(tmp_path: Path) -> None:
    waits = "import time\ndef test_waits(): time.sleep(60)"
    done = run(tmp_path, {"test_a.py": "def test_fails(): assert 0", "test_b.py": waits}, "-x")
    assert done.returncode == 1
    assert "stopping after 1 failures" in done.stdout


@pytest.mark.parametrize("end", ["os._exit(0)", "os.kill(os.getpid(), 9)"])
def test_a_process_that_ends_in_a_test_fails_the_session_and_names_it(tmp_path: Path, end: str) -> None:
    done = run(tmp_path, {"test_a.py": f"import os\ndef test_ends(): {end}", "test_b.py": "def test_goes_on(): ..."})
    assert done.returncode == 1
    assert "a process ended in test_a.py::test_ends" in done.stdout
