"""`target: table`, the published variant: one step of the shared table for the whole batch, put back bit for bit."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from fairtune.core.errors import ModelError
from fairtune.methods.adversarial import FGMConfig
from fairtune.methods.adversarial.perturbation import adversarial_backward
from fairtune.methods.adversarial.perturbation import Ascent
from tests.methods.attacked import gradients, padded
from tests.models.architectures import build, inputs


def tables_seen(model: Any, batch: dict[str, Tensor], **settings: Any) -> list[Tensor]:
    """How far the table is moved in each pass."""
    table, seen = model.get_input_embeddings(), []
    start = table.weight.detach().clone()
    hook = table.register_forward_hook(lambda *_: seen.append((table.weight - start).detach()))
    adversarial_backward(model, batch, target="table", **settings)
    hook.remove()
    assert torch.equal(table.weight, start)
    return seen


def table_gradient(model: Any, batch: dict[str, Tensor], delta: Tensor | float = 0.0) -> Tensor:
    weight = model.get_input_embeddings().weight
    with torch.no_grad():
        weight += delta
    (gradient,) = torch.autograd.grad(model(**batch).loss, weight)
    with torch.no_grad():
        weight -= delta
    return gradient


@pytest.mark.parametrize("clean", [True, False])
def test_fgm_moves_the_whole_table_by_one_norm(clean: bool) -> None:
    model, batch = build("bert"), padded()
    expected = table_gradient(model, batch)
    seen = tables_seen(model, batch, epsilon=0.5, clean=clean)
    assert len(seen) == 2
    assert not seen[0].any()
    torch.testing.assert_close(seen[1], 0.5 * expected / expected.norm(), atol=1e-6, rtol=1e-3)
    assert float(seen[1].norm()) == pytest.approx(0.5, rel=1e-4)


def test_pgd_moves_it_step_by_step_within_the_ball() -> None:
    model, batch = build("bert"), padded()
    delta = torch.zeros_like(model.get_input_embeddings().weight)
    for _ in range(3):
        gradient = table_gradient(model, batch, delta)
        delta = delta + 0.03 * gradient / gradient.norm()
        delta = delta * min(1.0, 0.05 / float(delta.norm()))
    seen = tables_seen(model, batch, method="pgd", steps=3, step_size=0.03, epsilon=0.05)
    assert len(seen) == 4
    torch.testing.assert_close(seen[-1], delta, atol=1e-6, rtol=1e-3)


def test_it_is_the_gradient_of_this_batch_not_of_those_before_it() -> None:
    model, batch = build("bert"), padded()
    other = {**batch, "input_ids": batch["input_ids"].flip(0), "labels": 1 - batch["labels"]}
    alone = tables_seen(model, other)[1]
    last = gradients(model)
    adversarial_backward(model, batch, target="table")
    first = {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}
    torch.testing.assert_close(tables_seen(model, other)[1], alone)
    for name, gradient in gradients(model).items():
        torch.testing.assert_close(gradient, first[name] + last[name], atol=1e-6, rtol=1e-4, msg=name)


def test_a_language_model_whose_head_is_the_table_is_moved_with_it_under_autocast_too() -> None:
    model = build("gpt2")
    batch = inputs(model, 6) | {"labels": inputs(model, 6)["input_ids"]}
    assert model.lm_head.weight is model.get_input_embeddings().weight

    def forward() -> Tensor:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss: Tensor = model(**batch).loss
        return loss

    found = []
    for clean in (False, True):  # found within the pass that learns, or before it
        adversarial_backward(model, batch, forward=forward, target="table", clean=clean, epsilon=5.0)
        found.append(gradients(model))
        if clean:
            forward().backward()  # type: ignore[no-untyped-call]
            plain = gradients(model)
    for name, gradient in found[0].items():
        torch.testing.assert_close(gradient, found[1][name] - plain[name], atol=2e-2, rtol=2e-2, msg=name)
    assert not torch.allclose(found[0]["transformer.wte.weight"], plain["transformer.wte.weight"], atol=2e-2)


def test_a_frozen_table_is_refused_before_the_first_step() -> None:
    model = build("bert")
    model.get_input_embeddings().requires_grad_(False)
    with pytest.raises(ModelError, match="but they are frozen; use `target: output`"):
        Ascent(FGMConfig(target="table")).param_groups([], model)
    with pytest.raises(ModelError, match="frozen"):
        adversarial_backward(model, padded(), target="table")
    Ascent(FGMConfig()).param_groups([], model)
    Ascent(FGMConfig(target="table", epsilon=0)).param_groups([], model)
