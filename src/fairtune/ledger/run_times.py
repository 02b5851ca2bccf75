"""A run's own times as it recorded them, in the form in which such experiments are published: `timing.json`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

FIELDS = ("total_seconds", "per_epoch_avg", "per_step_avg", "validation_total")


def run_times(result: Mapping[str, Any]) -> dict[str, Any] | None:
    """The times of a finished run, from its result: training, scoring and saving, all of it in seconds; None if it has none."""
    seconds, steps = result.get("seconds") or {}, max(1, int(result.get("steps") or 0))
    if "total" not in seconds or result.get("steps") == 0:  # what is fitted at once has no steps to average over
        return None
    training = float(seconds.get("step", 0.0)) + float(seconds.get("data", 0.0)) + float(seconds.get("method", 0.0))
    epochs = list(seconds.get("epochs") or ())
    return {
        "total_seconds": float(seconds["total"]),
        "total_formatted": format_seconds(float(seconds["total"])),
        "per_epoch_avg": (training + float(seconds.get("epoch", 0.0))) / max(1, len(epochs)),
        "per_step_avg": training / steps,
        "validation_total": float(seconds.get("validation", 0.0)),
    }


def format_seconds(seconds: float) -> str:
    """Hours, minutes and seconds: 1h 02m 05s, 3m 12s, 4.2s."""
    if seconds < 60:
        return f"{seconds:.1f}s"
    whole = round(seconds)
    hours, minutes = whole // 3600, whole % 3600 // 60
    return f"{hours}h {minutes:02d}m {whole % 60:02d}s" if hours else f"{minutes}m {whole % 60:02d}s"
