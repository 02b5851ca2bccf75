"""result-summary.json: the published shape, with scores of the report, and compared times of the timing experiment alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from made_ledger import QK, ArmSpec, MadeLedger
from made_text_ledger import MadeTextLedger
from tests.report.made_timing import time_ledger

from fairtune.core.files import read_json, write_sealed
from fairtune.report.result_summary import result_summary
from fairtune.report.writer import make_content


def summary_of(made: MadeLedger | MadeTextLedger) -> dict[str, Any]:
    results = made.results()
    return result_summary(make_content(results), results)


@pytest.fixture
def made(make_ledger: Callable[..., MadeLedger]) -> MadeLedger:
    return make_ledger({"baseline": ArmSpec([300, 304]), "oelm": ArmSpec([310, 311], methods=QK)})


def test_it_has_the_published_shape(made: MadeLedger) -> None:
    time_ledger(made, {"baseline": 0.5, "oelm": 0.48}, frozen=("oelm",))
    found = summary_of(made)
    assert list(found)[2:] == ["environment", "performance", "timing", "parameter_efficiency", "comparison"]
    assert (found["environment"]["pytorch_version"], found["environment"]["gpu"]) == ("2.13.0", None)
    own = found["performance"]["baseline"]
    assert (own["metric"], own["n"], own["best_of_seeds"], own["mean"]) == ("accuracy", 2, 0.76, pytest.approx(0.755))
    assert own["interval"][0] < own["mean"] < own["interval"][1]
    assert found["timing"]["oelm"]["validation_total"] == 2.0
    assert found["parameter_efficiency"]["oelm"]["trainable_percent"] == pytest.approx(90)
    (arm,) = found["comparison"].values()
    assert (arm["against"], arm["accuracy_gap"]) == ("baseline", pytest.approx(8.5 / 400))
    assert arm["speedup_ratio"] == pytest.approx(0.5 / 0.48, abs=0.01)
    assert arm["total_gap_seconds"] == pytest.approx(-0.02 * 20, abs=0.05), "over a run's 20 steps"
    assert arm["verdict"] in arm["conclusion"]


@pytest.mark.parametrize("timed", [None, {"again": 1.2}, {"seconds": 0.3}])
def test_only_times_of_a_sound_timing_experiment_are_compared(made: MadeLedger, timed: dict[str, float] | None) -> None:
    if timed is not None:
        seconds = {"baseline": 0.5, "oelm": timed.pop("seconds", 0.48)}
        time_ledger(made, seconds, frozen=("oelm",), **timed)
    arm = summary_of(made)["comparison"]["oelm"]
    assert (arm["total_gap_seconds"], arm["total_gap_percent"], arm["speedup_ratio"]) == (None, None, None)
    assert arm["time_note"]


def test_the_gpu_is_that_of_the_runs(made: MadeLedger) -> None:
    for arm in made.arms:
        for seed in range(2):
            file = made.folder(arm, seed).environment
            own = read_json(file)
            assert own is not None
            gpus = [{"temperature": 40 + seed, "visible": True}, {"temperature": 90, "visible": False}]
            card = {"name": "A100", "driver": "550.1"}
            write_sealed(file, {**own, "cards": [card], "load": {"gpus": gpus}, "load_after": {"gpus": gpus}})
    found = summary_of(made)["environment"]
    assert (found["gpu"], found["driver"]) == ("A100", "550.1")
    assert (found["gpu_temp_start"], found["gpu_temp_end"]) == (40, 41), (
        "of its own GPU, before the first and after the last"
    )


def test_a_language_model_has_its_final_loss(kept_text_ledger: MadeTextLedger) -> None:
    found = summary_of(kept_text_ledger)["performance"]
    assert {one["metric"] for one in found.values()} == {"perplexity"}
    assert all(one["best_of_seeds"] <= one["mean"] for one in found.values() if one["n"]), "lower is better"
    assert any(one["final_loss"] is not None for one in found.values())
