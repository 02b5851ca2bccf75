"""The report as one HTML page that needs nothing else: no network, no script."""

from __future__ import annotations

import re

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from fairtune.analysis.progress import steps_text
from fairtune.core import numbers
from fairtune.core.printable import LINES, printable, with_printable_texts
from fairtune.report import (
    costs,
    data_section,
    text_data,
    worth_words,
)
from fairtune.report.attention import head_maps, layer_rows
from fairtune.report.content import ReportContent
from fairtune.report.curve_figure import curves_svg
from fairtune.report.figures import differences_svg, scores_svg
from fairtune.report.maps.page_figures import map_figures
from fairtune.report.maps.section import REPORT_COLUMNS, shown_text
from fairtune.report.mistakes import words as mistakes
from fairtune.report.mistakes.figure import drawn_arms, groups_svg
from fairtune.report.origin import origin_of
from fairtune.report.representation import words as representation
from fairtune.report.representation.drawing import cloud_svg
from fairtune.report.representation.section import RepresentationSection
from fairtune.report.samples import samples_text
from fairtune.report.scales import relative, scale_of
from fairtune.report.spread_figure import spread_svg

FORMATS = (
    numbers.low_to_high, numbers.p_value, numbers.significant, numbers.whole,
    numbers.share, numbers.gigabytes, numbers.megabytes, numbers.millions, numbers.ratio, numbers.error_size,
    numbers.trains, numbers.confidence, scale_of, relative, steps_text, layer_rows, head_maps,
    data_section.split_rows, data_section.overlap_heads, data_section.overlap_rows, data_section.remarks,
    data_section.contradictions, data_section.without_card, text_data.text_rows, text_data.text_remarks,
    text_data.tokenizer_text, samples_text, shown_text, costs.cost_parts, costs.expected_text,
    worth_words.gain_cells, worth_words.gain_heading, worth_words.settings_text, worth_words.worth_notes,
    worth_words.left_out_text, mistakes.mistakes_intro, mistakes.mistake_heads, mistakes.mistake_cells,
    mistakes.groups_text, mistakes.example_text, mistakes.hard_list, mistakes.arm_lists, mistakes.matrix, drawn_arms,
    representation.representation_caption, representation.representation_remarks, representation.class_key,
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
        content = with_printable_texts(content)  # before figures are drawn, which stumble over codes
        environment = Environment(
            loader=PackageLoader("fairtune.report", "."),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        environment.globals.update({show.__name__: show for show in FORMATS}, dash=numbers.DASH)
        environment.globals.update(
            splits=data_section.TITLES,
            hash_length=data_section.HASH,
            map_columns=REPORT_COLUMNS,
            representation_reading=representation.READING,
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
            "clouds": _clouds(content.representation) if content.representation else None,
            "maps": map_figures(content.maps, content.header.metric) if content.maps else None,
        }
        page = environment.get_template("template.html.j2").render(
            content=content,
            header=content.header,
            figures=figures,
            scale=scale_of(content.header.metric),
            origin=origin_of(content.header.from_scratch),
        )
        return printable(page, LINES)


def _clouds(section: RepresentationSection) -> dict[str, Markup]:
    return {arm.arm: Markup(cloud_svg(arm, section.labels)) for arm in section.arms}
