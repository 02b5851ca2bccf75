"""`run`, `time` and `train` say what they do before they import what takes seconds, in a process of their own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

WATCH = """
import sys

class Watch:
    def find_spec(self, name, *_):
        if name in ("torch", "transformers", "pandas", "fairtune.study.study_file"):
            print("importing", name, file=sys.stderr, flush=True)

sys.meta_path.insert(0, Watch())
from fairtune.cli.app import app
app()
"""


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["run", "study.yaml"], "fairtune: reading the study study.yaml"),
        (["time", "study.yaml"], "fairtune: reading the study study.yaml"),
        (["train", "my.csv", "-o", "out", "--model", "./nowhere"], "fairtune: reading my.csv"),
    ],
)
def test_the_first_line_comes_before_the_libraries(tmp_path: Path, words: list[str], line: str) -> None:
    (tmp_path / "study.yaml").write_text("study: s\ntask: sst3\nmodel: ./nowhere\narms: [baseline]\n")
    (tmp_path / "my.csv").write_text("text;label\n" + "".join(f"text {n};{n % 2}\n" for n in range(20)))
    done = subprocess.run(
        [sys.executable, "-c", WATCH, *words], cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 2, done.stderr
    said = done.stderr.splitlines()
    assert said[0] == line, "before anything was imported that takes long"
    assert any(one.startswith("importing ") for one in said), "else the order would say nothing"
    assert "Traceback" not in done.stderr
