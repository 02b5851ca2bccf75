"""Names, texts, reasons and samples that hold codes and marks: shown as they are in every file and on every terminal."""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import made_ledger
import numpy as np
import pytest
from made_ledger import EXAMPLES, STUDY, ArmSpec, MadeLedger
from made_text_ledger import MadeTextLedger, TextArm
from markdown_it import MarkdownIt
from page_script import without_script
from tests.hostile import ALL, CODES, MARKS, NAME, on_a_terminal, raw_codes
from typer.testing import CliRunner

from fairtune.cli.app import app
from fairtune.core.files import read_json, write_sealed
from fairtune.core.markdown import code, fenced, plain
from fairtune.core.printable import printable
from fairtune.ledger.predictions import EXAMPLES_FILE, AboutExamples, Examples, write_examples
from fairtune.report.picture import save_png
from fairtune.report.writer import write_report


def parsed(text: str) -> list[Any]:
    tokens = MarkdownIt("commonmark").enable("table").parse(text)
    return [*tokens, *(child for token in tokens for child in token.children or ())]


def written_in(text: str) -> str:
    """What a reader of Markdown sees, without how it looks."""
    return "".join(token.content for token in parsed(text) if token.type in ("text", "text_special"))


@pytest.mark.parametrize("text", [*CODES.values(), *MARKS, ALL, "-", "+ x", "12) x", "=", "= x", "x\n- y", "  a  "])
def test_markdown_shows_a_text_as_it_is(text: str) -> None:
    shown = " ".join(printable(text, "\n\r\t").split())
    for form in (plain(text), f"- {plain(text)}", f"# {plain(text)}", f"| a | b |\n|---|---|\n| {plain(text)} | c |"):
        kinds = {token.type for token in parsed(form)}
        assert not kinds & {"html_inline", "html_block", "link_open", "image", "em_open", "code_inline", "s_open", "hr"}
        assert sum(token.type == "bullet_list_open" for token in parsed(form)) == form.startswith("- ")
        assert not kinds & {"ordered_list_open"}
        assert written_in(form).replace("\n", "") in (shown, f"ab{shown}c")
        assert raw_codes(form) == []
    assert not re.search(r"(?<!\\)://|www\.", plain(text)), "an address would become a link by itself"


@pytest.mark.parametrize("text", [*CODES.values(), *MARKS, "`", "a``", "```x"])
def test_code_holds_any_text(text: str) -> None:
    (found,) = [token for token in parsed(f"is {code(text)} here") if token.type == "code_inline"]
    assert found.content == " ".join(printable(text, "\n\r\t").split())
    blocks = [token for token in parsed("\n".join([*fenced([text, text]), "", "after"])) if token.type == "fence"]
    assert [block.content for block in blocks] == [f"{printable(text)}\n" * 2]


class Page(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.words: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        assert not [name for name, _ in attrs if name.startswith("on")]

    def handle_data(self, data: str) -> None:
        self.words.append(data)


def hostile_ledger(runs: Path, monkeypatch: pytest.MonkeyPatch) -> MadeLedger:
    """A study in which everything that somebody else wrote is hostile."""
    real = made_ledger.environment
    monkeypatch.setattr(made_ledger, "environment", lambda position: {**real(position), "cpu": f"{ALL} {position % 2}"})
    methods = [{"focal": {"gamma": ALL}}]
    arms = {"baseline": ArmSpec([330, 331]), NAME: ArmSpec([329, ALL], methods=methods, lr=1e-4)}
    made = made_ledger.make_study(runs, arms, margin="1%", source=ALL)
    file = runs / STUDY / "study.json"
    plan = read_json(file)
    assert plan is not None
    plan["task"].update(name=ALL, labels=[ALL, f"{ALL} 2"], hashes={ALL: ALL})
    plan["model"]["name"] = ALL
    write_sealed(file, plan)
    kept = 20
    ids = tuple(f"t{i}" for i in range(kept))
    test = Examples(ids, ((ALL,),) * kept, np.arange(kept) % 2, (NAME,) * kept, np.full(kept, 5, dtype=np.int32))
    write_examples(runs / STUDY / EXAMPLES_FILE, AboutExamples("key", {"test": EXAMPLES}, ALL), {"test": test})
    return made


def assert_harmless(files: dict[str, str]) -> None:
    for kind, text in files.items():
        assert raw_codes(text) == [], kind
    for kind in ("html", "markdown"):
        assert r"\x1b" in files[kind]
    page = Page(without_script(files["html"]))
    assert not page.tags & {"script", "img", "link", "iframe"}
    assert any("<img src=x onerror=y>" in words for words in page.words)
    tokens = parsed(files["markdown"])
    assert not {token.type for token in tokens} & {"html_inline", "link_open", "image"}
    own = re.compile(r"(</?details>|<summary>[A-Za-z, ]+</summary>|\n)+")
    assert all(own.fullmatch(token.content) for token in tokens if token.type == "html_block"), "folds, and no more"
    headings = [tokens[i + 1].content for i, token in enumerate(tokens) if token.type == "heading_open"]
    assert not [heading for heading in headings if "injected" in heading]
    assert json.loads(files["json"])["header"]["task"] == ALL, "data for programs stay as they are"
    for table in re.findall(r"(?:^\|.*\n)+", files["markdown"], flags=re.MULTILINE):
        assert len({len(re.findall(r"(?<!\\)(?:\\\\)*\|", line)) for line in table.splitlines()}) == 1


def test_a_report_obeys_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = hostile_ledger(tmp_path / "runs", monkeypatch)
    words = ["report", STUDY, "--runs", tmp_path / "runs"]
    with warnings.catch_warnings():
        warnings.filterwarnings("error", "Glyph")  # so matplotlib tells of what it cannot draw
        done = CliRunner().invoke(app, [*map(str, words), "--json"])
        assert done.exit_code == 0, done.output
        assert raw_codes(done.output) == []
        save_png(made.results(), tmp_path / "scores.png")
    files = {"html": "index.html", "markdown": "report.md", "json": "report.json"}
    folder = tmp_path / "runs" / STUDY / "report"
    assert_harmless({kind: (folder / name).read_text(encoding="utf-8") for kind, name in files.items()})
    assert done.stdout == (folder / "report.json").read_text(encoding="utf-8")
    made_already = {"html": folder / "index.html"}
    monkeypatch.setattr("fairtune.report.writer.write_report", lambda *_: made_already)
    shown = on_a_terminal(words, monkeypatch)
    assert raw_codes(shown) == []
    assert r"\x1b[2J" in shown


def test_half_a_surrogate_pair_is_reported(tmp_path: Path) -> None:
    made = made_ledger.make_study(tmp_path / "runs", {"baseline": ArmSpec([330]), "b": ArmSpec([329])})
    results = made.results()
    results.plan["compare"]["to"] = "baseline"
    results.plan["task"].update(labels=["\ud800", "b"], name="\udfff")
    files = {kind: path.read_text(encoding="utf-8") for kind, path in write_report(results).items()}
    assert all(r"\udfff" in text for text in files.values())


def test_samples_obey_nothing(make_text: Callable[..., MadeTextLedger]) -> None:
    made = make_text({"baseline": TextArm([1.4, 1.4], says=ALL), "b": TextArm([1.4, ALL])})
    plan = read_json(made.runs / STUDY / "study.json")
    assert plan is not None
    plan["tokenizer"]["name"] = ALL
    plan["task"]["name"] = ALL
    write_sealed(made.runs / STUDY / "study.json", plan)
    assert_harmless({kind: path.read_text(encoding="utf-8") for kind, path in write_report(made.results()).items()})


def texts_of(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [text for one in value.values() for text in texts_of(one)]
    if isinstance(value, list):
        return [text for one in value for text in texts_of(one)]
    return [value] if isinstance(value, str) else []


def test_status_shows_reasons_and_names_as_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runs = tmp_path / "runs"
    hostile_ledger(runs, monkeypatch)
    for words in (["status", STUDY, "--runs", runs], ["status", STUDY, "--runs", runs, "--json"]):
        done = CliRunner().invoke(app, [str(word) for word in words])
        assert done.exit_code == 0, done.output
        assert raw_codes(done.output) == []
        assert raw_codes(on_a_terminal(words, monkeypatch)) == []
    assert ALL in texts_of(json.loads(done.stdout))


def test_status_of_all_studies_shows_a_folder_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runs = tmp_path / "runs"
    made_ledger.make_study(runs, {"baseline": ArmSpec([330])})
    plan = read_json(runs / STUDY / "study.json")
    assert plan is not None
    (runs / STUDY).rename(runs / NAME)
    write_sealed(runs / NAME / "study.json", {**plan, "study": NAME})
    done = CliRunner().invoke(app, ["status", "--runs", str(runs)])
    assert done.exit_code == 0, done.output
    assert raw_codes(done.output) == []
    assert r"\x1b[2J" in done.output
    assert raw_codes(on_a_terminal(["status", "--runs", runs], monkeypatch)) == []


def test_the_reason_that_broke_status_is_shown(tmp_path: Path) -> None:
    made_ledger.make_study(tmp_path / "runs", {"baseline": ArmSpec(["no tag [/x] or [red] :smile:"])})
    done = CliRunner().invoke(app, ["status", STUDY, "--runs", str(tmp_path / "runs")])
    assert done.exit_code == 0
    assert "no tag [/x] or [red] :smile:" in " ".join(done.stdout.split())
