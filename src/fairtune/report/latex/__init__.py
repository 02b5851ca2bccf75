"""The report for papers: tables to `\\input`, figures at column and page width, and a document that shows all."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from fairtune.analysis.results import Results
from fairtune.core.errors import FairtuneError, nearest, one_of, shown
from fairtune.core.printable import with_printable_texts
from fairtune.report.content import ArmRow, Header, ReportContent
from fairtune.report.latex.plain import plain_latex
from fairtune.report.latex.tables import metrics_table, scores_table, verdicts_table

TABLES = {"scores": scores_table, "verdicts": verdicts_table, "metrics": metrics_table}
PACKAGES = ("booktabs", "tabularx")
DOCUMENT = r"""{comment}
\documentclass[10pt,twocolumn]{{article}}
\usepackage[margin=0.8in]{{geometry}}
\usepackage{{booktabs,tabularx,graphicx}}
\begin{{document}}
\section*{{{title}}}
{text}

{body}
\end{{document}}
"""
FIGURE = r"""\begin{{figure{star}}}[t]
\centering\includegraphics[width={width}]{{figures/{name}}}
\caption{{{caption}}}
\end{{figure{star}}}"""


CAPTIONS = {
    "forest": "Differences to the arm compared with: thick interval alone, thin among all comparisons; the margin is shaded.",
    "scores": "Scores: each seed, mean and interval.",
    "curves": "Learning curves over optimizer steps.",
    "pareto": "Quality against cost; a line joins the arms that no other beats in both.",
    "times": "Total time of a run: mean, and lowest to highest run; not timed against each other.",
    "steps": "Time of a step along training: median over stretches of steps.",
}
ACROSS = ("curves", "pareto")
"""Figures that the document has as wide as the page."""
WIDE = "-wide"
"""How the names of those end."""


class LatexExporter:
    """Tables, figures and a document of its own."""

    name, place = "latex", "latex"

    def files(self, content: ReportContent, _: Results) -> dict[str, bytes]:
        content = with_printable_texts(content)
        header, rows = content.header, content.rows
        figures = paper_figures(content)
        texts = {f"{name}.tex": latex_table(header, rows, name) for name in TABLES}
        texts["report.tex"] = _document(header, figures)
        files = {name: text.encode("utf-8", "replace") for name, text in texts.items()}
        return {f"{self.place}/{name}": found for name, found in (files | figures).items()}


def latex_table(header: Header, rows: Sequence[ArmRow], name: str) -> str:
    """One of the tables, with a comment that says where it comes from.

    Raises:
        FairtuneError: there is no such table.
    """
    if name not in TABLES:
        raise FairtuneError(f"table: found {shown(name)}; allowed: {one_of(TABLES)}.{nearest(name, TABLES)}")
    return f"{comment_of(header)}\n{TABLES[name](header, rows)}"


def comment_of(header: Header) -> str:
    """Where a file comes from, as lines that LaTeX skips."""
    without = [f"arms that are left out (--arms): {', '.join(header.hidden)}"] if header.hidden else []
    lines = (
        f"study {header.study}, plan {header.plan}, fairtune {header.fairtune}, protocol {header.protocol}",
        f"made by: fairtune report {header.study} --format latex",
        *without,
        f"needs: \\usepackage{{{','.join(PACKAGES)}}}",
    )
    return "\n".join("% " + " ".join(line.split()) for line in lines)


def paper_figures(content: ReportContent) -> dict[str, bytes]:
    """Every figure that the study has something for, at both widths, as PDF and as SVG."""
    from fairtune.report.figures.paper import COLUMN, PAGE, figure_files  # matplotlib, which a table does without
    from fairtune.report.plots import PLOTS, PlotData

    curves, times = lambda: content.sections["curves"], lambda: content.sections["costs"].own
    data = PlotData(content.header.study, content.header, content.rows, curves, times)
    found: dict[str, bytes] = {}
    for name, draw in PLOTS.items():
        for end, width in (("", COLUMN), (WIDE, PAGE)):
            figure = draw(data, width)
            if figure is not None:
                found |= {f"figures/{name}{end}.{kind}": made for kind, made in figure_files(figure).items()}
    return found


def _document(header: Header, figures: Iterable[str]) -> str:
    """A document that shows every table and figure, as an example of how to use them."""
    text = (
        f"{header.task}, {header.model}, {header.metric_title}; plan {header.plan}, fairtune {header.fairtune}. Take over what you "
        "need: each table is a file of its own, and each figure is there for a column and, as -wide, for a page."
    )
    drawn = [name for name in CAPTIONS if f"figures/{name}.pdf" in set(figures)]
    body = [rf"\input{{{name}}}" for name in TABLES] + [_figure(name) for name in drawn]
    return DOCUMENT.format(
        comment=comment_of(header), title=plain_latex(header.study), text=plain_latex(text), body="\n".join(body)
    )


def _figure(name: str) -> str:
    star, end, width = ("*", WIDE, r"\textwidth") if name in ACROSS else ("", "", r"\columnwidth")
    return FIGURE.format(star=star, width=width, name=f"{name}{end}.pdf", caption=CAPTIONS[name])
