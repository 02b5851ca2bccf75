"""What methods record is found again by the events that count; a run's own times come from its events and its result."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fairtune.core.errors import LedgerError
from fairtune.ledger.events import EventLog
from fairtune.ledger.folders import RunFolder
from fairtune.ledger.records import read_records, write_arrays
from fairtune.ledger.timings import WARM_UP, run_times


def record(folder: RunFolder, log: EventLog, step: int, value: float, name: str = "maps") -> None:
    write_arrays(folder, name, step, {"map": np.full((2, 3), value, dtype=np.float32).T})
    log.write("record", step, name=name, step=step, epoch=step // 2, value=value)


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    return RunFolder(tmp_path)


def test_records_come_back_in_order_with_figures_and_arrays(folder: RunFolder) -> None:
    log = EventLog(folder.events)
    for step in (2, 4):
        record(folder, log, step, step / 8)
    record(folder, log, 4, 9.0, name="other")
    found = read_records(folder, "maps")
    assert [(r.step, r.epoch, r.figures) for r in found] == [(2, 1, {"value": 0.25}), (4, 2, {"value": 0.5})]
    assert found[1].arrays["map"].shape == (3, 2)
    assert found[1].arrays["map"].tolist() == [[0.5, 0.5]] * 3
    assert read_records(folder, "none") == []


def test_a_record_that_was_lost_with_a_killed_process_is_not_counted(folder: RunFolder) -> None:
    log = EventLog(folder.events)
    record(folder, log, 2, 1.0)
    record(folder, log, 4, 2.0)
    log.write("resumed", 3, step=3)
    assert [r.step for r in read_records(folder, "maps")] == [2]
    record(folder, log, 4, 3.0)
    assert [r.arrays["map"][0, 0] for r in read_records(folder, "maps")] == [1.0, 3.0]


@pytest.mark.parametrize("content", [b"", b"cut off", None])
def test_a_damaged_or_missing_file_is_reported_with_its_name(folder: RunFolder, content: bytes | None) -> None:
    record(folder, EventLog(folder.events), 2, 1.0)
    (file,) = folder.records.iterdir()
    file.unlink()
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(LedgerError, match=r"maps-000000002\.safetensors: what maps recorded at step 2 cannot be read"):
        read_records(folder, "maps")


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
