"""BP-SOM in studies: what is refused and when, what is recorded, what the course of a run does to the map, and deltas."""

# ruff: noqa: F811 - fixtures of another room are imported by their names
from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from fairtune import export_model
from fairtune.core.errors import FairtuneError
from fairtune.ledger.events import counted_events
from fairtune.ledger.records import MethodRecord, read_records
from fairtune.methods.arms import named_arms
from fairtune.methods.bpsom import BPSOMConfig
from fairtune.methods.bpsom import BPSOM
from fairtune.methods.bpsom.model import BPSOMForSequenceClassification, active_head
from fairtune.methods.registry import is_control, parse_method_use
from fairtune.som.schedules import radius_at, rate_at
from fairtune.study.problems import StudyError
from fairtune.study.study_file import load_study
from fairtune.testing.toy import VOCABULARY, make_tokenizer
from tests.execution.conftest import ToyStudy, perform_here, toy  # noqa: F401 - a fixture
from tests.execution.made_runs import make_run

SMALL: dict[str, Any] = {"hidden": 12, "grid": [4, 3], "reliability": 0.5}
SHORT = {"epochs": 1, "examples": 96, "eval_examples": 20, "evaluate": "epoch"}


def study(settings: dict[str, Any], task: Any = "sst2", model: str = "minilm", **train: Any) -> Any:
    arms = {"baseline": {}, "x": {"methods": [{"bpsom": settings}]}}
    return load_study({"study": "s", "task": task, "model": model, "arms": arms, "train": train})


def test_the_defaults_are_the_published_settings() -> None:
    use = named_arms()["bpsom"].uses[0].config
    assert use == BPSOMConfig(
        hidden=128, grid=20, alpha=0.25, som_lr=(0.2, 0.05), radius=(2, 0), reliability=0.95, prune=0.02, update="batch",
        relabel="epoch", topology="rectangular", schedule="epoch",
    )  # fmt: skip


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


@pytest.mark.parametrize(("settings", "expected"), [
    ({"alpha": 1.5}, r"arms.x.methods\[0\].bpsom.alpha: found 1.5; allowed"),
    ({"alpha": -0.1}, "alpha: found -0.1"),
    ({"alpha": "0.25"}, "alpha: found '0.25'"),
    ({"grid": 0}, "grid: found 0"),
    ({"grid": [0, 5]}, r"grid: found \[0, 5\]|grid\[0\]: found 0|grid: found 0"),
    ({"grid": [5]}, "grid"),
    ({"grid": 4.5}, "grid: found 4.5"),
    ({"radius": [0, 2]}, r"radius is \[0, 2\], but it falls"),
    ({"radius": [2, -1]}, "radius"),
    ({"radius": 2}, "radius: found 2"),
    ({"som_lr": [0.05, 0.2]}, r"som_lr is \[0.05, 0.2\], but it falls"),
    ({"som_lr": [1.5, 0.1]}, "som_lr"),
    ({"som_lr": [0.2, 0.0]}, "som_lr"),
    ({"reliability": 95}, "reliability: found 95; allowed"),
    ({"prune": -0.02}, "prune: found -0.02"),
    ({"hidden": 0}, "hidden: found 0"),
    ({"relabel": 0}, "relabel: found 0"),
    ({"relabel": "step"}, "relabel: found 'step'"),
    ({"update": "online"}, "update: found 'online'"),
    ({"topology": "square"}, "topology: found 'square'"),
    ({"schedule": "steps"}, "schedule: found 'steps'.*Did you mean 'step'"),
    ({"labels": 3}, "labels: unknown key"),
])  # fmt: skip
def test_impossible_settings_are_refused_when_the_study_is_read(settings: dict[str, Any], expected: str) -> None:
    with pytest.raises(StudyError, match=expected) as caught:
        study(settings)
    assert len(caught.value.problems) == 1


def test_numbers_in_powers_of_ten_are_numbers(tmp_path: Path) -> None:
    file = tmp_path / "study.yaml"
    file.write_text(
        "study: s\ntask: sst2\nmodel: minilm\narms:\n  x:\n    lr: 2e-5\n    methods:\n"
        "      - bpsom: {som_lr: [2e-1, 5e-2], prune: 2e-2, alpha: .25}\n  baseline: {}\n"
    )
    (use,) = load_study(file).methods("x")
    assert use.config == BPSOMConfig(som_lr=(0.2, 0.05), prune=0.02)


def test_a_language_model_is_refused_when_the_study_is_read() -> None:
    with pytest.raises(StudyError, match=r"arms.x.methods\[0\]: 'bpsom' does not work with language models"):
        study({}, task="tinystories", model="gpt-medium-512")


def test_a_map_that_is_larger_than_the_data_is_refused_when_the_study_is_planned(toy: ToyStudy) -> None:
    with pytest.raises(
        FairtuneError, match=r"arm 'arm', method 'bpsom': its map has 400 cells, more than the 200 .*at most 14"
    ):
        toy.job("runs", ["bpsom"])
    with pytest.raises(FairtuneError, match="its map has 12 cells, more than the 10 training examples"):
        toy.job("runs", [{"bpsom": SMALL}], examples=10)


def test_one_class_is_no_task_for_it() -> None:
    assert "the task has 1" in (BPSOMConfig().data_problem(1000, ["a"]) or "")
    assert BPSOMConfig(grid=(20, 10)).data_problem(200, ["a", "b"]) is None
    assert BPSOMConfig(grid=(20, 10)).data_problem(199, ["a", "b"]) is not None


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


def test_the_observer_learns_as_without_a_map_and_counts_what_it_would_have_used(toy: ToyStudy) -> None:
    folder, records = run(toy, "watched", alpha=0.0, prune=None, relabel=2)
    assert records[1].figures["use"] > 0
    other, _ = run(toy, "other-map", alpha=0.0, prune=None, grid=2, som_lr=[0.9, 0.9])
    for name in ("model/model.safetensors", "predictions.parquet"):
        assert (folder.path / name).read_bytes() == (other.path / name).read_bytes(), "the map leaves no trace"
    acts, _ = run(toy, "acts", prune=None, relabel=2)
    assert (folder.path / "predictions.parquet").read_bytes() != (acts.path / "predictions.parquet").read_bytes()


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


def test_in_bf16_and_with_accumulation_it_runs(toy: ToyStudy) -> None:
    _, records = run(toy, train={"precision": "bf16", "accumulate": 2, "batch_size": 8}, relabel=3)
    assert all(np.isfinite(record.arrays["prototypes"]).all() for record in records)
    assert records[-1].figures["use"] > 0


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


def test_the_course_of_the_map_follows_epochs_or_steps(tiny_model: Path) -> None:
    from fairtune.models.loader import load_classifier
    from fairtune.models.sources import find_model

    for schedule, left in (("epoch", 1 - 3 / 5), ("step", 1 - 21 / 50)):
        method = BPSOM(BPSOMConfig(hidden=8, grid=2, schedule=schedule), 0)
        model = method.prepare(load_classifier(find_model(str(tiny_model)), ("neg", "pos")).network)
        step = SimpleNamespace(model=model, step=21, total_steps=50, epoch=2, epochs=5, scale=0.5)
        method.around_backward(step, lambda: torch.zeros(()))  # type: ignore[arg-type]
        head = active_head(model)
        assert (head.radius, head.rate) == (radius_at(left, (2, 0)), pytest.approx(rate_at(left, (0.2, 0.05))))
        assert head.loss_scale == 0.5


@pytest.fixture(scope="module")
def tiny_gpt2(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from transformers import GPT2Config, GPT2Model

    folder = tmp_path_factory.mktemp("models") / "tiny-gpt2"
    sizes = {"vocab_size": len(VOCABULARY), "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64}
    with torch.random.fork_rng():
        torch.manual_seed(0)
        GPT2Model(GPT2Config(**sizes, pad_token_id=0, bos_token_id=2, eos_token_id=3)).save_pretrained(folder)
    make_tokenizer().save_pretrained(folder)
    return folder


def test_where_plain_transformers_has_no_such_head_the_exported_model_loads_with_ours(
    tiny_gpt2: Path,
    tiny_task: Any,
    tmp_path: Path,
) -> None:
    folder = make_run(tmp_path / "runs", tiny_gpt2, tiny_task, [{"bpsom": SMALL}])
    loaded: dict[str, Any] = {}
    exec("\n".join(export_model(folder.path, tmp_path / "out").loading), loaded)  # the lines that are shown to the user
    back = loaded["model"]
    assert back.pooling == "last"
    assert back.config.id2label == {0: "neg", 1: "pos"}


def test_a_gpt_is_trained_pruned_and_scored_at_its_last_token(
    toy: ToyStudy,
    tiny_gpt2: Path,
) -> None:
    toy.source["model"] = str(tiny_gpt2)
    folder, records = run(toy, prune=0.06, relabel=3)
    assert records[-1].figures["units"] < 12
    back = BPSOMForSequenceClassification.from_pretrained(folder.model)
    assert back.bpsom.units in {12, *(record.figures["units"] for record in records)}
