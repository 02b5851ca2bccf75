"""Results in a notebook: they show themselves, and every cell of the example runs."""

from __future__ import annotations

import ast
import json
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from made_ledger import STUDY, ArmSpec, MadeLedger
from made_timing import time_ledger
from matplotlib.figure import Figure

import fairtune
from fairtune.core.errors import FairtuneError
from fairtune.report.plots import PLOTS
from fairtune.report.study_results import StudyResults, load_results

NOTEBOOK = Path(__file__).parents[2] / "examples" / "results.ipynb"


@pytest.fixture(scope="module")
def shown(kept_ledger: MadeLedger) -> StudyResults:
    return load_results(kept_ledger.runs, STUDY)


class Cells(HTMLParser):
    """The rows of a table, and every tag."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.rows: list[list[str]] = []
        self.tags: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert {name for name, _ in attrs} <= {"style", "class", "aria-hidden"}
        self.tags.add(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_data(self, data: str) -> None:
        if self.rows and self.rows[-1]:
            self.rows[-1][-1] += data


def test_results_show_the_opening_and_every_verdict(shown: StudyResults) -> None:
    text = shown._repr_html_()
    table = Cells(text)
    assert table.tags <= {"div", "p", "b", "table", "thead", "tbody", "tr", "th", "td", "span"}, "nothing runs or loads"
    words = {row[0]: row[1].removeprefix("● ") for row in table.rows[1:]}
    assert words == {finding.arm: finding.word for finding in shown.verdict().findings}
    assert "11 of 15 runs finished" in text
    assert "color:#000" not in text.replace(" ", ""), "letters have the notebook's colour, dark or light"


def test_names_of_others_stay_text(make_ledger: Callable[..., MadeLedger]) -> None:
    made = make_ledger({"baseline": ArmSpec([330, 331]), "<img src=x>&{}": ArmSpec([329, 331])})
    made.results()
    table = Cells(load_results(made.runs, STUDY)._repr_html_())
    assert "img" not in table.tags
    assert table.rows[2][0] == "<img src=x>&{}"


@pytest.mark.parametrize("width", [3.3, 6.8])
@pytest.mark.parametrize("name", [name for name in PLOTS if name != "pareto"])
def test_figures_come_by_name_and_width(shown: StudyResults, name: str, width: float) -> None:
    figure = shown.plot(name, width)
    assert isinstance(figure, Figure)
    assert figure.get_size_inches()[0] == pytest.approx(width)
    assert figure._repr_png_().startswith(b"\x89PNG"), "shown by a notebook that has not imported pyplot"  # type: ignore[attr-defined]


def test_quality_against_cost_takes_times(shown: StudyResults, ledger: MadeLedger) -> None:
    with pytest.raises(FairtuneError, match="nothing for 'pareto' yet; others: forest, scores, curves"):
        shown.plot("pareto")
    time_ledger(ledger, {"baseline": 0.5, "baseline-fast": 0.5, "oelm-freeze": 0.44})
    ledger.results()
    assert isinstance(load_results(ledger.runs, STUDY).plot("pareto", 3.3), Figure)


def test_an_unknown_figure_or_table_is_told_with_what_there_is(shown: StudyResults) -> None:
    with pytest.raises(FairtuneError, match=r"found 'forrest'; there are: forest, .*Did you mean 'forest'\?"):
        shown.plot("forrest")
    with pytest.raises(FairtuneError, match="2 to 40 inches"):
        shown.plot("forest", width=300)
    with pytest.raises(FairtuneError, match=r"found 'score'; allowed: .*Did you mean 'scores'\?"):
        shown.to_latex("score")


def test_what_there_is_nothing_for_is_told(make_ledger: Callable[..., MadeLedger]) -> None:
    made = make_ledger({"baseline": ArmSpec([None]), "other": ArmSpec([None])})
    with pytest.raises(FairtuneError, match="'made' has nothing for 'curves' yet"):
        load_results(made.runs, STUDY).plot("curves")


def test_latex_is_that_of_the_report(shown: StudyResults, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fairtune.report.latex.paper_figures", lambda _: {})
    folder = shown.report("latex", tmp_path)["latex"]
    assert shown.to_latex() == (folder / "verdicts.tex").read_text()
    assert shown.to_latex("scores") == (folder / "scores.tex").read_text()


def test_public_results_have_it_all_and_other_views_too(kept_ledger: MadeLedger) -> None:
    results = fairtune.load_results(kept_ledger.runs, STUDY)
    assert isinstance(results, fairtune.Results)
    assert isinstance(results.by("macro_f1"), fairtune.StudyResults)
    assert "macro-F1" in results.by("macro_f1")._repr_html_()


def run_cell(source: str, names: dict[str, Any]) -> Any:
    """The value of a cell's last expression, as notebooks show it."""
    tree = ast.parse(source)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, "cell", "exec"), names)
    return None if last is None else eval(compile(ast.Expression(last.value), "cell", "eval"), names)


@pytest.mark.slow
@pytest.mark.usefixtures("performed_here", "undrawn")
def test_the_example_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr("fairtune.report.latex.paper_figures", lambda _: {})
    notebook = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert (notebook["nbformat"], len({cell["id"] for cell in notebook["cells"]})) == (4, len(notebook["cells"]))
    assert not any(cell["outputs"] or cell["execution_count"] for cell in cells), "kept without outputs"
    names: dict[str, Any] = {"__name__": "__main__"}
    values = [run_cell("".join(cell["source"]), names) for cell in cells]
    kinds = [type(value).__name__ for value in values if value is not None]
    assert kinds == ["StudyResults", *["ReportFigure"] * 3, "DataFrame", "DataFrame", "dict", "DataFrame"]
    assert (names["folder"] / "report" / "index.html").is_file()
