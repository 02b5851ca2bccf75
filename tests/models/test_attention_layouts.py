"""Q, K and V of every architecture, proved by what attention computes, not by names."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from transformers.pytorch_utils import Conv1D

from fairtune import orthogonalize_qk, register_attention
from fairtune.core.errors import ModelError
from fairtune.models import attention_layouts as layouts
from fairtune.models.attention import attention_layers
from fairtune.models.flops import count_flops
from tests.models.architectures import FAMILIES, FUSED, build, inputs

EVERY = tuple(dict.fromkeys((*FAMILIES, *FUSED)))
NOT_WATCHED = {"deberta-v3"}  # it multiplies by means of its own


def outputs(model: Any, length: int, **more: Any) -> Any:
    with torch.no_grad():
        return model(**inputs(model, length), **more)


def answer(model: Any, length: int) -> Tensor:
    found = outputs(model, length)
    return found.logits if "logits" in found else found.last_hidden_state


def scores(model: Any) -> list[Tensor]:
    """The attention probabilities of every layer; those of the first are of the same inputs, whatever Q and K are."""
    model.set_attn_implementation("eager")
    found = outputs(model, 7, output_attentions=True)
    kinds = ("attentions", "encoder_attentions", "decoder_attentions", "cross_attentions")
    return [layer for kind in kinds for layer in found.get(kind) or ()]


@contextmanager
def multiplied(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[tuple[Tensor, Tensor, Tensor]]]:
    """The queries, keys and values that attention really multiplied, call by call."""
    seen: list[tuple[Tensor, Tensor, Tensor]] = []
    real = torch.nn.functional.scaled_dot_product_attention

    def watching(query: Tensor, key: Tensor, value: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        seen.append((query.clone(), key.clone(), value.clone()))
        return real(query, key, value, *args, **kwargs)

    with monkeypatch.context() as patch:
        patch.setattr(torch.nn.functional, "scaled_dot_product_attention", watching)
        yield seen


@pytest.mark.parametrize("name", EVERY)
def test_scores_change_and_values_do_not(name: str) -> None:
    """A single token attends to itself with weight 1 whatever Q and K are: there, only values speak."""
    model = build(name)
    before, alone = scores(copy.deepcopy(model)), answer(model, 1)
    orthogonalize_qk(model, init="headwise_random")
    torch.testing.assert_close(answer(model, 1), alone, atol=1e-5, rtol=1e-4)
    after = scores(model)
    assert len(before) == len(after) > 0
    for was, now in zip(before, after, strict=True):
        assert (was - now).abs().max() > 1e-3, "every layer's scores changed"


@pytest.mark.parametrize("name", [n for n in EVERY if n not in NOT_WATCHED])
@pytest.mark.parametrize("part", ["q", "k"])
def test_one_part_alone_changes_that_part_of_every_head(name: str, part: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the first attention layer the inputs are the same, so what was multiplied tells which rows were changed."""
    model = build(name)
    with multiplied(monkeypatch) as before:
        answer(model, 7)
    orthogonalize_qk(model, init="headwise_random", parts=part)
    with multiplied(monkeypatch) as after:
        answer(model, 7)
    moved = [(was - now).abs().amax(dim=(0, 2, 3)) for was, now in zip(before[0], after[0], strict=True)]
    changed = "qk".index(part)
    for place, movement in enumerate(moved):
        assert (movement > 1e-3).all() if place == changed else (movement < 1e-4).all(), (place, movement)


@pytest.mark.parametrize("name", EVERY)
def test_what_is_frozen_gets_no_gradient_and_no_optimizer_state_and_never_moves(name: str) -> None:
    model = build(name).train()
    card = orthogonalize_qk(model, init="headwise")
    values = [p.weight() for layer in attention_layers(model) for p in layer.of("v")]
    trained = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=0.01, weight_decay=0.5)
    for _ in range(2):
        found = model(**inputs(model, 7))
        (found.logits if "logits" in found else found.last_hidden_state).float().pow(2).mean().backward()
        assert all(p.grad is None for p in model.parameters() if not p.requires_grad)
        optimizer.step()
        optimizer.zero_grad()
    card.verify(model)
    held = sum(state["exp_avg"].numel() for state in optimizer.state.values() if state)
    frozen = sum(p.parameters for layer in attention_layers(model) for p in layer.of("qk"))
    assert held <= sum(p.numel() for p in model.parameters()) - frozen
    assert sum(p.numel() for p in model.parameters() if not p.requires_grad) == frozen
    for was, layer in zip(values, attention_layers(model), strict=True):
        assert not torch.equal(was, layer.of("v")[0].weight()), "values train"


@pytest.mark.parametrize("name", EVERY)
def test_a_saved_model_has_the_original_layout_and_the_same_answers(name: str, tmp_path: Path) -> None:
    model = build(name)
    names = {key: tensor.shape for key, tensor in model.state_dict().items()}
    orthogonalize_qk(model, init="normal", std=0.3)
    assert {key: tensor.shape for key, tensor in model.state_dict().items()} == names
    model.save_pretrained(tmp_path)
    again = type(model).from_pretrained(tmp_path).eval()
    torch.testing.assert_close(answer(again, 7), answer(model, 7), atol=1e-5, rtol=1e-4)
    for key, tensor in again.state_dict().items():
        assert torch.equal(tensor, model.state_dict()[key]), key


@pytest.mark.parametrize("name", [*FUSED, "qwen3_5_text"])
@pytest.mark.parametrize("parts", ["q", "k", "qk"])
def test_a_fused_projection_computes_the_same_when_it_is_cut(name: str, parts: str) -> None:
    model = build(name)
    whole = answer(model, 7)
    state = {key: tensor.clone() for key, tensor in model.state_dict().items()}
    orthogonalize_qk(model, init="keep", parts=parts)
    torch.testing.assert_close(answer(model, 7), whole, atol=1e-5, rtol=1e-4)
    assert all(torch.equal(tensor, state[key]) for key, tensor in model.state_dict().items())
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(1.0)
    model.load_state_dict(state)
    torch.testing.assert_close(answer(model, 7), whole, atol=1e-5, rtol=1e-4)


def gradients(model: Any) -> dict[tuple[str, str, str], Tensor]:
    """Gradients of every projection's own rows, and of all that is no projection, by names that cutting does not change."""
    model(**inputs(model, 7)).logits.float().pow(2).mean().backward()
    found, seen = {}, set()
    for layer in attention_layers(model):
        for projection in layer.projections:
            seen |= {id(p) for p in projection.module.parameters()}
            for kind, parameter in projection.module.named_parameters():
                if parameter.grad is not None:
                    rows = (
                        parameter.grad.t()
                        if isinstance(projection.module, Conv1D) and kind == "weight"
                        else parameter.grad
                    )
                    found[layer.name, projection.part, kind] = (
                        rows if projection.rows is None else rows[projection.rows]
                    )
    others = {
        (name, "-", ""): p.grad for name, p in model.named_parameters() if id(p) not in seen and p.grad is not None
    }
    return {**found, **others}


@pytest.mark.parametrize("name", [*FUSED, "qwen3_5_text"])
@pytest.mark.parametrize("parts", ["q", "k", "qk"])
def test_what_trains_beside_a_frozen_part_gets_the_same_gradient(name: str, parts: str) -> None:
    whole, cut = build(name), build(name)
    orthogonalize_qk(cut, init="keep", parts=parts)
    expected, found = gradients(whole), gradients(cut)
    assert {part for _, part, _ in found if part in "qkv"} == set("qkv") - set(parts)
    for key, gradient in found.items():
        torch.testing.assert_close(gradient, expected[key], atol=1e-6, rtol=1e-4, msg=str(key))


@pytest.mark.parametrize("name", ["gpt2-classifier", "phi3", "modernbert", "gpt-neox", "bert"])
def test_freezing_saves_the_weight_gradients_of_queries_and_keys_and_nothing_else(name: str) -> None:
    """Each layer's two weight gradients are the only matrix products that go, by torch's flop counter."""
    model = build(name)
    batch = inputs(model, 8)
    batch["labels"] = batch["input_ids"] if "ForCausalLM" in type(model).__name__ else torch.tensor([0, 1])
    all_trains = count_flops(model, batch)
    weights = sum(p.weight().numel() for layer in attention_layers(model) for p in layer.of("qk"))
    orthogonalize_qk(model, init="keep")
    frozen = count_flops(model, batch)
    assert frozen.forward == all_trains.forward
    assert all_trains.backward - frozen.backward == 2 * batch["input_ids"].numel() * weights


@pytest.mark.parametrize("name", ["gpt2", "gpt-neox"])
def test_a_cut_projection_follows_autocast(name: str) -> None:
    whole, cut = build(name), build(name)
    orthogonalize_qk(cut, init="keep")
    with torch.autocast("cpu", torch.bfloat16):
        expected, found = gradients(whole), gradients(cut)
    for key, gradient in found.items():
        assert gradient.dtype == torch.float32
        torch.testing.assert_close(gradient, expected[key], atol=0.02 * float(expected[key].abs().max()), rtol=0.1)


def test_a_frozen_model_can_be_copied_halved_and_compiled() -> None:
    model = build("gpt2")
    orthogonalize_qk(model, init="headwise")
    whole = answer(model, 7)
    torch.testing.assert_close(answer(copy.deepcopy(model), 7), whole)
    compiled = torch.compile(model, backend="eager")
    torch.testing.assert_close(answer(compiled, 7), whole, atol=1e-4, rtol=1e-3)
    half = model.to(torch.bfloat16)
    assert {p.dtype for p in half.parameters()} == {torch.bfloat16}
    torch.testing.assert_close(answer(half, 7).float(), whole, atol=0.2, rtol=0.2)


class OddAttention(nn.Module):
    """An attention that nobody listed: its own names, a fused key and value."""

    def __init__(self, width: int = 16) -> None:
        super().__init__()
        self.n_heads = 2
        self.ask, self.tell, self.out = nn.Linear(width, width), nn.Linear(width, 2 * width), nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        q = self.ask(x).unflatten(-1, (self.n_heads, -1)).transpose(1, 2)
        k, v = (t.unflatten(-1, (self.n_heads, -1)).transpose(1, 2) for t in self.tell(x).chunk(2, dim=-1))
        return self.out(torch.nn.functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))


class OddModel(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([OddAttention(), OddAttention()])

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = x + layer(x)
        return x


@pytest.fixture
def odd() -> Iterator[OddModel]:
    torch.manual_seed(0)
    yield OddModel()
    layouts._own.clear()


def test_an_unknown_attention_is_named_and_described(odd: OddModel) -> None:
    with pytest.raises(ModelError) as caught:
        orthogonalize_qk(odd)
    message = str(caught.value)
    assert "OddAttention at layers.0 with ask [16 x 16], tell [32 x 16], out [16 x 16]" in message
    assert 'fairtune.register_attention("OddAttention", ' in message

    register_attention("OddAttention", {"ask": "q", "tell": "kv"}, heads="n_heads")
    x = torch.randn(2, 1, 16)
    alone = odd(x)
    card = orthogonalize_qk(odd, init="headwise")
    torch.testing.assert_close(odd(x), alone, msg="a single token speaks by its value only")
    assert card.attention["summary"]["worst_orthogonality_error"] < 1e-6
    assert {name for name, p in odd.named_parameters() if not p.requires_grad} == {
        f"layers.{i}.{part}.{kind}" for i in (0, 1) for part in ("ask", "tell.k") for kind in ("weight", "bias")
    }


def test_a_wrong_description_is_refused(odd: OddModel) -> None:
    with pytest.raises(ModelError, match="must hold all of q, k and v"):
        register_attention("OddAttention", {"ask": "q", "tell": "k"})
    register_attention(OddAttention, {"ask": "q", "tell": "kv"}, heads="heads_there_are")
    with pytest.raises(ModelError, match="has a number called 'heads_there_are'"):
        attention_layers(odd)
