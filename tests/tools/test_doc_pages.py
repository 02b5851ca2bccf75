"""The pages in docs/: the reference is what the code says, its examples load, and every page can be found and leads somewhere."""

from __future__ import annotations

import importlib.util
import re
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest
import typer
from tests.warm import light_run

from fairtune.cli.app import app
from fairtune.study.fields import field_docs
from fairtune.study.study_file import load_study
from fairtune.study.yaml_tree import parse_yaml

ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "docs").glob("*.md"))
LINK = re.compile(r"\]\(([^)#\s]+)(#[^)\s]*)?\)")
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
BASE = {"study": "s", "task": {"train": "a.csv"}, "model": "minilm", "arms": {"baseline": {}}}


def _generator() -> Any:
    spec = importlib.util.spec_from_file_location("docs", ROOT / "tools" / "docs.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


GENERATOR = _generator()


def test_the_reference_is_up_to_date() -> None:
    pytest.importorskip("peft")  # whose adapters are listed
    file = ROOT / "tools" / "docs.py"
    code = f"import runpy, sys; sys.argv = ['docs', '--check']; runpy.run_path({str(file)!r}, run_name='__main__')"
    done = light_run(
        [sys.executable, "-c", code], text=True, timeout=120
    )  # where no other test has registered anything
    assert done.returncode == 0, done.stderr[-500:]


def test_the_reference_has_every_field() -> None:
    text = (ROOT / "docs" / "study-file.md").read_text(encoding="utf-8")
    assert [
        doc.path for doc in field_docs() if f"| `{doc.path}` |" not in text and f"### {doc.path}\n" not in text
    ] == []


@pytest.mark.parametrize("example", [block for kind, block in BLOCK.findall(GENERATOR.study_page()) if kind == "yaml"])
def test_the_examples_of_the_reference_load(example: str) -> None:
    load_study({**BASE, **parse_yaml(example).data})


def test_the_index_has_every_page() -> None:
    index = (ROOT / "docs" / "README.md").read_text(encoding="utf-8")
    linked = [target for target, _ in LINK.findall(index) if "/" not in target]
    assert sorted(set(linked)) == [page.name for page in PAGES if page.name != "README.md"]


@pytest.mark.parametrize("page", [ROOT / "README.md", *PAGES], ids=lambda page: page.name)
def test_every_link_leads_somewhere(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for target, anchor in LINK.findall(text):
        if "://" in target:
            continue
        file = (page.parent / target).resolve()
        assert file.exists(), f"{page.name} links to {target}"
        if anchor and file.suffix == ".md":
            assert anchor[1:] in _anchors(file), f"{page.name} links to {target}{anchor}"


def _anchors(file: Path) -> set[str]:
    """The names that a code host gives to headings, and those that the page gives itself."""
    text = file.read_text(encoding="utf-8")
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    names = {re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-") for heading in headings}
    return names | set(re.findall(r'<a id="([^"]+)">', text))


FIRST_HOUR = ("README.md", "docs/README.md", "docs/quick-start.md", "docs/troubleshooting.md")


@pytest.mark.parametrize("page", FIRST_HOUR)
def test_commands_for_newcomers_are_commands_that_there_are(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    lines = [
        line.split("   #")[0]
        for kind, block in BLOCK.findall(text)
        if kind in ("", "sh")
        for line in block.splitlines()
    ]
    spans = [span for span in re.findall(r"`(fairtune [^`]+)`", text) if "..." not in span]
    commands = [line.strip() for line in [*lines, *spans] if line.strip().startswith("fairtune ")]
    assert commands or page == "docs/README.md"
    for line in commands:
        command: Any = typer.main.get_command(app)
        words = shlex.split(line.partition(" > ")[0])[1:]
        while words and words[0] in getattr(command, "commands", ()):
            command, words = command.commands[words[0]], words[1:]
        if words and words[0] not in ("--help", "--version", "VERB"):
            with command.make_context("example", words):
                pass
