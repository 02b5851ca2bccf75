"""The fast GELU is the one that transformers writes out."""

from __future__ import annotations

import torch
from transformers import GPT2Config, GPT2LMHeadModel
from transformers.activations import NewGELUActivation

from fairtune.training.activations import FastGELU, use_fast_gelu


def test_values_and_gradients_are_the_same() -> None:
    values = [torch.linspace(-8, 8, 4001, requires_grad=True) for _ in range(2)]
    for activation, value in zip((NewGELUActivation(), FastGELU()), values, strict=True):
        activation(value).sum().backward()
    torch.testing.assert_close(FastGELU()(values[0]), NewGELUActivation()(values[0]), atol=2e-6, rtol=1e-5)
    torch.testing.assert_close(values[0].grad, values[1].grad, atol=2e-6, rtol=1e-5)


def test_a_models_answers_stay() -> None:
    torch.manual_seed(0)
    model = GPT2LMHeadModel(GPT2Config(vocab_size=50, n_embd=32, n_layer=2, n_head=4, n_positions=16)).eval()
    ids = torch.arange(16).reshape(2, 8)
    with torch.no_grad():
        before = model(input_ids=ids).logits
        use_fast_gelu(model)
        torch.testing.assert_close(model(input_ids=ids).logits, before, atol=1e-5, rtol=1e-4)
    assert sum(isinstance(module, FastGELU) for module in model.modules()) == 2
