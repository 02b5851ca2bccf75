"""The fast dropout is dropout (its rate, scale, gradient, seed, and none in eval mode), and the fast GELU is transformers'."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from transformers import GPT2Config, GPT2LMHeadModel
from transformers.activations import NewGELUActivation

from fairtune.training.fast_layers import FastDropout, FastGELU, use_fast_dropout, use_fast_gelu


@pytest.mark.parametrize("p", [0.1, 0.5, 0.03])
def test_drops_the_right_share_and_keeps_the_mean(p: float) -> None:
    torch.manual_seed(0)
    out = FastDropout(p)(torch.ones(1000, 1001))
    dropped = (out == 0).float().mean().item()
    assert dropped == pytest.approx(p, abs=4 * (p * (1 - p) / 1e6) ** 0.5 + 1 / 65536)
    assert out.mean().item() == pytest.approx(1.0, abs=0.01)
    assert out.unique().numel() == 2
    by_place = (out == 0).float().view(-1)[: 4 * 250_000].view(-1, 4).mean(dim=0)
    assert by_place.numpy() == pytest.approx(p, abs=0.005), "each of the four elements of a draw"
    kept = (out.view(-1)[: 4 * 250_000] != 0).float().view(-1, 4)
    assert abs(torch.corrcoef(kept.T) - torch.eye(4)).max() < 0.01, "which do not depend on each other"


def test_gradients_pass_where_values_do() -> None:
    value = torch.randn(7, 13, requires_grad=True)
    out = FastDropout(0.4)(value)
    out.sum().backward()
    assert value.grad is not None
    torch.testing.assert_close(out, value * value.grad)


def test_a_seed_decides_and_eval_mode_changes_nothing() -> None:
    layer, value = FastDropout(0.3), torch.randn(5, 9)
    torch.manual_seed(1)
    first = layer(value)
    torch.manual_seed(1)
    assert torch.equal(first, layer(value))
    assert not torch.equal(first, layer(value))
    assert torch.equal(layer.eval()(value), value)


def test_only_plain_dropout_is_replaced() -> None:
    model = nn.Sequential(nn.Dropout(0.2), nn.Dropout1d(0.2), nn.Linear(2, 2))
    use_fast_dropout(model)
    assert isinstance(model[0], FastDropout)
    assert model[0].p == 0.2
    assert type(model[1]) is nn.Dropout1d


def test_the_fast_gelu_has_the_same_values_and_gradients() -> None:
    values = [torch.linspace(-8, 8, 4001, requires_grad=True) for _ in range(2)]
    for activation, value in zip((NewGELUActivation(), FastGELU()), values, strict=True):
        activation(value).sum().backward()
    torch.testing.assert_close(FastGELU()(values[0]), NewGELUActivation()(values[0]), atol=2e-6, rtol=1e-5)
    torch.testing.assert_close(values[0].grad, values[1].grad, atol=2e-6, rtol=1e-5)


def test_a_models_answers_stay_with_the_fast_gelu() -> None:
    torch.manual_seed(0)
    model = GPT2LMHeadModel(GPT2Config(vocab_size=50, n_embd=32, n_layer=2, n_head=4, n_positions=16)).eval()
    ids = torch.arange(16).reshape(2, 8)
    with torch.no_grad():
        before = model(input_ids=ids).logits
        use_fast_gelu(model)
        torch.testing.assert_close(model(input_ids=ids).logits, before, atol=1e-5, rtol=1e-4)
    assert sum(isinstance(module, FastGELU) for module in model.modules()) == 2
