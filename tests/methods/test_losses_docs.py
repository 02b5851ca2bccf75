"""The examples of docs/losses.md work as they stand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForSequenceClassification, Trainer, TrainingArguments

from fairtune.methods.focal import FocalLoss
from fairtune.methods.losses import trainer_loss
from fairtune.study.study_file import load_study
from fairtune.study.yaml_tree import parse_yaml
from tests.documented import examples, run_python

PAGE = "losses.md"
PYTHON = examples(PAGE, "python")


@pytest.fixture
def run(tiny_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.chdir(tmp_path)
    return lambda heading: run_python(PYTHON[heading], {"google-bert/bert-base-uncased": tiny_model}, PAGE)


def test_no_example_is_left_out() -> None:
    assert set(PYTHON) == {"In your own loop", "In transformers' `Trainer`", "R-Drop in `Trainer`"}
    assert set(examples(PAGE, "yaml")) == {"In a study"}


def test_the_study_is_valid_and_fits_its_task() -> None:
    study = load_study(parse_yaml(examples(PAGE, "yaml")["In a study"]).data)
    assert study.methods("baseline") == ()
    for arm in study.arms:
        for use in study.methods(arm):
            assert not use.config.idle
            assert use.config.data_problem(1000, ["negative", "positive"]) is None


def test_the_own_loop(run: Any) -> None:
    names = run("In your own loop")
    assert len(names["doubled"]["input_ids"]) == 6
    assert names["outputs"].logits.shape == (6, 2)
    assert all(torch.isfinite(names[loss]) for loss in ("focal", "weighted", "loss"))
    assert names["model"].classifier.weight.grad is not None


def test_trainer(run: Any) -> None:
    names = run("In transformers' `Trainer`")
    assert not torch.equal(names["model"].classifier.bias, torch.zeros(2)), "it was trained"


def test_rdrop_in_trainer_doubles_training_batches_only(run: Any) -> None:
    trainer = run("R-Drop in `Trainer`")["trainer"]
    assert trainer.state.global_step == 2
    answers = trainer.predict(trainer.eval_dataset)
    assert answers.predictions.shape == (4, 2)


def test_in_trainer_batches_of_a_step_count_by_their_examples(tiny_model: Path, tmp_path: Path) -> None:
    """One step over 3 + 1 examples, without dropout, moves the weights as one batch of 4 does."""
    torch.manual_seed(0)
    start = AutoModelForSequenceClassification.from_pretrained(
        tiny_model, num_labels=2, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0
    )
    rows = [{"input_ids": [2, 5 + i, 11 + i, 3], "attention_mask": [1] * 4, "labels": i % 2} for i in range(4)]
    moved = []
    for batch_size, accumulate in ((4, 1), (3, 2)):
        model = type(start)(start.config)
        model.load_state_dict(start.state_dict())
        arguments = TrainingArguments(
            str(tmp_path), max_steps=1, per_device_train_batch_size=batch_size, gradient_accumulation_steps=accumulate,
            optim="sgd", learning_rate=0.1, max_grad_norm=0, report_to="none", use_cpu=True, save_strategy="no",
        )  # fmt: skip
        Trainer(model, arguments, train_dataset=rows, compute_loss_func=trainer_loss(FocalLoss(2, [1, 3]))).train()
        moved.append(model.classifier.weight.detach() - start.classifier.weight.detach())
    assert moved[0].abs().max() > 1e-4
    torch.testing.assert_close(moved[1], moved[0], atol=1e-6, rtol=1e-3)
