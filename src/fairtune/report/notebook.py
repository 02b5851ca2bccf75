"""Results as a notebook shows them: the opening sentence and the verdicts, in a table that follows the notebook's colours."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from fairtune.analysis.results import Results
from fairtune.analysis.scales import Scale, scale_of
from fairtune.core.numbers import DASH, confidence, p_value
from fairtune.core.printable import with_printable_texts
from fairtune.report.content import ArmRow, Header
from fairtune.report.evidence import arm_rows, make_header
from fairtune.report.figures.palette import GREY, VERDICTS
from fairtune.report.sections.results.markdown import difference_cell, summary_text

LINE = "border:0;border-bottom:1px solid rgba(128,128,128,.35);padding:.25em .7em;background:none;color:inherit;white-space:nowrap;"
"""Styles stand at each cell: notebooks and code hosts take style sheets out. Colours are the notebook's own."""
LEFT, RIGHT = f"{LINE}text-align:left;", f"{LINE}text-align:right;"
NUMBERS = (False, False, True, True, False, True, True)
"""Which columns are of figures."""


def results_html(results: Results) -> str:
    """A page's part that needs nothing else: no script, no style sheet, no picture."""
    header, rows = with_printable_texts((make_header(results), arm_rows(results)))
    verdict = with_printable_texts(results.verdict())
    scale = scale_of(header.metric)
    lower = ", lower is better" if scale.lower_is_better else ""
    family = f" among {header.family}" if header.family > 1 else ""
    unit = "%" if scale.plain else scale.difference
    heads = (
        "arm", "verdict", "n", f"{scale.heading}{lower}", "against",
        f"difference ({unit}; {confidence(header.confidence)}{family})", "p (Holm)",
    )  # fmt: skip
    body = Markup("").join(_row("td", _cells(header, scale, row)) for row in rows)
    done, planned = header.statuses.get("finished", 0), sum(header.statuses.values())
    facts = (
        f"{header.task} · {header.model} · {header.metric_title} · {len(header.seeds)} seeds · {done} of {planned} runs "
        f"finished · plan {header.plan}"
    )
    return str(
        Markup(
            '<div class="fairtune" style="max-width:100%;overflow-x:auto"><p><b>{}</b>: {}</p>'
            '<table style="border-collapse:collapse;margin:.5em 0;color:inherit;font:inherit">'
            "<thead>{}</thead><tbody>{}</tbody></table>"
            '<p style="opacity:.75;font-size:90%">{}</p></div>'
        ).format(header.study, verdict.opening, _row("th", heads), body, facts)
    )


def _cells(header: Header, scale: Scale, row: ArmRow) -> tuple[str, ...]:
    own, versus = row.summaries[header.metric], row.versus
    figures = (str(own.n), summary_text(scale, own))
    if versus is None:
        return row.arm, "reference", *figures, DASH, DASH, DASH
    dot = Markup('<span style="color:{}" aria-hidden="true">●</span> {}').format(
        VERDICTS.get(versus.word, GREY), versus.word
    )
    return row.arm, dot, *figures, versus.reference, difference_cell(scale, versus), p_value(versus.p)


def _row(tag: str, cells: Sequence[str]) -> Markup:
    made = (
        Markup("<{0} style='{1}'>{2}</{0}>").format(tag, Markup(RIGHT if number else LEFT), cell)
        for cell, number in zip(cells, NUMBERS, strict=True)
    )
    return Markup("<tr style='background:none'>{}</tr>").format(Markup("").join(made))
