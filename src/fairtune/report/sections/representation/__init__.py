"""Representation: what fine-tuned models make of test examples, brought to a plane."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from markupsafe import Markup

from fairtune.core.markdown import heading, items, plain
from fairtune.report.content import ReportContent
from fairtune.report.figures.kept import kept_figure
from fairtune.report.section import ReportSection
from fairtune.report.sections.representation import content
from fairtune.report.sections.representation.content import RepresentationSection

CLOUD = "representation.figure:cloud_svg"


def markdown(found: RepresentationSection, _: ReportContent) -> Iterator[str]:
    yield from heading("Representation")
    captions = map(content.representation_caption, found.arms)
    yield from items(map(plain, (*captions, *content.representation_remarks(found))))
    yield ""
    yield "The pictures (t-SNE) are in the HTML page."


def names(found: RepresentationSection, _: ReportContent) -> dict[str, Any]:
    called = (content.representation_caption, content.representation_remarks, content.class_key)
    return {show.__name__: show for show in called} | {
        "reading": content.READING,
        "clouds": {
            arm.arm: Markup(kept_figure(CLOUD, arm, found.labels)) for arm in found.arms
        },  # names in it are escaped
    }


SECTION = ReportSection(
    __name__,
    lambda evidence: content.read_representation(evidence.results),
    markdown,
    names,
    json=lambda found: {"representation": found.without_vectors()},
    folded=True,
)
