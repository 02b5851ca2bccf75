"""LaTeX of a report: tables that say what the results say, whatever the names, and that a real LaTeX sets without complaint."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from made_ledger import QK, ArmSpec, MadeLedger

from fairtune.analysis.results import Results
from fairtune.analysis.selected_arms import only_arms
from fairtune.report.content import ReportContent
from fairtune.report.evidence import arm_rows, make_header
from fairtune.report.figures.paper import COLUMN, figure_files
from fairtune.report.latex import TABLES, LatexExporter, latex_table
from fairtune.report.latex.plain import plain_latex
from fairtune.report.latex.tables import scores_table, verdicts_table
from fairtune.report.sections.forest.figure import draw_forest
from fairtune.report.writer import write_report

NASTY = r"a_b%c&d#e-~f^g\h{i}j-$k<l>|`m-\"--[x]é-中α-\input{passwd}"


@pytest.fixture(scope="module")
def folder(results: Results, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Everything there is for a paper, figures too."""
    return write_report(results, "latex", tmp_path_factory.mktemp("paper"))["latex"]


@pytest.fixture
def without_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables alone, since figures take seconds."""
    monkeypatch.setattr("fairtune.report.latex.paper_figures", lambda _: {})


def rows_of(table: str) -> list[list[str]]:
    body = table.partition(r"\midrule")[2].partition(r"\bottomrule")[0]
    return [[cell.strip() for cell in re.split(r"(?<!\\)&", row)] for row in body.split(r"\\") if "&" in row]


def test_the_verdict_table_has_a_row_for_every_comparison(results: Results, content: ReportContent) -> None:
    table = verdicts_table(content.header, content.rows)
    rows = rows_of(table)
    assert [row[:2] for row in rows] == [[one.arm, one.reference] for one in results.comparisons]
    oelm = next(row for row in rows if row[0] == "oelm-freeze")
    assert (oelm[2], oelm[3]) == ("3", "$-18.50$")
    assert oelm[-1] == r"inferior$^{\ddagger}$"
    assert "|" not in table.partition("tabularx}{")[2].partition("\n")[0], "no vertical lines"
    assert all(
        word in table for word in (r"\toprule", r"\bottomrule", "Holm", r"95 \%", "Margin: 1.26 points", "differ in lr")
    )


def test_scores_have_plus_minus_a_mark_and_the_number_of_the_other_arm(content: ReportContent) -> None:
    rows = {row[1]: row for row in rows_of(scores_table(content.header, content.rows))}
    assert rows["baseline"][3].startswith(r"$84.00 \pm ")
    assert rows["baseline"][4:] == ["", ""]
    assert rows["oelm-freeze"][4] == rows["baseline-fast"][0] == "2"
    assert rows["oelm-freeze"][5].endswith(r"\rlap{$^{\ddagger}$}")
    assert rows["later"][3] == "--", "what has not run has no score"


def test_every_file_tells_where_it_comes_from(folder: Path) -> None:
    files = sorted(folder.glob("*.tex"))
    assert [file.name for file in files] == ["metrics.tex", "report.tex", "scores.tex", "verdicts.tex"]
    for text in (file.read_text() for file in files):
        assert text.startswith("% study made, plan 0123456789abcdef, fairtune ")
        assert "% made by: fairtune report made --format latex\n" in text


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("a_b", r"a\_\allowbreak{}b"),
        ("50%", r"50\%"),
        ("\\x{y}", r"\textbackslash{}x\{y\}"),
        ("~^", r"\textasciitilde{}\textasciicircum{}"),
        ("a--b", "a-{}-b"),
        ("é", r"\'{e}"),
        ("β", r"\ensuremath{\beta}"),
        ("中", r"\texttt{U+4E2D}"),
        ("−1 ± 2", r"\ensuremath{-}1 \ensuremath{\pm} 2"),
        ("a\nb\x1b", r"a b\textbackslash{}x1b"),
        ("[t]", "{[}t{]}"),
    ],
)
def test_names_are_shown_as_they_are(given: str, shown: str) -> None:
    assert plain_latex(given) == shown


def compile_latex(folder: Path) -> str:
    """The log of pdflatex; the whole document, twice."""
    if shutil.which("pdflatex") is None:
        pytest.skip("no pdflatex here: apt install texlive-latex-base texlive-latex-recommended")
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "-no-shell-escape", "report.tex"]
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, errors="replace", timeout=120, check=False
    )
    assert done.returncode == 0, done.stdout[-2000:]
    return done.stdout


def overfull(log: str) -> list[str]:
    return re.findall(r"Overfull \\hbox \(([0-9.]+)pt", log)


def test_a_real_latex_sets_it(folder: Path) -> None:
    log = compile_latex(folder)
    assert overfull(log) == []
    assert "figures/forest.pdf" in log
    assert "figures/curves-wide.pdf" in log
    assert (folder / "report.pdf").read_bytes().startswith(b"%PDF")


def test_figures_are_vectors_with_their_letters_at_both_widths(folder: Path) -> None:
    names = {path.name for path in (folder / "figures").iterdir()}
    assert {"forest.pdf", "forest.svg", "forest-wide.pdf", "scores.pdf", "curves-wide.svg"} <= names
    pdf = (folder / "figures" / "forest.pdf").read_bytes()
    assert b"/FontFile2" in pdf, "letters are embedded"
    assert b"/MediaBox [ 0 0 237.6 " in pdf, "3.3 inches"
    assert b"<text" not in (folder / "figures" / "forest.svg").read_bytes(), "letters are outlines"


def test_a_figure_is_the_same_every_time(content: ReportContent, folder: Path) -> None:
    made = figure_files(draw_forest(content.header, content.rows, COLUMN))
    assert made == {kind: (folder / "figures" / f"forest.{kind}").read_bytes() for kind in ("pdf", "svg")}


@pytest.mark.usefixtures("without_figures")
def test_a_real_latex_sets_twelve_arms_and_names_of_all_kinds(
    make_ledger: Callable[..., MadeLedger], tmp_path: Path
) -> None:
    arms = {"baseline": ArmSpec([330, 331, 335])}
    arms |= {f"oelm-freeze-of-variant-{n}": ArmSpec([300 + n, 305, 310], methods=QK) for n in range(10)}
    arms |= {NASTY: ArmSpec([320, 321, 322], lr=1e-4), "tfidf": ArmSpec([300, 300, 300], learner="tfidf")}
    results = make_ledger(arms, margin="1.5%").results()
    folder = write_report(results, "latex", tmp_path / "out")["latex"]
    log = compile_latex(folder)
    assert overfull(log) == []
    assert "passwd.tex" not in log, "a name is no command"


@pytest.mark.usefixtures("without_figures")
def test_a_real_latex_sets_language_models(text_content: ReportContent, results: Results, tmp_path: Path) -> None:
    for name, content in LatexExporter().files(text_content, results).items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    assert "Lower is better" in (tmp_path / "latex" / "scores.tex").read_text()
    assert overfull(compile_latex(tmp_path / "latex")) == []


def test_a_table_of_some_arms_says_so_wherever_it_is_pasted(results: Results) -> None:
    some = only_arms(results, ["focal"])
    for name in TABLES:
        said = latex_table(make_header(some), arm_rows(some), name)
        assert "2 of the study's 5 arms are shown; corrections are for all." in said
        assert "% arms that are left out (--arms): baseline-fast, oelm-freeze, later" in said
        assert "arms are shown" not in latex_table(make_header(results), arm_rows(results), name)
