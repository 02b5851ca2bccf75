"""The loss in chunks is the plain loss, with its gradients, without its memory."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from transformers import (
    CohereConfig,
    CohereForCausalLM,
    Gemma2Config,
    Gemma2ForCausalLM,
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    MixtralConfig,
    MixtralForCausalLM,
)

from fairtune.training import token_losses as module
from fairtune.training.language_head import language_head
from fairtune.training.token_losses import linear_cross_entropy, token_losses

TOKENS, WIDTH, VOCABULARY = 37, 8, 23
SIZES: dict[str, Any] = {
    "vocab_size": 61, "hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 2,
    "num_attention_heads": 2, "num_key_value_heads": 1, "max_position_embeddings": 16, "pad_token_id": 0,
}  # fmt: skip


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Chunks of at most 10 rows, so that 37 tokens are neither one chunk nor whole ones."""
    monkeypatch.setattr(module, "FEWEST_ROWS", 10)
    monkeypatch.setattr(module, "CPU_CHUNK_BYTES", 0)


def made(dtype: torch.dtype = torch.float32, ignored: int = 0) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    torch.manual_seed(0)
    hidden = torch.randn(TOKENS, WIDTH, dtype=dtype, requires_grad=True)
    weight = torch.randn(VOCABULARY, WIDTH, dtype=dtype, requires_grad=True)
    bias = torch.randn(VOCABULARY, dtype=dtype, requires_grad=True)
    targets = torch.randint(0, VOCABULARY, (TOKENS,))
    targets[torch.randperm(TOKENS)[:ignored]] = -100
    return hidden, weight, bias, targets


def plain(hidden: Tensor, weight: Tensor, bias: Tensor | None, targets: Tensor) -> Tensor:
    return functional.cross_entropy(functional.linear(hidden, weight, bias).float(), targets)


def gradients(loss: Tensor, *of: Tensor) -> list[Tensor]:
    return list(torch.autograd.grad(loss, of))


@pytest.mark.parametrize("ignored", [0, 9])
@pytest.mark.parametrize("biased", [True, False])
def test_loss_and_gradients_are_the_plain_ones(biased: bool, ignored: int) -> None:
    hidden, weight, bias, targets = made(ignored=ignored)
    chosen = (hidden, weight, bias) if biased else (hidden, weight)
    ours, theirs = (of(hidden, weight, bias if biased else None, targets) for of in (linear_cross_entropy, plain))
    torch.testing.assert_close(ours, theirs, atol=1e-6, rtol=1e-6)
    assert ours.dtype == torch.float32
    torch.testing.assert_close(gradients(ours, *chosen), gradients(theirs, *chosen), atol=1e-6, rtol=1e-6)


def test_gradients_are_the_slopes_of_the_loss() -> None:
    *inputs, targets = made(torch.float64, ignored=5)
    torch.autograd.gradcheck(lambda *given: linear_cross_entropy(*given, targets), inputs)


@pytest.mark.parametrize("tokens", [1, 10, 11, 20])
def test_any_number_of_tokens(tokens: int) -> None:
    hidden, weight, bias, targets = made()
    few = hidden[:tokens], weight, bias, targets[:tokens]
    ours, theirs = (gradients(of(*few), hidden, weight, bias) for of in (linear_cross_entropy, plain))
    torch.testing.assert_close(ours, theirs, atol=1e-6, rtol=1e-6)


def test_large_logits_neither_overflow_nor_vanish() -> None:
    hidden, weight, bias, targets = made()
    ours, theirs = (of(hidden * 300, weight, bias, targets) for of in (linear_cross_entropy, plain))
    assert torch.isfinite(ours)
    torch.testing.assert_close(ours, theirs)
    torch.testing.assert_close(gradients(ours, weight), gradients(theirs, weight), rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("tokens", [0, TOKENS])
def test_no_target_at_all_is_a_loss_of_0_that_moves_nothing(tokens: int) -> None:
    hidden, weight, bias, targets = made(ignored=TOKENS)
    loss = linear_cross_entropy(hidden[:tokens], weight, bias, targets[:tokens])
    assert loss == 0
    assert all(not found.any() for found in gradients(loss, hidden, weight, bias))


@pytest.mark.parametrize("wrong", [-1, VOCABULARY])
def test_a_target_outside_of_the_vocabulary_is_refused(wrong: int) -> None:
    hidden, weight, bias, targets = made()
    targets[3] = wrong
    with pytest.raises(RuntimeError, match="out of bounds"):
        linear_cross_entropy(hidden, weight, bias, targets)


def test_gradients_accumulate_and_are_scaled_by_what_comes_after() -> None:
    hidden, weight, bias, targets = made()
    (linear_cross_entropy(hidden, weight, bias, targets) * 3).backward()
    linear_cross_entropy(hidden, weight, bias, targets).backward()
    (expected,) = gradients(plain(hidden, weight, bias, targets), weight)
    torch.testing.assert_close(weight.grad, 4 * expected, atol=1e-6, rtol=1e-6)


def test_what_is_frozen_gets_no_gradient_and_costs_no_product() -> None:
    for frozen in range(3):
        *inputs, targets = made()
        inputs[frozen].requires_grad_(False)
        with Largest() as seen:
            linear_cross_entropy(*inputs, targets).backward()
        assert [one.grad is None for one in inputs] == [number == frozen for number in range(3)]
        assert seen.products == 4 * 3  # of 4 chunks: the logits, and what is not frozen


@pytest.mark.parametrize("factor", [1.0, 2.0])
def test_the_graph_can_be_kept(factor: float) -> None:
    hidden, weight, bias, targets = made()
    loss = linear_cross_entropy(hidden, weight, bias, targets) * factor
    for _ in range(2):
        loss.backward(retain_graph=True)
    (expected,) = gradients(plain(hidden, weight, bias, targets), weight)
    torch.testing.assert_close(weight.grad, 2 * factor * expected, atol=1e-6, rtol=1e-6)


def test_without_gradients_only_the_logits_are_made() -> None:
    *inputs, targets = made()
    with Largest() as seen, torch.no_grad():
        loss = linear_cross_entropy(*inputs, targets)
    assert seen.products == 4
    assert not loss.requires_grad


def test_a_second_derivative_is_refused() -> None:
    hidden, weight, bias, targets = made()
    with pytest.raises(RuntimeError, match="once only"):
        torch.autograd.grad(linear_cross_entropy(hidden, weight, bias, targets), hidden, create_graph=True)


def test_the_same_bits_again() -> None:
    *inputs, targets = made()
    first, second = (
        [loss, *gradients(loss, *inputs)] for loss in (linear_cross_entropy(*inputs, targets) for _ in range(2))
    )
    assert all(torch.equal(a, b) for a, b in zip(first, second, strict=True))


@pytest.mark.parametrize("kind", [torch.bfloat16, torch.float16])
def test_autocast_makes_products_short_and_losses_long(kind: torch.dtype) -> None:
    *inputs, targets = made(ignored=4)
    with torch.autocast("cpu", kind):
        ours = linear_cross_entropy(*inputs, targets)
    exact = plain(*inputs, targets)
    assert ours.dtype == torch.float32
    torch.testing.assert_close(ours, exact, atol=2e-2, rtol=2e-2)
    for found, expected in zip(gradients(ours, *inputs), gradients(exact, *inputs), strict=True):
        assert found.dtype == torch.float32
        torch.testing.assert_close(found, expected, atol=2e-2 * float(expected.abs().max()), rtol=2e-2)


def test_half_precision_gradients_survive_many_tokens_under_a_loss_scale() -> None:
    """Divided by the number of tokens before they are scaled, all of these would be 0 in fp16."""
    torch.manual_seed(0)
    hidden = (1e-3 * torch.randn(4096, WIDTH)).half().requires_grad_()
    weight, targets = (1e-3 * torch.randn(VOCABULARY, WIDTH)).half(), torch.randint(0, VOCABULARY, (4096,))
    scale = 2.0**16
    (linear_cross_entropy(hidden, weight, None, targets) * scale).backward()
    exact = hidden.detach().float().requires_grad_()
    (plain(exact, weight.float(), None, targets) * scale).backward()
    assert hidden.grad is not None
    assert hidden.grad.dtype == torch.float16
    torch.testing.assert_close(hidden.grad.float(), exact.grad, rtol=1e-2, atol=1e-4)


class Largest(TorchDispatchMode):
    """Notes the largest tensor that any operation makes, and counts matrix products."""

    elements = products = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        found = func(*args, **(kwargs or {}))
        self.products += func.overloadpacket in (torch.ops.aten.mm, torch.ops.aten.addmm, torch.ops.aten.addmm_)
        sizes = (one.untyped_storage().nbytes() // one.element_size() for one in tree_leaves(found) if _is_tensor(one))
        self.elements = max([self.elements, *sizes])
        return found


def _is_tensor(value: Any) -> bool:
    return isinstance(value, Tensor)


def test_no_tensor_is_ever_as_large_as_the_logits() -> None:
    torch.manual_seed(0)
    hidden, weight = torch.randn(64, 4, requires_grad=True), torch.randn(500, 4, requires_grad=True)
    targets = torch.randint(0, 500, (64,))
    with Largest() as ours:
        linear_cross_entropy(hidden, weight, None, targets).backward()
        token_losses(hidden, weight, None, targets)
    with Largest() as theirs:
        plain(hidden, weight, None, targets).backward()
    assert ours.elements == 10 * 512  # whole cache lines
    assert theirs.elements == 64 * 500


def test_token_losses_are_the_plain_ones() -> None:
    hidden, weight, bias, targets = made(ignored=6)
    losses, correct = token_losses(hidden, weight, bias, targets)
    logits = functional.linear(hidden, weight, bias)
    torch.testing.assert_close(
        losses, functional.cross_entropy(logits, targets, reduction="none"), atol=1e-6, rtol=1e-6
    )
    assert torch.equal(correct, logits.argmax(1) == targets)
    assert correct.any()
    assert not losses.requires_grad
    assert losses.dtype == torch.float32


def gpt2() -> GPT2LMHeadModel:
    sizes: dict[str, Any] = {"vocab_size": 61, "n_positions": 16, "n_embd": 16, "n_layer": 2, "n_head": 2}
    return _drawn(GPT2LMHeadModel, GPT2Config(**sizes, bos_token_id=0, eos_token_id=0))


def llama(**changes: Any) -> LlamaForCausalLM:
    return _drawn(LlamaForCausalLM, LlamaConfig(**{**SIZES, **changes}))


def _drawn(of: Any, config: Any) -> Any:
    torch.manual_seed(0)
    return of(config)


def batch() -> dict[str, Tensor]:
    ids = torch.randint(0, 61, (4, 12), generator=torch.Generator().manual_seed(1))
    return {"input_ids": ids, "labels": ids}


@pytest.mark.parametrize("made_model", [gpt2, llama, lambda: llama(tie_word_embeddings=True)])
def test_a_models_gradients_are_those_of_its_own_loss(made_model: Any) -> None:
    ours, theirs = made_model().eval(), made_model().eval()
    given = batch()
    theirs(**given).loss.backward()
    head = language_head(ours, given)
    assert head is not None
    hidden = head.hidden(input_ids=given["input_ids"])
    states, targets = hidden[:, :-1].flatten(0, 1), given["labels"][:, 1:].flatten()
    linear_cross_entropy(states, head.weight, head.bias, targets).backward()
    expected = {name: one.grad for name, one in theirs.named_parameters()}
    found = {name: one.grad for name, one in ours.named_parameters()}
    torch.testing.assert_close(found, expected, atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize(
    ("of", "config"),
    [
        (Gemma2ForCausalLM, Gemma2Config(**SIZES, head_dim=8, final_logit_softcapping=30.0)),
        (CohereForCausalLM, CohereConfig(**SIZES, logit_scale=0.5)),
        (MixtralForCausalLM, MixtralConfig(**SIZES, num_local_experts=2, output_router_logits=True)),
    ],
    ids=["caps its logits", "scales its logits", "adds to its loss"],
)
def test_a_model_that_does_more_than_a_linear_layer_has_no_halves(of: Any, config: Any) -> None:
    assert language_head(_drawn(of, config), batch()) is None


def test_looking_for_the_head_changes_nothing() -> None:
    model = gpt2().train()
    model.transformer.h[0].eval()
    modes, state = [part.training for part in model.modules()], torch.random.get_rng_state()
    assert language_head(model, batch()) is not None
    assert [part.training for part in model.modules()] == modes
    assert torch.equal(torch.random.get_rng_state(), state)
    assert not any(part._forward_hooks for part in model.modules())


def test_the_weight_is_looked_up_at_each_use() -> None:
    model = llama()
    head = language_head(model, batch())
    model.lm_head = nn.Linear(16, 61)
    assert head is not None
    assert head.weight is model.lm_head.weight
    assert head.bias is model.lm_head.bias


def test_adapters_of_peft() -> None:
    peft = pytest.importorskip("peft")
    inner = peft.get_peft_model(llama(), peft.LoraConfig(task_type="CAUSAL_LM", target_modules=["q_proj"]))
    assert language_head(inner, batch()) is not None
    on_head = peft.get_peft_model(llama(), peft.LoraConfig(task_type="CAUSAL_LM", target_modules=["q_proj", "lm_head"]))
    assert language_head(on_head, batch()) is None
    penalised = peft.AdaLoraConfig(task_type="CAUSAL_LM", target_modules=["q_proj"], total_step=10)
    assert language_head(peft.get_peft_model(llama(), penalised), batch()) is None
    prompts = peft.PromptTuningConfig(task_type="CAUSAL_LM", num_virtual_tokens=2)
    assert language_head(peft.get_peft_model(llama(), prompts), batch()) is None


def test_a_changed_head_or_a_model_of_another_kind_has_no_halves() -> None:
    hooked = gpt2()
    hooked.lm_head.register_forward_hook(lambda _module, _inputs, output: output)
    assert language_head(hooked, batch()) is None
    assert language_head(nn.Linear(2, 2), batch()) is None
