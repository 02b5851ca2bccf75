"""Processes that are forked from a warm one behave as those that are started: streams, arguments, signals, ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from tests.warm import LightPopen, light_run, started_by

ASK = """
import os, sys
print(sys.argv[1:], os.getcwd(), os.environ["COLOUR"], input(), __name__)
print("trouble", file=sys.stderr)
sys.exit(3)
"""


def test_it_has_its_own_arguments_folder_environment_streams_and_exit_code(tmp_path: Path) -> None:
    done = light_run(
        [sys.executable, "-c", ASK, "a", "b"],
        text=True,
        input="word\n",
        cwd=tmp_path,
        env={**os.environ, "COLOUR": "red"},
    )
    assert done.stdout == f"['a', 'b'] {tmp_path} red word __main__\n"
    assert (done.stderr, done.returncode) == ("trouble\n", 3)
    failed = light_run([sys.executable, "-c", "1 / 0"], text=True)
    assert (failed.returncode, failed.stderr.splitlines()[-1]) == (1, "ZeroDivisionError: division by zero")


def test_signals_end_it_as_they_end_python() -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
        code = "import time; print('ready', flush=True); time.sleep(600)"
        process = LightPopen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        assert process.poll() is None
        process.send_signal(number)
        _, said = process.communicate(timeout=60)
        assert process.returncode == -number
        assert ("KeyboardInterrupt" in said) == (number == signal.SIGINT)


def test_what_it_starts_is_warm_too_and_nothing_of_a_test_is_in_it() -> None:
    code = (
        "import subprocess, sys; print('pytest' in sys.modules, flush=True); "
        "subprocess.run([sys.executable, '-c', 'print(6 * 7)'], check=True)"
    )
    process = LightPopen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert process.communicate(timeout=120)[0].split() == ["False", "42"]
    assert len(started_by(process)) == 1
