"""The report as one HTML page that needs nothing else: no network, and all of it is there without its script."""

from __future__ import annotations

import hashlib
import re
from base64 import b64encode
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from fairtune.analysis.opening_sentence import shorten_lists
from fairtune.analysis.scales import relative, scale_of
from fairtune.core import numbers
from fairtune.core.printable import LINES, printable, with_printable_texts
from fairtune.report.content import ReportContent
from fairtune.report.exporter import TextExporter
from fairtune.report.figures.palette import arm_style
from fairtune.report.init_cards import origin_of
from fairtune.report.section import ReportSection
from fairtune.report.sections.catalogue import SECTIONS

FORMATS = (
    numbers.low_to_high, numbers.p_value, numbers.significant, numbers.whole, numbers.share, numbers.gigabytes,
    numbers.megabytes, numbers.millions, numbers.ratio, numbers.error_size, numbers.trains, numbers.confidence, scale_of,
    relative,
)  # fmt: skip
"""What every template may call."""

LONGEST_WHOLE = 40
"""Letters of a name that fits on a phone's line; a longer one may be broken, as the macro `arm_name` has it."""
DASHES_SHOWN = {"-": "none", "--": "7 3", ":": "2 3", "-.": "7 3 2 3"}


def unbroken(text: str) -> str:
    """Text whose short formulas (n = 3, p < .001, 95 %) are not torn apart at a line's end."""
    return re.sub(r" ([=<]) ", "\u00a0\\1\u00a0", text).replace(" %", "\u00a0%")


def keep_names(text: str, arms: Iterable[str]) -> Markup:
    """Text, made safe, in which names of arms are not torn apart at their hyphens."""
    breakable = [arm for arm in arms if len(arm) <= LONGEST_WHOLE and re.fullmatch(r"[\w+]+(-[\w+]+)+", arm)]
    if not breakable:
        return escape(text)
    names = re.compile(rf"(?<![\w+-])({'|'.join(map(re.escape, sorted(breakable, key=len, reverse=True)))})(?![\w+-])")
    return Markup(names.sub(r'<span class="arm">\1</span>', str(escape(text))))


def coded(text: str) -> Markup:
    """Text, made safe, in which what stands between backticks is code."""
    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(text))))


class HtmlExporter(TextExporter):
    """The page for readers."""

    name, file_name = "html", "index.html"

    def render(self, content: ReportContent) -> str:
        content = with_printable_texts(content)  # before figures are drawn, which stumble over codes
        environment, header = page_environment(), content.header
        environment.globals.update(
            header=header,
            rows=content.rows,
            scale=scale_of(header.metric),
            level=numbers.confidence(header.confidence),
            metric=scale_of(header.metric).heading,
            origin=origin_of(header.from_scratch),
        )
        places = {row.arm: place for place, row in enumerate(content.rows)}
        environment.filters.update(named=lambda text: keep_names(text, places))
        environment.globals.update(
            of_arm=lambda arm: Markup(f' data-arm="{places[arm]}"') if arm in places else "", swatch=swatch
        )
        present = [(section, found) for section in SECTIONS if (found := content.sections[section.name]) is not None]
        shown = [
            PageSection.of(
                section,
                environment.from_string(section.template()).render(content=found, **section.names(found, content)),
            )
            for section, found in present
        ]
        script = (files("fairtune.report") / "page.js").read_text(encoding="utf-8")
        page = environment.get_template("page.html.j2").render(
            sections=[section for section in shown if section.text],
            pictures=any(section.pictures for section, _ in present),
            script=Markup(script),
            script_hash=f"sha256-{b64encode(hashlib.sha256(script.encode()).digest()).decode('ascii')}",
        )
        return printable(page, LINES)


@dataclass(frozen=True)
class PageSection:
    """A section of the page.

    Args:
        title: its heading, which folds it; empty for what the page begins with.
        text: the rest; both are made of templates, which escape what is put in them.
    """

    name: str
    title: Markup
    text: Markup
    folded: bool

    @classmethod
    def of(cls, section: ReportSection[Any], text: str) -> PageSection:
        """A section whose template begins with its heading."""
        before, heading, rest = text.partition("</h2>")
        if not heading:
            return cls(section.name, Markup(), Markup(text.strip()), folded=False)
        return cls(section.name, Markup(before.strip() + heading), Markup(rest.strip()), section.folded)


def swatch(place: int) -> Markup:
    """The line by which figures know an arm."""
    style = arm_style(place)
    dashes = DASHES_SHOWN[style["linestyle"]]
    line = (
        f'<line x1="0" x2="24" y1="5" y2="5" stroke="{style["color"]}" stroke-width="3" stroke-dasharray="{dashes}"/>'
    )
    return Markup(f'<svg viewBox="0 0 24 10" aria-hidden="true">{line}</svg>')


def page_environment() -> Environment:
    """What templates are rendered with: everything is escaped."""
    environment = Environment(
        loader=PackageLoader("fairtune.report", "."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals.update({show.__name__: show for show in FORMATS}, dash=numbers.DASH)
    environment.filters.update(unbroken=unbroken, coded=coded, named=escape, shorten_lists=shorten_lists)
    return environment
