"""A run's own times: the spread of its steps and the use of its GPU come from its events, the rest from its result."""

from __future__ import annotations

import pytest

from fairtune.ledger.timings import WARM_UP, run_times

RESULT = {"steps": 6, "seconds": {"total": 100.0, "step": 12.0, "data": 0.6, "validation": 5.0, "epochs": [6.3, 6.3]}}


def steps(*seconds: float) -> list[dict[str, object]]:
    return [{"event": "step", "step": number, "seconds": one} for number, one in enumerate(seconds, 1)]


def test_the_spread_of_steps_is_without_the_warm_up() -> None:
    found = run_times(RESULT, steps(*[9.0] * WARM_UP, 1.0, 2.0, 3.0))
    assert found is not None
    assert found["step_cv"] == pytest.approx(0.5), "sd 1, mean 2"
    assert found["per_step_avg"] == pytest.approx(2.1)
    assert found["per_epoch_avg"] == pytest.approx(6.3)
    assert (found["total_formatted"], found["gpu_utilization"]) == ("1m 40s", None)


def test_the_use_of_gpus_is_the_mean_over_samples() -> None:
    samples = [{"event": "device", "gpus": [{"utilisation": use}, {"temperature": 60}]} for use in (90, 100)]
    found = run_times(RESULT, [*samples, {"event": "device", "busy": 0.5}])
    assert found is not None
    assert found["gpu_utilization"] == pytest.approx(0.95)
    assert found["step_cv"] is None


def test_what_recorded_no_seconds_has_no_times() -> None:
    assert run_times({"steps": 6}) is None
