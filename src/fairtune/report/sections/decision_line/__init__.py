"""The decision line: where each arm tells two classes apart, and what its figures would be at one half."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from fairtune.analysis.decision_lines import VALIDATION, line_metric, probability_at
from fairtune.analysis.results import Results
from fairtune.analysis.scales import scale_of
from fairtune.core.markdown import heading, plain, table
from fairtune.core.numbers import DASH, significant
from fairtune.report.content import Evidence, Header, ReportContent
from fairtune.report.section import ReportSection
from fairtune.settings.metrics import METRICS, metrics_of_classes

TITLE = "The decision line"


@dataclass(frozen=True)
class ArmLine:
    """Where the runs of an arm draw the line.

    Args:
        line, lowest, highest: the probability of the second class above which it is said; the mean over runs and their range.
        figures: by metric, the mean over runs at that line, and at one half.
    """

    arm: str
    n: int
    line: float
    lowest: float
    highest: float
    figures: dict[str, tuple[float, float]]


@dataclass(frozen=True)
class DecisionLines:
    """The lines of all arms.

    Args:
        second: the class that is said above the line.
    """

    picked_by: str
    second: str
    arms: tuple[ArmLine, ...]


def gather(evidence: Evidence) -> DecisionLines | None:
    results = evidence.results
    if results.kind != "classify" or results.registration.threshold != VALIDATION:
        return None
    arms = [_arm(results, arm) for arm in results.arms if results.finished(arm)]
    second = str(results.plan["task"]["labels"][1])
    return DecisionLines(line_metric(results.metric), second, tuple(arms)) if arms else None


def _arm(results: Results, arm: str) -> ArmLine:
    runs = results.finished(arm)
    lines = [probability_at(run.line) for run in runs]
    halves = [run.half_metrics for run in runs]
    figures = {
        name: (float(np.mean([run.metrics[name] for run in runs])), float(np.mean([half[name] for half in halves])))
        for name in metrics_of_classes(2)
        if METRICS[name].has_line
    }
    return ArmLine(arm, len(runs), float(np.mean(lines)), min(lines), max(lines), figures)


def line_text(one: ArmLine) -> str:
    """A probability, with the range over runs where there are several."""
    if one.n == 1:
        return significant(one.line)
    return f"{significant(one.line)} ({significant(one.lowest)} to {significant(one.highest)})"


def half_text(name: str, one: ArmLine) -> str:
    """What the figure at one half differs by."""
    at_line, at_half = one.figures[name]
    return scale_of(name).signed(at_half - at_line)


def note_text(found: DecisionLines, header: Header) -> str:
    """How to read it."""
    return (
        f"Each run says “{found.second}” above the probability at which it did best on its own validation split, by "
        f"{scale_of(found.picked_by).title}; of equally good ones the nearest to one half. All figures of predicted classes in "
        f"this report are at those lines, means over n seeds of the test split of {header.task}. Beside each stands by "
        "how much the figure at one half differs, in points."
    )


def markdown(found: DecisionLines, report: ReportContent) -> Iterator[str]:
    yield from heading(TITLE)
    yield plain(note_text(found, report.header))
    yield ""
    shown = list(found.arms[0].figures)
    heads = ["arm", "n", "line", *(plain(scale_of(name).heading) for name in shown)]
    yield from table(heads, [[plain(one.arm), str(one.n), line_text(one), *_cells(one)] for one in found.arms])


def _cells(one: ArmLine) -> Iterator[str]:
    for name, (at_line, _) in one.figures.items():
        yield f"{scale_of(name).value(at_line)} (at one half {half_text(name, one)})" if one.n else DASH


def names(found: DecisionLines, report: ReportContent) -> dict[str, Any]:
    return {
        "title": TITLE, "note": note_text(found, report.header), "shown": list(found.arms[0].figures),
        "line_text": line_text, "half_text": half_text,
    }  # fmt: skip


SECTION = ReportSection(__name__, gather, markdown, names)
