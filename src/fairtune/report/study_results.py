"""A study's results as people use them, in a script or a notebook: they show themselves, draw figures and write reports."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from fairtune.analysis.results import Results
from fairtune.analysis.study_claims import AnsweredClaim, study_claims

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class StudyResults(Results):
    """What a study found, with every way to show it. Everything is recomputed from the ledger."""

    @cached_property
    def claims(self) -> list[AnsweredClaim]:
        """The claims of the study file: `word`, `answer` with its figures, and when each was written."""
        return study_claims(self)

    def report(
        self, formats: str | Sequence[str] = ("html", "md", "json"), folder: str | Path | None = None
    ) -> dict[str, Path]:
        """Write the report; returns by format the file, or the folder where there are several.

        Args:
            formats: of html, md, json, latex and csv.
            folder: where to; None is `report` beside the study's runs.

        Raises:
            FairtuneError: there is no such format, or the folder cannot be written.
        """
        from fairtune.report.writer import write_report  # matplotlib: a second that a table need not wait for

        return write_report(self, formats, folder)

    def plot(self, name: str = "forest", width: float = 6.8) -> Figure:
        """A figure: `forest` (differences and verdicts), `scores`, `curves` (over steps) or `pareto` (quality against cost).

        Args:
            width: in inches; 3.3 is a column of a paper.

        Raises:
            FairtuneError: there is no such figure, or the study has nothing to draw.
        """
        from fairtune.report.plots import draw_plot, plot_data

        return draw_plot(plot_data(self), name, width)

    def to_latex(self, table: str = "verdicts") -> str:
        """A table for a paper: `verdicts` (as wide as the page), `scores` (as a column) or `metrics`; booktabs and tabularx.

        Raises:
            FairtuneError: there is no such table.
        """
        from fairtune.report.evidence import arm_rows, make_header
        from fairtune.report.latex import latex_table

        return latex_table(make_header(self), arm_rows(self), table)

    def _repr_html_(self) -> str:
        from fairtune.report.notebook import results_html

        return results_html(self)


def load_results(runs: str | Path, study: str) -> StudyResults:
    """The results of a study that was run before."""
    return StudyResults(Path(runs), study)
