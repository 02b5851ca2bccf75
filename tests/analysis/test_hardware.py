"""Arms whose runs were on unlike hardware are named, and no time of theirs is compared."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.report.made_ledger import QK, ArmSpec, MadeLedger, make_study

from fairtune.analysis.hardware import hardware_of, readable, seeds_text, versions_of
from fairtune.core.cautions import Caution
from fairtune.core.files import read_json, write_json
from fairtune.ledger.environment import NODE, capture_environment, continued, node_name
from fairtune.report.writer import make_content

A100 = {"device": "cuda:0", "cards": [{"name": "A100", "memory_bytes": 40_000_000_000, "driver": "550.1"}]}
V100 = {"device": "cuda:0", "cards": [{"name": "V100", "memory_bytes": 32_000_000_000, "driver": "550.1"}]}
RIGHT = [330, 331, 332, 333, 334]


@pytest.fixture
def made(tmp_path: Path) -> MadeLedger:
    arms = {
        "baseline": ArmSpec(RIGHT),
        "oelm": ArmSpec(RIGHT, methods=QK),
        "focal": ArmSpec(RIGHT, methods=[{"focal": {"gamma": 2.0}}]),
        "tfidf": ArmSpec(RIGHT, learner="tfidf"),
    }
    found = make_study(tmp_path / "runs", arms)
    for arm in ("baseline", "oelm", "focal"):
        for seed in range(5):
            change(found, arm, seed, A100)
    return found


def change(made: MadeLedger, arm: str, seed: int, facts: dict[str, Any]) -> None:
    file = made.folder(arm, seed).environment
    write_json(file, {**(read_json(file) or {}), **facts})


def told(made: MadeLedger) -> dict[str, Caution]:
    codes = ("unlike-hardware", "mixed-hardware", "unlike-versions", "mixed-versions")
    return {one.code: one for one in made.results().cautions if one.code in codes}


def test_one_kind_of_hardware_is_not_worth_a_word(made: MadeLedger) -> None:
    change(made, "oelm", 3, {"node": "gpu17"})  # another node of the same kind
    assert told(made) == {}, "a simple baseline on the CPU is nothing to mind either"


def test_arms_on_unlike_hardware_are_named_and_their_times_left_out(made: MadeLedger) -> None:
    for seed in (3, 4):
        change(made, "oelm", seed, V100)
    (caution,) = told(made).values()
    assert (caution.grade, caution.code) == ("warning", "unlike-hardware")
    assert (
        "oelm on A100, 40 GB for seeds 0 to 2 and on V100, 32 GB for seeds 3 and 4; baseline on A100, 40 GB"
        in caution.seen
    )
    assert "no times of oelm are compared" in caution.why
    results = made.results()
    content = make_content(results)
    rows = {row.arm: row for row in content.rows}
    assert rows["oelm"].step_seconds is None
    assert rows["oelm"].seconds == {}
    assert results.step_seconds("oelm") is None
    assert rows["focal"].step_seconds is not None, "which was where its partner was"
    notes = content.sections["costs"].own_notes
    assert notes[-1] == "Left out, as runs that would be compared were on unlike hardware: oelm (beside baseline)."


def test_a_seed_on_another_kind_is_a_note_where_all_its_arms_were_there(made: MadeLedger) -> None:
    for arm in ("baseline", "oelm", "focal"):
        change(made, arm, 4, V100)
    (caution,) = told(made).values()
    assert (caution.grade, caution.code) == ("note", "mixed-hardware")
    assert caution.seen.endswith(": on A100, 40 GB for seeds 0 to 3 and on V100, 32 GB for seed 4")
    assert made.results().step_seconds("oelm") is not None


def test_a_run_that_went_on_elsewhere_was_on_both(made: MadeLedger) -> None:
    change(made, "focal", 1, {"earlier": [{"node": "gpu3", "cpu": "a CPU", **V100}]})
    seen = told(made)["unlike-hardware"].seen
    assert "focal on A100, 40 GB for seeds 0, 2, 3 and 4 and on V100, 32 GB, then A100, 40 GB for seed 1" in seen


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        ({"packages": {"torch": "2.12.0", "numpy": "2.4.6"}}, "oelm with torch 2.13.0 for seeds 0 to 3 and with torch 2.12.0"),
        ({"fairtune": "0.0.9"}, "with fairtune 0.0.9 for seed 4; baseline with fairtune 0.1.0"),
        ({"cards": [{**A100["cards"][0], "driver": "535.9"}]}, "with driver 535.9 for seed 4"),
    ],
)  # fmt: skip
def test_other_versions_are_named(made: MadeLedger, facts: dict[str, Any], words: str) -> None:
    change(made, "oelm", 4, facts)
    (caution,) = told(made).values()
    assert (caution.grade, caution.code) == ("warning", "unlike-versions")
    assert words in caution.seen


def test_old_records_and_other_devices() -> None:
    two = {"device": "cuda:1", "cpu": "a CPU", "load": {"gpus": [{"name": "A100"}, {"name": "V100"}]}}
    assert dict(hardware_of(two) or ())["card"] == "A100 or V100", "an old record does not say which"
    cpu = {"device": "cpu", "cpu": "a CPU", "torch": {"cpu_capability": "AVX2"}}
    assert dict(hardware_of(cpu) or ())["instructions"] == "AVX2"
    assert hardware_of(cpu) == hardware_of({**cpu, "node": "other", "memory_bytes": 1})
    assert hardware_of({**cpu, "torch": {"cpu_capability": "AVX512"}}) != hardware_of(cpu)
    assert hardware_of(None) is hardware_of({}) is versions_of(None) is None
    assert seeds_text([3]) == "seed 3"


def test_what_a_record_says_is_readable() -> None:
    found = readable({"cpu": "a CPU", **A100, "earlier": [{"node": "gpu3", "cpu": "a CPU", **V100}]})
    assert (found["card"], found["driver"]) == ("A100, 40 GB", "550.1")
    assert found["trained before on"].startswith("gpu3, GPU, V100, 32 GB")


def test_the_run_s_own_card_is_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    cards = [SimpleNamespace(name="A100", total_memory=40), SimpleNamespace(name="V100", total_memory=32)]
    cuda = SimpleNamespace(
        is_available=lambda: True, device_count=lambda: len(cards), get_device_properties=cards.__getitem__
    )
    version = SimpleNamespace(cuda="13.0")
    backends = SimpleNamespace(
        cudnn=SimpleNamespace(version=lambda: 9), cpu=SimpleNamespace(get_cpu_capability=lambda: "AVX2")
    )
    fake = SimpleNamespace(cuda=cuda, version=version, backends=backends, get_num_threads=lambda: 1)
    monkeypatch.setitem(sys.modules, "torch", fake)
    assert [card["name"] for card in capture_environment("cuda:1")["cards"]] == ["V100"]
    del cards[0]  # as CUDA_VISIBLE_DEVICES leaves it to a worker
    assert [card["name"] for card in capture_environment("cuda:1")["cards"]] == ["V100"]
    assert capture_environment("cpu")["cards"] == []


def test_a_node_is_named_as_its_scheduler_does_and_else_not_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in (NODE, "SLURMD_NODENAME"):
        monkeypatch.delenv(variable, raising=False)
    here = node_name()
    assert here is None or (len(here) == 16 and os.uname().nodename not in here)
    assert node_name() == here
    monkeypatch.setenv("SLURMD_NODENAME", "gpu17")
    assert node_name() == capture_environment("cpu")["node"] == "gpu17"


def test_a_place_is_kept_once_a_run_goes_on_in_another() -> None:
    first, second = {"node": "a", "time": "1", **A100}, {"node": "b", "time": "2", **V100}
    assert continued(first, None) == continued(first, {**first, "time": "0"}) == first
    moved = continued(second, first)
    assert moved["earlier"] == [first]
    assert continued({**second, "time": "3"}, moved)["earlier"] == [first]
    assert continued(first, moved)["earlier"] == [second], "back again, it was on two"
