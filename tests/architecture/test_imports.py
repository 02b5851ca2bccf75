"""One order of imports: the contracts in pyproject.toml hold, and no modules import each other in a circle, lazily either."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import grimp
import pytest

ROOT = Path(__file__).parents[2]


def circles(package: str) -> list[set[str]]:
    """Modules that reach themselves by imports, those of one circle together; a package and what is in it count apart."""
    graph = grimp.build_graph(package, cache_dir=None, exclude_type_checking_imports=True)
    found: list[set[str]] = []
    for module in sorted(graph.modules):
        if not any(module in circle for circle in found):
            circle = {other for other in _reached(graph, module) if module in _reached(graph, other)}
            if circle:
                found.append(circle)
    return found


def _reached(graph: grimp.ImportGraph, module: str) -> set[str]:
    reached: set[str] = set()
    waiting = [module]
    while waiting:
        for other in graph.find_modules_directly_imported_by(waiting.pop()) - reached:
            reached.add(other)
            waiting.append(other)
    return reached


def test_the_contracts_hold() -> None:
    code = "from importlinter.cli import lint_imports_command; lint_imports_command(['--no-logo', '--no-cache'])"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout  # in a process of its own: it would silence the loggers of this one


def test_no_modules_import_each_other_in_a_circle() -> None:
    assert circles("fairtune") == []


def test_a_circle_would_be_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "circled"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "a.py").write_text("from circled import b\n")
    (package / "b.py").write_text("def f():\n    from circled.c import g\n")
    (package / "c.py").write_text("import circled.a\n")
    (package / "d.py").write_text("import circled.a\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert circles("circled") == [{"circled.a", "circled.b", "circled.c"}]
    sys.modules.pop("circled", None)
