"""The results of a study as one data frame, for notebooks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd

from fairtune.analysis.records import steps_text

if TYPE_CHECKING:
    from fairtune.analysis.results import Results


def arm_table(results: Results) -> pd.DataFrame:
    """One row an arm."""
    text = results.kind == "language_model"
    rows = [_row(results, arm) | (_text_columns(results, arm) if text else {}) for arm in results.arms]
    return pd.DataFrame(rows).set_index("arm")


def _row(results: Results, arm: str) -> dict[str, Any]:
    summary, comparison = results.summary(arm), results.comparison(arm)
    found = comparison.found if comparison else None
    return {
        "arm": arm,
        "n": summary.n,
        "mean": summary.mean,
        "sd": summary.sd,
        "low": summary.low,
        "high": summary.high,
        "difference": found.difference if found else None,
        "difference_low": found.low if found else None,
        "difference_high": found.high if found else None,
        "p": comparison.verdict.p if comparison else None,
        "verdict": str(comparison.verdict) if comparison else "reference",
        "confounds": ", ".join(comparison.confounds) if comparison else "",
        "seconds_per_step": results.step_seconds(arm),
        "trainable_share": results.trainable_share(arm),
    }


def _text_columns(results: Results, arm: str) -> dict[str, Any]:
    steps = results.steps_to_target(arm)
    return {
        "final_mean": results.summary(arm, which="final").mean,
        "steps_to_target": None if steps is None else steps_text(list(steps.values())),
        "tokens_per_second": results.tokens_per_second(arm),
    }
