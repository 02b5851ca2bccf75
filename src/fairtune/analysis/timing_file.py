"""`timing.json`: times in the form in which such experiments are published, of a run and of a study, with intervals added."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from statistics import fmean, median
from typing import Any

from fairtune.analysis.ledger_runs import LedgerRun
from fairtune.analysis.results import Results
from fairtune.analysis.timings import ArmTime, StepRatio, StudyTiming
from fairtune.ledger.timings import FIELDS, format_seconds, step_seconds

RUNS_NOTE = (
    "Means over runs, each measured while it trained, on a machine that may have had other work; runs of different arms are not "
    "compared by them."
)
NO_TIMING = "The arms were not timed against each other; `fairtune time` does."
POINTS = 25
"""Of a curve of step times, whatever the number of steps."""


def study_timing_json(results: Results) -> dict[str, Any]:
    """A study's `timing.json`."""
    own = {arm: mean_times([run.times for run in results.finished(arm)]) for arm in results.arms}
    return {
        "study": results.plan["study"],
        "plan": results.plan["plan"],
        "runs": {"note": RUNS_NOTE, "arms": {arm: found for arm, found in own.items() if found is not None}},
        "comparison": None if results.timing is None else comparison_json(results.timing),
        **({"note": NO_TIMING} if results.timing is None else {}),
    }


def comparison_json(timing: StudyTiming) -> dict[str, Any]:
    """What the timing experiment shows, arm by arm; differences are this arm's time minus the other's, so negative is faster."""
    return {
        "reference": timing.reference,
        "confidence": timing.confidence,
        "clock": "processor" if timing.processor else "wall",
        "sessions": timing.sessions,
        "rounds": timing.rounds,
        "seconds_measured": timing.seconds,
        "trusted": timing.trusted,
        "conditions": asdict(timing.conditions),
        "a_a": {
            "ratio": timing.again.ratio,
            "ratio_interval": [timing.again.low, timing.again.high],
            "speedup_ratio": 1 / timing.again.ratio,
        },
        "arms": {arm: _arm_json(timing, arm) for arm in timing.arms},
    }


def _arm_json(timing: StudyTiming, arm: str) -> dict[str, Any]:
    time, found = timing.arms[arm], timing.ratios.get(arm)
    return {
        "per_step": time.seconds,
        "parts": time.parts,
        "peak_memory_bytes": time.memory,
        "after_each_epoch": time.epoch_seconds,
        "steps": time.steps,
        **({} if found is None else ratio_json(found, timing.arms)),
    }


def ratio_json(found: StepRatio, times: Mapping[str, ArmTime]) -> dict[str, Any]:
    """Differences and speed-up are those of whole runs: steps, and what methods do after each epoch."""
    ratio, low, high = found.found.ratio, found.found.low, found.found.high
    gap, gap_low, gap_high = found.gap
    (ours, theirs), (least, _), (most, _) = (found.run_seconds(end, times) for end in (ratio, low, high))
    return {
        "against": found.other,
        "n": found.found.n,
        "ratio": ratio,
        "ratio_interval": [low, high],
        "time_difference_seconds": ours - theirs,
        "time_difference_seconds_interval": [least - theirs, most - theirs],
        "time_difference_percent": 100 * (ours / theirs - 1),
        "time_difference_percent_interval": [100 * (least / theirs - 1), 100 * (most / theirs - 1)],
        "speedup_ratio": theirs / ours,
        "speedup_ratio_interval": [theirs / most, theirs / least if least else None],
        "gap_per_step_seconds": gap,
        "gap_per_step_seconds_interval": [gap_low, gap_high],
        "bound_ratio": found.bound,
        "implausible": found.implausible,
        "clear_change": found.change,
    }


def mean_times(runs: Sequence[Mapping[str, Any] | None]) -> dict[str, Any] | None:
    """The means over runs of their own `timing.json`, with the lowest and the highest total; None where no run has one."""
    found = [run for run in runs if run is not None]
    if not found:
        return None
    known = {name: [float(run[name]) for run in found if run[name] is not None] for name in FIELDS}
    means = {name: fmean(values) if values else None for name, values in known.items()}
    totals = known["total_seconds"]
    return {
        "n": len(found),
        **means,
        "total_formatted": format_seconds(fmean(totals)),
        "total_seconds_range": [min(totals), max(totals)],
    }


def step_curve(runs: Sequence[LedgerRun]) -> list[tuple[int, float]]:
    """The median step over stretches of training, in seconds: of all runs together, placed at each stretch's last step."""
    steps = [found for run in runs for found in step_seconds(run.events_of("step"))]
    stretch = math.ceil(max((step for step, _ in steps), default=0) / POINTS)
    stretches: dict[int, list[float]] = {}
    for step, seconds in steps:
        stretches.setdefault(math.ceil(step / stretch) * stretch, []).append(seconds)
    return [(step, median(values)) for step, values in sorted(stretches.items())]
