"""BP-SOM in studies: what is refused and when, what is recorded, what the course of a run does to the map, and deltas."""

# ruff: noqa: F811 - fixtures of another room are imported by their names
from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from torch import Tensor

from fairtune.ledger.events import counted_events
from fairtune.ledger.records import MethodRecord, read_records
from fairtune.methods.arms import named_arms
from fairtune.methods.bpsom import BPSOM
from fairtune.methods.bpsom.model import active_head
from fairtune.methods.registry import is_control, parse_method_use
from fairtune.som.schedules import radius_at, rate_at
from tests.execution.conftest import ToyStudy, perform_here, toy  # noqa: F401 - a fixture

SMALL: dict[str, Any] = {"hidden": 12, "grid": [4, 3], "reliability": 0.5}
SHORT = {"epochs": 1, "examples": 96, "eval_examples": 20, "evaluate": "epoch"}


def test_the_named_arms_differ_by_what_their_names_say_and_the_observer_is_the_control() -> None:
    arms = {name: arm.uses for name, arm in named_arms().items() if name.startswith("bpsom")}
    assert arms == {
        "bpsom": (parse_method_use("bpsom"),),
        "bpsom-observer": (parse_method_use({"bpsom": {"alpha": 0, "prune": None}}),),
        "bpsom-no-prune": (parse_method_use({"bpsom": {"prune": None}}),),
    }
    assert is_control(arms["bpsom-observer"], arms["bpsom"])
    assert is_control(arms["bpsom-observer"], (parse_method_use({"bpsom": {"grid": 10, "alpha": 0.5}}),))
    assert not is_control(arms["bpsom-observer"], (parse_method_use({"bpsom": {"hidden": 64}}),))
    assert not is_control(arms["bpsom-no-prune"], arms["bpsom"])


def run(
    toy: ToyStudy, name: str = "runs", methods: list[Any] | None = None, **settings: Any
) -> tuple[Any, list[MethodRecord]]:
    """A finished run of six steps per epoch, and its records."""
    train = {**SHORT, **settings.pop("train", {})}
    job = toy.job(name, methods or [{"bpsom": {**SMALL, **settings}}], **train)
    result = perform_here(job)
    assert result["status"] == "finished", result.get("reason")
    return job.run, read_records(job.run, "bpsom")


def test_what_is_recorded_after_each_epoch(toy: ToyStudy) -> None:
    folder, records = run(toy, prune=5e-4, train={"epochs": 2})
    assert [(record.step, record.epoch) for record in records] == [(6, 1), (12, 2)]
    card = json.loads(folder.card.read_text())
    left = 12
    for number, record in enumerate(records):
        arrays, figures = record.arrays, record.figures
        assert {name: (array.shape, array.dtype.name) for name, array in arrays.items()} == {
            "prototypes": ((12, left), "float32"), "labels": ((12,), "int64"), "reliability": ((12,), "float32"),
            "counts": ((12, 2), "int64"), "u_matrix": ((12,), "float32"), "units": ((left,), "int64"),
            "mean": ((left,), "float32"), "std": ((left,), "float32"), "histogram": ((left, 20), "int64"),
            "removed": ((len(arrays["removed"]),), "int64"),
        }  # fmt: skip
        removed = set(arrays["removed"].tolist())
        assert removed == set(arrays["units"][arrays["std"] <= 5e-4].tolist())
        left -= len(removed)
        assert figures["units"] == left
        assert (figures["units_at_start"], figures["classes"], figures["examples"]) == (12, ["neg", "pos"], 96)
        assert (figures["columns"], figures["rows"], figures["topology"]) == (4, 3, "rectangular")
        assert (figures["alpha"], figures["threshold"]) == (0.25, 0.5)
        share = (2 - number - 1) / 2
        assert (figures["radius"], figures["rate"]) == (radius_at(share, (2, 0)), rate_at(share, (0.2, 0.05)))
        assert figures["head_parameters"] == (32 + 1) * left + (left + 1) * 2
        assert figures["parameters"] == card["parameters"]["total"] - (12 - left) * (33 + 2)
        counts, total = arrays["counts"], arrays["counts"].sum(1)
        assert counts.sum() == 96
        assert np.array_equal(arrays["labels"], np.where(total > 0, counts.argmax(1), -1))
        expected = np.floor(100 * counts.max(1) / np.maximum(total, 1)) / 100
        np.testing.assert_allclose(arrays["reliability"], expected, atol=1e-6)
        assert figures["mean_reliability"] == pytest.approx((total * expected).sum() / 96, abs=1e-6)
        assert figures["labelled"] == pytest.approx((total > 0).mean())
        assert (arrays["histogram"].sum(1) == 96).all()
        assert figures["seconds"] > 0
    assert 0 < left < 12
    assert records[0].figures["use"] == 0.0, "no labels in the first epoch"
    assert 0 < records[1].figures["use"] <= 1


def test_when_every_unit_is_still_one_is_kept_and_the_reader_is_told(toy: ToyStudy) -> None:
    folder, records = run(toy, prune=0.49, relabel=3)
    assert [record.figures["units"] for record in records] == [1, 1]
    warnings = [event["text"] for event in counted_events(folder.events) if event["event"] == "warning"]
    assert len(warnings) == 1, "told once, not at every pass"
    assert "every one of the 12 hidden units varied by no more than prune (0.49)" in warnings[0]


@pytest.mark.parametrize(
    ("settings", "expected"),
    [({}, True), ({"alpha": 0.0}, False), ({"relabel": 3}, False)],
    ids=["one epoch", "observer", "relabelled in time"],
)
def test_a_map_that_never_had_labels_to_pull_with_is_reported(
    toy: ToyStudy, settings: dict[str, Any], expected: bool
) -> None:
    folder, _ = run(toy, prune=None, **settings)
    warnings = [event["text"] for event in counted_events(folder.events) if event["event"] == "warning"]
    assert ["before the first labelling pass" in text for text in warnings] == [True] * expected


@pytest.mark.parametrize("methods", [
    [{"bpsom": {**SMALL, "prune": 5e-4, "relabel": 3}}, {"peft": {"type": "lora"}}],
    ["orthogonal_qk", {"bpsom": {**SMALL, "prune": 5e-4, "relabel": 3}}, "bitfit"],
], ids=["adapters", "frozen"])  # fmt: skip
def test_with_other_methods_it_is_pruned_stopped_and_goes_on_to_the_same_bits(
    toy: ToyStudy,
    methods: list[Any],
) -> None:
    if "peft" in str(methods):
        pytest.importorskip("peft")
    train = {**SHORT, "epochs": 2, "evaluate": 5}
    whole, records = run(toy, "whole", methods, train=train)
    assert records[-1].figures["units"] < 12
    looks = 0

    class Killed(BaseException):
        pass

    def check_stop() -> None:
        nonlocal looks
        looks += 1
        if looks == 16:
            raise Killed

    broken = toy.job("broken", methods, **train)
    with pytest.raises(Killed):
        perform_here(broken, check_stop)
    assert perform_here(broken)["status"] == "finished"
    for name in ("model/model.safetensors", "predictions.parquet"):
        assert (broken.run.path / name).read_bytes() == (whole.path / name).read_bytes()


def test_activations_that_are_not_numbers_fail_the_run_with_the_step(
    toy: ToyStudy,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before = BPSOM.around_backward

    def broken(self: BPSOM, step: Any, proceed: Any) -> Tensor:
        if step.step == 4:
            active_head(step.model).hidden.bias.data[0] = float("nan")
        return before(self, step, proceed)

    monkeypatch.setattr(BPSOM, "around_backward", broken)
    result = perform_here(toy.job("runs", [{"bpsom": SMALL}], **SHORT))
    assert result["status"] == "failed"
    assert "bpsom, at step 5: map: 16 of 16 examples hold NaN" in result["reason"]
