"""What a plan can show, before its first run: from the study's own runs where there are some, else from what is published."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import median
from typing import Any

from fairtune.analysis.power import USUAL_ACCURACY, expected_noise, measured_noise
from fairtune.analysis.power_sentences import describe_power
from fairtune.analysis.statistics import OWN_SAMPLES, PairedDifference
from fairtune.settings.bands import find_band, known_seed_sd
from fairtune.settings.few_labels import is_resampled
from fairtune.settings.metrics import METRICS

USUAL_SD = 0.01
"""Of an accuracy over seeds, where nothing is known: one point, as on several small GLUE tasks."""
FEW_SD = 0.02
"""The same where each seed trains on few labels of its own, as far as arms that share them differ in it."""
PUBLISHED_ON = 1000
"""About as many examples as those development sets have on which deviations over seeds were published."""


def describe_plan(plan: Mapping[str, Any], known: Sequence[PairedDifference] = ()) -> str | None:
    """What a plan's seeds, test examples and comparisons can show, in a sentence; None where nothing is known to tell it from.

    Args:
        plan: as the ledger has it.
        known: comparisons of runs that this study has already.
    """
    metric = str(plan["task"]["metric"])
    comparisons = _comparisons(plan)
    if comparisons == 0 or metric not in METRICS:
        return None
    measured = [measured_noise(found) for found in known if found.p is not None]
    accuracy, source = _expected_accuracy(plan)
    text = plan["task"].get("kind") == "language_model"
    examples = _examples(plan)
    if measured:
        noise = replace(
            measured[0],
            one_seed=median(n.one_seed for n in measured),
            examples=median(n.examples for n in measured),
            most_freedom=math.inf,
        )
        basis = f"the luck of seeds and examples is that of {len(measured)} comparisons on record"
    elif METRICS[metric].shown == "percent" and METRICS[metric].has_line and _is_resampled(plan):
        noise = replace(expected_noise(FEW_SD, examples, accuracy), most_times=OWN_SAMPLES)
        basis = (
            f"assumed for few labels: arms that share a sample differ by the luck of {100 * FEW_SD:g} points by seed"
        )
    elif METRICS[metric].shown == "percent" and METRICS[metric].has_line:
        sd = known_seed_sd(str(plan["task"]["name"]), metric)
        noise = expected_noise(sd or USUAL_SD, examples, accuracy, PUBLISHED_ON if sd else None)
        told = "one point" if sd is None else f"{100 * sd:.2g} points"
        basis = (
            f"published: seeds differ by {told}" if sd else f"assumed, since nothing is known: seeds differ by {told}"
        )
        basis += source
    else:
        return None
    ratios, plain = METRICS[metric].ratios, METRICS[metric].shown == "plain"
    found = describe_power(
        noise,
        len(plan["seeds"]),
        examples,
        comparisons,
        1 - float(plan["compare"]["confidence"]),
        _margin(plan, accuracy),
        _stated(plan),
        "%" if ratios else f"of {METRICS[metric].title}" if plain else "points",
        (lambda value: f"{value:.3g}") if plain and not ratios else (lambda value: f"{100 * value:.1f}"),
        "test document" if text else "test example",
    )
    shared = " Comparisons are corrected together." if comparisons > 1 else ""
    return f"{found} ({basis}).{shared}"


def _comparisons(plan: Mapping[str, Any]) -> int:
    """Primary comparisons that can get a verdict: not those in which methods and settings cannot be told apart."""
    arms = plan["arms"]
    return sum(
        other is not None
        and arm.get("copy_of") is None
        and not (arm.get("learner") or arms[other].get("learner"))
        and (arm["methods"] == arms[other]["methods"] or arm["train"] == arms[other]["train"])
        for arm in arms.values()
        for other in [arm.get("primary")]
    )


def _is_resampled(plan: Mapping[str, Any]) -> bool:
    return any(is_resampled(arm["train"].get("examples")) for arm in plan["arms"].values())


def _examples(plan: Mapping[str, Any]) -> int:
    there = int(plan["task"]["rows"]["test"])
    used = {arm["train"].get("eval_examples") for arm in plan["arms"].values()} - {None}
    return min([there, *(int(size) for size in used)])


def _expected_accuracy(plan: Mapping[str, Any]) -> tuple[float, str]:
    band = find_band(str(plan["model"]["name"]), str(plan["task"]["name"]), str(plan["task"]["metric"]))
    if band is None or not 0.5 < band.low < 1:
        return USUAL_ACCURACY, ""
    return (band.low + band.high) / 2, f", scores are near {band.figures}"


def _margin(plan: Mapping[str, Any], accuracy: float) -> float | None:
    stated = plan["compare"].get("margin")
    if not isinstance(stated, str):
        return None if stated is None else float(stated)
    share, metric = float(stated[:-1]) / 100, METRICS[str(plan["task"]["metric"])]
    if metric.ratios:
        return share
    return share * accuracy if metric.has_line else None  # of a figure that nothing is known of before it is measured


def _stated(plan: Mapping[str, Any]) -> str:
    stated = plan["compare"].get("margin")
    return f"{stated[:-1].strip()} %" if isinstance(stated, str) else ""
