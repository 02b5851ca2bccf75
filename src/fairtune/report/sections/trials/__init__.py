"""Tuning: what each arm tried and chose, and the validation score to expect of fewer trials."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from fairtune.analysis.scales import Scale, scale_of
from fairtune.analysis.tuned_arms import StudyTuning, TunedArm, point_text
from fairtune.core.markdown import heading, plain, prose, table
from fairtune.core.numbers import as_percent
from fairtune.ledger.trials import TrialScores
from fairtune.report.content import Evidence, ReportContent
from fairtune.report.figures.widths import both_widths
from fairtune.report.section import ReportSection

HEADS = ("arm", "settings", "validation", "by seed", "")
CURVE = (
    "The best of several trials is flattered by luck, here as anywhere: compare arms by the test scores above, and use this to "
    "see whether an arm would also be ahead with fewer trials. The expectation is over every choice of so many of the trials; "
    "the interval covers 95 % of draws of trials and of their seeds."
)


def gather(evidence: Evidence) -> StudyTuning | None:
    return evidence.results.tuning


def notes_of(tuning: StudyTuning) -> tuple[str, ...]:
    """How settings were chosen, in sentences."""
    drawn = {
        "grid": "The whole grid was tried",
        "random": "Trials were drawn once, from the space itself, and shared by all arms",
    }.get(tuning.sampler, f"Trials were drawn by the sampler {tuning.sampler}, which an earlier version had")
    seeds = ", ".join(map(str, tuning.seeds))
    budget = f"; trials train with {point_text(tuning.budget)}" if tuning.budget else ""
    found = [
        f"{str(tuning).capitalize()} (in tokens trained on), in {tuning.runs} runs. {drawn}; each ran with seeds {seeds}, "
        f"which are used for nothing else, and none was scored on the test split{budget}.",
    ]
    if tuning.borrow:
        borrowed = sum(trial.origin != "drawn" for arm in tuning.arms.values() for trial in arm.trials)
        found.append(
            f"Every arm also tried the others' best settings: {borrowed} more trials."
            if borrowed
            else "Nothing was left to borrow: every arm had tried the others' best settings."
        )
    own = [f"{arm.arm} ({', '.join(arm.own)})" for arm in tuning.arms.values() if arm.own]
    if own:
        found.append(
            f"Extra tuning: {'; '.join(own)} chose settings of their methods too, which the others do not have."
        )
    return tuple(found)


def score_text(trial: TrialScores, scale: Scale) -> str:
    """The mean validation score, or why there is none."""
    if trial.mean is None:
        return "failed" if trial.failed else "not run"
    return scale.value(trial.mean)


def seeds_text(trial: TrialScores, scale: Scale) -> str:
    return ", ".join(scale.value(score) for score in trial.scores.values())


def mark_text(arm: TunedArm, trial: TrialScores) -> str:
    """What is to be said of a trial beside its score."""
    marks = [
        "chosen" if trial.name == arm.chosen else "",
        "borrowed" if trial.origin != "drawn" else "",
        f"{as_percent(trial.share)} of the budget" if trial.share < 1 else "",
    ]
    return ", ".join(filter(None, marks))


def markdown(tuning: StudyTuning, report: ReportContent) -> Iterator[str]:
    scale = scale_of(report.header.metric)
    yield from heading("Tuning")
    for note in notes_of(tuning):
        yield prose(note)
        yield ""
    rows = [
        [
            plain(arm.arm),
            plain(point_text(trial.point)),
            score_text(trial, scale),
            seeds_text(trial, scale),
            mark_text(arm, trial),
        ]
        for arm in tuning.arms.values()
        for trial in arm.trials
    ]
    yield from table(HEADS, rows)
    yield ""
    most = max((len(arm.curve) for arm in tuning.arms.values()), default=0)
    if most > 1:
        yield "Expected validation score of the best of k trials (95 % interval):"
        yield ""
        heads = ("arm", *(f"k = {k}" for k in range(1, most + 1)))
        yield from table(heads, [[plain(arm.arm), *_curve_cells(arm, most, scale)] for arm in tuning.arms.values()])
        yield ""
        yield CURVE


def _curve_cells(arm: TunedArm, most: int, scale: Scale) -> list[str]:
    cells = [f"{scale.value(p.expected)} ({scale.value(p.low)} to {scale.value(p.high)})" for p in arm.curve]
    return cells + [""] * (most - len(cells))


def names(tuning: StudyTuning, report: ReportContent) -> dict[str, Any]:
    scale = scale_of(report.header.metric)
    curves = tuple((arm.arm, arm.curve) for arm in tuning.arms.values() if len(arm.curve) > 1)
    places = tuple(row.arm for row in report.rows)
    figure = both_widths("trials.figure:best_of_svg", report.header.metric, places, curves) if curves else None
    return {
        "notes": notes_of(tuning),
        "figure": figure,
        "caption": CURVE,
        "point_text": point_text,
        "score_text": lambda trial: score_text(trial, scale),
        "seeds_text": lambda trial: seeds_text(trial, scale),
        "mark_text": mark_text,
    }


SECTION = ReportSection(__name__, gather, markdown, names=names, json=lambda tuning: {"tuning": tuning})
