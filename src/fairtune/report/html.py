"""The report as one HTML page that needs nothing else: no network, no script."""

from __future__ import annotations

import re

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from fairtune.analysis.progress import steps_text
from fairtune.report import data_section, numbers, text_data
from fairtune.report.attention import head_maps, layer_rows
from fairtune.report.content import ReportContent
from fairtune.report.costs import cost_text, expected_text
from fairtune.report.curve_figure import curves_svg
from fairtune.report.figures import differences_svg, scores_svg
from fairtune.report.maps.page_figures import map_figures
from fairtune.report.maps.section import REPORT_COLUMNS, shown_text
from fairtune.report.mistakes.figure import drawn_arms, groups_svg
from fairtune.report.mistakes.words import (
    example_text,
    groups_text,
    lists,
    matrix,
    mistake_cells,
    mistake_heads,
    mistakes_intro,
)  # fmt: skip
from fairtune.report.origin import origin_of
from fairtune.report.samples import samples_text
from fairtune.report.scales import relative, scale_of
from fairtune.report.spread_figure import spread_svg
from fairtune.report.worth_words import gain_cells, gain_heading, left_out_text, settings_text, worth_notes

FORMATS = (
    numbers.between, numbers.p_value, numbers.significant, numbers.whole,
    numbers.share, numbers.gigabytes, numbers.megabytes, numbers.millions, numbers.ratio, numbers.error_size,
    numbers.trains, numbers.confidence, scale_of, relative, steps_text, layer_rows, head_maps,
    data_section.split_rows, data_section.overlap_heads, data_section.overlap_rows, data_section.remarks,
    data_section.contradictions, data_section.without_card, text_data.text_rows, text_data.text_remarks,
    text_data.tokenizer_text, samples_text, shown_text, expected_text, cost_text, gain_cells, gain_heading, settings_text,
    worth_notes, left_out_text, mistakes_intro, mistake_heads, mistake_cells, groups_text, example_text, lists, matrix,
    drawn_arms,
)  # fmt: skip


def unbroken(text: str) -> str:
    """Text whose short formulas (n = 3, p < .001, 95 %) are not torn apart at a line's end."""
    return re.sub(r" ([=<]) ", "\u00a0\\1\u00a0", text).replace(" %", "\u00a0%")


def coded(text: str) -> Markup:
    """Text, made safe, in which what stands between backticks is code."""
    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(text))))


class HtmlExporter:
    """The page for readers."""

    name, file_name = "html", "index.html"

    def render(self, content: ReportContent) -> str:
        environment = Environment(
            loader=PackageLoader("fairtune.report", "."),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        environment.globals.update({show.__name__: show for show in FORMATS}, dash=numbers.DASH)
        environment.globals.update(
            splits=data_section.TITLES, hash_length=data_section.HASH, map_columns=REPORT_COLUMNS
        )
        environment.filters.update(unbroken=unbroken, coded=coded)
        # The figures are markup of our own making; matplotlib escapes the names in them.
        figures = {
            "scores": Markup(scores_svg(content)),
            "differences": Markup(differences_svg(content))
            if any(r.versus and r.versus.low is not None for r in content.rows)
            else None,
            "curves": Markup(curves_svg(content)) if any(c.loss or c.score for c in content.curves) else None,
            "spread": Markup(spread) if (spread := spread_svg(content)) else None,
            "groups": Markup(groups) if content.mistakes and (groups := groups_svg(content.mistakes)) else None,
            "maps": map_figures(content.maps, content.header.metric) if content.maps else None,
        }
        return environment.get_template("template.html.j2").render(
            content=content,
            header=content.header,
            figures=figures,
            scale=scale_of(content.header.metric),
            origin=origin_of(content.header.from_scratch),
        )
