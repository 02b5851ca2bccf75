"""Verbs are loaded when they are called: what `--help` says without them is what they say, and quick verbs import nothing slow."""

from __future__ import annotations

import inspect
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.report.made_ledger import STUDY, usual_ledger
from tests.warm import light_run
from typer.testing import CliRunner

from fairtune.cli.app import Verbs, app
from fairtune.cli.data import DataVerbs

SLOW = ("torch", "transformers", "peft", "sklearn", "matplotlib", "datasets", "scipy.stats", "pandas")


@pytest.mark.parametrize("group", [Verbs, DataVerbs])
def test_the_line_of_each_verb_is_what_its_module_says(group: Any) -> None:
    for verb in group.verbs:
        command = verb.load(group.package)
        assert command.name == verb.name
        assert inspect.cleandoc(command.help).split("\n\n")[0] == verb.summary, verb.name


def test_every_module_of_a_verb_is_one() -> None:
    """A verb that was written and not listed would never be found."""
    for group in (Verbs, DataVerbs):
        listed = {(verb.home or f"{verb.name}:").partition(":")[0] for verb in group.verbs}
        folder = Path(inspect.getfile(group)).parent
        holds_a_verb = {file.stem for file in folder.glob("*.py") if "\n@report_errors\n" in file.read_text("utf-8")}
        assert holds_a_verb <= listed, holds_a_verb - listed


def test_help_lists_all_verbs_and_loads_none() -> None:
    code = "import sys; from fairtune.cli.app import app\ntry: app(['--help'])\nfinally: print(' '.join(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    shown, _, last = done.stdout.strip().rpartition("\n")
    loaded = set(last.split())
    for verb in Verbs.verbs:
        assert f" {verb.name} " in shown
        assert f"fairtune.cli.{(verb.home or verb.name).partition(':')[0]}" not in loaded
    assert {"fairtune.study", "fairtune.settings", "fairtune.ledger", "fairtune.tasks"}.isdisjoint(loaded)


@pytest.mark.parametrize(
    "words",
    [
        "",
        "--help",
        "--version",
        "status",
        "watch --runs nowhere",
        "dash --help",
        "data --help",
        "help",
        "help train",
        "nonsense",
    ],
)
def test_they_import_no_library_of_data_or_models(words: str) -> None:
    assert _run(words.split(), *SLOW, "pyarrow", "scipy")[1] == set()


def test_a_study_is_begun_without_torch(tmp_path: Path) -> None:
    rows = "".join(f"text number {n},{'ab'[n % 2]}\n" for n in range(80))
    (tmp_path / "d.csv").write_text(f"text,label\n{rows}")
    words = ["init", str(tmp_path / "d.csv"), "-o", str(tmp_path / "d.yaml")]
    shown, loaded = _run(words, *(name for name in SLOW if name != "pandas"))  # which Arrow looks for
    assert "Wrote " in shown
    assert loaded == set()


def test_a_column_that_is_not_there_is_told_before_torch_is_imported(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("title,kind\none,x\ntwo,y\n")
    (tmp_path / "b.csv").write_text("titel,kind\none,x\ntwo,y\n")
    data, out = str(tmp_path / "a.csv"), str(tmp_path / "out")
    cases = {
        "a.csv: no column 'titles'": ["--text", "titles", "--label", "kind"],
        "b.csv: no column 'title'": ["--text", "title", "--label", "kind", "--test", str(tmp_path / "b.csv")],
        "none.csv: there is no such file": [
            "--text",
            "title",
            "--label",
            "kind",
            "--validation",
            str(tmp_path / "none.csv"),
        ],
    }
    for message, words in cases.items():
        shown, loaded = _run(["train", data, "-o", out, *words], *SLOW)
        assert message in shown
        assert loaded == set()


def test_a_report_that_was_drawn_needs_no_library_of_figures(tmp_path: Path) -> None:
    runs = usual_ledger(tmp_path / "runs").runs
    words = ["report", STUDY, "--runs", str(runs)]
    first = CliRunner().invoke(app, words)
    page = (runs / STUDY / "report" / "index.html").read_bytes()
    shown, loaded = _run(words, "torch", "transformers", "sklearn", "matplotlib", "scipy.stats")
    assert first.exit_code == 0
    assert "verdict" in shown
    assert loaded == set()
    assert (runs / STUDY / "report" / "index.html").read_bytes() == page


def _run(words: list[str], *modules: str) -> tuple[str, set[str]]:
    """What a verb shows, and which modules of those it has imported."""
    code = (
        "import sys; from fairtune.cli.app import app\n"
        f"try: app({words!r})\n"
        "except SystemExit: pass\n"
        f"print('LOADED', *(m for m in {modules!r} if m in sys.modules))"
    )
    done = light_run([sys.executable, "-c", code], text=True, timeout=120)
    shown, _, loaded = done.stdout.rpartition("LOADED")
    return shown + done.stderr, set(loaded.split())
