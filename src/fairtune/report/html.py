"""The report as one HTML page that needs nothing else: no network, no script."""

from __future__ import annotations

import re

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from fairtune.core import numbers
from fairtune.core.printable import LINES, printable, with_printable_texts
from fairtune.report.content import ReportContent
from fairtune.report.exporter import TextExporter
from fairtune.report.init_cards import origin_of
from fairtune.report.sections.catalogue import SECTIONS
from fairtune.settings.scales import relative, scale_of

FORMATS = (
    numbers.low_to_high, numbers.p_value, numbers.significant, numbers.whole, numbers.share, numbers.gigabytes,
    numbers.megabytes, numbers.millions, numbers.ratio, numbers.error_size, numbers.trains, numbers.confidence, scale_of,
    relative,
)  # fmt: skip
"""What every template may call."""


def unbroken(text: str) -> str:
    """Text whose short formulas (n = 3, p < .001, 95 %) are not torn apart at a line's end."""
    return re.sub(r" ([=<]) ", "\u00a0\\1\u00a0", text).replace(" %", "\u00a0%")


def coded(text: str) -> Markup:
    """Text, made safe, in which what stands between backticks is code."""
    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(text))))


class HtmlExporter(TextExporter):
    """The page for readers."""

    name, file_name = "html", "index.html"

    def render(self, content: ReportContent) -> str:
        content = with_printable_texts(content)  # before figures are drawn, which stumble over codes
        environment, header = _environment(), content.header
        environment.globals.update(
            header=header,
            rows=content.rows,
            scale=scale_of(header.metric),
            level=numbers.confidence(header.confidence),
            metric=scale_of(header.metric).heading,
            origin=origin_of(header.from_scratch),
        )
        present = [(section, found) for section in SECTIONS if (found := content.sections[section.name]) is not None]
        texts = [
            environment.from_string(section.template()).render(content=found, **section.names(found, content)).strip()
            for section, found in present
        ]
        page = environment.get_template("page.html.j2").render(
            sections=[Markup(text) for text in texts if text],  # made of templates, which escape what is put in them
            pictures=any(section.pictures for section, _ in present),
        )
        return printable(page, LINES)


def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("fairtune.report", "."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals.update({show.__name__: show for show in FORMATS}, dash=numbers.DASH)
    environment.filters.update(unbroken=unbroken, coded=coded)
    return environment
