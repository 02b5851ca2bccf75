"""The examples of docs/adversarial.md run: in a study, in a user's own loop and in Trainer; and its figures are the code's."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import torch

from fairtune.methods.adversarial.perturbation import adversarial_backward
from fairtune.methods.registry import parse_method_use
from fairtune.study.study_file import load_study
from fairtune.study.yaml_tree import parse_yaml
from tests.documented import DOCS, examples, run_python

PAGE = "adversarial.md"
PYTHON, STUDIES = examples(PAGE, "python"), examples(PAGE, "yaml")
TESTED = {"In your own loop", "In transformers' `Trainer`"}


@pytest.fixture
def run(tiny_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.chdir(tmp_path)
    torch.manual_seed(0)
    folders = {"google-bert/bert-base-uncased": tiny_model}
    return lambda heading: run_python(PYTHON[heading], folders, f"docs/{PAGE}: {heading}")


def test_every_arm_of_the_study_is_read() -> None:
    study = load_study(parse_yaml(STUDIES["In a study"]).data)
    assert [len(study.methods(arm)) for arm in study.arms] == [0, 1, 1, 1, 1, 1, 1]


def test_the_own_loop(run: Any) -> None:
    names = run("In your own loop")
    assert 0 < float(names["loss"]) < 2
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in names["model"].modules())


def test_trainer_makes_the_gradients_of_the_accumulated_batches(run: Any) -> None:
    names = run("In transformers' `Trainer`")
    trainer, model = names["trainer"], names["model"]
    assert trainer.state.global_step == 2
    rows = [{key: torch.tensor(value) for key, value in row.items()} for row in names["examples"]]
    batch = {key: torch.stack([row[key] for row in rows]) for key in rows[0]}
    for module in model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
        if hasattr(module, "dropout_prob"):
            module.dropout_prob = 0.0
    model.config.attention_probs_dropout_prob = 0.0
    found = []
    for parts in ((batch,), tuple({key: value[i : i + 2] for key, value in batch.items()} for i in (0, 2))):
        model.zero_grad()
        trainer.current_gradient_accumulation_steps = len(parts)
        loss = sum(float(trainer.training_step(model, part)) for part in parts)
        found.append((loss, [p.grad.clone() for p in model.parameters() if p.grad is not None]))
    model.zero_grad()
    loss = float(adversarial_backward(model, batch, "pgd", steps=2, epsilon=0.5))
    expected = [p.grad for p in model.parameters() if p.grad is not None]
    for reported, gradients in found:
        assert reported == pytest.approx(loss, rel=1e-4)
        for one, two in zip(gradients, expected, strict=True):
            torch.testing.assert_close(one, two, atol=1e-6, rtol=1e-3)


def test_the_costs_are_what_the_methods_expect() -> None:
    text = (DOCS / PAGE).read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)(?:: (\{[^`]*\}))?` \|[^|]*\| ([^|]*) \| ([^|]*) \|$", text, flags=re.MULTILINE)
    assert len(rows) == 6
    for name, settings, formula, figure in rows:
        method = parse_yaml(f"{name}: {settings}").data if settings else name
        value = eval(formula.replace("2/3 ", "2/3*"), {"K": 3})
        assert parse_method_use(method).config.step_factor == pytest.approx(value)
        assert not figure.strip() or float(figure) == pytest.approx(value, abs=0.01)


def test_no_example_is_left_out() -> None:
    assert set(PYTHON) == TESTED
    assert set(STUDIES) == {"In a study"}
