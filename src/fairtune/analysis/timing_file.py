"""`timing.json`: times in the form in which such experiments are published, of a run and of a study, with intervals added."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from statistics import fmean
from typing import Any

from fairtune.analysis.timings import ArmTime, StepRatio, StudyTiming
from fairtune.ledger.run_times import FIELDS, format_seconds

RUNS_NOTE = (
    "Means over runs, each measured while it trained, on a machine that may have had other work; runs of different arms are not "
    "compared by them."
)
NO_TIMING = "The arms were not timed against each other; `fairtune time` does."


def study_timing_json(
    plan: Mapping[str, Any], runs: Mapping[str, Sequence[Mapping[str, Any]]], timing: StudyTiming | None
) -> dict[str, Any]:
    """A study's `timing.json`.

    Args:
        runs: the `timing.json` of each finished run, by arm.
    """
    return {
        "study": plan["study"],
        "plan": plan["plan"],
        "runs": {"note": RUNS_NOTE, "arms": {arm: _mean_times(found) for arm, found in runs.items() if found}},
        "comparison": None if timing is None else comparison_json(timing),
        **({"note": NO_TIMING} if timing is None else {}),
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
        **({} if found is None else _ratio_json(found, timing.arms)),
    }


def _ratio_json(found: StepRatio, times: Mapping[str, ArmTime]) -> dict[str, Any]:
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


def _mean_times(found: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    means = {name: fmean(float(one[name]) for one in found) for name in FIELDS}
    return {"n": len(found), **means, "total_formatted": format_seconds(means["total_seconds"])}
