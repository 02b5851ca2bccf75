"""`result-summary.json`: a study in the shape in which such experiments are published, from what the report has anyway."""

from __future__ import annotations

from typing import Any

from fairtune.analysis.ledger_runs import LedgerRun
from fairtune.analysis.results import Results
from fairtune.analysis.timing_file import ratio_json
from fairtune.ledger.timings import FIELDS
from fairtune.report.content import ArmRow, ReportContent, Versus
from fairtune.settings.metrics import METRICS

FILE = "result-summary.json"
VERSIONS = {"pytorch_version": "torch", "transformers": "transformers", "accelerate": "accelerate", "numpy": "numpy"}
GAPS = {
    "total_gap_seconds": "time_difference_seconds",
    "total_gap_percent": "time_difference_percent",
    "per_step_gap": "gap_per_step_seconds",
    "speedup_ratio": "speedup_ratio",
}
"""Published names of what the timing experiment shows, with those of `timing.json`."""


def result_summary(content: ReportContent, results: Results) -> dict[str, Any]:
    """Environment, performance, timing, parameter efficiency and comparison; null where there is nothing to say."""
    own, rows = content.sections["costs"].own, content.rows
    return {
        "study": content.header.study,
        "plan": content.header.plan,
        "environment": _environment(results.runs, content.sections["environment"].differing),
        "performance": {row.arm: _performance(row, results) for row in rows},
        "timing": {arm: _timing(found) for arm, found in own.items()},
        "parameter_efficiency": {row.arm: _parameters(row) for row in rows if row.parameters is not None},
        "comparison": {row.arm: _comparison(row.versus, results) for row in rows if row.versus is not None},
    }


def _environment(runs: list[LedgerRun], differing: tuple[str, ...]) -> dict[str, Any]:
    """Of the first run, with the GPU's temperature before it and after the last one."""
    found = [one for run in runs if run.begun and (one := run.environment) is not None]
    first = found[0] if found else {}
    cards, packages = first.get("cards") or [{}], first.get("packages") or {}
    return {
        "device": first.get("device"),
        "gpu": cards[0].get("name"),
        "driver": cards[0].get("driver"),
        "cuda_version": (first.get("torch") or {}).get("cuda"),
        "gpu_temp_start": _temperature(first.get("load")),
        "gpu_temp_end": _temperature(found[-1].get("load_after")) if found else None,
        "cpu": first.get("cpu"),
        "python": first.get("python"),
        "fairtune": first.get("fairtune"),
        **{name: packages.get(package) for name, package in VERSIONS.items()},
        "differing": list(differing),
    }


def _temperature(load: dict[str, Any] | None) -> float | None:
    """Of the hottest GPU that the run could use."""
    gpus = [gpu for gpu in (load or {}).get("gpus") or () if gpu.get("visible", True)]
    return max((float(gpu["temperature"]) for gpu in gpus if gpu.get("temperature") is not None), default=None)


def _performance(row: ArmRow, results: Results) -> dict[str, Any]:
    summary, lower = row.summaries[results.metric], METRICS[results.metric].lower_is_better
    return {
        "metric": results.metric,
        "n": summary.n,
        "best_of_seeds": (min if lower else max)(row.scores.values(), default=None),
        "mean": summary.mean,
        "interval": [summary.low, summary.high],
        "final_loss": (row.final_loss or results.validation_losses(row.arm)[1]).mean,
    }


def _timing(own: dict[str, Any]) -> dict[str, Any]:
    return {"n": own["n"], **{name: own[name] for name in FIELDS}, "formatted": own["total_formatted"]}


def _parameters(row: ArmRow) -> dict[str, Any]:
    percent = None if row.trainable_share is None else 100 * row.trainable_share
    return {"trainable": row.trainable, "frozen": row.frozen, "total": row.parameters, "trainable_percent": percent}


def _comparison(versus: Versus, results: Results) -> dict[str, Any]:
    """Times are those of the timing experiment, never of runs; none where its A/A failed or counting rules them out."""
    timing, timed, found = results.timing, versus.timed, {}
    if timing is not None and timed is not None and timing.trusted and not timed.implausible:
        found = ratio_json(timed, timing.arms)
    return {
        "against": versus.reference,
        "n": versus.n,
        f"{results.metric}_gap": versus.difference,
        f"{results.metric}_gap_interval": [versus.low, versus.high],
        "verdict": versus.word,
        **{name: found.get(key) for name, key in GAPS.items()},
        **{f"{name}_interval": found.get(f"{key}_interval") for name, key in GAPS.items()},
        "time_note": versus.untold or None,
        "conclusion": versus.text,
    }
