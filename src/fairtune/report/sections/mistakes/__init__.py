"""Mistakes: what classifiers get wrong, counted over runs, with examples and shares by kind and by length."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from fairtune.core.markdown import heading
from fairtune.report.content import ReportContent
from fairtune.report.figures.widths import both_widths
from fairtune.report.section import ReportSection
from fairtune.report.sections.mistakes import words
from fairtune.report.sections.mistakes.content import MistakesSection, drawn_arms, read_mistakes


def markdown(mistakes: MistakesSection, report: ReportContent) -> Iterator[str]:
    yield from heading("Mistakes")
    yield from words.mistake_lines(mistakes, report.header.confidence)


def names(mistakes: MistakesSection, _: ReportContent) -> dict[str, Any]:
    called = (
        words.mistakes_intro, words.mistake_heads, words.mistake_cells, words.groups_text, words.example_text,
        words.hard_list, words.arm_lists, words.matrix, drawn_arms,
    )  # fmt: skip
    return {show.__name__: show for show in called} | {"figure": both_widths("mistakes.figure:groups_svg", mistakes)}


SECTION = ReportSection(__name__, lambda evidence: read_mistakes(evidence.results), markdown, names, folded=True)
