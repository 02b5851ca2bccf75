"""Whether a run's times mean anything, by samples of its device."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.report.made_ledger import MadeLedger, usual_ledger

from fairtune.analysis.run_conditions import judge_samples
from fairtune.core.files import read_json, write_json
from fairtune.ledger.events import EventLog
from fairtune.report.evidence import make_evidence


def gpu(**values: Any) -> dict[str, Any]:
    return {"gpus": [{"index": 0, "temperature": 60, **values}]}


def cpu(busy: float, others: float) -> dict[str, Any]:
    return {"busy": busy, "others": others, "load_average": 2.0}


def test_foreign_processes_are_told_with_their_share_of_samples() -> None:
    found = judge_samples(
        "a/seed-0", [gpu(other_processes=0)] * 6 + [gpu(other_processes=2), gpu(other_processes=1)] * 2
    )
    assert found is not None
    assert (found.is_shared, found.is_slowed) == (True, False)
    assert found.sharing_text == "a/seed-0: up to 2 other processes on its GPU, in 40 % of 10 samples"
    brief = judge_samples("a/seed-0", [gpu(other_processes=0)] * 30 + [gpu(other_processes=1)])
    assert brief is not None
    assert not brief.is_shared, "somebody looked in"


def test_heat_is_told_and_a_power_cap_is_usual() -> None:
    found = judge_samples(
        "a/seed-0",
        [gpu(slowed=["power cap"])] * 3
        + [{"gpus": [{"index": 1, "temperature": 91, "slowed": ["heat", "power cap"]}]}],
    )
    assert found is not None
    assert found.slowing_text == "a/seed-0: heat, up to 91 °C, in 25 % of 4 samples"
    assert (found.is_slowed, found.is_shared) == (True, False)


def test_on_a_cpu_others_are_in_the_way_where_it_is_full() -> None:
    found = judge_samples("a/seed-0", [cpu(0.99, 0.5), cpu(0.6, 0.3), cpu(1.0, 0.02), cpu(0.95, 0.2)])
    assert found is not None
    assert found.sharing_text == "a/seed-0: others took up to 50 % of a full processor, in 50 % of 4 samples"
    assert judge_samples("a/seed-0", []) is None


def add_samples(ledger: MadeLedger, arm: str, seed: int, samples: list[dict[str, Any]]) -> None:
    log = EventLog(ledger.folder(arm, seed).events)
    for sample in samples:
        log.write_sample(**sample)
    log.close()


def test_a_report_names_runs_that_were_disturbed(tmp_path: Path) -> None:
    ledger = usual_ledger(tmp_path / "runs")
    assert not {"shared-device", "slowed-device"} & {caution.code for caution in ledger.results().cautions}
    add_samples(ledger, "baseline", 0, [gpu(other_processes=3)] * 2)
    add_samples(ledger, "baseline", 1, [gpu(slowed=["hardware slowdown"])] * 2)
    add_samples(ledger, "baseline", 2, [gpu(other_processes=0)] * 2)
    for seed in (0, 2):  # what was seen before the start counts where nothing was sampled after it
        path = ledger.folder("baseline", seed).environment
        environment = read_json(path)
        assert environment is not None
        environment["load"]["load_average"][0] = 9.5
        write_json(path, environment)
    results = ledger.results()
    found = {caution.code: str(caution) for caution in results.cautions}
    assert found["shared-device"] == (
        "1 run shared the device with other work (baseline/seed-0: up to 3 other processes on its GPU, in 100 % of 2 samples): "
        "times of such runs say little, though their scores are what they are. Compare times with `fairtune time`, on a "
        "device that is otherwise idle."
    )
    assert "hardware slowdown, up to 60 °C, in 100 % of 2 samples" in found["slowed-device"]
    machine = make_evidence(results).machine
    assert (len(machine.shared), len(machine.slowed), machine.busy) == (1, 1, ())


def test_only_a_runs_own_gpus_count_where_nothing_was_sampled(tmp_path: Path) -> None:
    ledger = usual_ledger(tmp_path / "runs")
    path = ledger.folder("baseline", 0).environment
    environment = read_json(path)
    assert environment is not None
    others = {"name": "A100", "other_processes": 2}
    environment["load"]["gpus"] = [{**others, "visible": False}, {**others, "other_processes": 0, "visible": True}]
    write_json(path, environment)
    assert make_evidence(ledger.results()).machine.busy == ()
    environment["load"]["gpus"] = [others, {**others, "other_processes": 1}]  # as earlier versions wrote it
    write_json(path, environment)
    assert make_evidence(ledger.results()).machine.busy == (
        "baseline/seed-0: 3 other processes on the GPUs when it began",
    )
